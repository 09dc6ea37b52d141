# SPDX-License-Identifier: MIT
"""Alerts in a recording: the same at every sample rate, and the samples are the same with and without alerts."""
import os

from etlkit import make_etl
from lib import check, check_eq, json_lines, main, run, temp_dir, test


def stat(path, *options):
    result = run(["stat", "--json", "-q", *options, path])
    check_eq(result.code, 0, f"exit code ({result.err})")
    return json_lines(result.out)


def alerts(objects):
    return sorted((o["pid"], o["from_ns"], o["to_ns"], o["value"], o["peak"], o["thread_count"])
                  for o in objects if o["type"] == "alert" and o["ended"])


@test
def the_sample_rate_does_not_change_alerts():
    with temp_dir() as folder:
        path = os.path.join(folder, "x.etl")
        make_etl("switches", path)
        found = [alerts(stat(path, "--hz", hz, "--alert", "cpu_percent>50 for 2ms")) for hz in (1, 10, 1000)]
    check(len(found[0]) > 5, f"only {len(found[0])} alerts")
    check_eq(found[0], found[1], "alerts at 1 and 10 Hz")
    check_eq(found[1], found[2], "alerts at 10 and 1000 Hz")


@test
def samples_have_the_same_counts_with_and_without_alerts():
    def counts(objects):
        return {(o["pid"], o["start_ns"], o["t_ns"]): (o["dt_ns"], o["cpu_ns"], o["switches_voluntary"], o["runq_wait_ns"])
                for o in objects if o["type"] == "sample"}
    with temp_dir() as folder:
        path = os.path.join(folder, "x.etl")
        make_etl("mixed", path)
        check_eq(counts(stat(path, "--alert", "cpu_percent>50 for 2ms")), counts(stat(path)), "samples")


@test
def excluded_processes_are_absent_from_samples_alerts_and_totals():
    with temp_dir() as folder:
        path = os.path.join(folder, "x.etl")
        make_etl("switches", path)
        everything = stat(path)
        objects = stat(path, "--exclude-system", "--exclude-name", "inf*", "--alert", "cpu_percent>50 for 2ms")
        busiest = stat(path, "--top", "1")
    def pids(found):
        return {o["pid"] for o in found if "pid" in o}, {o.get("name") for o in found}
    check("inference.exe" in pids(everything)[1], "the recording lacks it")
    check("inference.exe" not in pids(objects)[1] and not {0, 4} & pids(objects)[0], "the excluded processes are present")

    def total(found):
        return sum(o["cpu_ns"] for o in found if o["type"] == "sample")
    check_eq(total(busiest), total(everything), "CPU time with the rest summed up")
    rest = [o for o in busiest if o.get("name") == "other"]
    check(rest and all(o["pid"] is None and o["processes"] > 0 for o in rest), "no rest")


main()
