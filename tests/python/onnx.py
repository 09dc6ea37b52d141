# SPDX-License-Identifier: MIT
"""etwatch.onnx: inferences of the own process, with the latencies that the program measures, and their causes."""
import inspect
import os
import subprocess
import sys

from lib import check, check_eq, check_in, main, need_ebpf, temp_dir, test
from onnxkit import NODES, make_model
from toolkit import PACKAGE, need, snippet

HEAD = """
import logging, os, sys, threading, time
import numpy as np, onnxruntime as ort
import etwatch, etwatch.onnx
path = sys.argv[1]
def make(threads=1):
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
inputs = {"x": np.ones((64, 256), np.float32)}
def check(ok, what="condition"):
    assert ok, what
"""

LATENCY = """
import resource
session, other, calls = make(), make(), []
def switches():
    usage = resource.getrusage(resource.RUSAGE_THREAD)
    return usage.ru_nvcsw + usage.ru_nivcsw
def work(count):
    for _ in range(count):
        before, begun = switches(), time.perf_counter_ns()
        session.run(None, inputs)
        ns = time.perf_counter_ns() - begun
        calls.append((threading.get_native_id(), ns, switches() - before))
before = ort.InferenceSession.run, ort.InferenceSession.__init__
with etwatch.onnx.watch(session) as w:
    work(60)
    other.run(None, inputs)  # of another session
    threads = [threading.Thread(target=work, args=(20,)) for _ in range(2)]
    [t.start() for t in threads]
    [t.join() for t in threads]
check((ort.InferenceSession.run, ort.InferenceSession.__init__) == before and "run" not in vars(session), "still patched")
work(1)
check(w.causes_known and w.reason is None and w.lost == 0, w.reason)
rows, calls = list(w.inferences), calls[:-1]
check(len(rows) == len(calls) == 100, f"{len(rows)} inferences")
check(len({row["tid"] for row in rows}) == 3, "threads")
pairs = []
for tid in {row["tid"] for row in rows}:
    mine, own = sorted((row for row in rows if row["tid"] == tid), key=lambda row: row["t_ns"]), [c for c in calls if c[0] == tid]
    check(len(mine) == len(own), f"{len(mine)} inferences and {len(own)} calls of a thread")
    pairs += zip(mine, own)
for row, (_, ns, _) in pairs:
    check(row["dt_ns"] <= ns + 2000, f"{row['dt_ns']} of {ns}")
# A thread that loses the CPU, or Python's lock, between the end of the span and the program's own clock waits outside of
# the span: such calls have a switch that the span does not have. An interrupt there has none, which the lower ranks allow.
quiet = [(row["dt_ns"], ns) for row, (_, ns, count) in pairs if count <= row["preempted"]]
check(len(quiet) >= 10, f"only {len(quiet)} calls were not disturbed outside")
spans, times, outside = sorted(pair[0] for pair in quiet), sorted(pair[1] for pair in quiet), len(quiet) // 10
for share in (0.5, 0.99):
    at = int(share * len(quiet))
    check(times[at - outside] * 0.99 - 30_000 <= spans[at] <= times[at] + 2000, f"{spans[at]} of {times[at]} at {share}")
seen = sorted(row["dt_ns"] for row in rows)
causes = ("work_ns", "runq_wait_ns", "throttled_ns", "fault_ns", "disk_wait_ns", "lock_wait_ns", "process_wait_ns",
          "sleep_ns", "unknown_ns")
for row in rows:
    check(sum(row[name] for name in causes) == row["dt_ns"], row)
# The first of a thread may have begun before its first event.
check(sum(row["complete"] for row in rows) >= 96, "incomplete inferences")
summary = w.summary[0]
check((summary["session"], summary["count"], summary["p50_ns"]) == (rows[0]["session"], 100, seen[49]), summary)
check(summary["work_ns"] > 0 and "p99" in summary["why"], summary)
check(w.slowest["dt_ns"] == seen[-1] and str(w).startswith("run of small.onnx: 100 times; p50 "), str(w))
check(any(strip.state == "run" and strip.tid == w.slowest["tid"] for strip in w.strips), w.strips)
"""

SESSIONS = """
@etwatch.onnx.wrap
def serve(count):
    session = make()
    for _ in range(count):
        session.run(None, inputs)
    with etwatch.span("tokenize"):
        pass
    return count
check(serve(3) == 3 and serve(4) == 4, "result")
kinds = [row["kind"] for row in serve.watch.inferences]
check(kinds == ["load"] + 4 * ["inference"], kinds)
check([row["name"] for row in serve.watch.spans if row["kind"] == "work"] == ["tokenize"], "spans")

# A decorated function runs on several threads and calls itself: it is never refused.
results, ready = [], threading.Barrier(3)
@etwatch.onnx.wrap
def nested(depth):
    if depth == 3:
        ready.wait(30)
    return 1 if depth == 0 else 1 + nested(depth - 1)
workers = [threading.Thread(target=lambda: results.append(nested(3))) for _ in range(3)]
[t.start() for t in workers]
[t.join() for t in workers]
check(results == [4, 4, 4] and nested.watch is not None, results)
check(nested(1) == 2 and serve(1) == 1, "a watch was left running")

with etwatch.onnx.watch(operators=True) as w:
    session = make(2)
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    for _ in range(5):
        session.run(None, inputs)
NODES = int(sys.argv[2])
check(len(w.operators) == 5 * NODES and w.lost_operators == 0, f"{len(w.operators)} operators, {w.lost_operators} lost")
check({row["provider"] for row in w.operators} == {"CPUExecutionProvider"}, "provider")
check({row["inference_t_ns"] for row in w.operators} == {row["t_ns"] for row in w.inferences if row["kind"] == "inference"},
      "inferences of the operators")

w = etwatch.onnx.profile(path, runs=7, warmup=2, operators=True)
check(len(w.operators) == 9 * NODES, f"{len(w.operators)} operators")
w = etwatch.onnx.profile(session, runs=7)
check([row["kind"] for row in w.inferences] == 7 * ["inference"], "inferences of profile")

def fails(kind, words, function):
    try:
        function()
    except kind as error:
        check(words in str(error), error)
    else:
        check(False, words)
fails(ValueError, "from its creation", lambda: etwatch.onnx.watch(session, operators=True))
fails(ValueError, "give the path", lambda: etwatch.onnx.profile(session, operators=True))
fails(ValueError, "runs: 1 or more", lambda: etwatch.onnx.profile(session, runs=0))
fails(RuntimeError, "not started", lambda: etwatch.onnx.watch().inferences)
fails(RuntimeError, "used once", w.start)
with etwatch.onnx.watch():
    fails(RuntimeError, "another watch", etwatch.onnx.watch().start)
fails(ValueError, "no inference to draw", serve.watch.__class__.plot.__get__(etwatch.onnx.watch().start().stop()))
import glob, tempfile
left = glob.glob(os.path.join(tempfile.gettempdir(), f"etwatch-operators-*/{os.getpid()}-*"))
check(not left, left)
"""

PLOT = """
import matplotlib
matplotlib.use("Agg")
w = etwatch.onnx.profile(make(2), inputs, runs=30)
figure = w.plot()
labels = [ax.get_xlabel() for ax in figure.axes]
check(labels[:2] == ["latency (ms)", "inference"] and labels[2].startswith("ms of the slowest inference"), labels)
check(sum(patch.get_height() for patch in figure.axes[0].patches) == 30, "the histogram")
drawn = sum(patch.get_height() for patch in figure.axes[1].patches)
true = sum(row["dt_ns"] for row in w.inferences) / 1e6
check(abs(drawn - true) < true / 1000, f"{drawn} of {true} ms")
check(figure.axes[2].collections, "no strip")
figure.savefig(sys.argv[2])
sys.modules["matplotlib.pyplot"] = None
try:
    w.plot()
except ImportError as error:
    check("pip install matplotlib" in str(error), error)
else:
    check(False, "no error without matplotlib")
"""

UNPRIVILEGED = """
import fcntl, mmap, socket  # the new user may be unable to read them
session = make()
if os.getuid() == 0:
    os.setresuid(65534, 65534, 65534)
with etwatch.onnx.watch(session) as w:
    for _ in range(10):
        session.run(None, inputs)
check(not w.causes_known and w.reason, "causes are known")
rows = list(w.inferences)
check(len(rows) == 10 and all(row["dt_ns"] > 0 and row["work_ns"] is None and row["cpu_ns"] is None for row in rows), rows)
check(w.summary[0]["why"] is None and w.summary[0]["p99_ns"] > 0, w.summary[0])
check("causes are unknown" in str(w), str(w))
"""


def program(code, *arguments, **more):
    """Runs code with a model."""
    with temp_dir() as folder:
        model = make_model(folder)
        os.chmod(folder, 0o755)
        found = snippet(HEAD + code, model, *arguments, options=(), cwd=folder, ORT_DISABLE_TELEMETRY="1", **more)
    check_eq(found.code, 0, found.err[-2000:])
    return found


@test
def latencies_are_those_of_the_program_and_causes_add_up():
    need_ebpf()
    need("onnxruntime", "onnx")
    check_eq(program(LATENCY).err, "", "messages")


@test
def sessions_operators_spans_and_mistakes():
    need_ebpf()
    need("onnxruntime", "onnx")
    program(SESSIONS, str(NODES))


@test
def the_figure_has_latencies_causes_and_threads():
    need_ebpf()
    need("onnxruntime", "onnx", "matplotlib")
    with temp_dir() as folder:
        path = os.path.join(folder, "figure.png")
        program(PLOT, path)
        check(os.path.getsize(path) > 10000, "the picture")


@test
def without_rights_latencies_are_complete_and_causes_unknown():
    need("onnxruntime", "onnx")
    found = program(UNPRIVILEGED)
    check_eq(found.err.count("\n"), 1, f"lines of warning ({found.err})")
    check_in("etwatch.onnx: causes are unknown: ", found.err)


@test
def a_mark_that_cannot_be_sent_does_not_disturb_the_program():
    need("onnxruntime", "onnx")
    code = UNPRIVILEGED.split("with ", maxsplit=1)[0].replace("import fcntl, mmap, socket", "") + (
        "for name in ('fcntl', 'mmap', 'socket'):\n    sys.modules[name] = None\n"
        "with etwatch.onnx.watch(session) as w:\n    session.run(None, inputs)\nprint(len(w.inferences))\n")
    check_eq(program(code).out, "0\n", "inferences")


@test
def the_examples_of_the_documentation_run():
    need("onnxruntime", "onnx", "matplotlib")
    code = ("import textwrap, inspect, re\nos.chdir(os.path.dirname(path))\nos.rename(path, 'model.onnx')\n"
            "import matplotlib\nmatplotlib.use('Agg')\npath = 'model.onnx'\nsession = make()\ncount = 0\n"
            "things = [etwatch.onnx.watch, etwatch.onnx.wrap, etwatch.onnx.profile, etwatch.onnx.Watch.plot]\n"
            "for thing in things:\n"
            "    text = inspect.cleandoc(thing.__doc__).split('Example:\\n', 1)[1]\n"
            "    exec(textwrap.dedent(text), globals())\n"
            "    count += 1\n"
            "print('examples', count, os.path.getsize('inferences.png') > 10000)\n")
    check_in("examples 4 True", program(code).out)


@test
def a_missing_runtime_is_a_clear_error():
    code = ("import sys\nsys.modules['onnxruntime'] = None\nimport etwatch.onnx\n"
            "try:\n    etwatch.onnx.watch().start()\nexcept ImportError as error:\n    print(error)\n")
    found = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True,
                           env={**os.environ, "PYTHONPATH": PACKAGE})
    check_eq(found.stdout.strip(), "this needs onnxruntime: pip install onnxruntime", found.stderr)


@test
def every_public_name_is_documented():
    import etwatch.onnx as module  # pylint: disable=import-outside-toplevel
    for name in module.__all__:
        check(inspect.getdoc(getattr(module, name)), f"{name} has no docstring")
    for name, member in vars(module.Watch).items():
        if not name.startswith("_") and (callable(member) or isinstance(member, property)):
            check(inspect.getdoc(member), f"Watch.{name} has no docstring")


main()
