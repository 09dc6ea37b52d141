# SPDX-License-Identifier: MIT
"""Output files with the rules of the program (SECURITY.md): private, and never written through a link of another user.

Links are judged where the path ends. A folder on the way that another user can rename is not detected.
"""
import contextlib
import errno
import os
import stat
import tempfile
from typing import IO, Iterator, Optional, Union

_Path = Union[str, "os.PathLike[str]"]


def _status(path: str) -> Optional[os.stat_result]:
    try:
        return os.lstat(path)
    except FileNotFoundError:
        return None


def _is_own(status: os.stat_result) -> bool:
    return os.name != "posix" or status.st_uid in (0, os.geteuid())


def _target(path: _Path) -> str:
    """The file that is meant: links of the caller and of root are followed, others refused."""
    name = os.fspath(path)
    for _ in range(40):
        status = _status(name)
        if status is None or not stat.S_ISLNK(status.st_mode):
            return name
        if not _is_own(status):
            raise OSError(errno.ELOOP, "a symbolic link of another user: name the file that it points to", name)
        name = os.path.join(os.path.dirname(name), os.readlink(name))
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(path))


@contextlib.contextmanager
def replacing(path: _Path) -> Iterator[IO[bytes]]:
    """A file to write that gets its name when it is complete; after an exception nothing has changed.

    A new file has the mode 0600; one that it replaces keeps its mode if the caller owns it. Devices and pipes are written to.
    """
    name = _target(path)
    status = _status(name)
    if status is not None and not stat.S_ISREG(status.st_mode):
        with open(name, "wb") as special:
            yield special
        return
    handle, temporary = tempfile.mkstemp(prefix=".etwatch-", dir=os.path.dirname(name) or ".")
    try:
        with os.fdopen(handle, "wb") as file:
            if status is not None and os.name == "posix" and status.st_uid == os.geteuid():
                os.fchmod(handle, stat.S_IMODE(status.st_mode) & 0o777)
            yield file
        os.replace(temporary, name)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def appending(path: _Path) -> IO[str]:
    """A text file to append to; a new one has the mode 0600."""
    def private(name: str, flags: int) -> int:
        return os.open(name, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)
    return open(_target(path), "a", encoding="utf-8", opener=private)
