#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the reference of the Python package, made from its docstrings by pdoc (from PyPI), into a folder.

usage: reference.py FOLDER      (PYTHONPATH and ETWATCH_LIBRARY say which package and library; `./dev docs` sets them)
"""
import sys
from pathlib import Path

import pdoc
import pdoc.render


def main(folder: str) -> None:
    pdoc.render.configure(docformat="markdown", show_source=False, footer_text="etwatch")
    pdoc.pdoc("etwatch", output_directory=Path(folder))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
