# SPDX-License-Identifier: MIT
"""Files that are not recordings or are damaged: refused with an offset, or read as far as possible.

Every variant is read by the program itself. It must end without help, with 0 (the readable part was read) or 1
(nothing could be read, and the message has the offset), and with no more memory than for a good file.
"""
import json
import os
import random
import re
import signal
import struct
import subprocess
import sys

from etlkit import (buffer, classic_event, corpus, corpus_rows, header_event, kernel_event, make_etl,
                    manifest_event, report)
from lib import ETWATCH, Failed, cases, check, check_eq, check_in, json_lines, main, start, temp_dir, test

MEMORY_KB = 64 * 1024
SECONDS = 30
KERNEL_PROCESS = "22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716"
IMAGE = "2cb15d1d-5fc1-11d2-abe1-00a0c911f518"


def process_event(opcode, t_raw, pid, name):
    payload = struct.pack("<QIIIiQII", 0xFFFF0000 + pid, pid, 4, 1, 259, 0x1000, 0, 0)
    return kernel_event(3, opcode, 4, t_raw, payload + name.encode() + b"\0" + "x\0\0\0".encode("utf-16le"))


def content(base=1000):
    """Events of several kinds; the lengths in their headers and payloads are damaged by the tests."""
    def switch(new, old):
        return struct.pack("<IIbbBbBBBBIi", new, old, 8, 8, 0, 0, 0, 0, 5, 0, 1, 0)

    out = [process_event(3, base, 100 + i, f"p{i}.exe") for i in range(3)]
    out += [kernel_event(5, 3, 3, base + 1, struct.pack("<II7QI4B", 100 + i, 200 + i, *[0] * 7, 0, 8, 5, 2, 0))
            for i in range(3)]
    out += [kernel_event(5, 36, 2, base + 10 * i, switch(200 + i % 3, 200 + (i - 1) % 3)) for i in range(1, 20)]
    out.append(kernel_event(0xF, 46, 2, base + 300, struct.pack("<QIHBB", 0x1234, 200, 1, 0, 0)))
    image = struct.pack("<QQIIIIQ4I", 0x10000, 0x2000, 100, 0, 0, 0, 0, *[0] * 4)
    out.append(classic_event(IMAGE, 10, 2, base + 301, image + "\\a.dll\0".encode("utf-16le")))
    out.append(manifest_event(KERNEL_PROCESS, 1, base + 302, struct.pack("<IqII I", 300, 0, 100, 1, 0)
                              + "\\b.exe\0".encode("utf-16le")))
    out.append(kernel_event(0x18, 32, 2, base + 303, struct.pack("<QII3Q", base + 300, 100, 200, 1, 2, 3)))
    return out


def sound():
    """The file from which the others are made: a header, and a buffer on each of two CPUs."""
    return buffer([header_event(cpus=2)], 4096, kind=4) + buffer(content(1000), 4096) + \
        buffer(content(2000), 4096, cpu=1)


# A separate process starts the program, because the peak memory of a child counts in its parent.
STARTER = """
import json, os, sys
for line in sys.stdin:
    argv, out, err = json.loads(line)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    files = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), (os.POSIX_SPAWN_OPEN, 1, out, flags, 0o600),
             (os.POSIX_SPAWN_OPEN, 2, err, flags, 0o600)]
    _, status, usage = os.wait4(os.posix_spawn(argv[0], argv, os.environ, file_actions=files), 0)
    print(os.waitstatus_to_exitcode(status), usage.ru_maxrss, flush=True)
"""


class Reader:
    """Reads one variant after the other and keeps the peak memory of all of them."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "variant.etl")
        self.starter = start(["-I", "-c", STARTER], program=sys.executable, stdin=subprocess.PIPE, text=True)
        self.codes = {0: 0, 1: 0}
        self.peak_kb = 0

    def read(self, data, what, command=("report", "--json")):
        with open(self.path, "wb") as file:
            file.write(data)
        self.run(self.path, what, command)

    def run(self, path, what, command):
        out, err = self.path + ".out", self.path + ".err"
        signal.alarm(SECONDS)
        print(json.dumps([[ETWATCH, *command, path], out, err]), file=self.starter.stdin, flush=True)
        try:
            code, peak_kb = map(int, self.starter.stdout.readline().split())
        except Failed:
            raise Failed(f"{what}: {' '.join(command)} did not end within {SECONDS} s") from None
        with open(out, "rb") as file, open(err, "rb") as said:
            self.judge(code, file.read().decode(errors="replace"), said.read().decode(errors="replace"), what)
        self.peak_kb = max(self.peak_kb, peak_kb)
        check(peak_kb < MEMORY_KB, f"{what}: took {peak_kb} kB")

    def judge(self, code, out, err, what):
        check(code in (0, 1), f"{what}: ended with {code}: {err[-300:]}")
        self.codes[code] += 1
        if code == 1:
            check(re.search(r"\b(byte|offset) (0x)?[0-9a-f]+", err), f"{what}: no offset in {err!r}")
            check_eq(err.count("\n"), 1, f"{what}: lines of the message")
        else:
            check(json_lines(out), f"{what}: no output")


def both(reader, data, what):
    reader.read(data, what)
    reader.read(data, what, ("events", "--json"))


@cases([
    ("nothing at all", b""),
    ("one byte", b"\0"),
    ("less than a buffer header", bytes(71)),
    ("zeros", bytes(65536)),
    ("ones", b"\xff" * 65536),
    ("a program", b"\x7fELF" + bytes(range(256)) * 64),
    ("text", b"This is not a recording.\n" * 400),
    ("a zip of one", b"PK\x03\x04" + bytes(5000)),
])
def a_file_that_is_not_a_recording_is_refused_with_the_offset(data):
    with temp_dir() as folder:
        reader = Reader(folder)
        both(reader, data, "file")
        check_eq(reader.codes, {0: 0, 1: 2}, "exit codes")


@test
def a_folder_and_a_missing_file_are_refused():
    with temp_dir() as folder:
        for path in (folder, os.path.join(folder, "none.etl")):
            for command in ("report", "events"):
                done = subprocess.run([ETWATCH, command, path], stdin=subprocess.DEVNULL, capture_output=True,
                                      check=False, text=True)
                check_eq((done.returncode, done.stdout), (1, ""), f"{command} {path}: exit code and output")
                check_in(path, done.stderr)


@test
def a_file_truncated_anywhere_is_read_up_to_there():
    data = sound()
    cuts = {0, 1, 3, 4, 8, 71, 72, 73, 0x48 + 0x20, 0x48 + 0x20 + 0x110, 4095, 4096, 4097, 4096 + 71, 4096 + 72,
            4096 + 73, 8191, 8192, 8193, 8192 + 72, len(data) - 1}
    cuts |= set(range(4096, 4096 + 1024, 16)) | set(random.Random(7).sample(range(len(data)), 60))
    with temp_dir() as folder:
        reader = Reader(folder)
        for cut in sorted(cuts):
            both(reader, data[:cut], f"cut at {cut}")
        check(reader.codes[0] and reader.codes[1], f"both outcomes must occur: {reader.codes}")


def wrong_values(data, size):
    """(offset, value) for each length field with every wrong value worth trying."""
    values = {1: (0, 1, 0x7F, 0xFF), 2: (0, 1, 7, 8, 0x0F, 0x10, 0x47, 0x50, 0x7FFF, 0x8000, 0xFFF8, 0xFFFF),
              4: (0, 1, 0x47, 0x48, 0x49, 0xFFF, 0x1001, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF),
              8: (0, 1, 0x7FFFFFFFFFFFFFFF, 0x8000000000000000, 0xFFFFFFFFFFFFFFFF)}[size]
    return [value for value in values if value != int.from_bytes(data, "little")]


@test(seconds=600)
def a_wrong_value_in_any_length_field_is_handled():
    data = sound()
    fields = [(base + at, size, f"buffer header {base}+{at:#x}")
              for base in (0, 4096, 8192)
              for at, size in ((0, 4), (4, 4), (8, 4), (0x10, 8), (0x18, 8), (0x28, 2), (0x2C, 4), (0x30, 4),
                               (0x34, 2), (0x36, 2))]
    fields += [(0x48 + at, size, f"log-file header +{at:#x}")
               for at, size in ((0, 4), (4, 2), (6, 2), (0x10, 8), (0x20, 4), (0x24, 4), (0x28, 4), (0x2C, 4),
                                (0x30, 8), (0x40, 4), (0x44, 4), (0x4C, 4), (0x120, 8), (0x128, 8), (0x130, 4))]
    at = 4096 + 72
    for event in content():
        fields += [(at, 2, f"event {at}: first word"), (at + 2, 2, f"event {at}: type"),
                   (at + 4, 2, f"event {at}: size"), (at + 0x10, 8, f"event {at}: time"),
                   (at + 0x20, 4, f"event {at}: payload")]
        at += (len(event) + 7) & ~7
    with temp_dir() as folder:
        reader = Reader(folder)
        for offset, size, what in fields:
            for value in wrong_values(data[offset:offset + size], size):
                bent = data[:offset] + value.to_bytes(size, "little") + data[offset + size:]
                reader.read(bent, f"{what} = {value:#x}")
        check(reader.codes[0] > 100, f"most can still be read: {reader.codes}")


def flipped(data, rng, count):
    bent = bytearray(data)
    for _ in range(count):
        bent[rng.randrange(len(bent))] ^= 1 << rng.randrange(8)
    return bytes(bent)


@test(seconds=600)
def flipped_bits_are_handled():
    rng = random.Random(11)
    data = sound()
    with temp_dir() as folder:
        reader = Reader(folder)
        for i in range(300):
            both(reader, flipped(data, rng, 1 + i % 40), f"flip {i}")


@test
def overlapping_and_repeated_buffers_are_handled():
    first, second, third = (sound()[i:i + 4096] for i in (0, 4096, 8192))
    small = struct.pack("<I", 72) + second[4:72]
    with temp_dir() as folder:
        reader = Reader(folder)
        both(reader, first + second * 200 + third, "one buffer two hundred times")
        both(reader, first + small * 5000, "buffers with only their header")
        both(reader, first * 3 + second, "header buffers again")
        both(reader, first + struct.pack("<I", 8) + second[4:] + third, "a buffer that reaches into the next")
        both(reader, first + bytes(4096) + second, "a hole")
        both(reader, first + b"\xff" * 4096 + second, "a hole of ones")


@test
def events_after_damage_are_still_read():
    data = bytearray(sound())
    at = 4096 + 72
    data[at:at + 4] = bytes(4)  # the first event of the second buffer has no marker
    with temp_dir() as folder:
        path = os.path.join(folder, "damaged.etl")
        with open(path, "wb") as file:
            file.write(data)
        done = subprocess.run([ETWATCH, "events", "--json", path], stdin=subprocess.DEVNULL, capture_output=True,
                              check=False, text=True)
        check_eq(done.returncode, 0, f"exit code ({done.stderr})")
        cpus = [o["cpu"] for o in json_lines(done.stdout) if "fields" in o]
        check_eq(cpus.count(1), len(content()), "events of the other CPU")
        check_in(str(at), done.stderr, "standard error")


@test(seconds=600)
def every_kind_of_made_recording_is_read_damaged_or_not():
    rng = random.Random(13)
    with temp_dir() as folder:
        path, reader = os.path.join(folder, "made.etl"), Reader(folder)
        for kind in make_etl("--list").split():
            for options in ((), ("--compress",)):
                make_etl(kind, path, "--events", 3000, "--buffer", 8192, *options)
                with open(path, "rb") as file:
                    data = file.read()
                both(reader, data, f"{kind} {options}")
                for i in range(3):
                    size = rng.randrange(len(data) + 1)
                    both(reader, flipped(data[:size], rng, 3 * i) if size else b"", f"{kind} {options}, damage {i}")
        check(reader.codes[0] > reader.codes[1] > 0, f"both outcomes must occur: {reader.codes}")


@test(seconds=600)
def damaged_real_recordings_are_handled():
    corpus("MANIFEST.tsv")
    rng = random.Random(17)
    with temp_dir() as folder:
        reader = Reader(folder)
        for row in corpus_rows():
            with open(corpus("etl", row["file"]), "rb") as file:
                data = file.read(1 << 19)
            for i in range(4):
                size = rng.randrange(1000, len(data) + 1)
                both(reader, flipped(data[:size], rng, i * i * 10), f"{row['file']}, damage {i}")


@test(seconds=300)
def memory_does_not_grow_with_the_file():
    peaks = []
    with temp_dir() as folder:
        for size in (4_000_000, 60_000_000):
            for options in ((), ("--compress",)):
                path, reader = os.path.join(folder, "large.etl"), Reader(folder)
                make_etl("bench", path, "--bytes", size, "--cpus", 4, *options)
                for command in (("report", "--json"), ("events", "--count-by-type", "--json")):
                    reader.run(path, f"{size} bytes", command)
                peaks.append(reader.peak_kb)
    print(f"# peaks in kB: {peaks}")
    check(max(peaks) < 64 * 1024, f"peaks in kB: {peaks}")


@test
def processes_beyond_the_limit_of_a_report_are_counted_as_lost():
    limit, more = 65536, 500
    started = [process_event(1, 1000 + i, 4 + 4 * i, "p.exe") for i in range(limit + more)]
    data = buffer([header_event()], 4096, kind=4) + b"".join(
        buffer(started[i:i + 500], 65536) for i in range(0, len(started), 500))
    with temp_dir() as folder:
        path, reader = os.path.join(folder, "many.etl"), Reader(folder)
        with open(path, "wb") as file:
            file.write(data)
        reader.run(path, "many processes", ("report", "--json"))
        found = report(path)
    check_eq(len(found["process"]), limit, "processes")
    check_eq((found["trace"][0]["lost"], found["trace"][0]["complete"]), (more, False), "lost, complete")


@test
def losses_in_a_file_are_reported():
    with temp_dir() as folder:
        path = os.path.join(folder, "lost.etl")
        make_etl("lost", path)
        trace = report(path)["trace"][0]
        check(trace["lost"] > 0, "no loss is reported")
        check_eq(trace["complete"], False, "complete")


main()
