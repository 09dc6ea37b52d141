# SPDX-License-Identifier: MIT
"""The library's summary of a stream: updated by the library's thread, queried from Python."""
import ctypes
import threading
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from . import _abi, _native
from ._batch import METRIC_NAMES, Batch, Sample
from ._collector import Collector
from ._owned import Owned


class Spread(NamedTuple):
    """Statistics over the intervals of one process."""

    intervals: int
    average: float
    maximum: float
    p95: float
    p99: float


class ProcessSummary(NamedTuple):
    sample: Sample  # sums of counters and the latest gauges; of a process that exited: its exit
    ended: bool
    first_ns: int
    last_ns: int
    samples: int
    metrics: Dict[str, Spread]
    thread_cycles: Dict[int, int]  # by tid; empty: unknown
    sums: Dict[Tuple[str, ...], Spread]  # by the metrics that are added


_SUMS: Dict[int, Tuple[str, ...]] = {
    _abi.ETWATCH_SUM_SWITCHES: ("switches_voluntary", "switches_involuntary"),
    _abi.ETWATCH_SUM_FAULTS: ("faults_minor", "faults_major"),
}
_ON_PROCESS = _abi.FUNCTIONS["etwatch_summary_for_each"][1][2]


def _spread(aggregate: Any) -> Spread:
    return Spread(aggregate.count, aggregate.avg, aggregate.max, aggregate.p95, aggregate.p99)


class Summary(Owned):
    """Receives samples as the on_samples callback. It must outlive the monitors that feed it."""

    def __init__(self, max_processes: int = 0, collector: Optional["Collector"] = None) -> None:
        super().__init__()
        self._collector = collector
        self._query_lock = threading.Lock()
        options = _native.sized(_abi.SummaryOptions)
        options.max_processes = max_processes
        if collector is not None:
            options.on_samples = ctypes.cast(_native.lib.etwatch_collector_on_samples, type(options.on_samples))
            options.on_devices = ctypes.cast(_native.lib.etwatch_collector_on_devices, type(options.on_devices))
            options.ctx = collector.pointer.value
        _native.check(_native.lib.etwatch_summary_new(ctypes.byref(options), ctypes.byref(self.pointer)))
        if collector is not None:
            collector.retain()

    def attach(self, callbacks: Any) -> None:
        """Makes the monitor's thread feed it, through a function of the library: no Python runs there."""
        callbacks.on_samples = ctypes.cast(_native.lib.etwatch_summary_add, type(callbacks.on_samples))
        callbacks.on_devices = ctypes.cast(_native.lib.etwatch_summary_on_devices, type(callbacks.on_devices))
        callbacks.ctx = self.pointer.value

    def processes(self, pid: int = 0) -> List[ProcessSummary]:
        """Every process, or those with this pid, in the order in which they were first seen."""
        found: List[ProcessSummary] = []

        def on_process(_: Any, pointer: Any) -> None:
            process = pointer.contents
            spreads = {METRIC_NAMES[index]: _spread(process.metrics[index])
                       for index in range(min(process.metric_count, len(METRIC_NAMES))) if process.metrics[index].count}
            sums = {names: _spread(process.sums[index]) for index, names in _SUMS.items()
                    if index < process.sum_count and process.sums[index].count}
            sample = Batch.take(ctypes.addressof(process.sample.contents), 1, process.sample.contents.size)[0]
            found.append(ProcessSummary(sample, bool(process.flags & _abi.ETWATCH_SUMMARY_ENDED), process.first_ns,
                                        process.last_ns, process.samples, spreads,
                                        {thread.tid: thread.cycles for thread in
                                         (process.threads[index] for index in range(process.thread_count))}, sums))

        if not self.is_ours:
            return found
        with self._query_lock:
            if self.pointer:
                _native.check(_native.lib.etwatch_summary_for_each(self.pointer, pid, _ON_PROCESS(on_process), None))
        return found

    def dropped(self) -> int:
        if not self.is_ours:
            return 0
        with self._query_lock:
            return int(_native.lib.etwatch_summary_dropped(self.pointer))

    def free(self, pointer: ctypes.c_void_p) -> None:
        _native.lib.etwatch_summary_free(pointer)
        if self._collector is not None:
            self._collector.release()
