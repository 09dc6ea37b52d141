# SPDX-License-Identifier: MIT
"""The exceptions of etwatch. Each has a message, the error code of the operating system, and the command or setting
that fixes the problem, if known."""
from typing import Optional, Type

from . import _abi

__all__ = ["ETWError", "ETWSessionError", "ETWAccessDeniedError", "ETWProviderError", "ETWSessionLostError",
           "from_code"]


class ETWError(Exception):
    """Base class of the errors of etwatch.

    code: the (negative) code of the library. os_code: errno or the Windows error, 0 if there is none. fix: what fixes
    the problem, "" if unknown. offset: the byte offset, for errors in a file.
    """

    def __init__(self, message: str = "", os_code: int = 0, fix: str = "", code: int = 0,
                 offset: Optional[int] = None) -> None:
        super().__init__(message)
        self.message = message
        self.os_code = os_code
        self.fix = fix
        self.code = code
        self.offset = offset

    def __str__(self) -> str:
        return f"{self.message} ({self.fix})" if self.fix else self.message


class ETWSessionError(ETWError):
    """A session cannot be started, or cannot be used in its current state."""


class ETWAccessDeniedError(ETWError):
    """Missing rights; `fix` names the required ones."""


class ETWProviderError(ETWError):
    """This system does not have the event source, or an event class cannot be enabled."""


class ETWSessionLostError(ETWError):
    """The session ended unexpectedly."""


_CLASSES = {
    _abi.ETWATCH_EPERM: ETWAccessDeniedError,
    _abi.ETWATCH_ENOTSUP: ETWProviderError,
    _abi.ETWATCH_ESTATE: ETWSessionError,
    _abi.ETWATCH_ELIMIT: ETWSessionError,
    _abi.ETWATCH_EOS: ETWSessionError,
}


def from_code(code: int, message: str, os_code: int = 0, fix: str = "", offset: Optional[int] = None) -> Exception:
    """The exception for an error code of the library: a built-in one if it fits."""
    if code == _abi.ETWATCH_EINVAL:
        return ValueError(message)
    if code == _abi.ETWATCH_ENOMEM:
        return MemoryError(message)
    if code == _abi.ETWATCH_ENOENT:
        return ProcessLookupError(message)
    kind: Type[ETWError] = _CLASSES.get(code, ETWError)
    return kind(message, os_code=os_code, fix=fix, code=code, offset=offset)
