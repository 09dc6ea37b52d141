# SPDX-License-Identifier: MIT
"""examples/onnx_inference: builds a model, runs it, and leaves the report, the trace, the comparison and the plot."""
import json
import os

from lib import ETWATCH, ROOT, check, check_eq, check_in, main, need_ebpf, run, temp_dir, test
from toolkit import environment, need, python

REPORT = os.path.join(ROOT, "examples", "onnx_inference", "report.py")


@test(seconds=200)
def the_report_the_trace_the_comparison_and_the_plot_are_made():
    need_ebpf()
    need("onnx", "onnxruntime", "matplotlib")
    with temp_dir() as folder:
        result = run([REPORT, folder], program=python(), timeout=190,
                     env=environment(ETWATCH=ETWATCH, ORT_DISABLE_TELEMETRY="1"))
        check_eq(result.code, 0, f"exit code ({result.err[-1500:]})")
        sizes = {name: os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder)}
        with open(os.path.join(folder, "fp32.json"), encoding="utf-8") as file:
            spans = [o for o in map(json.loads, file) if o["type"] == "span" and o["kind"] == "inference"]
    check_eq(sorted(sizes), ["fp32.json", "fp32.onnx", "fp32.pftrace", "fp32.png", "int8.json", "int8.onnx"], "files")
    check(sizes["fp32.png"] > 10000 and sizes["fp32.pftrace"] > 1000, f"sizes {sizes}")
    check_eq(len(spans), 200, "inferences")
    for part in ("run of fp32.onnx: 200 times", "operators of fp32.onnx: 12 nodes, the first ten by time", "matmul0",
                 "run of fp32.onnx and int8.onnx", "run of fp32.onnx: 200 times; p50"):
        check_in(part, result.out + result.err, "output")


main()
