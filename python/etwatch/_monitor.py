# SPDX-License-Identifier: MIT
"""One monitor of the library, safe for Python: any call, in any order, from any thread.

The library allows every call from several threads except free. So calls in progress are counted. close does not
wait: it stops the monitor, which ends the waits inside, and the last call that returns frees it. The library's
own thread never runs Python: samples stay in its queue until they are read. A forked child has none of the
library's threads, so it must not touch the parent's monitor.
"""
import ctypes
import os
import threading
import weakref
from typing import Any, Iterable, List, Optional, Sequence, Tuple, Union

from . import _abi, _native
from ._batch import SOURCES, Batch, Sample, Texts, rows_at
from ._owned import Owned
from .errors import ETWSessionError

_CLOSED = "the monitor is closed"
READ_MAX = 512  # most rows of one read
_TEXTS_MAX = 32768  # bytes for their strings, each stored once
SLICE_MS = 200  # longest wait inside the library; Ctrl-C is handled after it

_address, _bytes_at = ctypes.addressof, ctypes.string_at
_SOURCE_NUMBERS = {"auto": _abi.ETWATCH_SOURCE_AUTO, **{name: number for number, name in SOURCES.items()}}


def _ids(values: Iterable[int]) -> Any:
    values = list(values)
    return (ctypes.c_uint32 * len(values))(*values)


def _texts(values: Iterable[Union[str, bytes]]) -> Any:
    encoded = [os.fsencode(value) for value in values]
    return (ctypes.c_char_p * len(encoded))(*encoded)


def make_config(*, source: str = "auto", hz: float = 0.0, latency_ms: int = 0, budget_percent: float = 0.0,
                pids: Sequence[int] = (), names: Sequence[str] = (), exclude_pids: Sequence[int] = (),
                exclude_names: Sequence[str] = (), traces: Sequence[str] = (), flags: int = 0,
                queue_samples: int = 0, session: Optional[str] = None, metrics: Iterable[str] = (),
                rates: Sequence[Tuple[str, float]] = (), polled: Iterable[str] = (), top_n: int = 0) -> Any:
    """An etwatch_config; its arrays live as long as the config."""
    if source not in _SOURCE_NUMBERS:
        raise ValueError(f"source: {source!r} is none of {', '.join(sorted(_SOURCE_NUMBERS))}")
    config = _native.sized(_abi.Config)
    config.source = _SOURCE_NUMBERS[source]
    config.flags = flags
    config.hz = hz
    config.latency_ms = latency_ms
    config.budget_percent = budget_percent
    config.queue_samples = queue_samples
    config.top_n = top_n
    if pids:
        config.pids, config.pid_count = _ids(pids), len(pids)
    if names:
        config.names, config.name_count = _texts(names), len(names)
    if exclude_pids:
        config.exclude_pids, config.exclude_pid_count = _ids(exclude_pids), len(exclude_pids)
    if exclude_names:
        config.exclude_names, config.exclude_name_count = _texts(exclude_names), len(exclude_names)
    if traces:
        config.traces, config.trace_count = _texts(traces), len(traces)
    for name in metrics:
        _native.set_union(config.metrics, _native.metric_set(name))
    for name in polled:
        _native.set_union(config.polled_metrics, _native.metric_set(name))
    if rates:
        made = (_abi.Rate * len(rates))()
        for row, (name, rate) in zip(made, rates):
            row.metrics, row.hz = _native.metric_set(name), rate
        config.rates, config.rate_count = made, len(rates)
    if session is not None:
        config.session = session.encode()
    return config


class _Inside:
    """Marks a call into the library; its monitor is not freed before the call returns."""

    __slots__ = ("owner",)

    def __init__(self, owner: "NativeMonitor") -> None:
        self.owner = owner

    def __enter__(self) -> Any:
        owner = self.owner
        with owner._lock:
            if owner._closed:
                raise ETWSessionError(_CLOSED)
            if owner._pid != os.getpid():
                raise ETWSessionError("a monitor does not survive a fork: make a new one in this process")
            owner._inside += 1
            return owner._pointer

    def __exit__(self, *_: object) -> None:
        self.owner._leave()


class NativeMonitor:
    """The handle of a monitor; see the module."""

    def __init__(self, config: Any, callbacks: Any = None, keep: Optional[Owned] = None) -> None:
        self._keep = keep  # the library's thread writes to it: it must live until free
        self._lock = threading.Lock()
        self._read_lock = threading.Lock()
        self._closed = True
        self._inside = 0
        self._pid = os.getpid()
        self._buffers: Any = None  # memory for rows and strings, its batch, bytes used; allocated by the first read
        self._pointer = ctypes.c_void_p()
        info = _native.new_error()
        _native.check(_native.lib.etwatch_monitor_new(
            ctypes.byref(config), None if callbacks is None else ctypes.byref(callbacks), ctypes.byref(self._pointer),
            ctypes.byref(info)), info)
        if keep is not None:
            keep.retain()
        self._closed = False
        _all.add(self)

    def _leave(self) -> None:
        with self._lock:
            self._inside -= 1
            last = self._closed and self._inside == 0
        if last:
            self._free()

    def _free(self) -> None:
        pointer, self._pointer = self._pointer, ctypes.c_void_p()
        if pointer and self._pid == os.getpid():
            _native.lib.etwatch_monitor_free(pointer)
        keep, self._keep = self._keep, None
        if keep is not None:
            keep.release()

    def start(self) -> None:
        with _Inside(self) as pointer:
            info = _native.new_error()
            _native.check(_native.lib.etwatch_monitor_start(pointer, ctypes.byref(info)), info)

    def open(self) -> None:
        """Opens without a library thread: the caller has to call poll()."""
        with _Inside(self) as pointer:
            info = _native.new_error()
            _native.check(_native.lib.etwatch_monitor_open(pointer, ctypes.byref(info)), info)

    def poll(self, timeout_ms: int) -> int:
        with _Inside(self) as pointer:
            return int(_native.lib.etwatch_monitor_poll(pointer, timeout_ms, None))

    def stop(self) -> int:
        with _Inside(self) as pointer:
            return int(_native.lib.etwatch_monitor_stop(pointer))

    def close(self) -> None:
        """May be called twice, from any thread, also during other calls."""
        with self._lock:
            if self._closed:
                return
            if self._pid != os.getpid():
                self._closed = True
                return
            self._inside += 1
        _native.lib.etwatch_monitor_stop(self._pointer)
        with self._lock:
            self._closed = True
        self._leave()

    def __del__(self) -> None:
        if not self._closed:
            self.close()

    @property
    def closed(self) -> bool:
        return self._closed

    def read(self, timeout_ms: int = 0) -> Optional[Batch]:
        """The samples in the queue; waits for them up to timeout_ms. None if there are none. One reader at a time.
        Raises the errors of the library; a recording that was read to its end raises for ESTATE."""
        with self._read_lock, _Inside(self) as pointer:
            if self._buffers is None:
                memory = (ctypes.c_uint64 * ((READ_MAX * _native.SAMPLE_SIZE + _TEXTS_MAX) // 8))()
                self._buffers = memory, ctypes.sizeof(memory), _native.sized(_abi.Samples), ctypes.c_size_t()
            memory, size, batch, used = self._buffers
            count = _native.lib.etwatch_monitor_read_copy(pointer, memory, size, READ_MAX, timeout_ms, batch, used)
            if count <= 0:
                if count < 0:
                    raise self._error(pointer, count)
                return None
            begin = _address(memory)
            texts = begin + count * batch.stride  # they follow the rows
            return Batch(rows_at(begin, count, batch.stride), Texts(_bytes_at(texts, begin + used.value - texts), texts))

    @staticmethod
    def _error(pointer: Any, code: int) -> Exception:
        """The exception for a code, with the details if it is what ended the run."""
        info = _native.new_error()
        found = _native.lib.etwatch_monitor_last_error(pointer, ctypes.byref(info))
        return _native.error_of(code, info if found == code else None)

    def last_error(self, code: int) -> Exception:
        """What ended the run with this code, in words as far as they are known."""
        try:
            with _Inside(self) as pointer:
                return self._error(pointer, code)
        except ETWSessionError:  # closed meanwhile
            return _native.error_of(code)

    def add(self, pid: int) -> None:
        with _Inside(self) as pointer:
            _native.check(_native.lib.etwatch_monitor_add(pointer, pid), what=f"pid {pid}")

    def remove(self, pid: int) -> None:
        with _Inside(self) as pointer:
            _native.check(_native.lib.etwatch_monitor_remove(pointer, pid), what=f"pid {pid}")

    def snapshot(self, pid: int) -> Sample:
        """Totals since the process started, and its latest gauges."""
        with _Inside(self) as pointer:
            sample = _native.sized(_abi.Sample)
            name = ctypes.create_string_buffer(256)
            _native.check(_native.lib.etwatch_monitor_snapshot(pointer, pid, ctypes.byref(sample), name, len(name)),
                          what=f"pid {pid}")
            return Batch.take(ctypes.addressof(sample), 1, sample.size)[0]

    def set_kernel(self, kernel: Optional[bytes], stacks: Optional[bytes]) -> None:
        with _Inside(self) as pointer:
            info = _native.new_error()
            _native.check(_native.lib.etwatch_monitor_set_kernel(pointer, kernel, stacks, ctypes.byref(info)), info)

    def stats(self) -> Any:
        with _Inside(self) as pointer:
            stats = _native.sized(_abi.Stats)
            _native.check(_native.lib.etwatch_monitor_stats(pointer, ctypes.byref(stats)))
            return stats

    def meta(self) -> Any:
        with _Inside(self) as pointer:
            meta = _native.sized(_abi.Meta)
            _native.check(_native.lib.etwatch_monitor_meta(pointer, ctypes.byref(meta)))
            return meta


# All open monitors; a forked child must not use them.
_all: "weakref.WeakSet[NativeMonitor]" = weakref.WeakSet()


def _reset_in_child() -> None:
    monitors: List[NativeMonitor] = list(_all)
    for monitor in monitors:
        # Threads that do not exist in the child may hold its locks.
        monitor._lock = threading.Lock()
        monitor._read_lock = threading.Lock()
        monitor._closed = True
        monitor._pointer = ctypes.c_void_p()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_in_child)
