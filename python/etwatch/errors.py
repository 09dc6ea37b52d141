# SPDX-License-Identifier: MIT
"""The exceptions of etwatch. Each has a message, the error code of the operating system, and the command or setting
that fixes the problem, if known."""
import os
import sys
import warnings
from typing import Optional, Type

from . import _abi

__all__ = ["ETWError", "ETWSessionError", "ETWAccessDeniedError", "ETWProviderError", "ETWSessionLostError",
           "from_code"]


class ETWError(Exception):
    """Base class of the errors of etwatch.

    code: the (negative) code of the library. os_code: errno or the Windows error, 0 if there is none. fix: what fixes
    the problem, "" if unknown. offset: the byte offset, for errors in a file.

    Example:

        try:
            etwatch.open("damaged.etl").processes.head()
        except etwatch.ETWError as error:
            print(error.message, error.os_code, error.fix)
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
    """A session cannot be started, or cannot be used in its current state.

    Example:

        try:
            monitor.start_monitoring()
        except etwatch.ETWSessionError as error:
            print(error.fix)
    """


class ETWAccessDeniedError(ETWError):
    """Missing rights; `fix` names the required ones.

    Example:

        try:
            etwatch.ETWMonitor(fallback=False).start_monitoring()
        except etwatch.ETWAccessDeniedError as error:
            print(error.fix)
    """


class ETWProviderError(ETWError):
    """This system does not have the event source, or an event class cannot be enabled.

    Example:

        try:
            etwatch.watch(source="etw").start()
        except etwatch.ETWProviderError as error:
            print(error)
    """


class ETWSessionLostError(ETWError):
    """The session ended unexpectedly.

    Example:

        error = monitor.get_statistics()["error"]
        if isinstance(error, etwatch.ETWSessionLostError):
            print(error)
    """


_CLASSES = {
    _abi.ETWATCH_EPERM: ETWAccessDeniedError,
    _abi.ETWATCH_ENOTSUP: ETWProviderError,
    _abi.ETWATCH_ESTATE: ETWSessionError,
    _abi.ETWATCH_ELIMIT: ETWSessionError,
    _abi.ETWATCH_EOS: ETWSessionError,
}


def warn(text: str) -> None:
    """A warning that points to the caller of the package."""
    frame, level = sys._getframe(1), 2
    package = os.path.dirname(os.path.abspath(__file__))
    while frame.f_back is not None and os.path.abspath(frame.f_code.co_filename).startswith(package):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, stacklevel=level)


def in_python(text: str) -> str:
    """Advice of the library, which means its program, for users of the package."""
    own = f'"{os.path.realpath(sys.executable or "python3")}" (all programs of this interpreter then have these rights)'
    return text.replace('"$(command -v etwatch)"', own).replace("--source poll", 'source="poll"')


def from_code(code: int, message: str, os_code: int = 0, fix: str = "", offset: Optional[int] = None) -> Exception:
    """The exception for an error code of the library: a built-in one if it fits."""
    if code == _abi.ETWATCH_EINVAL:
        return ValueError(message)
    if code == _abi.ETWATCH_ENOMEM:
        return MemoryError(message)
    if code == _abi.ETWATCH_ENOENT:
        return ProcessLookupError(message)
    kind: Type[ETWError] = _CLASSES.get(code, ETWError)
    return kind(message, os_code=os_code, fix=in_python(fix), code=code, offset=offset)
