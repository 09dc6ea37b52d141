# SPDX-License-Identifier: MIT
"""Every kind of undamaged recording that make_etl can make, compared with an independent reader of the format."""
import collections
import os

from etlkit import events, make_etl, report, walk
from lib import cases, check, check_eq, main, temp_dir

KINDS = ["switches", "profile", "mixed", "bench", "windows7", "unclosed", "circular", "clock-qpc", "clock-system",
         "clock-cycles", "tracelogging", "eventsource", "metadata", "headers", "versions", "lost"]
ROWS = [(f"{kind}{' compressed' if options else ''}", kind, options) for kind in KINDS
        for options in ((), ("--compress",)) if not (kind == "circular" and options)]


@cases(ROWS)
def every_event_is_reported_once_and_in_order(kind, options):
    with temp_dir() as folder:
        path = os.path.join(folder, "made.etl")
        make_etl(kind, path, "--events", 6000, "--buffer", 8192, "--cpus", 3, *options)
        records, reported, trace = list(walk(path)), events(path, "--payload"), report(path)["trace"][0]
    # Events with a command line are shown without their bytes.
    ours = collections.Counter((e["cpu"], e["opcode"], e["version"], e["payload"]) for e in reported)
    theirs = collections.Counter((r.cpu, r.opcode, r.version & 0xFF, r.payload.hex()) for r in records)
    withheld = {r.payload.hex() for r in records if r.kind == "kernel" and r.group == 3}
    for cpu, opcode, version, payload in list((theirs - ours).elements()):
        if payload in withheld:
            theirs.subtract([(cpu, opcode, version, payload)])
            theirs.update([(cpu, opcode, version, None)])
    check_eq(ours, +theirs, "events")
    check_eq((trace["events"], trace["bad_buffers"], trace["bad_events"], trace["late"]), (len(records), 0, 0, 0),
             "events and damage")
    times = [e["t_ns"] for e in reported]
    check_eq(times, sorted(times), "times")
    # Events of one CPU are ordered by the recording's clock; messages may have no time.
    for cpu in {r.cpu for r in records}:
        mine = [e["payload"] for e in reported if e["cpu"] == cpu]
        private = [payload is None for payload in mine]
        clocked = [r for r in records if r.cpu == cpu]
        if all(r.t_raw is not None for r in clocked):
            theirs = [r.payload.hex() for r in sorted(clocked, key=lambda r: r.t_raw)]
            theirs = [None if hidden else payload for hidden, payload in zip(private, theirs)]
            check(mine == theirs, f"the events of CPU {cpu} are in another order")


main()
