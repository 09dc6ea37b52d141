# SPDX-License-Identifier: MIT
"""psutil's errors and named tuples, as etwatch.Process raises and returns them."""
import sys
from collections import namedtuple
from typing import Any, NamedTuple, Optional

LINUX = sys.platform.startswith("linux")


# -------------------------------------------------------------------------------- errors

class Error(Exception):
    """Base class of the errors below."""

    def __init__(self, pid: Optional[int] = None, name: Optional[str] = None, msg: str = "") -> None:
        self.pid = pid
        self.name = name
        self.msg = msg or "process error"
        parts = [f"pid={pid}"] if pid is not None else []
        if name:
            parts.append(f"name={name!r}")
        super().__init__(f"{self.msg} ({', '.join(parts)})" if parts else self.msg)


class NoSuchProcess(Error, ProcessLookupError):
    """The process exited or never existed; also a ProcessLookupError.

    Example:

        try:
            etwatch.Process(pid).name()
        except etwatch.NoSuchProcess as error:
            print(error.pid)
    """

    def __init__(self, pid: int, name: Optional[str] = None, msg: Optional[str] = None) -> None:
        super().__init__(pid, name, msg or "process no longer exists")


class ZombieProcess(NoSuchProcess):
    """The process exited but was not reaped, and the requested value is gone.

    Example:

        try:
            etwatch.Process(pid).cmdline()
        except etwatch.ZombieProcess as error:
            print(error.ppid)
    """

    def __init__(self, pid: int, name: Optional[str] = None, ppid: Optional[int] = None,
                 msg: Optional[str] = None) -> None:
        super().__init__(pid, name, msg or "process exists but it's a zombie")
        self.ppid = ppid


class AccessDenied(Error, PermissionError):
    """The rights to read this value are missing; also a PermissionError.

    Example:

        try:
            etwatch.Process(1).environ()
        except etwatch.AccessDenied as error:
            print(error.pid, error.msg)
    """

    def __init__(self, pid: Optional[int] = None, name: Optional[str] = None, msg: Optional[str] = None) -> None:
        super().__init__(pid, name, msg or "access denied")


class TimeoutExpired(Error, TimeoutError):
    """wait() took longer than allowed; also a TimeoutError.

    Example:

        try:
            etwatch.Process(pid).wait(timeout=1)
        except etwatch.TimeoutExpired as error:
            print(error.seconds)
    """

    def __init__(self, seconds: float, pid: Optional[int] = None, name: Optional[str] = None) -> None:
        super().__init__(pid, name, f"timeout after {seconds} seconds")
        self.seconds = seconds


# -------------------------------------------------------------------------------- tuples

# Plain named tuples, as psutil's are: their fields differ between systems.
_tuple: Any = namedtuple
if LINUX:
    pcputimes = _tuple("pcputimes", "user system children_user children_system iowait")
    pmem = _tuple("pmem", "rss vms shared text lib data dirty")
    pfullmem = _tuple("pfullmem", pmem._fields + ("uss", "pss", "swap"))
    pio = _tuple("pio", "read_count write_count read_bytes write_bytes read_chars write_chars")
else:
    pcputimes = _tuple("pcputimes", "user system children_user children_system")
    pmem = _tuple("pmem", "rss vms peak_wset wset private")
    pfullmem = _tuple("pfullmem", pmem._fields + ("uss",))
    pio = _tuple("pio", "read_count write_count read_bytes write_bytes other_count other_bytes")


class pthread(NamedTuple):
    id: int
    user_time: float
    system_time: float


class pctxsw(NamedTuple):
    voluntary: Optional[int]
    involuntary: Optional[int]


class ppagefaults(NamedTuple):
    minor: Optional[int]
    major: Optional[int]


class puids(NamedTuple):
    real: int
    effective: int
    saved: int


class pgids(NamedTuple):
    real: int
    effective: int
    saved: int


class pionice(NamedTuple):
    ioclass: int
    value: int


class popenfile(NamedTuple):
    path: str
    fd: int
