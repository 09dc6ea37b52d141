# SPDX-License-Identifier: MIT
"""Twins of small public recordings, made here: what a real recording shows is shown in a clone without it, too.

A twin has the same buffers, headers, events, numbers and times as its recording, by the public description of it: the
text that Microsoft's decoder printed about it, and the documented layouts. Longer texts are made up (FREE). Where the
real recordings are available, each twin is compared with its own, event by event.
"""
import collections
import os
import struct
import uuid

from etlkit import buffer, classic_event, corpus, events, kernel_event, manifest_event, report, tracelogging
from lib import cases, check, check_eq, main, temp_dir

SYSTEM_CONFIG, WIN_SAT = "9b79ee91-b5fd-41c0-a243-4248e266e9d0", "ed54dff8-c409-4cf6-bf83-05e1e61a09c4"
MY_SOURCE = "a61ea624-4944-55fc-c2a8-37838829438d"
SOLAR_SYSTEM, RUNDOWN = "d3dd3dd4-aac2-4e2a-8dd4-a8fb61b77615", "a669021c-c450-4609-a035-5af59af4df18"
# Texts that differ from those of the recording, and where they are.
FREE = {"ModuleILPath", "ManagedPdbBuildPath", "CompressedXml", "UncompressedSize"}


def wide(*texts):
    return b"".join(text.encode("utf-16-le") + b"\0\0" for text in texts)


Header = collections.namedtuple("Header", "buffer build cpus end mode max_size buffers speed ids names bias zone boot frequency "
                                          "start pointer texts")


def log_file_header(h):
    """TRACE_LOGFILE_HEADER of the recording's own pointer size, and its two texts."""
    def date(month, day, hour):
        return struct.pack("<8H", 0, month, 0, day, hour, 0, 0, 0)

    standard, daylight = h.zone
    zone = struct.pack("<i64s", h.bias, f"@tzres.dll,-{h.names[0]}".encode("utf-16-le")) + date(*standard)
    zone += struct.pack("<i64s", 0, f"@tzres.dll,-{h.names[1]}".encode("utf-16-le")) + date(*daylight)
    zone += struct.pack("<i", -60)
    return struct.pack("<I4BIIqIIIIIIII" + ("QQ" if h.pointer == 8 else "II") + "172s4xqqqII", h.buffer, *h.build[:4], h.build[4],
                       h.cpus, h.end, 156250, h.max_size, h.mode, h.buffers, 1, h.pointer, 0, h.speed, *h.ids, zone, h.boot,
                       h.frequency, h.start, 1, 0) + wide(*h.texts)


def packed(data):
    """A compressed buffer: MS-XCA with literal bytes only."""
    body = b"".join(bytes(4) + data[i:i + 32] for i in range(0x48, len(data), 32))
    header = bytearray(data[:0x48])
    filled = struct.unpack_from("<I", header, 0x30)[0]
    struct.pack_into("<I", header, 0, 0x48 + len(body))
    struct.pack_into("<H", header, 0x34, 0x60)
    return bytes(header[:0x30]) + struct.pack("<I", filled) + bytes(header[0x34:]) + body


def exact(content, **options):
    """A buffer without room behind its events."""
    size = 0x48 + sum(len(event) + -len(event) % 8 for event in content)
    return buffer(content, size, **options)


# ------------------------------------------------------------------------- the twins


def primitive_types():
    """Five events of every type that a program can log, 64 bit."""
    t0, ids = 2603587641205, {"pid": 39096, "tid": 29376}
    header = Header(8192, (10, 0, 1, 5, 19043), 8, 132756731820557985, 0, 0, 2, 2304, (10, 7), (352, 351), -120,
                    ((10, 5, 4), (3, 5, 3)), 132754128145000000, 10_000_000, 132756731728578510, 8,
                    ("solar_system", "C:\\primitive-types_000004.etl"))
    first = [kernel_event(0, 0, 2, t0, log_file_header(header), **ids), kernel_event(0, 80, 2, t0, bytes(48), **ids)]
    fields = b"".join(name + b"_type\0" + kind for name, kind in (
        (b"string", b"\2"), (b"boolean", b"\x84\3"), (b"char", b"\x84\2"), (b"int16", b"\5"), (b"int32", b"\7"), (b"uint16", b"\6"),
        (b"uint32", b"\x08"), (b"int64", b"\x0a"), (b"uint64", b"\x0a"), (b"guid", b"\x0f"), (b"file_time", b"\x11"),
        (b"system_time", b"\x12")))
    planets = [("Mercury", 51, "0ad614c4-0ef4-4225-8013-f44f37cb0397", 2603617064262, 35, 799),
               ("Venus", 95, "e04ff801-9ea3-494f-a10e-8ef833e9099f", 2603621453799, 36, 239),
               ("Earth", 65, "c7a6c80e-f2a6-4220-ab98-d7c21a58f9fb", 2603625781226, 36, 671),
               ("Mars", 29, "0a922cee-67c1-4108-b39d-b132e47033c4", 2603629545285, 37, 48),
               ("Jupiter", 69, "bb11b97b-1110-4eb6-bc33-fd71219d322e", 2603633907722, 37, 484)]
    logged = []
    for number, (name, size, guid, t_raw, second, ms) in enumerate(planets):
        when = 132756731400000000 + second * 10_000_000 + ms * 10_000
        payload = name.encode() + b"\0" + struct.pack("<BchiHIqQ", number in (1, 4), name[:1].encode(), -size, -2 * size, size,
                                                      2 * size, -4 * size, 4 * size)
        payload += uuid.UUID(guid).bytes_le + struct.pack("<q8H", when, 2021, 9, 4, 9, 14, 59, second, ms)
        logged.append(manifest_event(SOLAR_SYSTEM, 0, t_raw, payload, pid=33984, tid=21768,
                                     extended=tracelogging(b"solar_system", b"PrimitiveTypesTest", fields)))
    return buffer(first, 8192, kind=4, flags=0x21) + buffer(logged, 8192, cpu=2, flags=0x21)


def self_describing():
    """Merged by a relogger: the machine's volumes, its rating, and an event with a struct; compressed."""
    t0, t1, ids = 6459791009101, 6459824663701, {"pid": 10460, "tid": 112044}
    header = Header(65536, (10, 0, 2, 0, 22000), 12, 132949636386242009, 67174401, 800, 3, 3192, (0, 0), (212, 211), 480,
                    ((11, 1, 2), (3, 2, 2)), 132943176705000000, 10_000_000, 132949636352722435, 8, ("Relogger", "[multiple files]"))
    first = kernel_event(0, 0, 2, t0, log_file_header(header), **ids)

    def config(opcode, t_raw, payload, guid=SYSTEM_CONFIG):
        return classic_event(guid, opcode, 0, t_raw, payload, pid=0, tid=0)

    device = "\\Device\\HarddiskVolume"
    volumes = [("\\??\\", ""), ("\\DriverStores\\BSPDRIVERS\\", "\\\\?\\GLOBALROOT\\DriverStores\\BSPDRIVERS\\"),
               ("\\SystemRoot\\", "C:\\WINDOWS\\"), (device + "1\\", "D:\\"), (device + "4\\", "C:\\"),
               ("\\Device\\LanmanRedirector\\", "\\\\"), ("\\Device\\Mup\\", "\\\\"), ("\\Device\\vmsmb\\", "\\\\?\\VMSMB\\"),
               ("\\GLOBAL??\\", "\\\\?\\"), ("\\\\", "\\\\")]
    machine = [kernel_event(0, 80, 2, t0, bytes(48), **ids),
               config(33, t0, wide("C:\\WINDOWS\\system32", "C:\\WINDOWS\\")), config(34, t0, wide(device + "5\\")),
               config(34, t0, wide(device + "2\\")), *(config(35, t0, wide(*row)) for row in volumes),
               kernel_event(0, 80, 2, t1, bytes(48), **ids),
               *(config(opcode, t1, struct.pack("<II", 1, 8) + b"unpacked", WIN_SAT) for opcode in (33, 35, 37)),
               config(32, t1, struct.pack("<q", 132778662370000000) +
                      wide("22000.613.amd64fre.co_release.210604-1628", "Windows 10 Enterprise")),
               config(37, t1, struct.pack("<HIHII", 0x265, 22000, 10, 3, 0))]
    logged = manifest_event(MY_SOURCE, 3, 6459804190760, wide("Hello", "World!"), pid=111592, tid=52284,
                            extended=tracelogging(b"MySource", b"TestEvent", b"a\0\x98\2b\0\1c\0\1"))
    return buffer([first], 1024, kind=4, flags=1) + packed(exact(machine)) + packed(exact([logged], cpu=1))


def small():
    """One event of the .NET runtime, 32 bit, from a session with names in its header; compressed."""
    header = Header(65536, (10, 0, 2, 0, 10586), 4, 131159502220688637, 67178497, 0, 2, 3193, (10, 6), (212, 211), 480,
                    ((11, 1, 2), (3, 2, 2)), 131158908134934274, 3117777, 131159502220379266, 4,
                    ("PerfWatsonGCHeapETLSession688", "ReloggedFile.ETL"))
    first = kernel_event(0, 0, 2, 185227195741, log_file_header(header), pointer_size=4, pid=2092, tid=2256)
    pdb = uuid.UUID("db98eae8-8abc-40a8-b375-433fe44caf70").bytes_le
    payload = struct.pack("<QQII", 398262568, 332816960, 8, 0) + wide("C:\\twin\\Services.Client.dll", "") + struct.pack("<H", 39)
    payload += pdb + struct.pack("<I", 1) + wide("C:\\twin\\obj\\Services.Client.pdb") + bytes(16 + 4) + wide("")
    logged = manifest_event(RUNDOWN, 154, 185227292196, payload, version=2, opcode=36, pid=688, tid=4336, pointer_size=4)
    return buffer([first], 512, kind=4, flags=1) + packed(exact([logged]))


TWINS = [("perfview-primitive-types", primitive_types), ("perfview-selfdescribing", self_describing), ("perfview-small", small)]


def written(folder, make):
    path = os.path.join(folder, "twin.etl")
    with open(path, "wb") as file:
        file.write(make())
    return path


def comparable(path):
    """[event] with the texts of FREE replaced by their type."""
    found = events(path)
    for event in found:
        event["fields"] = {name: type(value).__name__ if name in FREE else value for name, value in (event["fields"] or {}).items()}
    return found


PLANET = {"string_type": "Mars", "boolean_type": False, "char_type": ord("M"), "int16_type": -29, "int32_type": -58, "uint16_type": 29,
          "uint32_type": 58, "int64_type": (1 << 64) - 116, "uint64_type": 116, "guid_type": "0a922cee-67c1-4108-b39d-b132e47033c4",
          "file_time_type": "2021-09-09T14:59:37.0480000Z", "system_time_type": "2021-09-09T14:59:37.0480000Z"}
# Of one event: its number, its name, process, CPU, µs after the first event, fields; and of the trace.
SHOWN = {"perfview-primitive-types": (5, "solar_system/PrimitiveTypesTest", 33984, 2, 4190408, PLANET, (19043, 8, 8, False, 7)),
         "perfview-selfdescribing": (15, "MySource/TestEvent", 111592, 1, 1318165, {"a": {"b": "Hello", "c": "World!"}},
                                     (22000, 12, 8, True, 22)),
         "perfview-small": (1, "Microsoft-Windows-DotNETRuntimeRundown/Loader/ModuleDCStop", 688, 0, 30937,
                            {"ModuleFlags": "Manifest", "ClrInstanceID": 39, "ManagedPdbAge": 1,
                             "ManagedPdbSignature": "db98eae8-8abc-40a8-b375-433fe44caf70"}, (10586, 4, 4, True, 2))}


@cases([(name, name, make) for name, make in TWINS])
def a_twin_shows_what_is_published_about_its_recording(name, make):
    number, wanted, pid, cpu, after_us, fields, facts = SHOWN[name]
    with temp_dir() as folder:
        path = written(folder, make)
        found, trace = comparable(path), report(path)["trace"][0]
    event = found[number]
    check_eq((f"{event['provider']}/{event['event']}", event["pid"], event["cpu"]), (wanted, pid, cpu), "event, process, CPU")
    check_eq((event["t_ns"] - found[0]["t_ns"]) // 1000, after_us, "time since the first event in µs")
    check_eq({name: event["fields"].get(name) for name in fields}, fields, "fields")
    check_eq(tuple(trace[key] for key in ("os_build", "cpus", "pointer_size", "compressed", "events")), facts, "facts of the trace")
    check_eq([trace[key] for key in ("bad_buffers", "bad_events", "bad_bytes", "late", "lost")], [0] * 5, "damage")


@cases([(name, name, make) for name, make in TWINS])
def a_twin_equals_its_recording(name, make):
    real = corpus("etl", name + ".etl")
    with temp_dir() as folder:
        path = written(folder, make)
        twin, wanted = comparable(path), comparable(real)
        ours, theirs = report(path), report(real)
    check_eq(len(twin), len(wanted), "events")
    for number, (one, other) in enumerate(zip(twin, wanted)):
        check_eq(one, other, f"event {number}")
    for found in (ours, theirs):
        trace = found["trace"][0]
        trace["files"] = [{key: value for key, value in one.items() if "path" not in key and "bytes" not in key} for one in trace["files"]]
        del trace["file_bytes"]
    check(ours["trace"] == theirs["trace"], f"facts: {ours['trace']} instead of {theirs['trace']}")
    check_eq(ours["class"], theirs["class"], "classes of events")


main()
