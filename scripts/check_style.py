#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_style.py [ROOT]: the rules that a script can check.

The licence tag first, no banned function, the heap only through base/alloc.h, a library that does
not print, exit or touch signals, no locale-dependent numbers in sinks, no side effect in an
assert, no mark of unfinished work, and no function over 120 lines. Files have no limit: they are
split by responsibility, not by line count.
"""
import os
import re
import sys

FOLDERS = ["include", "src", "python", "packaging", "tests", "examples", "bench", "scripts"]
TAG = "SPDX-License-Identifier: MIT"
MAX_FUNCTION_LINES = 120

BANNED = "strcpy strcat sprintf vsprintf strtok atoi atol atof gets strncpy strncat alloca".split()
HEAP = "malloc calloc realloc free strdup strndup asprintf vasprintf aligned_alloc posix_memalign".split()
VOICE = """printf fprintf vprintf vfprintf puts putchar perror syslog exit _exit abort signal sigaction
    setlocale""".split()
UNFINISHED = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX"]) + r")\b")
FLOAT_FORMAT = re.compile(r"%[-+ #0]*(\*|\d+)?(\.(\*|\d+))?[fFeEgGaA]")
STRING = re.compile(r'"(?:\\.|[^"\\])*"')
ASSERT_EFFECT = re.compile(r"\bassert\(.*(\+\+|--|[^=!<>]=[^=])")


def calls(names):
    return re.compile(r"(?<![\w.>])(" + "|".join(names) + r")\s*\(")


BANNED_CALL, HEAP_CALL, VOICE_CALL = calls(BANNED), calls(HEAP), calls(VOICE)


def blank(text, keep_strings=False):
    """The code without comments (and the content of literals), lines kept."""
    pattern = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)

    def replace(match):
        piece = match.group()
        if piece[0] in "\"'":
            return piece if keep_strings else piece[0] * 2
        return "\n" * piece.count("\n") or " "
    return pattern.sub(replace, text)


def long_functions(code):
    """(line, name, length) of functions that are too long; braces of functions are in column 0."""
    lines = code.split("\n")
    begin = None
    for number, line in enumerate(lines, 1):
        if line.rstrip() == "{":
            begin = number
        elif line.startswith("}") and begin is not None:
            if number - begin + 1 > MAX_FUNCTION_LINES:
                head = " ".join(lines[max(0, begin - 4):begin - 1])
                names = re.findall(r"(\w+)\s*\(", head)
                yield begin, names[-1] if names else "?", number - begin + 1
            begin = None


def check_c(path, text):
    if not text.startswith(f"/* {TAG} */"):
        yield 1, f"the first line is not /* {TAG} */"
    code, with_strings = blank(text), blank(text, keep_strings=True)
    in_src = path.startswith("src/")
    in_library = in_src and not path.startswith(("src/cli/", "src/serve/"))  # both are the program
    in_kernel = path.endswith(".bpf.c") or "/ebpf/kernel/" in path
    for number, (line, full) in enumerate(zip(code.split("\n"), with_strings.split("\n")), 1):
        rules = [(BANNED_CALL, "is banned")]
        # src/cuda runs in foreign programs, which may release its buffers with free().
        if in_src and not in_kernel and path != "src/base/alloc.c" and not path.startswith("src/cuda/"):
            rules.append((HEAP_CALL, "belongs behind base/alloc.h"))
        if in_library and not in_kernel:
            rules.append((VOICE_CALL, "is not for a library: it does not print, exit or touch signals"))
        for pattern, why in rules:
            match = pattern.search(line)
            if match:
                yield number, f"{match.group(1)}() {why}"
        if path.startswith("src/sink/") and any(FLOAT_FORMAT.search(s) for s in STRING.findall(full)):
            yield number, "a float format depends on the locale: use base/buf.h"
        if ASSERT_EFFECT.search(line):
            yield number, "an assert with a side effect does nothing in a release build"
    for number, name, length in long_functions(code):
        yield number, f"{name}() has {length} lines (at most {MAX_FUNCTION_LINES})"


def check_text(path, text):
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        match = UNFINISHED.search(line)
        if match:
            yield number, f"{match.group()} marks unfinished work"
    if path.endswith((".c", ".h")):
        yield from check_c(path, text)
    elif TAG not in "\n".join(lines[:2]):
        yield 1, f"no {TAG} in the first two lines"


def is_checked(root, path):
    if path.endswith((".c", ".h", ".py", ".sh")) or os.path.basename(path) == "meson.build":
        return True
    with open(os.path.join(root, path), "rb") as file:
        return file.read(2) == b"#!"


def sources(root):
    yield from (name for name in ("dev", "meson.build", ".ci/run") if os.path.isfile(os.path.join(root, name)))
    for top in FOLDERS:
        for folder, below, names in os.walk(os.path.join(root, top)):
            # Recorded inputs and expected outputs are data, not source text.
            below[:] = sorted(d for d in below if d not in ("corpus", "__pycache__", "proc", "expected"))
            for name in sorted(names):
                path = os.path.relpath(os.path.join(folder, name), root)
                if not os.path.islink(os.path.join(root, path)) and is_checked(root, path):
                    yield path


def main(argv):
    root = argv[1] if len(argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    problems = files = 0
    for path in sources(root):
        files += 1
        with open(os.path.join(root, path), encoding="utf-8") as file:
            text = file.read()
        for line, what in check_text(path, text):
            print(f"{path}:{line}: {what}")
            problems += 1
    if files == 0:
        print("no source files found")
    return 1 if problems or files == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
