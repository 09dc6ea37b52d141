# SPDX-License-Identifier: MIT
"""For tests with ONNX Runtime: a small model, its environment, and the Python that has the packages."""
import functools
import os

from lib import ROOT, check_eq, run, skip, temp_dir

PYTHON = os.path.join(ROOT, "build-python", "bin", "python")

MODEL = """
import sys, numpy as np, onnx
from onnx import TensorProto, helper, numpy_helper
size, name, nodes, weights = int(sys.argv[2]), "x", [], []
for i in range(4):
    weights.append(numpy_helper.from_array(np.full((size, size), 0.01, np.float32), f"w{i}"))
    nodes.append(helper.make_node("MatMul", [name, f"w{i}"], [f"m{i}"], name=f"layer{i}"))
    name = f"m{i}"
kind = lambda n: helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", size])
model = helper.make_model(helper.make_graph(nodes, "g", [kind("x")], [kind(name)], weights),
                          opset_imports=[helper.make_opsetid("", 17)])
model.ir_version = 9
onnx.save(model, sys.argv[1])
"""

NODES = 4


def environment(**more):
    """Without ONNX Runtime's telemetry."""
    return {**os.environ, "ORT_DISABLE_TELEMETRY": "1", **more}


@functools.lru_cache(maxsize=None)
def has_onnx():
    return os.path.exists(PYTHON) and run(["-c", "import onnx, onnxruntime"], program=PYTHON, env=environment()).code == 0


def need_onnx():
    """Skips the test if the packages are missing."""
    if not has_onnx():
        skip("onnx and onnxruntime are not in build-python")


@functools.lru_cache(maxsize=None)
def model_bytes(size):
    with temp_dir() as folder:
        path = os.path.join(folder, "model.onnx")
        result = run(["-c", MODEL, path, str(size)], program=PYTHON, env=environment())
        check_eq(result.code, 0, f"exit code of the model's script ({result.err})")
        with open(path, "rb") as file:
            return file.read()


def make_model(folder, name="small.onnx", size=256):
    """The path of a model with four matrix products of one input `x`."""
    need_onnx()
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(model_bytes(size))
    return path


def write(folder, name, text):
    """A file of the program under test; its path."""
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path
