# SPDX-License-Identifier: MIT
"""The notebook in examples/: it was executed, contains nothing about the machine, and still runs."""
import glob
import json
import os
import re

from lib import ROOT, check, check_eq, main, run, test
from toolkit import environment, need, python

NOTEBOOKS = sorted(glob.glob(os.path.join(ROOT, "examples", "*.ipynb"))
                   + glob.glob(os.path.join(ROOT, "examples", "*", "*.ipynb")))


def outputs(path):
    with open(path, encoding="utf-8") as file:
        cells = json.load(file)["cells"]
    return [output for cell in cells for output in cell.get("outputs", [])], \
        [cell for cell in cells if cell["cell_type"] == "code"]


@test
def every_cell_was_executed_without_an_error_and_there_is_a_picture():
    check(NOTEBOOKS, "there is no notebook")
    for path in NOTEBOOKS:
        found, cells = outputs(path)
        check(all(cell["execution_count"] for cell in cells), f"{path}: a cell was not executed")
        check(not [o for o in found if o["output_type"] == "error"], f"{path}: an error in it")
        check(any("image/png" in o.get("data", {}) for o in found), f"{path}: no picture in it")


@test
def no_path_of_the_machine_is_in_the_notebook():
    for path in NOTEBOOKS:
        with open(path, encoding="utf-8") as file:
            text = re.sub(r'"image/png": "[^"]*"', "", file.read())
        for word in re.findall(r"(?<![\w.<])/(?:home|root|tmp|work|usr|opt|var)/[\w./-]+", text):
            check(False, f"{path}: {word}")


@test(seconds=300)
def the_notebook_runs_from_beginning_to_end():
    need("nbclient", "ipykernel", "matplotlib", "pandas")
    for path in NOTEBOOKS:
        if "onnx_inference" in path:
            continue  # below
        result = run([os.path.join(ROOT, "scripts", "run_notebook.py"), path], program=python(), timeout=280,
                     env=environment())
        check_eq(result.code, 0, result.err[-3000:])


@test(seconds=300)
def the_notebook_about_inferences_runs_from_beginning_to_end():
    need("nbclient", "ipykernel", "matplotlib", "pandas", "onnx", "onnxruntime")
    path = os.path.join(ROOT, "examples", "onnx_inference", "why_slow.ipynb")
    result = run([os.path.join(ROOT, "scripts", "run_notebook.py"), path], program=python(), timeout=280,
                 env=environment(ORT_DISABLE_TELEMETRY="1"))
    check_eq(result.code, 0, result.err[-3000:])


main()
