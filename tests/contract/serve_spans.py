# SPDX-License-Identifier: MIT
"""serve --spans and --onnx: inferences and marked work with their causes, in the API."""
import json
import os
import re
import select
import subprocess
import sys
import time

from lib import ROOT, check, check_between, check_eq, check_in, main, need_ebpf, run, start, temp_dir, test
from onnxkit import PYTHON, environment, make_model, need_onnx
from servekit import need_serve, serve, wait_for

WORKLOAD = os.path.join(ROOT, "tests", "span_workload.py")
INFER = """
import json, sys, time, numpy as np, onnxruntime as ort
options = ort.SessionOptions()
options.intra_op_num_threads = 1
session = ort.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
data, times = {"x": np.ones((16, 1024), np.float32)}, []
sys.stdin.readline()
for _ in range(100):
    begun = time.perf_counter_ns()
    session.run(None, data)
    times.append(time.perf_counter_ns() - begun)
print(json.dumps(times), flush=True)
sys.stdin.readline()
"""


def marked(*options):
    """A server that receives marks, and the address for the environment of programs."""
    need_ebpf()
    server = serve("--spans", "--hz", "10", *options, source=None)
    address = re.search(rb"ETWATCH_SPANS=(\S+)", server.printed)
    check(address, f"an address: {server.printed}")
    return server, address[1].decode()


def spans_of(server, pid, count):
    """What the API has of a process, once it has this many spans."""
    ids = wait_for("the process", lambda: [p["id"] for p in server.json("/api/v1/processes?exited=1")["processes"] if p["pid"] == pid])
    wait_for("the spans", lambda: server.json(f"/api/v1/processes/{ids[0]}/spans")["count"] >= count)
    return server.json(f"/api/v1/processes/{ids[0]}/spans")


def check_sums(got):
    """Nothing is left over: in a span, in a group, in the timeline."""
    for span in got["slowest"]:
        check_eq(sum(v or 0 for v in span["ns"]), span["latency_ns"], "sum of the causes of a span")
    for group in got["groups"]:
        check_between(sum(v or 0 for v in group["total_ns"]) - group["mean_ns"] * group["count"], 0, group["count"], "sum of the causes of a group")
    latencies = [span["latency_ns"] for span in got["slowest"]]
    check_eq(latencies, sorted(latencies, reverse=True), "the slowest first")
    check_eq(sum(got["timeline"]["counts"]), got["count"], "the timeline")
    check_eq(max(v for v in got["timeline"]["max_ns"] if v), latencies[0], "the slowest of the timeline")


@test
def marked_work_is_shown_with_what_it_waited_for():
    server, address = marked()
    wait_for("facts", lambda: server.get("/healthz")[0] == 200)
    time.sleep(2)  # what ran before the watch began has causes that are unknown
    child = start([WORKLOAD, "lock"], program=sys.executable, stdout=subprocess.PIPE, env={**os.environ, "ETWATCH_SPANS": address})
    truth = json.loads(child.stdout.read())
    group_of = spans_of(server, child.pid, 1)
    check_sums(group_of)
    at = group_of["causes"].index("lock")
    waited = sum(group["total_ns"][at] for group in group_of["groups"])
    longest = max(group_of["slowest"], key=lambda s: s["ns"][at])
    check(waited > 0, f"nothing waited for a thread: {group_of['groups']}, the workload says {truth}")
    check_eq([cause["kind"] for cause in longest["causes"]][0], at, "the largest cause of the slowest")
    check(longest["causes"][0]["tid"] not in (0, longest["tid"]), "the thread that it waited for")


@test
def work_that_only_computes_has_the_cpu_time_that_it_measured():
    server, address = marked()
    wait_for("facts", lambda: server.get("/healthz")[0] == 200)
    time.sleep(2)
    child = start([WORKLOAD, "work"], program=sys.executable, stdout=subprocess.PIPE, env={**os.environ, "ETWATCH_SPANS": address})
    truth = json.loads(child.stdout.read())
    got = spans_of(server, child.pid, 20)
    check_sums(got)
    check_eq(got["count"], 20, "spans")
    group = got["groups"][0]
    check_eq((group["kind"], group["name"], group["session"]), ("work", "work", None), "names")
    unknown = group["total_ns"][got["causes"].index("unknown")] or 0
    check(unknown <= sum(v or 0 for v in group["total_ns"]) / 100, f"spans without all events: {group}")
    check_between(group["mean_ns"] * 20, truth["wall_ns"] * 0.9, truth["wall_ns"] * 1.01, "latency")
    check_between(group["total_ns"][0] + (group["total_ns"][3] or 0), truth["cpu_ns"] * 0.9, truth["cpu_ns"] * 1.1, f"CPU time ({group}, {truth})")
    everything = server.json("/api/v1/spans")
    check_in(child.pid, [g["pid"] for g in everything["groups"]], "processes")


@test
def inferences_of_a_running_program_are_shown():
    need_ebpf()
    need_onnx()
    with temp_dir() as folder:
        server = serve("--onnx", "--hz", "10", source=None)
        wait_for("facts", lambda: server.get("/healthz")[0] == 200)
        child = start(["-c", INFER, make_model(folder, size=1024)], program=PYTHON, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        time.sleep(3)  # the library is mapped and has its probes
        child.stdin.write(b"\n")
        child.stdin.flush()
        check(select.select([child.stdout], [], [], 60)[0], "the inferences")
        times = json.loads(child.stdout.readline())
        got = spans_of(server, child.pid, 100)
        check_sums(got)
        groups = [g for g in got["groups"] if g["kind"] == "inference"]
        check_eq(sum(g["count"] for g in groups), 100, "inferences")
        # Python's own call is around it.
        check(groups[0]["max_ns"] <= max(times), f"{groups[0]['max_ns']} is more than the program's own {max(times)}")
        check_between(sum(g["mean_ns"] * g["count"] for g in groups), sum(times) * 0.8, sum(times), "latency in all")
        child.stdin.close()


@test
def without_a_switch_there_are_no_spans():
    server = serve()
    status, _, body = server.get("/api/v1/spans")
    check_eq(status, 404, "status")
    check_in(b"--onnx or --spans", body)


@test
def what_cannot_be_watched_is_an_error():
    need_serve()
    polled = run(["serve", "--listen", "127.0.0.1:0", "--spans", "--source", "poll"])
    check_eq(polled.code, 2, "status")
    check_in("need --source ebpf", polled.err)
    recorded = run(["serve", "--listen", "127.0.0.1:0", "--onnx", "x.pftrace"])
    check_eq(recorded.code, 2, "status")
    check_in("remove the recording", recorded.err)


main()
