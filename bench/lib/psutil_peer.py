# SPDX-License-Identifier: MIT
"""The psutil peer: typical code of today. Runs as its own process and prints JSON on SIGTERM.

  all HZ            every process: cpu, memory, io, threads, switches in each round
  pids HZ           only the list of pids, and which were ever seen
  figures HZ LOG PID   everything of its child in each round, until that ends
  cpu HZ LOG PID    CPU time of one process and its children in each round, with the time
"""
import json
import os
import signal
import sys
import time

import psutil

FIELDS = ["cpu_times", "memory_info", "num_threads", "num_ctx_switches", "io_counters"]
stopped = False


def on_term(_number, _frame):
    global stopped
    stopped = True


def rounds(hz):
    """One round per period until ended or orphaned; missed rounds are not repeated."""
    period, following, parent = 1.0 / hz, time.monotonic(), os.getppid()
    while not stopped and os.getppid() == parent:
        yield
        following += period
        now = time.monotonic()
        if following > now:
            time.sleep(following - now)
        else:
            following = now


def watch_all(hz):
    count, processes, seen = 0, {}, set()
    for _ in rounds(hz):
        for pid in psutil.pids():
            try:
                process = processes.get(pid) or processes.setdefault(pid, psutil.Process(pid))
                with process.oneshot():
                    process.as_dict(FIELDS)
                seen.add(pid)
            except psutil.Error:
                processes.pop(pid, None)
        count += 1
    return count, {"seen": sorted(seen)}


def watch_pids(hz):
    count, seen = 0, set(psutil.pids())
    before = set(seen)
    for _ in rounds(hz):
        seen.update(psutil.pids())
        count += 1
    return count, {"seen": sorted(seen - before)}


def watch_figures(hz, path, pid):
    count, children = 0, []
    while not children:
        children = psutil.Process(pid).children()
    process = children[0]
    fields = FIELDS + ["num_fds", "nice", "cpu_affinity", "ionice"]
    with open(path, "w", encoding="ascii") as file:
        for _ in rounds(hz):
            try:
                if process.status() == psutil.STATUS_ZOMBIE:
                    break
                file.write(json.dumps(process.as_dict(fields)) + "\n")
            except psutil.Error:
                break
            count += 1
    return count, {}


def watch_cpu(hz, path, pid):
    count = 0
    processes = {pid: psutil.Process(pid)}
    lines = []
    for _ in rounds(hz):
        if count == 20:  # its children exist by now; searching for them in every round costs too much
            processes.update((p.pid, p) for p in processes[pid].children(recursive=True))
        for process in list(processes.values()):
            try:
                times = process.cpu_times()
                now_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
                lines.append((process.pid, now_ns, int((times.user + times.system) * 1e9)))
            except psutil.Error:
                processes.pop(process.pid)
        count += 1
        if not processes:
            break
    with open(path, "w", encoding="ascii") as file:
        file.writelines("%d %d %d\n" % line for line in lines)
    return count, {}


def main():
    signal.signal(signal.SIGTERM, on_term)
    mode, hz = sys.argv[1], float(sys.argv[2])
    print("ready", flush=True)
    start = time.monotonic()
    if mode == "all":
        count, out = watch_all(hz)
    elif mode == "pids":
        count, out = watch_pids(hz)
    elif mode == "figures":
        count, out = watch_figures(hz, sys.argv[3], int(sys.argv[4]))
    else:
        count, out = watch_cpu(hz, sys.argv[3], int(sys.argv[4]))
    out["hz_reached"] = count / (time.monotonic() - start)
    print(json.dumps(out), flush=True)


if __name__ == "__main__":
    main()
