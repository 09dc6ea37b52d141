# SPDX-License-Identifier: MIT
"""etwatch: what every process really did, from kernel events.

    result = etwatch.run(["python", "x.py"])          run a command, get what it and its descendants did
    with etwatch.watch(pid, hz=1000) as w: ...        samples of running processes, as they arrive
    etwatch.open("x.etl").processes                   a recording, on any system
    etwatch.ETWMonitor(...)                           the monitor with callbacks and a configuration object
    etwatch.Process(pid)                              one process, with psutil's names
"""
from ._batch import Batch, Sample
from ._native import __version__
from .compat import AdaptiveSampler, MonitorFactory, SystemMonitor, UnifiedMonitor, select_monitor
from .config import ETWMonitorConfig
from .errors import ETWAccessDeniedError, ETWError, ETWProviderError, ETWSessionError, ETWSessionLostError
from .etw import ETWMonitor
from .live import RunResult, SchedulerEvent, Watch, run, watch
from .process import AccessDenied, NoSuchProcess, Process, TimeoutExpired, ZombieProcess, pid_exists, pids, process_iter
from .samples import MetricSample, ProcessMetrics
from .table import Table
from .trace import Trace, TraceEvent
from .trace import open_trace as open  # pylint: disable=redefined-builtin

__all__ = [
    "AccessDenied",
    "AdaptiveSampler",
    "Batch",
    "ETWAccessDeniedError",
    "ETWError",
    "ETWMonitor",
    "ETWMonitorConfig",
    "ETWProviderError",
    "ETWSessionError",
    "ETWSessionLostError",
    "MetricSample",
    "MonitorFactory",
    "NoSuchProcess",
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
    "watch",
]
