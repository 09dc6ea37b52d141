# SPDX-License-Identifier: MIT
"""accuracy: CPU time per 10 ms window and over the run, compared with the workload's own CPU clock.

The workload (pattern.c) knows its CPU time at every instant; etwatch's windows are those of its samples. A window
without a sample counts as 0, which is what its absence means. The error of a window is in percentage points of one
core. psutil reads at its own times and is compared with the truth between those. Over the run the truth is what the
kernel charged the process (wait4).
"""
import bisect
import glob
import json
import os
import signal
import statistics
import time

from . import amounts
from .figures import Section
from .processes import Ended, Missing, cpu_ns

WINDOW_NS = 10_000_000
SAMPLE = 3  # enum etwatch_type

PATTERNS = (
    ("5 ms on, 5 off", ["--on-us", 5000, "--off-us", 5000, "--jitter"]),
    ("1 ms on, 9 off", ["--on-us", 1000, "--off-us", 9000, "--jitter"]),
    ("37 ms on, 13 off", ["--on-us", 37000, "--off-us", 13000]),
    ("16 threads, 1 on, 15 off", ["--threads", 16, "--on-us", 1000, "--off-us", 15000, "--jitter"]),
    ("2 threads pinned, 5 on, 5 off",
     ["--threads", 2, "--pin", "--on-us", 5000, "--off-us", 5000, "--jitter"]),
    ("migrating, 7 on, 4 off", ["--migrate", "--on-us", 7000, "--off-us", 4000, "--jitter"]),
    ("3 nested children, 3 on, 7 off",
     ["--depth", 3, "--on-us", 3000, "--off-us", 7000, "--jitter"]),
)


class Curve:
    """CPU time as a function of time: linear between points."""

    def __init__(self, points):
        self.times = [t for t, _ in points]
        self.values = [v for _, v in points]

    def at(self, t):
        i = bisect.bisect_right(self.times, t)
        if i == 0:
            return self.values[0]
        if i == len(self.times):
            return self.values[-1]
        t0, t1 = self.times[i - 1], self.times[i]
        v0, v1 = self.values[i - 1], self.values[i]
        return v0 + (v1 - v0) * (t - t0) / (t1 - t0)

    def knows(self, t, within_ns):
        """Whether a point is close enough to t (for a truth that is read only now and then)."""
        i = bisect.bisect_left(self.times, t)
        near = [abs(self.times[j] - t) for j in (i - 1, i) if 0 <= j < len(self.times)]
        return bool(near) and min(near) <= within_ns


class Truth:
    """The CPU time of one process: the sum of its threads."""

    def __init__(self):
        self.threads = {}
        self.curves = []
        self.check = []  # the same by another method, at window ends

    def close(self):
        self.curves = [Curve(points) for points in self.threads.values() if points]
        self.begin = max(c.times[0] for c in self.curves)
        self.end = min(c.times[-1] for c in self.curves)

    def between(self, t0, t1):
        return sum(c.at(t1) - c.at(t0) for c in self.curves)

    def knows(self, t):
        return all(c.knows(t, 50_000) for c in self.curves)


def read_truth(prefix):
    """{pid: Truth}"""
    truths = {}
    for path in glob.glob(glob.escape(prefix) + ".*"):
        truth = truths.setdefault(int(path.rsplit(".", 1)[1]), Truth())
        with open(path, encoding="ascii") as file:
            for line in file:
                thread, a, b = line.split()
                if thread == "check":
                    truth.check.append((int(a), int(b)))
                else:
                    truth.threads.setdefault(thread, []).append((int(a), int(b)))
        truth.close()
        os.unlink(path)
    return truths


def read_samples(path, raw_minus_unix_ns):
    """({pid: {end of window: (length, cpu)}} in raw time, {pid: total of its samples})"""
    windows, totals = {}, {}
    with open(path, encoding="ascii") as file:
        for line in file:
            kind, pid, _, t_ns, dt_ns, cpu, _ = map(int, line.split())
            if kind == SAMPLE:
                windows.setdefault(pid, {})[t_ns + raw_minus_unix_ns] = (dt_ns, cpu)
                totals[pid] = totals.get(pid, 0) + cpu
    return windows, totals


def window_errors(windows, truth, only_known):
    """Percentage points of a core for every window that the truth covers."""
    errors, ends = [], sorted(windows)
    if not ends:
        return errors
    first = ends[0]
    t = first + -(-(truth.begin + WINDOW_NS - first) // WINDOW_NS) * WINDOW_NS
    while t <= truth.end:
        if not only_known or truth.knows(t) and truth.knows(t - WINDOW_NS):
            used = nearest(windows, ends, t)
            errors.append(100 * abs(used - truth.between(t - WINDOW_NS, t)) / WINDOW_NS)
        t += WINDOW_NS
    return errors


def nearest(windows, ends, t):
    """The sample with the window that ends at t; ends may differ by rounding only."""
    i = bisect.bisect_left(ends, t - 1000)
    if i < len(ends) and abs(ends[i] - t) <= 1000:
        return windows[ends[i]][1]
    return 0


def psutil_errors(path, truths):
    errors, last = [], {}
    with open(path, encoding="ascii") as file:
        for line in file:
            pid, t, cpu = map(int, line.split())
            if pid in truths and pid in last:
                t0, cpu0 = last[pid]
                truth = truths[pid]
                if t0 >= truth.begin and t <= truth.end and t > t0:
                    used = truth.between(t0, t)
                    errors.append(100 * abs(cpu - cpu0 - used) / (t - t0))
            last[pid] = (t, cpu)
    return errors


def wait_for_child(program):
    """The CPU time of the child and its descendants by wait4, which only the first waiter gets. It is reaped after
    it has left the CPU: before that its last stretch is not yet charged."""
    os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOWAIT)
    time.sleep(0.05)
    _, status, usage = os.wait4(program.pid, 0)
    program.process.returncode = os.waitstatus_to_exitcode(status)
    if program.process.returncode != 0:
        raise Ended(f"pattern: {program.errors()}")
    return int(round((usage.ru_utime + usage.ru_stime) * 1e9))


def phase_of(watcher):
    """The end of some window, once there is one."""
    for _ in range(100):
        stats = watcher.ask_json("stats")
        if stats["phase_t_ns"]:
            return stats["phase_t_ns"]
        time.sleep(0.05)
    raise Ended("no sample within five seconds")


def measure_ours(bench, arguments, seconds, truth_kind):
    """(errors of all windows, error over the run in %, windows)"""
    log, prefix = bench.file("samples"), bench.file("truth")
    phase = 0
    if truth_kind == "clock":
        # The phase of the windows must be known before the pattern begins: watch everything, starting earlier.
        watcher = bench.watch("--all", "--hz", 100, "--log", log)
        meta = watcher.ask_json("start")
        shift = meta["anchor_raw_ns"] - meta["anchor_unix_ns"]
        phase = phase_of(watcher) + shift
    pattern = bench.tool("pattern", "--log", prefix, "--seconds", seconds, "--truth", truth_kind,
                         "--phase-ns", phase, *arguments)
    pid = int(pattern.ready()[0])
    if truth_kind == "self":
        watcher = bench.watch("--pid", pid, "--hz", 100, "--log", log)
        meta = watcher.ask_json("start")
        shift = meta["anchor_raw_ns"] - meta["anchor_unix_ns"]
    # CPU time before it was watched; it sleeps now, so its clock is exact.
    before = cpu_ns(pid) if truth_kind == "self" else 0
    pattern.process.stdin.write("go\n")
    pattern.process.stdin.flush()
    used = wait_for_child(pattern) - before
    time.sleep(0.3)
    stats = watcher.ask_json("stop")
    watcher.kill()
    pattern.kill()
    truths = read_truth(prefix)
    windows, sums = read_samples(log, shift)
    errors = []
    for p, truth in truths.items():
        errors += window_errors(windows.get(p, {}), truth, truth_kind == "clock")
    found = sum(sums.get(p, 0) for p in truths)
    return errors, 100 * abs(found - used) / used, stats["lost"]


def measure_psutil(bench, arguments, seconds):
    log, prefix = bench.file("psutil"), bench.file("truth")
    pattern = bench.tool("pattern", "--log", prefix, "--seconds", seconds, *arguments)
    pid = int(pattern.ready()[0])
    peer = bench.psutil("cpu", 100, log, pid)
    pattern.process.stdin.write("go\n")
    pattern.process.stdin.flush()
    wait_for_child(pattern)
    pattern.kill()
    json.loads(peer.end(signal.SIGTERM))
    return psutil_errors(log, read_truth(prefix))


def add_pattern(bench, section, name, arguments, seconds, repeat):
    for truth_kind in ("self", "clock"):
        means, runs, note = [], [], ""
        try:
            for _ in range(repeat):
                errors, over_run, lost = measure_ours(bench, arguments, seconds, truth_kind)
                if not errors:
                    raise Ended("no window could be compared")
                means.append(statistics.fmean(errors))
                runs.append(over_run)
                note = f"{len(errors)} windows, 99 % under {percentile(errors, 99):.2f}, {lost} lost"
        except (Missing, Ended) as error:
            note = str(error)
        section.add(f"{name}: windows, truth {truth_kind}", "points", means, bar=1.0, note=note)
        section.add(f"{name}: over the run, truth {truth_kind}", "%", runs, bar=0.1)
    truths = [statistics.fmean(measure_truth(bench, arguments, seconds)) for _ in range(repeat)]
    section.add(f"{name}: the two truths apart", "points", truths)
    values, note = [], ""
    try:
        for _ in range(repeat):
            errors = measure_psutil(bench, arguments, seconds)
            if errors:
                values.append(statistics.fmean(errors))
                note = f"{len(errors)} windows"
    except (Missing, Ended) as error:
        note = str(error)
    section.add(f"{name}: psutil 100 Hz", "points", values, note=note)


def measure_truth(bench, arguments, seconds):
    """How far the two methods for the truth differ, in points of a 10 ms window."""
    prefix = bench.file("truth")
    pattern = bench.tool("pattern", "--log", prefix, "--seconds", seconds, "--truth", "both",
                         *arguments)
    pattern.ready()
    pattern.process.stdin.write("go\n")
    pattern.process.stdin.flush()
    wait_for_child(pattern)
    pattern.kill()
    errors = []
    for truth in read_truth(prefix).values():
        points = [p for p in truth.check[1::2] if truth.begin <= p[0] <= truth.end]
        for (t0, cpu0), (t1, cpu1) in zip(points, points[1:]):
            if t1 - t0 < 1.5 * WINDOW_NS:
                errors.append(100 * abs(cpu1 - cpu0 - truth.between(t0, t1)) / (t1 - t0))
    return errors


def percentile(values, p):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * p // 100)]


def run(bench):
    seconds = 2 if bench.quick else 5
    repeat = bench.repeat or (1 if bench.quick else 5)
    section = Section("accuracy", f"CPU time at 100 Hz against the workload's own CPU clock, "
                                  f"{repeat} x {seconds} s; mean absolute error of 10 ms windows")
    patterns = PATTERNS[:2] if bench.quick else PATTERNS
    for name, arguments in patterns:
        if bench.wanted(name):
            add_pattern(bench, section, name, arguments, seconds, repeat)
    section.note("truth self: each thread's own CPU clock and its uninterrupted stretches; truth clock: "
                 "the CPU clocks of all threads, read by one of them at the window ends")
    if bench.wanted("amounts"):
        amounts.add_rows(section, bench, repeat)
    return section
