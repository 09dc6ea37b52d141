# SPDX-License-Identifier: MIT
"""metrics: the cost of measuring everything, and the comparison that users made.

All metrics at 100 Hz next to 1000 idle and 20 busy processes; the cost of each selection in the kernel; and psutil
compared with etwatch for 100 processes at 10 to 1000 Hz: CPU, memory, and the rate that is really reached.
"""
import os
import time

from .cost import Watcher, finish_by_term, finish_nothing, file_size, measure
from .figures import Section
from .processes import Ended, Missing, Program
from .switch import Counter

RATES = (10, 50, 100, 500, 1000)


def start_stat(bench, hz, metrics, path):
    def start():
        if os.path.exists(path):
            os.unlink(path)
        program = Program([bench.etwatch(), "stat", "-a", "--hz", hz, "--source", bench.source, "--budget",
                           "100", "--metrics", metrics, "--csv", "-o", path], pipe_in=False)
        for _ in range(200):
            if file_size(path) > 10000:
                return program
            if program.process.poll() is not None:
                break
            time.sleep(0.05)
        raise Ended(f"stat: {program.errors() or 'wrote nothing within ten seconds'}")
    return start


def turns(watcher, repeat, seconds, results):
    for _ in range(repeat):
        try:
            results.append(measure(watcher, seconds))
        except (Missing, Ended) as error:
            watcher.missing = str(error)
            return


def all_metrics(section, bench, repeat, seconds):
    load = bench.load(200 if bench.quick else 1000, 20)
    for name, metrics in (("all metrics, 100 Hz", "all"), ("the default ones, 100 Hz", "default"),
                          ("cpu alone, 100 Hz", "cpu")):
        watcher = Watcher(name, start_stat(bench, 100, metrics, bench.file("metrics.csv")), finish_nothing)
        results = []
        turns(watcher, repeat, seconds, results)
        bars = metrics == "all"
        section.add(name, "% of a core", [r.cpu_percent for r in results], bar=0.5 if bars else None,
                    note=watcher.missing or "with CSV output")
        section.add(name, "MB RSS", [r.rss_mb for r in results], bar=16 if bars else None,
                    note=watcher.missing or "")
    bench.unload(load)


def kernel_cost(section, bench, repeat, seconds):
    """Metrics that are not selected cost nothing in the kernel either. At 1000 Hz nearly every switch of the load
    is recorded, so a run of the switch program is one or two records."""
    counter = Counter(bench)
    load = bench.load(50, 20)
    for metrics in ("cpu_ns", "cpu", "cpu,memory", "cpu,io", "default", "all"):
        nanoseconds, instructions, why = [], [], ""
        for _ in range(repeat):
            before = counter.ids()
            try:
                program = start_stat(bench, 1000, metrics, bench.file("kernel.csv"))()
            except (Missing, Ended) as error:
                why = str(error)
                break
            ids = counter.ids() - before
            runs, ns = counter.over(ids, lambda: time.sleep(seconds)).get("ew_switch", (0, 0))
            size = [p["instructions"] for i, p in counter.programs().items() if i in ids and p["name"] == "ew_switch"]
            program.kill()
            if runs and size:
                nanoseconds.append(ns / runs)
                instructions.append(size[0])
        section.add(f"--metrics {metrics}: the switch program", "ns a switch", nanoseconds, note=why)
        section.add(f"--metrics {metrics}: the switch program", "instructions", instructions, note=why)
    bench.unload(load)


def comparison(section, bench, repeat, seconds):
    load = bench.load(80, 20)
    for hz in RATES:
        path = bench.file("compare.csv")
        ours = Watcher("etwatch", start_stat(bench, hz, "default", path), finish_nothing)
        theirs = Watcher("psutil", lambda hz=hz: bench.psutil("all", hz), finish_by_term)
        mine, other = [], []
        turns(ours, repeat, seconds, mine)
        turns(theirs, repeat, seconds, other)
        row = section.add(f"etwatch, 100 processes, {hz} Hz", "% of a core", [r.cpu_percent for r in mine],
                          note=ours.missing or f"{hz} Hz by the kernel's time")
        section.add(f"psutil, 100 processes, {hz} Hz", "% of a core", [r.cpu_percent for r in other],
                    ratio_to=row, note=theirs.missing or reached(other))
        section.add(f"etwatch, {hz} Hz", "MB RSS", [r.rss_mb for r in mine])
        section.add(f"psutil, {hz} Hz", "MB RSS", [r.rss_mb for r in other])
    bench.unload(load)


def reached(results):
    rates = [r.hz for r in results if r.hz]
    return f"{sum(rates) / len(rates):.1f} Hz reached" if rates else ""


def run(bench):
    seconds = 2 if bench.quick else 10
    repeat = bench.repeat or (1 if bench.quick else 3)
    section = Section("metrics", f"everything measured, and 100 processes next to psutil; {repeat} x {seconds} s")
    all_metrics(section, bench, repeat, seconds)
    kernel_cost(section, bench, repeat, seconds)
    comparison(section, bench, repeat, seconds)
    return section
