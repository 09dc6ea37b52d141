# SPDX-License-Identifier: MIT
"""Samples as they come from the library: many at once, as bytes; objects are made on access.

A batch owns a copy of the rows (`struct etwatch_sample`) and of the strings that they point to. Columns are
memoryview slices of it; no Python code runs per row unless a row is accessed.
"""
import ctypes
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Union, overload

from . import _abi, _native

OTHER = 0xFFFFFFFF  # pid of the sample for all processes that are not among the top N
WORDS = _native.SAMPLE_SIZE // 8
HALVES = _native.SAMPLE_SIZE // 4
TYPES = {_abi.ETWATCH_TYPE_START: "start", _abi.ETWATCH_TYPE_EXIT: "exit", _abi.ETWATCH_TYPE_SAMPLE: "sample",
         _abi.ETWATCH_TYPE_THREAD: "thread"}
SOURCES = {_abi.ETWATCH_SOURCE_ETW: "etw", _abi.ETWATCH_SOURCE_ETL: "etl", _abi.ETWATCH_SOURCE_EBPF: "ebpf",
           _abi.ETWATCH_SOURCE_POLL: "poll"}
METRIC_NAMES = tuple(name for name, _, _ in _abi.METRICS)
_ALL = _native.metric_set("all")
MEASURED_NAMES = tuple(name for index, name in enumerate(METRIC_NAMES) if _native.set_has(_ALL, index))
TEXT_NAMES = ("name", "thread_name", "user", "cgroup", "cmdline")


def word_of(field: str) -> int:
    """The index of an 8-byte field in a row."""
    return int(getattr(_abi.Sample, field).offset) // 8


def half_of(field: str) -> int:
    """The index of a 4-byte field in a row."""
    return int(getattr(_abi.Sample, field).offset) // 4


HAS = word_of("has")  # the first word of the set
_HAS_WORDS = (len(METRIC_NAMES) + 63) // 64  # those that the metrics of today need
TYPE = half_of("type")
FLAGS = half_of("flags")
PID = half_of("pid")
T_NS = word_of("t_ns")
START_NS = word_of("start_ns")
NAME = word_of("name")
_TEXTS = tuple(word_of(name) for name in TEXT_NAMES)
# Its word of the set and its bit there, its place in a row, its C type.
_METRICS = {name: (HAS + index // 64, 1 << index % 64, word_of(name), kind)
            for index, (name, kind, _) in enumerate(_abi.METRICS)}
_OTHERS = {
    "t_ns": word_of("t_ns"), "dt_ns": word_of("dt_ns"), "start_ns": word_of("start_ns"),
}
COLUMNS = ("type", "pid", "start_ns", "name", "ppid", "session_id", "user", "cgroup", "cmdline", "tid",
           "thread_name", "t_ns", "dt_ns", "source", "complete", *MEASURED_NAMES)


def _text_at(pointer: int) -> Optional[str]:
    return ctypes.string_at(pointer).decode("utf-8", "replace") if pointer else None


def rows_at(address: int, count: int, stride: int) -> bytes:
    """Copies `count` rows that are `stride` bytes apart; each has our size then."""
    size = _native.SAMPLE_SIZE
    raw = ctypes.string_at(address, count * stride)
    if stride == size:
        return raw
    known = min(stride, size)
    return b"".join(raw[at:at + known].ljust(size, b"\0") for at in range(0, count * stride, stride))


class Texts(Dict[int, Optional[str]]):
    """Strings by their address at the time of the copy; each is decoded on its first access."""

    __slots__ = ("_raw", "_base")

    def __init__(self, raw: bytes, base: int) -> None:
        super().__init__()
        self[0] = None
        self._raw = raw
        self._base = base

    def __missing__(self, pointer: int) -> str:
        begin = pointer - self._base
        text = self._raw[begin:self._raw.index(0, begin)].decode("utf-8", "replace")
        self[pointer] = text
        return text


class Batch(Sequence["Sample"]):
    """Samples in order of arrival; a sequence of `Sample`.

    Example:

        with etwatch.watch(hz=100) as w:
            for batch in w.batches(duration=1):
                print(len(batch), sum(filter(None, batch.column("cpu_ns"))), batch[0].name)
    """

    __slots__ = ("raw", "words", "halves", "signed", "reals", "texts", "rows")

    def __init__(self, raw: bytes, texts: Dict[int, Optional[str]]) -> None:
        view = memoryview(raw)
        self.raw = raw
        self.words = view.cast("Q")
        self.halves = view.cast("I")
        self.signed = view.cast("q")
        self.reals = view.cast("d")
        self.texts = texts
        self.rows = len(raw) // _native.SAMPLE_SIZE

    @classmethod
    def take(cls, address: int, count: int, stride: int) -> "Batch":
        """Copies rows and their strings; the library may reuse its memory afterwards."""
        raw = rows_at(address, count, stride)
        words = memoryview(raw).cast("Q")
        pointers = {pointer for place in _TEXTS for pointer in words[place::WORDS].tolist()}
        return cls(raw, {pointer: _text_at(pointer) for pointer in pointers})

    def __len__(self) -> int:
        return self.rows

    @overload
    def __getitem__(self, index: int) -> "Sample": ...
    @overload
    def __getitem__(self, index: slice) -> "Batch": ...
    def __getitem__(self, index: Union[int, slice]) -> Union["Sample", "Batch"]:
        if isinstance(index, slice):
            begin, end, step = index.indices(self.rows)
            if step != 1:
                raise ValueError("step: a slice of a batch must have step 1")
            size = _native.SAMPLE_SIZE
            return Batch(self.raw[begin * size:max(begin, end) * size], self.texts)
        if index < 0:
            index += self.rows
        if not 0 <= index < self.rows:
            raise IndexError("index: not in the batch")
        return Sample(self, index)

    def __iter__(self) -> Iterator["Sample"]:
        return (Sample(self, index) for index in range(self.rows))

    def column(self, name: str) -> List[Any]:
        """One value per sample; None if it is unknown.

        Example:

            for batch in w.batches(duration=1):
                print(batch.column("pid"), batch.column("cpu_ns"))
        """
        if name in _METRICS:
            has, bit, place, kind = _METRICS[name]
            view: Any = {"double": self.reals, "int64_t": self.signed}.get(kind, self.words)
            values = view[place::WORDS].tolist()
            masks = self.words[has::WORDS].tolist()
            return [value if mask & bit else None for value, mask in zip(values, masks)]
        if name in _OTHERS:
            return self.words[_OTHERS[name]::WORDS].tolist()
        if name == "pid":
            pids = self.halves[PID::HALVES].tolist()
            return [-1 if pid == OTHER else pid for pid in pids] if OTHER in pids else pids
        if name not in COLUMNS:
            raise KeyError(name)
        return [getattr(sample, name) for sample in self]

    def masks(self) -> List[int]:
        """The known metrics of each row, a bit for each in the order of METRIC_NAMES.

        Example:

            for batch in w.batches():
                print(batch.masks())
        """
        masks = self.words[HAS::WORDS].tolist()
        for word in range(1, _HAS_WORDS):
            more = self.words[HAS + word::WORDS].tolist()
            masks = [low | high << 64 * word for low, high in zip(masks, more)]
        return masks

    def types(self) -> List[int]:
        """The type of each row.

        Example:

            for batch in w.batches():
                print(batch.types())
        """
        return self.halves[TYPE::HALVES].tolist()

    def of_type(self, kind: int) -> List[int]:
        """The indexes of the rows of one type.

        Example:

            for batch in w.batches():
                print(batch.of_type(batch.types()[0]))
        """
        return [row for row, found in enumerate(self.types()) if found == kind]

    def __repr__(self) -> str:
        return f"<Batch of {self.rows} samples>"


def join(batches: Sequence[Batch]) -> Batch:
    """Joins batches. Equal pointers of different batches may mean different strings, so they are renumbered."""
    if len(batches) == 1:
        return batches[0]
    raw = bytearray(b"".join(batch.raw for batch in batches))
    words = memoryview(raw).cast("Q")
    numbers: Dict[Optional[str], int] = {None: 0}
    row = 0
    for batch in batches:
        for _ in range(batch.rows):
            for place in _TEXTS:
                text = batch.texts[words[row + place]]
                words[row + place] = numbers.setdefault(text, len(numbers))
            row += WORDS
    words.release()
    return Batch(bytes(raw), {number: text for text, number in numbers.items()})


class Sample:
    """What one process or thread did in one interval; unknown values are None.

    Attributes have the names of the output: `pid`, `name`, `t_ns`, `cpu_percent`, `rss_bytes`, ...
    `type` is "start", "exit", "sample" or "thread".

    Example:

        with etwatch.watch(pid, hz=100, duration=1) as w:
            for sample in w:
                print(sample.t_ns, sample.name, sample.cpu_percent, sample.rss_bytes)
    """

    __slots__ = ("_batch", "_row")

    def __init__(self, batch: Batch, row: int) -> None:
        self._batch = batch
        self._row = row

    @property
    def type(self) -> str:
        """"start", "exit", "sample" or "thread"."""
        return TYPES.get(self._batch.halves[self._row * HALVES + TYPE], "?")

    @property
    def source(self) -> str:
        """Where it comes from: "etw", "etl", "ebpf" or "poll"."""
        return SOURCES.get(self._batch.halves[self._row * HALVES + _SOURCE], "?")

    @property
    def complete(self) -> bool:
        """False if events that belong to the interval were lost."""
        return bool(self._flags & _abi.ETWATCH_SAMPLE_COMPLETE)

    @property
    def preexisting(self) -> bool:
        """Whether this is the start of a process that existed before monitoring began."""
        return bool(self._flags & _abi.ETWATCH_SAMPLE_PREEXISTING)

    @property
    def _flags(self) -> int:
        return self._batch.halves[self._row * HALVES + FLAGS]

    @property
    def pid(self) -> int:
        """The process id; -1 in the sample for all processes that are not among the top N."""
        pid = self._batch.halves[self._row * HALVES + PID]
        return pid if pid != OTHER else -1

    @property
    def tid(self) -> Optional[int]:
        """The thread id; None for a process."""
        return self._batch.halves[self._row * HALVES + _TID] or None if self.type == "thread" else None

    @property
    def others(self) -> Optional[int]:
        """The number of processes in a sample with pid -1; None for a sample of one process."""
        return self._batch.halves[self._row * HALVES + _TID] if self._flags & _abi.ETWATCH_SAMPLE_OTHER else None

    @property
    def ppid(self) -> Optional[int]:
        """The id of the parent process; None if it is unknown."""
        return self._batch.halves[self._row * HALVES + _PPID] if self._flags & _abi.ETWATCH_SAMPLE_HAS_PPID else None

    @property
    def session_id(self) -> Optional[int]:
        """The session; None if it is unknown."""
        known = self._flags & _abi.ETWATCH_SAMPLE_HAS_SESSION
        return self._batch.halves[self._row * HALVES + _SESSION] if known else None

    @property
    def start_ns(self) -> int:
        """When the process started: Unix time; 0 if it is unknown."""
        return self._batch.words[self._row * WORDS + START_NS]

    @property
    def t_ns(self) -> int:
        """The end of the interval: Unix time."""
        return self._batch.words[self._row * WORDS + T_NS]

    @property
    def dt_ns(self) -> int:
        """The length of the interval."""
        return self._batch.words[self._row * WORDS + _DT_NS]

    @property
    def has(self) -> int:
        """One bit per known metric, in the order of METRIC_NAMES."""
        words = self._batch.words[self._row * WORDS + HAS:][:_HAS_WORDS]
        return sum(word << 64 * place for place, word in enumerate(words))

    def _text(self, place: int) -> Optional[str]:
        return self._batch.texts[self._batch.words[self._row * WORDS + place]]

    name = property(lambda self: self._text(_TEXTS[0]), doc="name of the process")
    thread_name = property(lambda self: self._text(_TEXTS[1]), doc="only of type thread")
    user = property(lambda self: self._text(_TEXTS[2]), doc="name of its user; None if it is unknown")
    cgroup = property(lambda self: self._text(_TEXTS[3]), doc="its control group (Linux); None if it is unknown")
    cmdline = property(lambda self: self._text(_TEXTS[4]), doc="only with command_lines=True")

    def get(self, name: str) -> Any:
        """A metric by name; None if it is unknown.

        Example:

            for sample in w:
                print(sample.get("cpu_ns"))
        """
        if name not in _METRICS:
            raise KeyError(name)
        return getattr(self, name)

    def as_dict(self) -> Dict[str, Any]:
        """All columns by name.

        Example:

            for sample in w:
                print(sample.as_dict())
        """
        return {name: getattr(self, name) for name in COLUMNS}

    def __getattr__(self, name: str) -> Any:
        # Metrics are properties, added below. This method serves the type checker and gives a clear message.
        raise AttributeError(f"a sample has no {name!r}")

    def __repr__(self) -> str:
        known = [f"{name}={getattr(self, name)!r}" for name in ("pid", "tid", "name", "t_ns", "cpu_percent")
                 if getattr(self, name) is not None]
        return f"<{self.type} {' '.join(known)}>"


_SOURCE, _TID, _PPID, _SESSION = (half_of(name) for name in ("source", "tid", "ppid", "session_id"))
_DT_NS = word_of("dt_ns")


def _metric(has: int, bit: int, place: int, kind: str) -> Callable[[Sample], Any]:
    view = {"double": "reals", "int64_t": "signed"}.get(kind, "words")

    def get(self: Sample) -> Any:
        batch = self._batch
        row = self._row * WORDS
        return getattr(batch, view)[row + place] if batch.words[row + has] & bit else None
    return get


def _meaning(index: int) -> str:
    info = _native.sized(_abi.MetricInfo)
    _native.lib.etwatch_metric_info(index, ctypes.byref(info))
    return f"{_native.text(info.help) or ''}; None if it is unknown"


for _index, (_name, (_has, _bit, _place, _kind)) in enumerate(_METRICS.items()):
    setattr(Sample, _name, property(_metric(_has, _bit, _place, _kind), doc=_meaning(_index)))
