# SPDX-License-Identifier: MIT
"""What can go wrong, as exceptions. Each says what and where, and carries the code of the operating
system and the command or setting that would mend it."""
from typing import Optional, Type

from . import _abi

__all__ = ["ETWError", "ETWSessionError", "ETWAccessDeniedError", "ETWProviderError", "ETWSessionLostError",
           "from_code"]


class ETWError(Exception):
    """The parent of all errors of etwatch.

    code: the library's (negative), os_code: errno or the Windows error (0: none), fix: what would
    mend it ("": nothing known), offset: where in the input, if it is about a file.
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
    """A session cannot be made, or not be used in its present state."""


class ETWAccessDeniedError(ETWError):
    """Missing rights; `fix` names those that are needed."""


class ETWProviderError(ETWError):
    """A source of events that this system does not have, or an event class that cannot be switched on."""


class ETWSessionLostError(ETWError):
    """The session ended while it was in use."""


_CLASSES = {
    _abi.ETWATCH_EPERM: ETWAccessDeniedError,
    _abi.ETWATCH_ENOTSUP: ETWProviderError,
    _abi.ETWATCH_ESTATE: ETWSessionError,
    _abi.ETWATCH_ELIMIT: ETWSessionError,
    _abi.ETWATCH_EOS: ETWSessionError,
}


def from_code(code: int, message: str, os_code: int = 0, fix: str = "", offset: Optional[int] = None) -> Exception:
    """The exception for a code of the library: Python's own where there is one."""
    if code == _abi.ETWATCH_EINVAL:
        return ValueError(message)
    if code == _abi.ETWATCH_ENOMEM:
        return MemoryError(message)
    if code == _abi.ETWATCH_ENOENT:
        return ProcessLookupError(message)
    kind: Type[ETWError] = _CLASSES.get(code, ETWError)
    return kind(message, os_code=os_code, fix=fix, code=code, offset=offset)
