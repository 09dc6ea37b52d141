# SPDX-License-Identifier: MIT
"""The rate and what it costs: the budget is kept and said, dense gives every interval."""
import json
import os
import re

from lib import ETWATCH, cases, check, check_between, check_eq, main, need_ebpf, run, skip, test
from livekit import WORKLOADS, check_stories, of_type, one, told, total, watch

SOURCES = [("ebpf", "ebpf"), ("poll", "poll")]


@cases(SOURCES)
def a_tiny_budget_lowers_the_rate_and_says_so(source):
    if source == "ebpf":
        need_ebpf()
    result = run(["run", "--source", source, "--hz", "1000", "--latency", "1", "--budget", "0.01", "--", "sh", "-c",
                  f"{WORKLOADS} forks 100000 0 & sleep 4; kill $!"])
    check_eq(result.code, 0, "exit code")
    said = re.search(r"(\d+) Hz requested, ([\d.]+) reached", result.out)
    check(said, f"the summary does not tell the rate: {result.out[-300:]!r}")
    asked, reached = float(said[1]), float(said[2])
    check_eq(asked, 1000, "Hz requested")
    check(reached < 900, f"{reached} Hz were reached on a budget that cannot pay for them")


@test
def while_the_rate_falls_no_time_is_lost_or_counted_twice():
    need_ebpf()
    watched = watch(["tell", "burn", 1500], "--hz", 1000, "--latency", 1, "--budget", 0.01)
    stats = one(watched.objects, "stats")
    check(stats["hz_effective"] < 1000, f"the rate is still {stats['hz_effective']} Hz")
    check(stats["hz_reached"] < stats["hz_requested"], "the rate reached is not told")
    truth = told(watched.truth, "status")
    ended = one(watched.objects, "exit", pid=truth["pid"])
    check_between(ended["cpu_ns"], truth["cpu_ns"], truth["cpu_ns"] * 1.001 + 2000, "CPU time")
    samples = of_type(watched.objects, "sample", pid=truth["pid"])
    check_eq(total(samples, "cpu_ns"), ended["cpu_ns"], "CPU time of all samples")
    # Unknown is not wrong: an interval may hold other counts only. The sum above is exact.
    for sample in (s for s in samples if s["cpu_ns"] is not None):
        check_between(sample["cpu_ns"], 0, sample["dt_ns"] + 100000, "CPU time of one thread in an interval")
    for a, b in zip(samples, samples[1:]):
        check(b["t_ns"] - b["dt_ns"] >= a["t_ns"], "two intervals overlap")
    check_stories(watched.objects)


@test
def without_a_budget_the_rate_stays():
    need_ebpf()
    watched = watch(["-c", "sleep 2.5"], "--hz", 1000, "--latency", 1, "--budget", "off", program="sh")
    stats = one(watched.objects, "stats")
    check_eq((stats["hz_effective"], stats["hz_requested"]), (1000, 1000), "rates")
    check_between(stats["hz_reached"], 950, 1000, "the rate reached")


@cases(SOURCES)
def dense_gives_every_interval_of_every_process(source):
    """One row after the other, without a gap, from the start to the end, busy or not."""
    if source == "ebpf":
        need_ebpf()
    script = f"{WORKLOADS} sleep 1 & {WORKLOADS} burn 200 & wait; exit 0"
    watched = watch(["-c", script], "--dense", "--hz", 20, program="sh", source=source)
    stories = check_stories(watched.objects)
    check_eq(len(stories), 3, "processes")
    for who, story in stories.items():
        rows = [o for o in story if o["type"] == "sample"]
        ended = story[-1]
        check_eq(ended["type"], "exit", f"last object of {who}")
        for a, b in zip(rows, rows[1:]):
            check_eq(b["t_ns"] - b["dt_ns"], a["t_ns"], f"where an interval of {who} begins")
        check_eq(rows[-1]["t_ns"], ended["t_ns"], f"where the last interval of {who} ends")
    sleeper = max((s for s in stories.values() if s[0]["name"] != "sh"), key=lambda s: s[-1]["dt_ns"])
    idle = [o for o in sleeper if o["type"] == "sample" and o["cpu_ns"] == 0]
    check(len(idle) >= 10, f"{len(idle)} idle rows of a process that slept for a second at 20 Hz")
    for row in idle:
        check_eq((row["cpu_percent"], row["switches_voluntary"], row["faults_minor"]), (0, 0, 0), "of an idle row")


@test
def without_dense_a_process_that_does_nothing_gives_no_sample():
    need_ebpf()
    watched = watch(["-c", f"{WORKLOADS} sleep 1; exit 0"], "--hz", 20, program="sh")
    sleeper = one(watched.objects, "exit", name="workloads")
    samples = of_type(watched.objects, "sample", pid=sleeper["pid"])
    check_between(len(samples), 1, 4, "samples: its beginning and its end")
    check_eq(total(samples, "cpu_ns"), sleeper["cpu_ns"], "CPU time")


@test
def what_watching_costs_in_the_kernel_is_told():
    """Also after the rights to measure it have been given up."""
    need_ebpf()
    if os.geteuid() != 0:
        skip("the kernel measures programs only for root")
    stats = one(watch(["tell", "burn", 500], "--hz", 100).objects, "stats")
    check(stats["self_kernel_percent"] is not None, "unknown although we may measure it")
    check(0 < stats["self_kernel_percent"] <= stats["self_cpu_percent"], f"{stats}")


@test
def several_at_once_agree():
    """Each has its own programs in the kernel, and all of them see the same."""
    need_ebpf()
    inner = [ETWATCH, "run", "--json", "-q", "--source", "ebpf", "-o", os.devnull, "--"]
    watched = watch([*inner[1:], *inner, WORKLOADS, "tell", "burn", 200], "--hz", 100, program=ETWATCH)
    check_eq(watched.code, 0, "exit code")
    truth = json.loads(watched.truth)
    ended = one(watched.objects, "exit", pid=truth["pid"])
    check_between(ended["cpu_ns"], truth["cpu_ns"], truth["cpu_ns"] * 1.001 + 2000, "CPU time")
    check_eq(one(watched.objects, "stats")["lost"], 0, "lost")


main()
