# SPDX-License-Identifier: MIT
"""Every metric compared with a process that did a known amount of it, next to psutil's value for the same.

tests/live/amounts.c does it and prints what it did: gauges (compared with the most frequent value), and counters
(sums over the run, compared with the kernel's record of the process). A recording is made of the same program
(pftrace), or generated with known content (etl), and the same events are delivered live by the ETW emulator (etw).
The error is the deviation in percent of the truth. Every metric has a line, and a metric without a value has a
reason.
"""
import json
import os
import statistics
import subprocess

from .figures import number
from .processes import Ended, Missing, Program

TIMES = ("cpu_ns", "cpu_user_ns", "cpu_kernel_ns", "runq_wait_ns")
# name: psutil's value or None
SUMS = {
    "cpu_ns": lambda d: int((d["cpu_times"][0] + d["cpu_times"][1]) * 1e9),
    "cpu_user_ns": lambda d: int(d["cpu_times"][0] * 1e9),
    "cpu_kernel_ns": lambda d: int(d["cpu_times"][1] * 1e9),
    "runq_wait_ns": None,
    "switches_voluntary": lambda d: d["num_ctx_switches"][0],
    "switches_involuntary": lambda d: d["num_ctx_switches"][1],
    "faults_minor": None,
    "faults_major": None,
    "io_read_bytes": lambda d: d["io_counters"][4],
    "io_write_bytes": lambda d: d["io_counters"][5],
    "io_read_ops": lambda d: d["io_counters"][0],
    "io_write_ops": lambda d: d["io_counters"][1],
    "disk_read_bytes": lambda d: d["io_counters"][2],
    "disk_write_bytes": lambda d: d["io_counters"][3],
}
GAUGES = {
    "handles": lambda d: d["num_fds"],
    "threads": lambda d: d["num_threads"],
    "priority": lambda d: 20 + d["nice"],
    "affinity": lambda d: sum(1 << cpu for cpu in d["cpu_affinity"]),
    "io_priority": lambda d: d["ionice"][0] << 13 | d["ionice"][1],
    "rss_bytes": lambda d: d["memory_info"][0],
    "virtual_bytes": lambda d: d["memory_info"][1],
    "private_bytes": None,
    "rss_peak_bytes": None,
    "handles_peak": None,
}
NET = {"net_sent_bytes": None, "net_received_bytes": None}  # sums over the run with the gauges
STATES = ("threads_running", "threads_waiting", "threads_suspended")  # of a running process, and when it is stopped
# From a recording with hardware counters in its switches.
HARDWARE = {"cycles": "cycles", "instructions": "instructions", "cache_misses": "cache_misses"}
NOT_DONE = "no program that does a known amount of it on this machine"
# Our name: make_etl's name.
MADE = {"cpu_ns": None, "runq_wait_ns": "ready_ns", "switches_voluntary": "switches_waiting",
        "switches_involuntary": "switches_ready", "faults_minor": "faults", "faults_major": "hard_faults",
        "io_read_bytes": "file_read_bytes", "io_write_bytes": "file_write_bytes",
        "disk_read_bytes": "disk_read_bytes", "disk_write_bytes": "disk_write_bytes",
        "net_sent_bytes": "sent_bytes", "net_received_bytes": "received_bytes"}


def built(bench, name):
    path = bench.path(name)
    if not os.access(path, os.X_OK):
        raise Missing(f"bench/{name} is not built")
    return path


def call(*command):
    result = subprocess.run(list(map(str, command)), check=False, capture_output=True, text=True, timeout=60)
    if result.returncode != 0:
        raise Ended(f"{os.path.basename(command[0])}: {result.stderr.strip() or result.returncode}")
    return result.stdout


def truth_of(text):
    """All reported values in one object; the kernel's record overrides the process's own values."""
    truth = {}
    for line in text.splitlines():
        if line.startswith("{"):
            truth.update(json.loads(line))
    if "ended" not in truth:
        raise Ended("amounts: no output")
    return truth


def value_of(name, samples, how=None):
    known = [s[name] for s in samples if s.get(name) is not None]
    return None if not known else (how or (statistics.mode if name in GAUGES else sum))(known)


def watched_by(bench, source):
    """Yields (name, value or None, truth)."""
    path = bench.file("amounts.jsonl")
    for arguments, names in ((["counts"], SUMS), ([], {**GAUGES, **NET})):
        truth = truth_of(call(bench.etwatch(), "run", "--json", "-q", "--source", source, "--metrics", "all", "--hz",
                              10, "-o", path, "--", built(bench, "amounts"), *arguments))
        with open(path, encoding="utf-8") as file:
            samples = [o for o in map(json.loads, file) if o["type"] == "sample" and o["pid"] == truth["ended"]]
        truth["handles_peak"] = truth.get("handles")
        for name in names:
            yield name, value_of(name, samples, max if name.endswith(("_peak", "_peak_bytes")) else None), truth.get(name)
    yield from states_by(bench, source)


def states_by(bench, source):
    path = bench.file("states.jsonl")
    output = call(bench.etwatch(), "run", "--json", "-q", "--source", source, "--metrics", "cpu,threads", "--rate",
                "threads=20", "--dense", "--hz", 20, "-o", path, "--", built(bench, "amounts"), "states", 800)
    truth = json.loads(next(line for line in output.splitlines() if line.startswith("{")))
    with open(path, encoding="utf-8") as file:
        samples = [o for o in map(json.loads, file) if o["type"] == "sample" and o["pid"] == truth["states"]]
    known = [s for s in samples if s["threads_suspended"] is not None]
    for name, wanted, value in (
            # On a CPU or ready for one: which of both depends on other processes.
            ("threads_running", truth["active"],
             [s["threads_running"] + (s["threads_ready"] or 0) for s in known if not s["threads_suspended"]]),
            ("threads_waiting", truth["waiting"], [s["threads_waiting"] for s in known if not s["threads_suspended"]]),
            ("threads_suspended", truth["threads"], [s["threads_suspended"] for s in known if s["threads_suspended"]])):
        yield name, statistics.mode(value) if value else None, wanted


def recorded(bench):
    path = bench.file("amounts.pftrace")
    truth = truth_of(call(bench.etwatch(), "record", "-q", "--source", "ebpf", "--metrics", "all", "-o", path, "--",
                          built(bench, "amounts"), "counts"))
    objects = map(json.loads, call(bench.etwatch(), "report", "--json", path).splitlines())
    found = [o for o in objects if o["type"] == "process" and o["pid"] == truth["ended"]]
    for name in SUMS:
        yield name, found[0][name] if found else None, truth.get(name)


def make_synthetic(bench, kind="mixed"):
    """A recording of a synthetic machine, and the work of its processes."""
    path, output = bench.file("amounts.etl"), bench.file("amounts.truth")
    call(built(bench, "make_etl"), kind, path, "--truth", output)
    with open(output, encoding="utf-8") as file:
        return path, json.load(file)["processes"]


def report_of(bench, path):
    objects = map(json.loads, call(bench.etwatch(), "report", "--json", path).splitlines())
    return [o for o in objects if o["type"] == "process" and o["pid"] != 0]


def synthetic(bench):
    """The sums over all processes of a synthetic machine of make_etl."""
    path, truth = make_synthetic(bench, "counters")
    yield from sums_of(report_of(bench, path), truth, HARDWARE)
    path, truth = make_synthetic(bench)
    found = report_of(bench, path)
    # Of exited processes: all they ever had.
    yield ("threads", sum(p["threads"] for p in found if p["exit_ns"] is not None),
           sum(p["threads"] for p in truth if p["end_raw"]))
    yield "rss_peak_bytes", value_of("rss_peak_bytes", found, sum), sum(p["working_set_peak_bytes"] for p in truth)
    yield from sums_of(found, truth, MADE)


def emulated(bench):
    """The same events, live: the ETW emulator delivers them, and the samples are summed up."""
    path, truth = make_synthetic(bench)
    objects = map(json.loads, call(built(bench, "etwatch_emulated"), path, "stat", "-a", "--json", "-q", "--hz", 10,
                                   "--budget", "off", "--duration", 1).splitlines())
    yield from sums_of([o for o in objects if o["type"] == "sample" and o["pid"] != 0], truth, MADE)


def sums_of(found, truth, names):
    for name, theirs in names.items():
        if theirs is None:
            yield name, value_of(name, found), sum(p["cpu_ns"] - p["interrupt_ns"] for p in truth)
        else:
            yield name, value_of(name, found), sum(p[theirs] for p in truth)


def watched_by_psutil(bench):
    for arguments, names in ((["counts"], SUMS), ([], GAUGES)):
        program = Program([built(bench, "amounts"), *arguments], pipe_in=False)
        path = bench.file("amounts.psutil")
        peer = bench.psutil("figures", 10, path, program.pid)
        text = program.process.stdout.read()
        program.process.wait()
        peer.process.wait(10)
        with open(path, encoding="utf-8") as file:
            rounds = [json.loads(line) for line in file]
        truth = truth_of(text)
        for name, figure in names.items():
            known = [figure(r) for r in rounds] if figure else []
            value = None if not known else known[-1] if name in SUMS else statistics.mode(known)
            yield name, value, truth.get(name)


WATCHERS = {"ebpf": (lambda bench: watched_by(bench, "ebpf"), "ebpf"),
            "pftrace": (recorded, "ebpf"),
            "etl": (synthetic, "etl"),
            "etw": (emulated, "etw"),
            "poll": (lambda bench: watched_by(bench, "poll"), "poll-linux"),
            "psutil": (watched_by_psutil, None)}


def table_of(bench):
    """{name: {source: cell}} from the product, without devices, exits, and derived metrics."""
    rows = map(json.loads, call(bench.etwatch(), "metrics", "--json").splitlines())
    return {row["name"]: row["sources"] for row in rows
            if row["type"] == "metric" and row["group"] not in ("devices", "exit") and row["name"] != "cpu_percent"}


def reason_for(name, watcher, way, table):
    """The reason for an empty cell."""
    if watcher == "psutil":
        return "psutil does not have it"
    cell = table[name][way]
    if cell["exactness"] == "unavailable":
        return cell["how"]
    if watcher == "pftrace":
        return "a recording's report has counters only; its samples are those of ebpf"
    return "not logged by the synthetic machine" if watcher in ("etl", "etw") else NOT_DONE


def grid(errors, missing, table):
    """Metric x source, followed by the reasons for empty cells."""
    cells, reasons = [["metric", *WATCHERS]], {}
    for name in table:
        line = [name]
        for watcher, (_, way) in WATCHERS.items():
            values = errors.get((name, watcher))
            line.append("-" if not values else number(statistics.median(values)))
            if not values:
                reason = missing.get(watcher) or reason_for(name, watcher, way, table)
                reasons.setdefault(reason, {}).setdefault(watcher, []).append(name)
        cells.append(line)
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    lines = ["  ".join(cell.ljust(w) if at == 0 else cell.rjust(w) for at, (cell, w) in enumerate(zip(line, widths)))
             for line in cells]
    lines += ["", "metrics without a value, and why:"]
    for reason, affected in reasons.items():
        lines += [f"  {reason}: " + "; ".join(f"{watcher}: {' '.join(names)}" for watcher, names in affected.items())]
    return lines + ["  poll on Windows: scripts/windows_check.py measures it there; under Wine the values are Wine's"]


def add_rows(section, bench, repeat):
    """One row for each metric and watcher that supports it, and all of them as a grid."""
    errors, missing, table = {}, {}, table_of(bench)
    for _ in range(repeat):
        for watcher, (watch, _) in WATCHERS.items():
            try:
                for name, value, truth in watch(bench):
                    if value is not None and truth is not None:
                        error = abs(value - truth) / truth if truth else float(value != 0)
                        errors.setdefault((name, watcher), []).append(100.0 * error)
            except (Missing, Ended) as error:
                missing[watcher] = str(error)
    for name in table:
        for watcher, (_, way) in WATCHERS.items():
            values = errors.get((name, watcher), [])
            if not values and watcher not in missing:
                continue
            # A count must be exact; a time must be exact to the resolution of wait4().
            exact = way is not None and table[name][way]["exactness"] == "exact"
            bar = None if not exact else 0.1 if name in TIMES else 1e-9
            section.add(f"{name}, {watcher}", "% error", values, bar=bar, note="" if values else missing[watcher])
    section.picture = ["error in % of what was done, by metric and source; - has no value", *grid(errors, missing, table)]
