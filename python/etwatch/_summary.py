# SPDX-License-Identifier: MIT
"""The library's summary of a stream: kept by its own thread, asked by Python."""
import ctypes
import threading
from typing import Any, Dict, List, NamedTuple, Optional

from . import _abi, _native
from ._batch import METRIC_NAMES, Batch, Sample
from ._collector import Collector
from ._owned import Owned


class Spread(NamedTuple):
    """Over the intervals of one process."""

    intervals: int
    average: float
    maximum: float
    p95: float
    p99: float


class ProcessSummary(NamedTuple):
    sample: Sample  # sums of counters and the latest gauges; of one that ended: its exit
    ended: bool
    first_ns: int
    last_ns: int
    samples: int
    metrics: Dict[str, Spread]
    thread_cycles: Dict[int, int]  # by tid; empty: unknown


_ON_PROCESS = _abi.FUNCTIONS["etwatch_summary_for_each"][1][2]


class Summary(Owned):
    """Goes into callbacks as on_samples; must outlive the monitors that add to it."""

    def __init__(self, max_processes: int = 0, collector: Optional["Collector"] = None) -> None:
        super().__init__()
        self._collector = collector
        self._asking = threading.Lock()
        options = _native.sized(_abi.SummaryOptions)
        options.max_processes = max_processes
        if collector is not None:
            options.on_samples = ctypes.cast(_native.lib.etwatch_collector_on_samples, type(options.on_samples))
            options.ctx = collector.pointer.value
        _native.check(_native.lib.etwatch_summary_new(ctypes.byref(options), ctypes.byref(self.pointer)))
        if collector is not None:
            collector.retain()

    def attach(self, callbacks: Any) -> None:
        """The thread of the monitor with these callbacks adds its samples: a function of the library, no Python."""
        callbacks.on_samples = ctypes.cast(_native.lib.etwatch_summary_add, type(callbacks.on_samples))
        callbacks.ctx = self.pointer.value

    def tell(self, pid: int = 0) -> List[ProcessSummary]:
        told: List[ProcessSummary] = []

        def on_process(_: Any, pointer: Any) -> None:
            process = pointer.contents
            spreads = {}
            for index in range(min(process.metric_count, len(METRIC_NAMES))):
                found = process.metrics[index]
                if found.count:
                    spreads[METRIC_NAMES[index]] = Spread(found.count, found.avg, found.max, found.p95, found.p99)
            sample = Batch.take(ctypes.addressof(process.sample.contents), 1, process.sample.contents.size)[0]
            told.append(ProcessSummary(sample, bool(process.flags & _abi.ETWATCH_SUMMARY_ENDED), process.first_ns,
                                       process.last_ns, process.samples, spreads,
                                       {thread.tid: thread.cycles for thread in
                                        (process.threads[index] for index in range(process.thread_count))}))

        if not self.is_ours:
            return told
        with self._asking:
            if self.pointer:
                _native.check(_native.lib.etwatch_summary_for_each(self.pointer, pid, _ON_PROCESS(on_process), None))
        return told

    def dropped(self) -> int:
        if not self.is_ours:
            return 0
        with self._asking:
            return int(_native.lib.etwatch_summary_dropped(self.pointer))

    def free(self, pointer: ctypes.c_void_p) -> None:
        _native.lib.etwatch_summary_free(pointer)
        if self._collector is not None:
            self._collector.release()
