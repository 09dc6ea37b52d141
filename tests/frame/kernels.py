# SPDX-License-Identifier: MIT
"""The checks of tests/kernels: they pass correct output and detect wrong output. The guests themselves are run by
`./dev kernels`: they take minutes."""
import copy
import importlib.util
import json
import os

from lib import ROOT, cases, check, check_eq, main, test


def load(name):
    spec = importlib.util.spec_from_file_location(name, os.path.join(ROOT, "tests", "kernels", name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CHECKS = load("checks")
TRUTH = {"pid": 10, "cpu_ns": 600_000_000, "memory_bytes": 33554432, "written_bytes": 1048576, "writes": 256,
         "sleeps": 20, "children": [
             {"pid": 11, "exit_code": 3, "exit_signal": 0, "cpu_ns": 3_000_000},
             {"pid": 12, "exit_code": -1, "exit_signal": 9, "cpu_ns": 3_000_000}]}
FALLBACK = "etwatch: eBPF: no type information; polling /proc instead; fix: use another kernel"


def process(truth):
    total = {"pid": truth["pid"], "name": "load", "cpu_ns": truth["cpu_ns"] + 50_000, "complete": True}
    end = dict(total, type="exit", exit_code=truth.get("exit_code", 0), exit_signal=truth.get("exit_signal", 0),
               faults_minor=8300, io_write_bytes=1050000, io_write_ops=260, switches_voluntary=30,
               rss_peak_bytes=34000000)
    return [dict(total, type="start"), dict(total, type="sample", t_ns=0, dt_ns=100_000_000), end]


def good_run():
    step = CHECKS.Step("run")
    objects = [{"type": "meta", "source": "ebpf", "available": list(CHECKS.BOUNDS)}]
    for truth in (TRUTH, *TRUTH["children"]):
        objects += process(truth)
    objects.append({"type": "stats", "source": "ebpf", "lost": 0, "undecoded": 0})
    return step, objects


def problems(objects, truth=None):
    step, _ = good_run()
    step.status, step.data = 0, [json.dumps(one) for one in objects]
    step.out = [json.dumps(truth or TRUTH)]
    return list(CHECKS.check_run(step, "ebpf"))


@test
def a_correct_run_has_no_problem():
    check_eq(problems(good_run()[1]), [])


def break_run(kind, pid, key, value):
    def change(objects):
        for one in objects:
            if one["type"] == kind and one.get("pid") == pid:
                one[key] = value
        return objects
    return change


@cases([
    ("another source", break_run("meta", None, "source", "poll")),
    ("a lost event", break_run("stats", None, "lost", 1)),
    ("an incomplete sample", break_run("sample", 11, "complete", False)),
    ("no exit of a child", lambda o: [x for x in o if (x["type"], x.get("pid")) != ("exit", 12)]),
    ("no start of a child", lambda o: [x for x in o if (x["type"], x.get("pid")) != ("start", 11)]),
    ("a start too many", lambda o: o[:-1] + [dict(o[1])] + o[-1:]),
    ("too little CPU time", break_run("exit", 10, "cpu_ns", 560_000_000)),
    ("too much CPU time", break_run("exit", 10, "cpu_ns", 700_000_000)),
    ("no CPU time", break_run("exit", 10, "cpu_ns", None)),
    ("a child with too little CPU time", break_run("exit", 11, "cpu_ns", 2_900_000)),
    ("a child with too much CPU time", break_run("exit", 11, "cpu_ns", 15_000_000)),
    ("samples that do not add up", break_run("sample", 12, "cpu_ns", 2_000_000)),
    ("a wrong exit code", break_run("exit", 11, "exit_code", 0)),
    ("a wrong signal", break_run("exit", 12, "exit_signal", 15)),
    ("faults not counted", break_run("exit", 10, "faults_minor", 0)),
    ("no peak of memory", break_run("exit", 10, "rss_peak_bytes", None)),
    ("a foreign process", break_run("exit", 11, "name", "sh")),
    ("no end of the stream", lambda o: o[:-1]),
])
def a_wrong_run_is_detected(change):
    check(problems(change(copy.deepcopy(good_run()[1]))), "nothing was noticed")


@cases([
    ("one line", [FALLBACK], True), ("none", [], False), ("two", [FALLBACK, FALLBACK], False),
    ("another reason", ["etwatch: eBPF: no rights; polling; fix: sudo"], False),
    ("no fix", ["etwatch: eBPF: no type information; polling"], False),
])
def a_fallback_is_one_line_with_reason_and_fix(lines, right):
    step = CHECKS.Step("run")
    step.err = lines
    check_eq(not list(CHECKS.check_fallback(step, "type information")), right)


def spinner(*cpu_ms):
    """The problems reported for a spinner that used these amounts in each interval of 100 ms after the first one."""
    step = CHECKS.Step("pid")
    common = {"pid": 7, "complete": True, "name": "spin"}
    objects = [{"type": "meta", "source": "ebpf", "available": []}, dict(common, type="start", t_ns=0)]
    for number, ms in enumerate((100, *cpu_ms), 1):
        objects.append(dict(common, type="sample", t_ns=number * 100_000_000, dt_ns=100_000_000, cpu_ns=ms * 1_000_000))
    objects.append({"type": "stats", "source": "ebpf", "lost": 0, "undecoded": 0})
    step.status, step.data = 0, [json.dumps(one) for one in objects]
    return [text for text in CHECKS.check_stat(step, "ebpf", 7, True) if "used" in text]


@cases([
    ("all of a CPU", (100, 100, 100), 0),
    ("and time unknown at the beginning", (100, 104, 100), 0),
    ("more than a tick of that", (100, 115, 100), 1),
    ("the same over some intervals", (103, 103, 103), 0),
    ("more than a tick over some intervals", (104, 104, 104), 1),
    ("hardly anything", (10, 10, 10), 1),
])
def a_spinner_uses_one_cpu(cpu_ms, count):
    check_eq(len(spinner(*cpu_ms)), count, f"problems ({spinner(*cpu_ms)})")


@test
def a_guest_that_stops_half_way_is_detected():
    text = 'step doctor\nout ok    source ebpf   works\nstatus 0\nstep run\ndata {"type":"meta"}\n'
    found = dict(CHECKS.check_guest(text, "ebpf", None))
    check_eq(found.get("run"), "did not come to an end")
    check_eq(found.get("guest"), "did not come to its end")
    check("doctor" not in found, "doctor was correct")


main()
