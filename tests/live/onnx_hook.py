# SPDX-License-Identifier: MIT
"""run --onnx in the ways in which programs are started: every inference is seen, with the process that made it."""
import glob
import json
import os

from lib import ROOT, cases, check, check_eq, check_in, main, need_ebpf, run, temp_dir, test
from livekit import of_type, watch
from onnxkit import PYTHON, environment, make_model, write

WORK = """
import os, sys, numpy as np, onnxruntime as ort

def make(path):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])

def infer(session, count):
    for _ in range(count):
        session.run(None, {"x": np.ones((1, 256), np.float32)})

def both(path, count):
    infer(make(path), count)
"""

MULTIPROCESSING = """
import multiprocessing, os, sys
import work

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[2])
    children = [context.Process(target=work.both, args=(sys.argv[1], 5 + i)) for i in range(2)]
    for child in children:
        child.start()
    print({child.pid: 5 + i for i, child in enumerate(children)})
    for child in children:
        child.join()
        assert child.exitcode == 0
"""

POOL = """
import concurrent.futures, multiprocessing, os, sys
import work

def one(path):
    work.both(path, 4)
    return os.getpid()

if __name__ == "__main__":
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        pids = list(pool.map(one, [sys.argv[1]] * 3))
    print({pids[0]: 12})
"""

WORKERS = """
import os, sys
import work
preload = sys.argv[2] == "preload"
session = work.make(sys.argv[1]) if preload else None
if preload:
    work.infer(session, 3)
counts = {os.getpid(): 3} if preload else {}
for i in range(3):  # as gunicorn forks its workers
    pid = os.fork()
    if pid == 0:
        work.infer(session or work.make(sys.argv[1]), 5 + i)
        os._exit(0)
    counts[pid] = 5 + i
for _ in range(3):
    os.wait()
print(counts)
"""

DAEMON = """
import os, sys
import work
read_end, write_end = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv(sys.executable, [sys.executable, "-c",
                 f"import sys, os, work; work.both(sys.argv[1], 6); os.write({write_end}, str(os.getpid()).encode())",
                 sys.argv[1]]) if not os.set_inheritable(write_end, True) else None
    os._exit(0)
os.close(write_end)
pid = os.read(read_end, 20)
print({int(pid): 6})
"""

MODULE = """
import os, sys
import work
work.both(sys.argv[1], 7)
print({os.getpid(): 7})
"""

SUBCLASS = """
import os, sys, onnxruntime
from onnxruntime import InferenceSession
import numpy as np
class Mine(InferenceSession):
    def run(self, *args, **kwargs):
        return super().run(*args, **kwargs)
with open(sys.argv[1], "rb") as file:
    session = Mine(file.read(), providers=["CPUExecutionProvider"])
for _ in range(4):
    session.run(None, {"x": np.ones((1, 256), np.float32)})
binding = session.io_binding()
binding.bind_cpu_input("x", np.ones((1, 256), np.float32))
binding.bind_output(session.get_outputs()[0].name)
session.run_with_iobinding(binding)
try:
    session.run(None, {"y": np.ones((1, 256), np.float32)})
except Exception as error:
    print(type(error).__name__, file=sys.stderr)
print({os.getpid(): 6})
"""

ASYNC = """
import os, sys, threading, numpy as np
import work
options = work.ort.SessionOptions()
options.intra_op_num_threads = 2
session = work.ort.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
for _ in range(5):
    done = threading.Event()
    session.run_async(None, {"x": np.ones((1, 256), np.float32)}, lambda *_: done.set(), None)
    assert done.wait(30)
print({os.getpid(): 5})
"""


def seen(objects):
    """The number of inferences by process."""
    counts = {}
    for span in of_type(objects, "span"):
        if span["kind"] == "inference":
            counts[span["pid"]] = counts.get(span["pid"], 0) + 1
    return counts


def watched(folder, *arguments, program=PYTHON, **more):
    found = watch(arguments, "--onnx", "--wait-all", program=program, cwd=folder, **{"env": environment(), **more})
    check_eq(found.code, 0, f"exit code ({found.err})")
    return found


def check_counts(found):
    expected = {int(pid): count for pid, count in json.loads(found.truth.replace("{", '{"').replace(
        ": ", '": ').replace(", ", ', "')).items()}
    check_eq(seen(found.objects), expected, "inferences by process")


@cases([
    ("multiprocessing: spawn", MULTIPROCESSING, "spawn"),
    ("multiprocessing: fork", MULTIPROCESSING, "fork"),
    ("multiprocessing: forkserver", MULTIPROCESSING, "forkserver"),
    ("a pool of processes", POOL),
    ("workers that load the model", WORKERS, "load"),
    ("workers of a process that loaded it", WORKERS, "preload"),
    ("a daemon that executes another interpreter", DAEMON),
    ("a subclass, bytes, a binding, an error", SUBCLASS),
    ("run_async", ASYNC),
])
def every_inference_is_seen_with_its_process(text, *arguments):
    need_ebpf()
    with temp_dir() as folder:
        model = make_model(folder)
        write(folder, "work.py", WORK)
        script = write(folder, "script.py", text)
        found = watched(folder, script, model, *arguments)
    check_counts(found)
    spans = [span for span in of_type(found.objects, "span") if span["kind"] == "inference"]
    if text is ASYNC:
        check_eq({(span["name"], span["async"]) for span in spans}, {("run_async", True)}, "name")
    check_eq([span["name"] for span in spans if span["failed"]], ["run"] if text is SUBCLASS else [], "failed")


@test
def a_module_is_run_like_a_script():
    need_ebpf()
    with temp_dir() as folder:
        model = make_model(folder)
        write(folder, "work.py", WORK)
        write(folder, "package/__init__.py", "")
        write(folder, "package/__main__.py", MODULE)
        check_counts(watched(folder, "-m", "package", model))


@test
def a_virtual_environment_and_its_own_sitecustomize_work():
    """Also with PYTHONPATH and usercustomize; the interpreter is the one of the environment."""
    need_ebpf()
    with temp_dir() as folder:
        model = make_model(folder)
        write(folder, "lib/work.py", WORK)
        result = run(["-m", "venv", "--without-pip", os.path.join(folder, "venv")], program=PYTHON)
        check_eq(result.code, 0, f"exit code of venv ({result.err})")
        site = glob.glob(os.path.join(folder, "venv", "lib", "python*", "site-packages"))[0]
        packages = glob.glob(os.path.join(ROOT, "build-python", "lib", "python*", "site-packages"))[0]
        write(site, "packages.pth", packages + "\n")
        write(site, "sitecustomize.py", "import builtins\nbuiltins.own_site = __file__\n")
        script = write(folder, "script.py", MODULE + "print(own_site, sys.prefix, file=sys.stderr)\n"
                                                     "print(os.environ['PYTHONPATH'], file=sys.stderr)\n")
        found = watched(folder, script, model, program=os.path.join(folder, "venv", "bin", "python"),
                        env=environment(PYTHONPATH=os.path.join(folder, "lib")))
        check_in(os.path.join(site, "sitecustomize.py"), found.err, "sitecustomize of the environment")
        check_in(os.path.join(folder, "venv") + "\n", found.err, "prefix")
        check_counts(found)


UNHOOKED = """
import os, subprocess, sys, time
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import work
time.sleep(0.5)  # the library is mapped now; finding the method in it takes some 30 ms
how = sys.argv[2]
if how == "child":
    work.both(sys.argv[1], 3)
    child = subprocess.Popen([sys.executable, "-I", __file__, sys.argv[1], "itself"], stdout=subprocess.DEVNULL)
    child.wait()
    print({os.getpid(): 3, child.pid: 20})
else:
    work.both(sys.argv[1], 20)
    print({os.getpid(): 20}, flush=True)
    time.sleep(1.5)  # the name of the model is read from the memory of the running process
"""


@cases([
    ("python -I", [PYTHON, "-I"], "itself"),
    ("python -E", [PYTHON, "-E"], "itself"),
    ("an empty environment", ["env", "-i", "ORT_DISABLE_TELEMETRY=1", PYTHON], "itself"),
    ("another PYTHONPATH", ["env", "PYTHONPATH=/nowhere", PYTHON], "itself"),
    ("a child that ignores the hook of its parent", [PYTHON], "child"),
])
def interpreters_that_ignore_the_hook_are_seen_once(command, how):
    need_ebpf()
    with temp_dir() as folder:
        model = make_model(folder)
        write(folder, "work.py", WORK)
        script = write(folder, "script.py", UNHOOKED)
        found = watched(folder, *command[1:], script, model, how, program=command[0])
    check_counts(found)
    spans = of_type(found.objects, "span")
    check_eq({(span["kind"], span["session"]) for span in spans}, {("load", "small.onnx"), ("inference", "small.onnx")}, "spans")
    check_eq(sum(span["kind"] == "load" for span in spans), 2 if how == "child" else 1, "sessions that were loaded")
    check_eq({span["shape"] for span in spans if span["kind"] == "inference"}, {"1x256"}, "shapes")


SHAPES = """
import sys, numpy as np, onnxruntime as ort
session = ort.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
x = np.ones((3, 256), np.float32)
session.run(None, {"x": x})
session.run(output_names=None, input_feed={"x": np.ones((70, 256), np.float32)})
session.run_with_ort_values(None, {"x": ort.OrtValue.ortvalue_from_numpy(x)})
session.run(None, {"x": np.ones((1, 256), np.float32).tolist()})
binding = session.io_binding()
binding.bind_cpu_input("x", x)
binding.bind_output(session.get_outputs()[0].name)
session.run_with_iobinding(binding)
for feed in (None, {}, 7, {"x": object()}):
    try:
        session.run(None, feed)
    except Exception as error:
        print(type(error).__name__)
"""


@test
def an_inference_has_the_shape_of_its_first_input():
    need_ebpf()
    with temp_dir() as folder:
        model = make_model(folder)
        script = write(folder, "script.py", SHAPES)
        plain = run([script, model], program=PYTHON, env=environment())
        found = watched(folder, script, model)
    runs = [(span["name"], span["shape"]) for span in of_type(found.objects, "span") if span["kind"] == "inference"]
    check_eq(runs[:5], [("run", "3x256"), ("run", "70x256"), ("run", "3x256"), ("run", None), ("run", None)][:len(runs[:5])], "methods and shapes")
    check_eq({shape for _, shape in runs[5:]}, {None}, "shapes of mistakes")
    check_eq(found.truth, plain.out, "what the program gets for mistakes")


@test
def a_program_without_the_runtime_is_not_disturbed():
    need_ebpf()
    with temp_dir() as folder:
        script = write(folder, "script.py", "import sys\ntry:\n    import onnxruntime\nexcept ImportError as error:\n"
                                            "    print(error.name)\nprint(sorted(m for m in sys.modules if 'etwatch' in m))")
        result = run(["run", "--onnx", "-q", "--", "/usr/bin/python3", "-S", script], cwd=folder, env=environment())
        check_eq((result.code, result.out.splitlines()[:2]), (0, ["onnxruntime", "[]"]), result.err)
        result = run(["run", "--onnx", "-q", "--", PYTHON, "-c", "print(1)"], cwd=folder, env=environment())
        check_eq((result.code, result.err), (0, ""), "messages")
        check("no inference was seen" in result.out, result.out)


main()
