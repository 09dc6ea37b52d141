# SPDX-License-Identifier: MIT
"""make_model.py FILE.onnx [INT8.onnx]: builds a small classifier with random weights, and its quantized version.

Six layers of 512 neurons with a softmax: about 1 ms an inference on one core. Nothing is downloaded. Needs onnx, and
onnxruntime for the quantized version.
"""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LAYERS, NEURONS, CLASSES = 6, 512, 10


def make_model() -> onnx.ModelProto:
    """A model with the input `image` (batch, 512) and the output `probabilities` (batch, 10)."""
    random = np.random.default_rng(1)
    nodes, weights, name = [], [], "image"
    for layer in range(LAYERS):
        outputs = CLASSES if layer == LAYERS - 1 else NEURONS
        values = random.standard_normal((NEURONS, outputs)) / np.sqrt(NEURONS / 2)
        weights.append(numpy_helper.from_array(values.astype(np.float32), f"weights{layer}"))
        nodes.append(helper.make_node("MatMul", [name, f"weights{layer}"], [f"sum{layer}"], name=f"matmul{layer}"))
        name = f"sum{layer}"
        if layer < LAYERS - 1:
            nodes.append(helper.make_node("Relu", [name], [f"out{layer}"], name=f"relu{layer}"))
            name = f"out{layer}"
    nodes.append(helper.make_node("Softmax", [name], ["probabilities"], name="softmax"))
    graph = helper.make_graph(nodes, "classifier",
                              [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", NEURONS])],
                              [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", CLASSES])], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9  # also for older versions of ONNX Runtime
    onnx.checker.check_model(model)
    return model


def main() -> None:
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    onnx.save(make_model(), sys.argv[1])
    if len(sys.argv) == 3:
        from onnxruntime.quantization import QuantType, quantize_dynamic
        quantize_dynamic(sys.argv[1], sys.argv[2], weight_type=QuantType.QInt8)


if __name__ == "__main__":
    main()
