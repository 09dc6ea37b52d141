# SPDX-License-Identifier: MIT
"""soak: minutes of churn; memory and descriptors must not grow, nothing may be lost or left behind.

In the first half of the time everything at once: new processes (30,000 a minute), new threads, as many context switches as
two pipes per CPU give, and four monitors: callbacks, a recorder, the Python package, and `run`, the output of which is
compared with what the storm did. Loss is allowed, uncounted loss is not. Then quieter churn, in which nothing may be lost.

Next to the usual population, short-lived processes and threads start and exit all the time. The first fifth of the
time is warm-up; growth is measured from there to the end. Afterwards the watcher is stopped once normally and once
by SIGKILL, and the eBPF programs that are still loaded are counted.
"""
import glob
import json
import math
import os
import signal
import statistics
import threading
import time

from . import python
from .figures import Section
from .processes import Ended, Missing, Program, cpu_ns, status_kb


def fd_count(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def held():
    """IDs of the eBPF programs that some process has open: other programs may watch on this machine, too."""
    ids = set()
    for path in glob.glob("/proc/[0-9]*/fdinfo/*"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                ids.update(int(line.split()[1]) for line in file if line.startswith("prog_id:"))
        except OSError:
            pass  # it has exited or closed it meanwhile
    return ids


def slope_share(looks):
    """Growth of the memory over the time, by the slope of a line through the readings, in shares of its median; and by how
    much that may be off."""
    warm = [rss for rss, _ in looks[len(looks) // 3:]]
    times = range(len(warm))
    slope, begin = statistics.linear_regression(times, warm)
    rest = [rss - begin - slope * t for t, rss in zip(times, warm)]
    spread = sum((t - statistics.mean(times)) ** 2 for t in times)
    error = math.sqrt(sum(r * r for r in rest) / max(1, len(rest) - 2) / spread)
    scale = len(warm) / statistics.median(warm)
    return slope * scale, 2 * error * scale


class Follower(threading.Thread):
    """One reading of a process per second."""

    def __init__(self, pid, stop):
        super().__init__(daemon=True)
        self.pid, self.stop, self.looks = pid, stop, []
        self.cpu, self.begun = cpu_ns(pid), time.monotonic()
        self.start()

    def run(self):
        while not self.stop.wait(1):
            self.looks.append((status_kb(self.pid, "VmRSS")[0], fd_count(self.pid)))
            self.share = 100 * (cpu_ns(self.pid) - self.cpu) / ((time.monotonic() - self.begun) * 1e9)


class Counter(threading.Thread):
    """What `run --json` reports about the storm."""

    def __init__(self, program):
        super().__init__(daemon=True)
        self.program, self.starts, self.exits, self.lost, self.stats = program, 0, 0, 0, {}
        self.start()

    def run(self):
        for line in self.program.process.stdout:
            if line.startswith('{"type":"exit"'):
                self.exits += 1
            elif line.startswith('{"type":"start"'):
                self.starts += 1
            elif line.startswith('{"type":"loss"'):
                self.lost += json.loads(line)["count"]
            elif line.startswith('{"type":"stats"'):
                self.stats = json.loads(line)


def storm(bench, section, seconds):
    stop = threading.Event()
    callbacks = bench.watch("--all", "--threads", "--hz", 100)
    callbacks.ask("start")
    path = bench.file("soak.pftrace")
    recorder = Program([bench.etwatch(), "record", "--json", "-q", "-a", "-o", path, "--max-size", "32M", "--rotate", "2"],
                       pipe_in=False)
    script = python.start(bench, "batch", "100")
    fifo = bench.file("soak.fifo")
    os.mkfifo(fifo)
    watched = Program([bench.etwatch(), "run", "--json", "-q", "--", "sh", "-c",
                       f'exec "{bench.path("storm")}" --processes 500 --threads 2000 --pipes {2 * os.cpu_count()}'
                       f' <"{fifo}" >"{fifo}.out"'], pipe_in=False)
    counter = Counter(watched)
    with open(fifo, "w", encoding="utf-8") as command:
        followers = {name: Follower(program.pid, stop) for name, program in
                     (("callbacks", callbacks), ("recorder", recorder), ("Python", script), ("run", watched))}
        time.sleep(seconds)
        stop.set()
        command.write("end\n")
    watched.process.wait()
    counter.join()
    with open(fifo + ".out", encoding="utf-8") as file:
        truth = json.loads(file.read().splitlines()[-1])
    counts = callbacks.ask_json("stop")
    left = fd_count(callbacks.pid)
    callbacks.kill()
    python.finish(script)
    recorder.end(signal.SIGINT, timeout=60)
    section.add("storm: processes", "per minute", [60 * truth["processes"] / seconds])
    section.add("storm: threads", "per second", [truth["threads"] / seconds])
    section.add("storm: context switches of the pipes", "per second", [truth["switches"] / seconds])
    for name, follower in followers.items():
        follower.join()
        growth, error = slope_share(follower.looks)
        if name == "recorder":  # its report has a row for every process, up to 131,072
            grown = 1024 * (follower.looks[-1][0] - follower.looks[len(follower.looks) // 3][0])
            section.add(f"storm, {name}: growth of memory per new process", "bytes",
                        [grown * 1.5 / max(1, truth["processes"])], bar=1024, note="until its table is full")
        else:
            section.add(f"storm, {name}: growth of memory", "times", [1 + max(0, growth - error)], bar=1.05,
                        note=f"slope {100 * growth:+.2f} % of its memory, ± {100 * error:.2f}")
        fds = [count for _, count in follower.looks[len(follower.looks) // 5:]]
        section.add(f"storm, {name}: descriptors, most minus fewest", "fds", [max(fds) - min(fds)],
                    bar=4 if name == "recorder" else 1)
        section.add(f"storm, {name}: CPU", "% of a core", [follower.share])
    # The shell and the storm are the same process; it is not among its own children.
    missing = max(0, truth["processes"] + 1 - counter.exits)
    section.add("storm, run: exits that are missing", "processes", [missing])
    section.add("storm, run: of these not counted as lost", "processes", [max(0, missing - counter.lost)], bar=1)
    section.add("storm, run: starts without an exit", "processes", [counter.starts - counter.exits], bar=1)
    section.add("storm, run: losses reported minus those in the statistics", "events",
                [abs(counter.lost - counter.stats.get("lost", -1))], bar=1)
    section.add("storm, callbacks: lost", "events", [counts["lost"]])
    section.add("storm, callbacks: descriptors left after stop", "fds", [left], bar=8)


class Programs:
    """The eBPF programs of the kernel, by ID."""

    def __init__(self, bench):
        self.counter = bench.tool("bpf_time")
        self.counter.ready()

    def loaded(self):
        return {p["id"]: p["name"] for p in self.counter.ask_json("list")}


def follow(watcher, seconds):
    """One reading per second: [(rss_kb, fds)], and the CPU share of the whole time."""
    looks, begin, cpu = [], time.monotonic(), cpu_ns(watcher.pid)
    while time.monotonic() - begin < seconds:
        time.sleep(1)
        looks.append((status_kb(watcher.pid, "VmRSS")[0], fd_count(watcher.pid)))
    share = 100 * (cpu_ns(watcher.pid) - cpu) / ((time.monotonic() - begin) * 1e9)
    return looks, share


def soak_once(bench, section, seconds):
    watcher = bench.watch("--all", "--threads", "--hz", 100)
    watcher.ask("start")
    looks, share = follow(watcher, seconds)
    stats = watcher.ask_json("stop")
    fds_after_stop = fd_count(watcher.pid)
    watcher.kill()
    warm = looks[len(looks) // 5:]
    third = max(1, len(warm) // 3)
    first = statistics.median(rss for rss, _ in warm[:third])
    last = statistics.median(rss for rss, _ in warm[-third:])
    fds = [count for _, count in warm]
    section.add("memory: last third to first third", "times", [last / first], bar=1.05)
    section.add("memory: highest", "MB RSS", [max(rss for rss, _ in looks) / 1024], bar=12)
    section.add("descriptors: most minus fewest", "fds", [max(fds) - min(fds)], bar=1)
    section.add("descriptors left after stop", "fds", [fds_after_stop], bar=8,
                note="stdin, stdout, stderr and those inherited from the driver")
    section.add("lost", "events", [stats["lost"]], bar=1)
    section.add("processes that ended meanwhile", "exits", [stats["exits"]])
    section.add("CPU of the watcher, threads too", "% of a core", [share])


def restarts(bench, section, count):
    """Start and stop in one process: leaks of each would add up."""
    watcher = bench.watch("--all", "--hz", 100)
    rss, fds = [], []
    for _ in range(count):
        watcher.ask("start")
        watcher.ask("stop")
        rss.append(status_kb(watcher.pid, "VmRSS")[0])
        fds.append(fd_count(watcher.pid))
    watcher.kill()
    section.add(f"{count} restarts: descriptors, last minus first", "fds", [fds[-1] - fds[0]], bar=1)
    tenth = max(1, count // 10)
    section.add(f"{count} restarts: memory, last to first", "times", [rss[-1] / rss[tenth]], bar=1.05)


def names_of_ours(bench, programs):
    before = programs.loaded()
    watcher = bench.watch("--all", "--hz", 100)
    watcher.ask("start")
    names = {name for i, name in programs.loaded().items() if i not in before}
    watcher.ask("stop")
    watcher.kill()
    return names


def killed(bench, section, count):
    """SIGKILL at random moments; every program must be unloaded with its process."""
    row = f"eBPF programs left by {count} kills"
    try:
        programs = Programs(bench)
    except (Missing, Ended) as error:
        section.add(row, "programs", [], bar=1, note=str(error))
        return
    names = names_of_ours(bench, programs)
    before = programs.loaded()
    for i in range(count):
        watcher = bench.watch("--all", "--hz", 1000)
        watcher.process.stdin.write("start\n")
        watcher.process.stdin.flush()
        time.sleep(0.02 * i)
        watcher.kill()
    time.sleep(1)
    left = [name for i, name in programs.loaded().items() if i not in before and name in names and i not in held()]
    section.add(row, "programs", [len(left)], bar=1, note=f"of {len(names)} kinds")


def run(bench):
    minutes = bench.minutes or (0.3 if bench.quick else 5)
    section = Section("soak", f"{minutes:g} minutes at 100 Hz with threads, 200 idle and 20 busy "
                              "processes, 16 short-lived ones every few milliseconds")
    storm(bench, section, minutes * 30)
    load = bench.load(200, 20)
    churn = bench.tool("burst", "--forever", "--count", 160, "--gap-us", 20000)
    churn.ready()
    churn.process.stdin.write("go\n")
    churn.process.stdin.flush()
    soak_once(bench, section, minutes * 30)
    churn.kill()
    restarts(bench, section, 10 if bench.quick else 50)
    killed(bench, section, 5 if bench.quick else 20)
    bench.unload(load)
    return section
