# SPDX-License-Identifier: MIT
"""record -o FILE.pftrace where only polling works: the file is read back as it was reported live."""
import os

from commandkit import exits, sleeps, running_process, works
from lib import cases, check, check_eq, check_in, json_lines, main, run, temp_dir, test


def record(path, *arguments, code=0):
    result = run(["record", "--json", "--source", "poll", "-o", path, *arguments])
    check_eq(result.code, code, f"exit code ({result.err})")
    return result


def report(path, *options):
    result = run(["report", "--json", *options, path])
    check_eq((result.code, result.err), (0, ""), "exit code and messages of report")
    return result.out


def ours(text):
    """Without the output of the command."""
    return "".join(line for line in text.splitlines(True) if line.startswith('{"type":'))


@test
def a_command_is_recorded_and_the_report_on_the_file_is_the_report_of_the_run():
    with temp_dir() as folder:
        path = os.path.join(folder, "run.pftrace")
        live = record(path, "--threads", "--cmdline", "--hz", "50", "--", *works(6), code=6)
        check_in("polling sees no context switches", live.err)
        check_eq(report(path, "--threads", "--cmdline"), ours(live.out), "report")
        reported = json_lines(ours(live.out))
    check_eq((reported[0]["source"], reported[0]["lost"], reported[0]["complete"]), ("poll", 0, True),
             "source, lost and complete")
    (process,) = [o for o in reported if o["type"] == "process"]
    check_eq(process["exit_code"], 6, "exit_code")
    check(process["cpu_ns"] > 1000000, f"cpu_ns is {process['cpu_ns']}")


@cases([("every process", "-a"), ("a pid", "-p", "PID"), ("a name", "-n", "NAME")])
def preexisting_processes_are_recorded(*choice):
    with temp_dir() as folder, running_process() as pid:
        path = os.path.join(folder, "run.pftrace")
        name = json_lines(run(["stat", "--json", "-q", "--source", "poll", "-p", pid, "--duration", "0.1"]).out)[1]["name"]
        choice = [{"PID": str(pid), "NAME": name}.get(word, word) for word in choice]
        live = record(path, "--duration", "0.7", *choice)
        check_eq(report(path), live.out, "report")
        reported = [o["pid"] for o in json_lines(live.out) if o["type"] == "process"]
    check(pid in reported, f"{pid} is not among {reported}")


@test
def the_file_is_a_perfetto_trace():
    with temp_dir() as folder:
        path = os.path.join(folder, "run.perfetto-trace")
        record(path, "--", *sleeps(0.3))
        with open(path, "rb") as file:
            check_eq(file.read(1), b"\x0a", "tag of the first packet")


@test
def a_recording_that_cannot_be_written_starts_no_command():
    with temp_dir() as folder:
        result = run(["record", "-o", os.path.join(folder, "no", "run.pftrace"), "--", *exits(0)])
        check_eq(result.code, 1, "exit code")
        check_in("cannot write to", result.err)


main()
