# SPDX-License-Identifier: MIT
"""report, events and stat on generated recordings: the exact bytes.

The recordings are made for each test (make_etl gives the same bytes for the same arguments); in the output only the
version and the program's own cost are masked.
"""
import os
import re

from etlkit import make_etl
from lib import cases, check_eq, check_golden, main, run, temp_dir, test

# name: (kind, arguments of make_etl)
FILES = {
    "mixed": ("mixed", "--events", 4000, "--seed", 3),
    "profile": ("profile", "--events", 4000, "--seed", 4),
    "switches": ("switches", "--events", 3000, "--seed", 5, "--cpus", 2),
    "lost": ("lost",),
    "truncated": ("truncated", "--events", 1000),
    "tracelogging": ("tracelogging",),
    "eventsource": ("eventsource",),
    "metadata": ("metadata",),
}


def mask(text):
    text = re.sub(r'"version":"\d+\.\d+\.\d+"', '"version":"VERSION"', text)
    return re.sub(r'"(self_\w+)":[\d.]+', r'"\1":COST', text)


def output(name, *arguments):
    with temp_dir() as folder:
        kind, *more = FILES[name]
        make_etl(kind, os.path.join(folder, name + ".etl"), *more)
        result = run([*arguments, name + ".etl"], cwd=folder)
    check_eq(result.code, 0, f"exit code ({result.err})")
    return mask(result.out)


@cases([(name, name) for name in ("mixed", "profile", "switches", "lost", "truncated", "tracelogging")])
def the_text_report_matches_the_golden_file(name):
    check_golden(output(name, "report"), f"golden/etl/{name}.report")


@cases([(name, name) for name in ("mixed", "profile", "lost")])
def the_json_report_matches_the_golden_file(name):
    check_golden(output(name, "report", "--json", "--threads", "--images", "-n", "svchost,code"),
                 f"golden/etl/{name}.report.jsonl")


@test
def the_csv_report_matches_the_golden_file():
    check_golden(output("mixed", "report", "--csv", "--cmdline"), "golden/etl/mixed.report.csv")


@cases([(name, name) for name in ("tracelogging", "eventsource", "metadata", "lost")])
def the_events_match_the_golden_file(name):
    check_golden(output(name, "events"), f"golden/etl/{name}.events")
    check_golden(output(name, "events", "--json", "--payload"), f"golden/etl/{name}.events.jsonl")


@test
def filtered_events_match_the_golden_file():
    check_golden(output("mixed", "events", "--from", "100us", "--limit", 60), "golden/etl/mixed.events")
    check_golden(output("mixed", "events", "--count-by-type"), "golden/etl/mixed.count")


@cases([(name, name, hz) for name, hz in (("mixed", 100), ("profile", 1), ("lost", 1000))])
def the_samples_match_the_golden_file(name, hz):
    check_golden(output(name, "stat", "--json", "--hz", hz, "-q"), f"golden/etl/{name}.stat.jsonl")


main()
