# SPDX-License-Identifier: MIT
"""Every metric against a process that did a known amount of it (amounts.c), on each source."""
import os
import statistics

from lib import BUILD, cases, check, check_between, check_eq, main, need_ebpf, test
from livekit import of_type, told, total, truth_of, watch

AMOUNTS = os.path.join(BUILD, "tests", "amounts")
SOURCES = [("ebpf", "ebpf"), ("poll", "poll")]
_watched = {}


def amounts(source):
    """One run per source serves every test here."""
    if source == "ebpf":
        need_ebpf()
    if source not in _watched:
        result = watch([], "--metrics", "all", "--hz", 10, program=AMOUNTS, source=source)
        truth = told(truth_of(result.truth), "handles")
        truth.update(told(truth_of(result.truth), "ended"))
        samples = of_type(result.objects, "sample", pid=truth["pid"])
        check(samples, "no samples")
        _watched[source] = truth, samples, of_type(result.objects, "start", pid=truth["pid"])
    return _watched[source]


def usual(samples, name):
    """What it said most of the time: everything was done at once, and then it stayed that way."""
    known = [s[name] for s in samples if s[name] is not None]
    check(known, f"{name} is never known")
    return statistics.mode(known)


@cases(SOURCES)
def gauges_that_were_set_are_what_they_were_set_to(source):
    truth, samples, _ = amounts(source)
    for name in ("handles", "threads", "priority", "affinity", "io_priority"):
        check_eq(usual(samples, name), truth[name], name)


@cases(SOURCES)
def the_peak_of_descriptors_is_at_least_what_is_open(source):
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
def memory_is_what_the_process_sees_of_itself(source):
    truth, samples, _ = amounts(source)
    lag = 64 * 4096 * (os.cpu_count() or 1) * (source == "ebpf") + 200000  # its own asking takes some too
    for name in ("private_bytes", "rss_bytes"):
        check_between(usual(samples, name), truth[name] - lag, truth[name] + lag, name)
    check_between(usual(samples, "virtual_bytes"), truth["virtual_bytes"] - 200000, truth["virtual_bytes"],
                  "virtual_bytes")


@test
def bytes_of_the_network_are_exact():
    truth, samples, _ = amounts("ebpf")
    for name in ("net_sent_bytes", "net_received_bytes"):
        check_eq(total(samples, name), truth[name], name)


@test
def bytes_of_the_network_are_null_when_polling():
    _, samples, _ = amounts("poll")
    check_eq({s["net_sent_bytes"] for s in samples}, {None}, "net_sent_bytes")


@test
def bytes_written_and_faults_are_exact():
    truth, samples, _ = amounts("ebpf")
    # The socket's bytes are counted as written too by send(); its own answer comes on top.
    check_between(total(samples, "io_write_bytes"), truth["io_write_bytes"], truth["io_write_bytes"] + 1024,
                  "io_write_bytes")
    check_eq(total(samples, "faults_minor"), truth["faults_minor"], "faults_minor")
    # wait4() rounds down to microseconds and misses the last steps of threads other than the leader.
    check_between(total(samples, "cpu_ns"), truth["cpu_ns"], truth["cpu_ns"] * 1.001 + 5e6, "cpu_ns")


@test
def cpu_time_of_a_polled_process_is_the_kernels():
    truth, samples, start = amounts("poll")
    check(start, "no start")
    check_between(total(samples, "cpu_ns"), truth["cpu_ns"] * 0.8, truth["cpu_ns"] * 1.01 + 5e6, "cpu_ns")


@cases(SOURCES)
def threads_of_a_stopped_process_are_suspended(source):
    if source == "ebpf":
        need_ebpf()
    result = watch(["stopped", "3"], "--metrics", "threads", "--dense", "--hz", 10, program=AMOUNTS,
                   source=source)
    child = told(truth_of(result.truth), "stopped")["stopped"]
    samples = of_type(result.objects, "sample", pid=child)
    check(any(s["threads_suspended"] == 1 for s in samples), "never suspended")


@cases(SOURCES)
def what_is_not_asked_for_is_not_measured(source):
    if source == "ebpf":
        need_ebpf()
    result = watch(["0"], "--metrics", "cpu", program=AMOUNTS, source=source)
    truth = told(truth_of(result.truth), "handles")
    for o in of_type(result.objects, "sample", pid=truth["pid"]):
        for name in ("rss_bytes", "handles", "io_write_bytes", "net_sent_bytes", "threads"):
            check_eq(o[name], None, name)


main()
