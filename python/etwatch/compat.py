# SPDX-License-Identifier: MIT
"""Companions of ETWMonitor: the factory, selection by use case, the whole machine, everything in one stream, and a
sampler that keeps a budget."""
import time
import weakref
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

from . import _system
from ._device_samples import DEFAULT_HZ, DeviceSamples
from .base import BaseMonitor, MemoryUsage
from .config import DEVICES, ETWMonitorConfig, number
from .etw import Config, ETWMonitor
from .samples import MetricSample

__all__ = ["AdaptiveSampler", "HybridMonitor", "MonitorFactory", "OVERHEAD_LIMITS", "PSUtilMonitor", "SystemMonitor",
           "UnifiedMonitor", "select_monitor"]

OVERHEAD_LIMITS: Dict[str, float] = {
    "development": 50.0, "testing": 20.0, "staging": 10.0, "production": 5.0, "critical": 2.0,
}
"""By use case: the most that monitoring may cost, in per cent of one core."""


_SYSTEM_HZ = 10.0


class MonitorFactory:
    """Makes the best monitor that works on this machine; its `backend` is the source in use.

    Example:

        monitor = etwatch.MonitorFactory.create_monitor(prefer_low_overhead=True)
        monitor.start_monitoring()
        print(monitor.backend, monitor.get_cpu_usage(), monitor.get_memory_usage())
        monitor.cleanup()
    """

    @staticmethod
    def create_monitor(prefer_low_overhead: bool = False, config: Config = None, *,
                       fallback: bool = True) -> ETWMonitor:
        """Makes a monitor. prefer_low_overhead: use the budget of critical use and allow more latency.

        Example:

            monitor = etwatch.MonitorFactory.create_monitor(config={"target_process_names": {"python"}})
        """
        monitor = ETWMonitor(config, fallback=fallback)
        if prefer_low_overhead:
            monitor.config.overhead_limit = min(monitor.config.overhead_limit, OVERHEAD_LIMITS["critical"])
            monitor.config.callback_batch_ms = max(monitor.config.callback_batch_ms, 400)
        return monitor


def select_monitor(use_case: str, sampling_hz: float = 100.0) -> ETWMonitor:
    """A monitor for a use case: development, testing, staging, production or critical (OVERHEAD_LIMITS).

    Example:

        monitor = etwatch.select_monitor("production", 50)
    """
    if not isinstance(use_case, str):
        raise TypeError(f"use_case: a name is needed, not {use_case!r}")
    if use_case not in OVERHEAD_LIMITS:
        raise ValueError(f"use_case: {use_case!r} is none of {', '.join(OVERHEAD_LIMITS)}")
    number("sampling_hz", sampling_hz, 0.1, 1000)
    return ETWMonitor(ETWMonitorConfig(sampling_rate_hz=sampling_hz, overhead_limit=OVERHEAD_LIMITS[use_case]))


class SystemMonitor(BaseMonitor):
    """CPU and memory of the whole machine.

    Example:

        system = etwatch.SystemMonitor()
        time.sleep(1)
        print(system.get_cpu_usage(), system.get_memory_usage())

    A subclass need not call `super().__init__()`.
    """

    _cpu: Optional[_system.CpuUsage] = None

    def __init__(self) -> None:
        self._usage()

    def _usage(self) -> _system.CpuUsage:
        # Made on first use: a subclass may have an __init__ of its own.
        if self._cpu is None:
            self._cpu = _system.CpuUsage()
        return self._cpu

    def start_monitoring(self) -> None:
        """Begins a new interval of get_cpu_usage. The values are read on demand, so nothing else starts.

        Example:

            system.start_monitoring()
        """
        self._cpu = _system.CpuUsage()

    def stop_monitoring(self) -> None:
        """Does nothing: no thread runs.

        Example:

            system.stop_monitoring()
        """

    def get_cpu_usage(self) -> float:
        """Per cent of all CPUs since the last call (or since construction); 100 means that all are busy.

        Example:

            print(f"{system.get_cpu_usage():.1f} %")
        """
        return self._usage().get()

    def get_memory_usage(self) -> MemoryUsage:
        """Used memory in per cent, with the bytes as attributes (`total_bytes`, `used_bytes`, `available_bytes`) and by key.

        Example:

            print(system.get_memory_usage().used_bytes)
        """
        return MemoryUsage(*_system.memory())

    @staticmethod
    def cpu_count() -> int:
        """The number of CPUs.

        Example:

            print(etwatch.SystemMonitor.cpu_count())
        """
        return _system.cpu_count()


class PSUtilMonitor(ETWMonitor):
    """An ETWMonitor that polls, as psutil does: no rights needed, no short-lived processes. psutil itself is not needed.

    Example:

        with etwatch.PSUtilMonitor({"target_process_names": {"python"}}) as monitor:
            time.sleep(1)
            print(monitor.backend, monitor.get_process_summary())
    """

    def __init__(self, config: Config = None, **options: Any) -> None:
        super().__init__(config, **{**options, "source": "poll"})


class HybridMonitor(ETWMonitor):
    """An ETWMonitor on kernel events that polls the gauges of memory in addition, so that they are exact at the time of the
    reading.

    Example:

        with etwatch.HybridMonitor(100) as monitor:
            time.sleep(1)
            print(monitor.get_process_summary())
    """

    _POLLED = ("rss_bytes", "rss_peak_bytes", "private_bytes", "virtual_bytes")


class UnifiedMonitor(ETWMonitor):
    """Processes, the machine, GPU, NPU and energy in one stream of MetricSamples.

    Example:

        with etwatch.UnifiedMonitor({"target_process_names": {"python"}}) as monitor:
            time.sleep(1)
            print(monitor.get_current_metrics()["system"], len(monitor.collect_metrics()))

    Samples of the machine have pid 0 and no process name: `system_cpu_percent`, `system_memory_percent`,
    `system_memory_used_mb`. Those of devices have pid 0 and the id of the device as name: `gpu_util_percent`,
    `gpu_memory_used_mb`, `gpu_temperature_celsius`, `gpu_power_watts`, `npu_util_percent`, `package_energy_joules`, …; the groups
    `gpu`, `npu`, `energy` (1 Hz by default) and `system` (10 Hz) of a nested configuration set their rates. A device that is missing
    gives no samples, and None in get_current_metrics.
    """

    _UNIFIED = True

    def __init__(self, config: Config = None, **options: Any) -> None:
        super().__init__(config, **options)
        settings = self._settings
        self.system = SystemMonitor()
        # A group that is disabled has no values of devices, nor of processes on them.
        given = dict(settings.rates)
        rates = {name: given.get(name, DEFAULT_HZ) for name in DEVICES if name not in settings.off}
        self._measure_devices({name: hz for name, hz in rates.items() if name not in given})
        self._devices = DeviceSamples(rates, settings.device_metrics, self._roots)
        system = None if "system" in settings.off else self.system
        self._engine.extra = _Extra(system, settings.system_hz or _SYSTEM_HZ, self._devices).take
        self._finalizer_of_devices = weakref.finalize(self, self._devices.close)

    def get_current_metrics(self) -> Dict[str, Any]:
        """The current values by group; None if unknown. `percent` and `memory_bytes` of devices are those of the monitored
        processes; `devices` has the latest reading of each device.

        Example:

            print(monitor.get_current_metrics()["system"]["cpu_percent"])
        """
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
            "gpu": {"percent": sum(gpu) if gpu else None, "memory_bytes": sum(held) if held else None,
                    "devices": self._devices.latest("gpu")},
            "npu": {"percent": sum(npu) if npu else None, "devices": self._devices.latest("npu")},
            "energy": {"uj": sum(energy) if energy else None, "devices": self._devices.latest("energy")},
        }


class _Extra:
    """What a unified monitor has in addition to processes. It does not refer to the monitor, which may go away."""

    def __init__(self, system: Optional[SystemMonitor], hz: float, devices: DeviceSamples) -> None:
        self._system, self._devices = system, devices
        self._pause, self._next = max(0.01, 1 / hz), 0.0  # the kernel counts in hundredths of a second

    def take(self) -> List[MetricSample]:
        found = self._devices.take()
        now = time.monotonic()
        if self._system is not None and now >= self._next:
            self._next = now + self._pause
            found += _system_samples(self._system)
        return found


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

    Example:

        sampler = etwatch.AdaptiveSampler(100.0, overhead_limit=5.0)
        print(sampler.adjust_rate(7.5))     # 80.0

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
        """The rate for the next interval, after an interval with this overhead in per cent of one core.

        Example:

            sampler.adjust_rate(monitor.get_statistics()["self_cpu_percent"])
        """
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
