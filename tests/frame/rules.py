# SPDX-License-Identifier: MIT
"""The rules of the tree: the tree follows them, and their checks detect violations."""
import importlib.util
import json
import os
import re
import shutil
import sys

from lib import BUILD, ROOT, cases, check, check_eq, check_in, main, run, skip, temp_dir, test


def script(name, *arguments):
    path = os.path.join(ROOT, "scripts", name)
    return run([path, *arguments], program=sys.executable, timeout=300) if name.endswith(".py") else \
        run(arguments, program=path, timeout=300)


def write(root, path, text):
    path = os.path.join(root, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


@test
def the_tree_follows_the_include_rules():
    result = script("check_includes.py")
    check_eq(result.code, 0, result.out + result.err)


@test
def no_two_folders_share_a_prefix():
    result = script("check_includes.py", "--prefixes")
    check_eq(result.out.strip(), "", "prefixes of external functions that two folders of src/ define")


@test
def the_objects_follow_the_include_rules():
    if shutil.which("nm") is None or not os.path.exists(os.path.join(BUILD, "compile_commands.json")):
        skip("needs nm and a build with compile_commands.json")
    result = script("check_includes.py", "--objects", BUILD)
    check_eq(result.code, 0, result.out + result.err)


@test
def the_tree_follows_the_style_rules():
    result = script("check_style.py")
    check_eq(result.code, 0, result.out + result.err)


@test
def the_tree_is_written_in_plain_english():
    result = script("check_words.py")
    lines = result.out.splitlines()
    check_eq((result.code, len(lines)), (0, 0), f"{result.err}{'; '.join(lines[:5])}: exit code and findings")


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


def included(path, line, table=None):
    """The verdict on one include line in one file of an otherwise clean tree; table: other rows than the real ones."""
    with temp_dir() as root:
        if table is None:
            shutil.copy(os.path.join(ROOT, "ARCHITECTURE.md"), root)
        else:
            write(root, "ARCHITECTURE.md", "| folder | may include | OS headers |\n| --- | --- | --- |\n" + table)
        for header in ("base/alloc.h", "model/facts.h", "os/os.h", "source/source.h", "source/etl/reader.h",
                       "source/poll/poll.h", "ledger/ledger.h", "sampler/sampler.h", "sink/sink.h", "monitor/monitor.h"):
            if table is None or header.split("/")[0] in table:
                write(root, "src/" + header, "")
        check_eq(script("check_includes.py", root).code, 0)
        write(root, "src/" + path, line + "\n")
        return script("check_includes.py", root)


@cases([
    ("base may not include the model", "base/a.c", '#include "model/facts.h"'),
    ("the ledger may not include a source", "ledger/a.c", '#include "source/source.h"'),
    ("a sink may not include the sampler", "sink/a.c", '#  include "sampler/sampler.h"'),
    ("the program may not include the monitor", "cli/a.c", '#include "monitor/monitor.h"'),
    ("a path with .. is resolved", "sink/a.c", '#include "../ledger/ledger.h"'),
    ("a header that does not exist", "sink/a.c", '#include "base/none.h"'),
    ("the sampler may not include system headers", "sampler/a.c", "#include <unistd.h>"),
    ("a folder without a row", "extra/a.c", "#include <stdio.h>"),
    ("a sub-folder may not include its sibling", "source/pftrace/a.c", '#include "source/poll/poll.h"'),
    ("a folder name does not include its sub-folders", "sensor/a.c", '#include "source/etl/reader.h"'),
    ("a folder may not include its sub-folder with a row", "source/a.c", '#include "source/etl/reader.h"'),
])
def a_forbidden_include_is_reported(path, line):
    result = included(path, line)
    check_eq(result.code, 1)
    check_in(f"src/{path}:1: ", result.out)


@cases([
    ("an allowed folder", "monitor/a.c", '#include "source/source.h"'),
    ("an allowed sub-folder", "recording/a.c", '#include "source/etl/reader.h"'),
    ("an allowed sibling", "source/ebpf/a.c", '#include "source/poll/poll.h"'),
    ("a folder above, two levels", "source/ebpf/bpf/a.c", '#include "source/source.h"'),
    ("a public header", "base/a.c", "#include <etwatch/etwatch.h>"),
    ("a header of C11", "base/a.c", "#include <stdint.h>"),
    ("a system header in a file named for it", "cli/a_linux.c", "#include <unistd.h>"),
    ("a system header where they belong", "os/linux/a.c", "#include <unistd.h>"),
    ("the folder above", "source/poll/a.c", '#include "source/source.h"'),
])
def an_allowed_include_passes(path, line):
    result = included(path, line)
    check_eq(result.code, 0, result.out)


ROWS = "| base | nothing | no |\n| source | base | no |\n"


@cases([
    ("the row of the folder counts", "source/new/a.c", '#include "base/alloc.h"', ROWS, 0),
    ("its folder may include it", "source/a.c", '#include "source/etl/reader.h"', ROWS, 0),
    ("two of them may not include each other", "source/poll/a.c", '#include "source/etl/reader.h"', ROWS, 1),
    ("the most specific row counts", "source/etl/a.c", '#include "base/alloc.h"',
     ROWS + "| source/etl | nothing | no |\n", 1),
    ("OS headers of the most specific row", "source/etl/a.c", "#include <unistd.h>",
     ROWS + "| source/etl | nothing | yes |\n", 0),
])
def sub_folders_without_a_row_follow_their_folder(path, line, table, code):
    result = included(path, line, table)
    check_eq(result.code, code, result.out)


def linked(files):
    """The verdict on the objects of a small tree: {path: C source}. cli is the program, the rest the library."""
    compiler = shutil.which("cc")
    if compiler is None or shutil.which("nm") is None:
        skip("needs cc and nm")
    with temp_dir() as root:
        shutil.copy(os.path.join(ROOT, "ARCHITECTURE.md"), root)
        commands = []
        for number, (path, text) in enumerate(files.items()):
            write(root, "src/" + path, text + "\n")
            if path.endswith(".c"):
                output = f"{'etwatch' if path.startswith('cli/') else 'libetwatch.so.0'}.p/{number}.o"
                os.makedirs(os.path.join(root, "build", os.path.dirname(output)), exist_ok=True)
                done = run(["-c", f"../src/{path}", "-o", output], program=compiler, cwd=os.path.join(root, "build"))
                check_eq(done.code, 0, done.err)
                commands.append({"directory": os.path.join(root, "build"), "file": f"../src/{path}", "output": output})
        write(root, "build/compile_commands.json", json.dumps(commands))
        return script("check_includes.py", "--objects", os.path.join(root, "build"), root)


def call(symbol, own):
    return f"extern int {symbol}(void); int {own}(void); int {own}(void) {{ return {symbol}(); }}"


def definition(symbol):
    return f"int {symbol}(void); int {symbol}(void) {{ return 1; }}"


@cases([
    ("an extern declaration instead of an include", "ew_ledger_x", "ew_sink_x",
     {"sink/a.c": 0, "ledger/b.c": 1}, "sink may not use ew_ledger_x() of ledger"),
    ("a sub-folder uses its sibling", "ew_poll_x", "ew_pftrace_x",
     {"source/pftrace/a.c": 0, "source/poll/b.c": 1}, "source/pftrace may not use ew_poll_x() of source/poll"),
    ("a folder uses its sub-folder without a declaration of its own", "ew_etl_x", "ew_source_x",
     {"source/a.c": 0, "source/etl/b.c": 1}, "source may not use ew_etl_x() of source/etl"),
    ("a stage calls a public function of a later stage", "etwatch_x", "ew_sink_x",
     {"sink/a.c": 0, "monitor/b.c": 1}, "sink may not use etwatch_x() of monitor"),
    ("the program uses an internal function", "ew_monitor_x", "main",
     {"cli/a.c": 0, "monitor/b.c": 1}, "cli may not use ew_monitor_x() of monitor"),
])
def a_forbidden_reference_is_reported(symbol, own, files, message):
    result = linked({path: definition(symbol) if defines else call(symbol, own) for path, defines in files.items()})
    check_eq(result.code, 1, result.out + result.err)
    check_in(message, result.out)


@cases([
    ("an allowed folder", "ew_ledger_x", "ew_monitor_x", {"monitor/a.c": 0, "ledger/b.c": 1}, {}),
    ("a function declared above its sub-folder", "ew_os_x", "ew_monitor_x", {"monitor/a.c": 0, "os/linux/b.c": 1},
     {"os/os.h": "int ew_os_x(void);"}),
    ("the program uses a public function", "etwatch_x", "main", {"cli/a.c": 0, "monitor/b.c": 1}, {}),
])
def an_allowed_reference_passes(symbol, own, files, headers):
    sources = {path: definition(symbol) if defines else call(symbol, own) for path, defines in files.items()}
    result = linked({**headers, **sources})
    check_eq(result.code, 0, result.out + result.err)


@test
def objects_that_were_not_built_are_an_error():
    with temp_dir() as root:
        shutil.copy(os.path.join(ROOT, "ARCHITECTURE.md"), root)
        write(root, "src/base/a.c", "")
        entry = {"directory": os.path.join(root, "build"), "file": "../src/base/a.c", "output": "libetwatch.so.0.p/a.o"}
        write(root, "build/compile_commands.json", json.dumps([entry]))
        result = script("check_includes.py", "--objects", os.path.join(root, "build"), root)
        check_eq(result.code, 1)
        check_in("does not exist", result.err)


@test
def prefixes_shared_by_two_folders_are_listed():
    with temp_dir() as root:
        write(root, "src/sink/a.c", "int ew_thing_open(void)\n{\n}\n")
        write(root, "src/arrow/a.c", "void ew_thing_close(int a,\n                    int b)\n{\n}\n")
        write(root, "src/base/a.c", "static int ew_thing_own(void)\n{\n}\nint ew_buf_put(void)\n{\n}\n")
        result = script("check_includes.py", "--prefixes", root)
        check_eq(result.out, "ew_thing_: arrow (ew_thing_close); sink (ew_thing_open)\n")


# -------------------------------------------------------------------- plain English


def load_words():
    spec = importlib.util.spec_from_file_location("check_words", os.path.join(ROOT, "scripts", "check_words.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def marker_words():
    """One example for each word and phrase of the checker."""
    for pattern in load_words().WORDS:
        pattern = re.sub(r"\(\?:([^)|]*)[^)]*\)", r"\1", pattern)
        yield from pattern.split("|")


PLACES = [
    ("a C comment", "src/base/a.c", "int x; /* a value\n * {} here */\n"),
    ("a C string", "src/base/a.c", 'const char *s = "it {} that";\n'),
    ("a Python docstring", "tests/a.py", 'def f():\n    """It {} that."""\n'),
    ("a Python comment", "tests/a.py", "x = 1  # it {} that\n"),
    ("a Python message", "tests/a.py", 'print(f"it {} that")\n'),
    ("a document", "docs/a.md", "# Title\n\nIt {} that.\n"),
    ("the manual page", "docs/a.1", "It {} that.\n"),
    ("a shell message", "dev", '#!/bin/sh\nsay "it {} that"\n'),
    ("a comment of a build file", "src/meson.build", "# it {} that\n"),
    ("JavaScript", "tests/a.js", "// it {} that\n"),
]


@cases(PLACES)
def every_marker_word_is_found(path, text):
    checker = load_words()
    for word in marker_words():
        for form in (word, word.capitalize()):
            found = [match for _, match, _ in checker.findings(path, text.replace("{}", form))]
            check_eq(found, [form], f"findings for {form!r}")


@cases(PLACES)
def clean_text_has_no_findings(path, text):
    checker = load_words()
    for word in ("reports", "the", "their", "shutdown", "asking", "whole", "inside", "recommended"):
        check_eq(list(checker.findings(path, text.replace("{}", word))), [], f"findings for {word!r}")


@cases([
    ("code of C", "src/base/a.c", "int {}; /* a counter */\n"),
    ("code of Python", "tests/a.py", "{} = 1\n"),
    ("a code block of a document", "docs/a.md", "Run this:\n\n```sh\n{}\n```\n"),
    ("inline code of a document", "docs/a.md", "The field `{}` is a number.\n"),
    ("a line with the mark", "src/base/a.c", 'const char *s = "{}"; /* words-ok: a name */\n'),
])
def text_that_is_not_prose_is_not_checked(path, text):
    checker = load_words()
    for word in marker_words():
        if " " not in word:
            check_eq(list(checker.findings(path, text.replace("{}", word))), [], f"findings for {word!r}")


@test
def a_finding_is_reported_with_its_line_and_advice():
    with temp_dir() as root:
        os.makedirs(os.path.join(root, "scripts"))
        shutil.copy(os.path.join(ROOT, "scripts", "check_words.py"), os.path.join(root, "scripts"))
        tool = os.path.join(root, "scripts", "check_words.py")
        write(root, "src/base/a.c", "/* A clean comment. */\n")
        check_eq(run([tool], program=sys.executable), (0, "", ""))
        word = next(marker_words())
        write(root, "src/base/a.c", f"/* A clean comment. */\n/* What {word} does. */\n")
        result = run([tool], program=sys.executable)
        check_eq(result.code, 1)
        check(result.out.startswith(f'src/base/a.c:2: "{word}": '), result.out)
        check_eq(run([tool, "docs"], program=sys.executable).code, 0, "exit code for another folder")


# ---------------------------------------------------------------------------- style


HEAD = "/* SPDX-License-Identifier: MIT */\n"
LONG_FUNCTION = "int f(void)\n{\n" + "    g();\n" * 119 + "}\n"


@cases([
    ("no licence tag", "src/base/a.c", "int x;\n"),
    ("a banned function", "src/base/a.c", HEAD + "int f(char *a) { return atoi(a); }\n"),
    ("the heap without base/alloc.h", "src/ledger/a.c", HEAD + "void f(void *p) { free(p); }\n"),
    ("a library that prints", "src/monitor/a.c", HEAD + 'void f(void) { printf("x"); }\n'),
    ("a library that exits", "src/monitor/a.c", HEAD + "void f(void) { exit(1); }\n"),
    ("a locale-dependent number", "src/sink/a.c", HEAD + 'void f(char *b) { snprintf(b, 9, "%.2f", 1.0); }\n'),
    ("an assert that does something", "src/base/a.c", HEAD + "void f(int i) { assert(i++ < 3); }\n"),
    ("unfinished work", "src/base/a.c", HEAD + "/* TO" + "DO: later */\n"),
    ("a function of 121 lines", "src/base/a.c", HEAD + LONG_FUNCTION),
    ("a script without the tag", "scripts/a.py", "import os\n"),
])
def a_violation_of_the_style_is_reported(path, text):
    with temp_dir() as root:
        write(root, path, text)
        result = script("check_style.py", root)
        check_eq(result.code, 1)
        check_eq(len(result.out.splitlines()), 1, result.out)
        check(result.out.startswith(path + ":"), result.out)


@cases([
    ("a function of 120 lines", "src/base/a.c", HEAD + LONG_FUNCTION.replace("    g();\n", "", 1)),
    ("a banned name in a comment", "src/base/a.c", HEAD + "/* Not strcpy(): it has no limit. */\n"),
    ("a banned name in a string", "src/base/a.c", HEAD + 'const char *s = "free(x)";\n'),
    ("a member called free", "src/base/a.c", HEAD + "void f(struct s *p) { p->free(p); }\n"),
    ("a remainder in a sink", "src/sink/a.c", HEAD + "int f(int i, struct g *g) { return i % g->n; }\n"),
    ("the program prints", "src/cli/a.c", HEAD + 'void f(void) { printf("x"); }\n'),
    ("the heap in base/alloc.c", "src/base/alloc.c", HEAD + "void f(void *p) { free(p); }\n"),
    ("an assert that compares", "src/base/a.c", HEAD + "void f(int i) { assert(i <= 3 && i == 2); }\n"),
])
def good_style_passes(path, text):
    with temp_dir() as root:
        write(root, path, text)
        result = script("check_style.py", root)
        check_eq(result.code, 0, result.out)


main()
