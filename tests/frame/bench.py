# SPDX-License-Identifier: MIT
"""The benchmarks must not flatter: their verdicts, their reference values and the exit of their programs."""
import json
import os
import re
import subprocess
import sys
import tempfile
import time

from lib import BUILD, ROOT, cases, check, check_eq, check_in, main, skip, test

sys.path.insert(0, os.path.join(ROOT, "bench"))
sys.dont_write_bytecode = True
# `lib` is already the tests' own module; the bench's package is imported under its folder's name.
import importlib.util  # noqa: E402


def load_package(name):
    folder = os.path.join(ROOT, "bench", "lib")
    spec = importlib.util.spec_from_file_location(
        name, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder])
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


load_package("benchlib")
accuracy = importlib.import_module("benchlib.accuracy")
figures = importlib.import_module("benchlib.figures")
devices = importlib.import_module("benchlib.devices")
nvml = importlib.import_module("benchlib.nvml")


def program(name):
    path = os.path.join(BUILD, "bench", name)
    if not os.access(path, os.X_OK):
        skip(f"bench/{name} is not built")
    return path


@cases([
    ("under the bar", [1, 2, 3], {"bar": 2.5}, "pass"),
    ("on the bar", [1, 2, 3], {"bar": 2}, "MISS"),
    ("over the bar", [1, 3, 9], {"bar": 2}, "MISS"),
    ("nothing measured", [], {"bar": 2}, "not measured"),
    ("no bar", [1], {}, ""),
    ("a lower limit that is reached", [10, 10], {"bar": 10, "at_least": True}, "pass"),
    ("one bad repeat does not move the median", [10, 10, 9], {"bar": 10, "at_least": True}, "pass"),
    ("one bad repeat counts where the worst does", [10, 10, 9],
     {"bar": 10, "at_least": True, "worst": True}, "MISS"),
    ("one loss counts", [0, 0, 1], {"bar": 1, "worst": True}, "MISS"),
    ("over the bar by less than can be resolved", [1.006], {"bar": 1.005, "resolution": 0.002},
     "not resolved"),
    ("over the bar by more than can be resolved", [1.01], {"bar": 1.005, "resolution": 0.002}, "MISS"),
])
def a_verdict_follows_the_values(values, options, want):
    check_eq(figures.Row("row", "unit", values, **options).verdict, want, "verdict")


@test
def programs_that_the_accuracy_section_needs_are_built_with_the_bench():
    """`./dev accuracy` builds no tests: a program that only tests build would leave the table empty."""
    with open(os.path.join(ROOT, "bench", "lib", "amounts.py"), encoding="utf-8") as file:
        needed = set(re.findall(r'built\(bench, "(\w+)"\)', file.read()))
    check(needed >= {"amounts", "make_etl", "etwatch_emulated"}, f"only {needed} found")
    with open(os.path.join(ROOT, "bench", "meson.build"), encoding="utf-8") as file:
        made = file.read()
    for name in needed:
        check_in(f"executable('{name}'", made, "bench/meson.build")


@test
def every_empty_cell_of_the_accuracy_has_a_reason():
    amounts = importlib.import_module("benchlib.amounts")
    way = {"exactness": "unavailable", "how": "no source"}
    known = {"exactness": "exact", "how": "measured"}
    table = {"a_bytes": dict.fromkeys(("ebpf", "etl", "etw", "poll-linux"), way),
             "b": dict.fromkeys(("ebpf", "etl", "etw", "poll-linux"), known)}
    lines = amounts.grid({("b", "ebpf"): [0.0]}, {"etw": "it is not built"}, table)
    cells = [line.split() for line in lines[1:3]]
    check_eq([cells[0][0], cells[0].count("-"), cells[1].count("-")], ["a_bytes", len(cells[0]) - 1, len(cells[1]) - 2],
             "cells")
    text = "\n".join(lines[3:])
    for words in ("no source: ebpf: a_bytes", "it is not built: etw: a_bytes b",
                  "psutil does not have it: psutil: a_bytes b"):
        check_in(words, text, "reasons")


@test
def a_pass_is_not_claimed_where_a_miss_could_not_be_seen():
    row = figures.Row("row", "times", [1.001], bar=1.005, resolution=0.02)
    row.blind = True
    check_eq(row.verdict, "not resolved", "verdict")


@test
def the_interval_of_the_median_contains_the_median_and_narrows():
    few, many = list(range(11)), [x % 11 for x in range(1100)]
    low, high = figures.median_interval(few)
    check(low <= 5 <= high, "few values")
    narrow_low, narrow_high = figures.median_interval(many)
    check(narrow_high - narrow_low < high - low, "more values must narrow the interval")


@test
def a_missing_peer_is_shown_without_a_value():
    section = figures.Section("s", "title")
    section.add("peer", "%", [], note="not installed")
    check_in("not installed", section.table())
    check("median" not in section.as_json()["rows"][0], "a value without a measurement")


def truth_of(*points):
    truth = accuracy.Truth()
    truth.threads["0"] = list(points)
    truth.close()
    return truth


WINDOW = accuracy.WINDOW_NS


@test
def a_window_without_a_sample_counts_as_zero():
    truth = truth_of((0, 0), (4 * WINDOW, 4 * WINDOW))  # ran the whole time
    seen = {1 * WINDOW: (WINDOW, WINDOW), 3 * WINDOW: (WINDOW, WINDOW), 4 * WINDOW: (WINDOW, WINDOW)}
    errors = accuracy.window_errors(seen, truth, False)
    check_eq([round(e) for e in errors], [0, 100, 0, 0], "errors")


@test
def time_in_the_wrong_window_is_an_error():
    truth = truth_of((0, 0), (WINDOW, WINDOW), (2 * WINDOW, WINDOW))
    seen = {1 * WINDOW: (WINDOW, WINDOW // 2), 2 * WINDOW: (WINDOW, WINDOW // 2)}
    check_eq([round(e) for e in accuracy.window_errors(seen, truth, False)], [50, 50], "errors")


class Followed:
    """What a follower of the driver saw: 100 W, and a counter that is read each 20 ms and updated each 100 ms."""

    def __init__(self, counter_watts):
        self.power = [(100 + i * 0.02, 100.0) for i in range(600)]
        self.counter = [(100 + i * 0.02, counter_watts * (i // 5) * 0.1) for i in range(600)]


def energy_rows(joules, counter_watts):
    section = figures.Section("s", "title")
    reading = {"energy_uj": joules * 1e5, "dt_ns": 10**9}
    devices.compare_energy(section, [{**reading, "t_ns": (102 + i) * 10**9} for i in range(10)], Followed(counter_watts))
    return {row.name.split(", ")[0]: row for row in section.rows}


@test
def energy_is_compared_over_the_window_that_was_measured():
    check_eq([round(nvml.integral(Followed(100).power, *window), 6) for window in ((101, 103), (101.01, 101.03))], [200, 2])
    rows = energy_rows(1000, 100)
    check_eq({row.verdict for row in rows.values()} - {""}, {"pass"}, "equal energy")
    check(abs(rows["energy: time between two updates of the counter"].median - 100) < 1e-6, "step of the counter")
    check(max(row.median for row in rows.values() if row.bar) < 1e-6, "a difference where there is none")
    check_eq(energy_rows(1030, 100)["energy: against the integral of the driver's power samples"].verdict, "MISS")


@test
def a_counter_that_differs_from_the_drivers_power_is_shown_as_the_drivers_own():
    rows = energy_rows(1000, 103)
    own = rows["energy: the counter against the integral of the samples"].median
    check(abs(own - 3) < 0.01, f"the driver's own difference is {own}")


@test
def the_pattern_logs_about_the_requested_time():
    with tempfile.TemporaryDirectory() as folder:
        prefix = os.path.join(folder, "truth")
        subprocess.run([program("pattern"), "--log", prefix, "--seconds", "1", "--on-us", "2000",
                        "--off-us", "8000"], input="go\n", text=True, check=True,
                       stdout=subprocess.DEVNULL)
        truths = accuracy.read_truth(prefix)
    (truth,) = truths.values()
    times, values = truth.curves[0].times, truth.curves[0].values
    check(times == sorted(times) and values == sorted(values), "both clocks only go forward")
    # At most 2 ms in 10; less on a machine that had no time for it.
    check(0 < values[-1] - values[0] <= 0.25 * 1e9, f"{values[-1] - values[0]} ns in a second")


@test
def a_burst_makes_the_requested_processes_and_reports_their_cost():
    with tempfile.NamedTemporaryFile("r") as pids:
        out = subprocess.run([program("burst"), "--count", "37", "--pids", pids.name], input="go\n",
                             text=True, check=True, stdout=subprocess.PIPE).stdout
        check_eq(len(set(pids.read().split())), 37, "pids")
    truth = json.loads(out.splitlines()[1])
    check_eq(truth["count"], 37, "count")
    check(truth["cpu_ns"] >= 37 * 100_000, "each computes for 0.1 ms")


@test
def the_load_ends_with_its_driver():
    load = subprocess.Popen([program("load"), "--idle", "5", "--busy", "2"], text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    check_in("ready", load.stdout.readline())
    with open(f"/proc/{load.pid}/task/{load.pid}/children", encoding="ascii") as file:
        children = file.read().split()
    check_eq(len(children), 7, "children")
    load.kill()
    load.wait()
    load.stdin.close()
    load.stdout.close()
    for _ in range(100):
        if not any(alive(pid) for pid in children):
            return
        time.sleep(0.05)
    check(False, "children outlive the load")


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@test
def an_unknown_section_is_a_usage_error_that_names_the_sections():
    result = subprocess.run([os.path.join(ROOT, "bench", "run"), "nonsense"], text=True,
                            check=False, capture_output=True)
    check_eq(result.returncode, 2, "exit status")
    check_in("slowdown", result.stderr)


main()
