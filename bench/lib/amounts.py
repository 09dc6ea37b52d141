# SPDX-License-Identifier: MIT
"""Every metric against a process that did a known amount of it, beside psutil's figure for the same.

tests/live/amounts.c does it and tells what it did: what is so many at a time (gauges: held against
what was said most often), and what adds up (sums over the run: held against what the kernel has on
record for the process). A recording is made of the same program (pftrace), or made up with a known
answer (etl). The error is what was told too much or too little, in per cent of the truth.
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
}
NET = {"net_sent_bytes": None, "net_received_bytes": None}  # sums of the run that has the gauges
STATES = ("threads_waiting", "threads_suspended")  # of a process that runs, and of one that is stopped
METRICS = {**SUMS, **GAUGES, **NET, **dict.fromkeys(STATES)}
# Ours: what make_etl calls it.
MADE = {"cpu_ns": None, "runq_wait_ns": "ready_ns", "switches_voluntary": "switches_waiting",
        "switches_involuntary": "switches_ready", "faults_minor": "faults", "faults_major": "hard_faults",
        "io_read_bytes": "file_read_bytes", "io_write_bytes": "file_write_bytes",
        "disk_read_bytes": "disk_read_bytes", "disk_write_bytes": "disk_write_bytes",
        "net_sent_bytes": "sent_bytes", "net_received_bytes": "received_bytes", "threads": "threads"}


def built(bench, name):
    path = os.path.join(bench.build, "tests", name)
    if not os.access(path, os.X_OK):
        raise Missing(f"tests/{name} is not built")
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


def value_of(name, samples):
    known = [s[name] for s in samples if s.get(name) is not None]
    return None if not known else statistics.mode(known) if name in GAUGES else sum(known)


def watched_by(bench, source):
    """Yields (name, value or None, truth)."""
    path = bench.file("amounts.jsonl")
    for arguments, names in ((["counts"], SUMS), ([], {**GAUGES, **NET})):
        truth = truth_of(call(bench.etwatch(), "run", "--json", "-q", "--source", source, "--metrics", "all", "--hz",
                              10, "-o", path, "--", built(bench, "amounts"), *arguments))
        with open(path, encoding="utf-8") as file:
            samples = [o for o in map(json.loads, file) if o["type"] == "sample" and o["pid"] == truth["ended"]]
        for name in names:
            yield name, value_of(name, samples), truth.get(name)
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


def made_up(bench):
    """The sums over all processes of a machine that make_etl made up."""
    path, told = bench.file("amounts.etl"), bench.file("amounts.truth")
    call(built(bench, "make_etl"), "mixed", path, "--truth", told)
    with open(told, encoding="utf-8") as file:
        truth = json.load(file)["processes"]
    objects = map(json.loads, call(bench.etwatch(), "report", "--json", path).splitlines())
    found = [o for o in objects if o["type"] == "process" and o["pid"] != 0]
    for name, theirs in MADE.items():
        if name == "threads":
            # Of those that ended: all they ever had.
            yield (name, sum(p["threads"] for p in found if p["exit_ns"] is not None),
                   sum(p["threads"] for p in truth if p["end_raw"]))
        elif theirs is None:
            yield name, sum(p[name] for p in found), sum(p["cpu_ns"] - p["interrupt_ns"] for p in truth)
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
            "poll": (lambda bench: watched_by(bench, "poll"), "poll-linux"),
            "psutil": (watched_by_psutil, None)}


def exact_ones(bench):
    """{way: names} of what the product itself calls exact."""
    ways = {}
    for line in call(bench.etwatch(), "metrics", "--json").splitlines():
        metric = json.loads(line)
        for way, cell in metric.get("sources", {}).items():
            if cell["exactness"] == "exact":
                ways.setdefault(way, set()).add(metric["name"])
    return ways


def grid(errors):
    """Metric x source."""
    cells = [["metric", *WATCHERS]]
    for name in METRICS:
        line = [name]
        for who in WATCHERS:
            values = errors.get((name, who))
            line.append("-" if not values else number(statistics.median(values)))
        cells.append(line)
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    return ["  ".join(cell.ljust(w) if at == 0 else cell.rjust(w) for at, (cell, w) in enumerate(zip(line, widths)))
            for line in cells]


def add_rows(section, bench, repeat):
    """One row for each metric and watcher that can know it; and all of them as a grid."""
    errors, missing, exact = {}, {}, exact_ones(bench)
    for _ in range(repeat):
        for who, (watch, _) in WATCHERS.items():
            try:
                for name, value, truth in watch(bench):
                    if value is not None and truth is not None:
                        error = abs(value - truth) / truth if truth else float(value != 0)
                        errors.setdefault((name, who), []).append(100.0 * error)
            except (Missing, Ended) as error:
                missing[who] = str(error)
    for name in METRICS:
        for who, (_, way) in WATCHERS.items():
            values = errors.get((name, who), [])
            if not values and who not in missing:
                continue
            # A count is right or it is not; a time is right to what wait4() tells of it.
            bar = None if name not in exact.get(way, ()) else 0.1 if name in TIMES else 1e-9
            section.add(f"{name}, {who}", "% error", values, bar=bar, note="" if values else missing[who])
    section.picture = ["error in % of what was done, by metric and source; - is not told", *grid(errors)]
