# SPDX-License-Identifier: MIT
"""Every metric is compared with a process that did a known amount of it (amounts.c), with each source.

Counters are compared with the kernel's record of a process with one thread, read after it has left the CPU for the
last time: for threads that exit before their process the kernel itself loses the last steps, and a waiting parent
may be woken before the process has made its own.
"""
import os
import statistics

from lib import (BUILD, cases, check, check_between, check_eq, json_lines, main, need_ebpf, run, skip, start,
                 temp_dir, test)
from livekit import WORKLOADS, first_line, of_type, programs_of, truth_with, total, truth_of, watch

AMOUNTS = os.path.join(BUILD, "tests", "amounts")
SOURCES = [("ebpf", "ebpf"), ("poll", "poll")]
COUNTS = ("faults_minor", "faults_major", "switches_voluntary", "switches_involuntary", "io_read_bytes",
          "io_write_bytes", "io_read_ops", "io_write_ops", "disk_read_bytes", "disk_write_bytes")
_watched = {}


def amounts(source):
    """One run per source is shared by all tests here."""
    if source == "ebpf":
        need_ebpf()
    if source not in _watched:
        result = watch([], "--metrics", "all", "--hz", 10, program=AMOUNTS, source=source)
        truth = truth_with(truth_of(result.truth), "handles")
        truth.update(truth_with(truth_of(result.truth), "ended"))
        samples = of_type(result.objects, "sample", pid=truth["pid"])
        check(samples, "no samples")
        _watched[source] = truth, samples, of_type(result.objects, "start", pid=truth["pid"])
    return _watched[source]


def usual(samples, name):
    """The most frequent value: everything was set up at once and then stayed unchanged."""
    known = [s[name] for s in samples if s[name] is not None]
    check(known, f"{name} is never known")
    return statistics.mode(known)


@cases(SOURCES)
def gauges_have_the_values_that_were_set(source):
    truth, samples, _ = amounts(source)
    for name in ("handles", "threads", "priority", "affinity", "io_priority"):
        check_eq(usual(samples, name), truth[name], name)


@cases(SOURCES)
def the_peak_of_descriptors_is_at_least_the_open_ones(source):
    truth, samples, _ = amounts(source)
    check_between(usual(samples, "handles_peak"), truth["handles"], truth["handles"] + 3, "handles_peak")


@cases(SOURCES)
def threads_that_sleep_are_waiting_and_none_is_suspended(source):
    truth, samples, _ = amounts(source)
    check_between(usual(samples, "threads_waiting"), truth["threads"] - 1, truth["threads"], "threads_waiting")
    check_eq(usual(samples, "threads_suspended"), 0, "threads_suspended")
    states = [f"threads_{state}" for state in ("running", "ready", "waiting", "suspended")]
    for sample in samples:
        sample["states"] = sum(sample[state] or 0 for state in states) or None
    check_eq(usual(samples, "states"), truth["threads"], "states of all threads")


@cases(SOURCES)
def memory_matches_what_the_process_reads_about_itself(source):
    truth, samples, _ = amounts(source)
    lag = 64 * 4096 * (os.cpu_count() or 1) * (source == "ebpf") + 200000  # its own measurement takes some too
    for name in ("private_bytes", "rss_bytes"):
        check_between(usual(samples, name), truth[name] - lag, truth[name] + lag, name)
    check_between(usual(samples, "virtual_bytes"), truth["virtual_bytes"] - 200000, truth["virtual_bytes"],
                  "virtual_bytes")


@test
def network_bytes_are_exact():
    truth, samples, _ = amounts("ebpf")
    for name in ("net_sent_bytes", "net_received_bytes"):
        check_eq(total(samples, name), truth[name], name)


@test
def network_bytes_are_null_when_polling():
    _, samples, _ = amounts("poll")
    check_eq({s["net_sent_bytes"] for s in samples}, {None}, "net_sent_bytes")


def counts_of(source):
    """(amounts done, the kernel's record, samples) of a process with one thread."""
    if source == "ebpf":
        need_ebpf()
    if ("counts", source) not in _watched:
        result = watch(["counts"], "--metrics", "all", "--hz", 50, program=AMOUNTS, source=source)
        done, record = truth_with(truth_of(result.truth), "counted"), truth_with(truth_of(result.truth), "ended")
        samples = of_type(result.objects, "sample", pid=record["ended"])
        check(samples, "no samples")
        _watched["counts", source] = done, record, samples
    return _watched["counts", source]


def check_counts(record, found):
    """Counts are exact, times within a thousandth."""
    for name in COUNTS:
        if name in record:
            check_eq(found[name], record[name], name)
    for name in ("cpu_ns", "runq_wait_ns"):
        if name in record:
            check_between(found[name], record[name] * 0.999 - 2000, record[name] * 1.001 + 2000, name)


@test
def counters_match_the_kernels_record():
    _, record, samples = counts_of("ebpf")
    check_counts(record, {name: total(samples, name) for name in [*COUNTS, "cpu_ns", "runq_wait_ns"]})


@test
def counters_in_a_recording_match_the_kernels_record():
    need_ebpf()
    with temp_dir() as folder:
        path = os.path.join(folder, "counts.pftrace")
        result = run(["record", "-q", "--source", "ebpf", "--metrics", "all", "-o", path, "--", AMOUNTS, "counts"])
        check_eq(result.code, 0, f"exit code ({result.err.strip()})")
        record = truth_with(truth_of(result.out), "ended")
        report = run(["report", "--json", path])
        check_eq(report.code, 0, f"exit code ({report.err.strip()})")
    found = [o for o in json_lines(report.out) if o["type"] == "process" and o["pid"] == record["ended"]]
    check_eq(len(found), 1, "processes with that pid")
    check_counts(record, found[0])


@test
def counters_of_a_polled_process_are_those_of_its_last_reading():
    """It is idle before it exits, so only the exit itself is missing."""
    _, record, samples = counts_of("poll")
    for name in ("io_read_bytes", "io_write_bytes", "io_read_ops", "io_write_ops", "disk_read_bytes",
                 "disk_write_bytes", "faults_major"):
        if name in record:
            check_eq(total(samples, name), record[name], name)
    check_between(total(samples, "faults_minor"), record["faults_minor"] - 20, record["faults_minor"],
                  "faults_minor")
    for name in ("switches_voluntary", "switches_involuntary"):
        check_between(total(samples, name), record[name] - 5, record[name], name)
    check_between(total(samples, "cpu_ns"), record["cpu_ns"] - 5e6, record["cpu_ns"] * 1.001 + 2000, "cpu_ns")


@cases(SOURCES)
def disk_bytes_and_switches_match_the_amounts(source):
    done, record, samples = counts_of(source)
    if "disk_read_bytes" not in done:
        skip("no file system on a disk here allows O_DIRECT")
    check(total(samples, "switches_voluntary") >= done["naps"] + done["faults_major"], "switches")
    for name in ("disk_read_bytes", "disk_write_bytes", "faults_major"):
        if record.get(name) != done[name]:
            skip(f"this file system counts differently: {name} is {record.get(name)}, not {done[name]}")
        check_eq(total(samples, name), done[name], name)


@cases(SOURCES)
def user_and_kernel_time_match_the_amounts(source):
    """The kernel samples the mode at its tick, so the split is an estimate; the sum is exact."""
    done, record, samples = counts_of(source)
    for name in ("cpu_user_ns", "cpu_kernel_ns"):
        check_between(total(samples, name), done[name] * 0.6, done[name] * 1.6, name)
        check_between(total(samples, name), record[name] - 3e7, record[name] + 3e7, f"{name} of the record")
    both = total(samples, "cpu_user_ns") + total(samples, "cpu_kernel_ns")
    # /proc reports them in hundredths of a second, each truncated.
    check_between(both, total(samples, "cpu_ns") - 2e7 * (source == "poll"), total(samples, "cpu_ns") + 1000, "both")


@cases(SOURCES)
def thread_states_match_the_real_states(source):
    if source == "ebpf":
        need_ebpf()
    result = watch(["states", "800"], "--metrics", "cpu,threads", "--rate", "threads=20", "--dense", "--hz", 20,
                   program=AMOUNTS, source=source)
    truth = truth_with(truth_of(result.truth), "states")
    samples = of_type(result.objects, "sample", pid=truth["states"])
    for sample in samples:
        sample["active"] = (None if sample["threads_running"] is None
                            else sample["threads_running"] + (sample["threads_ready"] or 0))
    busy = [s for s in samples if (s["cpu_ns"] or 0) > 0 and not s["threads_suspended"]]
    check_eq(usual(busy, "active"), truth["active"], "threads that run or could")
    check_eq(usual(busy, "threads_waiting"), truth["waiting"], "threads_waiting")
    check_eq(usual(busy, "threads_suspended"), 0, "threads_suspended")
    check_eq(max(s["threads_suspended"] or 0 for s in samples), truth["threads"], "threads_suspended when stopped")


@cases(SOURCES)
def metrics_that_are_not_selected_are_not_measured(source):
    if source == "ebpf":
        need_ebpf()
    result = watch(["0"], "--metrics", "cpu", program=AMOUNTS, source=source)
    truth = truth_with(truth_of(result.truth), "handles")
    for o in of_type(result.objects, "sample", pid=truth["pid"]):
        for name in ("rss_bytes", "handles", "io_write_bytes", "net_sent_bytes", "threads", "faults_minor",
                     "disk_read_bytes"):
            check_eq(o[name], None, name)
        check(o["cpu_ns"] is not None and o["switches_voluntary"] is not None, "a selected metric is unknown")


def size_of_the_switch_program(metrics):
    """The number of instructions that remain after the kernel has loaded the program."""
    child = start(["stat", "-p", os.getpid(), "--source", "ebpf", "--metrics", metrics, "--hz", 100, "--dense",
                   "--json"])
    first_line(child)
    ids = programs_of(child.pid)
    lines = [line.split() for line in run(["programs"], program=WORKLOADS).out.splitlines()]
    sizes = [int(size) for i, name, size in lines if int(i) in ids and name == "ew_switch"]
    child.terminate()
    child.wait()
    check_eq(len(sizes), 1, "programs at the switch")
    return sizes[0]


@test
def metrics_that_are_not_selected_add_no_instructions_to_the_kernel_program():
    need_ebpf()
    least, more, most = (size_of_the_switch_program(m) for m in ("cpu_ns", "cpu", "default"))
    check(least < more < most, f"{least}, {more} and {most} instructions")


@test
def the_metric_of_an_alert_is_measured():
    need_ebpf()
    result = watch(["counts"], "--metrics", "memory", "--alert", "io_read_bytes>1MB", program=AMOUNTS)
    record = truth_with(truth_of(result.truth), "ended")
    check(of_type(result.objects, "alert", pid=record["ended"]), "no alert")


@test
def memory_can_be_polled_next_to_the_events():
    need_ebpf()
    with temp_dir() as folder:
        config = os.path.join(folder, "etwatch.conf")
        with open(config, "w", encoding="utf-8") as file:
            file.write("[cpu]\nbackend = ebpf\n[memory]\nbackend = poll\nrate = 20\n")
        result = watch(["1"], "--config", config, "--metrics", "cpu,memory", "--hz", 20, program=AMOUNTS)
    truth = truth_with(truth_of(result.truth), "handles")
    samples = of_type(result.objects, "sample", pid=truth["pid"])
    for name in ("private_bytes", "rss_bytes", "virtual_bytes"):
        check_between(usual(samples, name), truth[name] - 200000, truth[name] + 200000, name)
    check_eq({s["source"] for s in samples}, {"ebpf"}, "source")
    meta = of_type(result.objects, "meta")[0]
    check("rss_bytes" not in meta["estimated"], f"estimated: {meta['estimated']}")


main()
