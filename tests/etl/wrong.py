# SPDX-License-Identifier: MIT
"""Recordings that were once read wrongly: a false value is worse than a missing one."""
import os

from commandkit import run
from etlkit import make_etl
from lib import check, check_eq, check_in, json_lines, main, temp_dir, test


def objects(kind, *arguments, more=()):
    with temp_dir() as folder:
        path = os.path.join(folder, "x.etl")
        make_etl(kind, path, *more)
        return json_lines(run([*arguments, "--json", path]).out)


@test
def the_owner_of_an_event_is_the_process_that_its_payload_names():
    events = [o for o in objects("owners", "events") if o["type"] == "event"]
    named = [o for o in events if "TcpIp" in o["event"] or "TCPIP" in o["event"]]
    check_eq(len(named), 16, "network events")
    for event in named:
        check_eq((event["pid"], event["name"]), (5000, "owner.exe"), f"owner of {event['event']}")
        check_eq(event["tid"], None, f"thread of {event['event']}")
    with_header = [o for o in named if o["header_pid"] is not None]
    check(with_header, "no header has a pid")
    check_eq({(o["header_pid"], o["header_tid"]) for o in with_header}, {(4000, 4004)}, "headers")
    (read,) = [o for o in events if o["event"] == "DiskIO/Read"]
    check_eq((read["pid"], read["tid"]), (5000, 5004), "issuer of a read, by its irp")
    (write,) = [o for o in events if o["event"] == "DiskIO/Write"]
    check_eq((write["pid"], write["tid"]), (None, None), "issuer of a write that began before the recording")


@test
def counters_that_are_cleared_at_exit_are_unknown():
    found = {o["name"]: o for o in objects("cleared-counters", "report") if o["type"] == "process"}
    check_eq((found["full.exe"]["rss_bytes"], found["full.exe"]["rss_peak_bytes"], found["full.exe"]["handles"]),
             (4096, 8192, 3))
    for name in ("rss_bytes", "rss_peak_bytes", "private_bytes", "virtual_bytes", "handles", "pool_paged_bytes",
                 "faults_minor"):
        check_eq(found["cleared.exe"][name], None, name)


@test
def a_file_with_missing_or_foreign_buffers_is_not_complete():
    whole = {"damaged-zeroed": "zeros instead of buffers; the next event is at 0.0",
             "damaged-appended": "another recording begins here"}
    for kind, problem in whole.items():
        (trace,) = [o for o in objects(kind, "report") if o["type"] == "trace"]
        check_eq(trace["complete"], False, f"{kind}: complete")
        check_in(problem, trace["first_bad"])
        check(trace["first_bad_offset"] >= 8192 and trace["bad_bytes"] >= 8192, f"{kind}: {trace}")
        check(trace["duration_ns"] < 10**9, f"{kind}: {trace['duration_ns']} ns")


@test
def a_file_that_lacks_its_last_buffers_is_not_complete():
    with temp_dir() as folder:
        path = os.path.join(folder, "x.etl")
        make_etl("mixed", path, "--events", 4000, "--buffer", 8192, "--cpus", 1)
        with open(path, "rb+") as file:
            file.truncate(os.path.getsize(path) - 2 * 8192)
        (trace,) = [o for o in json_lines(run(["report", "--json", path]).out) if o["type"] == "trace"]
    check_eq(trace["complete"], False)
    check_in("2 of ", trace["first_bad"])
    check_in("buffers are missing at the end", trace["first_bad"])


if __name__ == "__main__":
    main()
