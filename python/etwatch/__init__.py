# SPDX-License-Identifier: MIT
"""etwatch: what every process really did, from kernel events."""
from ._batch import Batch, Sample
from ._native import __version__
from .config import ETWMonitorConfig
from .errors import ETWAccessDeniedError, ETWError, ETWProviderError, ETWSessionError, ETWSessionLostError
from .etw import ETWMonitor
from .process import AccessDenied, NoSuchProcess, Process, TimeoutExpired, ZombieProcess, pid_exists, pids, process_iter
from .samples import MetricSample, ProcessMetrics
from .table import Table

__all__ = ["__version__", "AccessDenied", "Batch", "ETWAccessDeniedError", "ETWError", "ETWMonitor",
           "ETWMonitorConfig", "ETWProviderError", "ETWSessionError", "ETWSessionLostError", "MetricSample",
           "NoSuchProcess", "Process", "ProcessMetrics", "Sample", "Table", "TimeoutExpired", "ZombieProcess",
           "pid_exists", "pids", "process_iter"]
