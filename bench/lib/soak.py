# SPDX-License-Identifier: MIT
"""soak: minutes of churn; memory and descriptors must not grow, nothing may be lost or left behind.

Next to the usual population, short-lived processes and threads start and exit all the time. The first fifth of the
time is warm-up; growth is measured from there to the end. Afterwards the watcher is stopped once normally and once
by SIGKILL, and the eBPF programs that are still loaded are counted.
"""
import os
import statistics
import time

from .figures import Section
from .processes import Ended, Missing, cpu_ns, status_kb


def fd_count(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


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
    left = [name for i, name in programs.loaded().items() if i not in before and name in names]
    section.add(row, "programs", [len(left)], bar=1, note=f"of {len(names)} kinds")


def run(bench):
    minutes = bench.minutes or (0.3 if bench.quick else 5)
    section = Section("soak", f"{minutes:g} minutes at 100 Hz with threads, 200 idle and 20 busy "
                              "processes, 16 short-lived ones every few milliseconds")
    load = bench.load(200, 20)
    churn = bench.tool("burst", "--forever", "--count", 160, "--gap-us", 20000)
    churn.ready()
    churn.process.stdin.write("go\n")
    churn.process.stdin.flush()
    soak_once(bench, section, minutes * 60)
    churn.kill()
    restarts(bench, section, 10 if bench.quick else 50)
    killed(bench, section, 5 if bench.quick else 20)
    bench.unload(load)
    return section
