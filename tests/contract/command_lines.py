# SPDX-License-Identifier: MIT
"""Command lines are in no output without --cmdline, and with it their secrets are masked: every command and format."""
import os
import zlib

import protokit
from commandkit import UNDER_WINE
from etlkit import recording
from lib import check, check_eq, main, run, skip, temp_dir, test
from toolkit import snippet

SECRET = "hunter2secret"
MASKED = "--password ***"
TABLES = ("events", "samples", "thread_samples", "processes", "threads", "classes", "images")


def forms(data):
    """The bytes of an output, and what is compressed in it."""
    yield data
    if data[:1] == b"\n":
        for _, packet in protokit.fields(data):
            yield from (zlib.decompress(value) for number, value in protokit.fields(packet) if number == 50)


def leaks(data):
    """Whether the secret is in these bytes: as text, as UTF-16, or in hexadecimal."""
    wide, narrow = SECRET.encode("utf-16-le"), SECRET.encode()
    wanted = (narrow, wide, narrow.hex().encode(), wide.hex().encode())
    return any(part in form for form in forms(data) for part in wanted)


def outputs(path, cmdline):
    """(arguments, bytes) of every command that reads a recording, in every format."""
    commands = [["report"], ["report", "--json"], ["report", "--csv"], ["report", "--json", "--threads", "--images"],
                ["stat"], ["stat", "--json"], ["stat", "--csv"], ["waits"], ["waits", "--json"],
                ["events"], ["events", "--json"], ["events", "--payload"], ["events", "--json", "--payload"],
                ["events", "--count-by-type"], ["events", "--json", "--count-by-type"]]
    for table in TABLES:
        for more in ([], ["--fields"], ["--typed"], ["--payload"], ["--payload", "--fields"]):
            if more and table != "events":
                continue
            for kind in ("csv", "jsonl", "arrow"):
                if not (kind == "jsonl" and "--fields" in more):
                    commands.append(["export", "-f", kind, "--table", table, *more])
    commands += [["export", "-f", kind] for kind in ("perfetto", "chrome", "folded", "speedscope")]
    with temp_dir() as folder:
        for number, command in enumerate(commands):
            out = os.path.join(folder, str(number))
            result = run([*command, *cmdline, "-q", "-o", out, path])
            if result.code != 0 and (cmdline or command[-1] in ("folded", "speedscope")):
                check("--cmdline" in result.err or "is not a table" in result.err or "no profile" in result.err,
                      f"{command}: {result.err}")
                continue
            check_eq(result.code, 0, f"exit code of {command} ({result.err})")
            with open(out, "rb") as file:
                yield command, file.read()


@test
def without_cmdline_no_output_has_a_command_line():
    with recording("cmdlines") as path:
        with open(path, "rb") as file:
            check(leaks(file.read()), "the recording has no secret: nothing is tested")
        shown = [command for command, data in outputs(path, []) if leaks(data) or b"--size 3" in data]
    check_eq(shown, [], "outputs with a command line")


@test
def with_cmdline_command_lines_are_shown_and_their_secrets_are_masked():
    with recording("cmdlines") as path:
        every = list(outputs(path, ["--cmdline"]))
    check_eq([command for command, data in every if leaks(data)], [], "outputs with the secret")
    shown = [command for command, data in every if any(MASKED.encode() in form for form in forms(data))]
    for command in (["report", "--json"], ["report", "--csv"], ["stat", "--json"], ["events"], ["events", "--json"],
                    ["export", "-f", "jsonl", "--table", "events"], ["export", "-f", "perfetto"],
                    ["export", "-f", "arrow", "--table", "processes"],
                    ["export", "-f", "csv", "--table", "events", "--typed"],
                    ["export", "-f", "arrow", "--table", "events", "--fields"]):
        check(command in shown, f"{command} has no command line: only {shown}")


@test
def the_fields_next_to_a_command_line_are_shown():
    with recording("cmdlines") as path:
        text = run(["events", "--json", "--event", "Started", path]).out
    check('"after":77' in text and '"commandLine":[null,null]' in text, text)


@test
def a_live_command_line_is_in_no_output_without_cmdline():
    if UNDER_WINE:
        skip("the live sources of Windows are tested by the emulator")
    child = ["sh", "-c", "sleep 0.2", f"--password={SECRET}", "--size 3"]
    with temp_dir() as folder:
        trace = os.path.join(folder, "t.pftrace")
        for command in (["run"], ["run", "--json"], ["run", "--csv"], ["record", "-o", trace]):
            for cmdline in ([], ["--cmdline"]):
                if cmdline and command == ["run"]:
                    continue
                result = run([*command, *cmdline, "--source", "poll", "--hz", "50", "--", *child])
                check_eq(result.code, 0, f"exit code of {command} ({result.err})")
                data = (result.out + result.err).encode()
                if command[0] == "record":
                    with open(trace, "rb") as file:
                        data += b"".join(forms(file.read()))
                check(not leaks(data), f"the secret is in {command} {cmdline}")
                check_eq(b"--size 3" in data, bool(cmdline), f"a command line is in {command} {cmdline}")


@test
def python_shows_command_lines_only_on_request_and_masked():
    if UNDER_WINE:
        skip("the package is tested on Linux")
    with recording("cmdlines") as path:
        text = snippet("import sys, etwatch\n"
                       "trace = etwatch.open(sys.argv[1])\n"
                       "for more in ({}, {'command_lines': True}):\n"
                       "    print([str(list(trace.event_table(payload=True, typed=typed, **more).rows()))\n"
                       "           for typed in (False, True)], [str(e.fields) for e in trace.events(**more)])\n"
                       "print(list(trace.processes.rows()))\n", path)
        check_eq(text.code, 0, f"exit code ({text.err})")
        text = text.out
    check(not leaks(text.encode()), "the secret is shown")
    plain, requested, *_ = text.splitlines()
    check("--size 3" not in plain, "a command line without a request")
    check(MASKED in requested, f"no command line: {requested}")


main()
