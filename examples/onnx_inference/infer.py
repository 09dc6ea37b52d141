# SPDX-License-Identifier: MIT
"""infer.py MODEL.onnx [COUNT [THREADS]]: runs a model COUNT times (200) with ONNX Runtime and prints percentiles.

An ordinary script: nothing in it is for etwatch. `etwatch run --onnx -- python3 infer.py MODEL.onnx` explains it.
"""
import sys
import time

import numpy as np
import onnxruntime as ort


def main() -> None:
    if not 2 <= len(sys.argv) <= 4:
        sys.exit(__doc__)
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    options = ort.SessionOptions()
    options.intra_op_num_threads = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    session = ort.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
    images = np.random.default_rng(2).standard_normal((32, 512), dtype=np.float32)
    times = []
    for _ in range(count):
        begun = time.perf_counter_ns()
        session.run(None, {"image": images})
        times.append(time.perf_counter_ns() - begun)
    times.sort()
    print(f"{count} inferences: p50 {times[count // 2] / 1e6:.3f} ms, p99 {times[count * 99 // 100] / 1e6:.3f} ms")


if __name__ == "__main__":
    main()
