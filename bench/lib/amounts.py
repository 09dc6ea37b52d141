# SPDX-License-Identifier: MIT
"""Every metric against a process that did a known amount of it, beside psutil's figure for the same.

tests/live/amounts.c does it and tells what it did. The error is what was told too much or too little,
in per cent of the truth; counts and times are sums over the run, gauges what was said most often.
"""
import json
import os
import statistics
import subprocess

from .processes import Ended, Missing, Program

# name of the metric: (kind, psutil's figure or None)
METRICS = {
    "cpu_ns": ("sum", lambda d: int((d["cpu_times"][0] + d["cpu_times"][1]) * 1e9)),
    "faults_minor": ("sum", None),
    "switches": ("sum", lambda d: sum(d["num_ctx_switches"])),
    "io_write_bytes": ("sum", lambda d: d["io_counters"][5]),
    "net_sent_bytes": ("sum", None),
    "net_received_bytes": ("sum", None),
    "handles": ("gauge", lambda d: d["num_fds"]),
    "threads": ("gauge", lambda d: d["num_threads"]),
    "priority": ("gauge", lambda d: 20 + d["nice"]),
    "affinity": ("gauge", lambda d: sum(1 << cpu for cpu in d["cpu_affinity"])),
    "io_priority": ("gauge", lambda d: d["ionice"][0] << 13 | d["ionice"][1]),
    "rss_bytes": ("gauge", lambda d: d["memory_info"][0]),
    "virtual_bytes": ("gauge", lambda d: d["memory_info"][1]),
    "private_bytes": ("gauge", None),
}


def program_of(bench):
    path = os.path.join(bench.build, "tests", "amounts")
    if not os.access(path, os.X_OK):
        raise Missing("tests/amounts is not built")
    return path


def truth_of(text):
    truth = {}
    for line in text.splitlines():
        if line.startswith("{"):
            truth.update(json.loads(line))
    if "handles" not in truth or "ended" not in truth:
        raise Ended("amounts: told nothing")
    # What the answer itself wrote is counted too.
    truth["io_write_bytes"] += max(len(line) + 1 for line in text.splitlines() if "handles" in line)
    return truth


def watched_by(bench, source):
    """(truth, {metric: value or None})."""
    path = bench.file("amounts.jsonl")
    result = subprocess.run([bench.etwatch(), "run", "--json", "-q", "--source", source, "--metrics", "all",
                             "--hz", "10", "-o", path, "--", program_of(bench)], check=False,
                            capture_output=True, text=True, timeout=60)
    if result.returncode != 0:
        raise Ended(f"etwatch: {result.stderr.strip() or result.returncode}")
    truth, values = truth_of(result.stdout), {}
    with open(path, encoding="utf-8") as file:
        samples = [o for o in map(json.loads, file) if o["type"] == "sample" and o["pid"] == truth["pid"]]
    for sample in samples:
        parts = (sample["switches_voluntary"], sample["switches_involuntary"])
        sample["switches"] = None if None in parts else sum(parts)
    for name, (kind, _) in METRICS.items():
        known = [s[name] for s in samples if s[name] is not None]
        values[name] = (None if not known else sum(known) if kind == "sum" else statistics.mode(known))
    return truth, values


def watched_by_psutil(bench):
    program = Program([program_of(bench)], pipe_in=False)
    path = bench.file("amounts.psutil")
    peer = bench.psutil("figures", 10, path, program.pid)
    text = program.process.stdout.read()
    program.process.wait()
    peer.process.wait(10)
    with open(path, encoding="utf-8") as file:
        rounds = [json.loads(line) for line in file]
    values = {}
    for name, (kind, figure) in METRICS.items():
        known = [figure(r) for r in rounds] if figure else []
        values[name] = (None if not known else known[-1] if kind == "sum" else statistics.mode(known))
    return truth_of(text), values


def add_rows(section, bench, repeat):
    """One row for each metric and watcher; a metric that a watcher cannot know says so."""
    errors, missing = {}, {}
    watchers = {"ebpf": lambda: watched_by(bench, "ebpf"), "poll": lambda: watched_by(bench, "poll"),
                "psutil": lambda: watched_by_psutil(bench)}
    for _ in range(repeat):
        for who, watch in watchers.items():
            try:
                truth, values = watch()
            except (Missing, Ended) as error:
                missing[who] = str(error)
                continue
            for name, value in values.items():
                if value is not None:
                    errors.setdefault((name, who), []).append(100.0 * abs(value - truth[name]) / truth[name])
    section.note("wait4() knows nothing of the last switches of threads that a process ends with")
    for name in METRICS:
        for who in watchers:
            values = errors.get((name, who), [])
            section.add(f"{name}, {who}", "% error", values,
                        note="" if values else missing.get(who, "not told"))
