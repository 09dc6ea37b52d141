# SPDX-License-Identifier: MIT
"""onnx: what `run --onnx` costs the inferences that it explains.

The same program alone and under etwatch, in turns. A C program with probes (a small model, where the two traps are
a visible part, and one of 1 ms), a Python program with marks, and a mark alone. The values are p50 of the latencies
that the program measures itself; calls in which its thread was switched out are left out, because what else the machine
does is no cost of the probes. The cost of a pair of probes is the difference between
`run --onnx` and `run --spans` for the small model: both record every switch of the machine. After the last turn
the small model runs alone once more: probes that stayed behind would show. A span without a watcher is timed too, here in
Python and by bench/micro/marks.c in C.
"""
import json
import os
import random
import statistics
import subprocess

from .figures import Section
from .processes import ROOT, Missing

PYTHON = os.path.join(ROOT, "build-python", "bin", "python3")
WORKLOAD = os.path.join(ROOT, "tests", "span_workload.py")
MODEL = """
import sys, numpy as np, onnx
from onnx import TensorProto, helper, numpy_helper
size, name, nodes, weights = 256, "x", [], []
for i in range(4):
    weights.append(numpy_helper.from_array(np.full((size, size), 0.01, np.float32), f"w{i}"))
    nodes.append(helper.make_node("MatMul", [name, f"w{i}"], ["y" if i == 3 else f"m{i}"]))
    name = nodes[-1].output[0]
kind = lambda n: helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", size])
model = helper.make_model(helper.make_graph(nodes, "g", [kind("x")], [kind("y")], weights),
                          opset_imports=[helper.make_opsetid("", 17)])
model.ir_version = 9
onnx.save(model, sys.argv[1])
"""
INFER = """
import json, resource, sys, threading, time, numpy as np, onnxruntime as ort
options = ort.SessionOptions()
options.intra_op_num_threads = 1
session = ort.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
data, calls = {"x": np.ones((int(sys.argv[3]), 256), np.float32)}, []
def switches():
    usage = resource.getrusage(resource.RUSAGE_THREAD)
    return usage.ru_nvcsw + usage.ru_nivcsw
for _ in range(int(sys.argv[2])):
    before, begun = switches(), time.perf_counter_ns()
    session.run(None, data)
    ns = time.perf_counter_ns() - begun
    calls.append((0, ns, switches() - before))
print(json.dumps({"calls": calls}))
"""


# A span by the package, without a watcher: the best of some rounds, in CPU time beyond an empty loop.
UNWATCHED = """
import json, time, etwatch
def best(body):
    least = None
    for _ in range(50):
        begun = time.thread_time_ns()
        body()
        took = (time.thread_time_ns() - begun) / 2000
        least = took if least is None else min(least, took)
    return least
def spans():
    for _ in range(2000):
        with etwatch.span("step"):
            pass
def empty():
    for _ in range(2000):
        pass
print(json.dumps(best(spans) - best(empty)))
"""


def output_of(argv, **variables):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "ORT_DISABLE_TELEMETRY": "1", **variables}, check=False)
    if done.returncode != 0:
        raise Missing(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"{argv[0]} failed")
    return done.stdout


def library():
    if not os.path.exists(PYTHON):
        raise Missing("build-python has no Python: ./dev test makes it")
    return output_of([PYTHON, "-c", "import glob, os, onnx, onnxruntime\n"
                      "print(glob.glob(os.path.dirname(onnxruntime.__file__) + '/capi/libonnxruntime.so.*')[0])"]).strip()


class Case:
    """A program, and p50 of its calls alone and watched, in ns."""

    def __init__(self, name, argv):
        self.name, self.argv, self.alone, self.watched, self.stream = name, argv, [], [], []

    def p50(self, prefix):
        calls = json.loads(output_of([*prefix, *self.argv]))["calls"]
        quiet = [ns for _, ns, switches, *_ in calls if switches == 0]
        if len(quiet) < 20:
            raise Missing(f"{self.name}: the machine is too busy")
        return statistics.median(quiet)

    def turn(self, watcher):
        turns = [(self.alone, []), (self.watched, watcher),
                 (self.stream, [word.replace("--onnx", "--spans") for word in watcher])]
        random.shuffle(turns)
        for values, prefix in turns:
            values.append(self.p50(prefix))


def run(bench):
    repeat = bench.repeat or (3 if bench.quick else 15)
    section = Section("onnx", f"inferences under run --onnx, {repeat} turns")
    model, script, report = bench.file("small.onnx"), bench.file("infer.py"), bench.file("report.jsonl")
    infer = os.path.join(bench.build, "examples", "infer")
    path = library()
    output_of([PYTHON, "-c", MODEL, model])
    with open(script, "w", encoding="utf-8") as file:
        file.write(INFER)
    watcher = [bench.etwatch(), "run", "--onnx", "--json", "-q", "-o", report, "--"]
    count = 1600 if bench.quick else 4000
    small = Case("C, a small model", [infer, path, model, str(count), "1", "16"])
    large = Case("C, a model of 1 ms", [infer, path, model, str(count // 4), "1", "192"])
    python = Case("Python, a model of 1 ms", [PYTHON, script, model, str(count // 4), "192"])
    for _ in range(repeat):
        for case in (small, large, python):
            case.turn(watcher)
    for case in (small, large, python):
        alone = section.add(f"{case.name}: alone", "us", [ns / 1000 for ns in case.alone])
        section.add(f"{case.name}: watched", "us", [ns / 1000 for ns in case.watched], ratio_to=alone)
        ratios = [on / off for on, off in zip(case.watched, case.alone)]
        section.add(f"{case.name}: p50 watched / alone", "", ratios, bar=None if case is small else 1.01)
    section.add("a pair of probes", "ns", [on - off for on, off in zip(small.watched, small.stream)], bar=1000,
                note="the difference between --onnx and --spans, which has no probes")
    section.add("after the last watcher: p50 / alone before", "", [small.p50([]) / statistics.median(small.alone)],
                bar=1.05, note="one run: the machine may have changed")
    spans = [bench.etwatch(), "run", "--spans", "--json", "-q", "-o", report, "--", PYTHON, WORKLOAD, "cost"]
    pairs = [json.loads(output_of(spans))["pair_ns"] for _ in range(repeat)]
    section.add("Python: a mark (half of a span)", "ns", [pair / 2 for pair in pairs], bar=300)
    unwatched = [float(output_of([PYTHON, "-c", UNWATCHED], PYTHONPATH=os.path.join(ROOT, "python"),
                                 ETWATCH_LIBRARY=os.path.join(bench.build, "libetwatch.so"))) for _ in range(repeat)]
    section.add("Python: a span without a watcher", "ns", unwatched, bar=300)
    return section
