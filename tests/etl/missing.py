# SPDX-License-Identifier: MIT
"""Recordings that lack buffers: every one is seen, with its number, its time and the CPUs that it can be of; a complete
recording never looks damaged, although the buffers of some real ones have gaps in their numbers."""
import os
import re
import struct

from etlkit import corpus, corpus_rows, make_etl
from commandkit import run
from lib import cases, check, check_eq, check_in, json_lines, main, temp_dir, test

MISSING = re.compile(r"^(\d+) of (\d+) buffers are missing(:|, probably) numbers? (\d+)(?: to (\d+))?"
                     r"(?: of CPU ([0-9, or]+))?, begun from ([\d.]+) to ([\d.]+) s$")
MODE_CIRCULAR = 2
HEADER_EVENT = 72 + 32


def trace_of(path):
    (trace,) = [o for o in json_lines(run(["report", "--json", path]).out) if o["type"] == "trace"]
    return trace


def trace_of_bytes(data):
    with temp_dir() as folder:
        path = os.path.join(folder, "x.etl")
        with open(path, "wb") as file:
            file.write(data)
        return trace_of(path)


def buffers_of(data):
    """[(offset, size, number, CPU, time of the first event or None)]"""
    at, found = 0, []
    while at + 72 <= len(data):
        size, number = struct.unpack_from("<I20xQ", data, at)
        cpu, filled, flags, kind = struct.unpack_from("<H6xIHH", data, at + 0x28)
        cpu &= 0x7FF if flags & 0x20 else 0xFF
        first = None
        if not flags & 0x40 and filled > 72:
            perfinfo = data[at + 74] in (16, 17)
            first, = struct.unpack_from("<Q", data, at + 72 + (8 if perfinfo else 16))
        if kind != 4:
            found.append((at, size, number, cpu, first))
        at += size
    return found


def without(data, cut):
    for at, size, *_ in sorted(cut, reverse=True):
        data = data[:at] + data[at + size:]
    return data


def clock_of(data):
    """(time of the header, ticks per second) of a recording of a 64-bit Windows."""
    base = HEADER_EVENT
    wide = data[74] == 2
    frequency, = struct.unpack_from("<Q", data, base + (0x100 if wide else 0xF8))
    kind, = struct.unpack_from("<I", data, base + (0x110 if wide else 0x108))
    return struct.unpack_from("<Q", data, 72 + 16)[0], frequency if kind == 1 else 10**7


def made(*arguments):
    with temp_dir() as folder:
        path = os.path.join(folder, "x.etl")
        make_etl(*arguments[:1], path, *arguments[1:])
        with open(path, "rb") as file:
            return file.read()


@test
def a_buffer_that_is_cut_out_of_the_middle_is_named():
    data = made("damaged-cut")
    numbers = {number for _, _, number, _, _ in buffers_of(data)}
    trace = trace_of_bytes(data)
    check_eq(trace["complete"], False)
    found = MISSING.match(trace["first_bad"])
    check(found, trace["first_bad"])
    check_eq((found[1], found[3]), ("1", ":"), trace["first_bad"])
    check(int(found[4]) not in numbers and 0 < int(found[4]) < max(numbers), trace["first_bad"])
    check(float(found[7]) <= float(found[8]), trace["first_bad"])


@cases([(row["file"], row) for row in corpus_rows()])
def a_complete_real_recording_is_complete(row):
    trace = trace_of(corpus("etl", row["file"]))
    check_eq(trace.get("first_bad"), None, "damage")


@cases([(row["file"], row) for row in corpus_rows()])
def any_buffer_that_is_cut_out_of_a_real_recording_is_named(row):
    with open(corpus("etl", row["file"]), "rb") as file:
        data = file.read()
    header, frequency = clock_of(data)
    inner = sorted(buffers_of(data), key=lambda b: b[2])[:-1]
    numbers = {b[2] for b in inner}
    for chosen in inner[::max(1, len(inner) // 4)]:
        _, _, number, cpu, first = chosen
        trace = trace_of_bytes(without(data, [chosen]))
        check_eq(trace["complete"], False, f"number {number}: complete")
        found = MISSING.match(trace["first_bad"])
        check(found, f"number {number}: {trace['first_bad']}")
        check_eq(int(found[1]), 1, trace["first_bad"])
        if found[3] == ":":
            check_eq(int(found[4]), number, trace["first_bad"])
        else:  # this recording has gaps of its own
            check(int(found[4]) not in numbers - {number}, trace["first_bad"])
        if first is not None and int(found[4]) == number:
            begun = (first - header) / frequency
            check(float(found[7]) - 1e-6 <= begun <= float(found[8]) + 1e-6, f"{begun} in {trace['first_bad']}")
            if found[6]:
                check(cpu in map(int, re.findall(r"\d+", found[6])), f"CPU {cpu} in {trace['first_bad']}")


@test
def the_cpu_is_named_where_the_others_were_filling_buffers_of_the_file():
    named = 0
    for row in corpus_rows():
        if row["file"] != "tx-process.etl":
            continue
        with open(corpus("etl", row["file"]), "rb") as file:
            data = file.read()
        for chosen in buffers_of(data)[50:100:5]:
            named += " of CPU " in trace_of_bytes(without(data, [chosen]))["first_bad"]
        check_eq(named, 10, "of 10 missing buffers")
    if not named:
        corpus("MANIFEST.tsv")


@test
def of_a_file_that_was_never_closed_only_more_buffers_than_cpus_are_missed():
    data = bytearray(made("mixed", "--events", 4000, "--buffer", 8192, "--cpus", 2))
    struct.pack_into("<q", data, HEADER_EVENT + 0x10, 0)
    inner = sorted(buffers_of(data), key=lambda b: b[2])
    middle = len(inner) // 2
    for count, seen in ((0, False), (1, False), (2, False), (3, True)):
        trace = trace_of_bytes(without(bytes(data), inner[middle:middle + count]))
        text = trace.get("first_bad") or ""
        check_eq("buffers are missing" in text, seen, f"{count} missing: {text}")
    check_in(f"buffers are missing: numbers {inner[middle][2]} to {inner[middle + 2][2]}", text)


@test
def a_circular_file_lacks_buffers_only_before_it_is_full():
    data = bytearray(made("mixed", "--events", 4000, "--buffer", 8192))
    cut = buffers_of(data)[5:6]
    mode, = struct.unpack_from("<I", data, HEADER_EVENT + 0x20)
    struct.pack_into("<I", data, HEADER_EVENT + 0x20, mode | MODE_CIRCULAR)
    for limit_mib, missing in ((1000, True), (0, False)):  # 0: the size of the ring is unknown
        struct.pack_into("<I", data, HEADER_EVENT + 0x1C, limit_mib)
        text = trace_of_bytes(without(bytes(data), cut)).get("first_bad") or ""
        check_eq("1 of " in text and "buffers are missing" in text, missing, text)
    kilobytes = len(data) // 1024 - 8  # as large as the file that lacks a buffer: the ring is full
    struct.pack_into("<II", data, HEADER_EVENT + 0x1C, kilobytes, mode | MODE_CIRCULAR | 0x2000)
    struct.pack_into("<I", data, HEADER_EVENT + 0x20, mode | MODE_CIRCULAR | 0x2000)
    text = trace_of_bytes(without(bytes(data), cut)).get("first_bad") or ""
    check_eq(text, "")


if __name__ == "__main__":
    main()
