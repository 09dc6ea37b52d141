#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_includes.py [--objects BUILD | --prefixes] [ROOT]: src/ against the include table in ARCHITECTURE.md.

The table (`| folder | may include | OS headers |`) has a row per folder of src/. A row may also name a sub-folder
such as source/etw; the most specific row counts, and a sub-folder without a row follows the row of its folder.

A file may include its own folder, the folders above it, sub-folders of its folder that have no row, and the
folders that its row names. Naming a folder does not include those of its sub-folders that have a row, and two
sub-folders of one folder may not include each other unless a row says so. Headers of C11 and the public headers
<etwatch/...> are free for all; headers of an operating system need "yes" in the third column or a file name that
ends in _linux.c or _windows.c, <zlib.h> one that ends in _zlib.c.

--objects BUILD checks the same table at link level: it reads the symbols of every object of the library and the
program (nm), so that an extern declaration cannot replace a forbidden include. A symbol also belongs to a folder
above the one that defines it if a header there declares it, as os/os.h does for os/linux. The program may use the
public functions.

--prefixes lists the prefixes (ew_x_) that functions of several folders share. It is a report: the exit status is 0.
"""
import collections
import json
import os
import re
import subprocess
import sys

TABLE_HEAD = re.compile(r"^\|\s*folder\s*\|\s*may include\s*\|\s*OS headers\s*\|\s*$", re.M)
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)')
C11 = {name + ".h" for name in """assert complex ctype errno fenv float inttypes iso646 limits locale
    math setjmp signal stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string
    tgmath threads time uchar wchar wctype""".split()}
PROGRAM = "etwatch"
SERVER = "libetwatchserve"  # part of the program, as a library for its tests
LIBRARY = re.compile(r"(?:libetwatch|etwatch\.dll)[^/]*\.p/")
PUBLIC = "etwatch_"
FUNCTION = re.compile(r"^(?!static\b|#)[A-Za-z_][\w \t*]*?\b(ew_([a-z0-9]+)_\w+)\([^;{}]*\)\s*\{", re.M)


class Table:
    """The rows: {folder: (folders it may include, OS headers allowed)}."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        head = TABLE_HEAD.search(text)
        if not head:
            raise SystemExit(f"{path}: no table with the columns folder, may include, OS headers")
        self.rows = {}
        for line in text[head.end():].lstrip("\n").splitlines():
            if not line.startswith("|"):
                break
            cells = [cell.strip().replace("`", "") for cell in line.strip().strip("|").split("|")]
            if len(cells) != 3 or cells[2] not in ("yes", "no"):
                continue
            allowed = set() if cells[1] == "nothing" else {part.strip() for part in cells[1].split(",")}
            self.rows[cells[0]] = (allowed, cells[2] == "yes")
        if not self.rows:
            raise SystemExit(f"{path}: the include table is empty")
        for folder, (allowed, _) in self.rows.items():
            for unknown in allowed - set(self.rows):
                raise SystemExit(f"{path}: the row of {folder} names {unknown}, which has no row")

    def row(self, folder):
        """The name of the most specific row of a folder; None without one."""
        while folder and folder not in self.rows:
            folder = os.path.dirname(folder)
        return folder or None

    def os_headers(self, folder):
        return self.rows[self.row(folder)][1]

    def may_use(self, own, other):
        """Whether files of folder `own` may use those of folder `other`."""
        if own == other or own.startswith(other + "/"):
            return True
        if other.startswith(own + "/") and self.row(other) == self.row(own):
            return True
        return self.row(other) != self.row(own) and self.row(other) in self.rows[self.row(own)][0]


def sources(src):
    for folder, _, names in sorted(os.walk(src)):
        for name in sorted(names):
            if name.endswith((".c", ".h")):
                yield os.path.relpath(os.path.join(folder, name), src).replace(os.sep, "/")


def read(src, path):
    with open(os.path.join(src, path), encoding="utf-8") as file:
        return file.read()


# ------------------------------------------------------------------------- includes


def quoted_problem(src, path, target, table):
    """What is wrong with #include "target" in src/path, or None."""
    own = os.path.dirname(path)
    relative = os.path.normpath(os.path.join(own, target))
    if os.path.exists(os.path.join(src, target)):
        found = target
    elif os.path.exists(os.path.join(src, relative)):
        found = relative
    else:
        return f'"{target}" is not a file of src/'
    other = os.path.dirname(os.path.normpath(found))
    if table.row(other) is None or table.may_use(own, other):
        return None
    return f'{own} may not include {other} ("{target}")'


def check_file(src, path, table):
    folder = os.path.dirname(path)
    if table.row(folder) is None:
        yield 1, f"{folder} has no row in the table of ARCHITECTURE.md"
        return
    os_headers = table.os_headers(folder) or path.endswith(("_linux.c", "_windows.c"))
    for number, line in enumerate(read(src, path).splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        quoted, angled = match.groups()
        if quoted is not None:
            problem = quoted_problem(src, path, quoted, table)
            if problem:
                yield number, problem
        elif angled == "zlib.h" and path.endswith("_zlib.c"):
            continue
        elif not angled.startswith("etwatch/") and angled not in C11 and not os_headers:
            yield number, f"{folder} may not include <{angled}>, an operating system header"


def include_problems(src, table):
    files = list(sources(src))
    if not files:
        yield "no source files found"
    for path in files:
        for line, text in check_file(src, path, table):
            yield f"src/{path}:{line}: {text}"


# -------------------------------------------------------------------------- objects


def objects(build, src):
    """(object, path below src, whether it belongs to the program) of everything that is linked."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        for entry in json.load(file):
            path = os.path.relpath(os.path.join(entry["directory"], entry["file"]), src).replace(os.sep, "/")
            output = entry["output"]
            program = output.startswith((PROGRAM + ".p/", PROGRAM + ".exe.p/", SERVER + ".a.p/"))
            if not path.startswith("../") and (program or LIBRARY.match(output)):
                yield os.path.join(build, output), path, program


def symbols(path, nm):
    """(defined, undefined) global symbols of an object file."""
    result = subprocess.run([nm, "-g", path], check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if result.returncode != 0 or "plugin needed" in result.stderr:
        raise SystemExit(f"{path}: nm cannot read it: {result.stderr.strip() or 'unknown reason'}")
    rows = [line.split()[-2:] for line in result.stdout.splitlines() if line.strip()]
    return {name for kind, name in rows if kind != "U"}, {name for kind, name in rows if kind == "U"}


def declarations(src):
    """{folder: text of its headers}, for symbols that a folder declares and a sub-folder defines."""
    texts = collections.defaultdict(str)
    for path in sources(src):
        if path.endswith(".h"):
            texts[os.path.dirname(path)] += read(src, path)
    return texts


def owners(symbol, folder, headers):
    """The folder that defines a symbol, and the folders above it with a header that declares it."""
    yield folder
    above = os.path.dirname(folder)
    while above:
        if re.search(rf"\b{re.escape(symbol)}\b", headers.get(above, "")):
            yield above
        above = os.path.dirname(above)


def object_problems(src, build, table, nm):
    defined, used, program_files = {}, [], set()
    for path, source, program in objects(build, src):
        if not os.path.exists(path):
            raise SystemExit(f"{path} does not exist: build {build} first")
        here, elsewhere = symbols(path, nm)
        defined.update(dict.fromkeys(here, source))
        used += [(source, symbol) for symbol in sorted(elsewhere)]
        if program:
            program_files.add(source)
    if not used:
        raise SystemExit(f"{build}: no object files of the library or the program")
    headers = declarations(src)
    for source, symbol in used:
        target = defined.get(symbol)
        if target is None or (source in program_files and symbol.startswith(PUBLIC)):
            continue
        own, other = os.path.dirname(source), os.path.dirname(target)
        if table.row(own) is None or table.row(other) is None:
            continue
        if not any(table.may_use(own, folder) for folder in owners(symbol, other, headers)):
            yield f"src/{source}: {own} may not use {symbol}() of {other} (src/{target})"


# ------------------------------------------------------------------------- prefixes


def shared_prefixes(src):
    """"ew_x_: folder (functions), ..." for each prefix of functions in several folders."""
    found, headers = collections.defaultdict(lambda: collections.defaultdict(set)), declarations(src)
    for path in sources(src):
        if path.endswith(".c"):
            for name, prefix in FUNCTION.findall(read(src, path)):
                found[prefix][list(owners(name, os.path.dirname(path), headers))[-1]].add(name)
    for prefix, folders in sorted(found.items()):
        if len(folders) > 1:
            listed = (f"{folder} ({', '.join(sorted(names)[:3])}{', ...' if len(names) > 3 else ''})"
                      for folder, names in sorted(folders.items()))
            yield f"ew_{prefix}_: {'; '.join(listed)}"


def main(argv):
    arguments, build, prefixes = argv[1:], None, False
    if arguments[:1] == ["--objects"] and len(arguments) > 1:
        build, arguments = arguments[1], arguments[2:]
    elif arguments[:1] == ["--prefixes"]:
        prefixes, arguments = True, arguments[1:]
    root = os.path.abspath(arguments[0] if arguments else os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    src = os.path.join(root, "src")
    if prefixes:
        print("\n".join(shared_prefixes(src)))
        return 0
    table = Table(os.path.join(root, "ARCHITECTURE.md"))
    problems = list(object_problems(src, os.path.abspath(build), table, os.environ.get("NM", "nm")) if build
                    else include_problems(src, table))
    if problems:
        print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
