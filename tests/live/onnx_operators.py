# SPDX-License-Identifier: MIT
"""run --onnx --operators: every operator of every inference, explained; and nothing is left behind."""
import glob
import json
import os
import signal
import subprocess
import tempfile

from lib import check, check_between, check_eq, check_in, end, main, need_ebpf, run, start, temp_dir, test
from livekit import of_type, one, wait_until, watch
from onnxkit import NODES, PYTHON, environment, make_model, write
from toolkit import sql

CAUSES = ("work_ns", "runq_wait_ns", "throttled_ns", "fault_ns", "disk_wait_ns", "lock_wait_ns", "process_wait_ns",
          "sleep_ns", "unknown_ns")

INFER = """
import json, os, sys, numpy as np, onnxruntime as ort
options = ort.SessionOptions()
options.intra_op_num_threads = int(sys.argv[2])
session = ort.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
if sys.argv[3:] == ["stay"]:
    print("ready", flush=True)
    sys.stdin.read()
for _ in range(30):
    session.run(None, {"x": np.ones((16, 256), np.float32)})
print(json.dumps({"profiling": options.enable_profiling, "prefix": options.profile_file_prefix, "pid": os.getpid(),
                  "default": ort.SessionOptions().profile_file_prefix}))
if sys.argv[3:] == ["killed"]:
    os.kill(os.getpid(), 9)
"""

OWN_PROFILE = """
import json, numpy as np, onnxruntime as ort, sys
options = ort.SessionOptions()
options.intra_op_num_threads, options.enable_profiling, options.profile_file_prefix = 1, True, sys.argv[2]
session = ort.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
for _ in range(25):
    session.run(None, {"x": np.ones((320, 768), np.float32)})
begun_ns = session.get_profiling_start_time_ns()
with open(session.end_profiling()) as file:
    runs = [(e["ts"] * 1000 + begun_ns, e["dur"] * 1000) for e in json.load(file) if e["name"] == "model_run"]
print(json.dumps({"runs": runs}))
"""

WITHOUT_OPTIONS = """
import multiprocessing, sys, numpy as np, onnxruntime as ort
def work():
    session = ort.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
    for _ in range(5):
        session.run(None, {"x": np.ones((1, 256), np.float32)})
if __name__ == "__main__":
    work()
    for how in ("fork", "spawn"):
        child = multiprocessing.get_context(how).Process(target=work)
        child.start()
        child.join()
"""


def folders():
    return set(glob.glob(os.path.join(tempfile.gettempdir(), "etwatch-operators-*")))


def profiled(folder, threads, *more):
    model = make_model(folder)
    script = write(folder, "infer.py", INFER)
    return watch([script, model, str(threads), *more], "--onnx", "--operators", program=PYTHON, env=environment())


@test
def every_operator_of_every_inference_is_explained():
    need_ebpf()
    before = folders()
    with temp_dir() as folder:
        watched = profiled(folder, 2)
        check_eq(watched.code, 0, f"exit code ({watched.err})")
    spans = {span["t_ns"]: span for span in of_type(watched.objects, "span") if span["kind"] == "inference"}
    operators = of_type(watched.objects, "operator")
    check_eq((len(spans), len(operators)), (30, 30 * NODES), "inferences and operators")
    check_eq({o["node"] for o in operators}, {f"layer{i}" for i in range(NODES)}, "nodes")
    check_eq({(o["operator"], o["provider"], o["session"]) for o in operators},
             {("MatMul", "CPUExecutionProvider", "small.onnx")}, "operator, provider, session")
    check_eq({o["pool_threads"] for o in operators}, {2}, "threads of the pool")
    inside = {}
    for o in operators:
        check_eq(sum(o[name] for name in CAUSES), o["dt_ns"], "sum of the causes")
        inside[o["inference_t_ns"]] = inside.get(o["inference_t_ns"], 0) + o["dt_ns"]
        if o["pool_percent"] is not None:
            # A profile has whole microseconds.
            check_between(o["pool_percent"], 0, 100 + 100 * 2000 / max(o["dt_ns"], 1000), "share of the pool's time")
    check_eq(set(inside), set(spans), "the inferences of the operators")
    for t_ns, ns in inside.items():
        check(ns <= spans[t_ns]["dt_ns"] + NODES * 1000, f"operators take longer than their inference: {ns}")
    check(any(o["pool_percent"] is not None for o in operators), "the pool is unknown")
    check_eq(folders() - before, set(), "folders that were left")
    truth = json.loads(watched.truth)
    check_eq((truth["profiling"], truth["prefix"]), (False, truth["default"]), "the options of the program")


@test
def the_report_has_the_ten_slowest_nodes():
    need_ebpf()
    with temp_dir() as folder:
        model = make_model(folder)
        script = write(folder, "infer.py", INFER)
        result = run(["run", "--onnx", "--operators", "--", PYTHON, script, model, "1"], env=environment())
    check_eq(result.code, 0, f"exit code ({result.err})")
    check_in("operators of small.onnx: 4 nodes", result.out, "report")
    check_in("latencies include the profiling of ONNX Runtime", result.out, "report")
    check_in("layer3", result.out, "report")


@test
def the_runtimes_own_profile_agrees_with_the_latency():
    need_ebpf()
    with temp_dir() as folder:
        model = make_model(folder, size=768)
        script = write(folder, "own.py", OWN_PROFILE)
        # It profiles itself, and --operators leaves that alone.
        watched = watch([script, model, os.path.join(folder, "own")], "--onnx", "--operators", program=PYTHON,
                        env=environment())
    check_eq(watched.code, 0, f"exit code ({watched.err})")
    runs = json.loads(watched.truth)["runs"]
    spans = [span for span in of_type(watched.objects, "span") if span["kind"] == "inference"]
    check_eq(len(spans), len(runs), "inferences")
    ratios = []
    for span, (begun_ns, ns) in zip(spans, runs):
        ratios.append(span["dt_ns"] / ns)
        check_between(begun_ns, span["t_ns"] - span["dt_ns"] - 20_000, span["t_ns"], "start of model_run")
        check(span["dt_ns"] >= ns - 2_000, f"an inference of {span['dt_ns']} ns is shorter than its model_run {ns}")
    # Between them is only the binding to Python: some microseconds of milliseconds.
    check_between(sorted(ratios)[len(ratios) // 2], 0.99, 1.01, "latency / model_run")
    check_eq(of_type(watched.objects, "operator"), [], "operators of a session that profiles itself")


@test
def children_and_sessions_without_options_have_operators():
    need_ebpf()
    with temp_dir() as folder:
        model = make_model(folder)
        script = write(folder, "children.py", WITHOUT_OPTIONS)
        watched = watch([script, model], "--onnx", "--operators", program=PYTHON, env=environment())
    check_eq(watched.code, 0, f"exit code ({watched.err})")
    operators = of_type(watched.objects, "operator")
    counts = {}
    for o in operators:
        counts[o["pid"]] = counts.get(o["pid"], 0) + 1
    check_eq(sorted(counts.values()), [5 * NODES] * 3, "operators by process")


@test
def a_trace_has_inferences_and_operators_as_slices_of_their_thread():
    need_ebpf()
    with temp_dir() as folder:
        model = make_model(folder)
        script = write(folder, "infer.py", INFER)
        path = os.path.join(folder, "run.pftrace")
        result = run(["run", "-q", "--onnx", "--operators", "-o", path, "--", PYTHON, script, model, "1"],
                     env=environment())
        check_eq(result.code, 0, f"exit code ({result.err})")
        slices = "slice JOIN thread_track ON slice.track_id = thread_track.id JOIN thread USING (utid)"
        found, inside, switches = sql(
            path,
            f"SELECT slice.name AS name, count(*) AS count, min(slice.dur) > 0 AS ended FROM {slices} GROUP BY 1 ORDER BY 1",
            # Short runs follow each other within the tolerance, so an operator may lie in the windows of two.
            f"SELECT count(DISTINCT op.id) AS count FROM (SELECT slice.id AS id, slice.ts AS ts, slice.dur AS dur, utid FROM {slices} "
            f"WHERE slice.name LIKE 'layer%') AS op JOIN (SELECT slice.ts AS ts, slice.dur AS dur, utid FROM {slices} "
            "WHERE slice.name = 'run') AS run ON op.utid = run.utid AND op.ts >= run.ts - 20000 AND "
            "op.ts + op.dur <= run.ts + run.dur + 20000",
            "SELECT count(*) > 0 AS some FROM sched")
    check_eq(found, [*([f"layer{i}", 30, 1] for i in range(NODES)), ["load", 1, 1], ["run", 30, 1]],
             "slices: name, number, whether they end")
    check_eq(inside, [[30 * NODES]], "operators inside of inferences of their thread")
    check_eq(switches, [[1]], "switches")


@test
def the_profile_of_a_killed_program_is_reported_as_missing():
    need_ebpf()
    before = folders()
    with temp_dir() as folder:
        model = make_model(folder)
        script = write(folder, "infer.py", INFER)
        result = run(["run", "--onnx", "--operators", "--", PYTHON, script, model, "1", "killed"], env=environment())
    check_eq(result.code, 128 + signal.SIGKILL, "exit code")
    check_in("operators are missing: 1", result.out, "report")
    check_eq(folders() - before, set(), "folders that were left")


@test
def the_folder_is_gone_when_etwatch_is_killed():
    need_ebpf()
    before = folders()
    with temp_dir() as folder:
        model = make_model(folder)
        script = write(folder, "infer.py", INFER)
        child = start(["run", "-q", "--onnx", "--operators", "--", PYTHON, script, model, "1", "stay"],
                      env=environment(), stdin=subprocess.PIPE)
        try:
            wait_until(lambda: folders() - before, "the folder")
            check_eq(child.stdout.readline().strip(), b"ready", "line of the program")
            check_eq([os.listdir(path) for path in folders() - before], [[]], "names of files")
            child.kill()
            wait_until(lambda: not folders() - before, "the end of the folder")
        finally:
            child.stdin.close()  # ends the program, which etwatch no longer waits for
            end(child)


@test
def operators_need_onnx():
    result = run(["run", "--operators", "--", "true"])
    check_eq(result.code, 2, "exit code")
    check_in("--operators needs --onnx", result.err, "message")


main()
