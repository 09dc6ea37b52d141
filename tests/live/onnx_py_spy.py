# SPDX-License-Identifier: MIT
"""run --onnx --py-spy: samples of py-spy are joined with the inferences of their thread."""
import os

from lib import check, check_between, check_eq, check_in, main, need_ebpf, run, skip, temp_dir, test
from livekit import of_type, watch
from onnxkit import PYTHON, environment, make_model, write

BIN = os.path.dirname(PYTHON)

INFER = """
import sys, numpy as np, onnxruntime as ort
options = ort.SessionOptions()
options.intra_op_num_threads = 1
session = ort.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
def serve_one(data):
    return session.run(None, data)
for _ in range(150):
    serve_one({"x": np.ones((320, 768), np.float32)})
"""


@test
def stacks_are_joined_on_time_and_thread():
    need_ebpf()
    if not os.path.exists(os.path.join(BIN, "py-spy")):
        skip("py-spy is not installed in build-python")
    with temp_dir() as folder:
        model = make_model(folder, size=768)
        script, folded = write(folder, "infer.py", INFER), os.path.join(folder, "out.folded")
        watched = watch([script, model], "--onnx", "--py-spy", folded, program=PYTHON,
                        env=environment(PATH=BIN + os.pathsep + os.environ["PATH"]))
        check_eq(watched.code, 0, f"exit code ({watched.err})")
        if "Permission denied" in watched.err or "ptrace" in watched.err:
            skip("py-spy may not look into other processes here")
        check(os.path.exists(folded), watched.err)
        with open(folded, encoding="utf-8") as file:
            lines = [line.rsplit(" ", 1) for line in file.read().splitlines()]
    runs = {stack: int(us) for stack, us in lines if stack.startswith("run of small.onnx;")}
    spans = [span for span in of_type(watched.objects, "span") if span["kind"] == "inference"]
    check_eq(len(spans), 150, f"inferences ({watched.err})")
    true_us = sum(span["dt_ns"] - span["unknown_ns"] for span in spans) / 1000
    check_between(sum(runs.values()), true_us * 0.98 - 1000, true_us * 1.02 + 1000, "microseconds of all stacks")
    sampled = {stack: us for stack, us in runs.items() if not stack.endswith(";no sample")}
    if not sampled:
        skip(f"py-spy took no sample: {watched.err}")
    here = sum(us for stack, us in sampled.items() if ";serve_one (infer.py)" in stack)
    check(here > 0.8 * sum(sampled.values()), f"only {here} of {sum(sampled.values())} us are in serve_one: {sampled}")
    check(not [stack for stack in runs if "process " in stack], "a command line in the stacks")


@test
def without_py_spy_the_message_says_what_to_do():
    result = run(["run", "--onnx", "--py-spy", "/dev/null", "--", "true"], env={**os.environ, "PATH": "/nonexistent"})
    check_eq(result.code, 1, "exit code")
    check_in("pip install py-spy", result.err)
    result = run(["run", "--py-spy", "/dev/null", "--", "true"])
    check_eq(result.code, 2, "exit code")
    check_in("--py-spy needs --onnx", result.err)


main()
