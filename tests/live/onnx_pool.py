# SPDX-License-Identifier: MIT
"""Overlapping inferences on one thread pool: the CPU time of the pool is that of the kernel, and is counted for no one else."""
import json

from lib import check, check_between, check_eq, main, need_ebpf, temp_dir, test
from livekit import of_type, one, total, watch
from onnxkit import PYTHON, environment, make_model, write

TWO_CALLERS = """
import contextlib, json, os, sys, threading, time, numpy as np, onnxruntime as ort

def cpu_ns():
    times = {}
    for tid in os.listdir("/proc/self/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a caller that is about to exit
            with open(f"/proc/self/task/{tid}/schedstat") as file:
                times[int(tid)] = int(file.read().split()[0])
    return times

options = ort.SessionOptions()
options.intra_op_num_threads = 2
options.add_session_config_entry("session.intra_op.allow_spinning", sys.argv[2])
before_load = set(cpu_ns())
session = ort.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
pool = set(cpu_ns()) - before_load
data = {"x": np.ones((512, 512), np.float32)}
session.run(None, data)
own = []

def work():
    for _ in range(40):
        begun_ns = time.thread_time_ns()
        session.run(None, data)
        own.append(time.thread_time_ns() - begun_ns)

before = cpu_ns()
callers = [threading.Thread(target=work) for _ in range(2)]
[t.start() for t in callers]
[t.join() for t in callers]
after = cpu_ns()
print(json.dumps({"pool": sorted(pool), "pool_ns": sum(after[t] - before[t] for t in pool), "callers_ns": sum(own)}))
"""


def run_of(spinning):
    need_ebpf()
    with temp_dir() as folder:
        script = write(folder, "callers.py", TWO_CALLERS)
        watched = watch([script, make_model(folder, size=512), spinning], "--onnx", program=PYTHON, env=environment())
    check_eq(watched.code, 0, f"exit code ({watched.err})")
    spans = [span for span in of_type(watched.objects, "span") if span["kind"] == "inference"][1:]
    truth = json.loads(watched.truth)
    check_eq((len(spans), len(truth["pool"])), (80, 1), "inferences of the callers, threads of the pool")
    check_eq(one(watched.objects, "stats")["lost"], 0, "lost events")
    return spans, truth


@test
def the_time_of_callers_and_pool_is_that_of_the_kernel():
    spans, truth = run_of("0")
    check_between(total(spans, "cpu_ns"), truth["callers_ns"] * 0.95, truth["callers_ns"] * 1.05, "CPU time of the callers")
    helped, shared = total(spans, "helper_cpu_ns"), total(spans, "shared_cpu_ns")
    check(helped <= truth["pool_ns"] * 1.05, f"{helped} ns of helpers, and the pool had {truth['pool_ns']}")
    # What the pool did in an inference is its helper's time or shared; it did nothing else.
    check(helped + shared >= truth["pool_ns"] * 0.9, f"{helped} + {shared} of {truth['pool_ns']} ns")
    check(any(span["helpers"] > 0 for span in spans), "no inference woke the pool")


@test
def a_pool_that_spins_is_counted_as_well():
    spans, truth = run_of("1")
    helped, shared = total(spans, "helper_cpu_ns"), total(spans, "shared_cpu_ns")
    check(helped <= truth["pool_ns"] * 1.05, f"{helped} ns of helpers, and the pool had {truth['pool_ns']}")
    check(helped + shared >= truth["pool_ns"] * 0.9, f"{helped} + {shared} of {truth['pool_ns']} ns")


main()
