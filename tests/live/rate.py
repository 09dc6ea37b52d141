# SPDX-License-Identifier: MIT
"""The rate and its cost: the budget is kept and reported, dense output has every interval."""
import json
import os
import re

from lib import ETWATCH, cases, check, check_between, check_eq, main, need_ebpf, run, skip, test
from livekit import WORKLOADS, check_stories, of_type, one, truth_with, total, watch

SOURCES = [("ebpf", "ebpf"), ("poll", "poll")]


@cases(SOURCES)
def a_tiny_budget_lowers_the_rate_and_the_summary_reports_it(source):
    if source == "ebpf":
        need_ebpf()
    result = run(["run", "--source", source, "--hz", "1000", "--latency", "1", "--budget", "0.01", "--", "sh", "-c",
                  f"{WORKLOADS} forks 100000 0 & sleep 4; kill $!"])
    check_eq(result.code, 0, "exit code")
    match = re.search(r"(\d+) Hz \w+, ([\d.]+) reached", result.out)
    check(match, f"the summary has no rate: {result.out[-300:]!r}")
    requested, reached = float(match[1]), float(match[2])
    check_eq(requested, 1000, "Hz requested")
    check(reached < 900, f"{reached} Hz were reached on a budget that is too small for it")


@test
def while_the_rate_falls_no_time_is_lost_or_counted_twice():
    need_ebpf()
    watched = watch(["usage", "burn", 1500], "--hz", 1000, "--latency", 1, "--budget", 0.01)
    stats = one(watched.objects, "stats")
    check(stats["hz_effective"] < 1000, f"the rate is still {stats['hz_effective']} Hz")
    check(stats["hz_reached"] < stats["hz_requested"], "the reached rate is not reported")
    truth = truth_with(watched.truth, "status")
    ended = one(watched.objects, "exit", pid=truth["pid"])
    check_between(ended["cpu_ns"], truth["cpu_ns"], truth["cpu_ns"] * 1.001 + 2000, "CPU time")
    samples = of_type(watched.objects, "sample", pid=truth["pid"])
    check_eq(total(samples, "cpu_ns"), ended["cpu_ns"], "CPU time of all samples")
    # Unknown is allowed: an interval may have only other counts. The sum above is exact.
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
def dense_output_has_every_interval_of_every_process(source):
    """One row after the other without a gap, from start to exit, busy or not."""
    if source == "ebpf":
        need_ebpf()
    script = f"{WORKLOADS} sleep 1 & {WORKLOADS} burn 200 & wait; exit 0"
    watched = watch(["-c", script], "--dense", "--hz", 20, program="sh", source=source)
    stories = check_stories(watched.objects)
    check_eq(len(stories), 3, "processes")
    for process, story in stories.items():
        rows = [o for o in story if o["type"] == "sample"]
        ended = story[-1]
        check_eq(ended["type"], "exit", f"last object of {process}")
        for a, b in zip(rows, rows[1:]):
            check_eq(b["t_ns"] - b["dt_ns"], a["t_ns"], f"where an interval of {process} begins")
        check_eq(rows[-1]["t_ns"], ended["t_ns"], f"where the last interval of {process} ends")
    sleeper = max((s for s in stories.values() if s[0]["name"] != "sh"), key=lambda s: s[-1]["dt_ns"])
    idle = [o for o in sleeper if o["type"] == "sample" and o["cpu_ns"] == 0]
    check(len(idle) >= 10, f"{len(idle)} idle rows of a process that slept for a second at 20 Hz")
    for row in idle:
        check_eq((row["cpu_percent"], row["switches_voluntary"], row["faults_minor"]), (0, 0, 0), "of an idle row")


@test
def without_dense_an_idle_process_has_no_sample():
    need_ebpf()
    watched = watch(["-c", f"{WORKLOADS} sleep 1; exit 0"], "--hz", 20, program="sh")
    sleeper = one(watched.objects, "exit", name="workloads")
    samples = of_type(watched.objects, "sample", pid=sleeper["pid"])
    check_between(len(samples), 1, 4, "samples: its beginning and its end")
    check_eq(total(samples, "cpu_ns"), sleeper["cpu_ns"], "CPU time")


@test
def the_cost_of_watching_in_the_kernel_is_reported():
    """Also after the privileges for measuring it have been dropped."""
    need_ebpf()
    if os.geteuid() != 0:
        skip("the kernel measures programs only for root")
    stats = one(watch(["usage", "burn", 500], "--hz", 100).objects, "stats")
    check(stats["self_kernel_percent"] is not None, "unknown although it can be measured")
    check(0 < stats["self_kernel_percent"] <= stats["self_cpu_percent"], f"{stats}")


@test
def several_monitors_at_once_agree():
    """Each has its own programs in the kernel, and all report the same."""
    need_ebpf()
    inner = [ETWATCH, "run", "--json", "-q", "--source", "ebpf", "-o", os.devnull, "--"]
    watched = watch([*inner[1:], *inner, WORKLOADS, "usage", "burn", 200], "--hz", 100, program=ETWATCH)
    check_eq(watched.code, 0, "exit code")
    truth = json.loads(watched.truth)
    ended = one(watched.objects, "exit", pid=truth["pid"])
    check_between(ended["cpu_ns"], truth["cpu_ns"], truth["cpu_ns"] * 1.001 + 2000, "CPU time")
    check_eq(one(watched.objects, "stats")["lost"], 0, "lost")


main()
