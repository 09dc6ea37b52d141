# SPDX-License-Identifier: MIT
"""Marks around ONNX Runtime: wraps InferenceSession when the program imports it.

Latency is measured around the original method, by the same clock as the scheduler events. The wrapped methods keep
their signatures; what they return or raise is passed on. Uses the standard library only, see _marks.py.
"""
from __future__ import annotations

import atexit
import functools
import importlib.abc
import importlib.machinery
import importlib.util
import itertools
import os
import sys
import threading
import time
import types
import weakref

TYPE_CHECKING = False  # see _marks.py
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType
    from typing import Any

    from etwatch import _marks

_TARGET = "onnxruntime.capi.onnxruntime_inference_collection"
_labels: dict[str, itertools.count[int]] = {}
_SHAPES_MAX, _SHAPE_LEN = 512, 39  # texts of shapes must leave room for names in the ring


def _load_marks() -> Any:
    path = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "_marks.py")
    spec = importlib.util.spec_from_file_location("_etwatch_marks", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is missing")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def label_of(session: Any) -> str:
    """What the session is called in the report: the file name of its model; the second one with it gets "#2"."""
    try:
        label: str = session._etwatch_label  # pylint: disable=protected-access
    except AttributeError:
        path = getattr(session, "_model_path", None)
        name = os.path.basename(os.fspath(path)) if path else "model"
        number = next(_labels.setdefault(name, itertools.count(1)))
        label = name if number == 1 else f"{name}#{number}"
        session._etwatch_label = label  # pylint: disable=protected-access
    return label


class _Shapes:  # pylint: disable=too-few-public-methods
    """The shape of the first input as a number of a text in the ring; 0 where it is unknown."""

    def __init__(self, marks: _marks.Marks) -> None:
        self._marks = marks
        self._numbers: dict[Any, int] = {}
        os.register_at_fork(after_in_child=self._numbers.clear)

    def of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        """Of the second argument of run, which is a dict of arrays or of OrtValues."""
        try:
            feed = args[1] if len(args) > 1 else kwargs["input_feed"]
            for value in feed.values():
                shape = value.shape
                key = tuple(shape()) if callable(shape) else shape
                try:
                    return self._numbers[key]
                except KeyError:
                    return self._add(key)
        except Exception:  # pylint: disable=broad-except
            pass  # whatever the program passes, it is the runtime that judges it
        return 0

    def _add(self, key: Any) -> int:
        text = "x".join(str(int(size)) for size in key) or "scalar"
        if len(self._numbers) >= _SHAPES_MAX:
            return 0
        number = self._marks.text(text) if len(text) <= _SHAPE_LEN else 0
        self._numbers[key] = number
        return number


def _wrap_run(method: Callable[..., Any], marks: _marks.Marks, module: Any) -> Callable[..., Any]:
    now_ns, end = module.now_ns, marks.end
    inference, failed = module.INFERENCE, module.FAILED
    shape_of = _Shapes(marks).of

    @functools.wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        shape = shape_of(args, kwargs)
        start_ns = now_ns()
        try:
            result = method(self, *args, **kwargs)
        except BaseException:
            end(start_ns, "run", label_of(self), inference, failed, None, shape)
            raise
        end(start_ns, "run", label_of(self), inference, 0, None, shape)
        return result

    return run


def _wrap_async(method: Callable[..., Any], marks: _marks.Marks, module: Any) -> Callable[..., Any]:
    """The span ends when the callback is called, on a thread of the runtime."""
    shape_of = _Shapes(marks).of

    @functools.wraps(method)
    def run_async(self: Any, output_names: Any, input_feed: Any, callback: Callable[..., Any], *args: Any,
                  **kwargs: Any) -> Any:
        shape = shape_of((output_names, input_feed), {})
        start_ns, tid, label = module.now_ns(), marks.tid(), label_of(self)

        def ended(results: Any, user_data: Any, error: Any) -> Any:
            flags = module.ASYNC | (module.FAILED if error else 0)
            marks.end(start_ns, "run_async", label, module.INFERENCE, flags, tid, shape)
            return callback(results, user_data, error)

        return method(self, output_names, input_feed, ended, *args, **kwargs)

    return run_async


def _wrap_init(method: Callable[..., Any], marks: _marks.Marks, module: Any,
               operators: Operators | None) -> Callable[..., Any]:
    @functools.wraps(method)
    def init(self: Any, *args: Any, **kwargs: Any) -> Any:
        profile = operators.begin(args, kwargs) if operators is not None else None
        start_ns = module.now_ns()
        failed = module.FAILED
        try:
            if profile is None:
                result = method(self, *args, **kwargs)
            else:
                result = method(self, *profile.args, **profile.kwargs)
            failed = 0
            return result
        finally:
            marks.end(start_ns, "load", label_of(self), module.LOAD, failed)
            if operators is not None and profile is not None:
                operators.opened(self, profile, failed == 0)

    return init


class _Profile:  # pylint: disable=too-few-public-methods
    """The arguments of a session that is about to be created with profiling, and what to restore afterwards."""

    def __init__(self, prefix: str, options: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.prefix, self.options, self.args, self.kwargs = prefix, options, args, kwargs
        self.old_prefix = options.profile_file_prefix


class Operators:
    """Switches ONNX Runtime's own profile on for each session and sends it to the watcher.

    The runtime creates the file when it creates the session. Its name is removed at once, so that the file is gone
    when the last process that has it open ends, however that happens. A session that its program profiles already is
    left alone.
    """

    def __init__(self, folder: str, marks: _marks.Marks, module: Any) -> None:
        self._folder, self._marks, self._module = folder, marks, module
        self._number = itertools.count(1).__next__
        self._sessions: list[weakref.ref[Any]] = []
        self._options: Callable[[], Any] | None = None
        os.register_at_fork(after_in_child=self._sessions_of_parent)

    def _sessions_of_parent(self) -> None:
        """A forked child must not write the profiles of its parent."""
        self._sessions = []

    def use(self, make_options: Callable[[], Any]) -> None:
        """What creates options for a session that was given none."""
        self._options = make_options

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Profile | None:
        """Options with profiling for a session with these arguments; None: it is not profiled."""
        if not os.access(self._folder, os.W_OK | os.X_OK) or self._options is None:
            return None
        options = args[1] if len(args) > 1 else kwargs.get("sess_options")
        if options is None:
            options = self._options()
            if len(args) > 1:
                args = (args[0], options, *args[2:])
            else:
                kwargs = {**kwargs, "sess_options": options}
        if options.enable_profiling:
            return None
        profile = _Profile(f"{self._folder}/{os.getpid()}-{self._number()}", options, args, kwargs)
        options.enable_profiling, options.profile_file_prefix = True, profile.prefix
        return profile

    def opened(self, session: Any, profile: _Profile, created: bool) -> None:
        """Restores the options, which may be used for other sessions, and takes the file."""
        profile.options.enable_profiling, profile.options.profile_file_prefix = False, profile.old_prefix
        name = os.path.basename(profile.prefix) + "_"
        for path in [entry.path for entry in os.scandir(self._folder) if entry.name.startswith(name)]:
            try:
                fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                os.unlink(path)
            except OSError:
                continue
            try:
                if created:
                    begun_ns = session.get_profiling_start_time_ns()
                    self._marks.profile(fd, begun_ns - time.time_ns() + self._module.now_ns(), label_of(session))
            except OSError:  # the watcher is gone
                pass
            finally:
                os.close(fd)
        if created:
            self._register(session)

    def _register(self, session: Any) -> None:
        """A profile is written when its session ends, which a session that lives until the exit does not."""
        if not self._sessions:
            atexit.register(self.flush)
        if "multiprocessing.util" in sys.modules:  # its children skip atexit
            finalizers = sys.modules["multiprocessing.util"]
            finalizers.Finalize(None, self.flush, exitpriority=0)
        self._sessions = [other for other in self._sessions if other() is not None]
        self._sessions.append(weakref.ref(session))

    def flush(self) -> None:
        """Ends the profiles of all sessions."""
        sessions, self._sessions = self._sessions, []
        for reference in sessions:
            session = reference()
            if session is not None:
                try:
                    session.end_profiling()
                except Exception:  # pylint: disable=broad-except
                    pass


def patch(collection: Any, marks: _marks.Marks, module: Any,
          operators: Operators | None = None) -> Callable[[], None]:
    """Wraps the classes of onnxruntime_inference_collection; the result undoes it."""
    session = collection.InferenceSession
    base = getattr(collection, "Session", session)
    if operators is not None:
        operators.use(collection.C.SessionOptions)
    wrapped = [(base, name, _wrap_run) for name in ("run", "run_with_ort_values", "run_with_iobinding")]
    wrapped.append((base, "run_async", _wrap_async))
    originals = []
    for owner, name, wrap in wrapped:
        if name in vars(owner):
            originals.append((owner, name, vars(owner)[name]))
            setattr(owner, name, wrap(vars(owner)[name], marks, module))
    originals.append((session, "__init__", session.__init__))
    session.__init__ = _wrap_init(session.__init__, marks, module, operators)

    def undo() -> None:
        for owner, name, original in originals:
            setattr(owner, name, original)

    return undo


def patch_one(session: Any, marks: _marks.Marks, module: Any) -> Callable[[], None]:
    """The same for one session."""
    names = []
    for name in ("run", "run_with_ort_values", "run_with_iobinding", "run_async"):
        method = getattr(type(session), name, None)
        if method is not None:
            wrap = _wrap_async if name == "run_async" else _wrap_run
            setattr(session, name, types.MethodType(wrap(method, marks, module), session))
            names.append(name)

    def undo() -> None:
        for name in names:
            delattr(session, name)

    return undo


def _operators(marks: _marks.Marks, module: Any) -> Operators | None:
    folder = os.environ.get("ETWATCH_OPERATORS")
    return Operators(folder, marks, module) if folder else None


class _Loader(importlib.abc.Loader):
    def __init__(self, loader: importlib.abc.Loader, marks: _marks.Marks, module: Any) -> None:
        self._loader, self._marks, self._module = loader, marks, module

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        try:
            patch(module, self._marks, self._module, _operators(self._marks, self._module))
        except Exception as error:  # pylint: disable=broad-except
            sys.stderr.write(f"etwatch: this version of ONNX Runtime cannot be marked: {error}\n")


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, marks: _marks.Marks, module: Any) -> None:
        self._marks, self._module = marks, module

    def find_spec(self, fullname: str, path: Sequence[str] | None,
                  target: ModuleType | None = None) -> importlib.machinery.ModuleSpec | None:
        if fullname != _TARGET:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._marks, self._module)
        return spec


def _clock(now_ns: Callable[[], int]) -> None:
    """Calls functions that are named after the time of their call: py-spy samples them, and so its time is known."""
    for number in itertools.count():
        space: dict[str, Any] = {"wait": time.sleep}
        exec(f"def etwatch_clock_{now_ns()}():\n    wait(0.02)\n", space)  # pylint: disable=exec-used
        [function for name, function in space.items() if name.startswith("etwatch_clock_")][0]()
        time.sleep(0.03 if number < 60 else 1)


def install() -> None:
    """Marks the sessions of this process from now on."""
    module = _load_marks()
    marks: _marks.Marks | None = module.connect()
    if marks is None:
        return
    if os.environ.get("ETWATCH_PY_SPY"):
        threading.Thread(target=_clock, args=(module.now_ns,), name="etwatch-clock", daemon=True).start()
    if _TARGET in sys.modules:
        patch(sys.modules[_TARGET], marks, module, _operators(marks, module))
    else:
        sys.meta_path.insert(0, _Finder(marks, module))
