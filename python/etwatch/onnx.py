# SPDX-License-Identifier: MIT
"""Inferences of ONNX Runtime in this process: how long each took, and why.

    import etwatch.onnx

    with etwatch.onnx.watch(session) as w:       # or watch(): every session of the process
        session.run(None, inputs)
    print(w)                                     # percentiles, causes and why the slowest were slow
    w.inferences.to_pandas()                     # a row for each inference
    w.plot()                                     # histogram, causes, and the threads of the slowest

    etwatch.onnx.profile("model.onnx", operators=True).operators

For a program that must not be changed: `etwatch run --onnx -- python3 program.py`. Causes need the rights for
eBPF (`etwatch doctor`); without them latencies are complete, causes are None, and one warning says why.
"""
import functools
import logging
import os
import tempfile
import threading
import time
from types import TracebackType
from typing import Any, Callable, Dict, List, Optional, Type, TypeVar, Union, cast

from . import _abi, _marks
from . import _span as _span_module
from ._hook import onnx_marks as _hook
from ._span_watch import CAUSES, SpanWatch, Strip
from .table import Table, _needed

__all__ = ["Watch", "profile", "watch", "wrap"]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_logger = logging.getLogger("etwatch")
_active = threading.Lock()

_INPUT_TYPES = {"tensor(float)": "float32", "tensor(double)": "float64", "tensor(float16)": "float16",
                "tensor(int64)": "int64", "tensor(int32)": "int32", "tensor(int16)": "int16", "tensor(int8)": "int8",
                "tensor(uint8)": "uint8", "tensor(uint16)": "uint16", "tensor(uint32)": "uint32",
                "tensor(uint64)": "uint64", "tensor(bool)": "bool"}


class _Operators(_hook.Operators):
    """The profile of a session, in a folder that exists while the session is created."""

    def begin(self, args: "tuple[Any, ...]", kwargs: Dict[str, Any]) -> Any:
        self._folder = tempfile.mkdtemp(prefix="etwatch-operators-")
        profile = super().begin(args, kwargs)
        if profile is None:
            os.rmdir(self._folder)
        return profile

    def opened(self, session: Any, profile: Any, created: bool) -> None:
        super().opened(session, profile, created)
        os.rmdir(self._folder)


def _runtime() -> Any:
    return _needed("onnxruntime.capi.onnxruntime_inference_collection")


class Watch:
    """What `watch` and `profile` return. The tables have rows during the watch too, up to half a second late."""

    def __init__(self, session: Any = None, operators: bool = False) -> None:
        if operators and session is not None:
            raise ValueError("operators: ONNX Runtime profiles a session from its creation: use watch(operators=True) "
                             "and create the session in the block, or profile(path, operators=True)")
        self._session = session
        self._with_operators = operators
        self._watch: Optional[SpanWatch] = None
        self._running = False
        self._undo: Callable[[], None] = lambda: None
        self._operators: Optional[_Operators] = None
        self._old_marks: Optional[_marks.Marks] = None
        self._strips: List[Strip] = []
        self._begun_ns = self._ended_ns = 0

    # ------------------------------------------------------------------ running

    def start(self) -> "Watch":
        """Begins to watch; `with` calls it. A watch is used once."""
        if not self._start():
            raise RuntimeError("another watch runs in this process: end it first")
        return self

    def _start(self) -> bool:
        """False: another watch runs in this process."""
        if self._watch is not None:
            raise RuntimeError("a watch is used once: make a new one")
        collection = _runtime()
        if not _active.acquire(blocking=False):
            return False
        try:
            self._watch = SpanWatch()
            marks = self._watch.marks
            self._watch.start()
        except BaseException:
            _active.release()
            raise
        if self._watch.reason is not None:
            _logger.warning("etwatch.onnx: causes are unknown: %s", self._watch.reason)
        if self._with_operators:
            self._operators = _Operators("", marks, _marks)
        if self._session is not None:
            self._undo = _hook.patch_one(self._session, marks, _marks)
        else:
            self._undo = _hook.patch(collection, marks, _marks, self._operators)
        self._old_marks, _span_module._state["marks"] = _span_module._state["marks"], marks
        self._begun_ns = time.time_ns()
        self._running = True
        return True

    def stop(self) -> "Watch":
        """Ends the watch and explains the rest; `with` calls it. May be called twice."""
        if not self._running or self._watch is None:
            return self
        self._running = False
        self._ended_ns = time.time_ns()
        _span_module._state["marks"] = self._old_marks
        self._undo()
        if self._operators is not None:
            self._operators.flush()
        try:
            self._watch.stop()
            slowest = self.slowest
            if slowest is not None:
                self._strips = self._watch.strips(slowest["t_ns"] - slowest["dt_ns"], slowest["t_ns"])
        finally:
            _active.release()
        return self

    def __enter__(self) -> "Watch":
        return self.start()

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.stop()

    # ------------------------------------------------------------------ results

    def _started(self) -> SpanWatch:
        if self._watch is None:
            raise RuntimeError("the watch was not started: use it in a with block")
        return self._watch

    @property
    def causes_known(self) -> bool:
        """False: the scheduler's events need rights that this process does not have; see `reason`."""
        return self._started().reason is None

    @property
    def reason(self) -> Optional[str]:
        """Why causes are unknown; None: they are known."""
        return self._started().reason

    @property
    def inferences(self) -> Table:
        """A row for each inference and each load of a session: latency (dt_ns), and its causes, which add up to it."""
        return self._started().table(_abi.ETWATCH_TABLE_INFERENCES)

    @property
    def spans(self) -> Table:
        """The same, and the blocks that the program marked with etwatch.span meanwhile."""
        return self._started().table(_abi.ETWATCH_TABLE_SPANS)

    @property
    def operators(self) -> Table:
        """With operators=True, after the watch: a row for each execution of a node of a model."""
        return self._started().table(_abi.ETWATCH_TABLE_OPERATORS)

    @property
    def summary(self) -> Table:
        """A row for each session and method: count, percentiles, causes in all, and why the slowest were slow."""
        watched = self._started()
        names = ("kind", "name", "session", "count", "failed", "p50_ns", "p95_ns", "p99_ns", "max_ns", "mean_ns", "first_ns",
                 *CAUSES, "why")
        columns: Dict[str, List[Any]] = {name: [] for name in names}
        for group in watched.groups():
            kind = _KINDS.get(group.kind, "work")
            row = [kind, (group.name or b"").decode("utf-8", "replace"),
                   None if group.session is None else group.session.decode("utf-8", "replace"), group.count, group.failed,
                   group.p50_ns, group.p95_ns, group.p99_ns, group.max_ns, group.mean_ns, group.cold_ns]
            faults = bool(group.flags & _abi.ETWATCH_SPAN_HAS_FAULTS)
            for number, name in enumerate(CAUSES):
                known = watched.reason is None and (name != "fault_ns" or faults)
                row.append(group.total[number] if known else None)
            row.append(watched.why(group))
            for name, value in zip(names, row):
                columns[name].append(value)
        return Table(columns, name="summary")

    @property
    def slowest(self) -> Optional[Dict[str, Any]]:
        """The row of the slowest inference; None: there was none."""
        rows = [row for row in self.inferences if row["kind"] == "inference"]
        return max(rows, key=lambda row: cast(int, row["dt_ns"])) if rows else None

    @property
    def strips(self) -> List[Strip]:
        """After the watch: what each thread did during the slowest inference; empty where causes are unknown."""
        return list(self._strips)

    @property
    def lost(self) -> int:
        """Inferences and events that were lost or found no room."""
        return self._started().lost

    @property
    def lost_operators(self) -> int:
        """Events of ONNX Runtime's profiles that could not be read, and profiles without an end."""
        return self._started().lost_operators

    def __str__(self) -> str:
        lines = []
        for row in self.summary:
            times = ", ".join(f"{name} {row[name + '_ns'] / 1e6:.3g} ms" for name in ("p50", "p95", "p99", "max"))
            what = f"{row['name']} of {row['session']}" if row["session"] else row["name"]
            lines.append(f"{what}: {row['count']} times; {times}")
            if row["why"]:
                lines.append(f"  {row['why']}")
        if not self.causes_known:
            lines.append(f"causes are unknown: {self.reason}")
        if self.lost:
            lines.append(f"lost: {self.lost}")
        return "\n".join(lines) if lines else "no inference"

    def plot(self) -> Any:
        """A matplotlib figure: the latencies, the causes of each inference, and the threads of the slowest one.

        Needs matplotlib. Example:

            figure = etwatch.onnx.profile("model.onnx").plot()
            figure.savefig("inferences.png")
        """
        from . import _onnx_plot  # pylint: disable=import-outside-toplevel

        return _onnx_plot.draw(self)


_KINDS = {_abi.ETWATCH_SPAN_WORK: "work", _abi.ETWATCH_SPAN_INFERENCE: "inference", _abi.ETWATCH_SPAN_LOAD: "load"}


def watch(session: Any = None, *, operators: bool = False) -> Watch:
    """Watches inferences of this process in a with block.

    session: an InferenceSession; None: every session, also those that are created in the block, and their creation.
    operators: also each operator of the sessions that are created in the block, by ONNX Runtime's own profile, which
    slows inferences down by some microseconds per operator.

    Example:

        with etwatch.onnx.watch(session) as w:
            for _ in range(100):
                session.run(None, inputs)
        print(w)
    """
    return Watch(session, operators)


def wrap(function: _Function) -> _Function:
    """A decorator: watches every session during each call; the result of the latest watched call is `function.watch`.

    A call during another watch (of another thread, or a call within a call) runs without a watch of its own.

    Example:

        @etwatch.onnx.wrap
        def serve_one(inputs):
            return session.run(None, inputs)

        serve_one(inputs)
        print(serve_one.watch)
    """
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        w = watch()
        if not w._start():  # pylint: disable=protected-access
            return function(*args, **kwargs)
        setattr(call, "watch", w)
        try:
            return function(*args, **kwargs)
        finally:
            w.stop()
    setattr(call, "watch", None)
    return cast(_Function, call)


def _zeros(session: Any) -> Dict[str, Any]:
    """Inputs of zeros; a dimension without a size is 1."""
    numpy = _needed("numpy")
    inputs: Dict[str, Any] = {}
    for one in session.get_inputs():
        if one.type not in _INPUT_TYPES:
            raise ValueError(f"inputs: give the input {one.name!r}: zeros cannot be made for {one.type}")
        shape = [size if isinstance(size, int) and size > 0 else 1 for size in one.shape]
        inputs[one.name] = numpy.zeros(shape, dtype=_INPUT_TYPES[one.type])
    return inputs


def profile(session: Any, inputs: Optional[Dict[str, Any]] = None, *, runs: int = 100, warmup: int = 5,
            operators: bool = False) -> Watch:
    """Runs a session a number of times and returns the Watch of it.

    session: an InferenceSession, or the path of a model, of which one is created (with operators: it must be a path).
    inputs: what session.run gets; None: zeros, with 1 for each dimension that has no size. warmup: inferences before the
    watch; with operators they are part of the profile.

    Example:

        w = etwatch.onnx.profile("model.onnx", runs=20, operators=True)
        print(w.summary[0]["p99_ns"], len(w.operators))
    """
    for name, value, least in (("runs", runs, 1), ("warmup", warmup, 0)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"{name}: {least} or more, not {value!r}")
    is_path = isinstance(session, (str, os.PathLike))
    if operators:
        if not is_path:
            raise ValueError("operators: ONNX Runtime profiles a session from its creation: give the path of the model")
        with watch(operators=True) as w:
            return _run(w, _create(session), inputs, warmup + runs)
    made = _create(session) if is_path else session
    feed = _zeros(made) if inputs is None else inputs
    for _ in range(warmup):
        made.run(None, feed)
    with watch(made) as w:
        return _run(w, made, feed, runs)


def _create(path: Union[str, "os.PathLike[str]"]) -> Any:
    onnxruntime = _needed("onnxruntime")
    return onnxruntime.InferenceSession(os.fspath(path), providers=onnxruntime.get_available_providers())


def _run(w: Watch, session: Any, inputs: Optional[Dict[str, Any]], count: int) -> Watch:
    feed = _zeros(session) if inputs is None else inputs
    for _ in range(count):
        session.run(None, feed)
    return w
