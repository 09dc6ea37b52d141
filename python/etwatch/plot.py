# SPDX-License-Identifier: MIT
"""Plots of tables and runs; needs matplotlib.

    table.plot("cpu")          CPU over time, by thread or process, stacked
    table.plot("memory")       resident memory by process
    table.plot("io")           bytes read and written a second
    table.plot("schedule")     what ran when: one strip per thread or, from scheduler events, one per CPU
    etwatch.plot.plot_run(r)   all plots of a run in one figure

Samples are sparse: in an interval without a sample nothing ran, and it is drawn as such. Unknown values are not
drawn; they are never drawn as 0.
"""
import os
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from .table import Table, _needed

KINDS = ("cpu", "memory", "io", "schedule")
_BINS = 400
_READ, _WRITE = ("io_read_bytes", "disk_read_bytes"), ("io_write_bytes", "disk_write_bytes")

Key = Tuple[Any, ...]


class _Series(NamedTuple):
    label: str
    begin: List[int]  # ns
    end: List[int]
    value: List[float]


def plot_table(table: Table, kind: Optional[str] = None, *, top: int = 10, ax: Any = None) -> Any:
    """Plots a table and returns the matplotlib axes; makes them if `ax` is None.

    kind: one of KINDS; None selects one that fits the table. top: the number of threads or processes that are drawn
    separately, busiest first; the others are drawn as one.
    """
    kind = kind or _default_kind(table)
    if kind not in KINDS:
        raise ValueError(f"kind: one of {', '.join(KINDS)}, not {kind!r}")
    if isinstance(top, bool) or not isinstance(top, int) or top < 1:
        raise ValueError(f"top: 1 or more, not {top!r}")
    if ax is None:
        ax = _needed("matplotlib.pyplot").subplots(figsize=(9, 3), layout="constrained")[1]
    draw = {"cpu": _cpu, "memory": _memory, "io": _io, "schedule": _schedule}[kind]
    draw(table, ax, top)
    return ax


def plot_run(result: Any, *, top: int = 10) -> Any:
    """A figure with CPU by thread, memory, I/O and the schedule of a run, on one time axis."""
    pyplot = _needed("matplotlib.pyplot")
    threads = result.thread_samples
    by = threads if len(threads) else result.samples
    parts = [(by, "cpu"), (result.samples, "memory"), (result.samples, "io"), (by, "schedule")]
    figure, axes = pyplot.subplots(len(parts), 1, figsize=(9, 9), sharex=True, layout="constrained",
                                   height_ratios=[3, 2, 2, 3])
    for (table, kind), ax in zip(parts, axes):
        plot_table(table, kind, top=top, ax=ax)
        if ax is not axes[-1]:
            ax.set_xlabel("")
    figure.suptitle(_title(result))
    return figure


def _title(result: Any) -> str:
    words = [os.path.basename(str(result.command[0])), *map(str, result.command[1:])]
    name = " ".join(" ".join(words).split())
    name = name if len(name) <= 60 else name[:57] + "..."
    return f"{name}: {result.duration:.3f} s, status {result.status}, source {result.backend}"


def _default_kind(table: Table) -> str:
    names = set(table.columns)
    if "next_tid" in names:
        return "schedule"
    if {"t_ns", "dt_ns", "cpu_ns"} <= names:
        return "cpu"
    raise ValueError(f"{table.name}: neither samples nor scheduler events; there is nothing to draw over time")


# -------------------------------------------------------------------------------- series

def _need(table: Table, *names: str) -> None:
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise ValueError(f"{table.name}: no column {', '.join(missing)} to draw from")


def _first(table: Table, names: Sequence[str]) -> str:
    """The first of these columns that has any value."""
    for name in names:
        if name in table.columns and any(value is not None for value in table[name]):
            return name
    return names[0]


def _keys(table: Table) -> Tuple[List[Key], Dict[Key, str]]:
    """The process or thread of each row, and the label of each."""
    columns = table.columns
    threads = "tid" in columns and "thread_name" in columns
    pids, starts, names = table["pid"], table["start_ns"], table["name"]
    keys: List[Key] = list(zip(pids, starts))
    labels: Dict[Key, str] = {}
    if threads:
        tids, titles = table["tid"], table["thread_name"]
        keys = [key + (tid,) for key, tid in zip(keys, tids)]
        for key, title, name in zip(keys, titles, names):
            labels[key] = f"{title or name or '?'} {key[2]}"
    else:
        for key, name in zip(keys, names):
            labels[key] = f"{name or '?'} {key[0]}"
    return keys, labels


def _series(table: Table, column: str) -> List[_Series]:
    """One series per thread or process that has a value, largest sum first."""
    _need(table, "t_ns", "dt_ns", "pid", "start_ns", "name", column)
    keys, labels = _keys(table)
    found: Dict[Key, _Series] = {}
    for key, end, length, value in zip(keys, table["t_ns"], table["dt_ns"], table[column]):
        if value is None:
            continue
        one = found.setdefault(key, _Series(labels[key], [], [], []))
        one.begin.append(end - length)
        one.end.append(end)
        one.value.append(value)
    return sorted(found.values(), key=lambda one: sum(one.value), reverse=True)


def _span(table: Table) -> Tuple[int, int]:
    _need(table, "t_ns", "dt_ns")
    ends, lengths = table["t_ns"], table["dt_ns"]
    if not ends:
        return 0, 1
    begin = min(end - length for end, length in zip(ends, lengths))
    return begin, max(max(ends), begin + 1)


def _grid(table: Table) -> Tuple[Any, int]:
    """(edges of the bins in ns, start). A bin is a whole number of intervals, so that none is empty by accident."""
    import numpy
    begin, end = _span(table)
    lengths = sorted(table["dt_ns"]) or [1]
    usual = max(1, lengths[len(lengths) // 2])
    per_bin = max(1, -(-(end - begin) // (usual * _BINS)))
    width = per_bin * usual
    return begin + numpy.arange(0, (end - begin) // width + 2, dtype=numpy.int64) * width, begin


def _binned(numpy: Any, series: _Series, edges: Any) -> Any:
    """The sum in each bin; an interval across an edge is divided by time."""
    width = int(edges[1] - edges[0])
    begin, end = numpy.array(series.begin, dtype=numpy.int64), numpy.array(series.end, dtype=numpy.int64)
    value = numpy.array(series.value, dtype=float)
    total = numpy.zeros(len(edges) - 1)
    first, last = (begin - edges[0]) // width, (numpy.maximum(end - 1, begin) - edges[0]) // width
    inside = first == last
    numpy.add.at(total, numpy.clip(first[inside], 0, len(total) - 1), value[inside])
    for b, e, v, i, j in zip(begin[~inside], end[~inside], value[~inside], first[~inside], last[~inside]):
        for k in range(int(i), min(int(j), len(total) - 1) + 1):
            low, high = max(int(b), int(edges[k])), min(int(e), int(edges[k + 1]))
            total[k] += v * max(0, high - low) / (int(e) - int(b))
    return total


def _top(series: List[_Series], top: int) -> Tuple[List[_Series], List[_Series]]:
    return series[:top], series[top:]


def _merged(series: List[_Series]) -> _Series:
    rest = _Series(f"{len(series)} others", [], [], [])
    for one in series:
        rest.begin.extend(one.begin)
        rest.end.extend(one.end)
        rest.value.extend(one.value)
    return rest


# -------------------------------------------------------------------------------- pictures

def _finish(ax: Any, unit: str, title: str, legend: bool = True) -> None:
    ax.set_xlabel("seconds")
    ax.set_ylabel(unit)
    ax.set_title(title, loc="left", fontsize="medium")
    ax.margins(x=0)
    handles, labels = ax.get_legend_handles_labels()
    if legend and handles:
        ax.legend(handles, labels, loc="center left", bbox_to_anchor=(1, 0.5), fontsize="small", frameon=False)


def _cpu(table: Table, ax: Any, top: int) -> None:
    import numpy
    edges, begin = _grid(table)
    shown, rest = _top(_series(table, "cpu_ns"), top)
    shown += [_merged(rest)] if rest else []
    width = float(edges[1] - edges[0])
    seconds = (edges[:-1] - begin) / 1e9
    if shown:
        rows = [100 * _binned(numpy, one, edges) / width for one in shown]
        ax.stackplot(seconds, rows, labels=[one.label for one in shown], step="post", linewidth=0)
    ax.set_ylim(bottom=0)
    kind = "thread" if "thread_name" in table.columns else "process"
    _finish(ax, "% of a core", f"CPU by {kind}")


def _memory(table: Table, ax: Any, top: int) -> None:
    begin, _ = _span(table)
    shown, _rest = _top(_series(table, "rss_bytes"), top)
    for one in shown:
        ax.plot([(end - begin) / 1e9 for end in one.end], [value / 2**20 for value in one.value],
                label=one.label, drawstyle="steps-post")
    ax.set_ylim(bottom=0)
    _finish(ax, "MiB", "resident memory")


def _io(table: Table, ax: Any, top: int) -> None:
    import numpy
    edges, begin = _grid(table)
    seconds, width = (edges[:-1] - begin) / 1e9, float(edges[1] - edges[0]) / 1e9
    for names, label in ((_READ, "read"), (_WRITE, "written")):
        column = _first(table, names)
        series = _series(table, column) if column in table.columns else []
        if series:
            total = _binned(numpy, _merged(series), edges)
            ax.step(seconds, total / width / 2**20, where="post",
                    label=label + (" (disk)" if column.startswith("disk") else ""))
    ax.set_ylim(bottom=0)
    _finish(ax, "MiB/s", "I/O")


def _schedule(table: Table, ax: Any, top: int) -> None:
    if "next_tid" in table.columns:
        _schedule_of_events(table, ax, top)
    else:
        _schedule_of_samples(table, ax, top)


def _schedule_of_samples(table: Table, ax: Any, top: int) -> None:
    """One strip per thread: the darker, the larger the share of time in which it ran."""
    import numpy
    edges, begin = _grid(table)
    shown = [one for one in _series(table, "cpu_ns") if sum(one.value) > 0][:top]
    width = float(edges[1] - edges[0])
    if shown:
        rows = numpy.array([numpy.minimum(1.0, _binned(numpy, one, edges) / width) for one in shown])
        ax.imshow(rows, aspect="auto", interpolation="nearest", cmap="Blues", vmin=0, vmax=1,
                  extent=(0, float(edges[-1] - begin) / 1e9, len(shown), 0))
    ax.set_yticks([i + 0.5 for i in range(len(shown))], [one.label for one in shown], fontsize="small")
    _finish(ax, "", "schedule", legend=False)


def _schedule_of_events(table: Table, ax: Any, top: int) -> None:
    """One strip per CPU: the thread on it, from switch to switch."""
    runs = _runs(table)
    totals: Dict[int, int] = {}
    for _cpu_number, tid, begin, end in runs:
        totals[tid] = totals.get(tid, 0) + end - begin
    busiest = sorted(totals, key=lambda tid: totals[tid], reverse=True)[:top]
    names = {tid: name for tid, name in zip(table["tid"], table["name"]) if name}
    start = min((begin for _, _, begin, _ in runs), default=0)
    cpus = sorted({cpu for cpu, _, _, _ in runs})
    lanes = {cpu: i for i, cpu in enumerate(cpus)}
    bars: Dict[Tuple[Optional[int], int], List[Tuple[float, float]]] = {}
    for cpu, tid, begin, end in runs:
        shown = tid if tid in busiest else None
        bars.setdefault((shown, cpu), []).append(((begin - start) / 1e9, (end - begin) / 1e9))
    for rank, shown in enumerate([*busiest, None]):
        label: Optional[str] = "others" if shown is None else f"{names.get(shown, '?')} {shown}"
        for cpu in cpus:
            if (shown, cpu) in bars:
                ax.broken_barh(bars[shown, cpu], (lanes[cpu] - 0.4, 0.8), linewidth=0, label=label,
                               facecolor="0.8" if shown is None else f"C{rank % 10}")
                label = None  # one legend entry per thread
    ax.set_yticks(range(len(cpus)), [f"CPU {cpu}" for cpu in cpus], fontsize="small")
    ax.invert_yaxis()
    _finish(ax, "", "schedule")


def _runs(table: Table) -> List[Tuple[int, int, int, int]]:
    """(cpu, tid, begin, end) of each run of a thread between two switches on a CPU; without the idle thread."""
    _need(table, "t_ns", "cpu", "event", "tid", "next_tid", "name")
    since: Dict[int, Tuple[int, int]] = {}
    runs: List[Tuple[int, int, int, int]] = []
    for event, cpu, at, tid, following in zip(table["event"], table["cpu"], table["t_ns"], table["tid"],
                                              table["next_tid"]):
        if event != "switch":
            continue
        if cpu in since and since[cpu][0] == tid and tid:
            runs.append((cpu, tid, since[cpu][1], at))
        since[cpu] = (following, at)
    return runs
