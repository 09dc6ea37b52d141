# SPDX-License-Identifier: MIT
"""Events as Python objects: a batch of Arrow columns, and one object for each row that is accessed.

A column becomes a list when the first event of its batch needs it; the fields of an event are parsed when they are
accessed. So an event that is only counted or filtered costs little.
"""
import ctypes
import json
from collections import deque
from functools import cached_property
from itertools import repeat
from typing import Any, Callable, Deque, Dict, Iterator, List, Mapping, Optional, Tuple, Union

from . import _arrow
from ._event_names import OF_FIRST_THREAD, TYPES, snake

WINDOW_NS = 100_000_000  # over which cpu_percent of a CPUSample is computed
_NS = 1_000_000_000
_SCHED = {"task_newtask", "sched_switch"}
_scan: Any = getattr(json.JSONDecoder(), "scan_once")  # parses one value at an offset


class Samples:
    """The CPU samples of the last interval, by process."""

    def __init__(self, interval_ns: int = 1_000_000) -> None:
        self.interval_ns = interval_ns
        self.changes: Deque[Tuple[int, int]] = deque()  # times and intervals that are not among the selected events
        self._times: Dict[Any, Deque[int]] = {}

    def percent(self, pid: Any, t_ns: int) -> float:
        """Adds a sample; the CPU of the process over the window that ends with it, in per cent of one CPU."""
        while self.changes and self.changes[0][0] <= t_ns:
            self.interval_ns = self.changes.popleft()[1]
        times = self._times.setdefault(pid, deque())
        times.append(t_ns)
        while times[0] <= t_ns - WINDOW_NS:
            times.popleft()
        return 100.0 * len(times) * self.interval_ns / WINDOW_NS


class EventRows:
    """A batch of events, with the columns of the library's table of events."""

    def __init__(self, batch: _arrow.Batch, fields: List[_arrow.Field], samples: Samples,
                 tick_ns: Optional[float] = None, before_samples: Optional[Callable[[], None]] = None) -> None:
        self._batch = batch
        self._index = {field.name: i for i, field in enumerate(fields)}
        self._schema = fields
        self._samples = samples
        self.tick_ns = tick_ns
        self.length = len(batch)
        # At once: later batches continue from here, also if no event of this one is accessed.
        self.percents: Dict[int, float] = {}
        if "PerfInfo/Sample" in self.event_words:
            if before_samples is not None:
                before_samples()
            self._add_samples()

    def column(self, name: str) -> List[Any]:
        i = self._index[name]
        return _arrow.column_values(self._batch.column(i), self._schema[i])

    @cached_property
    def event_words(self) -> List[str]:
        """The names of the dictionary: a superset of those in this batch."""
        column = self._batch.column(self._index["event"])
        if not column.dictionary:
            return []
        dictionary = column.dictionary.contents
        return _arrow.column_values(dictionary, _arrow.Field("", "u", "u"))

    t_ns = cached_property(lambda self: self.column("t_ns"))
    cpu = cached_property(lambda self: self.column("cpu"))
    pid = cached_property(lambda self: self.column("pid"))
    tid = cached_property(lambda self: self.column("tid"))
    name = cached_property(lambda self: self.column("name"))
    provider = cached_property(lambda self: self.column("provider"))
    event = cached_property(lambda self: self.column("event"))
    id = cached_property(lambda self: self.column("id"))
    opcode = cached_property(lambda self: self.column("opcode"))
    version = cached_property(lambda self: self.column("version"))

    @cached_property
    def _of_sched(self) -> bool:
        """Whether the batch may have events of Linux, of which process and thread are in the fields."""
        return not _SCHED.isdisjoint(self.event_words)

    @cached_property
    def timestamps(self) -> List[float]:
        return [t_ns / _NS for t_ns in self.t_ns]

    @cached_property
    def process_ids(self) -> List[Optional[int]]:
        return self._about("child_pid", "next_tgid", self.pid)

    @cached_property
    def thread_ids(self) -> List[Optional[int]]:
        return self._about("child_tid", "next_pid", self.tid)

    @cached_property
    def types(self) -> List[str]:
        of = TYPES.get
        found = [of(name, name) for name in self.event]
        if not OF_FIRST_THREAD.keys().isdisjoint(self.event_words):
            for row, name in enumerate(self.event):
                if name in OF_FIRST_THREAD and self.process_ids[row] == self.thread_ids[row]:
                    found[row] = OF_FIRST_THREAD[name]
        return found

    def _about(self, of_new: str, of_switch: str, column: List[Any]) -> List[Any]:
        """The column; of a new task and of a switch the field with this name."""
        if not self._of_sched:
            return column
        names = {"task_newtask": of_new, "sched_switch": of_switch}
        return [self.fields_of(row).get(names[name]) if name in names else column[row]
                for row, name in enumerate(self.event)]

    @cached_property
    def _texts(self) -> Optional[Tuple[List[int], Union[str, bytes], Optional[bytes]]]:
        i = self._index.get("fields")
        if i is None or self.length == 0:
            return None
        column = self._batch.column(i)
        ends = list((ctypes.c_int32 * (self.length + 1)).from_address(column.buffers[1] + 4 * column.offset))
        data = ctypes.string_at(column.buffers[2], ends[-1]) if column.buffers[2] else b""
        # Offsets are in bytes: only plain ASCII can be decoded at once.
        return ends, data.decode("ascii") if data.isascii() else data, _arrow.valid_bits(column)

    def fields_of(self, row: int) -> Dict[str, Any]:
        if self._texts is None:
            return {}
        ends, data, valid = self._texts
        if valid is not None and not valid[row >> 3] >> (row & 7) & 1:
            return {}
        if isinstance(data, bytes):
            return json.loads(data[ends[row]:ends[row + 1]])  # type: ignore[no-any-return]
        return _scan(data, ends[row])[0]  # type: ignore[no-any-return]

    def _add_samples(self) -> None:
        for row, name in enumerate(self.event):
            if name == "PerfInfo/Sample":
                self.percents[row] = self._samples.percent(self.pid[row], self.t_ns[row])
            elif name in ("PerfInfo/CollectionStart", "PerfInfo/SetInterval"):
                self._samples.interval_ns = interval_of(self.fields_of(row)) or self._samples.interval_ns


def interval_of(fields: Mapping[str, Any]) -> Optional[int]:
    """The new interval of CPU samples in ns, of an event that changes it; None if it is about another counter."""
    interval = fields.get("NewInterval")
    return int(interval) * 100 if interval and fields.get("Source", 0) == 0 else None  # of the timer, in units of 100 ns


class ETWEvent:
    """One event: `provider`, `event_name`, `type`, `timestamp`, `process_id`, `thread_id`, `cpu` and its decoded fields.

    `fields` has them under their own names; each is also an attribute in snake_case (`NewThreadId` is
    `new_thread_id`). An attribute that the event does not have is None.

    Example:

        for event in etwatch.ETWConsumer(file="boot.etl"):
            if event.type == "ThreadContextSwitch":
                print(event.timestamp, event.cpu, event.new_thread_id)
    """

    __slots__ = ("_rows", "_row", "_fields")

    def __init__(self, rows: EventRows, row: int) -> None:
        self._rows = rows
        self._row = row
        self._fields: Optional[Dict[str, Any]] = None

    @property
    def provider(self) -> str:
        """The name of the provider, or its GUID."""
        return self._rows.provider[self._row]  # type: ignore[no-any-return]

    provider_name = provider

    @property
    def event_name(self) -> str:
        """The event's own name, such as Thread/CSwitch."""
        return self._rows.event[self._row]  # type: ignore[no-any-return]

    @property
    def type(self) -> str:
        """ProcessStart, ThreadContextSwitch, CPUSample, PageFault, …; else the event's own name."""
        return self._rows.types[self._row]

    @property
    def timestamp(self) -> float:
        """Unix time in seconds."""
        return self._rows.timestamps[self._row]

    @property
    def t_ns(self) -> int:
        """Unix time in nanoseconds."""
        return self._rows.t_ns[self._row]  # type: ignore[no-any-return]

    @property
    def process_id(self) -> Optional[int]:
        """The process that the event is about; of a switch: of the incoming thread."""
        return self._rows.process_ids[self._row]

    pid = process_id

    @property
    def thread_id(self) -> Optional[int]:
        """Its thread; of a switch: the incoming one."""
        return self._rows.thread_ids[self._row]

    tid = thread_id

    @property
    def process_name(self) -> Optional[str]:
        """The name of the process, if it is known."""
        name = self._rows.event[self._row]
        if name == "task_newtask":
            return self.fields.get("child_comm") or self._rows.name[self._row]  # type: ignore[no-any-return]
        if name == "sched_switch":
            return self.fields.get("next_comm")
        return self._rows.name[self._row]  # type: ignore[no-any-return]

    @property
    def cpu(self) -> int:
        """The number of the CPU that logged the event."""
        return self._rows.cpu[self._row]  # type: ignore[no-any-return]

    @property
    def id(self) -> int:
        """The id of a manifest event, else 0."""
        return self._rows.id[self._row]  # type: ignore[no-any-return]

    @property
    def opcode(self) -> int:
        """Its operation code."""
        return self._rows.opcode[self._row]  # type: ignore[no-any-return]

    @property
    def version(self) -> int:
        """The version of its layout."""
        return self._rows.version[self._row]  # type: ignore[no-any-return]

    @property
    def fields(self) -> Mapping[str, Any]:
        """The decoded fields under their own names."""
        if self._fields is None:
            self._fields = self._rows.fields_of(self._row)
        return self._fields

    # ------------------------------------------------------------ the kernel's types

    def _first(self, *names: str) -> Any:
        fields = self.fields
        return next((fields[name] for name in names if name in fields), None)

    @property
    def parent_process_id(self) -> Optional[int]:
        """ProcessStart: the process that started it."""
        if self._rows.event[self._row] == "task_newtask":
            return self._rows.pid[self._row]  # type: ignore[no-any-return]
        return self._first("ParentId", "ParentProcessID")  # type: ignore[no-any-return]

    @property
    def exit_code(self) -> Optional[int]:
        """ProcessStop and ThreadStop: the exit code, as in subprocess: minus the signal that killed it (Linux)."""
        if self.type not in ("ProcessStop", "ThreadStop"):
            return None
        signal: Optional[int] = self._first("exit_signal")
        code: Optional[int] = self._first("ExitStatus", "ExitCode", "exit_code")
        return -signal if signal else code

    @property
    def image_name(self) -> Optional[str]:
        """The file of a process or image."""
        return self._first("ImageFileName", "ImageName", "FileName")  # type: ignore[no-any-return]

    @property
    def fault_type(self) -> Optional[str]:
        """PageFault: TransitionFault, DemandZeroFault, CopyOnWrite, GuardMemory, HardFault or AccessViolation."""
        return self.event_name.partition("/")[2] if self.type == "PageFault" else None

    @property
    def base_address(self) -> Optional[int]:
        """MemAlloc, MemFree and ImageLoad: where it begins."""
        return self._first("BaseAddress", "ImageBase")  # type: ignore[no-any-return]

    @property
    def virtual_address(self) -> Optional[int]:
        """PageFault: the address."""
        return self._first("VirtualAddress")  # type: ignore[no-any-return]

    @property
    def allocation_size(self) -> Optional[int]:
        """MemAlloc and MemFree: bytes."""
        return self._first("RegionSize")  # type: ignore[no-any-return]

    @property
    def old_thread_id(self) -> Optional[int]:
        """ThreadContextSwitch: the outgoing thread."""
        return self._first("OldThreadId", "prev_pid")  # type: ignore[no-any-return]

    @property
    def new_thread_id(self) -> Optional[int]:
        """ThreadContextSwitch: the incoming thread."""
        return self._first("NewThreadId", "next_pid")  # type: ignore[no-any-return]

    @property
    def duration(self) -> Optional[float]:
        """Seconds: how long a disk request took, or how long the incoming thread of a switch had waited (Linux)."""
        waited = self._first("wait_ns")
        if waited is not None:
            return float(waited) / _NS
        ticks = self._first("HighResResponseTime")
        if ticks is None or self._rows.tick_ns is None:
            return None
        return float(ticks) * self._rows.tick_ns / _NS

    @property
    def cpu_cycles(self) -> Optional[int]:
        """ProcessStop and ThreadStop: the CPU cycles of its whole life, where the provider logs them."""
        return self._first("CPUCycleCount", "CycleTime")  # type: ignore[no-any-return]

    @property
    def cpu_percent(self) -> Optional[float]:
        """CPUSample: an estimate of the CPU of its process over the last 100 ms, in per cent of one CPU."""
        return self._rows.percents.get(self._row)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        for key, value in self.fields.items():
            if snake(key) == name:
                return value
        return None

    def as_dict(self) -> Dict[str, Any]:
        """Everything, under the names of `etwatch events --json`.

        Example:

            for event in consumer:
                print(event.as_dict())
        """
        return {"t_ns": self.t_ns, "cpu": self.cpu, "pid": self.process_id, "tid": self.thread_id,
                "name": self.process_name, "provider": self.provider, "event": self.event_name, "id": self.id,
                "opcode": self.opcode, "version": self.version, "fields": dict(self.fields)}

    def __repr__(self) -> str:
        return f"<{self.provider}/{self.event_name} t={self.timestamp:.6f} pid={self.process_id} tid={self.thread_id}>"


def events_of(rows: EventRows) -> Iterator[ETWEvent]:
    """One object for each row. Not a generator: a loop that is left must not end it for the next one."""
    return map(ETWEvent, repeat(rows), range(rows.length))
