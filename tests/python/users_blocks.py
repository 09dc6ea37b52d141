# SPDX-License-Identifier: MIT
"""The first users' programs (tests/python/users/), unchanged: each runs, and passes strict type checking. Blocks (c) to (f)
are programs of examples/python, which tests/python/examples.py runs."""
import glob
import os
import re
import sys

from etlkit import make_etl
from lib import ROOT, check, check_eq, main, run, start, temp_dir, test
from toolkit import PACKAGE, need, python

USERS = os.path.join(ROOT, "tests", "python", "users")
BUSY = "import time\nend = time.time() + 60\nwhile time.time() < end: pass"


def program(name, *arguments):
    return run(["-X", "dev", os.path.join(USERS, name + ".py"), *arguments], program=sys.executable)


@test
def a_configuration_start_sleep_summary_statistics_stop_cleanup():
    busy = start(["-c", BUSY], program=sys.executable)
    for seconds in ("1", "10"):  # longer on a machine that is too busy to run it
        result = program("monitor", seconds)
        check_eq(result.code, 0, result.err)
        if re.search(rf"^{busy.pid} python", result.out, re.M):
            break
    check(re.search(rf"^{busy.pid} python\S* average [\d.]+ p95 [\d.]+ samples [1-9]", result.out, re.M), result.out)
    check(re.search(r"^backend (ebpf|poll|etw) samples [1-9]\d* rate 100 lost 0$", result.out, re.M), result.out)
    others = [line for line in result.out.splitlines() if line.startswith("-1 ")]
    check(len(result.out.splitlines()) - len(others) > 0, result.out)


@test
def add_process_and_a_callback_that_prints_the_cpu_use():
    busy = start(["-c", BUSY], program=sys.executable)
    for seconds in ("1", "10"):
        result = program("callback", busy.pid, seconds)
        check_eq(result.code, 0, result.err)
        if result.out:
            break
    lines = result.out.splitlines()
    check(lines and all(re.fullmatch(rf"[\d.]+ {busy.pid} python\S* [\d.]+%", line) for line in lines), result.out)


@test
def both_configurations_of_the_users_are_accepted_and_deliver_samples():
    result = program("configurations")
    check_eq(result.code, 0, result.err)
    lines = result.out.splitlines()
    check_eq(lines[0], "production poll True")  # psutil means the polling source
    check(re.fullmatch(r"session (ebpf|poll|etw) True", lines[1]), result.out)


@test
def the_classes_work_as_the_users_use_them():
    result = program("classes")
    check_eq(result.code, 0, result.err)
    lines = result.out.splitlines()
    monitors = [line for line in lines if re.match(r"\w+(Monitor|System) ", line)]
    check_eq([line.split(" ", 1)[1] for line in monitors], ["True True True"] * 10, result.out)
    for want in ("memory int int True", "limits development 50 testing 20 staging 10 production 5 critical 2",
                 "rate 80.0", "npu True True", "power True True"):
        check(want in lines, f"no {want!r} in {result.out}")


@test
def every_form_of_the_consumer_reads_the_same_events():
    with temp_dir() as folder:
        recording = os.path.join(folder, "consumers.etl")
        make_etl("consumers", recording)
        result = program("consumers", recording)
    check_eq(result.code, 0, result.err)
    ways = ("on_event", "start", "for", "get_events", "get_next_event", "async for")
    check_eq(result.out.splitlines(), [
        "handlers True", *(f"{way} 84" for way in ways), "get_cpu True", "alloc True 65536", "fault True True True",
        "sample True None", "start 5000 4000 child.exe None None", "switch True True", "near True"])


@test
def the_programs_of_the_users_pass_strict_type_checking():
    need("mypy")
    with temp_dir() as cache:
        result = run(["-m", "mypy", "--strict", "--cache-dir", cache, *sorted(glob.glob(os.path.join(USERS, "*.py")))],
                     program=python(), timeout=110, env={**os.environ, "MYPYPATH": PACKAGE}, cwd=ROOT)
        check_eq(result.code, 0, result.out)


main()
