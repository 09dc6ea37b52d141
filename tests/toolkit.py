# SPDX-License-Identifier: MIT
"""The Python packages that users have beside etwatch: pandas, polars, psutil, ... in tests.

`./dev` puts them into build-python/, a virtual environment; none of them is needed to build or to use
etwatch. A test that wants one skips where it could not be installed.
"""
import os
import subprocess
import sys

from lib import BUILD, ROOT, run, skip

PACKAGE = os.path.join(ROOT, "python")
_found = {}


def python():
    """The interpreter that has the tools, else the one that runs the tests."""
    path = os.environ.get("ETWATCH_TOOLS", os.path.join(ROOT, "build-python"))
    path = os.path.join(path, "bin", "python3")
    return path if os.access(path, os.X_OK) else sys.executable


def environment(**more):
    """Where the package and the library under test are."""
    return {**os.environ, "PYTHONPATH": PACKAGE, "PYTHONDONTWRITEBYTECODE": "1",
            "ETWATCH_LIBRARY": os.path.join(BUILD, "libetwatch.so"), **more}


def need(*modules):
    """Skips the test unless the tools' interpreter has all of these."""
    for name in modules:
        if name not in _found:
            _found[name] = subprocess.run([python(), "-c", f"import {name}"], check=False,
                                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                          stderr=subprocess.DEVNULL).returncode == 0
        if not _found[name]:
            skip(f"{name} is not installed in build-python")


def snippet(code, *arguments, options=("-X", "dev"), timeout=60, **more):
    """Runs Python code with the package on its path: Result(code, out, err)."""
    return run([*options, "-c", code, *arguments], program=python(), env=environment(**more), timeout=timeout)
