# SPDX-License-Identifier: MIT
"""Commands for the program under test to run, on Linux or on Windows under Wine.

    run(["run", "-q", "--", *exits(3)])

On Linux they are lines for the shell, under Wine workloads of tests/windows/workloads.c. A test of something that
Windows does not have calls linux_only(), which counts it as skipped.
"""
import contextlib
import os
import sys
import time

from lib import BUILD, check, end, run, skip, start

UNDER_WINE = os.environ.get("ETWATCH_UNDER_WINE") == "1"


def linux_only(reason):
    if UNDER_WINE:
        skip(reason)


def _workload(*arguments):
    return [os.path.join(os.environ["ETWATCH_WINDOWS"], "tests", "workloads.exe"), *map(str, arguments)]


def _shell(script):
    return ["sh", "-c", script]


def exits(status):
    """Exits at once with this status."""
    return _workload("exit", status) if UNDER_WINE else _shell(f"exit {status}")


def sleeps(seconds, status=0):
    """Sleeps for this long."""
    return _workload("sleep", int(seconds * 1000), status) if UNDER_WINE else _shell(f"sleep {seconds}; exit {status}")


def works(status):
    """Uses the CPU for some tenths of a second."""
    script = ("x = 0\nfor i in range(3000000): x += i\nopen('/dev/null', 'w').write('x' * 100000)\n"
              f"raise SystemExit({status})")
    return _workload("work", status) if UNDER_WINE else [sys.executable, "-c", script]


def touches(path):
    """Creates the file."""
    return _workload("touch", path) if UNDER_WINE else ["touch", path]


def leaves(seconds):
    """Starts a process that lives for this long, and exits before it. Its name is LEFT."""
    return (_workload("leave", int(seconds * 1000)) if UNDER_WINE else
            _shell(f"sleep {seconds} >/dev/null 2>&1 & exit 0"))


LEAVER, LEFT = ("workloads.exe", "workloads.exe") if UNDER_WINE else ("sh", "sleep")


def marks(path):
    """Appends to the file for as long as it lives, ten times a second or more often."""
    return _workload("mark", path) if UNDER_WINE else _shell(f"while :; do echo x >> {path}; sleep 0.05; done")


def still_marks(path, seconds=0.5):
    """Whether the marking process still exists: waits for this long."""
    before = os.path.getsize(path) if os.path.exists(path) else 0
    time.sleep(seconds)
    return os.path.exists(path) and os.path.getsize(path) != before


def start_plain(command, **options):
    """A command next to the program under test, not its child."""
    if not UNDER_WINE:
        return start(command[1:], program=command[0], **options)
    from winekit import environment, launcher
    options.setdefault("env", {**os.environ, **environment(os.environ["ETWATCH_WINDOWS"])})
    first, *rest = launcher()
    return start([*rest, *command], program=first, **options)


@contextlib.contextmanager
def running_process(seconds=60):
    """The ID of a running process that works now and then."""
    if not UNDER_WINE:
        yield os.getpid()
        return
    child = start_plain(_workload("here", int(seconds * 1000)))
    line = child.stdout.readline()
    check(line.strip().isdigit(), f"workloads.exe did not begin: {line!r}")
    yield int(line)
    end(child)



def run_tool(name, *arguments):
    """A program of tests/, built for the system under test."""
    if not UNDER_WINE:
        return run(arguments, program=os.path.join(BUILD, "tests", name), timeout=110)
    from winekit import wine
    return wine(list(map(str, arguments)), program=os.path.join("tests", name + ".exe"), timeout=110)
