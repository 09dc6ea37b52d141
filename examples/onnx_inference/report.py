# SPDX-License-Identifier: MIT
"""report.py [FOLDER]: builds two models, profiles them, compares them, and leaves a trace and a plot in FOLDER (".").

    fp32.onnx, int8.onnx     the models of make_model.py
    fp32.json, int8.json     their runs under `etwatch run --onnx --json`
    fp32.pftrace             a run with every operator, for https://ui.perfetto.dev
    fp32.png                 latencies, causes, and the threads of the slowest inference

Needs the program etwatch in PATH (or its path in ETWATCH), and onnx, onnxruntime and matplotlib.
"""
import os
import subprocess
import sys

import matplotlib

import etwatch.onnx

HERE = os.path.dirname(os.path.abspath(__file__))
ETWATCH = os.environ.get("ETWATCH", "etwatch")


def call(*command: str) -> None:
    """Runs a command and ends with its exit code if it fails."""
    print("$", " ".join(os.path.basename(word) if os.path.isabs(word) else word for word in command), flush=True)
    code = subprocess.run(command, check=False).returncode
    if code != 0:
        sys.exit(code)


def main() -> None:
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    os.chdir(sys.argv[1] if len(sys.argv) > 1 else ".")
    matplotlib.use("Agg")
    call(sys.executable, os.path.join(HERE, "make_model.py"), "fp32.onnx", "int8.onnx")
    infer = os.path.join(HERE, "infer.py")
    # 1. Every inference of an unchanged script, and why the slowest were slow.
    call(ETWATCH, "run", "--onnx", "--", sys.executable, infer, "fp32.onnx")
    # 2. Which operators took the time; the trace has them above what every CPU ran.
    call(ETWATCH, "run", "--onnx", "--operators", "-o", "fp32.pftrace", "--", sys.executable, infer, "fp32.onnx")
    # 3. Is the quantized model faster, and how sure is that?
    for name in ("fp32", "int8"):
        call(ETWATCH, "run", "-q", "--onnx", "--json", "-o", f"{name}.json", "--", sys.executable, infer, f"{name}.onnx")
    call(ETWATCH, "compare", "fp32.json", "int8.json")
    # 4. The same from inside of a program.
    watched = etwatch.onnx.profile("fp32.onnx", runs=200)
    print(watched)
    watched.plot().savefig("fp32.png")


if __name__ == "__main__":
    main()
