# SPDX-License-Identifier: MIT
"""slowdown: the slowdown of the watched work, by chunks with the watcher attached and detached in turn.

A chunk is about 20 ms of fixed work that times itself (chunks.c). Sequence: off off | on on | off off | on on …,
with one untimed chunk after each change; a pair is the two chunks on either side of a change, so a pair lies within
100 ms and the order alternates. The result is the median of the ratios on/off. The same with nothing attached shows
what the method can resolve.
"""
import os
import re
import signal
import statistics
import subprocess
import time

from .figures import Section, median_interval
from .processes import Ended, Missing, Program, with_tracefs
from .switch import pin_to_last_cpu

KINDS = (("matrix", "matrix, 2 threads", 1.005), ("infer", "inference-like threads", 1.005),
         ("fault", "page-fault loop", 1.005), ("spawn", "fork+exec+exit", 1.005),
         ("pipe", "pipe, one CPU", 1.05), ("pipe2", "pipe, two CPUs", 1.05))


class Nothing:
    """A placeholder for a watcher that takes as long to attach as ours."""

    name, slow, barred = "nothing", False, False

    def open(self):
        pass

    def on(self):
        time.sleep(0.05)

    def off(self):
        pass

    def close(self):
        pass


class Ours(Nothing):
    barred = True

    def __init__(self, bench, hz):
        self.bench, self.hz, self.name = bench, hz, f"etwatch {hz} Hz"

    def open(self):
        self.program = self.bench.watch("--all", "--hz", self.hz)

    def on(self):
        self.program.ask("start")

    def off(self):
        self.program.ask("stop")

    def close(self):
        self.program.kill()


class EmptyProgram(Nothing):
    name = "empty eBPF program"

    def __init__(self, bench):
        self.bench = bench

    def open(self):
        self.program = self.bench.tool("empty_prog")
        self.program.ready()

    def on(self):
        self.program.ask("attach")

    def off(self):
        self.program.ask("detach")

    def close(self):
        self.program.kill()


class Stopped(Nothing):
    """A poller: attached means running, detached means stopped by a signal."""

    def __init__(self, name, start):
        self.name, self.start = name, start

    def open(self):
        self.program = self.start()
        self.off()

    def on(self):
        self.program.signal(signal.SIGCONT)

    def off(self):
        self.program.signal(signal.SIGSTOP)

    def close(self):
        self.program.kill()


class Restarted(Nothing):
    """A program that can only be attached by starting it: fewer, longer turns."""

    slow = True

    def __init__(self, name, argv):
        self.name, self.argv = name, argv

    def open(self):
        self.on()
        self.off()

    def on(self):
        self.program = Program(with_tracefs(self.argv()), pipe_in=False, out=subprocess.DEVNULL)
        for _ in range(300):
            if self.program.process.poll() is not None:
                raise Ended(f"{self.name}: {self.program.errors()}")
            if has_perf_event(self.program.pid):
                break
            time.sleep(0.05)
        else:
            raise Ended(f"{self.name}: not attached within 15 seconds")
        time.sleep(0.5)

    def off(self):
        self.program.end(signal.SIGINT)

    def close(self):
        self.program.kill()


def has_perf_event(pid):
    """Both restarted kinds hold a perf event once they are attached."""
    try:
        return any("perf_event" in os.readlink(f"/proc/{pid}/fd/{fd}")
                   for fd in os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return False


def poller(bench, hz):
    def start():
        program = bench.tool("poller", "--hz", hz)
        program.ready()
        return program
    return Stopped(f"C poller {hz} Hz", start)


def watchers_of(bench):
    out = [Nothing(), EmptyProgram(bench)]
    out += [Ours(bench, hz) for hz in (100, 1000)]
    out += [Stopped(f"psutil {hz} Hz", lambda hz=hz: bench.psutil("all", hz)) for hz in (10, 100)]
    out += [poller(bench, hz) for hz in (100, 1000)]
    count = "tracepoint:sched:sched_switch { @[tid] = count(); }"
    out.append(Restarted("bpftrace", lambda: [bench.peer("bpftrace"), "-e", count]))
    data = bench.file("sched.data")
    out.append(Restarted("perf sched record",
                         lambda: [bench.peer("perf"), "sched", "record", "-a", "-o", data]))
    return out


def chunk(work):
    return int(work.ask("chunk"))


def chunks(work, count):
    time.sleep(0.01)
    chunk(work)  # caches and clocks settle in the new state
    return [chunk(work) for _ in range(count)]


def ratios_of(watcher, work, pairs):
    """on/off of `pairs` pairs."""
    each = 10 if watcher.slow else 1  # chunks on each side of a change
    out = []
    off = chunks(work, 2 * each)[each:]
    while len(out) < pairs:
        watcher.on()
        on = chunks(work, 2 * each)
        watcher.off()
        following = chunks(work, 2 * each)
        out.append(statistics.median(on[:each]) / statistics.median(off))
        out.append(statistics.median(on[each:]) / statistics.median(following[:each]))
        off = following[each:]
    return out[:pairs]


def pair_count(bench, watcher):
    """Pairs in one round."""
    if bench.quick:
        return 2 if watcher.slow else 10
    if watcher.slow:
        return 24 if watcher.barred else 4
    return 60 if watcher.barred or watcher.name in ("nothing", "empty eBPF program") else 20


def measure(bench, watcher, kind):
    work = bench.tool("chunks", kind)
    work.ready()
    try:
        watcher.open()
        return ratios_of(watcher, work, pair_count(bench, watcher)), ""
    except (Missing, Ended) as error:
        return [], str(error)
    finally:
        work.kill()
        if hasattr(watcher, "program"):
            watcher.close()


def run(bench):
    idle = 100 if bench.quick else 1000
    rounds = bench.repeat or (1 if bench.quick else 5)
    section = Section("slowdown", "time of a 20 ms chunk of work, watched to not watched "
                                  f"(next to {idle} idle processes, {rounds} rounds)")
    load = bench.load(idle, 0)
    for kind, label, bar in KINDS:
        if bench.wanted(label):
            measure_kind(bench, section, kind, label, bar, rounds)
    if bench.wanted("perf bench sched pipe"):
        whole_runs(bench, section)
    bench.unload(load)
    section.note("resolves: distance of the median of 'nothing' from 1, plus half its 95 % interval. "
                 "Not resolved: over the bar by less than that plus half the row's own interval, or "
                 "the whole bar is smaller than it")
    return section


def half_interval(values):
    low, high = median_interval(values)
    return (high - low) / 2


def measure_kind(bench, section, kind, label, bar, rounds):
    watchers = watchers_of(bench)
    values, missing = {w.name: [] for w in watchers}, {}
    for _ in range(rounds):
        for watcher in watchers:
            if watcher.name not in missing:
                ratios, why = measure(bench, watcher, kind)
                values[watcher.name] += ratios
                if why:
                    missing[watcher.name] = why
    rows = {}
    for watcher in watchers:
        found = values[watcher.name]
        rows[watcher.name] = section.add(
            f"{label}: {watcher.name}", "times", found, bar=bar if watcher.barred else None,
            note=missing.get(watcher.name) or f"{len(found)} pairs")
    judge(rows, [w for w in watchers if w.barred])


def judge(rows, ours):
    """A result that cannot be distinguished from nothing is not claimed: a miss by less than that is not a miss,
    and where a whole bar cannot be distinguished from nothing, a pass is not a pass."""
    nothing = rows["nothing"]
    if not nothing.values:
        return
    resolution = abs(nothing.median - 1) + half_interval(nothing.values)
    nothing.note += f", resolves {resolution:.4f}"
    for watcher in ours:
        row = rows[watcher.name]
        if row.values:
            row.resolution = resolution + half_interval(row.values)
            row.blind = resolution > row.bar - 1


def perf_pipe(perf, loops):
    out = subprocess.run([perf, "bench", "sched", "pipe", "-l", str(loops)], check=True, text=True,
                         stdout=subprocess.PIPE, preexec_fn=pin_to_last_cpu).stdout
    return float(re.search(r"([\d.]+) usecs/op", out).group(1))


def whole_runs(bench, section):
    """perf bench sched pipe as a whole on one CPU, run by run: coarser, but the known value."""
    try:
        perf = bench.peer("perf")
    except Missing as error:
        section.add("perf bench sched pipe, whole runs", "times", [], note=f"perf: {error}")
        return
    repeat = bench.repeat or (2 if bench.quick else 15)
    loops = 50000 if bench.quick else 200000
    rows, watchers = {}, watchers_of(bench)
    for watcher in watchers:
        values, note = [], f"{repeat} runs each"
        try:
            watcher.open()
            for _ in range(repeat):
                off = perf_pipe(perf, loops)
                watcher.on()
                values.append(perf_pipe(perf, loops) / off)
                watcher.off()
        except (Missing, Ended) as error:
            note = str(error)
        finally:
            if hasattr(watcher, "program"):
                watcher.close()
        rows[watcher.name] = section.add(f"perf bench sched pipe: {watcher.name}", "times", values,
                                         note=note, bar=1.05 if watcher.barred else None)
    judge(rows, [w for w in watchers if w.barred])
