# SPDX-License-Identifier: MIT
"""Recordings made to be expensive: cost grows with the file, not faster.

Each case builds the same attack at the sizes N and 4N and runs the commands that read recordings. User
CPU time and peak memory may grow at most linearly (factor 6 for 4 times the bytes, because small runs have
a fixed share), memory stays below 64 MB + SHARE bytes per byte of the file, and CPU time below FREE_S + SLOW times what
SECURITY.md states per byte: an attack that is expensive at every size does not grow. CPU time is not elapsed time, and SLOW
is for machines that are slow or shared. A run below 50 ms is too short to judge its growth.
"""
import contextlib
import http.client
import json
import os
import re
import resource
import signal
import struct
import sys
import tempfile
import time
import uuid
import zlib

from etlkit import buffer, header_event, kernel_event, manifest_event
from lib import ETWATCH, cases, check, check_in, main

MB = 1 << 20
FIXED = 64 * MB
SHARE = 128         # bytes of memory per byte of a file
RATIO = 6.0         # for a file that is four times as large
AGAIN = 2           # runs more where it seems to grow
SHORT_S = 0.05      # user time below which growth is not judged
FREE_S = 1.0        # user time that any file may take
STATED_S = 1e-6     # user time per byte that SECURITY.md states,
SLOW = 20           # times this
EXPANDS = {".pftrace": (1 << 20, 64), ".etl": (16 << 20, 64)}  # decompressed bytes that are read: fixed, per byte
PROVIDER = "11111111-2222-3333-4444-555555555555"

# --------------------------------------------------------------------------- running


def measure(command, path):
    """(user seconds, peak bytes, exit code, message) of one run."""
    argv = [ETWATCH, *command, path] if command[0] != "compare" else [ETWATCH, *command, path, path]
    with tempfile.TemporaryFile() as err:
        pid = os.fork()
        if pid == 0:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 0)
            os.dup2(null, 1)
            os.dup2(err.fileno(), 2)
            resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
            resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
            os.execv(argv[0], argv)
        _, status, usage = os.wait4(pid, 0)
        err.seek(0)
        message = err.read().decode(errors="replace")
    return usage.ru_utime, usage.ru_maxrss * 1024, os.waitstatus_to_exitcode(status), message


def measure_serve(path):
    """The same of a server that has read the file; its processes are added up."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        os.dup2(writer, 2)
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
        os.execv(ETWATCH, [ETWATCH, "serve", "--listen", "127.0.0.1:0", path])
    os.close(writer)
    message = b""
    with os.fdopen(reader, "rb") as err:
        for line in err:
            message += line
            found = re.search(rb"serving http://127.0.0.1:(\d+)/", line)
            if found:
                wait_for_end_of_recording(int(found[1]))
                os.kill(pid, signal.SIGTERM)
                message += err.read()
    _, status, usage = os.wait4(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    return usage.ru_utime, usage.ru_maxrss * 1024, 0 if code == 143 else code, message.decode(errors="replace")


def wait_for_end_of_recording(port):
    deadline = time.monotonic() + 120
    with contextlib.suppress(OSError, http.client.HTTPException):  # it has ended by itself
        while time.monotonic() < deadline:
            with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
                connection.request("GET", "/api/v1/meta")
                if json.loads(connection.getresponse().read())["ended"]:
                    return
            time.sleep(0.05)


REPORT, REPORT_P = ("report", "--json"), ("report", "--json", "-p", "1000")
EVENTS, EVENTS_P = ("events", "--json"), ("events", "--json", "-p", "1000")
EXPORT, WAITS = ("export", "-f", "arrow"), ("waits",)
TEXT, SAMPLES_P = ("report",), ("export", "-f", "csv", "--table", "samples", "-p", "1000")
PERFETTO_P = ("export", "-f", "perfetto", "-p", "1000")
SAMPLES = ("export", "-f", "csv", "--table", "samples")
DETAILS, DETAILS_P = ("report", "--json", "--threads", "--images"), ("report", "--json", "--threads", "--images", "-p", "1000")
COMPARE, SERVE, WAITS_P = ("compare", "--json"), ("serve",), ("waits", "-p", "1000")


def cost_of(command, path):
    return measure_serve(path) if command == SERVE else measure(command, path)


def grows_linearly(make, size, suffix, commands):
    with tempfile.TemporaryDirectory() as folder:
        paths, sizes = [], []
        for factor in (1, 4):
            paths.append(os.path.join(folder, f"{factor}{suffix}"))
            with open(paths[-1], "wb") as file:
                sizes.append(file.write(make(size * factor)))
        for command in commands:
            what = " ".join(command)
            small, large = cost_of(command, paths[0]), cost_of(command, paths[1])
            if "-v" in sys.argv or os.environ.get("HOSTILE_VERBOSE"):
                print(f"# {what}: {sizes[0]} -> {sizes[1]} bytes, {small[0]:.3f} -> {large[0]:.3f} s, "
                      f"{small[1] / MB:.0f} -> {large[1] / MB:.0f} MB, exit {small[2]} {large[2]} {large[3].strip()[:100]}",
                      flush=True)
            for code in (small[2], large[2]):
                check_in(code, (0, 1), f"{what}: exit code ({large[3][-200:]})")
            check_in(sizes[1] > 2 * sizes[0], (True,), "the larger file is larger")
            bound = RATIO * sizes[1] / sizes[0] / 4
            quick, slow = small[0], large[0]
            for _ in range(AGAIN):  # other programs on the machine only make a run slower
                if slow < SHORT_S or slow <= bound * max(quick, SHORT_S / 2):
                    break
                slow = min(slow, cost_of(command, paths[1])[0])
            check(slow < SHORT_S or slow <= bound * max(quick, SHORT_S / 2),
                  f"{what}: {quick:.3f} s for {sizes[0]} bytes, {slow:.3f} s for {sizes[1]}")
            fixed, share = EXPANDS[suffix] if make in COMPRESSED else (0, 1)
            for took, size_of in ((small[0], sizes[0]), (large[0], sizes[1])):
                limit = FREE_S + SLOW * STATED_S * (fixed + share * size_of)
                check(took <= limit, f"{what}: {took:.3f} s for {size_of} bytes, at most {limit:.3f}")
            for took, size_of in ((small[1], sizes[0]), (large[1], sizes[1])):
                check(took <= FIXED + SHARE * size_of, f"{what}: {took / MB:.0f} MB for {size_of} bytes")


# --------------------------------------------------------------------- Perfetto traces


def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def text(field, value):
    return varint(field << 3 | 2) + varint(len(value)) + value


def packet(body):
    return text(1, body)


SEQUENCE = number(10, 0x6577)
VALUES = ["pid", "ppid", "start_ns", "flags", "name", "cmdline"]
HAS_PPID = 1 << 2


def own_head():
    """What makes the samples of the trace readable: the interned names."""
    names = b"".join(text(3, number(1, i + 1) + text(2, name.encode())) for i, name in enumerate(VALUES))
    events = b"".join(text(2, number(1, i + 1) + text(2, name)) for i, name in enumerate((b"start", b"sample", b"exit")))
    clock = text(6, text(1, number(1, 6) + number(2, 1000)) + text(1, number(1, 1) + number(2, 10**18)))
    return packet(clock) + packet(SEQUENCE + text(12, text(1, number(1, 1) + text(2, b"etwatch")) + events + names))


def sample(kind, t_ns, **values):
    notes = b""
    for name, value in values.items():
        value = text(6, value) if isinstance(value, bytes) else number(3, value)
        notes += text(4, number(1, VALUES.index(name) + 1) + value)
    return packet(number(8, t_ns) + SEQUENCE + text(11, number(3, 1) + number(9, 3) + number(10, kind) + notes))


def compressed(inner):
    return packet(text(50, zlib.compress(inner, 9)))


def bundle_bomb(size):
    """Compressed bundles of switches of one byte each."""
    bundle = text(1, number(1, 0) + text(4, text(1, b"\1" * 60000)))
    return packet(number(8, 1)) + compressed(packet(bundle * (size // 60000)))


def event_bomb(size):
    """A compressed packet of empty events."""
    return packet(number(8, 1)) + compressed(packet(b"\x5a\0" * (size // 2)))


def plain_events(size):
    return packet(number(8, 1)) + packet(b"\x5a\0" * (size // 2))


def etw_bomb(size):
    """Windows events in one bundle."""
    return packet(number(8, 1)) + packet(text(95, text(2, text(2, number(1, 3))) * (size // 6)))


def long_strings(size):
    """One long command line, and many samples of that process."""
    out = own_head() + sample(1, 2000, pid=1000, start_ns=5, name=b"x", cmdline=b"c" * (size // 4))
    return out + b"".join(sample(2, 2000 + i, pid=1000, start_ns=5) for i in range(size // 60))


def chain_pftrace(count):
    """Each process precedes its parent."""
    return own_head() + b"".join(
        sample(1, 2000 + i, pid=1000 + count - i, ppid=999 + count - i, flags=HAS_PPID, start_ns=5, name=b"p")
        for i in range(count + 1))


def chosen_starts(count):
    """Start times with the same unseeded hash."""
    inverse = pow(0x9E3779B97F4A7C15, -1, 1 << 64)
    return own_head() + b"".join(
        sample(1, 2000 + i, pid=0, start_ns=inverse * (7 << 32 | i) % (1 << 64), name=b"p") for i in range(count))


def many_rows(count):
    return own_head() + b"".join(sample(1, 2000 + i, pid=i + 1, start_ns=i, name=b"p") for i in range(count))


def empty_blocks(count):
    """Deflate blocks with nothing in them: 10 bits each."""
    bits = "0100000000" * count + "1100000000"
    bits += "0" * (-len(bits) % 8)
    data = int(bits[::-1], 2).to_bytes(len(bits) // 8, "little")
    return packet(number(8, 1)) + packet(text(50, b"\x78\x9c" + data + struct.pack(">I", 1)))


def priorities(count):
    event = text(2, number(1, 5) + number(2, 7) + text(4, text(1, b"a") + number(2, 7) + number(3, (1 << 31) + 99)
                                                    + text(5, b"b") + number(6, 8) + number(7, (1 << 31) + 99)))
    return packet(number(8, 1)) + packet(text(1, number(1, 0) + event * count))


# ------------------------------------------------------------------------------- .etl


def etl(events, cpu=lambda i: 0):
    out, group, used, i = [buffer([header_event(cpus=1)], 4096, kind=4)], [], 0, 0
    for event in events:
        if used + len(event) > 60000:
            out.append(buffer(group, cpu=cpu(i)))
            group, used, i = [], 0, i + 1
        group.append(event)
        used += len(event) + 8
    out.append(buffer(group, cpu=cpu(i)))
    return b"".join(out)


def process(opcode, t_raw, pid, parent, name):
    payload = struct.pack("<QIIIiQII", 0xFFFF0000 + pid, pid, parent, 1, 259, 0x1000, 0, 0)
    return kernel_event(3, opcode, 4, t_raw, payload + name + b"\0" + "x\0\0\0".encode("utf-16le"))


def chain_etl(count):
    """A rundown that lists each process before its parent."""
    return etl(process(3, 1000 + i, 1000 + 4 * (count - i), 996 + 4 * (count - i), b"p%d" % i) for i in range(count + 1))


def same_pid(count):
    """The same id started again and again, and events of it."""
    def events():
        for i in range(count):
            yield process(1, 10**8 + i * 20_000_000, 1000, 4, b"p%d" % i)
        for i in range(count):
            yield process(2, 10**8 + 1, 1000, 4, b"q")
    return etl(events())


def same_pid_late_readers(count):
    """The same id started again and again; the events of its first lifetime come from another CPU."""
    starts = [process(1, 10**8 + i * 20_000_000, 1000, 4, b"p%d" % i) for i in range(count)]
    reads = [manifest_event(PROVIDER, 1, 10**8 + 1 + i, b"", pid=1000) for i in range(count)]
    head = buffer([header_event(cpus=2)], 4096, kind=4)
    parts = [(0, starts[i:i + 300]) for i in range(0, count, 300)] + [(1, reads[i:i + 300]) for i in range(0, count, 300)]
    return head + b"".join(buffer(events, cpu=cpu) for cpu, events in parts)


def bit_map(count):
    """A field with names for its bits, and very many of them."""
    entries = "".join(f'<map value="0x{i + 3:x}" message="$(string.m)"/>' for i in range(count))
    xml = (f'<instrumentationManifest xmlns="http://schemas.microsoft.com/win/2004/08/events"><instrumentation><events>'
           f'<provider name="P" guid="{{{PROVIDER}}}" symbol="P" resourceFileName="P" messageFileName="P">'
           f'<maps><bitMap name="m">{entries}</bitMap></maps>'
           f'<events><event value="1" version="0" template="t"/></events>'
           f'<templates><template tid="t">' + "".join(f'<data name="f{i}" inType="win:UInt64" map="m"/>' for i in range(8)) +
           f'</template></templates></provider></events></instrumentation>'
           f'<localization><resources culture="en"><stringTable><string id="m" value="x"/></stringTable></resources>'
           f'</localization></instrumentationManifest>').encode()
    chunks = [xml[i:i + 40000] for i in range(0, len(xml), 40000)]
    events = [manifest_event(PROVIDER, 0xFFFE, 1000 + i, struct.pack("<4BHH", 1, 1, 0, 0x5B, len(chunks), i) + chunk)
              for i, chunk in enumerate(chunks)]
    events += [manifest_event(PROVIDER, 1, 2000 + i, b"\xff" * 64) for i in range(count // 4)]
    return etl(events)


def many_kinds(count):
    """Every event of a provider and a kind of its own."""
    return etl(manifest_event(str(uuid.UUID(int=i + 1)), i % 65000, 1000 + i, b"") for i in range(count))


def many_threads(count):
    """Threads far apart, so that each takes a page of the index."""
    return etl(kernel_event(5, 3, 3, 1000 + i, struct.pack("<II7QI4B", 8 + 4 * (i % 64), 4096 * i, *[0] * 7, 0, 8, 5, 2, 0))
               for i in range(count))


def packed(event, copies, cpu, t_first):
    """A compressed buffer (MS-XCA plain LZ77): the event once, then one match that repeats it."""
    filled = 0x48 + len(event) * copies
    header = bytearray(buffer([event], cpu=cpu)[:0x48])
    length = len(event) * (copies - 1) - 3
    match = struct.pack("<H", (len(event) - 1) << 3 | 7) + b"\x0f\xff" + struct.pack("<HI", 0, length)
    tokens = [event[i:i + 1] for i in range(len(event))] + [match]
    body = b""
    for i in range(0, len(tokens), 32):  # a word of flags before 32 tokens; the match is the last one
        flags = 1 << 31 - (len(tokens) - 1 - i) if len(tokens) - i <= 32 else 0
        body += struct.pack("<I", flags) + b"".join(tokens[i:i + 32])
    size = 0x48 + len(body)
    struct.pack_into("<II", header, 0, size, filled)
    struct.pack_into("<I", header, 8, filled)
    struct.pack_into("<IH", header, 0x30, filled, 0x20 | 0x40)
    struct.pack_into("<q", header, 0x10, t_first)
    return bytes(header) + body


def large_buffers(count):
    """Compressed buffers that expand to 1.5 MB each, one for every CPU."""
    event = kernel_event(5, 3, 3, 1000, struct.pack("<II7QI4B", 8, 12, *[0] * 7, 0, 8, 5, 2, 0) + bytes(8))
    return buffer([header_event(cpus=64)], 4096, kind=4) + b"".join(packed(event, 14000, i % 2000, 1000) for i in range(count))


def dense_buffers(count):
    """The same within what is allowed."""
    event = kernel_event(5, 3, 3, 1000, struct.pack("<II7QI4B", 8, 12, *[0] * 7, 0, 8, 5, 2, 0) + bytes(8))
    return buffer([header_event(cpus=64)], 4096, kind=4) + b"".join(packed(event, 140, i % 2000, 1000) for i in range(count))


def wide_table(count):
    """Events that describe themselves, with hundreds of different fields (TraceLogging)."""
    def events():
        for i in range(count):
            fields = b"".join(b"f%d\0\4" % (i % 4 * 200 + k) for k in range(100))
            data = struct.pack("<HB", len(fields) + 5, 0) + b"e\0" + fields
            item = struct.pack("<HHHH", 8 + len(data) + -len(data) % 8, 11, 0, len(data)) + data + bytes(-len(data) % 8)
            raw = manifest_event(PROVIDER, 1, 1000 + i, item + bytes(100))
            yield raw[:4] + struct.pack("<H", 1) + raw[6:]
    return etl(events())


COMPRESSED = {bundle_bomb, event_bomb, empty_blocks, large_buffers, dense_buffers}
CASES = [
    ("compressed bundles", bundle_bomb, 6_000_000, ".pftrace", (REPORT, EVENTS)),
    ("compressed empty events", event_bomb, 2_000_000, ".pftrace", (REPORT, EVENTS)),
    ("empty events", plain_events, 200_000, ".pftrace", (REPORT, EVENTS, EXPORT)),
    ("Windows events in one bundle", etw_bomb, 600_000, ".pftrace", (REPORT, EVENTS, WAITS, WAITS_P)),
    ("long strings", long_strings, 300_000, ".pftrace", (REPORT, EVENTS, SAMPLES, EXPORT, DETAILS_P, COMPARE, SERVE)),
    ("a chain of parents", chain_pftrace, 2000, ".pftrace", (REPORT_P, EVENTS_P, DETAILS_P, SERVE)),
    ("chosen start times", chosen_starts, 8000, ".pftrace", (REPORT, EVENTS, EXPORT, COMPARE, SERVE)),
    ("many processes", many_rows, 5000, ".pftrace", (REPORT, SAMPLES, DETAILS, COMPARE, SERVE)),
    ("empty deflate blocks", empty_blocks, 100_000, ".pftrace", (REPORT,)),
    ("priorities at the end of the range", priorities, 1000, ".pftrace", (EVENTS,)),
    ("a chain of parents", chain_etl, 2000, ".etl", (REPORT_P, EVENTS_P, SAMPLES_P, PERFETTO_P, DETAILS_P, WAITS_P, SERVE)),
    ("one id started again and again", same_pid, 5000, ".etl", (REPORT, EVENTS, DETAILS, DETAILS_P, SERVE)),
    ("one id with many lifetimes", same_pid_late_readers, 6000, ".etl", (EVENTS, EXPORT)),
    ("a bit map", bit_map, 7500, ".etl", (EVENTS, REPORT)),
    ("many kinds", many_kinds, 8000, ".etl", (REPORT, TEXT, EVENTS)),
    ("threads far apart", many_threads, 2000, ".etl", (REPORT, EVENTS, DETAILS, SERVE)),
    ("large buffers", large_buffers, 60, ".etl", (REPORT, EVENTS)),
    ("dense buffers", dense_buffers, 200, ".etl", (REPORT, EVENTS)),
    ("a wide table", wide_table, 1000, ".etl", (EXPORT + ("--typed",), EVENTS)),
]


@cases([(f"{name} ({suffix[1:]})", *rest[:2], suffix, rest[3]) for name, *rest in CASES for suffix in (rest[2],)])
def cost_grows_with_the_file(make, size, suffix, commands):
    grows_linearly(make, size, suffix, commands)


main()
