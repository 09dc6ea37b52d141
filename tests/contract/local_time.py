#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tables show local time with its offset, data are in UTC. Wine takes the zone from the same variable."""
import os
import re

from commandkit import UNDER_WINE
from etlkit import recording
from lib import cases, check, check_eq, check_in, main, run, test

# Nine hours ahead of UTC. With its file where there is one: a confined program cannot open it any more.
HAS_FILE = os.path.exists("/usr/share/zoneinfo/Asia/Tokyo") and not UNDER_WINE
ZONE, OFFSET = "Asia/Tokyo" if HAS_FILE else "JST-9", "+09:00"
TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"


def both(*arguments):
    """The output in UTC and in the zone."""
    found = []
    for zone in ("UTC", ZONE):
        result = run(arguments, env={**os.environ, "TZ": zone})
        check_eq(result.code, 0, f"{zone}: exit code ({result.err})")
        found.append(result.out)
    return found


def times(text):
    return re.findall(TIME + r" (?:UTC|[+-]\d\d:\d\d)", text)


@cases([("report", "report"), ("stat", "stat", "--hz", 10), ("windows", "stat", "--hz", 10, "--window", "10ms")])
def a_table_has_local_time(command, *arguments):
    with recording("mixed", "--events", 4000, "--seed", 3) as path:
        utc, local = both(command, *arguments, "-q", path)
    check(times(utc), f"no time in {utc[:300]}")
    check_eq(len(times(utc)), len(times(local)), "number of times")
    for before, after in zip(times(utc), times(local)):
        check_eq((before[-3:], after[-6:]), ("UTC", OFFSET), "offset")
        check_eq((int(before[11:13]) + 9) % 24, int(after[11:13]), f"hour of {before}, {after}")
        check_eq(before[13:19], after[13:19], "minutes and seconds")


@cases([("report", "report", "--json"), ("samples", "stat", "--json", "--hz", 10), ("csv", "stat", "--csv", "--hz", 10),
        ("events", "events", "--limit", 50), ("events as JSON", "events", "--json", "--limit", 50)])
def data_are_in_utc(command, *arguments):
    with recording("mixed", "--events", 4000, "--seed", 3) as path:
        utc, local = both(command, *arguments, "-q", path)
    mask = re.compile(r'"self_\w+":[\d.]+')
    check_eq(mask.sub("", local), mask.sub("", utc), "data")


@test
def a_live_table_has_local_time():
    _, local = both("stat", "-a", "--source", "poll", "--hz", 5, "--duration", "0.6", "-q")
    check_in(OFFSET, times(local)[0], "time of the first block")


main()
