# SPDX-License-Identifier: MIT
"""Spans of this process, explained while it runs: receiver, monitor, spans and tables of the library in one.

Events go from the monitor to the spans inside of the library, and marks through shared memory; the Python thread here
only calls it a few times a second, with the interpreter's lock released. Where events need rights that the process
does not have, latencies are complete and causes unknown.
"""
import ctypes
import os
import threading
import time
from typing import Any, Dict, List, NamedTuple, Optional

from . import _abi, _marks, _native
from ._collector import Collector
from ._monitor import NativeMonitor, make_config
from ._owned import Owned
from .errors import ETWError
from .table import Table

_SLICE_MS = 100
_HISTORY_NS = 3600 * 10**9  # bounded by the number of entries
CAUSES = ("work_ns", "runq_wait_ns", "throttled_ns", "fault_ns", "disk_wait_ns", "lock_wait_ns", "process_wait_ns",
          "sleep_ns", "unknown_ns")
_UNKNOWN = (*CAUSES, "cpu_ns", "helpers", "helper_cpu_ns", "helper_runq_wait_ns", "shared_cpu_ns", "faults", "preempted",
            "causes", "complete", "pool_percent", "thread_name")
_FLAGS = (_abi.ETWATCH_CONFIG_EVENTS | _abi.ETWATCH_CONFIG_EVENTS_ALL | _abi.ETWATCH_CONFIG_EVENTS_CAUSES
          | _abi.ETWATCH_CONFIG_NO_FALLBACK)


class Strip(NamedTuple):
    """What a thread did from from_ns to to_ns: "run", "ready", "sleep", "disk" or "fault"."""

    tid: int
    name: str
    state: str
    from_ns: int
    to_ns: int


_STATES = {_abi.ETWATCH_STRIP_RUN: "run", _abi.ETWATCH_STRIP_READY: "ready", _abi.ETWATCH_STRIP_SLEEP: "sleep",
           _abi.ETWATCH_STRIP_DISK: "disk", _abi.ETWATCH_STRIP_FAULT: "fault"}


class _Spans(Owned):
    """The library's spans; the monitor that feeds them holds it."""

    def __init__(self, collector: Collector) -> None:
        super().__init__()
        self._collector = collector
        self._collector.retain()
        options = _native.sized(_abi.SpansOptions)
        options.history_ns = _HISTORY_NS
        options.ctx = collector.pointer.value
        options.on_span = ctypes.cast(_native.lib.etwatch_collector_on_span, type(options.on_span))
        options.on_operator = ctypes.cast(_native.lib.etwatch_collector_on_operator, type(options.on_operator))
        _native.check(_native.lib.etwatch_spans_new(ctypes.byref(options), ctypes.byref(self.pointer)))

    def free(self, pointer: ctypes.c_void_p) -> None:
        _native.lib.etwatch_spans_free(pointer)
        self._collector.release()


class _Receiver(Owned):
    def __init__(self) -> None:
        super().__init__()
        info = _native.new_error()
        _native.check(_native.lib.etwatch_receiver_new(ctypes.byref(self.pointer), ctypes.byref(info)), info)
        self.address = _native.text(_native.lib.etwatch_receiver_address(self.pointer)) or ""

    def free(self, pointer: ctypes.c_void_p) -> None:
        _native.lib.etwatch_receiver_free(pointer)


class SpanWatch:
    """Explains the spans of this process from start to stop."""

    def __init__(self) -> None:
        self._collector = Collector()
        self._spans = _Spans(self._collector)
        self._receiver = _Receiver()
        self.marks = _marks.Marks(self._receiver.address)
        self._monitor: Optional[NativeMonitor] = None
        self._thread: Optional[threading.Thread] = None
        self._ending = threading.Event()
        self._pid = os.getpid()
        self._strips: List[Strip] = []
        self.reason: Optional[str] = None  # why causes are unknown
        _native.check(_native.lib.etwatch_spans_add_process(self._spans.pointer, self._pid, b""))

    # ------------------------------------------------------------------ running

    def start(self) -> None:
        try:
            self._monitor = self._open()
        except (ETWError, OSError) as error:
            self.reason = str(error)
        self._thread = threading.Thread(target=self._loop, name="etwatch-spans", daemon=True)
        self._thread.start()

    def _open(self) -> NativeMonitor:
        callbacks = _native.sized(_abi.Callbacks)
        callbacks.ctx = self._spans.pointer.value
        for name in ("on_samples", "on_events", "on_loss"):
            function = getattr(_native.lib, f"etwatch_spans_{name}")
            setattr(callbacks, name, ctypes.cast(function, type(getattr(callbacks, name))))
        monitor = NativeMonitor(make_config(pids=[self._pid], flags=_FLAGS), callbacks, self._spans)
        try:
            monitor.open()
        except Exception:
            monitor.close()
            raise
        return monitor

    def _loop(self) -> None:
        while not self._ending.is_set():
            if self._monitor is None:
                self._ending.wait(_SLICE_MS / 1000)
            elif self._monitor.poll(_SLICE_MS) < 0:
                self._ending.wait(_SLICE_MS / 1000)
            self._read(last=False)

    def _offset_ns(self) -> int:
        if self._monitor is not None:
            meta = self._monitor.meta()
            return int(meta.anchor_unix_ns) - int(meta.anchor_raw_ns)
        return time.time_ns() - _marks.now_ns()

    def _read(self, last: bool) -> None:
        lib, spans = _native.lib, self._spans.pointer
        offset_ns = self._offset_ns()
        add = ctypes.cast(lib.etwatch_spans_add, lib.etwatch_receiver_read.argtypes[3])
        _native.check(lib.etwatch_receiver_read(self._receiver.pointer, offset_ns, int(last), add, spans))
        _native.check(lib.etwatch_spans_advance(spans, 2**64 - 1 if last or self._monitor is None else 0))
        if last:
            add = ctypes.cast(lib.etwatch_spans_add_operator, lib.etwatch_receiver_operators.argtypes[2])
            _native.check(lib.etwatch_receiver_operators(self._receiver.pointer, offset_ns, add, spans))

    def stop(self) -> None:
        """Explains the rest. In a forked child it does nothing: the watch is that of the parent."""
        if self._thread is None or self._pid != os.getpid():
            return
        self._ending.set()
        self._thread.join()
        self._thread = None
        if self._monitor is not None:
            self._monitor.stop()
        self._read(last=True)
        if self._monitor is not None:
            self._monitor.close()

    # ------------------------------------------------------------------ results

    @property
    def lost(self) -> int:
        """Marks that were lost, and spans and events without room in the tables."""
        lib = _native.lib
        return int(lib.etwatch_receiver_lost(self._receiver.pointer) + lib.etwatch_spans_dropped(self._spans.pointer)
                   + self._collector.dropped())

    @property
    def lost_operators(self) -> int:
        return int(_native.lib.etwatch_receiver_lost_operators(self._receiver.pointer))

    def table(self, number: int) -> Table:
        """The rows of now; None where causes are unknown."""
        table = self._collector.table(number)
        if self.reason is None:
            return table
        columns: Dict[str, List[Any]] = table.to_dict()
        for name in _UNKNOWN:
            if name in columns:
                columns[name] = [None] * len(columns[name])
        return Table(columns, name=table.name)

    def groups(self) -> List[Any]:
        """All spans of one name and session each, with the sentence."""
        found: List[Any] = []
        while True:
            group = _native.sized(_abi.SpanGroup)
            if _native.lib.etwatch_spans_group(self._spans.pointer, len(found), ctypes.byref(group)) < 0:
                return found
            found.append(group)

    def why(self, group: Any) -> Optional[str]:
        if self.reason is not None:
            return None
        text = ctypes.create_string_buffer(512)
        _native.check(_native.lib.etwatch_span_group_text(ctypes.byref(group), text, len(text)))
        return _native.text(text.value)

    def strips(self, from_ns: int, to_ns: int) -> List[Strip]:
        """What the threads of this process did between two times, as far as it is still known."""
        kind = _native.lib.etwatch_spans_strips.argtypes[4]
        self._strips = []

        def add(_ctx: Any, strip: Any) -> None:
            one = strip.contents
            self._strips.append(Strip(one.tid, _native.text(one.name) or str(one.tid), _STATES.get(one.state, ""),
                                      one.from_ns, one.to_ns))

        _native.check(_native.lib.etwatch_spans_strips(self._spans.pointer, self._pid, from_ns, to_ns, kind(add), None))
        return self._strips
