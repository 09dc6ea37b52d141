# SPDX-License-Identifier: MIT
"""Every code block of README.md, CONTRIBUTING.md, SECURITY.md and docs/ can be pasted and works.

A block is a fence with a language:

    sh        each line runs in a shell, with the program under test in PATH
    python    runs with the package under test
    c         is compiled with warnings as errors, linked with the library and run
    conf      is a configuration file that `etwatch config --check` accepts
    json      is one JSON value

A block that cannot run here carries an HTML comment on the line before its fence. `<!-- test: needs polars -->` runs it
if these Python modules are installed; any other `<!-- test: REASON -->` skips it with the reason. A block without a known
language and without a comment fails, and so does an indented block. Of the man page the lines of EXAMPLES run. Links and
paths of the documents must exist.

Blocks run in a scratch folder with the files that the documents name: a small workload (`infer.py`) and recordings.
A command that never ends gets SIGINT after a moment and must then end by itself.
"""
import glob
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import namedtuple

from commandkit import UNDER_WINE
from etlkit import make_etl
from lib import BUILD, ETWATCH, ROOT, Failed, cases, check, check_eq, main, run, skip, start, temp_dir, test
from toolkit import environment, need, python

LIVE_SECONDS = 1.5  # after this a command that never ends is interrupted
END_SECONDS = 20
OTHER_SECONDS = 60
PAGES = ["README.md", "CONTRIBUTING.md", "SECURITY.md", *sorted(
    os.path.relpath(path, ROOT) for path in glob.glob(os.path.join(ROOT, "docs", "*.md")))]
MARK = re.compile(r"^<!-- test: (.+?) -->$")
WORKLOAD = """\
import threading, time

def work():
    until = time.monotonic() + 0.3
    while time.monotonic() < until:
        sum(range(10000))

threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
CONFIGURATION = "name = python\nhz = 100\n"

Block = namedtuple("Block", "page line language mark text")


def blocks_of(page, text):
    """Every fenced or indented block of a Markdown page."""
    lines = text.split("\n")
    number = 0
    in_list = False
    while number < len(lines):
        line = lines[number]
        if line.startswith("```"):
            end = lines.index("```", number + 1)
            mark = MARK.match(lines[number - 1]) if number else None
            yield Block(page, number + 1, line[3:].strip(), mark and mark.group(1), "\n".join(lines[number + 1:end]))
            number = end
        elif line and not line.startswith(" "):
            in_list = re.match(r"([-*]|\d+\.) ", line) is not None
        elif line.startswith("    ") and not in_list and (number == 0 or not lines[number - 1]):
            yield Block(page, number + 1, "indented", None, line)
            while number + 1 < len(lines) and (not lines[number + 1] or lines[number + 1].startswith("    ")):
                number += 1
        number += 1


def examples_of_the_manual():
    """The lines of EXAMPLES, each a block of its own."""
    with open(os.path.join(ROOT, "docs", "etwatch.1"), encoding="utf-8") as file:
        lines = file.read().split("\n")
    section = ""
    for number, line in enumerate(lines, 1):
        if line.startswith(".Sh "):
            section = line[4:]
        elif section == "EXAMPLES" and line.startswith(".Dl "):
            text = line[4:].replace("\\-", "-").replace("\\e", "\\")
            mark = None if text.startswith("etwatch ") else f"not a command of etwatch: {text.split()[0]}"
            yield Block("docs/etwatch.1", number, "sh", mark, text)


def read_all():
    for page in PAGES:
        with open(os.path.join(ROOT, page), encoding="utf-8") as file:
            yield from blocks_of(page, file.read())
    yield from examples_of_the_manual()


# --------------------------------------------------------------------------- the scratch folder

_files = None


def executable(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, 0o755)


def make_files(folder):
    """What the documents name, made once."""
    with open(os.path.join(folder, "infer.py"), "w", encoding="utf-8") as file:
        file.write(WORKLOAD)
    with open(os.path.join(folder, "etwatch.conf"), "w", encoding="utf-8") as file:
        file.write(CONFIGURATION)
    executable(os.path.join(folder, "inference"), f"#!/bin/sh\nexec {shlex.quote(sys.executable)} infer.py\n")
    os.mkdir(os.path.join(folder, "bin"))
    executable(os.path.join(folder, "bin", "flamegraph.pl"), "#!/bin/sh\nexec cat\n")
    os.symlink(ETWATCH, os.path.join(folder, "bin", "etwatch"))
    for seed, name in enumerate(("trace", "a", "b", "boot", "kernel", "user"), 1):
        make_etl("mixed", os.path.join(folder, name + ".etl"), "--events", 5000, "--seed", seed)
    for arguments in (["record", "-q", "-o", "run.pftrace", "--", sys.executable, "infer.py"],
                      ["export", "trace.etl", "-o", "events.arrow"]):
        result = run(arguments, cwd=folder)
        check_eq(result.code, 0, f"exit code of etwatch {arguments[0]} ({result.err.strip()})")


def scratch(folder):
    """Copies the files into the folder of one block; the environment for its commands."""
    global _files
    if _files is None:
        _files = tempfile.TemporaryDirectory(prefix="etwatch-documents-")
        make_files(_files.name)
    shutil.copytree(_files.name, folder, symlinks=True, dirs_exist_ok=True)
    path = os.pathsep.join([os.path.join(folder, "bin"), os.environ.get("PATH", os.defpath)])
    return environment(PATH=path, LD_LIBRARY_PATH=BUILD)


# -------------------------------------------------------------------------------- running blocks

def never_ends(words):
    """Whether a command of etwatch watches the live system until it is interrupted."""
    if words[:2] == ["etwatch", "serve"]:
        return True
    if words[:1] != ["etwatch"] or words[1] not in ("stat", "top", "waits", "record") or "--" in words:
        return False
    given = [word for before, word in zip(words[1:], words[2:]) if before not in ("-o", "--output")]
    return not any(word.endswith((".etl", ".pftrace")) for word in given)


def finish(child, bounded, what):
    """Waits for a child, with SIGINT if it never ends by itself; its exit code and the end of its errors."""
    try:
        child.wait(LIVE_SECONDS if bounded else OTHER_SECONDS)
    except subprocess.TimeoutExpired:
        if not bounded:
            raise Failed(f"{what!r} did not end within {OTHER_SECONDS} s") from None
        os.killpg(child.pid, signal.SIGINT)
        try:
            child.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            raise Failed(f"{what!r} did not end within {END_SECONDS} s after SIGINT") from None
        return child.returncode if child.returncode not in (130, -signal.SIGINT) else 0
    return child.returncode


def run_bounded(arguments, program, bounded, what, **options):
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        child = start(arguments, program=program, stdout=out, stderr=errors, **options)
        code = finish(child, bounded, what)
        errors.seek(0)
        words = errors.read().decode(errors="replace")
    check_eq(code, 0, f"exit code of {what!r} ({' '.join(words.split())[-400:]})")
    return words


def run_sh(block, folder, env):
    text = block.text.replace("\\\n", " ")
    for line in text.split("\n"):
        words = shlex.split(line, comments=True)
        if not words:
            continue
        # exec: the signal reaches the command itself; a pipeline stays with the shell.
        command = line if "|" in words else "exec " + line
        run_bounded(["-c", command], "/bin/sh", never_ends(words), line, cwd=folder, env=env)


def run_python(block, folder, env):
    path = os.path.join(folder, "block.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(block.text + "\n")
    words = run_bounded([path], python(), "etwatch.watch(" in block.text, "the block", cwd=folder, env=env)
    last = words.strip().split("\n")[-1]
    check("Traceback" not in words or last == "KeyboardInterrupt", last)


def run_c(block, folder, env):
    source, program = os.path.join(folder, "prog.c"), os.path.join(folder, "prog")
    with open(source, "w", encoding="utf-8") as file:
        file.write(block.text + "\n")
    result = run(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-I", os.path.join(ROOT, "include"), source, "-o", program,
                  "-L", BUILD, "-letwatch"], program="cc")
    check_eq(result.code, 0, f"exit code of cc ({result.err[-600:]})")
    run_bounded([], program, False, "the program", cwd=folder, env=env)


def run_conf(block, folder, env):
    with open(os.path.join(folder, "block.conf"), "w", encoding="utf-8") as file:
        file.write(block.text + "\n")
    run_bounded(["config", "--check", "block.conf"], ETWATCH, False, "config --check", cwd=folder, env=env)


def run_json(block, _folder, _env):
    json.loads(block.text)


RUNNERS = {"sh": run_sh, "python": run_python, "c": run_c, "conf": run_conf, "json": run_json}


def run_block(block):
    if block.mark is not None and not block.mark.startswith("needs "):
        skip(block.mark)
    if block.language == "indented":
        raise Failed(f"{block.page}:{block.line}: an indented block; use a fence with a language")
    if block.language not in RUNNERS:
        raise Failed(f"{block.page}:{block.line}: the language {block.language!r} is none of {', '.join(RUNNERS)}, and "
                     "there is no <!-- test: REASON --> before the fence")
    if block.mark is not None:
        if block.language != "python":
            skip(block.mark)
        need(*block.mark.split()[1:])
    with temp_dir() as folder:
        RUNNERS[block.language](block, folder, scratch(folder))


if UNDER_WINE:
    @test
    def the_code_blocks_of_the_documents_work():
        skip("they are run on Linux")
else:
    @cases([(f"{block.page}:{block.line} {block.language or 'no language'}", block) for block in read_all()])
    def the_block_works(block):
        run_block(block)

    @test
    def links_and_paths_in_the_documents_exist():
        for page in [*PAGES, "ARCHITECTURE.md", "bench/README.md"]:
            with open(os.path.join(ROOT, page), encoding="utf-8") as file:
                text = file.read()
            here = os.path.dirname(os.path.join(ROOT, page))
            links = [link.split("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
            for link in links:
                check(os.path.exists(os.path.join(here, link)), f"{page}: the link {link} leads nowhere")
            for path in re.findall(r"(?<![\w/])((?:src|include|tests|scripts|python|examples)/[\w./*-]*\w(?:\*?\.\w+)?)", text):
                check("NAME" in path or glob.glob(os.path.join(ROOT, path)), f"{page}: there is no {path}")

    PAGE = "# a\n\n```sh\ntrue\n```\n\n<!-- test: output -->\n```\nx\n```\n\n    indented\n\n- a list\n\n    of text\n"

    @test
    def every_block_of_a_page_is_found():
        found = [(block.language, block.mark) for block in blocks_of("page", PAGE)]
        check_eq(found, [("sh", None), ("", "output"), ("indented", None)])

    @cases([
        ("no language", "", None, "true"),
        ("a language that is not run", "perl", None, "1"),
        ("indented", "indented", None, "etwatch"),
        ("a command that fails", "sh", None, "true\nfalse"),
        ("an unknown option", "sh", None, "etwatch stat --no-such-option"),
        ("an exception", "python", None, "raise ValueError(1)"),
        ("C that does not compile", "c", None, "int main(void) { return x; }"),
    ])
    def a_wrong_block_fails(language, mark, text):
        try:
            run_block(Block("page", 1, language, mark, text))
        except Failed:
            return
        raise Failed("nothing was reported")

main()
