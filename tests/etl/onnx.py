# SPDX-License-Identifier: MIT
"""onnx FILE.etl: the inferences that ONNX Runtime's ETW provider logged, and their causes, equal what was recorded."""
import os

from etlkit import make_etl
from lib import cases, check, check_eq, check_in, json_lines, main, run, temp_dir, test

MS = 1_000_000
CAUSES = ("work_ns", "runq_wait_ns", "throttled_ns", "fault_ns", "disk_wait_ns", "lock_wait_ns", "process_wait_ns",
          "sleep_ns", "unknown_ns")
# The last run of the recording (tests/etl/make_onnx.c): it loses the CPU to the hog for 20 ms; waits 6 ms for a page and 1 ms
# for a CPU after that; waits 5 ms until another thread wakes it, and 1 ms for the CPU that this one still has; sleeps
# 4.9 ms, and the idle CPU needs 0.1 ms.
SLOW = {"work_ns": 8.0, "runq_wait_ns": 22.1, "fault_ns": 6.0, "lock_wait_ns": 5.0, "sleep_ns": 4.9}
SLOW_CAUSES = [("cpu", "hog.exe", 5000, 20.0), ("lock", "infer.exe", 4000, 5.0)]


def explain(kind, *options):
    with temp_dir() as folder:
        path = os.path.join(folder, "made.etl")
        make_etl(kind, path)
        result = run(["onnx", *options, path], cwd=folder)
    check_eq(result.code, 0, f"exit code ({result.err})")
    return result


@cases([("with the session", "onnx", "mlp.onnx"), ("an older version", "onnx_old", "mlp_graph")])
def every_inference_has_its_latency_and_its_causes(kind, session):
    objects = json_lines(explain(kind, "--json", "-q").out)
    spans = [o for o in objects if o["type"] == "span"]
    check_eq([(s["kind"], s["name"], s["session"], s["pid"], s["tid"], s["dt_ns"]) for s in spans],
             [("load", "load", session, 4000, 4004, 10 * MS)] +
             [("inference", "run", session, 4000, 4004, ms * MS) for ms in [4] * 9 + [46]], "spans")
    for s in spans:
        check_eq((sum(s[name] for name in CAUSES), s["complete"], s["failed"]), (s["dt_ns"], True, False), "sum of the causes")
    for s in spans[:-1]:
        check_eq(s["work_ns"], s["dt_ns"], "work of an undisturbed inference")
    slow = spans[-1]
    check_eq({name: slow[name] for name in CAUSES if slow[name]}, {name: round(ms * MS) for name, ms in SLOW.items()}, "causes")
    check_eq(slow["preempted"], 1, "times that it lost the CPU")
    named = [(c["cause"], c["name"], c["pid"], c["ns"] / MS) for c in slow["causes"]]
    for entry in SLOW_CAUSES:
        check_in(entry, named, "names")
    group = [o for o in objects if o["type"] == "span_group" and o["name"] == "run"][0]
    check_eq((group["count"], group["p50_ns"], group["max_ns"]), (10, 4 * MS, 46 * MS), "statistics")
    check_in("waiting for a CPU (hog.exe 20.0 ms", group["why"], "the sentence")


@test
def the_report_is_that_of_a_running_program():
    out = explain("onnx").out
    for words in ("run of mlp.onnx: 10 times", "max 46.0 ms", "waiting for a CPU (hog.exe 20.0 ms", "load of mlp.onnx: 1 time"):
        check_in(words, out, "report")


@cases([("this program", ("-n", "infer"), 10), ("its process", ("-p", 4000), 10), ("another one", ("-n", "hog"), 0)])
def a_selection_is_of_the_program_that_infers(options, count):
    result = explain("onnx", *options, "--json", "-q")
    runs = [o for o in json_lines(result.out) if o["type"] == "span" and o["kind"] == "inference"]
    check_eq(len(runs), count, "inferences")
    if runs:
        check_eq(runs[-1]["runq_wait_ns"], round(SLOW["runq_wait_ns"] * MS), "wait for a CPU, which another process had")


@test
def a_recording_without_the_provider_has_no_inference():
    out = explain("switches").out
    check_in("no inference is in the recording: it needs the events of the provider Microsoft.ML.ONNXRuntime", out, "report")


@test
def tables_and_traces_are_written():
    header, *rows = explain("onnx", "--csv", "-q").out.splitlines()
    check_eq(len(rows), 11, "rows")
    check(all(len(row.split(",")) >= len(header.split(",")) for row in rows), "columns")
    with temp_dir() as folder:
        path, trace = os.path.join(folder, "made.etl"), os.path.join(folder, "made.pftrace")
        make_etl("onnx", path)
        check_eq(run(["onnx", "-q", path, "-o", trace]).code, 0, "exit code")
        compared = run(["compare", trace, trace])
    check_in("run of mlp.onnx", compared.out, "comparison")


@test
def mistakes_name_what_is_possible():
    for words in (["onnx", "x.pftrace"], ["onnx", "-u", "0", "x.etl"], ["onnx", "--source", "poll", "x.etl"]):
        check_eq(run(words).code, 2, f"exit code of {words}")


main()
