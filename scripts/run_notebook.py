#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""run_notebook.py NOTEBOOK [OUTPUT]: executes a notebook and writes it with its plots.

Machine-specific details (paths, execution times, names of interpreters) are removed. Without OUTPUT it only executes.
Needs nbclient and ipykernel.
"""
import os
import re
import sys

import nbformat
from nbclient import NotebookClient

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def clean(value):
    """Removes paths of this machine from all text."""
    if isinstance(value, dict):
        return {key: clean(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [clean(entry) for entry in value]
    if isinstance(value, str):
        value = value.replace(sys.executable, "python").replace(ROOT, "etwatch")
        return re.sub(r"(?:/[\w.+-]+)+/(python[\w.]*)", r"\1", value)
    return value


def main():
    source = sys.argv[1]
    notebook = nbformat.read(source, as_version=4)
    for cell in notebook.cells:
        cell.pop("outputs", None)
        if cell.cell_type == "code":
            cell.outputs = []
            cell.execution_count = None
    os.environ["PYTHONPATH"] = os.path.join(ROOT, "python")
    NotebookClient(notebook, timeout=120, kernel_name="python3",
                   resources={"metadata": {"path": os.path.dirname(os.path.abspath(source))}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", []):
            if "data" in output:
                output["data"] = {kind: data if kind.startswith("image/") else clean(data)
                                  for kind, data in output["data"].items()}
    notebook.metadata.pop("widgets", None)
    notebook.metadata["language_info"] = {"name": "python"}
    if len(sys.argv) > 2:
        nbformat.write(notebook, sys.argv[2])
    print(sum(len(cell.get("outputs", [])) for cell in notebook.cells))


if __name__ == "__main__":
    main()
