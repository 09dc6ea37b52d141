# SPDX-License-Identifier: MIT
"""short: processes that live about a millisecond, in bursts; how many were reported, and their CPU time.

The truth comes from their parent (burst.c): how many it made, and what the kernel charged for them
(RUSAGE_CHILDREN). A process counts as complete when it has exactly one start, one exit and at least one sample.
"""
import json
import os
import signal
import statistics
import time

from .figures import Section
from .processes import Ended, Missing


def burst_of(bench, count, extra):
    path = bench.file("pids")
    program = bench.tool("burst", "--count", count, "--pids", path, *extra)
    return program, int(program.ready()[0]), path


def watch_ours(bench, count, scope, extra):
    program, pid, _ = burst_of(bench, count, extra)
    where = ["--all"] if scope == "all" else ["--pid", pid]
    watcher = bench.watch(*where, "--hz", 100, "--tally", "--root-pid", pid)
    try:
        watcher.ask("start")
        truth = program.ask_json("go")
        time.sleep(0.3)
        stats = watcher.ask_json("stop")
    finally:
        watcher.kill()
        program.kill()
    return truth, stats


def watch_psutil(bench, count, mode, hz):
    program, _, path = burst_of(bench, count, ["--reap-at-once"])
    try:
        watcher = bench.psutil(mode, hz)
        program.ask_json("go")
        answer = json.loads(watcher.end(signal.SIGTERM))
    finally:
        program.kill()
    with open(path, encoding="ascii") as file:
        real = {int(line) for line in file}
    os.unlink(path)
    return len(real & set(answer["seen"]))


def add_ours(bench, section, label, count, repeat, extra):
    """Only the watched tree, so that other processes of the machine do not count."""
    fields = ("tally_starts", "tally_exits", "tally_sampled", "tally_whole", "lost")
    figures = {field: [] for field in fields}
    errors, exit_errors, note = [], [], ""
    try:
        for _ in range(repeat):
            truth, stats = watch_ours(bench, count, "pid", extra)
            for field in fields:
                figures[field].append(stats[field])
            errors.append(100 * abs(stats["tally_sample_cpu_ns"] / truth["cpu_ns"] - 1))
            exit_errors.append(100 * abs(stats["tally_exit_cpu_ns"] / truth["cpu_ns"] - 1))
    except (Missing, Ended) as error:
        note = str(error)
    names = {"tally_starts": "starts", "tally_exits": "exits", "tally_sampled": "with a sample",
             "tally_whole": "whole"}
    for field, name in names.items():
        section.add(f"{label}: {name}", f"of {count}", figures[field], bar=count, at_least=True,
                    worst=True, note=note)
    section.add(f"{label}: lost", "events", figures["lost"], bar=1, worst=True, note=note)
    section.add(f"{label}: CPU of samples to rusage", "% off", errors, bar=1.0, note=note)
    section.add(f"{label}: CPU of exits to rusage", "% off", exit_errors, bar=1.0, note=note)


def run(bench):
    count = 500 if bench.quick else 10000
    repeat = bench.repeat or (1 if bench.quick else 5)
    section = Section("short", f"{count} processes that live about 1 ms, {repeat} times")
    kinds = (("fork, 16 at a time", []), ("fork+exec, 16 at a time", ["--exec"]),
             ("fork, 400 at a time", ["--burst", "400"]))
    for label, extra in kinds:
        add_ours(bench, section, f"etwatch, {label}", count, repeat, extra)
    for mode, hz in (("all", 100), ("pids", 100), ("pids", 1000)):
        values, note = [], ""
        try:
            for _ in range(repeat):
                values.append(watch_psutil(bench, count, mode, hz))
        except (Missing, Ended) as error:
            note = str(error)
        what = "with figures" if mode == "all" else "only the pid"
        section.add(f"psutil {hz} Hz, {kinds[0][0]}: {what}", f"of {count}", values, note=note)
    add_cost(bench, section, count)
    return section


def add_cost(bench, section, count):
    """The cost of following them when the whole system is watched."""
    values, note = [], ""
    try:
        for _ in range(bench.repeat or (1 if bench.quick else 5)):
            truth, stats = watch_ours(bench, count, "all", [])
            values.append(stats["self_cpu_percent"])
            note = f"{count * 1e9 / truth['wall_ns']:.0f} processes/s"
    except (Missing, Ended) as error:
        note = str(error)
    if values:
        note += f", max {max(values):.2f}, median of {len(values)}: {statistics.median(values):.2f}"
    section.add("etwatch --all meanwhile, by its own count", "% of a core", values, note=note)
