# SPDX-License-Identifier: MIT
"""Recordings of a synthetic machine with known values for every thread: the report must match exactly.

make_etl writes the work of each process and thread into a separate file while it generates the events. There is no
tolerance: times are ticks of the recording's clock, everything else is counted.
"""
import collections
import json
import os

from etlkit import etwatch, make_etl, report
from lib import cases, check, check_eq, main, run, temp_dir, test

HEADER_RAW = 1_000_000_000  # when the session of make_etl begins

# Our name: its name. For processes and threads.
BOTH = {"switches_voluntary": "switches_waiting", "switches_involuntary": "switches_ready",
        "runq_wait_ns": "ready_ns", "faults_major": "hard_faults", "faults_minor": "faults",
        "disk_read_bytes": "disk_read_bytes", "disk_write_bytes": "disk_write_bytes",
        "io_read_bytes": "file_read_bytes", "io_write_bytes": "file_write_bytes"}
PROCESS = {"ppid": "parent", "session_id": "session", "name": "name",
           "net_sent_bytes": "sent_bytes", "net_received_bytes": "received_bytes"}
# Values from switches only.
SWITCHES = {"switches_voluntary", "switches_involuntary", "runq_wait_ns"}
# Values that add up over samples.
ADDED = ["cpu_ns", *BOTH, "net_sent_bytes", "net_received_bytes", "io_read_ops", "io_write_ops"]


def made(folder, kind, *options):
    """(path, truth) of a recording."""
    path, truth = os.path.join(folder, "made.etl"), os.path.join(folder, "truth.json")
    make_etl(kind, path, "--truth", truth, *options)
    with open(truth, encoding="utf-8") as file:
        return path, json.load(file)


class Clock:
    def __init__(self, trace, truth):
        self.start_ns, self.tick_ns = trace["start_ns"], truth["raw_ns"]

    def ns(self, raw):
        return self.start_ns + (raw - HEADER_RAW) * self.tick_ns if raw else None


def identity(o):
    return o["pid"], o["start_ns"]


def check_values(ours, theirs, names, what):
    for mine, name in names.items():
        check_eq(ours[mine], theirs[name], f"{what}: {mine}")


def check_system(trace, truth):
    """Every CPU second of the recording is attributed."""
    interrupts = truth["dpc_ns"] + truth["isr_ns"]
    check_eq((trace["dpc_ns"], trace["isr_ns"]), (truth["dpc_ns"], truth["isr_ns"]), "DPCs and ISRs")
    check_eq(trace["busy_ns"] + trace["idle_ns"] + interrupts, truth["busy_ns"] + truth["idle_ns"], "all CPU time")
    check_eq(trace["busy_ns"], sum(t["cpu_ns"] - t["interrupt_ns"] for t in truth["threads"]), "time of all threads")
    check_eq((trace["switches"], trace["samples"]), (truth["switches"], truth["samples"]), "switches and samples")
    check_eq(trace["busy_ns"] + trace["idle_ns"] + interrupts + trace["unknown_ns"],
             trace["cpus"] * trace["duration_ns"], "CPUs times wall time")


def check_process(process, theirs, what):
    check_values(process, theirs, {**BOTH, **PROCESS}, what)
    check_eq(process["cpu_ns"], theirs["cpu_ns"] - theirs["interrupt_ns"], f"{what}: cpu_ns")
    check_eq(process["rss_peak_bytes"], theirs["working_set_peak_bytes"], f"{what}: rss_peak_bytes")
    # Switches give the exact time, samples an estimate of the mode: a recording of both has both.
    sampled = process["cpu_user_ns"] is not None
    check_eq(process["estimated"], ["cpu_user_ns", "cpu_kernel_ns"] if sampled else [], f"{what}: estimated")
    check(sampled or theirs["samples"] == 0, f"{what}: samples give no mode")
    if sampled:
        check_eq((process["cpu_user_ns"] > 0, process["cpu_kernel_ns"]), (theirs["samples"] > 0, 0), f"{what}: modes")


def check_lifetimes(found, truth, clock):
    """IDs, starts and exits of all processes and threads; returns pairs of ours and theirs."""
    ours = {(p["pid"], p["start_ns"]): p for p in found["process"] if p["pid"] != 0}
    theirs = {(p["pid"], clock.ns(p["start_raw"])): p for p in truth["processes"]}
    check_eq(sorted(map(str, ours)), sorted(map(str, theirs)), "processes")
    alive = collections.Counter(t["process"] for t in truth["threads"] if not t["end_raw"])
    for number, (which, process) in enumerate(theirs.items()):
        # Threads at the end of the recording; for an exited process all it ever had.
        check_eq(ours[which]["threads"], process["threads"] if process["end_raw"] else alive[number],
                 f"threads of process {which}")
        check_eq(ours[which]["exit_ns"], clock.ns(process["end_raw"]), f"end of process {which}")
        if process["end_raw"]:
            check_eq(ours[which]["exit_code"], process["exit_status"], f"exit code of process {which}")
    my_threads = {(t["pid"], t["tid"], t["start_ns"]): t for t in found["thread"] if t["pid"] != 0}
    their_threads = {(t["pid"], t["tid"], clock.ns(t["start_raw"])): t for t in truth["threads"]}
    return ([(f"process {k}", ours[k], theirs[k]) for k in theirs],
            [(f"thread {k}", my_threads.get(k), their_threads[k]) for k in their_threads],
            sorted(set(my_threads) - set(their_threads), key=str))


@cases([
    ("everything", "mixed", ()),
    ("everything, compressed", "mixed", ("--compress",)),
    ("everything, 32 bit", "mixed", ("--pointer", "4")),
    ("one CPU", "mixed", ("--cpus", "1", "--seed", "5")),
    ("many CPUs, small buffers", "mixed", ("--cpus", "64", "--buffer", "8192", "--seed", "6")),
    ("three hundred thousand events", "mixed", ("--events", "300000", "--seed", "7")),
    ("dense", "bench", ("--events", "100000", "--cpus", "8", "--seed", "8")),
    ("Windows 7", "windows7", ()),
    ("never closed", "unclosed", ()),
])
def a_report_matches_the_truth(kind, options):
    with temp_dir() as folder:
        path, truth = made(folder, kind, *options)
        found = report(path, "--threads")
    trace = found["trace"][0]
    processes, threads, more = check_lifetimes(found, truth, Clock(trace, truth))
    check_eq((trace["undecoded"], trace["cpu_from"]), (0, "switches"), "undecoded, CPU from")
    check_system(trace, truth)
    for what, ours, theirs in processes:
        check_process(ours, theirs, what)
    for what, ours, theirs in threads:
        check(ours is not None, f"{what} is missing")
        check_values(ours, theirs, BOTH, what)
        check_eq(ours["cpu_ns"], theirs["cpu_ns"] - theirs["interrupt_ns"], f"{what}: cpu_ns")
    for pid, tid, _ in more:  # work of a process outside of any known thread
        check_eq(tid, pid, f"a thread that does not exist: {pid}/{tid}")
    print(f"# {len(processes)} processes, {len(threads)} threads, {trace['events']} events")


PMC = ["cycles", "instructions", "cache_misses"]
# What happens to the counters: known exactly, with a marked gap, or unknown.
FATES = {"counters": "whole", "counters-late": "whole", "counters-restart": "gap", "counters-pause": "gap",
         "counters-unnamed": None, "counters-renamed": None, "counters-disturbed": None}


@cases([(kind, kind, fate) for kind, fate in FATES.items()])
def hardware_counters_are_exact_marked_or_null(kind, fate):
    with temp_dir() as folder:
        path, truth = made(folder, kind, "--seed", "11")
        found = report(path, "--threads")
    processes, threads, _ = check_lifetimes(found, truth, Clock(found["trace"][0], truth))
    for what, ours, theirs in processes + threads:
        for name in PMC:
            check_eq(ours[name], theirs[name] if fate else None, f"{what}: {name}")
    for what, ours, theirs in processes:
        check_eq(ours["complete"], not (fate and theirs["counters_gap"]), f"{what}: complete")
    check_eq(any(theirs["counters_gap"] for _, _, theirs in processes), kind in ("counters-restart", "counters-pause"),
             "a process has a gap")


@cases([(f"{kind}, {hz} Hz", kind, hz) for kind in FATES for hz in (10, 1000)])
def hardware_counters_of_samples_add_up(kind, hz):
    with temp_dir() as folder:
        path, truth = made(folder, kind, "--seed", "12")
        found = report(path)
        objects = etwatch("stat", "--source", "etl", path, "--hz", hz, "--json")
    samples = [o for o in objects if o["type"] == "sample"]
    totals = {identity(o): o for o in found["process"] if o["pid"] != 0}
    if FATES[kind] is None:
        check_eq({o[name] for o in samples for name in PMC}, {None}, "counters of samples")
        return
    for name in PMC:
        sums = collections.Counter()
        for o in samples:
            sums[identity(o)] += o[name]
        check_eq({k: n for k, n in sums.items() if n}, {k: o[name] for k, o in totals.items() if o[name]}, name)
    gaps = {identity(o) for o in totals.values() if not o["complete"]}
    check_eq({identity(o) for o in samples if not o["complete"]}, gaps, "samples that are marked")


@test
def a_part_of_a_recording_has_its_share_of_the_counters():
    with temp_dir() as folder:
        early, _ = made(folder, "counters", "--seed", "13")
        parts = [report(early, "--from", a, "--to", b) for a, b in (("0", "30ms"), ("30ms", "1000s"))]
        whole = report(early)
        late, _ = made(folder, "counters-late", "--seed", "13")
        unknown = report(late, "--from", "30ms")
    for name in PMC:
        for process in whole["process"]:
            got = sum(p[name] for part in parts for p in part["process"] if identity(p) == identity(process))
            check_eq(got, process[name], f"{identity(process)}: {name}")
        # The counts before the middle are unknown when the names come after it.
        check_eq({p[name] for p in unknown["process"]}, {None}, f"{name} from the middle on")


@test
def metrics_that_were_not_recorded_are_null_and_not_zero():
    with temp_dir() as folder:
        path, truth = made(folder, "switches")
        found = report(path, "--threads")
    trace = found["trace"][0]
    processes, _, _ = check_lifetimes(found, truth, Clock(trace, truth))
    for what, ours, theirs in processes:
        check_values(ours, theirs, {name: BOTH[name] for name in SWITCHES}, what)
        check_eq(ours["cpu_ns"], theirs["cpu_ns"], f"{what}: cpu_ns")
        for name in sorted(set(BOTH) - SWITCHES) + ["net_sent_bytes", "net_received_bytes", "rss_bytes"]:
            check_eq(ours[name], None, f"{what}: {name}")


@test
def without_switches_values_from_samples_are_marked_as_estimated():
    with temp_dir() as folder:
        path, truth = made(folder, "profile")
        found = report(path)
    trace = found["trace"][0]
    check_eq((trace["cpu_from"], trace["samples"]), ("samples", truth["samples"]), "CPU from, samples")
    clock = Clock(trace, truth)
    ours = {(p["pid"], p["start_ns"]): p for p in found["process"]}
    for theirs in truth["processes"]:
        process = ours[theirs["pid"], clock.ns(theirs["start_raw"])]
        check_eq(process["cpu_ns"], theirs["samples"] * 1_000_000, f"process {theirs['pid']}: cpu_ns")
        check({"cpu_ns", "cpu_user_ns"} <= set(process["estimated"]), f"process {theirs['pid']}: not marked as estimated")
        check_eq((process["cpu_user_ns"], process["cpu_kernel_ns"]), (process["cpu_ns"], 0), "in user space, in the kernel")
        check_eq([process[name] for name in sorted(SWITCHES)], [None] * 3, "values from switches only")


@cases([(f"{hz} Hz, {kind}", kind, hz) for kind in ("mixed", "switches", "windows7") for hz in (10, 100, 1000)])
def the_samples_of_a_recording_add_up_to_its_report(kind, hz):
    with temp_dir() as folder:
        path, _ = made(folder, kind, "--events", "30000", "--seed", "3")
        found = report(path)
        objects = etwatch("stat", "--source", "etl", path, "--hz", hz, "--json")
    sums = collections.defaultdict(collections.Counter)
    for o in objects:
        if o["type"] == "sample":
            check(o["dt_ns"] <= 10**9 // hz, f"a sample of {o['dt_ns']} ns")
            check_eq(o["complete"], True, "complete")
            sums[identity(o)].update({name: o[name] or 0 for name in ADDED})
    exits = {identity(o): o for o in objects if o["type"] == "exit"}
    starts = [identity(o) for o in objects if o["type"] == "start"]
    totals = {identity(o): o for o in found["process"] if o["pid"] != 0}
    check_eq(sorted(map(str, starts)), sorted(map(str, totals)), "processes")
    check_eq(set(exits), {which for which, o in totals.items() if o["exit_ns"] is not None}, "processes that ended")
    for which, total in totals.items():
        for name in ADDED:
            check_eq(sums[which][name], total[name] or 0, f"{which}: sum of {name}")
        if which not in exits:
            continue
        check_eq(exits[which]["exit_code"], total["exit_code"], f"{which}: exit code")
        for name in ADDED:
            # Totals of its whole lifetime: unknown for a preexisting process.
            wanted = total[name] if which[1] is not None else None
            check_eq(exits[which][name], wanted, f"{which}: {name} at its exit")


@test
def parts_of_a_recording_add_up_to_the_whole():
    cuts = ["0", "30ms", "61ms", "90.5ms", "1000s"]
    with temp_dir() as folder:
        path, _ = made(folder, "mixed", "--seed", "4")
        whole = report(path)
        parts = [report(path, "--from", a, "--to", b) for a, b in zip(cuts, cuts[1:])]
    check_eq(sum(p["trace"][0]["events"] for p in parts), whole["trace"][0]["events"], "events")
    for name in ("busy_ns", "idle_ns", "dpc_ns", "isr_ns", "switches", "samples"):
        check_eq(sum(p["trace"][0][name] for p in parts), whole["trace"][0][name], name)
    sums = collections.defaultdict(collections.Counter)
    for part in parts:
        for process in part["process"]:
            sums[identity(process)].update({name: process[name] or 0 for name in ADDED})
    for process in whole["process"]:
        for name in ADDED:
            check_eq(sums[identity(process)][name], process[name] or 0, f"{identity(process)}: {name}")


@cases([("plain", ()), ("compressed", ("--compress",))])
def the_number_of_worker_threads_changes_nothing(options):
    with temp_dir() as folder:
        path, _ = made(folder, "mixed", "--events", "200000", "--buffer", "16384", "--seed", "9", *options)
        wanted = run(["events", "--json", "--workers", "1", path]).out
        for workers in (2, 3, 8):
            got = run(["events", "--json", "--workers", workers, path])
            check_eq(got.code, 0, f"exit code ({got.err})")
            check(got.out == wanted, f"{workers} threads give other bytes")
        reports = {run(["report", "--json", "--threads", "--images", "--workers", n, path]).out for n in (1, 2, 8)}
        check_eq(len(reports), 1, "different reports")


main()
