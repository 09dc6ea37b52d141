# SPDX-License-Identifier: MIT
"""The rules of the house: the tree keeps them, and their checks see a breach."""
import os
import shutil
import sys

from lib import ROOT, cases, check, check_eq, check_in, main, run, skip, temp_dir, test


def script(name, *arguments):
    path = os.path.join(ROOT, "scripts", name)
    return run([path, *arguments], program=sys.executable) if name.endswith(".py") else \
        run(arguments, program=path)


def write(root, path, text):
    path = os.path.join(root, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


@test
def the_tree_keeps_the_include_rules():
    result = script("check_includes.py")
    check_eq(result.code, 0, result.out + result.err)


@test
def the_tree_keeps_the_style_rules():
    result = script("check_style.py")
    check_eq(result.code, 0, result.out + result.err)


@test
def the_tree_is_formatted():
    result = script("check_format")
    if result.code == 77:
        skip(result.out.strip())
    files = sorted({line.split(":")[0] for line in result.err.splitlines() if ": error:" in line})
    check_eq(result.code, 0, f"./dev format would change {', '.join(files)}: exit status")


@test
def every_test_file_is_registered():
    with open(os.path.join(ROOT, "tests", "meson.build"), encoding="utf-8") as file:
        listed = file.read()
    for folder, prefix in (("unit", "test_"), ("fuzz", "fuzz_")):
        for name in os.listdir(os.path.join(ROOT, "tests", folder)):
            if name.startswith(prefix) and name.endswith(".c"):
                check(f"'{name[len(prefix):-2]}'" in listed, f"tests/meson.build does not list {name}")


def included(path, line):
    """The verdict on one include line in one file of an otherwise clean tree."""
    with temp_dir() as root:
        shutil.copy(os.path.join(ROOT, "ARCHITECTURE.md"), root)
        for header in ("base/alloc.h", "model/facts.h", "os/os.h", "source/source.h", "ledger/ledger.h",
                       "sampler/sampler.h", "sink/sink.h", "monitor/monitor.h"):
            write(root, "src/" + header, "")
        check_eq(script("check_includes.py", root).code, 0)
        write(root, "src/" + path, line + "\n")
        return script("check_includes.py", root)


@cases([
    ("base may not see the model", "base/a.c", '#include "model/facts.h"'),
    ("the ledger may not see a source", "ledger/a.c", '#include "source/source.h"'),
    ("a sink may not see the sampler", "sink/a.c", '#  include "sampler/sampler.h"'),
    ("the program may not see the monitor", "cli/a.c", '#include "monitor/monitor.h"'),
    ("a detour over .. is seen", "sink/a.c", '#include "../ledger/ledger.h"'),
    ("a header that does not exist", "sink/a.c", '#include "base/none.h"'),
    ("the sampler may not see the system", "sampler/a.c", "#include <unistd.h>"),
    ("a folder without a row", "extra/a.c", "#include <stdio.h>"),
])
def a_forbidden_include_is_reported(path, line):
    result = included(path, line)
    check_eq(result.code, 1)
    check_in(f"src/{path}:1: ", result.out)


@cases([
    ("down the pipeline", "monitor/a.c", '#include "source/source.h"'),
    ("a public header", "base/a.c", "#include <etwatch/etwatch.h>"),
    ("a header of C11", "base/a.c", "#include <stdint.h>"),
    ("a system header in a file named for it", "cli/a_linux.c", "#include <unistd.h>"),
    ("a system header where they belong", "os/linux/a.c", "#include <unistd.h>"),
    ("a neighbour", "source/poll/a.c", '#include "source/source.h"'),
])
def an_allowed_include_passes(path, line):
    result = included(path, line)
    check_eq(result.code, 0, result.out)


HEAD = "/* SPDX-License-Identifier: MIT */\n"
LONG_FUNCTION = "int f(void)\n{\n" + "    g();\n" * 119 + "}\n"


@cases([
    ("no licence tag", "src/base/a.c", "int x;\n"),
    ("a banned function", "src/base/a.c", HEAD + "int f(char *a) { return atoi(a); }\n"),
    ("the heap by the back door", "src/ledger/a.c", HEAD + "void f(void *p) { free(p); }\n"),
    ("a library that prints", "src/monitor/a.c", HEAD + 'void f(void) { printf("x"); }\n'),
    ("a library that exits", "src/monitor/a.c", HEAD + "void f(void) { exit(1); }\n"),
    ("a locale-dependent number", "src/sink/a.c", HEAD + 'void f(char *b) { snprintf(b, 9, "%.2f", 1.0); }\n'),
    ("an assert that does something", "src/base/a.c", HEAD + "void f(int i) { assert(i++ < 3); }\n"),
    ("unfinished work", "src/base/a.c", HEAD + "/* TO" + "DO: later */\n"),
    ("a function of 121 lines", "src/base/a.c", HEAD + LONG_FUNCTION),
    ("a script without the tag", "scripts/a.py", "import os\n"),
])
def a_breach_of_style_is_reported(path, text):
    with temp_dir() as root:
        write(root, path, text)
        result = script("check_style.py", root)
        check_eq(result.code, 1)
        check_eq(len(result.out.splitlines()), 1, result.out)
        check(result.out.startswith(path + ":"), result.out)


@cases([
    ("a function of 120 lines", "src/base/a.c", HEAD + LONG_FUNCTION.replace("    g();\n", "", 1)),
    ("a banned name in a comment", "src/base/a.c", HEAD + "/* Not strcpy(): it does not end. */\n"),
    ("a banned name in a string", "src/base/a.c", HEAD + 'const char *s = "free(x)";\n'),
    ("a member called free", "src/base/a.c", HEAD + "void f(struct s *p) { p->free(p); }\n"),
    ("a remainder in a sink", "src/sink/a.c", HEAD + "int f(int i, struct g *g) { return i % g->n; }\n"),
    ("the program prints", "src/cli/a.c", HEAD + 'void f(void) { printf("x"); }\n'),
    ("the one door to the heap", "src/base/alloc.c", HEAD + "void f(void *p) { free(p); }\n"),
    ("an assert that compares", "src/base/a.c", HEAD + "void f(int i) { assert(i <= 3 && i == 2); }\n"),
])
def good_style_passes(path, text):
    with temp_dir() as root:
        write(root, path, text)
        result = script("check_style.py", root)
        check_eq(result.code, 0, result.out)


main()
