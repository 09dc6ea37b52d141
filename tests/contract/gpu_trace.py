# SPDX-License-Identifier: MIT
"""run and record --gpu-trace on a program with a fake CUDA driver inside and a fake CUPTI."""
import json
import os
import re

from commandkit import linux_only
import toolkit
from lib import BUILD, check, check_eq, check_in, json_lines, main, run, skip, temp_dir, test

PROGRAM = os.path.join(BUILD, "tests", "cudaprogram")
CUPTI = os.path.join(BUILD, "tests", "libfakecupti.so")


def trace(steps, options=("--json",), cupti="", command="run", environment=None, source="poll"):
    """(done, objects, what the program says that it did)"""
    linux_only("CUPTI")
    if not os.path.exists(PROGRAM) or not os.path.exists(CUPTI):
        skip("the fake driver was not built")
    env = {**os.environ, "ETWATCH_CUPTI": CUPTI, "FAKE_CUPTI": cupti, **(environment or {})}
    for name in ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"):
        if name not in (environment or {}):
            env.pop(name, None)
    with temp_dir() as root:
        own = [] if command == "record" else ["-o", os.path.join(root, "out")]
        done = run([command, "--source", source, "--gpu-trace", "--nvml-library", "none", *own, *options, "--", PROGRAM,
                    *steps], env=env)
        text = "" if command == "record" or done.code == 1 else open(os.path.join(root, "out"), encoding="utf-8").read()
    said = [json.loads(line) for line in done.out.splitlines() if line.startswith('{"pid"')]
    return done, json_lines(text) if "--json" in options else text, said


def of_type(objects, kind):
    return [o for o in objects if o["type"] == kind]


WORK = ("init", "launch:gemm:2000:1:20", "copy:1048576:1:300", "set:4096:10", "sync", "sleep:150", "launch:softmax:1000:1:5",
        "sync")


@test
def kernels_copies_and_waits_are_those_of_the_program():
    done, objects, said = trace(WORK)
    check_eq(done.code, 0, done.err)
    process = of_type(objects, "gpu_process")[0]
    check_eq((process["pid"], process["state"], process["complete"], process["lost"]), (said[0]["pid"], "closed", True, 0))
    check_eq((process["kernels"], process["copies"], process["bytes_to_device"], process["set_bytes"]),
             (said[0]["kernels"], 1, said[0]["copied"], 4096))
    check(abs(process["kernel_ns"] - said[0]["kernel_ns"]) < 100000, f"kernel time: {process} {said}")
    # The kernels follow each other on one stream; copy and set run at the same time on another.
    check(abs(process["gpu_ns"] - said[0]["kernel_ns"]) < 1000000, f"GPU time: {process}")
    check(abs(process["cpu_wait_ns"] - said[0]["wait_ns"]) < 1000000, f"the CPU waited: {process} {said}")
    check(abs(process["gpu_wait_ns"] - said[0]["idle_ns"]) < 1000000, f"the GPU waited: {process} {said}")
    kernels = {o["name"]: o for o in of_type(objects, "gpu_kernel")}
    check_eq({name: o["count"] for name, o in kernels.items()}, {"gemm": 20, "softmax": 5})
    check(abs(kernels["gemm"]["ns"] - 40000000) < 100000, str(kernels))


@test
def an_operation_has_the_thread_and_the_call_that_launched_it():
    _, objects, said = trace(("init", "thread", "range:step", "launch:k:500:3:4", "sync", "end"))
    ops = of_type(objects, "gpu")
    kernels = [o for o in ops if o["kind"] == "kernel"]
    check_eq(len(kernels), 4)
    check(said[0]["tid"] != said[0]["pid"], "the work was not done by another thread")
    for o in kernels:
        check_eq((o["tid"], o["call"], o["stream"], o["name"]), (said[0]["tid"], "cudaLaunchKernel", 3, "k"))
        check(o["call_t_ns"] - o["call_dt_ns"] <= o["t_ns"] - o["dt_ns"], f"it ran before its launch: {o}")
        check(abs(o["dt_ns"] - 500000) < 10000, str(o))
    ranges = [o for o in ops if o["kind"] == "range"]
    check_eq([(o["name"], o["tid"]) for o in ranges], [("step", said[0]["tid"])])
    wait = next(o for o in ops if o["kind"] == "wait")
    check_eq((wait["call"], wait["tid"]), ("cudaDeviceSynchronize", said[0]["tid"]))
    check(ranges[0]["t_ns"] >= max(o["t_ns"] for o in kernels), "the range ends before its kernels")


@test
def gpu_time_of_samples_and_of_the_exit_is_the_exact_one():
    _, objects, said = trace(("init", "launch:k:1000:1:300", "sync", "sleep:700"))
    exits = of_type(objects, "exit")
    total = of_type(objects, "gpu_process")[0]["gpu_ns"]
    check_eq([o["gpu_ns"] for o in exits], [total])
    check(abs(total - said[0]["kernel_ns"]) < 1000000, f"{total} {said}")
    known = [o for o in of_type(objects, "sample") if o["gpu_ns"] is not None]
    check_eq(sum(o["gpu_ns"] for o in known), total, "sum of the samples")
    check("gpu_ns" not in objects[0]["estimated"], "exact values are marked as an estimate")


@test
def a_program_without_cupti_runs_and_is_one_line():
    for cupti, environment, expected in (("busy", None, "another profiler"), ("fail", None, "does not start"),
                                         ("version=99", None, "version 99"),
                                         ("", {"ETWATCH_CUPTI": "/nowhere/libcupti.so"}, "cannot be loaded")):
        done, objects, said = trace(("init", "launch:k:100:1:3", "sync"), cupti=cupti, environment=environment)
        check_eq(done.code, 0, done.err)
        check_eq(said[0]["kernels"], 3, "the program did not run")
        lines = [line for line in done.err.splitlines() if "gpu trace" in line]
        check_eq(len(lines), 1, done.err)
        check_in(expected, lines[0])
        process = of_type(objects, "gpu_process")[0]
        check_eq((process["state"], process["gpu_ns"], process["kernels"]), ("failed", None, None))


@test
def older_versions_and_other_clocks_give_the_same():
    for cupti in ("all-calls", "no-clock", "version=18"):
        _, objects, said = trace(("init", "launch:k:500:1:20", "sync"), cupti=cupti)
        process = of_type(objects, "gpu_process")[0]
        check_eq((process["kernels"], process["complete"]), (20, True), cupti)
        check(abs(process["kernel_ns"] - said[0]["kernel_ns"]) < 200000, f"{cupti}: {process}")
        check_eq({o["tid"] for o in of_type(objects, "gpu") if o["kind"] == "kernel"}, {said[0]["tid"]}, cupti)


@test
def a_program_that_is_ended_is_marked():
    for end, code in (("kill", 137), ("quit:3", 3)):
        done, objects, _ = trace(("init", "launch:k:500:1:4", "sync", "sleep:400", end))
        check_eq(done.code, code, done.err)
        process = of_type(objects, "gpu_process")[0]
        check_eq((process["state"], process["kernels"], process["complete"]), ("cut", 4, False), end)


@test
def forks_and_repeated_injections_do_no_harm():
    done, objects, said = trace(("init", "launch:k:500:1:4", "fork", "again", "launch:k:500:1:4", "sync", "fork"))
    check_eq((done.code, said[0]["kernels"]), (0, 8), done.err)
    processes = of_type(objects, "gpu_process")
    check_eq([(o["kernels"], o["state"]) for o in processes], [(8, "closed")])


@test
def a_process_that_runs_another_program_has_the_records_of_both():
    done, objects, said = trace(("init", "launch:k:500:1:4", "sync", "sleep:400", "exec", "init", "launch:k:500:1:6", "sync"))
    check_eq((done.code, [o["kernels"] for o in said]), (0, [4, 6]), done.err)
    processes = of_type(objects, "gpu_process")
    check_eq({o["pid"] for o in processes}, {said[0]["pid"]}, "processes")
    check_eq(sorted((o["kernels"], o["state"], o["complete"]) for o in processes), [(4, "cut", False), (6, "closed", True)])


@test
def the_library_stays_when_a_program_closes_it():
    done, objects, said = trace(("init", "launch:k:500:1:4", "sync", "close", "sleep:200", "launch:k:500:1:4", "sync"))
    check_eq((done.code, said[0]["kernels"]), (0, 8), done.err)
    check_eq([(o["kernels"], o["state"]) for o in of_type(objects, "gpu_process")], [(8, "closed")])


@test
def records_that_do_not_fit_are_counted_and_the_program_goes_on():
    done, objects, said = trace(("init", *["launch:k:1:1:60000", "sync"] * 4))
    check_eq((done.code, said[0]["kernels"]), (0, 240000), done.err)
    process = of_type(objects, "gpu_process")[0]
    # A kernel and its launch are a record each, and so is each wait.
    missing = 2 * 240000 + 4 - process["kernels"] - process["launches"] - process["waits"]
    check_eq((process["state"], process["complete"], process["lost"]), ("closed", missing == 0, missing), str(process))


@test
def a_cupti_that_hangs_does_not_hang_the_program_for_long():
    done, objects, said = trace(("init", "launch:k:500:1:4", "sync"), cupti="block=60000")
    check_eq((done.code, said[0]["kernels"]), (0, 4), done.err)
    check_eq(of_type(objects, "gpu_process")[0]["state"], "cut")


@test
def a_program_that_takes_cupti_over_is_one_line():
    done, objects, said = trace(("init", "launch:k:500:1:4", "sync", "sleep:8000", "launch:k:500:1:4", "sync"),
                                cupti="silent=700")
    check_eq((done.code, said[0]["kernels"]), (0, 8), done.err)
    lines = [line for line in done.err.splitlines() if "gpu trace" in line]
    check_eq(len(lines), 1, done.err)
    check_in("uses CUPTI itself", lines[0])
    check_eq(of_type(objects, "gpu_process")[0]["state"], "taken")


@test
def the_summary_says_who_waited_for_whom():
    done, text, _ = trace(WORK, options=())
    check_eq(done.code, 0, done.err)
    check_in("25 kernels", text)
    check(re.search(r"1 copy, 0\.3\d\d ms: 1\.00 MB to the GPU", text), text)
    check(re.search(r"the CPU waited for the GPU: \d.* ms; the GPU waited for the CPU: 1\d\d ms", text), text)
    check(re.search(r"in 20, mean 2\.\d+ ms, max .*: gemm", text), text)
    check("(estimate)" not in text.split("GPU time", 1)[1].splitlines()[0], text)


@test
def a_command_without_cuda_says_so():
    _, text, _ = trace((), options=())
    check_in("ran no CUDA program", text)


@test
def another_injected_library_is_refused():
    done, _, _ = trace(("init",), environment={"CUDA_INJECTION64_PATH": "/other/tool.so"})
    check_eq(done.code, 1)
    check_in("/other/tool.so", done.err)


def doctor(tree, **environment):
    """The line about CUPTI, with this /proc."""
    env = {k: v for k, v in os.environ.items() if k not in ("ETWATCH_CUPTI", "LD_LIBRARY_PATH")}
    checks = json_lines(run(["doctor", "--json", "--proc-root", tree], env={**env, **environment}).out)
    found = [o for o in checks if o["id"] == "cupti"]
    check_eq(len(found), 1, "lines about CUPTI")
    return found[0]


@test
def doctor_says_where_cupti_is():
    linux_only("CUPTI")
    with temp_dir() as root:
        library = os.path.join(root, "lib", "libcupti.so.12")
        os.makedirs(os.path.dirname(library))
        open(library, "wb").close()
        folders = f"/nowhere::{os.path.dirname(library)}"
        line = doctor(root, ETWATCH_CUPTI=library)
        check_eq((line["state"], line["found"]), ("ok", "not needed: no NVIDIA driver on this system"))
        os.makedirs(os.path.join(root, "driver", "nvidia"))
        open(os.path.join(root, "driver", "nvidia", "version"), "wb").close()
        line = doctor(root, ETWATCH_CUPTI=library)
        check_eq((line["state"], line["found"], line["fix"]), ("ok", library, None))
        line = doctor(root, ETWATCH_CUPTI="/nowhere/libcupti.so")
        check_eq(line["state"], "warn")
        check_in("/nowhere/libcupti.so", line["found"])
        check_in("unset ETWATCH_CUPTI", line["fix"])
        plain = doctor(root)
        if plain["state"] == "ok":
            check(os.path.exists(plain["found"]), str(plain))
        else:
            check_in("install the CUDA toolkit", plain["fix"])
            line = doctor(root, LD_LIBRARY_PATH=folders)
            check_eq((line["state"], line["found"]), ("ok", library))


@test
def a_perfetto_trace_has_operations_on_streams_with_flows_from_their_calls():
    with temp_dir() as root:
        path = os.path.join(root, "x.pftrace")
        done, _, said = trace(("init", "thread", "range:step", "launch:gemm:2000:3:4", "copy:4096:1:300", "sync", "end"),
                              options=("-o", path), command="record")
        check_eq(done.code, 0, done.err)
        kernels, flows, calls, ranges = toolkit.sql(
            path, "select s.name, t.name, s.dur from slice s join track t on s.track_id = t.id where t.name glob 'GPU *'"
                  " order by s.ts",
            "select c.name, o.name, o.ts >= c.ts from flow f join slice c on f.slice_out = c.id"
            " join slice o on f.slice_in = o.id",
            "select s.name, count(*) from slice s join thread_track t on s.track_id = t.id join thread using (utid)"
            f" where tid = {said[0]['tid']} group by s.name",
            "select s.name from slice s join thread_track t on s.track_id = t.id where s.name = 'step'")
    check_eq([(name, stream) for name, stream, _ in kernels if name == "gemm"], [("gemm", "GPU 0 stream 3")] * 4, "kernels")
    check(all(abs(dur - 2000000) < 10000 for name, _, dur in kernels if name == "gemm"), f"durations: {kernels}")
    copies = [(stream, dur) for name, stream, dur in kernels if name != "gemm"]
    check(len(copies) == 1 and copies[0][0] != "GPU 0 stream 3" and abs(copies[0][1] - 300000) < 10000, f"copies: {copies}")
    check_eq([row for row in flows if row[1] == "gemm"], [["cudaLaunchKernel", "gemm", 1]] * 4, "flows")
    counts = dict(map(tuple, calls))
    check_eq((counts.get("cudaLaunchKernel"), counts.get("cudaDeviceSynchronize")), (4, 1), f"calls of the thread: {calls}")
    check_eq(ranges, [["step"]], "ranges")


@test
def it_needs_a_command():
    linux_only("CUPTI")
    done = run(["record", "--gpu-trace", "-o", "x.pftrace", "--duration", "1"])
    check_eq(done.code, 2)
    check_in("--gpu-trace starts the program", done.err)


if __name__ == "__main__":
    main()
