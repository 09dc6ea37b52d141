# SPDX-License-Identifier: MIT
"""etwatch: what every process really did, from kernel events."""
from ._native import __version__
from .errors import ETWAccessDeniedError, ETWError, ETWProviderError, ETWSessionError, ETWSessionLostError

__all__ = ["__version__", "ETWError", "ETWSessionError", "ETWAccessDeniedError", "ETWProviderError",
           "ETWSessionLostError"]
