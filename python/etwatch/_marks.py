# SPDX-License-Identifier: MIT
"""Marks of spans: the writing side of the ring that a watcher reads (src/span/ring.h has the layout: change both).

Uses the standard library only and imports nothing of the package: `etwatch run --onnx` also loads this file into
programs that do not have the package. A finished span is one record of 64 bytes, written by one call under the
interpreter's lock. The ring is made when the first span ends; a forked child makes its own.
"""
from __future__ import annotations

import itertools
import os
import struct
import sys
import threading
import time

TYPE_CHECKING = False  # typing itself is not imported: this file is loaded into programs that may not need it
if TYPE_CHECKING:
    import mmap
    from types import TracebackType
    from typing import Callable, Literal

VARIABLE = "ETWATCH_SPANS"
WORK, INFERENCE, LOAD = 1, 2, 3
FAILED, ASYNC = 1 << 1, 1 << 2

_MAGIC = b"etwspan1"
_PROFILE = b"etwprof1"
_HEADER_SIZE, _TEXTS_SIZE, _RECORDS = 4096, 65536, 16384
_FIRST = _HEADER_SIZE + _TEXTS_SIZE
_SIZE = _FIRST + _RECORDS * 64
_MASK = _RECORDS - 1
_RECORD = struct.Struct("<QQIIIIIII12xQ")
_F_ADD_SEALS, _SEALS = 1033, 1 | 2 | 4  # no other seal, no shrinking, no growing

# Elsewhere than on Linux there is no such clock; `connect` then returns None and nothing calls it.
_clock_ns: Callable[[int], int] = getattr(time, "clock_gettime_ns", lambda _: 0)
_BOOTTIME: int = getattr(time, "CLOCK_BOOTTIME", -1)


def now_ns() -> int:
    """The clock of marks: that of the kernel's scheduler events."""
    return _clock_ns(_BOOTTIME)


class Marks:
    """Writes spans to the watcher at `address` ("@" and an abstract Unix address)."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._lock = threading.Lock()
        self._local = threading.local()
        self._reset()
        os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self._ring: mmap.mmap | None = None
        self._failed = False
        self._texts: dict[str, int] = {}
        self._text_used = 8
        self._next = itertools.count().__next__
        self._lock = threading.Lock()
        self._local = threading.local()

    def _open(self) -> mmap.mmap | None:
        with self._lock:
            if self._ring is not None or self._failed:
                return self._ring
            try:
                import fcntl  # pylint: disable=import-outside-toplevel
                import mmap  # pylint: disable=import-outside-toplevel,redefined-outer-name

                fd = os.memfd_create("etwatch-spans", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
                try:
                    os.ftruncate(fd, _SIZE)
                    fcntl.fcntl(fd, _F_ADD_SEALS, _SEALS)
                    ring = mmap.mmap(fd, _SIZE)
                    struct.pack_into("<8sIIII", ring, 0, _MAGIC, 1, _RECORDS, _TEXTS_SIZE, os.getpid())
                    self._send(_MAGIC, fd)
                finally:
                    os.close(fd)
            except (OSError, ImportError):  # the watcher is gone, or the program gave up the right to read its modules
                self._failed = True
                return None
            self._ring = ring
            return ring

    def _send(self, message: bytes, fd: int) -> None:
        """The queue of the watcher is short. A watcher that is stopped must not stop the program."""
        import socket  # pylint: disable=import-outside-toplevel

        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", 1, 0))  # a struct timeval
            sender.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", fd))], 0,
                           b"\0" + self._address[1:].encode())

    def profile(self, fd: int, start_ns: int, session: str) -> None:
        """Sends a profile of ONNX Runtime that begins at start_ns; it is read when its session has ended."""
        self._send(_PROFILE + struct.pack("<Q", start_ns) + session.encode("utf-8", "replace")[:120], fd)

    def text(self, text: str) -> int:
        """The number of a text, for `end`; 0 if there is no room for it."""
        number = self._texts.get(text)
        if number is not None:
            return number
        ring = self._ring or self._open()
        if ring is None:
            return 0
        with self._lock:
            number = self._texts.get(text)
            if number is None:
                raw = text.encode("utf-8", "replace")[:255]
                number = self._text_used
                if number + 2 + len(raw) > _TEXTS_SIZE:
                    number = 0
                else:
                    at = _HEADER_SIZE + number
                    ring[at:at + 2 + len(raw)] = struct.pack("<H", len(raw)) + raw
                    self._text_used += 2 + len(raw)
                if len(self._texts) < 65536:
                    self._texts[text] = number
        return number

    def tid(self) -> int:
        """The kernel's id of this thread; read once per thread."""
        try:
            tid: int = self._local.tid
        except AttributeError:
            self._local.tid = tid = threading.get_native_id()
        return tid

    def end(self, start_ns: int, name: str, session: str | None = None, kind: int = WORK, flags: int = 0,
            tid: int | None = None, shape: int = 0) -> None:
        """Writes a span from start_ns until now; on another thread than `tid`, if that began it.

        shape: the number of the text of the first input's shape; 0: unknown.
        """
        ring = self._ring or self._open()
        if ring is None:
            return
        texts = self._texts
        try:
            name_at = texts[name]
            session_at = texts[session] if session is not None else 0
        except KeyError:
            name_at = self.text(name)
            session_at = self.text(session) if session is not None else 0
        try:
            mine = self._local.tid
        except AttributeError:
            mine = self.tid()
        number = self._next()
        _RECORD.pack_into(ring, _FIRST + ((number & _MASK) << 6), start_ns, _clock_ns(_BOOTTIME),
                          tid if tid is not None else mine, mine, name_at, session_at, kind, flags, shape,
                          number + 1)


def connect() -> Marks | None:
    """The marks of this process, or None: without a watcher."""
    address = os.environ.get(VARIABLE, "")
    usable = sys.platform == "linux" and _BOOTTIME >= 0 and hasattr(os, "memfd_create")
    return Marks(address) if usable and address.startswith("@") and 1 < len(address) < 100 else None


class Span:
    """One span: a context manager; see etwatch.span."""

    __slots__ = ("_marks", "_name", "_session", "_start_ns")

    def __init__(self, marks: Marks, name: str, session: str | None) -> None:
        self._marks = marks
        self._name = name
        self._session = session

    def __enter__(self) -> Span:
        self._start_ns = _clock_ns(_BOOTTIME)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> Literal[False]:
        self._marks.end(self._start_ns, self._name, self._session, WORK, 0 if kind is None else FAILED)
        return False


class NoSpan:
    """In place of Span without a watcher."""

    __slots__ = ()

    def __enter__(self) -> NoSpan:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> Literal[False]:
        return False
