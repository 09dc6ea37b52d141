# SPDX-License-Identifier: MIT
"""MetricSample and ProcessMetrics: the measured values under the names that the first users specified.

A row of the library (one process, one interval) becomes several MetricSamples, one per known metric. They are made
on access. For each set of known metrics one function is compiled that makes all of them, which keeps delivery one at
a time affordable.
"""
import os
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

from . import _abi
from ._batch import FLAGS, HALVES, METRIC_NAMES, NAME, OTHER, PID, T_NS, TYPE, WORDS, Batch, Sample, word_of

__all__ = ["MetricSample", "ProcessMetrics", "ALIASES", "MetricList"]

Number = Union[int, float]


class MetricSample(NamedTuple):
    """One value of one metric of one process. A counter is what happened in the interval that ended at `timestamp`
    (seconds since 1970). pid -1 stands for all processes that are not among the max_processes busiest. `complete` is
    False if events that belong to the interval were lost.

    Example:

        def on_sample(sample):
            if sample.metric_name == "process_cpu_percent":
                print(sample.timestamp, sample.pid, sample.value, sample.unit)

        monitor.register_callback(on_sample)
    """

    timestamp: float
    metric_name: str
    value: Number
    unit: str
    pid: int
    process_name: Optional[str]
    complete: bool = True


class Alias(NamedTuple):
    """A name of the users in terms of our metrics: their sum times a factor."""

    name: str
    metrics: Tuple[str, ...]
    factor: float
    unit: str


_MB = 1 / (1024 * 1024)


def _total_memory() -> Optional[int]:
    if sys.platform == "win32":
        from ._system import memory
        return memory()[0]
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None


_TOTAL = _total_memory()

_STREAM: List[Alias] = [
    Alias("process_cpu_percent", ("cpu_percent",), 1, "%"),
    Alias("process_memory_rss_mb", ("rss_bytes",), _MB, "MB"),
    Alias("process_memory_vms_mb", ("virtual_bytes",), _MB, "MB"),
    Alias("process_memory_private_mb", ("private_bytes",), _MB, "MB"),
    Alias("process_threads", ("threads",), 1, "count"),
    Alias("process_handles", ("handles",), 1, "count"),
    Alias("process_context_switches", ("switches_voluntary", "switches_involuntary"), 1, "count"),
    Alias("process_page_faults", ("faults_minor", "faults_major"), 1, "count"),
    Alias("process_io_read_bytes", ("io_read_bytes",), 1, "bytes"),
    Alias("process_io_write_bytes", ("io_write_bytes",), 1, "bytes"),
    Alias("process_io_read_count", ("io_read_ops",), 1, "count"),
    Alias("process_io_write_count", ("io_write_ops",), 1, "count"),
    Alias("process_gpu_percent", ("gpu_percent",), 1, "%"),
    Alias("process_gpu_memory_mb", ("gpu_memory_bytes",), _MB, "MB"),
    Alias("process_npu_percent", ("npu_percent",), 1, "%"),
    Alias("process_energy_uj", ("energy_uj",), 1, "uJ"),
]
if _TOTAL:
    _STREAM.insert(3, Alias("process_memory_percent", ("rss_bytes",), 100 / _TOTAL, "%"))

# The stream has those above; these are for summaries.
_SUMMARY: List[Alias] = [
    Alias("process_cpu_time_ms", ("cpu_ns",), 1e-6, "ms"),
    Alias("process_cpu_user_ms", ("cpu_user_ns",), 1e-6, "ms"),
    Alias("process_cpu_kernel_ms", ("cpu_kernel_ns",), 1e-6, "ms"),
    Alias("process_memory_peak_mb", ("rss_peak_bytes",), _MB, "MB"),
    Alias("process_hard_faults", ("faults_major",), 1, "count"),
    Alias("process_disk_read_bytes", ("disk_read_bytes",), 1, "bytes"),
    Alias("process_disk_write_bytes", ("disk_write_bytes",), 1, "bytes"),
    Alias("process_net_received_bytes", ("net_received_bytes",), 1, "bytes"),
    Alias("process_net_sent_bytes", ("net_sent_bytes",), 1, "bytes"),
]
_BY_NAME = {alias.name: alias for alias in [*_STREAM, *_SUMMARY]}
# Names of the users to ours.
ALIASES: Dict[str, Tuple[str, ...]] = {alias.name: alias.metrics for alias in _BY_NAME.values()}

_BITS = {name: 1 << bit for bit, name in enumerate(METRIC_NAMES)}
_KINDS = {name: kind for name, kind, _ in _abi.METRICS}
_STREAM_BITS = 0
for _alias in _STREAM:
    for _name in _alias.metrics:
        _STREAM_BITS |= _BITS[_name]

_Maker = Callable[[Any, Any, int, float, int, Optional[str], bool], Tuple[MetricSample, ...]]
_makers: Dict[int, Tuple[int, _Maker]] = {}


def _known(mask: int) -> List[Alias]:
    return [alias for alias in _STREAM if all(mask & _BITS[name] for name in alias.metrics)]


def _expression(alias: Alias) -> str:
    parts = [f"{'reals' if _KINDS[name] == 'double' else 'words'}[row + {word_of(name)}]" for name in alias.metrics]
    total = " + ".join(parts)
    return total if alias.factor == 1 else f"({total}) * {alias.factor!r}"


def _maker(mask: int) -> Tuple[int, _Maker]:
    """(number of MetricSamples, function that makes them) for rows in which these metrics are known."""
    mask &= _STREAM_BITS
    made = _makers.get(mask)
    if made is None:
        known = _known(mask)
        rows = "".join(f"        new(kind, (t, {alias.name!r}, {_expression(alias)}, {alias.unit!r}, pid, name, "
                       "complete)),\n" for alias in known)
        code = ("def make(words, reals, row, t, pid, name, complete, new=tuple.__new__, kind=MetricSample):\n"
                f"    return (\n{rows}    )\n")
        space: Dict[str, Any] = {"MetricSample": MetricSample}
        exec(compile(code, "<etwatch samples>", "exec"), space)  # code from our own tables only
        made = _makers[mask] = (len(known), space["make"])
    return made


_COMPLETE = _abi.ETWATCH_SAMPLE_COMPLETE
_SAMPLE = _abi.ETWATCH_TYPE_SAMPLE


def rows_of(batch: Batch, wanted: int = -1) -> Iterator[Tuple[MetricSample, ...]]:
    """The MetricSamples of each row of type sample, restricted to the wanted metrics."""
    words, reals, halves, texts = batch.words, batch.reals, batch.halves, batch.texts
    row, half = 0, 0
    wanted &= _STREAM_BITS
    for kind, mask in zip(halves[TYPE::HALVES].tolist(), batch.masks()):
        if kind == _SAMPLE:
            mask &= wanted
            made = _makers.get(mask) or _maker(mask)
            pid, name = halves[half + PID], texts[words[row + NAME]]
            if pid == OTHER:
                pid, name = -1, "(others)"
            yield made[1](words, reals, row, words[row + T_NS] / 1e9, pid, name,
                          bool(halves[half + FLAGS] & _COMPLETE))
        row += WORDS
        half += HALVES


_counts: Dict[int, int] = {}


def count_of(batch: Batch, wanted: int = -1) -> int:
    """The number of MetricSamples in the batch, without making them."""
    wanted &= _STREAM_BITS
    masks = batch.masks()
    kinds = batch.types()
    if kinds.count(_SAMPLE) != len(kinds):
        masks = [mask for mask, kind in zip(masks, kinds) if kind == _SAMPLE]
    total = 0
    for mask, number in Counter(masks).items():
        mask &= wanted
        count = _counts.get(mask)
        if count is None:
            count = _counts[mask] = len(_known(mask))
        total += count * number
    return total


class MetricList(List[MetricSample]):
    """The MetricSamples of a batch: a list that is filled on its first access.

    `samples` has the same data as a `Batch`, for columns without objects. `len()` counts without filling the list.
    """

    __slots__ = ("samples", "_length", "_wanted")

    def __init__(self, batch: Optional[Batch] = None, wanted: int = -1) -> None:
        super().__init__()
        self._wanted = wanted
        self.samples: Optional[Batch] = batch
        self._length: Optional[int] = None if batch is not None else -1

    def _fill(self) -> None:
        if self._length != -1:
            self._length = -1
            if self.samples is not None:
                extend = super().extend
                for made in rows_of(self.samples, self._wanted):
                    extend(made)

    def __len__(self) -> int:
        if self._length is None:
            assert self.samples is not None
            self._length = count_of(self.samples, self._wanted)
        return super().__len__() if self._length == -1 else self._length

    def __bool__(self) -> bool:
        return len(self) > 0

    def __reduce__(self) -> Any:
        return list, (list(self),)


def _filled(name: str) -> Callable[..., Any]:
    plain = getattr(list, name)

    def method(self: MetricList, *arguments: Any, **named: Any) -> Any:
        self._fill()
        for other in arguments:
            if isinstance(other, MetricList):
                other._fill()
        return plain(self, *arguments, **named)
    method.__name__ = name
    return method


for _name in ("__add__ __contains__ __delitem__ __eq__ __ge__ __getitem__ __gt__ __iadd__ __imul__ __iter__ __le__ "
              "__lt__ __mul__ __ne__ __repr__ __reversed__ __rmul__ __setitem__ append clear copy count extend index "
              "insert pop remove reverse sort").split():
    setattr(MetricList, _name, _filled(_name))


def _radd(self: MetricList, other: List[Any]) -> List[Any]:
    return [*other, *self]


setattr(MetricList, "__radd__", _radd)


# --------------------------------------------------------------------------- ProcessMetrics


@dataclass
class ProcessMetrics:
    """The current values of one process; None means unknown. Counters are totals since the process started.
    thread_cpu_cycles, by tid, counts since monitoring began; None if the source cannot measure it.

    Example:

        metrics = monitor.get_process_metrics(pid)
        print(metrics.cpu_percent, metrics.working_set_size, metrics.thread_count)
    """

    pid: int = 0
    name: Optional[str] = None
    parent_pid: Optional[int] = None
    session_id: Optional[int] = None
    create_time: Optional[float] = None
    exit_time: Optional[float] = None
    exit_code: Optional[int] = None
    command_line: Optional[str] = None
    cpu_percent: Optional[float] = None
    cpu_cycles: Optional[int] = None
    kernel_time: Optional[float] = None
    user_time: Optional[float] = None
    context_switches: Optional[int] = None
    priority: Optional[int] = None
    affinity_mask: Optional[int] = None
    working_set_size: Optional[int] = None
    private_bytes: Optional[int] = None
    virtual_bytes: Optional[int] = None
    page_faults: Optional[int] = None
    hard_faults: Optional[int] = None
    peak_working_set: Optional[int] = None
    paged_pool: Optional[int] = None
    non_paged_pool: Optional[int] = None
    thread_count: Optional[int] = None
    thread_ids: Optional[List[int]] = None
    active_threads: Optional[int] = None
    suspended_threads: Optional[int] = None
    thread_cpu_cycles: Optional[Dict[int, int]] = None
    thread_states: Optional[Dict[str, int]] = None
    read_operations: Optional[int] = None
    write_operations: Optional[int] = None
    other_operations: Optional[int] = None
    read_bytes: Optional[int] = None
    write_bytes: Optional[int] = None
    io_priority: Optional[int] = None
    handle_count: Optional[int] = None
    gdi_objects: Optional[int] = None
    user_objects: Optional[int] = None
    peak_handle_count: Optional[int] = None
    gpu_percent: Optional[float] = None
    gpu_memory_bytes: Optional[int] = None
    npu_percent: Optional[float] = None
    energy_uj: Optional[int] = None
    complete: bool = field(default=True)


class MetricTable(Dict[str, Dict[str, Number]]):
    """Statistics by metric, in a summary. It is a dict by our names; a name of the users (`process_cpu_percent`) is found
    too, in the unit of that name, by indexing, `in` and `get`. It does not appear in the iteration.

    Example:

        table = monitor.get_process_summary()[pid]["metrics"]
        table["cpu_percent"]["p95"], table["process_context_switches"]["average"]
    """

    def __init__(self, metrics: Dict[str, Dict[str, Number]],
                 sums: Optional[Dict[Tuple[str, ...], Dict[str, Number]]] = None) -> None:
        super().__init__(metrics)
        self._sums = sums or {}

    def _of(self, name: object) -> Optional[Dict[str, Number]]:
        alias = _BY_NAME.get(name) if isinstance(name, str) else None
        if alias is None:
            return None
        found = super().get(alias.metrics[0]) if len(alias.metrics) == 1 else self._sums.get(alias.metrics)
        if found is None or alias.factor == 1:
            return found
        return {key: value if key == "intervals" else value * alias.factor for key, value in found.items()}

    def __missing__(self, name: str) -> Dict[str, Number]:
        found = self._of(name)
        if found is None:
            raise KeyError(name)
        return found

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or self._of(name) is not None

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default


class TotalTable(Dict[str, int]):
    """Totals by metric, in a summary; a name of the users is found as in MetricTable.

    Example:

        totals = monitor.get_process_summary()[pid]["totals"]
        totals["cpu_ns"], totals["process_cpu_time_ms"]
    """

    def _of(self, name: object) -> Optional[Number]:
        alias = _BY_NAME.get(name) if isinstance(name, str) else None
        if alias is None or not all(dict.__contains__(self, metric) for metric in alias.metrics):
            return None
        total = sum(dict.__getitem__(self, metric) for metric in alias.metrics)
        return total if alias.factor == 1 else total * alias.factor

    def __missing__(self, name: str) -> Any:
        found = self._of(name)
        if found is None:
            raise KeyError(name)
        return found

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or self._of(name) is not None

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default


def exit_code_of(sample: Sample) -> Optional[int]:
    """The exit code as in subprocess: the status, or minus the signal that killed the process."""
    signal = sample.exit_signal
    code = -signal if signal else sample.exit_code
    return code if code is None else int(code)


def _sum(values: Sequence[Optional[int]]) -> Optional[int]:
    return None if any(value is None for value in values) else sum(value for value in values if value is not None)


def _ms(nanoseconds: Optional[int]) -> Optional[float]:
    return None if nanoseconds is None else nanoseconds / 1e6


class _Both:
    """Metrics of the totals; gauges that are unknown there come from the latest sample."""

    def __init__(self, totals: Sample, latest: Optional[Sample]) -> None:
        self._totals = totals
        self._latest = latest

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._totals, name)
        if value is None and self._latest is not None and name in _GAUGES:
            value = getattr(self._latest, name)
        return value


_GAUGES = {name for name, _, kind in _abi.METRICS if kind == "gauge"}


def _states(known: _Both) -> Optional[Dict[str, int]]:
    states = {state: getattr(known, f"threads_{state}") for state in ("running", "ready", "waiting", "suspended")}
    found = {state: count for state, count in states.items() if count is not None}
    return found or None


def process_metrics(totals: Sample, latest: Optional[Sample] = None,
                    thread_ids: Optional[List[int]] = None) -> ProcessMetrics:
    """Makes ProcessMetrics from totals (a snapshot or an exit) and, for momentary values, the latest sample if any."""
    ended = totals.exit_ns
    known = _Both(totals, latest)
    now = latest or totals
    return ProcessMetrics(
        pid=totals.pid, name=totals.name, parent_pid=totals.ppid, session_id=totals.session_id,
        create_time=totals.start_ns / 1e9 if totals.start_ns else None,
        exit_time=None if ended is None else ended / 1e9, exit_code=exit_code_of(totals), command_line=totals.cmdline,
        cpu_percent=now.cpu_percent, cpu_cycles=totals.cycles,
        kernel_time=_ms(totals.cpu_kernel_ns), user_time=_ms(totals.cpu_user_ns),
        context_switches=_sum((totals.switches_voluntary, totals.switches_involuntary)),
        priority=known.priority, affinity_mask=known.affinity,
        working_set_size=known.rss_bytes, private_bytes=known.private_bytes, virtual_bytes=known.virtual_bytes,
        page_faults=_sum((totals.faults_minor, totals.faults_major)), hard_faults=totals.faults_major,
        peak_working_set=known.rss_peak_bytes, paged_pool=known.pool_paged_bytes,
        non_paged_pool=known.pool_nonpaged_bytes,
        thread_count=known.threads, thread_ids=thread_ids, active_threads=known.threads_running,
        suspended_threads=known.threads_suspended, thread_states=_states(known),
        read_operations=totals.io_read_ops, write_operations=totals.io_write_ops,
        other_operations=totals.io_other_ops, read_bytes=totals.io_read_bytes, write_bytes=totals.io_write_bytes,
        io_priority=known.io_priority, handle_count=known.handles, gdi_objects=known.gdi_objects,
        user_objects=known.user_objects, peak_handle_count=known.handles_peak,
        gpu_percent=now.gpu_percent, gpu_memory_bytes=known.gpu_memory_bytes, npu_percent=now.npu_percent,
        energy_uj=totals.energy_uj, complete=totals.complete)
