# SPDX-License-Identifier: MIT
"""Every metric against a process that did a known amount of it, beside psutil's figure for the same.

tests/live/amounts.c does it and tells what it did: what is so many at a time (gauges: held against
what was said most often), and what adds up (sums over the run: held against what the kernel has on
record for the process). A recording is made of the same program (pftrace), or made up with a known
answer (etl), and the same events come live from the emulator of ETW (etw). The error is what was told
too much or too little, in per cent of the truth. Every metric has a line, and what is not told a reason.
"""
import json
import os
import statistics
import subprocess

from .figures import number
from .processes import Ended, Missing, Program

TIMES = ("cpu_ns", "cpu_user_ns", "cpu_kernel_ns", "runq_wait_ns")
# name: psutil's figure or None
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
NET = {"net_sent_bytes": None, "net_received_bytes": None}  # sums of the run that has the gauges
STATES = ("threads_running", "threads_waiting", "threads_suspended")  # of a process that runs, and when it is stopped
# Of a recording whose switches carry hardware counters.
HARDWARE = {"cycles": "cycles", "instructions": "instructions", "cache_misses": "cache_misses"}
NOT_DONE = "no program that does a known amount of it on this machine"
# Ours: what make_etl calls it.
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
    """One object of all that was told; where both tell something, the kernel's record comes last."""
    truth = {}
    for line in text.splitlines():
        if line.startswith("{"):
            truth.update(json.loads(line))
    if "ended" not in truth:
        raise Ended("amounts: told nothing")
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
    told = call(bench.etwatch(), "run", "--json", "-q", "--source", source, "--metrics", "cpu,threads", "--rate",
                "threads=20", "--dense", "--hz", 20, "-o", path, "--", built(bench, "amounts"), "states", 800)
    truth = json.loads(next(line for line in told.splitlines() if line.startswith("{")))
    with open(path, encoding="utf-8") as file:
        samples = [o for o in map(json.loads, file) if o["type"] == "sample" and o["pid"] == truth["states"]]
    known = [s for s in samples if s["threads_suspended"] is not None]
    for name, wanted, value in (
            # On a CPU or ready for one: which of both is up to whoever else runs.
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


def make_up(bench, kind="mixed"):
    """A recording of a made-up machine, and what its processes did."""
    path, told = bench.file("amounts.etl"), bench.file("amounts.truth")
    call(built(bench, "make_etl"), kind, path, "--truth", told)
    with open(told, encoding="utf-8") as file:
        return path, json.load(file)["processes"]


def report_of(bench, path):
    objects = map(json.loads, call(bench.etwatch(), "report", "--json", path).splitlines())
    return [o for o in objects if o["type"] == "process" and o["pid"] != 0]


def made_up(bench):
    """The sums over all processes of a machine that make_etl made up."""
    path, truth = make_up(bench, "counters")
    yield from sums_of(report_of(bench, path), truth, HARDWARE)
    path, truth = make_up(bench)
    found = report_of(bench, path)
    # Of those that ended: all they ever had.
    yield ("threads", sum(p["threads"] for p in found if p["exit_ns"] is not None),
           sum(p["threads"] for p in truth if p["end_raw"]))
    yield "rss_peak_bytes", value_of("rss_peak_bytes", found, sum), sum(p["working_set_peak_bytes"] for p in truth)
    yield from sums_of(found, truth, MADE)


def emulated(bench):
    """The same events, live: the emulator of ETW hands them over, and the samples are summed up."""
    path, truth = make_up(bench)
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
            "etl": (made_up, "etl"),
            "etw": (emulated, "etw"),
            "poll": (lambda bench: watched_by(bench, "poll"), "poll-linux"),
            "psutil": (watched_by_psutil, None)}


def table_of(bench):
    """{name: {way: cell}} as the product has it, without devices, exits, and what follows from another."""
    rows = map(json.loads, call(bench.etwatch(), "metrics", "--json").splitlines())
    return {row["name"]: row["sources"] for row in rows
            if row["type"] == "metric" and row["group"] not in ("devices", "exit") and row["name"] != "cpu_percent"}


def why_not(name, who, way, table):
    """Why a cell is empty."""
    if who == "psutil":
        return "psutil does not tell it"
    cell = table[name][way]
    if cell["exactness"] == "unavailable":
        return cell["how"]
    if who == "pftrace":
        return "a recording's report is of what adds up; its samples are those of ebpf"
    return "not told by the machine that was made up" if who in ("etl", "etw") else NOT_DONE


def grid(errors, missing, table):
    """Metric x source, and under it why a cell has nothing."""
    cells, reasons = [["metric", *WATCHERS]], {}
    for name in table:
        line = [name]
        for who, (_, way) in WATCHERS.items():
            values = errors.get((name, who))
            line.append("-" if not values else number(statistics.median(values)))
            if not values:
                reasons.setdefault(missing.get(who) or why_not(name, who, way, table), {}).setdefault(who, []).append(name)
        cells.append(line)
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    lines = ["  ".join(cell.ljust(w) if at == 0 else cell.rjust(w) for at, (cell, w) in enumerate(zip(line, widths)))
             for line in cells]
    lines += ["", "what has no figure, and why:"]
    for reason, whose in reasons.items():
        lines += [f"  {reason}: " + "; ".join(f"{who}: {' '.join(names)}" for who, names in whose.items())]
    return lines + ["  poll on Windows: scripts/windows_check.py measures it there; under Wine the figures are Wine's"]


def add_rows(section, bench, repeat):
    """One row for each metric and watcher that can know it; and all of them as a grid."""
    errors, missing, table = {}, {}, table_of(bench)
    for _ in range(repeat):
        for who, (watch, _) in WATCHERS.items():
            try:
                for name, value, truth in watch(bench):
                    if value is not None and truth is not None:
                        error = abs(value - truth) / truth if truth else float(value != 0)
                        errors.setdefault((name, who), []).append(100.0 * error)
            except (Missing, Ended) as error:
                missing[who] = str(error)
    for name in table:
        for who, (_, way) in WATCHERS.items():
            values = errors.get((name, who), [])
            if not values and who not in missing:
                continue
            # A count is right or it is not; a time is right to what wait4() tells of it.
            exact = way is not None and table[name][way]["exactness"] == "exact"
            bar = None if not exact else 0.1 if name in TIMES else 1e-9
            section.add(f"{name}, {who}", "% error", values, bar=bar, note="" if values else missing[who])
    section.picture = ["error in % of what was done, by metric and source; - is not told", *grid(errors, missing, table)]
