# SPDX-License-Identifier: MIT
"""Waits of a recording, compared with an independent computation from the same events in Python."""
import os
from collections import defaultdict

from etlkit import make_etl
from lib import cases, check, check_eq, json_lines, main, run, temp_dir

PAGE_REASONS = (1, 2, 8, 9)
FREQUENCY = 10_000_000  # performance counter frequency in made recordings


def expected(events):
    """{(tid, waker): (count, wait_ns, max, blocked, ready)} and {tid: (run, ready, sleep, blocked)}."""
    state, since, waker_of, running = {}, {}, {}, defaultdict(int)
    times, edges = defaultdict(lambda: [0, 0, 0, 0]), defaultdict(lambda: [0, 0, 0, 0, 0])
    places = {"run": 0, "ready": 1, "sleep": 2, "blocked": 3}

    def leave(tid, t):
        length = t - since.get(tid, t)
        if state.get(tid) in places:
            times[tid][places[state[tid]]] += length
        since[tid] = t
        return length

    last = 0
    for e in events:
        t, f = e["t_rel_ns"], e["fields"]
        last = t
        if e["event"] == "Thread/CSwitch":
            old, new = f["OldThreadId"], f["NewThreadId"]
            running[e["cpu"]] = new
            if old:
                leave(old, t)
                waits = f["OldThreadState"] == 5
                state[old] = (None if f["OldThreadState"] == 4 else "ready" if not waits else
                              "blocked" if f["OldThreadWaitReason"] in PAGE_REASONS else "sleep")
                waker_of[old] = None
            if new:
                length = leave(new, t)
                if state.get(new) == "ready" and waker_of.get(new) is not None:
                    edges[new, waker_of[new]][4] += length
                state[new], waker_of[new] = "run", None
        elif e["event"] == "Dispatcher/ReadyThread":
            tid, waker = f["TThreadId"], running[e["cpu"]]
            if not tid or state.get(tid) in ("run", "ready"):
                continue
            was, length = state.get(tid), leave(tid, t)
            state[tid] = "ready"
            if was is None:
                continue
            waker_of[tid] = waker
            edge = edges[tid, waker]
            edge[0] += 1
            edge[1] += length
            edge[2] = max(edge[2], length)
            edge[3] += length if was == "blocked" else 0
    for tid in list(state):
        leave(tid, last)
    return edges, times


@cases([("switches", "switches"), ("mixed", "mixed"), ("windows7", "windows7")])
def every_wait_matches_the_events(kind):
    with temp_dir() as folder:
        path = os.path.join(folder, "x.etl")
        make_etl(kind, path)
        events = json_lines(run(["events", "--json", path]).out)
        result = run(["waits", "--json", "-q", path])
    check_eq(result.code, 0, f"exit code ({result.err})")
    objects = json_lines(result.out)
    events = [e for e in events if "event" in e]
    begin = events[0]["t_ns"]
    for e in events:
        e["t_rel_ns"] = e["t_ns"] - begin
    edges, times = expected(events)
    got = {(o["tid"], o["waker_tid"]): [o["count"], o["wait_ns"], o["wait_max_ns"], o["blocked_ns"], o["ready_ns"]]
           for o in objects if o["type"] == "wake"}
    check(len(got) > 20, f"only {len(got)} pairs")
    for pair, edge in got.items():
        check_eq((pair, edge), (pair, edges[pair]), "a pair")
    for o in objects:
        if o["type"] == "waits":
            check_eq([o["run_ns"], o["ready_ns"], o["sleep_ns"], o["blocked_ns"]], times[o["tid"]],
                     f"times of thread {o['tid']}")
    answers = defaultdict(int)
    for e in events:
        if e["event"] in ("DiskIO/Read", "DiskIO/Write"):
            ticks = e["fields"]["HighResResponseTime"]
            answers[e["fields"].get("IssuingThreadId", e["tid"])] += ticks * 1_000_000_000 // FREQUENCY
    for o in objects:
        if o["type"] == "waits":
            check_eq(o["disk_ns"], answers[o["tid"]] if answers else None, f"time of the disk for thread {o['tid']}")
    faulted = {e["fields"]["TThreadId"] for e in events if e["event"] == "Memory/HardFault"}
    reported = {o["tid"]: o["fault_ns"] for o in objects if o["type"] == "waits"}
    if not faulted:
        check_eq(set(reported.values()), {None}, "time of faults that are not in the recording")
    else:
        late = {tid for tid, fault_ns in reported.items() if fault_ns > 0}
        check(late and late <= faulted, "time of hard faults is not attributed to their threads")


@cases([("switches", "switches"), ("mixed", "mixed"), ("lost events", "lost")])
def a_perfetto_trace_made_of_it_has_the_same_waits(kind):
    with temp_dir() as folder:
        path, trace = os.path.join(folder, "x.etl"), os.path.join(folder, "x.pftrace")
        make_etl(kind, path)
        check_eq(run(["export", "-q", path, "-o", trace]).code, 0, "exit code of export")
        ours, theirs = (json_lines(run(["waits", "--json", "-q", name]).out) for name in (path, trace))
    check(ours, "no waits")
    for o in ours:
        if o["type"] == "waits":
            o["fault_ns"] = o["disk_ns"] = None  # hard faults and disk requests are not in the trace
    check_eq(theirs, ours, "waits")


main()
