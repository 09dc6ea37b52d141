# SPDX-License-Identifier: MIT
"""Recordings that were once read wrongly: a false value is worse than a missing one."""
import collections
import csv
import io
import os

from commandkit import run
from etlkit import events, make_etl, recording, report
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


STATES = ["decoded", "decoded", "partly", "partly", "raw", "raw"]  # the header of the file, then those of make_etl


@test
def every_output_has_the_state_of_an_event():
    with recording("states") as path:
        check_eq([o["state"] for o in events(path)], STATES, "events")
        lines = run(["events", path]).out.splitlines()
        check_eq([("raw" if " (raw)" in line else "partly" if " (partly)" in line else "decoded") for line in lines
                  if "/" in line], STATES, "table")
        by_type = collections.Counter()
        for o in json_lines(run(["events", "--json", "--count-by-type", path]).out):
            by_type[o["state"]] += o["count"]
        # Types are counted without decoding fields: the id that lacks its end has a type that is decoded.
        check_eq(by_type, {"decoded": 3, "partly": 1, "raw": 2}, "count by type")
        for more in ([], ["--fields"], ["--typed"], ["--payload"]):
            table = list(csv.DictReader(io.StringIO(run(["export", "-q", "-f", "csv", *more, path]).out)))
            check_eq([row["state"] for row in table], STATES if more else by_kind(STATES), f"CSV {more}")
        check_eq([o["state"] for o in json_lines(run(["export", "-q", "-f", "jsonl", path]).out)], STATES, "JSON Lines")
        table = csv.DictReader(io.StringIO(run(["export", "-q", "-f", "csv", "--table", "classes", path]).out))
        check_eq(sorted(row["state"] for row in table), ["decoded", "decoded", "partly", "raw", "raw"], "classes")


def by_kind(states):
    """Without fields nothing shows that an event lacks its end."""
    return [states[0], states[1], "decoded", *states[3:]]


@test
def events_before_the_header_have_their_own_time():
    hour = 3600 * 10**9
    with recording("clock-set-back") as path:
        found = events(path)
        start, = [o["t_ns"] for o in found if o["event"] == "EventTrace"]
        check_eq([o["t_ns"] - start for o in found],
                 [-hour, 10**9 - hour, 2 * 10**9 - hour, 0, 10**9 + 100 * 1000], "times")
        (trace,) = report(path)["trace"]
        check_eq((trace["clock_set_back_ns"], trace["complete"]), (hour, True))
        check_in("set back by 3600 s", run(["report", path]).out)
        table = list(csv.DictReader(io.StringIO(run(["export", "-q", "-f", "csv", path]).out)))
        check_eq([int(row["t_ns"]) for row in table], [o["t_ns"] for o in found], "CSV")
        check_eq(run(["export", "-q", "-f", "jsonl", path]).out, run(["events", "--json", path]).out, "JSON Lines")


if __name__ == "__main__":
    main()
