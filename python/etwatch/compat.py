# SPDX-License-Identifier: MIT
"""Companions of ETWMonitor: the factory, selection by use case, the whole machine, everything in one stream, and a
sampler that keeps a budget."""
import threading
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Union

from . import _system
from .config import ETWMonitorConfig, number
from .etw import ETWMonitor
from .samples import MetricSample

__all__ = ["AdaptiveSampler", "MemoryUsage", "MonitorFactory", "OVERHEAD_LIMITS", "SystemMonitor", "UnifiedMonitor",
           "select_monitor"]

# Budget by use case: the most that monitoring may cost, in per cent of one core.
OVERHEAD_LIMITS: Dict[str, float] = {
    "development": 50.0, "testing": 20.0, "staging": 10.0, "production": 5.0, "critical": 2.0,
}


class MonitorFactory:
    """Makes the best monitor that works on this machine; its `backend` is the source in use."""

    @staticmethod
    def create_monitor(prefer_low_overhead: bool = False,
                       config: Union[ETWMonitorConfig, Mapping[str, Any], None] = None, *,
                       fallback: bool = True) -> ETWMonitor:
        """Makes a monitor. prefer_low_overhead: use the budget of critical use and allow more latency."""
        monitor = ETWMonitor(config, fallback=fallback)
        if prefer_low_overhead:
            monitor.config.overhead_limit = min(monitor.config.overhead_limit, OVERHEAD_LIMITS["critical"])
            monitor.config.callback_batch_ms = max(monitor.config.callback_batch_ms, 400)
        return monitor


def select_monitor(use_case: str, sampling_hz: float = 100.0) -> ETWMonitor:
    """A monitor for a use case: development, testing, staging, production or critical."""
    if not isinstance(use_case, str):
        raise TypeError(f"use_case: a name is needed, not {use_case!r}")
    if use_case not in OVERHEAD_LIMITS:
        raise ValueError(f"use_case: {use_case!r} is none of {', '.join(OVERHEAD_LIMITS)}")
    number("sampling_hz", sampling_hz, 0.1, 1000)
    return ETWMonitor(ETWMonitorConfig(sampling_rate_hz=sampling_hz, overhead_limit=OVERHEAD_LIMITS[use_case]))


class MemoryUsage(float):
    """Used memory of the machine in per cent, with the byte counts as attributes."""

    total_bytes: int
    available_bytes: int

    def __new__(cls, total: int, available: int) -> "MemoryUsage":
        made = super().__new__(cls, 100.0 * (total - available) / total if total else 0.0)
        made.total_bytes = total
        made.available_bytes = available
        return made

    @property
    def used_bytes(self) -> int:
        return self.total_bytes - self.available_bytes


class SystemMonitor:
    """CPU and memory of the whole machine."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = _system.cpu_times()
        self._usage = 0.0

    def get_cpu_usage(self) -> float:
        """Per cent of all CPUs since the last call (or since construction); 100 means that all are busy."""
        with self._lock:
            busy, whole = _system.cpu_times()
            passed = whole - self._last[1]
            if passed > 0:  # the system counts in ticks: until the next tick the last value holds
                self._usage = min(100.0, max(0.0, 100.0 * (busy - self._last[0]) / passed))
                self._last = (busy, whole)
            return self._usage

    def get_memory_usage(self) -> MemoryUsage:
        """Used memory in per cent, with the attributes `total_bytes`, `used_bytes` and `available_bytes`."""
        return MemoryUsage(*_system.memory())

    @staticmethod
    def cpu_count() -> int:
        return _system.cpu_count()


class UnifiedMonitor(ETWMonitor):
    """Processes, the machine, GPU, NPU and energy in one stream of MetricSamples.

    Samples of the machine have pid 0 and no process name: `system_cpu_percent`, `system_memory_percent`,
    `system_memory_used_mb`. A device that is missing or not supported gives no samples, and None in
    get_current_metrics.
    """

    _SYSTEM_SECONDS = 0.1  # the kernel counts in hundredths of a second

    def __init__(self, config: Union[ETWMonitorConfig, Mapping[str, Any], None] = None, **options: Any) -> None:
        super().__init__(config, **options)
        self.system = SystemMonitor()
        clock = [0.0]
        system, pause = self.system, self._SYSTEM_SECONDS

        def extra() -> List[MetricSample]:
            now = time.monotonic()
            if now - clock[0] < pause:
                return []
            clock[0] = now
            return _system_samples(system)
        self._engine.extra = extra

    def get_current_metrics(self) -> Dict[str, Any]:
        """The current values by group; None if unknown."""
        memory = self.system.get_memory_usage()
        processes = self.get_process_metrics()
        gpu = [p.gpu_percent for p in processes.values() if p.gpu_percent is not None]
        held = [p.gpu_memory_bytes for p in processes.values() if p.gpu_memory_bytes is not None]
        npu = [p.npu_percent for p in processes.values() if p.npu_percent is not None]
        energy = [p.energy_uj for p in processes.values() if p.energy_uj is not None]
        return {
            "process": processes,
            "system": {"cpu_percent": self.system.get_cpu_usage(), "memory_percent": float(memory),
                       "memory_used_bytes": memory.used_bytes, "memory_total_bytes": memory.total_bytes},
            "gpu": {"percent": sum(gpu) if gpu else None, "memory_bytes": sum(held) if held else None},
            "npu": {"percent": sum(npu) if npu else None},
            "energy": {"uj": sum(energy) if energy else None},
        }


def _system_samples(system: SystemMonitor) -> List[MetricSample]:
    now = time.time()
    memory = system.get_memory_usage()
    values: Tuple[Tuple[str, float, str], ...] = (
        ("system_cpu_percent", system.get_cpu_usage(), "%"),
        ("system_memory_percent", float(memory), "%"),
        ("system_memory_used_mb", memory.used_bytes / (1024 * 1024), "MB"),
    )
    return [MetricSample(now, name, value, unit, 0, None, True) for name, value, unit in values]


class AdaptiveSampler:
    """Keeps the cost of sampling under a limit by changing the rate.

    adjust_rate(overhead) multiplies the rate by 0.8 if the overhead is over the limit, and by 1.2 if it is under two
    fifths of it, up to the requested rate. AdaptiveSampler(100.0, overhead_limit=5.0) starts at 100 samples a second. A
    function in place of the number is called with each new rate.
    """

    def __init__(self, adjust_rate: Union[Callable[[float], object], float, None] = None,
                 overhead_limit: float = 5.0, *, sampling_hz: float = 100.0, minimum_hz: float = 0.1) -> None:
        self._on_rate: Optional[Callable[[float], object]] = None
        if callable(adjust_rate):
            self._on_rate = adjust_rate
        elif adjust_rate is not None:
            sampling_hz = adjust_rate
        number("sampling_hz", sampling_hz, 0.1, 1000)
        number("overhead_limit", overhead_limit, 0.01, 1000)
        number("minimum_hz", minimum_hz, 0.001, float(sampling_hz))
        self.requested_hz = float(sampling_hz)
        self.minimum_hz = float(minimum_hz)
        self.overhead_limit = float(overhead_limit)
        self.rate = self.requested_hz

    def adjust_rate(self, overhead: float) -> float:
        """The rate for the next interval, after an interval with this overhead in per cent of one core."""
        number("overhead", overhead, 0, 1e6)
        rate = self.rate
        if overhead > self.overhead_limit:
            rate = max(self.minimum_hz, rate * 0.8)
        elif overhead < self.overhead_limit * 0.4:
            rate = min(self.requested_hz, rate * 1.2)
        if rate != self.rate:
            self.rate = rate
            if self._on_rate is not None:
                self._on_rate(rate)
        return self.rate
