# SPDX-License-Identifier: MIT
"""etwatch: what every process really did, from kernel events."""
from ._batch import Batch, Sample
from ._native import __version__
from .config import ETWMonitorConfig
from .errors import ETWAccessDeniedError, ETWError, ETWProviderError, ETWSessionError, ETWSessionLostError
from .etw import ETWMonitor
from .samples import MetricSample, ProcessMetrics

__all__ = ["__version__", "Batch", "ETWAccessDeniedError", "ETWError", "ETWMonitor", "ETWMonitorConfig",
           "ETWProviderError", "ETWSessionError", "ETWSessionLostError", "MetricSample", "ProcessMetrics", "Sample"]
