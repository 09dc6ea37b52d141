# SPDX-License-Identifier: MIT
"""Recordings: .etl and .pftrace files, on any system.

    trace = etwatch.open("x.etl")
    trace.processes, trace.threads, trace.samples(hz=100)      # tables
    for event in trace.events(provider="Windows Kernel", event="CSwitch"):
        print(event.t_ns, event.fields["NewThreadId"])

A file is read when a table is accessed, batch by batch; every access to a table reads the file again.
"""
import ctypes
import errno
import json
import os
import stat
import threading
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Union

from . import _abi, _native
from ._monitor import _ids, _texts
from .config import check_name, check_names, check_pids, number
from .errors import ETWSessionError
from .table import Table

__all__ = ["open_trace", "Trace", "TraceEvent"]

Path = Union[str, "os.PathLike[str]"]
Progress = Callable[[int, int], object]

_ON_PROGRESS: Any = next(kind for name, kind, *_ in _abi.TraceOptions._fields_ if name == "on_progress")
# A stream may outlive its trace and calls its function until it ends, so they are never freed; a few bytes each.
_progress_functions: List[Any] = []


class TraceEvent:
    """One recorded event. `fields` has its decoded fields by their documented names.

    Example:

        for event in etwatch.open("boot.etl").events(event="CSwitch"):
            print(event.t_ns, event.cpu, event.fields["NewThreadId"])
    """

    __slots__ = ("_row", "_fields")

    def __init__(self, row: Dict[str, Any]) -> None:
        self._row = row
        self._fields: Optional[Dict[str, Any]] = None

    @property
    def t_ns(self) -> int:
        """When: Unix time."""
        return int(self._row["t_ns"])

    @property
    def provider(self) -> str:
        """The name of its provider, or its GUID."""
        return str(self._row["provider"])

    @property
    def event(self) -> str:
        """Its name, such as "Thread/CSwitch"."""
        return str(self._row["event"])

    @property
    def pid(self) -> Optional[int]:
        """The process that logged it; None if it is unknown."""
        return self._row["pid"]  # type: ignore[no-any-return]

    @property
    def tid(self) -> Optional[int]:
        """The thread that logged it; None if it is unknown."""
        return self._row["tid"]  # type: ignore[no-any-return]

    @property
    def cpu(self) -> int:
        """The CPU on which it was logged."""
        return int(self._row["cpu"])

    @property
    def process_name(self) -> Optional[str]:
        """The name of that process; None if it is unknown."""
        return self._row["name"]  # type: ignore[no-any-return]

    @property
    def id(self) -> int:
        """The number of its type."""
        return int(self._row["id"])

    @property
    def opcode(self) -> int:
        """Its operation code."""
        return int(self._row["opcode"])

    @property
    def version(self) -> int:
        """The version of its layout."""
        return int(self._row["version"])

    @property
    def state(self) -> str:
        """What is known of it: "decoded", "partly" (its name only) or "raw" (neither name nor fields)."""
        return str(self._row["state"])

    @property
    def fields(self) -> Dict[str, Any]:
        """The decoded fields by their documented names."""
        if self._fields is None:
            text = self._row.get("fields")
            self._fields = json.loads(text) if text else {}
        return self._fields

    def as_dict(self) -> Dict[str, Any]:
        """Everything by name.

        Example:

            event.as_dict()
        """
        return {**self._row, "fields": self.fields}

    def __repr__(self) -> str:
        return f"<{self.provider}/{self.event} t_ns={self.t_ns} pid={self.pid} tid={self.tid}>"


class Trace:
    """One or several recordings, merged by time. A context manager; tables outlive it.

    Example:

        with etwatch.open("boot.etl") as trace:
            print(trace.duration, trace.lost, trace.processes.head(5))
    """

    def __init__(self, paths: Sequence[str], *, start: float, end: Optional[float], pids: Sequence[int],
                 names: Sequence[str], progress: Optional[Progress]) -> None:
        self.paths = list(paths)
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._progress = progress
        self._failure: Optional[BaseException] = None
        self._pointer = ctypes.c_void_p()
        self._stats: Optional[Dict[str, Any]] = None
        options = _native.sized(_abi.TraceOptions)
        options.from_ns = round(start * 1e9)
        options.until_ns = round((end or 0) * 1e9)
        if pids:
            options.pids, options.pid_count = _ids(pids), len(pids)
        if names:
            options.names, options.name_count = _texts(names), len(names)
        self._on_progress = _ON_PROGRESS(self._report_progress) if progress is not None else _ON_PROGRESS()
        if progress is not None:
            _progress_functions.append(self._on_progress)
        options.on_progress = self._on_progress
        info = _native.new_error()
        code = _native.lib.etwatch_trace_open(_texts(self.paths), len(self.paths), ctypes.byref(options),
                                              ctypes.byref(self._pointer), ctypes.byref(info))
        self._check(code, info)

    def _report_progress(self, _: Any, done: int, whole: int) -> int:
        """An exception of the progress callback ends the read and is raised to its caller."""
        try:
            if self._progress is not None:
                self._progress(done, whole)
            return 0
        except BaseException as error:  # pylint: disable=broad-except
            self._failure = error
            return 1

    def _check(self, code: int, info: Any) -> None:
        failure, self._failure = self._failure, None
        if failure is not None and code < 0:
            raise failure
        _native.check(code, info)

    def close(self) -> None:
        """Closes the files; tables that were read stay.

        Example:

            trace.close()
        """
        with self._lock:
            pointer, self._pointer = self._pointer, ctypes.c_void_p()
        if pointer and self._pid == os.getpid():
            _native.lib.etwatch_trace_free(pointer)

    def __enter__(self) -> "Trace":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_pointer", None):
            self.close()

    def _open(self) -> Any:
        """The handle; call with the lock held."""
        if not self._pointer or self._pid != os.getpid():
            raise ETWSessionError("the recording is closed")
        return self._pointer

    # ---------------------------------------------------------------------- tables

    def _table(self, table: int, *, flags: int = 0, hz: float = 0.0, providers: Sequence[str] = (),
               events: Sequence[str] = (), fill: Optional[Callable[[Any], object]] = None) -> Table:
        options = _native.sized(_abi.TableOptions)
        options.flags = flags
        options.hz = hz
        options.on_progress = self._on_progress
        words = _texts(providers), _texts(events)
        options.providers, options.provider_count = words[0], len(providers)
        options.events, options.event_count = words[1], len(events)
        if fill is not None:
            fill(options)

        def open_stream(address: int) -> None:
            stream = _abi.ArrowArrayStream.from_address(address)
            info = _native.new_error()
            with self._lock:
                code = _native.lib.etwatch_trace_table(self._open(), table, ctypes.byref(options),
                                                       ctypes.byref(stream), ctypes.byref(info))
            self._check(code, info)
        return Table.from_stream(open_stream, name=_native.text(_native.lib.etwatch_table_name(table)) or "table")

    @property
    def processes(self) -> Table:
        """Every process with its totals over the recording."""
        return self._table(_abi.ETWATCH_TABLE_PROCESSES)

    @property
    def threads(self) -> Table:
        """Every thread with its totals over the recording."""
        return self._table(_abi.ETWATCH_TABLE_THREADS)

    @property
    def images(self) -> Table:
        """The loaded program files and libraries."""
        return self._table(_abi.ETWATCH_TABLE_IMAGES)

    @property
    def classes(self) -> Table:
        """The types of events and the number of each."""
        return self._table(_abi.ETWATCH_TABLE_CLASSES)

    def samples(self, hz: float = 10.0, *, threads: bool = False, dense: bool = False) -> Table:
        """What each process (or thread) did in each interval.

        Example:

            trace.samples(hz=100)["cpu_percent"]
        """
        number("hz", hz, 0.1, 1000)
        table = _abi.ETWATCH_TABLE_THREAD_SAMPLES if threads else _abi.ETWATCH_TABLE_SAMPLES
        return self._table(table, hz=float(hz), flags=_abi.ETWATCH_TABLE_DENSE if dense else 0)

    def event_table(self, provider: Union[str, Sequence[str], None] = None,
                    event: Union[str, Sequence[str], None] = None, *, typed: bool = False, fields: bool = True,
                    payload: bool = False, command_lines: bool = False) -> Table:
        """Events as a table. `fields` is a column of JSON text; with typed=True each field is a column.

        Command lines in fields are None, or with command_lines=True masked.

        Example:

            trace.event_table(event="Thread/CSwitch", typed=True).to_pandas()
        """
        flags = 0
        for wanted, flag in ((typed, _abi.ETWATCH_TABLE_TYPED), (fields and not typed, _abi.ETWATCH_TABLE_FIELDS),
                             (payload, _abi.ETWATCH_TABLE_PAYLOAD), (command_lines, _abi.ETWATCH_TABLE_CMDLINE)):
            flags |= flag if wanted else 0
        return self._table(_abi.ETWATCH_TABLE_EVENTS, flags=flags, providers=_words("provider", provider),
                           events=_words("event", event))

    def events(self, provider: Union[str, Sequence[str], None] = None,
               event: Union[str, Sequence[str], None] = None, *, command_lines: bool = False) -> Iterator[TraceEvent]:
        """Events in order of time.

        provider, event: only those with such a name, regardless of case: the whole name or a glob. The GUID also names
        a provider, and one side of its slash an event: "Thread/CSwitch" is selected by "CSwitch" and by "Thread".
        Command lines in fields are None, or with command_lines=True masked.

        Example:

            for event in trace.events(provider="Windows Kernel", event="DiskIo"):
                print(event.t_ns, event.fields)
        """
        rows = self.event_table(provider, event, command_lines=command_lines).rows()
        return self._events(rows)

    def _events(self, rows: Iterator[Dict[str, Any]]) -> Iterator[TraceEvent]:
        while True:
            try:
                row = next(rows)
            except StopIteration:
                return
            except Exception:
                failure, self._failure = self._failure, None
                if failure is not None:
                    raise failure from None
                raise
            yield TraceEvent(row)

    # ----------------------------------------------------------------------- about

    @property
    def files(self) -> List[Dict[str, Any]]:
        """The properties in the header of each file."""
        found = []
        with self._lock:
            pointer = self._open()
            for index in range(_native.lib.etwatch_trace_file_count(pointer)):
                about = _native.sized(_abi.TraceFile)
                _native.check(_native.lib.etwatch_trace_file(pointer, index, ctypes.byref(about)))
                found.append({name: _plain(getattr(about, name)) for name, *_ in _abi.TraceFile._fields_
                              if name != "size"})
        return found

    @property
    def stats(self) -> Dict[str, Any]:
        """Events, loss and damage of the whole recording; the first access reads it once."""
        if self._stats is None:
            callbacks = _native.sized(_abi.ReportCallbacks)
            info = _native.new_error()
            system, stats = _native.sized(_abi.TraceSystem), _native.sized(_abi.TraceStats)
            with self._lock:
                code = _native.lib.etwatch_trace_report(self._open(), ctypes.byref(callbacks), ctypes.byref(system),
                                                        ctypes.byref(info))
                if code >= 0:
                    _native.check(_native.lib.etwatch_trace_stats(self._open(), ctypes.byref(stats)))
            self._check(code, info)
            skipped = ("size", "reserved", "reserved2")
            self._stats = {name: _plain(getattr(stats, name)) for name, *_ in _abi.TraceStats._fields_
                           if name not in skipped}
            self._stats.update({name: getattr(system, name) for name, *_ in _abi.TraceSystem._fields_
                                if name not in skipped})
        return dict(self._stats)

    @property
    def lost(self) -> int:
        """The number of lost events according to the recording."""
        return int(self.stats["lost"])

    @property
    def duration(self) -> float:
        """Seconds from the first event to the last."""
        stats = self.stats
        return max(0, int(stats["last_ns"]) - int(stats["first_ns"])) / 1e9

    def __repr__(self) -> str:
        return f"<Trace {', '.join(self.paths)}>"


def _plain(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _words(name: str, value: Union[str, Sequence[str], None]) -> List[str]:
    if value is None:
        return []
    return [check_name(name, word) for word in ([value] if isinstance(value, str) else value)]


def open_trace(path: Union[Path, Sequence[Path]], *, start: float = 0.0, end: Optional[float] = None,
               pids: Union[int, Iterable[int]] = (), names: Union[str, Iterable[str]] = (),
               progress: Optional[Progress] = None) -> Trace:
    """Opens one recording, or several that belong together.

    start, end: only this part, in seconds since the beginning of the recording. pids, names: only these processes and
    their descendants. progress(bytes_done, bytes_all) is called now and then during a read; an exception from it ends
    the read.

    Example:

        trace = etwatch.open("boot.etl")
        print(trace.processes.head(10))
    """
    paths = [path] if isinstance(path, (str, os.PathLike)) else path
    if isinstance(paths, bytes) or not isinstance(paths, Sequence):
        raise TypeError(f"path: a path or a list of them is needed, not {path!r}")
    texts = []
    for one in paths:
        if not isinstance(one, (str, os.PathLike)):
            raise TypeError(f"path: a path is needed, not {one!r}")
        texts.append(os.fspath(one))
        if stat.S_ISDIR(os.stat(texts[-1]).st_mode):  # FileNotFoundError and its siblings, with the name
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), texts[-1])
    if not texts:
        raise ValueError("path: an empty list")
    number("start", start, 0, 1e9)
    if end is not None:
        number("end", end, 0, 1e9)
        if end <= start:
            raise ValueError(f"end: {end!r} is not after start ({start!r})")
    if progress is not None and not callable(progress):
        raise TypeError(f"progress: a function is needed, not {progress!r}")
    return Trace(texts, start=start, end=end, pids=check_pids("pids", pids), names=check_names("names", names),
                 progress=progress)
