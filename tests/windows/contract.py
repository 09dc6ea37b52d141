# SPDX-License-Identifier: MIT
"""Commands that need ETW where there is none: under Wine. tests/contract covers the rest of the contract."""
import os

from lib import cases, check, check_eq, check_in, json_lines, main, temp_dir, test
from winekit import windows_build, wine


def workloads():
    return os.path.join(windows_build(), "tests", "workloads.exe")


def ours(text):
    return json_lines("\n".join(line for line in text.splitlines() if line.startswith('{"type":')))


@cases([("a table", []), ("JSON Lines", ["--json"]), ("CSV", ["--csv"]), ("cleanup", ["--cleanup"])])
def sessions_without_etw_is_3_with_the_reason(arguments):
    result = wine(["sessions", *arguments])
    check_eq((result.code, result.out), (3, ""), "exit code and output")
    check_in("has no ETW; run etwatch on Windows", result.err)
    check_eq(result.err.count("\n"), 1, "lines on standard error")


@cases([
    ("a recording", ["record", "-o", "{}"], 3, "has no ETW"),
    ("with a command that must not run", ["record", "-o", "{}", "--", "workloads", "mark", "{}"], 3, "has no ETW"),
    ("another's session", ["stat", "-a", "--session", "NT Kernel Logger", "-o", "{}"], 3, "has no ETW"),
    ("an unknown kernel event", ["stat", "-a", "--kernel", "process,swaps"], 2, '"swaps" is not a kind'),
    ("a process of a recording", ["record", "-o", "{}", "-p", "4"], 2, "ETW records the whole machine"),
    ("a buffer that is too large", ["stat", "-a", "--buffer-size", "99999"], 2, "from 4K to 16M"),
    ("a provider's level", ["stat", "-a", "--enable-provider", "X:0"], 2, "the level is a number"),
])
def commands_that_need_etw_are_refused_and_leave_nothing(arguments, code, part):
    with temp_dir() as folder:
        path = os.path.join(folder, "x.etl")
        words = [workloads() if word == "workloads" else word.format("Z:" + path.replace("/", "\\")) for word in arguments]
        result = wine(words)
        check_eq(result.code, code, f"exit code ({result.err})")
        check_in(part, result.err)
        check_eq(result.err.count("\n"), 1, "lines on standard error")
        check(arguments[0] == "stat" or not os.path.exists(path), "a file was left")


@test
def without_its_own_session_it_polls_unless_forbidden():
    result = wine(["stat", "-a", "--kernel", "cswitch", "--duration", "0.3", "--json"])
    check_eq(result.code, 0, f"exit code ({result.err})")
    check_in("polling instead", result.err)
    check_eq(ours(result.out)[0]["source"], "poll")
    result = wine(["stat", "-a", "--kernel", "cswitch", "--no-fallback", "--duration", "0.3"])
    check_eq(result.code, 3, f"exit code ({result.err})")


main()
