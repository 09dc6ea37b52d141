#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_includes.py [ROOT]: the includes of src/ against the table in ARCHITECTURE.md.

The table under "Who may include whom" has three columns: a folder of src/, the folders it may
include beside itself, and whether it may include headers of an operating system ("yes", "no").
A folder that says "no" may have them in files whose name ends in _linux.c or _windows.c, and <zlib.h>
in those that end in _zlib.c.
Headers of C11 and the public headers <etwatch/...> are free for all.
"""
import os
import re
import sys

HEADING = "## Who may include whom"
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)')
C11 = {name + ".h" for name in """assert complex ctype errno fenv float inttypes iso646 limits locale
    math setjmp signal stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string
    tgmath threads time uchar wchar wctype""".split()}


def read_table(path):
    """{folder: (set of folders, os headers allowed)}"""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if HEADING not in text:
        raise SystemExit(f"{path}: no heading '{HEADING}'")
    table = {}
    for line in text.split(HEADING, 1)[1].splitlines():
        if line.startswith("## "):
            break
        cells = [cell.strip().replace("`", "") for cell in line.strip().strip("|").split("|")]
        if len(cells) != 3 or cells[2] not in ("yes", "no"):
            continue
        allowed = set() if cells[1] == "nothing" else {part.strip() for part in cells[1].split(",")}
        table[cells[0]] = (allowed, cells[2] == "yes")
    for folder, (allowed, _) in table.items():
        for unknown in allowed - set(table):
            raise SystemExit(f"{path}: the row of {folder} names {unknown}, which has no row")
    if not table:
        raise SystemExit(f"{path}: the table under '{HEADING}' is empty")
    return table


def sources(src):
    for folder, _, names in sorted(os.walk(src)):
        for name in sorted(names):
            if name.endswith((".c", ".h")):
                yield os.path.relpath(os.path.join(folder, name), src)


def quoted_problem(src, path, target, allowed):
    """What is wrong with #include "target" in src/path, or None."""
    beside = os.path.normpath(os.path.join(os.path.dirname(path), target))
    if os.path.exists(os.path.join(src, target)):
        found = target
    elif os.path.exists(os.path.join(src, beside)):
        found = beside
    else:
        return f'"{target}" is not a file of src/'
    own, other = path.split(os.sep)[0], found.split(os.sep)[0]
    if other != own and other not in allowed:
        return f'{own} may not include {other} ("{target}")'
    return None


def check_file(src, path, table):
    folder = path.split(os.sep)[0]
    if folder not in table:
        yield 1, f"{folder} has no row in the table of ARCHITECTURE.md"
        return
    allowed, os_headers = table[folder]
    os_headers = os_headers or path.endswith(("_linux.c", "_windows.c"))
    with open(os.path.join(src, path), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            quoted, angled = match.groups()
            if quoted is not None:
                problem = quoted_problem(src, path, quoted, allowed)
                if problem:
                    yield number, problem
            elif angled == "zlib.h" and path.endswith("_zlib.c"):
                continue
            elif not angled.startswith("etwatch/") and angled not in C11 and not os_headers:
                yield number, f"{folder} may not include <{angled}>, a header of one system"


def main(argv):
    root = argv[1] if len(argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    table = read_table(os.path.join(root, "ARCHITECTURE.md"))
    src = os.path.join(root, "src")
    files = list(sources(src))
    problems = 0
    for path in files:
        for line, text in check_file(src, path, table):
            print(f"src/{path}:{line}: {text}")
            problems += 1
    if not files:
        print("no source files found")
        problems = 1
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
