# SPDX-License-Identifier: MIT
"""cost: the watcher's own CPU use, compared with psutil, a C poller, top, pidstat and an empty loop.

Every watcher runs alone next to the same population for the same time; all watchers once make a repeat, in a new
order each time. CPU is the watcher's user and system time by its CPU clock, from one second after it began
(start-up is not part of the steady cost) to the end.
"""
import json
import os
import random
import signal
import statistics
import subprocess
import time

from .figures import Section
from .processes import Ended, Missing, Program, cpu_ns, status_kb

BARS = {10: 0.05, 100: 0.06, 1000: 0.1}


class Result:
    """One watcher's turn."""

    def __init__(self):
        self.cpu_percent = self.rss_mb = self.peak_mb = 0.0
        self.hz = self.lines_per_s = self.lost = self.late = None


class Watcher:
    """How to start one kind of watcher, and what to query at its end."""

    def __init__(self, name, start, finish=None, lines=None, hz=None):
        self.name = name
        self.start = start
        self.finish = finish
        self.lines = lines  # a file; its growth in lines is measured
        self.hz = hz
        self.results = {}  # by number of idle processes: a list of Result
        self.missing = None

    def values(self, idle, field):
        return [getattr(r, field) for r in self.results.get(idle, []) if getattr(r, field) is not None]


def measure(watcher, seconds):
    program = watcher.start()
    try:
        time.sleep(1.0)
        result = Result()
        size = file_size(watcher.lines)
        cpu, begin = cpu_ns(program.pid), time.monotonic_ns()
        waits = voluntary_switches(program.pid)
        time.sleep(seconds)
        cpu, wall = cpu_ns(program.pid) - cpu, time.monotonic_ns() - begin
        result.cpu_percent = 100.0 * cpu / wall
        if watcher.lines:
            result.lines_per_s = count_lines(watcher.lines, size) * 1e9 / wall
        rss, peak = status_kb(program.pid, "VmRSS", "VmHWM")
        result.rss_mb, result.peak_mb = rss / 1024, peak / 1024
        if watcher.finish:
            watcher.finish(program, result)
        else:
            result.hz = (voluntary_switches(program.pid) - waits) * 1e9 / wall
    finally:
        program.kill()
    return result


def voluntary_switches(pid):
    return status_kb(pid, "voluntary_ctxt_switches")[0]


def file_size(path):
    try:
        with open(path, "rb") as file:
            return file.seek(0, 2)
    except (OSError, TypeError):
        return 0


def count_lines(path, skip):
    count = 0
    with open(path, "rb") as file:
        file.seek(skip)
        while block := file.read(1 << 20):
            count += block.count(b"\n")
    return count


def start_library(bench, hz, source):
    def start():
        program = bench.tool("watch_lib", "--source", source, "--all", "--hz", hz)
        program.ask("start")
        return program
    return start


def finish_library(program, result):
    stats = program.ask_json("stop")
    result.hz, result.lost, result.late = stats["hz_reached"], stats["lost"], stats["late"]


def finish_by_term(program, result):
    result.hz = json.loads(program.end(signal.SIGTERM))["hz_reached"]


def start_stat(bench, hz, form, path):
    def start():
        if os.path.exists(path):
            os.unlink(path)
        program = Program([bench.etwatch(), "stat", "-a", "--hz", hz, "--source", bench.source,
                           "--budget", "100", form, "-o", path], pipe_in=False)
        for _ in range(200):  # it has started when it has written more than its first line
            if file_size(path) > 10000:
                return program
            if program.process.poll() is not None:
                break
            time.sleep(0.05)
        raise Ended(f"stat: {program.errors() or 'wrote nothing within ten seconds'}")
    return start


def finish_nothing(_program, _result):
    pass


def start_tool(bench, tool, *args):
    def start():
        program = bench.tool(tool, *args)
        program.ready()
        return program
    return start


def start_peer(bench, name, *args):
    def start():
        return Program([bench.peer(name), *args], pipe_in=False, out=subprocess.DEVNULL)
    return start


def watchers_of(bench):
    rates = (10, 100, 1000)
    out = [Watcher(f"library {hz} Hz", start_library(bench, hz, bench.source), finish_library, hz=hz)
           for hz in rates]
    for form in ("--json", "--csv"):
        path = bench.file("stat" + form)
        out.append(Watcher(f"stat {form} 1000 Hz", start_stat(bench, 1000, form, path),
                           finish_nothing, lines=path, hz=1000))
    out.append(Watcher("library, poll source, 10 Hz", start_library(bench, 10, "poll"),
                       finish_library))
    out += [Watcher(f"empty loop {hz} Hz", start_tool(bench, "empty_loop", "--hz", hz))
            for hz in rates]
    out += [Watcher(f"C poller {hz} Hz", start_tool(bench, "poller", "--hz", hz), finish_by_term)
            for hz in (10, 100)]
    out += [Watcher(f"psutil {hz} Hz", lambda hz=hz: bench.psutil("all", hz), finish_by_term)
            for hz in (10, 100)]
    out.append(Watcher("top 10 Hz", start_peer(bench, "top", "-b", "-d", "0.1"), finish_nothing))
    out.append(Watcher("pidstat 1 Hz", start_peer(bench, "pidstat", "1"), finish_nothing))
    return out


def turn(watchers, idle, seconds, rng):
    for watcher in rng.sample(watchers, len(watchers)):
        if watcher.missing:
            continue
        try:
            watcher.results.setdefault(idle, []).append(measure(watcher, seconds))
        except (Missing, Ended) as error:
            watcher.missing = str(error)


def run(bench):
    idle = 200 if bench.quick else 1000
    many = idle * 10
    seconds = 2 if bench.quick else 10
    repeat = bench.repeat or (1 if bench.quick else 5)
    section = Section("cost", f"the watcher's own CPU; {idle} idle and 20 busy processes, "
                              f"{repeat} x {seconds} s each")
    watchers, rng = watchers_of(bench), random.Random(1)
    library = [w for w in watchers if w.name.startswith("library") and w.hz]
    for _ in range(repeat):
        for population, group in ((idle, watchers), (many, library)):
            load = bench.load(population, 20)
            turn(group, population, seconds, rng)
            bench.unload(load)
    fill(section, watchers, library, idle, many)
    return section


def fill(section, watchers, library, idle, many):
    rows = {}
    for watcher in sorted(watchers, key=lambda w: not w.name.startswith("empty")):
        # Ours relative to the floor of the same rate, the peers relative to ours of the same rate.
        hz = watcher.name.split()[-2]
        other = "empty loop" if watcher in library else "library"
        rows[watcher.name] = section.add(
            watcher.name, "% of a core", watcher.values(idle, "cpu_percent"),
            bar=BARS.get(watcher.hz) if watcher in library else None,
            ratio_to=rows.get(f"{other} {hz} Hz"), note=watcher.missing or rate_note(watcher, idle))
    for watcher in library:
        add_growth(section, watcher, idle, many)
    for watcher in watchers:
        if watcher.lines:
            add_per_line(section, watcher, library[-1], idle)
    for watcher in library:
        add_memory(section, watcher, idle, many)
    for watcher in library:
        add_rate(section, watcher, idle)
    for watcher in watchers:
        if not watcher.hz and not watcher.name.startswith("empty"):
            section.add(f"memory of {watcher.name}", "MB RSS", watcher.values(idle, "rss_mb"),
                        note=watcher.missing or "")


def rate_note(watcher, idle):
    reached = watcher.values(idle, "hz")
    return f"{statistics.median(reached):.1f} Hz reached" if reached else ""


def add_growth(section, watcher, idle, many):
    ratios = [b / a for a, b in zip(watcher.values(idle, "cpu_percent"),
                                    watcher.values(many, "cpu_percent"))]
    section.add(f"{watcher.name}, {many} idle to {idle}", "times", ratios, bar=1.2,
                note=watcher.missing or "")


def add_per_line(section, watcher, library, idle):
    """Extra CPU over the library in the same repeat, per written line."""
    cost = [(stat.cpu_percent - lib.cpu_percent) * 1e4 / stat.lines_per_s
            for stat, lib in zip(watcher.results.get(idle, []), library.results.get(idle, []))
            if stat.lines_per_s]
    lines = watcher.values(idle, "lines_per_s")
    note = f"{statistics.median(lines):.0f} lines/s" if lines else ""
    section.add(f"{watcher.name}, a line", "us of CPU", cost, bar=1.0, note=watcher.missing or note)


def add_memory(section, watcher, idle, many):
    """Both populations count: the bar holds at any size."""
    for field, unit, bar in (("rss_mb", "MB RSS", 12), ("peak_mb", "MB peak", 16)):
        for population in (idle, many):
            section.add(f"{watcher.name}, {population} idle", unit, watcher.values(population, field),
                        bar=bar, note=watcher.missing or "")


def add_rate(section, watcher, idle):
    lost, late = sum(watcher.values(idle, "lost")), sum(watcher.values(idle, "late"))
    section.add(f"{watcher.name}, rate reached", "Hz", watcher.values(idle, "hz"),
                bar=watcher.hz * 0.99, at_least=True, note=watcher.missing or f"{lost} lost, {late} late")
