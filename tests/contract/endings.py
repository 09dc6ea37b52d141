# SPDX-License-Identifier: MIT
"""Every way to end: whole lines, nothing left behind, the correct status."""
import json
import os
import random
import signal
import subprocess
import sys
import time

from commandkit import (LEAVER, LEFT, UNDER_WINE, exits, leaves, linux_only, marks, running_process, sleeps, start_plain,
                        still_marks)
from lib import (cases, check, check_eq, check_in, end, json_lines, main, need_ebpf, run, skip, start, temp_dir,
                 test)
from livekit import alive, check_no_orphans, first_line, held, loaded, wait_until

SOURCES = ("auto", "poll")
# A process that outlives the program may hold its output open, and the test would wait for it.
QUIETLY = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
NO_SIGNALS = "Windows has no signals but Ctrl-C and Ctrl-Break"


def complete_lines(path):
    """Every line except perhaps the last, which a kill in the middle of a write may have truncated."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    lines = text.split("\n")
    for line in lines[:-1]:
        json.loads(line)
    check(lines[-1][:1] in ("", "{"), f"no line begins like that: {lines[-1][:40]!r}")
    return len(lines) - 1


@cases([("json", ["--json"]), ("csv", ["--csv"]), ("table", [])])
def stdout_closed_early_ends_cleanly(arguments):
    for source in SOURCES:
        child = start(["stat", "-a", "--source", source, *arguments])
        first_line(child)
        child.stdout.close()
        code = child.wait(timeout=30)
        words = child.stderr.read().decode()
        check_eq(code, 0, f"exit code with {source}")
        check("write" not in words and "pipe" not in words.lower(), f"noise: {words!r}")


@test
def run_continues_when_its_reader_is_gone_and_keeps_the_status():
    child = start(["run", "--json", "-q", "--source", "poll", "--", *sleeps(1, 4)])
    first_line(child)
    child.stdout.close()
    check_eq(child.wait(timeout=30), 4, "exit code")


@cases([("SIGINT", signal.SIGINT), ("SIGTERM", signal.SIGTERM), ("SIGHUP", signal.SIGHUP)])
def a_signal_ends_stat_with_its_last_line(number):
    if number != signal.SIGINT:
        linux_only(NO_SIGNALS)
    for source in SOURCES:
        child = start(["stat", "-a", "--json", "--source", source])
        lines = [first_line(child)]
        child.send_signal(number)
        out = child.stdout.read()
        check_eq(child.wait(timeout=30), 128 + number, f"exit code with {source}")
        objects = json_lines((b"".join(lines) + out).decode())
        check_eq((objects[0]["type"], objects[-1]["type"]), ("meta", "stats"), "first and last type")


@cases([("SIGTERM", signal.SIGTERM), ("SIGINT", signal.SIGINT)])
def run_passes_a_signal_on_to_its_command(number):
    linux_only("Windows itself signals the command")
    script = ("import signal, sys, time\n"
              f"signal.signal({int(number)}, lambda *_: sys.exit(33))\n"
              "print('ready', flush=True)\n"
              "time.sleep(30)\n")
    with temp_dir() as folder:
        path = os.path.join(folder, "out.jsonl")
        child = start(["run", "--json", "-q", "-o", path, "--source", "poll", "--", sys.executable, "-c",
                       script])
        check_eq(first_line(child), b"ready\n", "what the command wrote")
        child.send_signal(number)
        check_eq(child.wait(timeout=30), 33, "exit code")
        with open(path, encoding="utf-8") as file:
            check_eq(json_lines(file.read())[-1]["type"], "stats", "last type")


@test
def a_command_that_a_signal_ends_gives_128_plus_its_number():
    linux_only(NO_SIGNALS)
    child = start(["run", "-q", "--source", "poll", "--", "sleep", "60"])
    time.sleep(0.5)
    child.send_signal(signal.SIGTERM)
    check_eq(child.wait(timeout=30), 128 + signal.SIGTERM, "exit code")


@test
def kill_9_at_any_moment_leaves_whole_lines_and_no_process():
    generator = random.Random(7)
    with temp_dir() as folder:
        for attempt in range(12):
            path = os.path.join(folder, f"{attempt}.jsonl")
            mark = os.path.join(folder, f"{attempt}.pid")
            source = SOURCES[attempt % 2]
            command = (marks(mark) if UNDER_WINE else
                       ["sh", "-c", f"echo $$ > {mark}; while :; do /bin/true; done"])
            child = start(["run", "--json", "--hz", "1000", "--source", source, "-o", path, "--", *command])
            if attempt > 3:
                wait_until(lambda p=mark: os.path.exists(p) and os.path.getsize(p) > 0, "the command")
            time.sleep(generator.random() * 0.4)
            child.kill()
            child.wait()
            count = complete_lines(path) if os.path.exists(path) else 0
            if attempt > 3:
                check(count >= 1, "not even the first line was written")
            if UNDER_WINE:
                wait_until(lambda p=mark: not still_marks(p), "the command is still there")
            elif os.path.exists(mark) and os.path.getsize(mark):
                with open(mark, encoding="utf-8") as file:
                    pid = int(file.read())
                wait_until(lambda p=pid: not alive(p), f"the command {pid} is still there")
            for pipe in (child.stdout, child.stderr):
                pipe.close()


@test
def kill_9_while_the_command_is_held_ends_it_too():
    for delay in (0, 0.005, 0.01, 0.02, 0.03, 0.05):
        with temp_dir() as folder:
            mark = os.path.join(folder, "mark")
            child = start(["run", "-q", "--", *marks(mark)])
            time.sleep(delay)
            made = []
            if not UNDER_WINE:
                with open(f"/proc/{child.pid}/task/{child.pid}/children", encoding="utf-8") as file:
                    made = [int(word) for word in file.read().split()]
            child.kill()
            child.wait()
            for pid in made:
                wait_until(lambda p=pid: not alive(p), f"process {pid} is still there")
            wait_until(lambda p=mark: not still_marks(p, 0.2), "the command is still there")


@test
def kill_9_leaves_no_program_in_the_kernel():
    linux_only("etwatch loads no programs into the Windows kernel")
    need_ebpf()
    before, there = loaded() - held(), loaded()
    child = start(["stat", "-a", "--json"])
    first_line(child)
    check(loaded() - there, "nothing was loaded")
    child.kill()
    child.wait()
    check_no_orphans(before)


@test
def the_command_inherits_no_descriptor_of_etwatch():
    with temp_dir() as folder:
        path = os.path.join(folder, "out")
        if UNDER_WINE:
            # A process that outlives etwatch would keep the file open, and no exclusive open would succeed.
            result = run(["run", "--json", "-q", "--source", "poll", "-o", path, "--", *leaves(10)], **QUIETLY)
            check_eq(result.code, 0, "exit code")
            alone = start_plain([*leaves(0)[:1], "alone", path])
            check_eq(alone.wait(timeout=30), 0, "the file can be opened alone: exit code")
            return
        for source in SOURCES:
            result = run(["run", "--json", "-q", "--source", source, "-o", path, "--", sys.executable, "-c",
                          "import os; print(sorted(os.listdir('/proc/self/fd')))"])
            # 0, 1, 2 and the descriptor of the listing itself.
            check_eq(result.out, "['0', '1', '2', '3']\n", "descriptors")


@test
def the_command_has_the_same_signal_settings_as_without_etwatch():
    linux_only("Windows has no signals and no capabilities")
    script = "import signal, subprocess; print(open('/proc/self/status').read())"
    plain = run(["-c", "exec " + sys.executable + " -c '" + script.replace("'", '"') + "'"], program="/bin/sh")
    ours = run(["run", "--source", "poll", "-q", "-o", os.devnull, "--", sys.executable, "-c", script])
    for name in ("SigIgn:", "SigBlk:", "CapEff:", "CapPrm:", "NoNewPrivs:", "Uid:"):
        want = [line for line in plain.out.splitlines() if line.startswith(name)]
        got = [line for line in ours.out.splitlines() if line.startswith(name)]
        check_eq(got, want, name)


@test
def privileges_are_dropped_after_the_start():
    linux_only("Windows has no capabilities")
    if os.getuid() != 0:
        skip("without rights there is nothing to drop")
    kept = 1 << 39 | 1 << 38 | 1 << 19 | 1 << 2 | 1 << 5
    child = start(["stat", "-a", "--json"])
    first_line(child)
    with open(f"/proc/{child.pid}/status", encoding="utf-8") as file:
        status = dict(line.split(":", 1) for line in file.read().splitlines() if ":" in line)
    for name in ("CapEff", "CapPrm"):
        extra = int(status[name], 16) & ~kept
        check_eq(extra, 0, f"{name} beyond what draining needs")
    end(child)


@test
def stat_ends_when_every_selected_process_has_exited():
    for source in SOURCES:
        if UNDER_WINE:
            sleeper = start_plain([*leaves(0)[:1], "here", "1500"])
            pid = int(sleeper.stdout.readline())
        else:
            sleeper = start(["0.7"], program="/bin/sleep")
            pid = sleeper.pid
        result = run(["stat", "--json", "--source", source, "-p", pid], timeout=30)
        check_eq(result.code, 0, f"exit code with {source}")
        objects = json_lines(result.out)
        check_eq([o["pid"] for o in objects if o["type"] == "exit"], [pid], "exits")
        sleeper.wait()


@test
def a_descendant_that_outlives_the_command_delays_run_only_on_request():
    with temp_dir() as folder:
        path = os.path.join(folder, "out")
        # Polling under Wine on a busy machine may take longer than a second for a round.
        for more, seconds, want in ([], 30, False), (["--wait-all"], 4 if UNDER_WINE else 1, True):
            result = run(["run", "-q", "--json", *more, "-o", path, "--", *leaves(seconds)], **QUIETLY)
            check_eq(result.code, 0, "exit code")
            with open(path, encoding="utf-8") as file:
                ended = [o["name"] for o in json_lines(file.read()) if o["type"] == "exit"]
            check(LEAVER in ended, "no exit of the command")
            ended.remove(LEAVER)
            check_eq(LEFT in ended, want, f"exit of the descendant seen with {more}")


@test
def the_duration_ends_stat_with_0():
    result = run(["stat", "-a", "--source", "poll", "--csv", "--duration", "0.3"])
    check_eq(result.code, 0, "exit code")
    header = result.out.splitlines()[0].split(",")
    check_eq(header[:4], ["type", "pid", "start_ns", "name"], "first columns")


@test
def a_file_ends_with_a_whole_line():
    with temp_dir() as folder:
        for arguments in (["--json"], ["--csv"], []):
            path = os.path.join(folder, "out")
            result = run(["stat", "-a", "--source", "poll", "--duration", "0.3", *arguments, "-o", path])
            check_eq(result.code, 0, "exit code")
            check_eq(result.out, "", "standard output")
            with open(path, "rb") as file:
                data = file.read()
            # The table has no lines if no process ran in that time.
            check(data.endswith(b"\n") or (not data and not arguments), f"the last line is cut: {data[-40:]!r}")


@test
def the_summary_goes_to_standard_output_without_json_and_to_standard_error_with_it():
    table = run(["run", "--source", "poll", "--", *exits(3)])
    check_in("exit status 3", table.out)
    check_in(" events; own cost ", table.out)  # polling has no events that could be lost
    lines = run(["run", "--source", "poll", "--json", "--", *exits(3)])
    json_lines(lines.out)
    check_in("exit status 3", lines.err)
    quiet = run(["run", "--source", "poll", "--json", "-q", "--", *exits(3)])
    check_eq(quiet.err, "", "standard error with -q")


@test
def no_colour_without_a_terminal():
    for arguments in (["stat", "-a", "--source", "poll", "--duration", "1.2"], ["doctor"],
                      ["run", "--source", "poll", "--", *exits(0)], ["top", "--source", "poll", "--duration", "1.5"]):
        result = run(arguments)
        check_eq(result.code, 0, f"exit code of {arguments}")
        check("\033" not in result.out, f"escape sequences in {arguments}")


@test
def a_name_that_no_process_has_is_reported_with_similar_ones():
    with running_process() as pid:
        watched = json_lines(run(["stat", "-p", pid, "--source", "poll", "--json", "-q", "--duration", "0.5"]).out)
        start = next(o for o in watched if o["type"] == "start")
        wrong = start["name"] + "z"
        result = run(["stat", "-n", wrong, "--source", "poll", "--json", "--duration", "0.2"])
        check_eq(result.code, 0, f"exit code ({result.err})")
        check_in(f'no process was named "{wrong}"', result.err)
        check_in("similar names: ", result.err)
        check_in(start["name"], result.err.split("similar names: ", 1)[1])
        quiet = run(["stat", "-n", wrong, "--source", "poll", "--json", "-q", "--duration", "0.2"])
        check_eq(quiet.err, "", "messages with -q")


main()
