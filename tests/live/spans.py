# SPDX-License-Identifier: MIT
"""Spans: each cause of a slow span is found, named, and as long as the workload itself measured it."""
import json
import os
import sys

from lib import ROOT, check, check_between, check_eq, check_in, json_lines, main, need_ebpf, run, test
from livekit import of_type, one, total, watch

WORKLOAD = os.path.join(ROOT, "tests", "span_workload.py")
CAUSES = ("runq_wait_ns", "throttled_ns", "fault_ns", "disk_wait_ns", "lock_wait_ns", "process_wait_ns", "sleep_ns",
          "unknown_ns")
MS = 1_000_000
TICK_NS = 4 * MS  # HZ = 250; slower ticks are rare


def spans_of(cause, *options):
    """The spans of a workload, and its own account."""
    need_ebpf()
    watched = watch([WORKLOAD, cause], "--spans", *options, program=sys.executable)
    check_eq(watched.code, 0, f"exit code ({watched.err})")
    spans = of_type(watched.objects, "span")
    check_eq(one(watched.objects, "stats")["lost"], 0, "lost events")
    for span in spans:
        check_eq(span["work_ns"] + sum(span[name] for name in CAUSES), span["dt_ns"], "sum of the causes")
        # A switch that the kernel did not report is added, and its time is known to a few microseconds only.
        check(span["complete"] or span["unknown_ns"] <= span["dt_ns"] / 100, f"events are missing: {span}")
    return spans, json.loads(watched.truth), watched.objects


def check_near(got, want, what):
    """Within 5 %, or 1 ms where a run is short."""
    check_between(got, want - max(want * 0.05, MS), want + max(want * 0.05, MS), what)


def blamed(spans, cause):
    """Time by name, the largest first."""
    names = {}
    for span in spans:
        for entry in span["causes"]:
            if entry["cause"] == cause:
                names[entry["name"]] = names.get(entry["name"], 0) + entry["ns"]
    return sorted(names.items(), key=lambda item: -item[1])


@test
def a_run_without_waits_has_no_false_cause():
    spans, truth, _ = spans_of("work")
    check_eq(len(spans), 20, "spans")
    check_near(total(spans, "dt_ns"), truth["wall_ns"], "latency")
    check_near(total(spans, "cpu_ns"), truth["cpu_ns"], "CPU time")
    # A busy machine takes the CPU away; nothing else may be named.
    for name in ("throttled_ns", "disk_wait_ns", "lock_wait_ns", "process_wait_ns", "sleep_ns", "fault_ns"):
        check_between(total(spans, name), 0, truth["wall_ns"] * 0.01, name)


@test
def a_process_that_takes_the_cpu_is_named():
    spans, truth, objects = spans_of("starved")
    check_near(total(spans, "runq_wait_ns"), truth["wall_ns"] - truth["cpu_ns"], "wait for a CPU")
    # On a busy machine others take the CPU too, and are named as well.
    check("the-hog" in [name for name, _ in blamed(spans, "cpu")[:3]], f"names: {blamed(spans, 'cpu')}")
    check_eq({entry["pid"] for span in spans for entry in span["causes"] if entry["name"] == "the-hog"},
             {truth["hog"]}, "process")
    group = one(objects, "span_group", name="work")
    check_eq(group["runq_wait_ns"], total(spans, "runq_wait_ns"), "sum of the group")


@test
def page_faults_are_counted_and_timed():
    spans, truth, _ = spans_of("faults")
    check_between(total(spans, "faults"), truth["count"] * 0.95, truth["count"] * 1.05, "faults")
    # The handler is the larger part of what a fault costs: entering the kernel is the rest, which neighbours of a
    # virtual machine make dearer.
    check_between(total(spans, "fault_ns"), truth["cost_ns"] * 0.3, truth["cpu_ns"] * 1.05, "time in faults")
    others = [total(spans, name) for name in CAUSES if name not in ("fault_ns", "runq_wait_ns")]
    check(total(spans, "fault_ns") > 10 * max(others), "page faults are not the first cause")


@test
def a_thread_that_holds_a_lock_is_named():
    spans, truth, _ = spans_of("lock")
    # After the wake-up a busy machine may let the thread wait for a CPU.
    rest = total(spans, "work_ns") + total(spans, "runq_wait_ns") + total(spans, "fault_ns")
    check_near(total(spans, "lock_wait_ns"), truth["wait_ns"] - rest, "wait for the lock")
    check_eq(blamed(spans, "lock")[0][0], "holder", "name")
    check(total(spans, "lock_wait_ns") > 10 * 15 * MS, "the lock is not the largest part")


@test
def the_holder_of_pythons_lock_is_named():
    spans, _, _ = spans_of("gil")
    names = blamed(spans, "lock")
    check(names and names[0][0] == "spinner", f"names: {names}")
    check(total(spans, "lock_wait_ns") > total(spans, "sleep_ns"), "the interpreter's lock is not a lock")


@test
def a_disk_is_found():
    spans, truth, _ = spans_of("disk")
    rest = sum(total(spans, name) for name in ("work_ns", "runq_wait_ns", "fault_ns"))
    check_near(total(spans, "disk_wait_ns") + rest, truth["wait_ns"], "latency")
    check(total(spans, "disk_wait_ns") > total(spans, "work_ns"), "the disk is not the largest part")
    check_between(total(spans, "sleep_ns") + total(spans, "lock_wait_ns"), 0, truth["wait_ns"] * 0.01, "other waits")


@test
def throttling_by_a_cgroup_is_as_long_as_the_kernel_says():
    spans, truth, _ = spans_of("throttled")
    check(truth["throttled_ns"] > 0, "the workload was not throttled")
    # The kernel does not report the end of throttling: it is found at the next timer tick or switch of the CPU.
    slack = truth["throttled_ns"] * 0.05 + truth["count"] * 2 * TICK_NS
    check_between(total(spans, "throttled_ns"), truth["throttled_ns"] - slack, truth["throttled_ns"] + slack,
                  "throttled")


@test
def a_timer_is_a_sleep_and_no_other_thread():
    spans, _, _ = spans_of("sleep")
    check_between(spans[0]["sleep_ns"], 49 * MS, spans[0]["dt_ns"], "sleep")
    check_eq([entry["cause"] for entry in spans[0]["causes"] if entry["cause"] in ("lock", "process")], [], "causes")


@test
def forked_children_have_marks_of_their_own():
    spans, truth, _ = spans_of("processes")
    check_eq(sorted((s["name"], s["pid"]) for s in spans if s["name"] != "thread"),
             sorted([("parent", truth["pid"]), ("child", truth["child"])]), "spans")


@test
def no_mark_is_lost_at_a_high_rate():
    spans, truth, _ = spans_of("cost")
    check_eq(len(spans), truth["count"], "spans")


@test
def spans_is_short_for_run_with_spans():
    need_ebpf()
    env = {**os.environ, "PYTHONPATH": os.path.join(ROOT, "python")}
    marked = ["python3", "-c", "import etwatch\nwith etwatch.span('step'):\n    pass"]
    result = run(["spans", "--json", "-q", "--", *marked], env=env)
    check_eq(result.code, 0, f"exit code ({result.err})")
    check_eq([span["name"] for span in of_type(json_lines(result.out), "span")], ["step"], "spans")
    for words in (["spans"], ["spans", "-p", "1"]):
        result = run(words)
        check_eq((result.code, result.out), (2, ""), f"exit code and output of {words}")
        check_in("etwatch spans -- COMMAND", result.err, "message")
    result = run(["spans", "--help"])
    check_eq(result.code, 0, "exit code")
    check_in("usage: etwatch spans", result.out, "help")


main()
