# SPDX-License-Identifier: MIT
"""etwatch: what every process really did, from kernel events.

The three things that people do:

    result = etwatch.run(["python3", "infer.py"])       # a command, from its first instruction to its end
    print(result.processes)                             # and its descendants: CPU time, memory, I/O, switches, ...

    with etwatch.watch(pid, hz=1000) as w:              # processes that run already: a pid, a name, or None for all
        for sample in w:
            print(sample.t_ns, sample.cpu_percent)

    etwatch.open("boot.etl").processes                  # a recording, on any system

More:

    ETWMonitor, ETWMonitorConfig    a monitor with callbacks, summaries and a configuration object
    ETWConsumer, ETWEvent           events: live, or of a recording
    Process, process_iter, pids     one process at this moment, with psutil's names
    Table                           what run, open and watch return: for pandas, polars, duckdb, plots
    SystemMonitor, UnifiedMonitor   the whole machine
    ETWError and its subclasses     what went wrong, with the code of the system and the fix

A value that is not known is None, never 0. `etwatch metrics` prints the names and units of all metrics.
"""
from ._batch import Batch, Sample
from ._native import __version__
from .base import BaseMonitor, MemoryUsage, MonitorInterface
from .compat import (OVERHEAD_LIMITS, AdaptiveSampler, HybridMonitor, MonitorFactory, PSUtilMonitor, SystemMonitor,
                     UnifiedMonitor, select_monitor)
from .config import ETWMonitorConfig, MonitorConfig
from .consumer import ETWConsumer, ETWEvent, ETWProvider
from .devices import EnergyMonitor, GPUMonitor, NPUMonitor
from .errors import ETWAccessDeniedError, ETWError, ETWProviderError, ETWSessionError, ETWSessionLostError
from .etw import ETWMonitor
from .live import RunResult, SchedulerEvent, Watch, run, watch
from .process import AccessDenied, NoSuchProcess, Process, TimeoutExpired, ZombieProcess, pid_exists, pids, process_iter
from ._span import span
from .samples import MetricSample, ProcessMetrics
from .table import Table
from .trace import Trace, TraceEvent
from .trace import open_trace as open  # pylint: disable=redefined-builtin

__all__ = [
    "AccessDenied",
    "AdaptiveSampler",
    "BaseMonitor",
    "Batch",
    "ETWAccessDeniedError",
    "ETWConsumer",
    "ETWError",
    "ETWEvent",
    "ETWMonitor",
    "ETWMonitorConfig",
    "ETWProvider",
    "ETWProviderError",
    "ETWSessionError",
    "ETWSessionLostError",
    "EnergyMonitor",
    "GPUMonitor",
    "HybridMonitor",
    "MemoryUsage",
    "MetricSample",
    "MonitorConfig",
    "MonitorFactory",
    "MonitorInterface",
    "NPUMonitor",
    "NoSuchProcess",
    "OVERHEAD_LIMITS",
    "PSUtilMonitor",
    "Process",
    "ProcessMetrics",
    "RunResult",
    "Sample",
    "SchedulerEvent",
    "SystemMonitor",
    "Table",
    "TimeoutExpired",
    "Trace",
    "TraceEvent",
    "UnifiedMonitor",
    "Watch",
    "ZombieProcess",
    "__version__",
    "open",
    "pid_exists",
    "pids",
    "process_iter",
    "run",
    "select_monitor",
    "span",
    "watch",
]
