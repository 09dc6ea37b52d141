# SPDX-License-Identifier: MIT
"""run --spans --gpu-trace: the GPU time of a span is that of the work its thread launched in it, and nothing else."""
import json
import os

from lib import BUILD, check, check_between, check_eq, check_in, json_lines, main, need_ebpf, run, skip, temp_dir, test
from livekit import of_type
from toolkit import sql

PROGRAM = os.path.join(BUILD, "tests", "cudaprogram")
CUPTI = os.path.join(BUILD, "tests", "libfakecupti.so")


def traced(steps, *options, file="out.jsonl", cupti="", code=0):
    """The bytes of the file, the lines of the program, and the messages."""
    need_ebpf()
    if not os.path.exists(PROGRAM) or not os.path.exists(CUPTI):
        skip("the fake driver was not built")
    env = {**os.environ, "ETWATCH_CUPTI": CUPTI, "FAKE_CUPTI": cupti}
    for name in ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"):
        env.pop(name, None)
    with temp_dir() as root:
        path = os.path.join(root, file)
        done = run(["run", "--spans", "--gpu-trace", "--nvml-library", "none", "-o", path, *options, "--", PROGRAM, *steps],
                   env=env)
        check_eq(done.code, code, done.err)
        with open(path, "rb") as written:
            found = written.read()
        if file.endswith(".pftrace"):
            found = sql(path, "SELECT count(*) AS n FROM slice WHERE name = 'gemm'",
                        "SELECT count(*) AS n FROM slice WHERE name = 'infer'",
                        "SELECT args.int_value AS n FROM slice JOIN args USING (arg_set_id) "
                        "WHERE slice.name = 'infer' AND args.key = 'debug.gpu_ns'")
    said = [json.loads(line) for line in done.out.splitlines() if line.startswith("{")]
    return found, said, done.err


def spans_of(found):
    objects = json_lines(found.decode())
    return {span["name"]: span for span in of_type(objects, "span")}, objects


WORK = ("init", "launch:before:3000:1:2", "sync", "span:infer", "launch:gemm:5000:1:4", "sync", "done", "launch:between:2000:1:3",
        "sync", "span:cpu", "sleep:20", "done")


@test
def the_gpu_time_of_a_span_is_that_of_its_own_launches():
    found, said, _ = traced(WORK, "--json")
    spans, objects = spans_of(found)
    infer, cpu = spans["infer"], spans["cpu"]
    truth = next(line for line in said if line.get("span") == "infer")
    check_between(infer["gpu_ns"], 20_000_000, 20_100_000, "GPU time of four kernels of 5 ms")
    check_eq(infer["gpu_kernels"], 4, "kernels")
    check_between(infer["wait_gpu_ns"], truth["wait_ns"] * 0.95, truth["wait_ns"] * 1.05, "time of waiting for the GPU")
    check(infer["wait_gpu_ns"] <= infer["dt_ns"], "it waited longer than it took")
    check_eq((cpu["gpu_ns"], cpu["wait_gpu_ns"], cpu["gpu_kernels"]), (0, 0, 0), "a span without GPU work")
    group = next(o for o in of_type(objects, "span_group") if o["name"] == "infer")
    check_eq((group["gpu_ns"], group["gpu_kernels"]), (infer["gpu_ns"], 4), "sum of the group")


@test
def streams_that_overlap_are_not_added_up():
    found, _, _ = traced(("init", "span:infer", "launch:a:20000:1:1", "launch:b:20000:2:1", "sync", "done"), "--json")
    infer = spans_of(found)[0]["infer"]
    check_eq(infer["gpu_kernels"], 2, "kernels")
    check_between(infer["gpu_ns"], 20_000_000, 30_000_000, "time in which one of them ran")


@test
def work_of_another_thread_belongs_to_its_own_span():
    found, said, _ = traced(("init", "span:infer", "launch:gemm:2000:1:3", "done", "thread", "span:other", "launch:k:1000:2:2",
                             "sync", "done"), "--json")
    spans, _ = spans_of(found)
    check_eq((spans["infer"]["gpu_kernels"], spans["other"]["gpu_kernels"]), (3, 2), "kernels")
    check_eq(spans["other"]["tid"], said[-1]["tid"], "thread")
    # The kernels of the first span end after it: they are its own all the same.
    check_between(spans["infer"]["gpu_ns"], 6_000_000, 6_100_000, "GPU time")


@test
def without_records_the_gpu_time_is_unknown_and_not_zero():
    found, _, _ = traced(WORK, "--json", cupti="fail")
    for span in spans_of(found)[0].values():
        check_eq((span["gpu_ns"], span["wait_gpu_ns"], span["gpu_kernels"]), (None, None, None), span["name"])


@test
def the_report_has_a_line_for_the_gpu():
    found, _, _ = traced(WORK, file="out.txt")
    text = found.decode()
    check_in("GPU: 20.0 ms each in 4.0 kernels; the thread waited for it:", text)


@test
def a_trace_has_the_spans_and_the_kernels():
    found, _, _ = traced(WORK, file="out.pftrace")
    kernels, spans, gpu_ns = found
    check_eq((kernels, spans), ([[4]], [[1]]), "slices of kernels and spans")
    check_between(gpu_ns[0][0], 20_000_000, 20_100_000, "GPU time of the slice")


main()
