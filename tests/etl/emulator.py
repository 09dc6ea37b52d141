# SPDX-License-Identifier: MIT
"""A recording played to a live session: samples and report are those of the recording, byte for byte.

etw_replay (tests/windows/etw_replay.c) plays it to the ETW emulator and reads it back through the code for live
sessions: once event by event, once in whole buffers. In the samples only the name of the source differs, in the
report only the properties of the file itself.
"""
import itertools
import json
import os
import re

from commandkit import UNDER_WINE, run_tool
from etlkit import CORPUS, corpus, make_etl
from lib import cases, check_eq, main, run, skip, temp_dir

# name: (kind, arguments of make_etl)
MADE = [("counters", "counters", "--events", 20000), ("counters, 32 bit", "counters", "--events", 10000, "--pointer", 4), ("counters, a gap", "counters-pause", "--events", 20000),
        ("everything", "mixed", "--events", 20000), ("switches", "switches", "--events", 20000, "--cpus", 8),
        ("profile", "profile", "--events", 10000), ("dense", "bench", "--events", 20000, "--cpus", 8),
        ("compressed", "mixed", "--events", 10000, "--compress"), ("32 bit", "mixed", "--events", 10000, "--pointer", 4),
        ("Windows 7", "windows7", "--events", 10000), ("wall clock", "clock-system", "--events", 10000),
        ("cycles", "clock-cycles", "--events", 10000), ("TraceLogging", "tracelogging"), ("EventSource", "eventsource"),
        ("schemas", "metadata")]
# (samples per second, with threads). Under Wine it is the same code.
RATES = [(100, True)] if UNDER_WINE else [(10, False), (100, True), (1000, False)]
# 32-bit headers around 64-bit payloads: event by event the kernel's classes arrive without their headers.
LYING = {"syzygy-image-data-64-v1.etl", "syzygy-process-data-64-v2.etl", "syzygy-test-data-64-v2.etl"}
WAYS = [("event by event", ()), ("whole buffers", ("-b",))]
FILE_ONLY = re.compile(r'"(file_bytes|compressed|files|path)":(\[[^\]]*\]|"[^"]*"|\w+)')


LATER = ("disk_", "net_", "io_", "faults_", "switches_", "cpu_", "runq_")  # metrics of such classes


def play(*arguments):
    """None, or the reason why this recording cannot be compared."""
    result = run_tool("etw_replay", *arguments)
    if result.code != 0 and ("has losses" in result.err or "odd header" in result.err):
        return result.err.strip()
    check_eq(result.code, 0, f"exit code of etw_replay {arguments} ({result.err.strip()})")
    return None


def samples_of(text):
    return [line.replace('"source":"etw"', '"source":"etl"') for line in text.splitlines()
            if not line.startswith(('{"type":"meta"', '{"type":"stats"'))]


def at_a_time(lines):
    """Events on several CPUs at the same instant have no order in per-CPU buffers."""
    moments = itertools.groupby(lines, lambda line: json.loads(line).get("t_ns"))
    return [line for _, together in moments for line in sorted(together)]


def known_later(got, want):
    """A live session cannot know that a class is logged before its first event: null there, 0 in the recording."""
    if got == want:
        return got
    live, recorded = json.loads(got), json.loads(want)
    for name, value in live.items():
        if value is None and recorded.get(name) == 0 and name.startswith(LATER):
            live[name] = 0
    return want if live == recorded else got


def compare(got, want, what):
    for number, (a, b) in enumerate(zip(got, want), 1):
        a = known_later(a, b)
        check_eq(a, b, f"line {number} of {what}")
    check_eq(len(got), len(want), f"lines of {what}")


def compare_samples(path, folder, way, hz, threads):
    out, more = os.path.join(folder, "live.jsonl"), ["--threads"] if threads else []
    refused = play(*way, "samples", path, out, hz, *(["threads"] if threads else []))
    if refused:
        return refused
    result = run(["stat", "--json", "-q", "--hz", hz, *more, path], timeout=110)
    check_eq(result.code, 0, f"exit code of stat ({result.err})")
    with open(out, encoding="utf-8") as file:
        got, want = samples_of(file.read()), samples_of(result.out)
    if got != want and way:
        got, want = at_a_time(got), at_a_time(want)
    compare(got, want, f"samples at {hz} Hz")
    return None


def report_of(path):
    result = run(["report", "--json", "--threads", "--images", "--cmdline", path], timeout=110)
    check_eq(result.code, 0, f"exit code of report ({result.err})")
    return FILE_ONLY.sub(r'"\1":FILE', result.out).splitlines()


def compare_report(path, folder, way):
    out = os.path.join(folder, "live.etl")
    refused = play(*way, "events", path, out)
    if not refused:
        compare(report_of(out), report_of(path), "report")
    return refused


@cases([(f"{name}, {way}", options, made) for name, *made in MADE for way, options in WAYS])
def a_made_recording_gives_the_same_samples_and_report(way, made):
    with temp_dir() as folder:
        path = os.path.join(folder, "made.etl")
        make_etl(made[0], path, *made[1:])
        for hz, threads in RATES:
            check_eq(compare_samples(path, folder, way, hz, threads), None, "refused")
        check_eq(compare_report(path, folder, way), None, "refused")


@cases([(f"{kind}, {way}", kind, options) for kind, (way, options) in (("headers", WAYS[1]), ("versions", WAYS[0]),
                                                                      ("versions", WAYS[1]))])
def the_report_is_the_same_where_samples_cannot_be(kind, way):
    """Unknown kernel classes arrive only in buffers, and a process logged late counts as preexisting only for a
    reader that can read the recording twice."""
    with temp_dir() as folder:
        path = os.path.join(folder, "made.etl")
        make_etl(kind, path)
        check_eq(compare_report(path, folder, way), None, "refused")


REAL = os.path.join(CORPUS, "etl")
REAL = sorted(name for name in os.listdir(REAL) if name.endswith(".etl")) if os.path.isdir(REAL) else ["any"]


@cases([(f"{name}, {way}", name, options) for name in REAL for way, options in WAYS])
def a_real_recording_gives_the_same_samples_and_report(name, way):
    path = corpus("etl", name)
    if name in LYING and not way:
        skip("its events claim to be 32-bit but are not")
    with temp_dir() as folder:
        for hz, threads in RATES[-2:]:
            refused = compare_samples(path, folder, way, hz, threads)
            if refused:
                skip(refused)
        compare_report(path, folder, way)


main()
