# SPDX-License-Identifier: MIT
"""Exit codes, and what goes to standard output and standard error."""
import json
import os
import re

from commandkit import UNDER_WINE, exits, linux_only, sleeps, touches
from lib import (ETWATCH, ROOT, cases, check, check_eq, check_in, json_lines, main, run, skip, start,
                 temp_dir, test)


@cases([
    ("no command at all", [], "a command is missing"),
    ("unknown command", ["recrod"], "the commands are run, stat, top, record, report, events,"),
    ("unknown option", ["stat", "-a", "--quantum"], "unknown option --quantum"),
    ("missing value", ["stat", "-a", "--hz"], "--hz needs a value: --hz N"),
    ("impossible value", ["stat", "-a", "--hz", "5000"], "a number from 0.1 to 1000"),
    ("nothing selected", ["stat"], "-p PID, -n NAME, -u USER, --cgroup PATH, or -a"),
    ("run without a command", ["run"], "etwatch run [options] -- CMD"),
    ("unknown column", ["stat", "-a", "--columns", "pid,cpu"], 'no column is named "cpu"'),
    ("record without a file", ["record"], "record needs a file"),
    ("no such kind of recording", ["record", "-o", "x.txt"], "-o needs a file that ends in "),
    ("unreadable configuration", ["stat", "-a", "--config", "/no/such"], "cannot read --config /no/such"),
])
def usage_errors_are_2_and_name_the_right_form(arguments, part):
    result = run(arguments)
    check_eq(result.code, 2, "exit code")
    check_in(part, result.err, "standard error")
    check_eq(result.out, "", "standard output")
    check_eq(result.err.count("\n"), 1, "lines on standard error")


@cases([
    ("success", exits(0), 0),
    ("a status", exits(42), 42),
    ("the highest status", exits(255), 255),
    ("a status that looks like usage", exits(2), 2),
    ("killed", "kill -9 $$", 137),
    ("terminated", "kill -TERM $$", 143),
    ("an abort", "kill -ABRT $$", 134),
])
def run_ends_with_the_status_of_its_command(command, code):
    if isinstance(command, str):
        linux_only("Windows has no signals")
        command = ["sh", "-c", command]
    for source in ("auto", "poll"):
        result = run(["run", "--source", source, "-q", "--", *command])
        check_eq(result.code, code, f"exit code with {source}")


@cases([
    ("not found in the path", ["no-such-command-anywhere"], 127),
    ("no such file", ["/no/such/file"], 127),
    ("not executable", ["/etc/passwd"], 126),
    ("a folder", ["/etc"], 126),
])
def a_command_that_cannot_run_is_126_or_127(command, code):
    for more in ([], ["--json"]):
        result = run(["run", *more, "--", *command])
        check_eq(result.code, code, "exit code")
        check_in(f"etwatch: cannot run {command[0]}: ", result.err, "standard error")
    objects = json_lines(result.out)
    check_eq((objects[0]["type"], objects[-1]["type"]), ("meta", "stats"), "first and last type")


@test
def a_process_that_does_not_exist_is_1():
    result = run(["stat", "-p", "4000000", "--duration", "0.1"])
    check_eq(result.code, 1, "exit code")
    check_in("there is no process 4000000", result.err)
    if UNDER_WINE:
        return  # an exited process cannot be watched
    zombie = start(["-c", "exit 0"], program="/bin/sh")
    with open(f"/proc/{zombie.pid}/stat", encoding="utf-8") as file:
        while file.read().split()[2] != "Z":
            file.seek(0)
    result = run(["stat", "-p", zombie.pid, "--duration", "0.1"])
    check_eq(result.code, 1, "exit code")
    check_in(f"process {zombie.pid} has already ended", result.err)


@test
def an_output_that_cannot_be_opened_fails_before_the_command_starts():
    with temp_dir() as folder:
        mark = os.path.join(folder, "mark")
        result = run(["run", "-o", folder + "/no/such/file", "--", *touches(mark)])
        check_eq(result.code, 1, "exit code")
        check_in("cannot write to", result.err)
        check(not os.path.exists(mark), "the command ran")


@test
def a_full_disk_is_1_with_a_message():
    if not os.path.exists("/dev/full"):
        skip("no /dev/full")
    result = run(["stat", "-a", "--source", "poll", "--json", "--duration", "5", "-o", "/dev/full"])
    check_eq(result.code, 1, "exit code")
    check_in("cannot write to /dev/full: No space left on device", result.err)


@test
def run_keeps_the_status_of_its_command_on_a_full_disk():
    if not os.path.exists("/dev/full"):
        skip("no /dev/full")
    result = run(["run", "--source", "poll", "--json", "-o", "/dev/full", "--", *sleeps(0.3, 9)])
    check_eq(result.code, 9, "exit code")
    check_in("No space left on device", result.err)


def run_unprivileged(arguments):
    """Runs the program without any capability; skips where ours cannot be dropped. Under Wine events never need
    rights."""
    if os.getuid() != 0 or UNDER_WINE:
        return run(arguments)
    def drop():
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    reachable = os.path.dirname(ETWATCH)
    while reachable != "/":
        if not os.stat(reachable).st_mode & 0o001:
            skip(f"{reachable} is closed to others")
        reachable = os.path.dirname(reachable)
    return run(arguments, preexec_fn=drop, cwd="/")


@test
def missing_rights_without_fallback_are_3():
    result = run_unprivileged(["stat", "-a", "--no-fallback", "--duration", "0.1", "--json"])
    check_eq(result.code, 3, "exit code")
    check_eq(result.out, "", "standard output")
    check_in("etwatch: ", result.err)
    check_in("; ", result.err, "error without a fix")


@test
def missing_rights_with_an_explicit_source_are_3():
    result = run_unprivileged(["stat", "-a", "--source", "ebpf", "--duration", "0.1"])
    check_eq(result.code, 3, "exit code")


@test
def missing_rights_fall_back_with_one_line():
    result = run_unprivileged(["stat", "-a", "--duration", "0.3", "--json"])
    check_eq(result.code, 0, "exit code")
    check_eq(result.err.count("\n"), 1, f"lines on standard error {result.err!r}")
    meta = json_lines(result.out)[0]
    check_eq(meta["source"], "poll", "source")
    check(meta["fallback"], "no fallback line in meta")
    check_in(meta["fallback"], result.err)


@test
def run_without_rights_still_runs_and_keeps_the_status():
    result = run_unprivileged(["run", "--", *exits(6)])
    check_eq(result.code, 6, "exit code")


@test
def etw_features_elsewhere_are_3_with_an_alternative():
    with temp_dir() as folder:
        path = os.path.join(folder, "x.etl")
        where, own = ("has no ETW", ["--no-fallback"]) if UNDER_WINE else ("Windows only", [])
        for arguments, part in ((["sessions"], where), (["sessions", "--cleanup", "--json"], where),
                                (["record", "-o", path, "--", *exits(0)], "record -o FILE.pftrace"),
                                (["stat", "-a", "--session", "NT Kernel Logger"], where),
                                (["stat", "-a", "--kernel", "process,cswitch", *own], where),
                                (["top", "--enable-provider", "X:5:0x10:pid=1:id=2", *own], where)):
            result = run(arguments)
            check_eq((result.code, result.out), (3, ""), f"exit code and output of {arguments}")
            check_in(part, result.err)
            check_eq(result.err.count("\n"), 1, "lines on standard error")
        check(not os.path.exists(path), "a file was left")


@test
def help_goes_to_standard_output_and_is_0():
    for arguments in (["--help"], ["help"], ["run", "--help"], ["stat", "-h"], ["top", "--help"],
                      ["doctor", "--help"], ["help", "stat"], ["report", "--help"], ["events", "-h"],
                      ["record", "--help"], ["sessions", "--help"], ["service", "--help"], ["metrics", "--help"]):
        result = run(arguments)
        check_eq((result.code, result.err), (0, ""), f"result of {arguments}")
        check_in("etwatch", result.out)


@test
def every_option_in_the_help_is_in_the_manual():
    with open(os.path.join(ROOT, "docs", "etwatch.1"), encoding="utf-8") as file:
        manual = file.read().replace("Fl -", "--")
    commands = re.search(r"the commands are (.*)\n", run(["x"]).err)[1].replace(" and ", ", ").split(", ")
    check_eq(len(commands), 17, f"commands {commands}")
    for command in commands:
        check(f".Nm\n.Cm {command}\n" in manual, f"{command} is not in the synopsis")
        check(f".It Cm {command}\n" in manual, f"{command} is not described")
        for option in re.findall(r"^  .{4}(--[a-z-]+)", run([command, "--help"]).out, re.MULTILINE):
            check(f".It {option}" in manual or f", {option}" in manual, f"{option} is not in the manual")


@test
def the_version_is_that_of_the_library():
    result = run(["--version"])
    check_eq(result.code, 0, "exit code")
    check(re.fullmatch(r"etwatch \d+\.\d+\.\d+\n", result.out), result.out)


@test
def doctor_ends_with_0_and_reports_the_fix():
    result = run(["doctor"])
    check_eq(result.code, 0, "exit code")
    check_in("source poll", result.out)
    result = run_unprivileged(["doctor", "--json"])
    check_eq(result.code, 0, "exit code without privileges")
    checks = {o["id"]: o for o in json_lines(result.out)}
    for o in checks.values():
        check_eq(list(o), ["type", "id", "state", "what", "found", "cost", "fix"], "names of a check")
        check((o["state"] == "ok") == (o["cost"] is None and o["fix"] is None), json.dumps(o))
    check_eq(checks["source_poll"]["state"], "ok", "state of source_poll")
    if UNDER_WINE:
        return
    check_eq(checks["cap_bpf"]["state"], "fail", "state of cap_bpf")
    check_in("sudo setcap cap_bpf,cap_perfmon+ep $(command -v etwatch)",
             checks["cap_bpf"]["fix"], "fix")


@test
def a_configuration_file_is_read_and_the_command_line_wins():
    with temp_dir() as folder:
        path = os.path.join(folder, "conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write("# test\nhz = 20\nsource = poll\njson = true\nduration = 0.2\n")
        result = run(["stat", "-a", "--hz", "50", "--config", path])
        check_eq(result.code, 0, "exit code")
        check_eq(json_lines(result.out)[0]["hz_requested"], 50.0, "hz_requested")
        with open(path, "a", encoding="utf-8") as file:
            file.write("herz = 3\n")
        result = run(["stat", "-a", "--config", path])
        check_eq(result.code, 2, "exit code")
        check_in(f"{path}:6:1: ", result.err)


main()
