# SPDX-License-Identifier: MIT
"""Shared by the live tests: running a workload under etwatch, its own account, and the output of etwatch.

`workloads` (tests/live/workloads.c) does something and prints the kernel's record of it. The tests check values,
never speed: the machine may be busy with anything.
"""
import contextlib
import json
import os
import shutil
import subprocess
import time
from collections import namedtuple

from lib import BUILD, ETWATCH, Failed, check, check_eq, json_lines, run, skip, temp_dir

WORKLOADS = os.path.join(BUILD, "tests", "workloads")
CANNOT = 77  # a workload that the machine does not allow

Watched = namedtuple("Watched", "code truth objects err")


def of_type(objects, kind, **values):
    """The objects of a type with these values: of_type(objects, "exit", pid=7)."""
    return [o for o in objects if o["type"] == kind and all(o.get(k) == v for k, v in values.items())]


def one(objects, kind, **values):
    found = of_type(objects, kind, **values)
    check_eq(len(found), 1, f"number of {kind} objects with {values}")
    return found[0]


def total(objects, name):
    """The sum of the known values."""
    return sum(o[name] or 0 for o in objects)


def identity(o):
    return o["pid"], o["start_ns"]


def check_stories(objects):
    """For every process: its start first and once, samples in time order, its exit last and once."""
    stories = {}
    for o in objects:
        if o["type"] in ("start", "sample", "exit"):
            stories.setdefault(identity(o), []).append(o)
    for process, story in stories.items():
        kinds = [o["type"] for o in story]
        check_eq((kinds[0], kinds.count("start")), ("start", 1), f"start of {process}")
        check("exit" not in kinds[:-1], f"{process} continues after its exit: {kinds}")
        times = [o["t_ns"] for o in story if o["type"] == "sample"]
        check_eq(times, sorted(set(times)), f"times of the samples of {process}")
    return stories


def truth_of(text):
    return [json.loads(line) for line in text.splitlines()]


def watch(workload, *options, program=WORKLOADS, source="ebpf", timeout=60, **more):
    """`etwatch run` of a workload. Its output is the reference; the output of etwatch goes to a file."""
    with temp_dir() as folder:
        path = os.path.join(folder, "out.jsonl")
        result = run(["run", "--json", "-q", "--source", source, "-o", path, *options, "--", program, *workload],
                     timeout=timeout, **more)
        if result.code == CANNOT:
            skip("this machine does not allow it: " + result.err.strip())
        with open(path, encoding="utf-8") as file:
            objects = json_lines(file.read())
    truth = truth_of(result.out) if program == WORKLOADS else result.out
    return Watched(result.code, truth, objects, result.err)


def stat(*options, timeout=60):
    """`etwatch stat` to its end."""
    result = run(["stat", "--json", "-q", *options], timeout=timeout)
    check_eq(result.code, 0, f"exit code ({result.err.strip()})")
    return json_lines(result.out)


def run_unprivileged(arguments, folder, **options):
    """Runs the program without any privilege, from a copy that every user may execute."""
    if os.getuid() != 0:
        skip("needs root to become an unprivileged user")
    if not shutil.which("setpriv"):
        skip("needs setpriv (util-linux)")
    os.chmod(folder, 0o755)
    copy = os.path.join(folder, "etwatch")
    shutil.copy(ETWATCH, copy)
    os.chmod(copy, 0o755)
    return run(["--reuid", 65534, "--regid", 65534, "--clear-groups", "--inh-caps=-all",
                "--bounding-set=-all", copy, *arguments], program="setpriv", cwd="/", **options)


def truth_with(truth, name):
    """The one reference line that has this name."""
    found = [t for t in truth if name in t]
    check_eq(len(found), 1, f"lines with {name}")
    return found[0]


def wait_until(condition, what, seconds=30):
    """Waits for a condition that must become true; the limit only ends a test that would hang."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise Failed(f"waited {seconds} s without result: {what}")
        time.sleep(0.02)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def first_line(child):
    line = child.stdout.readline()
    if not line:
        raise Failed("the program ended without output: " + repr(child.stderr.read() if child.stderr else ""))
    return line


def read_lines(path):
    """Objects of a file that is still being written: whole lines only."""
    with contextlib.suppress(FileNotFoundError), open(path, encoding="utf-8") as file:
        text = file.read()
        return [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()]
    return []


# ------------------------------------------------------------------ state in the kernel


def loaded():
    """IDs of the loaded programs with names that begin with ew_."""
    result = subprocess.run([WORKLOADS, "programs"], capture_output=True, text=True, check=True)
    return {int(line.split()[0]) for line in result.stdout.splitlines()}


def programs_of(pid):
    """IDs of the programs to which a process has a descriptor, directly or through a link."""
    ids = set()
    with contextlib.suppress(OSError):  # it has exited meanwhile
        for fd in os.listdir(f"/proc/{pid}/fdinfo"):
            with open(f"/proc/{pid}/fdinfo/{fd}", encoding="utf-8", errors="replace") as file:
                ids.update(int(line.split()[1]) for line in file if line.startswith("prog_id:"))
    return ids


def held():
    """IDs of the programs that some process holds."""
    return set().union(*map(programs_of, filter(str.isdigit, os.listdir("/proc"))))


def pinned():
    return sorted(os.listdir("/sys/fs/bpf")) if os.path.isdir("/sys/fs/bpf") else []


def check_no_orphans(before):
    """No program is loaded without a holder, except those that were loaded before: others may watch on this
    machine, too. The kernel frees a program shortly after its last descriptor is closed."""
    wait_until(lambda: not loaded() - held() - before, "programs stay in the kernel")
