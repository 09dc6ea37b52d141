# SPDX-License-Identifier: MIT
"""The figure of etwatch.onnx: latencies, the causes of each inference, and the threads of the slowest one."""
from typing import Any, Dict, List

from ._span_watch import CAUSES
from .table import _needed

_LABELS = {"work_ns": "work", "runq_wait_ns": "waiting for a CPU", "throttled_ns": "throttled", "fault_ns": "page faults",
           "disk_wait_ns": "disk", "lock_wait_ns": "another thread", "process_wait_ns": "another process",
           "sleep_ns": "asleep", "unknown_ns": "unknown"}
_COLORS = {"work_ns": "C0", "runq_wait_ns": "C3", "throttled_ns": "C1", "fault_ns": "C4", "disk_wait_ns": "C2", "lock_wait_ns": "C5",
           "process_wait_ns": "C6", "sleep_ns": "0.8", "unknown_ns": "0.5"}
_STATES = {"run": ("C0", "on a CPU"), "ready": ("C3", "waiting for a CPU"), "sleep": ("0.9", "asleep"),
           "disk": ("C2", "disk"), "fault": ("C4", "page fault")}
_BARS_MAX = 2000  # more are drawn as averages of neighbours


def _latencies(ax: Any, rows: List[Dict[str, Any]]) -> None:
    times = sorted(row["dt_ns"] / 1e6 for row in rows)
    ax.hist(times, bins=min(60, max(10, len(times) // 5)), color="C0")
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        at = times[min(len(times) - 1, int(share * len(times)))]
        ax.axvline(at, color="0.3", linestyle="--", linewidth=1)
        ax.annotate(f"{name} {at:.3g} ms", (at, 0.95), xycoords=("data", "axes fraction"), rotation=90, va="top", ha="right",
                    fontsize=8)
    ax.set_xlabel("latency (ms)")
    ax.set_ylabel("inferences")


def _causes(ax: Any, rows: List[Dict[str, Any]]) -> None:
    step = -(-len(rows) // _BARS_MAX)
    parts = [rows[i:i + step] for i in range(0, len(rows), step)]
    at = [i * step for i in range(len(parts))]
    bottom = [0.0] * len(parts)
    for name in CAUSES:
        heights = [sum(row[name] or 0 for row in part) / len(part) / 1e6 for part in parts]
        if any(heights):
            ax.bar(at, heights, width=step, bottom=bottom, color=_COLORS[name], label=_LABELS[name], align="edge")
            bottom = [low + height for low, height in zip(bottom, heights)]
    if not any(bottom):
        heights = [sum(row["dt_ns"] for row in part) / len(part) / 1e6 for part in parts]
        ax.bar(at, heights, width=step, color="0.7", label="causes are unknown", align="edge")
    ax.legend(fontsize=8, loc="upper right")
    ax.set_xlabel("inference")
    ax.set_ylabel("latency (ms)")


def _threads(ax: Any, w: Any, slowest: Dict[str, Any]) -> None:
    begun_ns = slowest["t_ns"] - slowest["dt_ns"]
    busy = {strip.tid for strip in w.strips if strip.state != "sleep"}
    tids = sorted(busy, key=lambda tid: (tid != slowest["tid"], tid))
    names = {strip.tid: strip.name for strip in w.strips}
    drawn = set()
    for row, tid in enumerate(tids):
        for state, (color, label) in _STATES.items():
            bars = [((strip.from_ns - begun_ns) / 1e6, (strip.to_ns - strip.from_ns) / 1e6)
                    for strip in w.strips if strip.tid == tid and strip.state == state]
            if bars:
                ax.broken_barh(bars, (row - 0.4, 0.8), facecolors=color, label=None if state in drawn else label)
                drawn.add(state)
    ax.set_xlim(0, slowest["dt_ns"] / 1e6)
    ax.set_xlabel(f"ms of the slowest inference ({slowest['dt_ns'] / 1e6:.3g} ms)")
    if not tids:
        ax.set_yticks([])
        ax.text(0.5, 0.5, "what its threads did is unknown", transform=ax.transAxes, ha="center")
        return
    ax.set_yticks(range(len(tids)), [f"{names[tid]} {tid}" for tid in tids], fontsize=8)
    ax.invert_yaxis()
    ax.legend(fontsize=8, loc="upper right")


def draw(w: Any) -> Any:
    """See Watch.plot."""
    pyplot = _needed("matplotlib.pyplot")
    rows = [row for row in w.inferences if row["kind"] == "inference"]
    if not rows:
        raise ValueError("there is no inference to draw")
    figure, axes = pyplot.subplots(3, 1, figsize=(9, 9), layout="constrained")
    _latencies(axes[0], rows)
    _causes(axes[1], rows)
    _threads(axes[2], w, w.slowest)
    figure.suptitle(f"{len(rows)} inferences of {', '.join(sorted({str(row['session']) for row in rows}))}")
    return figure
