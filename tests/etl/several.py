# SPDX-License-Identifier: MIT
"""Several recordings at once are merged by time; filters and histograms agree with the events."""
import collections
import os
import struct

from etlkit import buffer, events, header_event, kernel_event, make_etl, report
from lib import check, check_eq, json_lines, main, run, temp_dir, test

BUFFER = 8192


def write(folder, name, data):
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(data)
    return path


def split_by_cpu(path, folder):
    """Two recordings: the buffers of even CPUs and those of odd ones, each after the same header."""
    with open(path, "rb") as file:
        data = file.read()
    parts = [data[:BUFFER], data[:BUFFER]]
    for at in range(BUFFER, len(data), BUFFER):
        cpu = struct.unpack_from("<H", data, at + 0x28)[0] & 0x7FF
        parts[cpu % 2] += data[at:at + BUFFER]
    return [write(folder, f"part{i}.etl", part) for i, part in enumerate(parts)]


def without_header(lines):
    return [line for line in lines.splitlines() if '"event":"EventTrace"' not in line]


@test
def a_recording_in_two_files_gives_the_events_of_the_whole():
    with temp_dir() as folder:
        whole = os.path.join(folder, "whole.etl")
        make_etl("mixed", whole, "--buffer", BUFFER, "--cpus", 5)
        parts = split_by_cpu(whole, folder)
        wanted = without_header(run(["events", "--json", whole]).out)
        for files in (parts, parts[::-1]):
            got = run(["events", "--json", *files])
            check_eq(got.code, 0, f"exit code ({got.err})")
            # Events with equal times are reported in the order of the files.
            check_eq(sorted(without_header(got.out)), sorted(wanted), "events")
            times = [o["t_ns"] for o in json_lines(got.out)]
            check_eq(times, sorted(times), "times")
        mine, theirs = report(whole), report(parts[0], parts[1])
        check_eq(theirs["process"], mine["process"], "processes")
        check_eq(len(theirs["trace"][0]["files"]), 2, "files")


@test
def each_file_has_its_own_clock():
    """The second begins a second later by wall clock, with another counter and frequency."""
    base = 132_000_000_000_000_000

    def recording(start_filetime, first_raw, frequency, times_ms):
        header = bytearray(header_event(t_raw=first_raw, frequency=frequency))
        struct.pack_into("<q", header, 0x20 + 0x108, start_filetime)
        content = [kernel_event(3, 11, 2, first_raw + ms * frequency // 1000, struct.pack("<I", ms), pid=1, tid=1)
                   for ms in times_ms]
        return buffer([bytes(header)], 4096, kind=4) + buffer(content)

    with temp_dir() as folder:
        first = write(folder, "a.etl", recording(base, 5_000_000, 10_000_000, [0, 500, 1100, 2000]))
        second = write(folder, "b.etl", recording(base + 10_000_000, 77, 2_441_406, [0, 50, 200, 1500]))
        reported = [e for e in events(first, second) if e["event"] == "Process/Terminate"]
    start = reported[0]["t_ns"]
    offsets = [(e["t_ns"] - start) / 1e6 for e in reported]
    wanted = [0, 500, 1000, 1050, 1100, 1200, 2000, 2500]
    check(all(abs(a - b) < 0.001 for a, b in zip(offsets, wanted)), f"times are {offsets}")
    check_eq([e["fields"]["ProcessId"] for e in reported], [0, 500, 0, 50, 1100, 200, 2000, 1500], "order")


def kind(o):
    return o["provider"], o["event"], o["id"], o["opcode"], o["version"]


@test
def counts_are_those_of_the_events():
    with temp_dir() as folder:
        path = os.path.join(folder, "made.etl")
        make_etl("mixed", path)
        reported = collections.Counter(map(kind, events(path)))
        counted = {kind(o): o["count"] for o in json_lines(run(["events", "--count-by-type", "--json", path]).out)
                   if o["type"] == "class"}
        check_eq(counted, dict(reported), "counts")


@test
def filters_select_events_and_change_none():
    with temp_dir() as folder:
        path = os.path.join(folder, "made.etl")
        make_etl("mixed", path, "--seed", 2)
        everything = events(path)

        def selected(*options):
            return events(path, *options)

        check_eq(selected("--event", "CSwitch"), [e for e in everything if "CSwitch" in e["event"]], "by event")
        start = everything[0]["t_ns"]
        check_eq(selected("--from", "10ms", "--to", "20ms"),
                 [e for e in everything if 10e6 <= e["t_ns"] - start < 20e6], "by time")
        check_eq(selected("--limit", "17"), everything[:17], "the first ones")
        by_name = selected("-n", "explorer")
        check(by_name and {e["name"] for e in by_name} >= {"explorer.exe"}, "by name")
        pids = {e["pid"] for e in by_name if e["name"] == "explorer.exe"}
        wanted = [e for e in everything if e["name"] == "explorer.exe"]
        missing = [e for e in wanted if e not in by_name]
        check_eq(missing, [], f"events of {sorted(pids)} that are missing")


main()
