#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scripts/windows_check.py leaves its report whatever happens. It needs a real Windows to succeed, and any system to fail."""
import os
import re
import subprocess
import sys

from lib import ROOT, check, check_eq, check_in, main, temp_dir, test

SCRIPT = os.path.join(ROOT, "scripts", "windows_check.py")


def check_with(etwatch, folder):
    """Runs the script with this text as the program; its status, and the lines of its report."""
    program, report = os.path.join(folder, "etwatch.exe"), os.path.join(folder, "report.txt")
    with open(program, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n" + etwatch)
    os.chmod(program, 0o755)
    done = subprocess.run([sys.executable, SCRIPT, "--report", report, folder], capture_output=True, check=False, timeout=60)
    with open(report, encoding="utf-8") as file:
        lines = file.read().splitlines()
    printed = done.stdout.decode().splitlines()
    return done.returncode, lines, printed


@test
def a_check_that_raises_fails_alone_and_the_report_has_all():
    with temp_dir() as folder:
        code, lines, printed = check_with("echo '{\"type\": broken'\n", folder)
        check_eq(code, 1, "status")
        check_eq(lines, printed, "the report has every line that was printed")
        failed = {line.split()[1].rstrip(":") for line in lines if line.startswith("FAIL check_")}
        with open(SCRIPT, encoding="utf-8") as file:
            named = set(re.findall(r"attempt\((check_\w+)", file.read()))
        # Without workloads.exe, a folder with tests and a wheel:
        check_eq(failed, named - {"check_load", "check_counters", "check_short", "check_wheel"} - passing(lines), "each check")
        check(re.fullmatch(r"\d+ failed", lines[-1]), f"last line: {lines[-1]}")


def passing(lines):
    """Checks that only compare an exit status say FAIL with a sentence."""
    return {"check_refusals"} if any(line.startswith("FAIL refused:") for line in lines) else set()


@test
def a_check_that_is_killed_leaves_the_lines_before_it():
    with temp_dir() as folder:
        code, lines, _ = check_with('case "$1" in stat) kill -9 $PPID;; *) echo "etwatch 0.0";; esac\n', folder)
        check_eq(code, -9, "status")
        check_eq(lines[0], "etwatch 0.0", "first line")
        check_in("doctor opens a session", lines[-1], "last line")


main()
