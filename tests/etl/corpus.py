# SPDX-License-Identifier: MIT
"""Every real recording: nothing unreadable, every event once, in order, with its bytes.

Each is checked against the table of recordings and, event by event, against the independent reader in etlkit.
"""
import collections
import hashlib
import re

from etlkit import NO_ID, check_payload, corpus, corpus_rows, events, in_time_order, report, walk
from lib import cases, check, check_eq, main, test

ROWS = corpus_rows()
FILES = [(row["file"], row) for row in ROWS]

# The table's names of kernel events: (class, opcode).
KERNEL = {"EventTrace/Header": (0, 0), "PartitionInfo": (0, 80), "Process/DCStart": (3, 3),
          "Process/DCEnd": (3, 4), "Process/End": (3, 2), "Process/Terminate": (3, 11),
          "Image/Load(proc)": (3, 10), "Image/DCStart": (0x14, 3), "Image/DCEnd": (0x14, 4),
          "Image/Unload": (0x14, 2), "Thread/Start": (5, 1), "Thread/End": (5, 2),
          "Thread/DCStart": (5, 3), "Thread/DCEnd": (5, 4), "SampledProfile": (0xF, 46),
          "StackKeyUser": (0x18, 38), "StackKeyKernel": (0x18, 37), "StackKeyDelete": (0x18, 35),
          "FileIo/FileRundown": (4, 36)}
# The table's names of other events.
PROVIDERS = {"KTC-SysConfigEx": "9b79ee91-b5fd-41c0-a243-4248e266e9d0",
             "KTC-ImageId": "b3e675d7-2554-4f18-830b-2762732560de",
             "KTC-EventMetadata": "bbccf6c1-6cd1-48c4-80ff-839482e37671",
             "KTC-WinSAT": "ed54dff8-c409-4cf6-bf83-05e1e61a09c4",
             "ImageLoad(MOF)": "2cb15d1d-5fc1-11d2-abe1-00a0c911f518",
             "Process(MOF)": "3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c",
             "MW-DotNETRuntime": "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4",
             "MW-DotNETRuntimeRundown": "a669021c-c450-4609-a035-5af59af4df18",
             "MW-PowerShell": "a0c1853b-5c40-4b15-8766-3cf1c58f985a",
             "MW-HttpService": "dd5ef90a-6398-47a4-ad34-4dcecdef795f",
             "MW-Kernel-Network": "7dd42a49-5329-4832-8dfd-43d979153a88",
             "MW-Kernel-Process": "22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716",
             "MW-RPC": "6ad52b32-d609-4be9-ae07-ce8dae937e39",
             "Lxcore": "0cd1c309-0878-4515-83db-749843b3f5c9",
             "Beats-ETW-TestProvider": "06f0e00e-422a-4987-922b-2ec13e281ea4",
             "PerfView-EventSource": "a8a71ac1-040f-54a2-07ca-00a89b5ab761"}


def key(record):
    """The key of an event kind: its origin and its number."""
    if record.kind == "kernel":
        return record.group, record.opcode
    return record.guid, record.opcode if record.kind == "classic" else record.id


def wanted_classes(row):
    """[(key, count)] that the table lists for a file."""
    for part in row["top_event_classes"].split("; "):
        name, count = part.rsplit("=", 1)
        if name in KERNEL:
            yield KERNEL[name], int(count)
            continue
        provider, number = re.sub(r"^(mof|tlg) ", "", name).rsplit("/", 1)
        yield (PROVIDERS.get(provider, provider), int(number)), int(count)


@test
def the_recordings_match_the_table():
    if not ROWS:
        corpus("MANIFEST.tsv")
    for row in ROWS:
        with open(corpus("etl", row["file"]), "rb") as file:
            check_eq(hashlib.sha256(file.read()).hexdigest(), row["sha256"], row["file"])


@cases(FILES)
def the_independent_reader_agrees_with_the_table(row):
    counts = collections.Counter(key(record) for record in walk(corpus("etl", row["file"])))
    check_eq(sum(counts.values()), int(row["events"]), "events")
    for which, count in wanted_classes(row):
        check_eq(counts[which], count, f"events of {which}")


@cases(FILES)
def a_report_has_the_facts_of_the_table(row):
    found = report(corpus("etl", row["file"]))
    trace = found["trace"][0]
    version = row["windows_version"].split()[0]
    check_eq((trace["os"], trace["os_build"]), (f"Windows {version}", int(version.split(".")[2])), "system")
    check_eq(trace["cpus"], int(row["ncpu"]), "CPUs")
    check_eq(trace["pointer_size"], int(row["arch"].split("ptr")[1]), "pointer size")
    check_eq(trace["clock"], "qpc", "clock")
    check_eq(trace["compressed"], row["compressed"] == "yes", "compressed")
    lost = re.search(r"lost ev (\d+) buf (\d+)", row["notes"])
    check_eq((trace["lost"], trace["lost_buffers"]), (int(lost[1]), int(lost[2])) if lost else (0, 0), "lost")
    check_eq([trace[n] for n in ("bad_buffers", "bad_events", "bad_bytes", "late")], [0, 0, 0, 0], "damage")
    check_eq(trace["events"], int(row["events"]), "events")
    check_eq(sum(c["count"] for c in found["class"]), int(row["events"]), "events in classes")


def check_ids(record, event, where):
    """The IDs are those of the header, or those of the subject of the event, which are then in the payload."""
    about = {value for name, value in (event["fields"] or {}).items()
             if re.search("process|thread|pid|ttid", name, re.I)}
    if record.tid not in (NO_ID, event["tid"]):
        check(event["tid"] is None or event["tid"] in about, f"{where}: tid is {event['tid']}, not {record.tid}")
    elif record.pid not in (NO_ID, event["pid"]):
        check(event["pid"] in about, f"{where}: pid is {event['pid']}, not {record.pid}")


@cases(FILES)
def every_event_is_reported_once_in_order_with_its_bytes(row):
    path = corpus("etl", row["file"])
    records = in_time_order(walk(path))
    reported = events(path, "--payload")
    check_eq(len(reported), len(records), "events")
    for number, (record, event) in enumerate(zip(records, reported)):
        where = f"event {number} at {record.offset:#x}"
        check_eq(event["cpu"], record.cpu, where + ": cpu")
        check_eq((event["opcode"], event["version"]), (record.opcode, record.version & 0xFF),
                 where + ": opcode, version")
        check_payload(event, record.payload, where)
        check_ids(record, event, where)
    times = [event["t_ns"] for event in reported]
    check_eq(times, sorted(times), "times")


@cases(FILES)
def the_classes_of_a_report_match_its_events(row):
    path = corpus("etl", row["file"])
    reported = collections.Counter((e["provider"], e["event"], e["id"], e["opcode"], e["version"]) for e in events(path))
    classes = {(c["provider"], c["event"], c["id"], c["opcode"], c["version"]): c["count"]
               for c in report(path)["class"]}
    check_eq(classes, dict(reported), "classes")


main()
