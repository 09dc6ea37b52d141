# SPDX-License-Identifier: MIT
"""Loaded by the Python interpreters that `etwatch run --onnx` starts: their PYTHONPATH begins with this folder.

Adds marks around ONNX Runtime when the program imports it; nothing else changes. The sitecustomize that the
environment has of its own is loaded afterwards as if this one did not exist. Subprocesses inherit PYTHONPATH, so they
are marked too. An error here must never stop the program.
"""
import os
import sys

_FOLDER = os.path.dirname(os.path.abspath(__file__))


def _install() -> None:
    import importlib.util  # pylint: disable=import-outside-toplevel

    path = os.path.join(_FOLDER, "onnx_marks.py")
    spec = importlib.util.spec_from_file_location("_etwatch_onnx_marks", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is missing")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.install()


def _load_other() -> None:
    """The sitecustomize that would have been loaded without this folder."""
    import importlib  # pylint: disable=import-outside-toplevel

    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != _FOLDER]
    mine = sys.modules.pop("sitecustomize", None)
    importlib.invalidate_caches()
    try:
        importlib.import_module("sitecustomize")
    except ModuleNotFoundError as error:
        if error.name != "sitecustomize":
            raise
        if mine is not None:
            sys.modules["sitecustomize"] = mine


if os.environ.get("ETWATCH_ONNX") and os.environ.get("ETWATCH_SPANS"):
    try:
        _install()
    except Exception as error:  # pylint: disable=broad-except
        sys.stderr.write(f"etwatch: cannot mark inferences of this program: {error}\n")
_load_other()
