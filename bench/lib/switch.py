# SPDX-License-Identifier: MIT
"""switch: the cost of our program in the kernel at each context switch, compared with an empty program.

By the kernel's own statistics (run time and runs of each eBPF program, see bpf_time.c), ours and the empty one
attached in turn. Hot: two processes on one CPU that only switch. Cold: twenty processes that wake a hundred times a
second each, so that caches are cold every time.
"""
import os
import subprocess
import time

from .figures import Section
from .processes import Missing

RATES = (10, 100, 1000)


class Counter:
    """The run time of selected programs between two readings."""

    def __init__(self, bench):
        self.program = bench.tool("bpf_time")
        self.program.ready()

    def programs(self):
        return {p["id"]: p for p in self.program.ask_json("list")}

    def ids(self):
        return set(self.programs())

    def over(self, ids, work):
        """{name: (runs, ns)} of the programs that ran during work()."""
        before = self.programs()
        work()
        after = self.programs()
        zero = {"runs": 0, "ns": 0}
        out = {}
        for i in sorted(ids & set(after)):
            was = before.get(i, zero)
            runs, ns = out.get(after[i]["name"], (0, 0))
            out[after[i]["name"]] = (runs + after[i]["runs"] - was["runs"],
                                     ns + after[i]["ns"] - was["ns"])
        return out


def pin_to_last_cpu():
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def hot_work(bench, seconds):
    """perf's own pipe benchmark on one CPU, or ours if perf is not installed."""
    try:
        perf = bench.peer("perf")
    except Missing:
        return own_pipe(bench, seconds)
    loops = str(int(seconds * 200000))

    def work():
        subprocess.run([perf, "bench", "sched", "pipe", "-l", loops], check=True,
                       stdout=subprocess.DEVNULL, preexec_fn=pin_to_last_cpu)
    return work


def own_pipe(bench, seconds):
    program = bench.tool("chunks", "pipe")
    program.ready()

    def work():
        for _ in range(int(seconds * 50)):
            program.ask("chunk")
    return work


def measure_ours(bench, counter, hz, work):
    before = counter.ids()
    watcher = bench.watch("--all", "--hz", hz)
    watcher.ask("start")
    try:
        time.sleep(0.3)
        return counter.over(counter.ids() - before, work)
    finally:
        watcher.kill()


def measure_empty(bench, counter, work):
    program = bench.tool("empty_prog")
    program_id = int(program.ready()[1])
    program.ask("attach")
    try:
        time.sleep(0.1)
        return counter.over({program_id}, work)
    finally:
        program.kill()


def is_switch(name):
    return "switch" in name


def per_run(figures):
    """ns per run, and runs, of the programs attached to the switch."""
    runs = max((f[0] for name, f in figures.items() if is_switch(name)), default=0)
    if runs == 0:
        raise Missing("no program of the watcher with 'switch' in its name has run")
    return sum(f[1] for name, f in figures.items() if is_switch(name)) / runs, runs


def all_per_switch(figures, runs):
    return sum(f[1] for f in figures.values()) / runs


def run(bench):
    seconds = 0.5 if bench.quick else 3
    repeat = bench.repeat or (2 if bench.quick else 7)
    section = Section("switch", f"in-kernel time of our sched_switch program, {repeat} x {seconds} s, "
                                "by the kernel's count (which adds about 60 ns to every run)")
    counter = Counter(bench)
    measure_ours(bench, counter, 10, lambda: time.sleep(0.2))  # fails early where eBPF does not work
    idle = 100 if bench.quick else 1000
    for heat in ("hot", "cold"):
        load = bench.load(idle, 20) if heat == "cold" else None
        work = hot_work(bench, seconds) if heat == "hot" else lambda: time.sleep(seconds)
        measure_heat(bench, section, counter, heat, repeat, work)
        if load:
            bench.unload(load)
    section.note("'all programs' is the time of all our programs in the kernel meanwhile, per switch: "
                 "wake-ups, forks, faults and interval cuts too")
    return section


def measure_heat(bench, section, counter, heat, repeat, work):
    empty, ours, ratios, total = [], {}, {}, {}
    for _ in range(repeat):
        for hz in RATES:
            bare = measure_empty(bench, counter, work)["bench_empty"]
            empty.append(bare[1] / max(1, bare[0]))
            figures = measure_ours(bench, counter, hz, work)
            ns, runs = per_run(figures)
            ours.setdefault(hz, []).append(ns)
            ratios.setdefault(hz, []).append(ns / empty[-1])
            total.setdefault(hz, []).append(all_per_switch(figures, runs))
    bare = section.add(f"{heat}: empty program", "ns", empty)
    for hz in RATES:
        section.add(f"{heat}: ours at {hz} Hz", "ns", ours[hz], ratio_to=bare)
        section.add(f"{heat}: ours at {hz} Hz, to empty", "times", ratios[hz], bar=2.0)
        section.add(f"{heat}: all programs at {hz} Hz", "ns", total[hz], ratio_to=bare)
