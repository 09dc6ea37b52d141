# SPDX-License-Identifier: MIT
"""stat on recorded /proc trees (tests/golden/proc/README.md): the exact bytes of every start.

Times and user names differ between machines and are masked; nothing else may differ.
"""
import os
import re

from commandkit import UNDER_WINE, linux_only
from lib import ROOT, cases, check, check_eq, check_golden, check_in, main, run

TREES = ["normal", "weird_names", "unreadable", "kernel_threads", "huge", "no_schedstat", "truncated", "containers"]


def stat(tree, *more):
    root = os.path.join(ROOT, "tests", "golden", "proc", tree)
    result = run(["stat", "-a", "--kernel-threads", "--source", "poll", "--proc-root", root, "--duration",
                  "0.3", "-q", *more])
    if UNDER_WINE:
        check_eq((result.code, result.out), (2, ""), "exit code and output")
        check_in("/proc", result.err, "standard error")
    linux_only("Windows has no /proc: --proc-root is refused with 2, as it must be")
    check_eq(result.code, 0, "exit code")
    return result.out


@cases([(tree, tree) for tree in TREES])
def json_of_a_recorded_tree_matches_the_golden_file(tree):
    lines = [line for line in stat(tree, "--json").split("\n") if '"type":"start"' in line]
    text = "\n".join(lines) + "\n"
    text = re.sub(r'"(start_ns|t_ns)":\d+', r'"\1":TIME', text)
    text = re.sub(r'"user":"[^"]*"', '"user":"USER"', text)
    check_golden(text, f"golden/stat/{tree}.jsonl")


@cases([(tree, tree) for tree in ("normal", "weird_names")])
def csv_of_a_recorded_tree_matches_the_golden_file(tree):
    names = "type,pid,name,ppid,session_id,dt_ns,source,complete,rss_bytes,virtual_bytes,threads,priority"
    text = stat(tree, "--csv", "--columns", names)
    check(text.startswith(names + "\n"), text[:80])
    check_golden(text, f"golden/stat/{tree}.csv")


main()
