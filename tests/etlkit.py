# SPDX-License-Identifier: MIT
"""Shared by the tests of recordings: real files where they are available, generated files, and an independent
reader of the format.

The reader below is written from the description of the format and shares nothing with the library, so that the two
can only be wrong in different ways. It is slow and does not handle damage; the library does. Real recordings are
not part of the tree: ETWATCH_CORPUS names their folder, otherwise ../shared/corpus next to the checkout is used;
without it the tests that need them are skipped.
"""
import contextlib
import csv
import os
import struct
import subprocess
import uuid
from collections import namedtuple

from lib import BUILD, ROOT, Failed, check, check_eq, json_lines, run, skip, temp_dir

CORPUS = os.environ.get("ETWATCH_CORPUS") or os.path.join(ROOT, "..", "shared", "corpus")
MAKE_ETL = os.path.join(BUILD, "tests", "make_etl")
NO_ID = 0xFFFFFFFF

# ------------------------------------------------------------------ real files


def corpus(*parts):
    """A path below the folder of real recordings; skips the test where there is none."""
    path = os.path.join(CORPUS, *parts)
    if not os.path.exists(path):
        skip("no real recordings here (ETWATCH_CORPUS names their folder)")
    return path


def corpus_rows():
    """The table of real recordings, or nothing."""
    path = os.path.join(CORPUS, "MANIFEST.tsv")
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


# ---------------------------------------------------------------- the program


def etwatch(*arguments, timeout=110):
    """Runs the program, which must succeed; returns its output as JSON objects."""
    result = run(arguments, timeout=timeout)
    check_eq(result.code, 0, f"exit code of {' '.join(map(str, arguments))} ({result.err.strip()[-400:]})")
    return json_lines(result.out)


def events(path, *arguments, **options):
    """The event objects of `events --json`, with command lines."""
    return [o for o in etwatch("events", "--json", "--cmdline", *arguments, path, **options)
            if o.get("type", "event") == "event"]


def check_payload(event, payload, where):
    """--payload shows these bytes, unless the event has a command line, which must not be shown unmasked."""
    if event["payload"] is None:
        check(any("commandline" in name.lower() for name in event["fields"]), f"{where}: no payload: {event}")
        event["payload"] = payload.hex()
    check_eq(event["payload"], payload.hex(), f"{where}: payload")


def report(path, *arguments, **options):
    """{type: [objects]} of `report --json`."""
    found = {}
    for o in etwatch("report", "--json", *arguments, path, **options):
        found.setdefault(o["type"], []).append(o)
    check_eq(len(found.get("trace", [])), 1, "number of trace objects")
    return found


def make_etl(*arguments):
    """Runs the maker of recordings; returns its output."""
    if not os.access(MAKE_ETL, os.X_OK):
        raise Failed("make_etl is not built")
    done = subprocess.run([MAKE_ETL, *map(str, arguments)], stdin=subprocess.DEVNULL,
                          capture_output=True, check=False, text=True)
    check_eq(done.returncode, 0, f"exit code of make_etl {arguments} ({done.stderr.strip()})")
    return done.stdout


@contextlib.contextmanager
def recording(kind, *arguments):
    """The path of a recording in its own folder."""
    with temp_dir() as folder:
        path = os.path.join(folder, kind + ".etl")
        make_etl(kind, path, *arguments)
        yield path


# ------------------------------------------------------- an independent reader

Record = namedtuple("Record", "offset cpu kind pointer_size t_raw pid tid guid id opcode version group payload")

# Type: (kind, size of the header, pointer size, offset of the event's size, of its time).
HEADERS = {1: ("kernel", 0x20, 4, 4, 0x10), 2: ("kernel", 0x20, 8, 4, 0x10),
           3: ("kernel", 0x18, 4, 4, 0x10), 4: ("kernel", 0x18, 8, 4, 0x10),
           10: ("classic", 0x30, 4, 0, 0x10), 20: ("classic", 0x30, 8, 0, 0x10),
           11: ("classic", 0x48, 4, 0, 0x10), 21: ("classic", 0x48, 8, 0, 0x10),
           16: ("kernel", 0x10, 4, 4, 8), 17: ("kernel", 0x10, 8, 4, 8),
           18: ("manifest", 0x50, 4, 0, 0x10), 19: ("manifest", 0x50, 8, 0, 0x10)}
BUFFER_HEADER = 0x48
COMPRESSED = 0x40


def inflate(data, want):
    """MS-XCA plain LZ77."""
    out, at, flags, left, nibble_at = bytearray(), 0, 0, 0, None
    while len(out) < want:
        if left == 0:
            flags, left = struct.unpack_from("<I", data, at)[0], 32
            at += 4
        left -= 1
        if not flags >> left & 1:
            out.append(data[at])
            at += 1
            continue
        token = struct.unpack_from("<H", data, at)[0]
        at += 2
        distance, length = (token >> 3) + 1, token & 7
        if length == 7:
            if nibble_at is None:
                length, nibble_at = data[at] & 15, at
                at += 1
            else:
                length, nibble_at = data[nibble_at] >> 4, None
            if length == 15:
                length = data[at]
                at += 1
                if length == 255:
                    length = struct.unpack_from("<H", data, at)[0]
                    at += 2
                    if length == 0:
                        length = struct.unpack_from("<I", data, at)[0]
                        at += 4
                    length -= 22
                length += 15
            length += 7
        length += 3
        for _ in range(length):
            out.append(out[-distance])
    return bytes(out[:want])


def extended_size(event):
    """Size of the extended items after an EVENT_HEADER."""
    if not struct.unpack_from("<H", event, 4)[0] & 1:
        return 0
    at = 0x50
    while True:
        size, _, linkage, _ = struct.unpack_from("<HHHH", event, at)
        at += size
        if not linkage & 1:
            return at - 0x50


def read_record(event, offset, cpu):
    marker = struct.unpack_from("<I", event, 0)[0]
    kind, size, pointer_size, _, time_at = HEADERS[marker >> 16 & 0xFF]
    t_raw = struct.unpack_from("<q", event, time_at)[0]
    pid = tid = NO_ID
    guid, event_id, opcode, version, group = None, 0, 0, 0, None
    if kind == "kernel":
        version, opcode, group = event[0], event[6], event[7]
        counters = struct.unpack_from("<H", event, 0)[0] >> 8
        if size == 0x10:
            size += 8 * (counters & 7) + (8 if counters & 0x80 else 0)
        else:
            tid, pid = struct.unpack_from("<II", event, 8)
    else:
        tid, pid = struct.unpack_from("<II", event, 8)
        guid = str(uuid.UUID(bytes_le=bytes(event[0x18:0x28])))
        if kind == "classic":
            opcode, version = event[4], struct.unpack_from("<H", event, 6)[0]
        else:
            event_id, version, opcode = struct.unpack_from("<H", event, 0x28)[0], event[0x2A], event[0x2D]
            size += extended_size(event)
    return Record(offset, cpu, kind, pointer_size, t_raw, pid, tid, guid, event_id, opcode, version,
                  group, bytes(event[size:]))


def read_message(event, offset, cpu):
    """WPP: the flags determine which fields are present, in this order."""
    number, flags = struct.unpack_from("<HH", event, 4)
    at, guid, t_raw, pid, tid = 8, None, None, NO_ID, NO_ID
    at += 4 if flags & 1 else 0
    if flags & 4:
        at += 4
    elif flags & 2:
        guid = str(uuid.UUID(bytes_le=bytes(event[at:at + 16])))
        at += 16
    if flags & 8:
        t_raw = struct.unpack_from("<q", event, at)[0]
        at += 8
    if flags & 0x20:
        tid, pid = struct.unpack_from("<II", event, at)
        at += 8
    return Record(offset, cpu, "message", 8, t_raw, pid, tid, guid, number, 0, 0, None, bytes(event[at:]))


def walk(path):
    """Every record of an undamaged file, in file order."""
    with open(path, "rb") as file:
        data = file.read()
    at = 0
    while at + BUFFER_HEADER <= len(data):
        size, saved = struct.unpack_from("<II", data, at)
        filled, flags, kind = struct.unpack_from("<IHH", data, at + 0x30)
        if kind == 4 and 0 < saved < filled:
            filled = saved  # bytes that a relogger left after it are repeated in the next buffer
        cpu = struct.unpack_from("<H", data, at + 0x28)[0]
        cpu = cpu & 0x7FF if flags & 0x20 else cpu & 0xFF
        body = data[at + BUFFER_HEADER:at + size]
        if flags & COMPRESSED:
            body = inflate(body, filled - BUFFER_HEADER)
        pos = 0
        while pos + 8 <= filled - BUFFER_HEADER:
            marker = struct.unpack_from("<I", body, pos)[0]
            if marker == 0xFFFFFFFF:
                break
            if marker >> 28 == 9:
                length = marker & 0xFFFF
                yield read_message(body[pos:pos + length], at + BUFFER_HEADER + pos, cpu)
            else:
                check_eq(marker >> 24, 0xC0, f"marker at {at:#x}+{pos:#x}")
                length = struct.unpack_from("<H", body, pos + HEADERS[marker >> 16 & 0xFF][3])[0]
                yield read_record(body[pos:pos + length], at + BUFFER_HEADER + pos, cpu)
            pos += (length + 7) & ~7
        at += size


def in_time_order(records):
    """In the order of the report: by time, equal times in file order."""
    return sorted(records, key=lambda r: r.t_raw)


# --------------------------------------------------------- small files built by hand


def kernel_event(group, opcode, version, t_raw, payload, pointer_size=8, pid=NO_ID, tid=NO_ID):
    """With a SYSTEM header."""
    header = struct.pack("<HBBHBBIIqII", version, 2 if pointer_size == 8 else 1, 0xC0, 0x20 + len(payload),
                         opcode, group, tid, pid, t_raw, 0, 0)
    return header + payload


def classic_event(guid, opcode, version, t_raw, payload, pointer_size=8, pid=NO_ID, tid=NO_ID):
    header = struct.pack("<HBBBBHIIq16sQ", 0x30 + len(payload), 20 if pointer_size == 8 else 10, 0xC0,
                         opcode, 0, version, tid, pid, t_raw, uuid.UUID(guid).bytes_le, 0)
    return header + payload


def manifest_event(guid, event_id, t_raw, payload, version=0, opcode=0, pid=4, tid=8, keyword=0, pointer_size=8,
                   extended=b""):
    header = struct.pack("<HHHHIIq16sHBBBBHQQ16s", 0x50 + len(extended + payload), 0xC013 if pointer_size == 8 else 0xC012,
                         1 if extended else 0, 0, tid, pid, t_raw, uuid.UUID(guid).bytes_le, event_id, version, 0, 4,
                         opcode, 0, keyword, 0, bytes(16))
    return header + extended + payload


def extended_items(*items):
    """Items of (type, bytes) between a header and its payload."""
    out = b""
    for number, (kind, data) in enumerate(items):
        size = 8 + len(data) + -len(data) % 8
        out += struct.pack("<HHHH", size, kind, number + 1 < len(items), len(data)) + data + bytes(-len(data) % 8)
    return out


def tracelogging(provider, event, fields):
    """The items that describe a TraceLogging event; fields: bytes, each a name, NUL and its types."""
    schema, name = b"\0" + event + b"\0" + fields, provider + b"\0"
    return extended_items((12, struct.pack("<H", len(name) + 2) + name), (11, struct.pack("<H", len(schema) + 2) + schema))


def buffer(content, size=None, cpu=0, kind=0, flags=0x20):
    """A buffer around complete events."""
    body = b"".join(event + bytes(-len(event) % 8) for event in content)
    filled = BUFFER_HEADER + len(body)
    size = size or (filled + 1023) & ~1023
    check(filled <= size, "events do not fit into the buffer")
    header = struct.pack("<IIIIqqQHHIIHHqq", size, filled, filled, 0, 0, 0, 0, cpu, 1, 3, filled, flags,
                         kind, 0, 0)
    return (header + body).ljust(size, b"\xff")


def header_event(t_raw=0, cpus=1, size=4096, frequency=10_000_000):
    """The first event of every file."""
    payload = struct.pack("<I4BIIqIIIIIIIIQQ172s4xqqqII", size, 10, 0, 1, 5, 19045, cpus, 0, 156250, 0, 0, 1, 1,
                          8, 0, 1000, 0, 0, bytes(172), 0, frequency, 132_000_000_000_000_000, 1, 0)
    check_eq(len(payload), 0x118, "size of the log-file header")
    return kernel_event(0, 0, 2, t_raw, payload + "by hand\0".encode("utf-16le") * 2, pid=1, tid=2)


def small_etl(content, cpus=1):
    """A file of one header buffer and one buffer with these events."""
    first = buffer([header_event(cpus=cpus)], 4096, kind=4)
    return first + (buffer(content) if content else b"")
