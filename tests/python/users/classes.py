# SPDX-License-Identifier: MIT
"""The classes around ETWMonitor, used as the first users use them."""
import time
from typing import Dict, List, Optional, Union

from etwatch import (OVERHEAD_LIMITS, AdaptiveSampler, BaseMonitor, EnergyMonitor, ETWMonitor, ETWMonitorConfig, GPUMonitor,
                     HybridMonitor, MemoryUsage, MonitorConfig, MonitorFactory, MonitorInterface, NPUMonitor, PSUtilMonitor,
                     SystemMonitor, UnifiedMonitor, select_monitor)


class OwnMonitor(BaseMonitor):
    def __init__(self, config: MonitorConfig) -> None:
        self.config = config
        self.running = False

    def start_monitoring(self) -> None:
        self.running = True

    def stop_monitoring(self) -> None:
        self.running = False

    def get_cpu_usage(self) -> float:
        return 12.5

    def get_memory_usage(self) -> int:
        return 64 * 1024 * 1024


class NamedSystem(SystemMonitor):
    def __init__(self, name: str) -> None:  # no super().__init__()
        self.name = name


def report(monitor: MonitorInterface) -> str:
    monitor.start_monitoring()
    time.sleep(0.1)
    cpu, memory = monitor.get_cpu_usage(), monitor.get_memory_usage()
    monitor.stop_monitoring()
    return f"{type(monitor).__name__} {cpu >= 0} {memory > 0}"


monitors: List[Union[BaseMonitor, MonitorInterface]] = [
    OwnMonitor(MonitorConfig(sampling_rate_hz=10)), NamedSystem("mine"), SystemMonitor(), ETWMonitor(100), PSUtilMonitor(),
    HybridMonitor(ETWMonitorConfig(sampling_rate_hz=50)), UnifiedMonitor(), MonitorFactory.create_monitor(),
    MonitorFactory.create_monitor(prefer_low_overhead=True), select_monitor("critical", 10),
]
for each in monitors:
    print(report(each), isinstance(each, MonitorInterface))

usage: MemoryUsage = SystemMonitor().get_memory_usage()
total: int = usage.total_bytes
used: int = usage["used"]
print("memory", type(total).__name__, type(used).__name__, 0 < used < total)

limits: Dict[str, float] = OVERHEAD_LIMITS
print("limits", *(f"{name} {limit:g}" for name, limit in limits.items()))
sampler = AdaptiveSampler(100.0, overhead_limit=limits["production"])
print("rate", sampler.adjust_rate(6.0))

gpu: Optional[GPUMonitor] = GPUMonitor.create()
print("gpu", [sorted(device)[:1] for device in gpu.get_metrics()] if gpu is not None else None)
npu = NPUMonitor()
print("npu", npu.backend in ("DirectML", "Qualcomm", "Intel", "AMD", None), isinstance(npu.get_metrics(), (list, dict)))
power = EnergyMonitor().get_power_metrics()
print("power", isinstance(power, dict), isinstance(ETWMonitor().get_power_metrics(), dict))
