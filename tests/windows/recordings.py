# SPDX-License-Identifier: MIT
"""One recording, two systems: the program for Windows writes the same bytes as the one for Linux."""
import os
import re
import subprocess

from etlkit import corpus, make_etl
from lib import BUILD, ETWATCH, cases, check, check_eq, main, skip, temp_dir, test
from protokit import packets
from winekit import environment, launcher, windows_build

KINDS = [("mixed", "--events", 20000), ("switches", "--events", 20000), ("profile", "--events", 20000),
         ("lost",), ("truncated", "--events", 3000), ("tracelogging",), ("eventsource",), ("metadata",)]
COMMANDS = [("report",), ("report", "--json", "--threads", "--images"), ("report", "--csv", "--cmdline"),
         ("events",), ("events", "--json", "--payload"), ("events", "--count-by-type"), ("stat", "--json", "--hz", "100", "-q")]
OWN_COST = re.compile(rb'"(self_\w+)":[\d.]+')


def output(command, folder, wine=None):
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False,
                          timeout=100, env={**os.environ, **(wine or {})})
    return done.returncode, OWN_COST.sub(rb'"\1":COST', done.stdout), done.stderr


def compare(folder, name, commands=None):
    build = windows_build()
    for arguments in commands or COMMANDS:
        want = output([ETWATCH, *arguments, name], folder)
        got = output([*launcher(), os.path.join(build, "etwatch.exe"), *arguments, name], folder, environment(build))
        what = " ".join(arguments)
        check_eq(got[0], want[0], f"exit code of {what} ({got[2]!r})")
        check_eq(got[2], want[2], f"messages of {what}")
        check(len(want[1]) > 0, f"{what} has no output")
        for number, (a, b) in enumerate(zip(got[1].splitlines(), want[1].splitlines()), 1):
            check_eq(a, b, f"line {number} of {what}")
        check_eq(got[1], want[1], f"output of {what}")


@cases([(kind[0], *kind) for kind in KINDS])
def a_recording_gives_the_same_bytes(kind, *arguments):
    with temp_dir() as folder:
        make_etl(kind, os.path.join(folder, "x.etl"), *arguments)
        compare(folder, "x.etl")


EXPORTS = ([("-f", name) for name in ("perfetto", "arrow", "chrome", "folded", "speedscope")] +
           [("-f", form, "--table", table) for form in ("csv", "jsonl")
            for table in ("events", "samples", "processes", "threads", "classes", "images", "thread_samples")] +
           [("-f", "arrow", "--table", "events", "--typed", "--payload"), ("-f", "csv", "--fields"),
            ("-f", "arrow", "--table", "samples", "--hz", "1000", "--timestamps")])
EXPORTED = [("mixed", "--events", 4000), ("tracelogging",), ("lost",), ("windows7", "--events", 2000)]


@cases([(kind[0], *kind) for kind in EXPORTED])
def an_export_has_the_same_bytes(kind, *arguments):
    build = windows_build()
    compared = 0
    with temp_dir() as folder:
        make_etl(kind, os.path.join(folder, "x.etl"), *arguments)
        for options in EXPORTS:
            done = []
            for out, program, more in (("linux", [ETWATCH], None),
                                       ("windows", [*launcher(), os.path.join(build, "etwatch.exe")], environment(build))):
                code, words, err = output([*program, "export", "x.etl", *options, "-o", out], folder, more)
                path = os.path.join(folder, out)
                data = b""
                if os.path.exists(path):
                    with open(path, "rb") as file:
                        data = file.read()
                    os.remove(path)
                done.append((code, words, err.replace(out.encode(), b"OUT"), data))
            what = " ".join(options)
            (code, words, err, data), want = done[1], done[0]
            check_eq((code, words, err), want[:3], f"exit code and messages of {what}")
            if "perfetto" in options:
                check_eq(list(packets(data)), list(packets(want[3])), f"packets of {what}")
            check(data == want[3] or "perfetto" in options, f"{what} gives other bytes")
            compared += code == 0 and len(data) > 0
    check(compared > len(EXPORTS) // 2, f"only {compared} of {len(EXPORTS)} have output")


@test
def names_of_files_may_have_any_characters():
    with temp_dir() as folder:
        name = "Größe Ж 漢 😀.etl"
        make_etl("tracelogging", os.path.join(folder, name))
        compare(folder, name, [("report",), ("events",)])


@test
def the_name_of_an_output_file_may_have_any_characters():
    build = windows_build()
    with temp_dir() as folder:
        make_etl("lost", os.path.join(folder, "x.etl"))
        code, out, err = output([*launcher(), os.path.join(build, "etwatch.exe"), "report", "--json", "-o", "é漢.jsonl",
                                 "x.etl"], folder, environment(build))
        check_eq((code, out, err), (0, b"", b""))
        want = output([ETWATCH, "report", "--json", "x.etl"], folder)[1]
        with open(os.path.join(folder, "é漢.jsonl"), "rb") as file:
            check_eq(file.read(), want, "the file")


@test
def a_missing_file_is_reported_with_the_same_message():
    with temp_dir() as folder:
        build = windows_build()
        want = output([ETWATCH, "report", "none.etl"], folder)
        got = output([*launcher(), os.path.join(build, "etwatch.exe"), "report", "none.etl"], folder, environment(build))
        check_eq(got, want)
        check_eq(got[0], 1)


@test
def a_program_that_uses_the_dll_reads_recordings_too():
    build = windows_build()
    with temp_dir() as folder:
        make_etl("mixed", os.path.join(folder, "x.etl"), "--events", 5000)
        example = os.path.join("examples", "trace_report")
        want = output([os.path.join(BUILD, example), "x.etl"], folder)
        check_eq(want[0], 0, "exit code on Linux")
        # Windows searches PATH for a DLL, among other places.
        got = output([*launcher(), os.path.join(build, example + ".exe"), "x.etl"], folder,
                     {**environment(build), "WINEPATH": build})
        check_eq(got[0], 0, f"exit code ({got[2]!r})")
        check_eq(got[1].replace(b"\r\n", b"\n"), want[1], "output")


@test(seconds=600)
def real_recordings_give_the_same_bytes():
    rows = sorted((os.path.getsize(corpus("etl", name)), name)
                  for name in os.listdir(corpus("etl")) if name.endswith(".etl"))
    small = [name for size, name in rows if size < 4_000_000]
    if not small:
        skip("no small real recordings")
    for name in small[:12]:
        compare(corpus("etl"), name, [("report", "--json", "--threads"), ("events", "--count-by-type"),
                                      ("stat", "--json", "--hz", "10", "-q")])


main()
