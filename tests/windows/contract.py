# SPDX-License-Identifier: MIT
"""What scripts rely on holds for the program for Windows too: names, exit codes, endings."""
import importlib.util
import json
import os
import time

import lib
from lib import ROOT, cases, check, check_eq, check_in, json_lines, main, temp_dir, test
from winekit import start_wine, windows_build, wine

# What only a kernel's own events or a device tells, and Wine does not count.
WINE_KNOWS = {"cpu_ns", "cpu_percent", "cpu_user_ns", "cpu_kernel_ns", "rss_bytes", "threads", "priority"}


def acts():
    return os.path.join(windows_build(), "tests", "acts.exe")


def borrow(script):
    """The lists and checks of a script for Linux, without its tests."""
    spec = importlib.util.spec_from_file_location(script.replace("/", "_"), os.path.join(ROOT, "tests", script + ".py"))
    module = importlib.util.module_from_spec(spec)
    kept, run_all = list(lib._tests), lib.main
    lib.main = lambda: None
    spec.loader.exec_module(module)
    lib._tests[:], lib.main = kept, run_all
    return module


NAMES = borrow("contract/json_names")
del NAMES.TYPES["thread"]  # Wine counts no time of threads: none ever does anything


def ours(text):
    return json_lines("\n".join(line for line in text.splitlines() if line.startswith('{"type":')))


@test
def every_name_is_there_when_polling():
    result = wine(["run", "--json", "-q", "--threads", "--source", "poll", "--", acts(), "work", "5"])
    check_eq(result.code, 5, f"exit code ({result.err})")
    objects = ours(result.out)
    NAMES.check_names(objects)
    NAMES.check_types(objects)
    NAMES.check_order(objects)
    (end,) = [o for o in objects if o["type"] == "exit"]
    check_eq(end["exit_code"], 5, "exit_code")
    sampled = sum(o["cpu_ns"] or 0 for o in objects if o["type"] == "sample")
    check(abs(sampled - end["cpu_ns"]) <= 0.01 * end["cpu_ns"] + 1, f"{sampled} ns sampled, {end['cpu_ns']} in all")
    known = {name for o in objects if o["type"] == "sample" for name, value in o.items() if value is not None}
    check_eq(sorted(WINE_KNOWS - known), [], "what Wine tells and we do not")
    check_eq(objects[-1]["lost"], 0, "lost")


@cases([("a table", []), ("JSON Lines", ["--json"]), ("CSV", ["--csv"]), ("cleanup", ["--cleanup"])])
def sessions_are_3_where_there_is_no_etw_and_the_line_says_why(arguments):
    result = wine(["sessions", *arguments])
    check_eq((result.code, result.out), (3, ""), "exit code and output")
    check_in("has no ETW; run etwatch on Windows", result.err)
    check_eq(result.err.count("\n"), 1, "lines on standard error")


@cases([
    ("a recording", ["record", "-o", "{}"], 3, "has no ETW"),
    ("with a command that must not run", ["record", "-o", "{}", "--", "acts", "mark", "{}"], 3, "has no ETW"),
    ("another's session", ["stat", "-a", "--session", "NT Kernel Logger", "-o", "{}"], 3, "has no ETW"),
    ("a kind of event that is none", ["stat", "-a", "--kernel", "process,swaps"], 2, "'swaps' is no kind"),
    ("a process of a recording", ["record", "-o", "{}", "-p", "4"], 2, "ETW records the whole machine"),
    ("a buffer that is too large", ["stat", "-a", "--buffer-size", "99999"], 2, "from 4 to 16384"),
    ("a provider's level", ["stat", "-a", "--provider", "X:0"], 2, "the level is a number"),
])
def what_needs_etw_is_refused_and_leaves_nothing(arguments, code, part):
    with temp_dir() as folder:
        path = os.path.join(folder, "x.etl")
        words = [acts() if word == "acts" else word.format("Z:" + path.replace("/", "\\")) for word in arguments]
        result = wine(words)
        check_eq(result.code, code, f"exit code ({result.err})")
        check_in(part, result.err)
        check_eq(result.err.count("\n"), 1, "lines on standard error")
        check(arguments[0] == "stat" or not os.path.exists(path), "a file was left")


@test
def an_own_session_that_cannot_be_had_means_polling_unless_forbidden():
    result = wine(["stat", "-a", "--kernel", "cswitch", "--duration", "0.3", "--json"])
    check_eq(result.code, 0, f"exit code ({result.err})")
    check_in("polling instead", result.err)
    check_eq(ours(result.out)[0]["source"], "poll")
    result = wine(["stat", "-a", "--kernel", "cswitch", "--no-fallback", "--duration", "0.3"])
    check_eq(result.code, 3, f"exit code ({result.err})")


@test
def a_kill_leaves_whole_lines_and_no_command():
    with temp_dir() as folder:
        lines, mark = os.path.join(folder, "x.jsonl"), os.path.join(folder, "mark")
        child = start_wine(["run", "--json", "--hz", "200", "--source", "poll", "-o", lines, "--", acts(), "mark",
                            "Z:" + mark.replace("/", "\\")])
        deadline = time.monotonic() + 30
        while not (os.path.exists(mark) and os.path.exists(lines) and os.path.getsize(lines) > 0):
            check(time.monotonic() < deadline, "the command did not begin")
            time.sleep(0.05)
        child.kill()
        child.wait(timeout=30)
        with open(lines, encoding="utf-8") as file:
            whole = file.read().split("\n")[:-1]
        check(len(whole) > 0, "not even the first line was written")
        check_eq(json.loads(whole[0])["type"], "meta", "first type")
        for line in whole:
            json.loads(line)
        # Whoever marks ten times a second and is gone adds nothing in a second.
        size = -1
        while size != os.path.getsize(mark):
            check(time.monotonic() < deadline, "the command goes on")
            size = os.path.getsize(mark)
            time.sleep(1)


@test
def the_command_goes_on_when_the_reader_is_gone_and_keeps_its_status():
    child = start_wine(["run", "--json", "-q", "--source", "poll", "--", acts(), "work", "4"])
    check(child.stdout.readline(), "no output")
    child.stdout.close()
    check_eq(child.wait(timeout=30), 4, "exit code")


@test
def a_configuration_file_is_read_and_the_command_line_wins():
    with temp_dir() as folder:
        path = os.path.join(folder, "conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write("# test\nhz = 20\nsource = poll\njson = true\nduration = 0.2\n")
        result = wine(["stat", "-a", "--hz", "50", "--config", path])
        check_eq(result.code, 0, f"exit code ({result.err})")
        check_eq(ours(result.out)[0]["hz_asked"], 50.0, "hz_asked")


main()
