# SPDX-License-Identifier: MIT
"""run --onnx: every inference of an unchanged Python program, with the latency that the program itself measures."""
import json
import os
import subprocess
import sys

from lib import BUILD, ROOT, check, check_between, check_eq, check_in, json_lines, main, need_ebpf, run, skip, temp_dir, test
from livekit import of_type, one, watch

PYTHON = os.path.join(ROOT, "build-python", "bin", "python")

MODEL = """
import sys, numpy as np, onnx
from onnx import TensorProto, helper, numpy_helper
size, name, nodes, weights = 256, "x", [], []
for i in range(4):
    weights.append(numpy_helper.from_array(np.full((size, size), 0.01, np.float32), f"w{i}"))
    nodes.append(helper.make_node("MatMul", [name, f"w{i}"], ["y" if i == 3 else f"m{i}"]))
    name = nodes[-1].output[0]
kind = lambda n: helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", size])
model = helper.make_model(helper.make_graph(nodes, "g", [kind("x")], [kind(name)], weights),
                          opset_imports=[helper.make_opsetid("", 17)])
model.ir_version = 9
onnx.save(model, sys.argv[1])
"""

INFER = """
import json, resource, subprocess, sys, threading, time, numpy as np, onnxruntime as ort
options = ort.SessionOptions()
options.intra_op_num_threads = 1
session = ort.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
data = {"x": np.ones((16, 256), np.float32)}
calls = []
def switches():
    usage = resource.getrusage(resource.RUSAGE_THREAD)
    return usage.ru_nvcsw + usage.ru_nivcsw
def work(count):
    for _ in range(count):
        before, begun = switches(), time.perf_counter_ns()
        session.run(None, data)
        ns = time.perf_counter_ns() - begun
        calls.append((threading.get_native_id(), ns, switches() - before))
if sys.argv[2] == "threads":
    threads = [threading.Thread(target=work, args=(50,)) for _ in range(3)]
    [t.start() for t in threads]
    [t.join() for t in threads]
elif sys.argv[2] == "child":
    out = subprocess.run([sys.executable, __file__, sys.argv[1], "one"], check=True, capture_output=True).stdout
    calls += json.loads(out)["calls"]
else:
    work(150)
print(json.dumps({"calls": calls}))
"""


def inferences(how):
    """The inferences that etwatch saw, and what the program measured: thread, latency, context switches."""
    need_ebpf()
    if not os.path.exists(PYTHON) or run(["-c", "import onnx, onnxruntime"], program=PYTHON).code != 0:
        skip("onnx and onnxruntime are not in build-python")
    environment = {**os.environ, "ORT_DISABLE_TELEMETRY": "1"}
    with temp_dir() as folder:
        model, script = os.path.join(folder, "small.onnx"), os.path.join(folder, "infer.py")
        check_eq(run(["-c", MODEL, model], program=PYTHON, env=environment).code, 0, "exit code of the model's script")
        with open(script, "w", encoding="utf-8") as file:
            file.write(INFER)
        watched = watch([script, model, how], "--onnx", program=PYTHON, env=environment)
    check_eq(watched.code, 0, f"exit code ({watched.err})")
    spans = of_type(watched.objects, "span")
    loads = [span["session"] for span in spans if span["kind"] == "load"]
    check_eq(loads, ["small.onnx"] * (2 if how == "child" else 1), "sessions that were loaded")
    return ([span for span in spans if span["kind"] == "inference"], json.loads(watched.truth)["calls"],
            watched)


def check_latency(spans, calls):
    """Same number; each span is inside of what the program measures, and hardly shorter.

    A thread can lose the CPU between the end of the span and the program's own clock call, for as long as others want
    it. The program counts its context switches, so that such calls are known: they have one and the span has none.
    """
    check_eq(len(spans), len(calls), "inferences")
    seen, compared = [], []
    for tid in {call[0] for call in calls}:
        mine = sorted((span for span in spans if span["tid"] == tid), key=lambda span: span["t_ns"])
        own = [call for call in calls if call[0] == tid]
        check_eq(len(mine), len(own), "inferences of a thread")
        for span, (_, ns, switches, *_) in zip(mine, own):
            # Rounding of the clocks, no more: the span cannot be longer.
            check(span["dt_ns"] <= ns + 2_000, f"the span is longer than the call of {ns} ns: {span}")
            if switches <= span["preempted"]:
                seen.append(span["dt_ns"])
                compared.append(ns)
    check(len(compared) >= 10, f"only {len(compared)} of {len(calls)} calls were not disturbed outside")
    seen.sort()
    compared.sort()
    # An interrupt, or another machine on the same CPU, takes time outside of the span without a switch: if that happens
    # to `outside` calls at most, the lower bound holds that many ranks further down.
    outside = len(compared) // 10
    for share in (0.5, 0.99):
        at = int(share * len(compared))
        # Python's own clock calls and the wrapper are outside of the span: some microseconds.
        check_between(seen[at], compared[at - outside] * 0.99 - 20_000, compared[at] * 1.01 + 20_000,
                      f"latency at {share}")


@test
def every_inference_of_a_program_is_seen_with_its_latency():
    spans, calls, watched = inferences("one")
    check_latency(spans, calls)
    check_eq({(span["session"], span["name"]) for span in spans}, {("small.onnx", "run")}, "sessions")
    group = one(watched.objects, "span_group", name="run")
    check_eq(group["count"], len(calls), "count of the group")
    check_in("p99", group["why"], "the sentence")


@test
def inferences_of_several_threads_are_told_apart():
    spans, calls, _ = inferences("threads")
    check_latency(spans, calls)
    check_eq(len({span["tid"] for span in spans}), 3, "threads")
    for span in spans:
        check(span["cpu_ns"] <= span["dt_ns"], f"more CPU time than time: {span}")


@test
def inferences_of_a_subprocess_are_seen():
    spans, calls, _ = inferences("child")
    check_latency(spans, calls)


def c_inferences(count, threads=1, rows=16, pause_ms=0, prefix=()):
    """The same of a program that uses the C API: its load, its inferences, and what it measured."""
    need_ebpf()
    found = run(["-c", "import glob, os, onnxruntime\n"
                 "print(glob.glob(os.path.dirname(onnxruntime.__file__) + '/capi/libonnxruntime.so.*')[0])"],
                program=PYTHON) if os.path.exists(PYTHON) else None
    if found is None or found.code != 0:
        skip("onnxruntime with its shared library is not in build-python")
    environment = {**os.environ, "ORT_DISABLE_TELEMETRY": "1"}
    with temp_dir() as folder:
        model = os.path.join(folder, "small.onnx")
        check_eq(run(["-c", MODEL, model], program=PYTHON, env=environment).code, 0, "exit code of the model's script")
        program = [*prefix, os.path.join(BUILD, "examples", "infer")]
        watched = watch([*program[1:], found.out.strip(), model, count, threads, rows, pause_ms], "--onnx",
                        program=program[0], env=environment)
    check_eq(watched.code, 0, f"exit code ({watched.err})")
    spans = of_type(watched.objects, "span")
    return ([span for span in spans if span["kind"] == "load"],
            [span for span in spans if span["kind"] == "inference"], json.loads(watched.truth)["calls"])


@test
def inferences_of_a_program_in_c_are_seen_without_a_mark():
    loads, spans, calls = c_inferences(100, rows=64, pause_ms=2)
    check_latency(spans, calls)
    check_eq([(load["session"], load["failed"]) for load in loads], [("small.onnx", False)], "sessions that were loaded")
    check_eq({(span["session"], span["name"], span["shape"], span["failed"]) for span in spans},
             {("small.onnx", "run", "64x256", False)}, "sessions and shapes")


@test
def inferences_of_several_threads_in_c_are_told_apart():
    _, spans, calls = c_inferences(60, threads=3, rows=64, pause_ms=1)
    check_latency(spans, calls)
    check_eq(len({span["tid"] for span in spans}), 3, "threads")


@test
def a_process_that_takes_the_cpu_from_inferences_in_c_is_their_first_cause():
    need_ebpf()
    cpu = str(min(os.sched_getaffinity(0)))
    hog = "open('/proc/self/comm', 'w').write('the-hog')\nprint(flush=True)\nwhile True: pass"
    with subprocess.Popen(["taskset", "-c", cpu, "nice", "-n", "-10", sys.executable, "-c", hog],
                          stdout=subprocess.PIPE) as process:
        try:
            process.stdout.readline()
            _, spans, calls = c_inferences(80, rows=192, prefix=("taskset", "-c", cpu))
        finally:
            process.kill()
    waited = sum(ns - cpu_ns for _, ns, _, cpu_ns in calls)
    check(waited > 10_000_000, f"the workload waited for {waited} ns only")
    causes = {name: sum(span[name] for span in spans) for name in (
        "runq_wait_ns", "throttled_ns", "fault_ns", "disk_wait_ns", "lock_wait_ns", "process_wait_ns", "sleep_ns", "unknown_ns")}
    check_eq(max(causes, key=lambda name: causes[name]), "runq_wait_ns", f"the first cause of {causes}")
    # What the thread waited between the span and the program's own clock calls is not part of the span.
    outside = sum(ns for _, ns, *_ in calls) - sum(span["dt_ns"] for span in spans)
    check_between(causes["runq_wait_ns"] + outside, waited * 0.95 - 2_000_000, waited * 1.05 + 2_000_000,
                  "wait for a CPU")
    named = {}
    for span in spans:
        for cause in span["causes"]:
            named[cause["name"]] = named.get(cause["name"], 0) + cause["ns"]
    check_in("the-hog", sorted(named, key=lambda name: -named[name])[:3], "names, the longest first")


SERVER = """
import sys, time, numpy as np, onnxruntime as ort
options = ort.SessionOptions()
options.intra_op_num_threads = 1
session = ort.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
data = {"x": np.ones((16, 256), np.float32)}
print("ready", flush=True)
while True:
    session.run(None, data)
    time.sleep(0.002)
"""


@test
def a_running_python_server_is_explained_with_the_name_of_its_model():
    need_ebpf()
    if not os.path.exists(PYTHON) or run(["-c", "import onnx, onnxruntime"], program=PYTHON).code != 0:
        skip("onnx and onnxruntime are not in build-python")
    environment = {**os.environ, "ORT_DISABLE_TELEMETRY": "1"}
    with temp_dir() as folder:
        model = os.path.join(folder, "served.onnx")
        check_eq(run(["-c", MODEL, model], program=PYTHON, env=environment).code, 0, "exit code of the model's script")
        with subprocess.Popen([PYTHON, "-c", SERVER, model], env=environment, stdout=subprocess.PIPE) as server:
            try:
                check_eq(server.stdout.readline(), b"ready\n", "output of the server")
                result = run(["onnx", "-p", server.pid, "--json", "-q", "--duration", "2"])
            finally:
                server.kill()
    check_eq(result.code, 0, f"exit code ({result.err})")
    spans = of_type(json_lines(result.out), "span")
    check(len(spans) > 0, "no inference was seen in 2 s")
    check_eq({(span["kind"], span["name"], span["session"], span["shape"], span["pid"]) for span in spans},
             {("inference", "run", "served.onnx", "16x256", server.pid)}, "inferences")
    check(any(span["complete"] for span in spans), "every inference lacks events")


@test
def without_a_selection_no_process_is_explained():
    result = run(["onnx"])
    check_eq((result.code, result.out), (2, ""), "exit code and output")
    check_in("-p PID", result.err, "message")


@test
def the_sitecustomize_of_the_program_is_still_loaded():
    need_ebpf()
    with temp_dir() as folder:
        with open(os.path.join(folder, "sitecustomize.py"), "w", encoding="utf-8") as file:
            file.write("import builtins\nbuiltins.own_site = 'loaded'\n")
        result = run(["run", "--onnx", "-q", "--", "python3", "-c",
                      "import sys; print(own_site, sys.modules['sitecustomize'].__file__)"],
                     env={**os.environ, "PYTHONPATH": folder})
        check_eq(result.code, 0, f"exit code ({result.err})")
        check_in(f"loaded {folder}/sitecustomize.py", result.out, "output")


main()
