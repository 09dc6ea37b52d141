# SPDX-License-Identifier: MIT
"""Spans in files: CSV, Arrow and Perfetto have what --json has, also of running programs, and what cannot be written is refused."""
import csv
import io
import json
import os
import statistics
import subprocess

from lib import ROOT, check, check_between, check_eq, check_in, json_lines, main, need_ebpf, run, skip, temp_dir, test
from livekit import of_type
from onnxkit import NODES, PYTHON, environment, make_model, write
from toolkit import sql

MARKS = """
import etwatch, sys, time
for i in range(int(sys.argv[1])):
    with etwatch.span("step", "a,b"):
        time.sleep(float(sys.argv[2]) / 1000)
"""

INFER = """
import sys, numpy as np, onnxruntime as ort
options = ort.SessionOptions()
options.intra_op_num_threads = 1
session = ort.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
for _ in range(20):
    session.run(None, {"x": np.ones((16, 256), np.float32)})
"""

SERVER = INFER.replace("for _ in range(20)", "print('ready', flush=True)\nimport time\nwhile True").replace(
    "np.float32)})", "np.float32)})\n    time.sleep(0.005)")

READ_ARROW = """
import json, pyarrow.ipc, sys
table = pyarrow.ipc.open_file(sys.argv[1]).read_all()
print(json.dumps({"columns": table.column_names, "rows": table.to_pylist()}, default=str))
"""


def arrow(path):
    if not os.path.exists(PYTHON) or run(["-c", "import pyarrow"], program=PYTHON).code != 0:
        skip("pyarrow is not in build-python")
    result = run(["-c", READ_ARROW, path], program=PYTHON)
    check_eq(result.code, 0, f"exit code of the reader ({result.err})")
    return json.loads(result.out)


def marked(folder, file, *options, count=10, sleep_ms=3.0):
    """run --spans of a program with marks; the path of the file."""
    need_ebpf()
    script, path = write(folder, "marks.py", MARKS), os.path.join(folder, file)
    env = {**os.environ, "PYTHONPATH": os.path.join(ROOT, "python")}
    result = run(["run", "--spans", "-o", path, *options, "--", "python3", script, str(count), str(sleep_ms)], env=env)
    check_eq(result.code, 0, f"exit code ({result.err})")
    return path


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


@test
def csv_has_the_keys_of_json_in_their_order():
    with temp_dir() as folder:
        span = of_type(json_lines(text_of(marked(folder, "a.jsonl", "--json"))), "span")[0]
        rows = list(csv.reader(io.StringIO(text_of(marked(folder, "a.csv", "--csv")))))
    keys = [key for key in span if key != "type"]
    check_eq(rows[0], keys, "columns")
    check_eq(len(rows), 11, "lines")
    row = dict(zip(rows[0], rows[1]))
    check_eq((row["kind"], row["name"], row["session"], row["shape"], row["gpu_ns"], row["failed"], row["async"]),
             ("work", "step", "a,b", "", "", "false", "false"), "values")
    for values in rows[1:]:
        causes = json.loads(dict(zip(rows[0], values))["causes"])
        check(all(set(cause) == {"cause", "pid", "tid", "name", "ns"} for cause in causes), "causes")


@test
def arrow_has_the_rows_and_columns_of_json():
    with temp_dir() as folder:
        span = of_type(json_lines(text_of(marked(folder, "a.jsonl", "--json"))), "span")[0]
        table = arrow(marked(folder, "a.arrow"))
    check_eq(sorted(table["columns"]), sorted(key for key in span if key != "type"), "columns")
    check_eq([(row["name"], row["session"]) for row in table["rows"]], [("step", "a,b")] * 10, "rows")
    for row in table["rows"]:
        check_eq(sum(value for key, value in row.items() if key in
                     ("work_ns", "runq_wait_ns", "throttled_ns", "fault_ns", "disk_wait_ns", "lock_wait_ns",
                      "process_wait_ns", "sleep_ns", "unknown_ns") and value is not None), row["dt_ns"], "sum of the causes")


@test
def operators_have_a_second_arrow_file():
    need_ebpf()
    with temp_dir() as folder:
        script, path = write(folder, "infer.py", INFER), os.path.join(folder, "run.arrow")
        result = run(["run", "-q", "--onnx", "--operators", "-o", path, "--", PYTHON, script, make_model(folder)],
                     env=environment())
        check_eq(result.code, 0, f"exit code ({result.err})")
        spans, operators = arrow(path), arrow(os.path.join(folder, "run.operators.arrow"))
        check_eq([name for name in os.listdir(folder) if "arrow" in name and not name.startswith("run.")], [], "other files")
    runs = [row for row in spans["rows"] if row["kind"] == "inference"]
    check_eq((len(runs), len(operators["rows"])), (20, 20 * NODES), "rows")
    check_eq({row["inference_t_ns"] for row in operators["rows"]}, {row["t_ns"] for row in runs}, "joined by time")


@test
def options_that_a_file_cannot_have_are_refused():
    result = run(["run", "--onnx", "--operators", "--csv", "--", "true"])
    check_eq((result.code, result.out), (2, ""), "exit code and output")
    check_in("-o FILE.arrow", result.err, "message")
    for command in (["run", "--spans", "--json", "-o", "x.arrow", "--", "true"], ["onnx", "-a", "--csv", "-o", "x.pftrace"]):
        result = run(command)
        check_eq((result.code, result.out), (2, ""), f"exit code and output of {command}")
        check_in("a file of its own format", result.err, "message")


@test
def a_running_server_is_written_as_trace_and_table():
    need_ebpf()
    with temp_dir() as folder:
        model = make_model(folder)
        trace, table = os.path.join(folder, "x.pftrace"), os.path.join(folder, "x.arrow")
        with subprocess.Popen([PYTHON, "-c", SERVER, model], env=environment(), stdout=subprocess.PIPE) as server:
            try:
                check_eq(server.stdout.readline(), b"ready\n", "output of the server")
                for path in (trace, table):
                    result = run(["onnx", "-q", "-p", server.pid, "-o", path, "--duration", "1"])
                    check_eq((result.code, result.out), (0, ""), f"exit code ({result.err})")
            finally:
                server.kill()
        slices, switches = sql(trace, "SELECT count(*) > 0 AS some FROM slice WHERE name = 'run' AND category = 'inference'",
                               "SELECT count(*) > 0 AS some FROM sched")
        rows = arrow(table)["rows"]
    check_eq((slices, switches), ([[1]], [[1]]), "slices and switches")
    check(len(rows) > 10, f"{len(rows)} rows")
    check_eq({(row["kind"], row["session"], row["shape"]) for row in rows}, {("inference", "small.onnx", "16x256")}, "rows")


@test
def two_traces_are_compared_by_their_spans():
    with temp_dir() as folder:
        paths = [marked(folder, f"{ms}.pftrace", count=12, sleep_ms=ms) for ms in (2, 8)]
        result = run(["compare", "--json", *paths])
    check_eq(result.code, 0, f"exit code ({result.err})")
    pair = json_lines(result.out)[0]
    check_eq((pair["metric"], pair["kind"], pair["name"], pair["a_session"], pair["a_count"], pair["b_count"]),
             ("dt_ns", "work", "step", "a,b", 12, 12), "what is compared")
    check(pair["different"] and pair["ratio"] > 2, f"8 ms are not longer than 2 ms: {pair}")
    check_between(pair["a_sleep_ns"], 1_500_000, 1e12, "cause of the trace")


@test
def a_trace_and_json_of_one_run_have_the_same_latencies():
    with temp_dir() as folder:
        trace = marked(folder, "a.pftrace", count=20)
        found = sql(trace, "SELECT dur FROM slice WHERE category = 'work' ORDER BY 1")[0]
        result = run(["compare", "--json", trace, trace])
    check_eq(result.code, 0, f"exit code ({result.err})")
    pair = json_lines(result.out)[0]
    latencies = sorted(row[0] for row in found)
    check_eq((pair["a_count"], pair["a_max_ns"]), (20, latencies[-1]), "count and the largest")
    check_between(pair["a_p50_ns"], latencies[9], statistics.median_high(latencies), "median")


main()
