# SPDX-License-Identifier: MIT
"""Shared by the Python tests: tests named by sentences in, TAP out.

    from lib import test, check, check_eq, skip, run, main

    @test
    def a_missing_option_value_is_a_usage_error():
        result = run(["stat", "--hz"])
        check_eq(result.code, 2)

    main()

`tests/run` runs every file of tests/frame, golden, contract, examples, etl and live and counts the single results. By
hand: `tests/run --only PART-OF-A-NAME`. The program under test is ETWATCH_BIN. Every process that a test starts
through run() or start() is ended with the test, by its own process ID and process group.
"""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from collections import namedtuple

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # no test sends what ONNX Runtime from PyPI collects
BUILD = os.path.abspath(os.environ.get("ETWATCH_BUILD", os.path.join(ROOT, "build")))
ETWATCH = os.path.abspath(os.environ.get("ETWATCH_BIN", os.path.join(BUILD, "etwatch")))
UPDATE = os.environ.get("ETWATCH_UPDATE") == "1"  # tests/run --update: rewrite golden files
TEST_SECONDS = 120

Result = namedtuple("Result", "code out err")

_tests = []
_children = []


class Failed(Exception):
    """A check did not hold."""


class Skipped(Exception):
    """The machine lacks what the test needs."""


def test(function=None, *, seconds=TEST_SECONDS):
    """Registers a test; its name is the sentence that must hold."""
    if function is None:
        return lambda f: test(f, seconds=seconds)
    _tests.append((function.__name__, function, seconds))
    return function


def cases(rows):
    """@cases([("remark", arg…), …]): one counted result per row, named function: remark."""
    def register(function):
        for remark, *arguments in rows:
            _tests.append((f"{function.__name__}: {remark}",
                           lambda arguments=arguments: function(*arguments), TEST_SECONDS))
        return function
    return register


def check(condition, message="condition does not hold"):
    if not condition:
        raise Failed(message)


def check_eq(got, want, what="value"):
    if got != want:
        raise Failed(f"{what} is {got!r}, not {want!r}")


def check_in(part, whole, what="text"):
    if part not in whole:
        raise Failed(f"{what} has no {part!r}: {whole!r}")


def check_between(got, low, high, what="value"):
    if got is None or not low <= got <= high:
        raise Failed(f"{what} is {got!r}, not within {low!r} and {high!r}")


def raises(kind, words, function, *arguments, **named):
    """Calls the function: it must raise this, with a message that contains these words."""
    try:
        function(*arguments, **named)
    except kind as error:
        for word in words.split():
            check_in(word, str(error), "message")
        return error
    raise Failed(f"nothing was raised for {arguments!r} {named!r}")


def check_golden(got, path):
    """Exact bytes of a file below tests/; --update rewrites it."""
    path = os.path.join(ROOT, "tests", path)
    if isinstance(got, str):
        got = got.encode()
    if UPDATE:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(got)
        return
    check(os.path.exists(path), f"{path} is missing; tests/run --update writes it")
    with open(path, "rb") as file:
        want = file.read()
    if got == want:
        return
    pairs = zip(got.splitlines() + [b"<end>"], want.splitlines() + [b"<end>"])
    for number, (a, b) in enumerate(pairs, 1):
        if a != b:
            same = len(os.path.commonprefix([a, b]))
            part = slice(max(0, same - 40), same + 60)
            raise Failed(f"{os.path.relpath(path, ROOT)}:{number}: column {same + 1}: "
                         f"got {a[part]!r}, want {b[part]!r}")
    raise Failed(f"{os.path.relpath(path, ROOT)}: differs in line ends")


def skip(reason):
    raise Skipped(reason)


def start(arguments, program=None, **options):
    """Popen of the program under test (or another one) in a process group of its own."""
    command = [program or ETWATCH, *map(str, arguments)]
    options.setdefault("stdin", subprocess.DEVNULL)
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    child = subprocess.Popen(command, start_new_session=True, **options)
    _children.append(child)
    return child


def run(arguments, program=None, timeout=60, **options):
    """Runs to the end: Result(code, out, err) as text; a code of 128+n means signal n, as in a shell."""
    child = start(arguments, program, **options)
    try:
        out, err = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        end(child)
        raise Failed(f"{arguments!r} did not end within {timeout} s") from None
    code = child.returncode if child.returncode >= 0 else 128 - child.returncode
    return Result(code, (out or b"").decode(errors="replace"), (err or b"").decode(errors="replace"))


def end(child):
    """Ends a child of start() and the rest of its process group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()


def json_lines(text):
    """One object per line; every line must be one."""
    objects = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            objects.append(json.loads(line))
        except ValueError as error:
            raise Failed(f"line {number} is not JSON ({error}): {line!r}") from None
    return objects


@contextlib.contextmanager
def temp_dir():
    path = tempfile.mkdtemp(prefix="etwatch-test-")
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


_ebpf_refusal = None


def has_ebpf():
    """Whether events come from eBPF here."""
    try:
        need_ebpf()
        return True
    except Skipped:
        return False


def need_ebpf():
    """Skips the test where the eBPF source cannot be opened; only exit code 3 counts as that."""
    global _ebpf_refusal
    if os.environ.get("ETWATCH_UNDER_WINE") == "1":
        skip("Windows has no eBPF source")
    if _ebpf_refusal is None:
        result = run(["stat", "--source", "ebpf", "--duration", "0.2", "--json", "-p", os.getpid()])
        _ebpf_refusal = ""
        if result.code == 3:
            _ebpf_refusal = "no eBPF here: " + (result.err.strip().splitlines() or ["?"])[0]
    if _ebpf_refusal:
        skip(_ebpf_refusal)


def _one_line(text):
    return " ".join(str(text).split())


def _on_alarm(_number, _frame):
    raise Failed("the test ran past its time limit")


def main():
    """Runs the tests of the calling file (or those with an argument in their name) and exits."""
    wanted = [t for t in _tests if not sys.argv[1:] or any(a in t[0] for a in sys.argv[1:])]
    print(f"1..{len(wanted)}", flush=True)
    signal.signal(signal.SIGALRM, _on_alarm)
    failures = 0
    for number, (name, function, seconds) in enumerate(wanted, 1):
        signal.alarm(seconds)
        try:
            function()
            line = f"ok {number} - {name}"
        except Skipped as reason:
            line = f"ok {number} - {name} # SKIP {_one_line(reason)}"
        except Failed as error:
            where = traceback.extract_tb(error.__traceback__)
            at = next((f for f in reversed(where) if f.filename != __file__), where[-1])
            print(f"# {os.path.basename(at.filename)}:{at.lineno}: {_one_line(error)}")
            line = f"not ok {number} - {name}"
        except Exception:  # pylint: disable=broad-except
            for text in traceback.format_exc().splitlines():
                print("# " + text)
            line = f"not ok {number} - {name}"
        finally:
            signal.alarm(0)
            while _children:
                end(_children.pop())
        failures += line.startswith("not ")
        print(line, flush=True)
    sys.exit(1 if failures else 0)
