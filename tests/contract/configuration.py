# SPDX-License-Identifier: MIT
"""The configuration file: docs/configuration.md documents what the parser accepts, and errors have a position."""
import json
import os
import re

from commandkit import running_process
from lib import ROOT, cases, check, check_eq, check_in, main, run, temp_dir, test


def documented():
    """[(key, value syntax, example)] of both tables."""
    with open(os.path.join(ROOT, "docs", "configuration.md"), encoding="utf-8") as file:
        rows = [re.findall(r"`([^`]*)`", line.rsplit("|", 2)[0]) for line in file if line.startswith("| `")]
    return [(row[0], row[0] if len(row) == 2 else row[1], row[-1]) for row in rows]


def config(text, *options):
    with temp_dir() as folder:
        path = os.path.join(folder, "x.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        result = run(["config", *(options or ("--check",)), *(["--config"] if options else []), path])
        return result._replace(err=result.err.replace(path, "x.conf"), out=result.out.replace(path, "x.conf"))


@test
def every_documented_key_is_accepted():
    rows = documented()
    check(len(rows) > 40, f"only {len(rows)} rows found")
    for key, written, example in rows:
        result = config(f"{written} = {example}\n")
        check_eq((result.code, key), (0, key), f"exit code ({result.err.strip()})")


@test
def every_option_of_a_command_that_reads_a_file_is_a_key():
    with open(os.path.join(ROOT, "src", "cli", "args", "option_table.c"), encoding="utf-8") as file:
        options = set(re.findall(r'\{"([\w-]+)", (?:0|\'.\'), (?:NULL|")', file.read()))
    check(len(options) > 50, f"only {len(options)} options found")
    known = {key for key, _, _ in documented()}
    others = {"check", "cleanup", "config", "elevate", "help", "show", "version"}
    check_eq(sorted(options - known), sorted(others), "options that are not keys")


@test
def a_ring_without_a_size_has_the_default_size():
    check_in("last-samples = 10000    # file x.conf:1:16", config("storage.type = ring\n", "--show").out, "last-samples")
    check_in("last-samples = 7    # file x.conf:2:19", config("storage.type = ring\nstorage.samples = 7\n", "--show").out,
             "last-samples")


@test
def the_last_of_several_values_wins_also_for_switches():
    check_in("dense = false    # file x.conf:2:9", config("dense = true\ndense = false\n", "--show").out, "dense")
    check_in("json = true    # file x.conf:2:8", config("json = no\njson = yes\n", "--show").out, "json")
    check_in("dense = false    # command line", config("dense = true\n", "--show", "--dense=false").out, "dense")
    with temp_dir() as folder:
        path = os.path.join(folder, "x.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write("json = true\ncsv = true\ncsv = false\ndense = true\n")
        with running_process() as pid:
            arguments = ["stat", "--config", path, "--source", "poll", "-p", pid, "--duration", "0.2"]
            result, table = run(arguments), run([*arguments, "--json=false", "--csv=true"])
    check_eq((result.code, table.code), (0, 0), f"exit codes ({result.err}{table.err})")
    check(result.out.startswith('{"type":"meta"'), "no JSON")
    check(table.out.startswith("type,"), "no CSV")
    check_eq(run(["stat", "-a", "--json=maybe"]).code, 2, "exit code")


@test
def every_setting_is_documented():
    """Those that config --show lists, and those of sections."""
    known = {key for key, _, _ in documented()}
    shown = {re.match(r"(?:# )?([\w-]+)", line)[1] for line in run(["config", "--show"]).out.splitlines()}
    check_eq(sorted(shown - known), [], "options that are not in docs/configuration.md")
    with open(os.path.join(ROOT, "src", "cli", "args", "config_keys.c"), encoding="utf-8") as file:
        own = re.search(r"names\[\] = \{(.*?)\};", file.read(), re.S)[1]
    check_eq(sorted(set(re.findall(r'"([^"]+)"', own)) - known), [], "keys that are not in docs/configuration.md")


@cases([
    ("no such option", "hz = 10\n  hertz = 3\n", "x.conf:2:3: ", 'unknown option "hertz"'),
    ("a value out of range", "\nhz = 5000\n", "x.conf:2:6: ", "0.1 to 1000"),
    ("no value", "hz =\n", "x.conf:1:1: ", "hz needs a value"),
    ("no form", "just words\n", "x.conf:1:1: ", 'the form "name = value"'),
    ("no such section", "[cpu]\nrate = 5\n[membory]\n", "x.conf:3:1: ", 'unknown section "membory"'),
    ("no end of a section", "[cpu\n", "x.conf:1:1: ", 'the form "[memory]"'),
    ("no such key of a section", "[memory]\nrat = 5\n", "x.conf:2:1: ", 'unknown key "memory.rat"'),
    ("an invalid rate", "[memory]\nrate = often\n", "x.conf:2:8: ", "a number from 0.01 to 1000"),
    ("two sources", "[cpu]\nbackend = poll\n[memory]\nbackend = ebpf\n", "x.conf:4:11: ", "poll already"),
    ("counters of two sources", "[cpu]\nbackend = ebpf\n[io]\nbackend = poll\n", "x.conf:4:11: ", "same source"),
    ("an average of a mask", "[affinity]\naggregation = avg\n", "x.conf:2:15: ", "meaningless"),
    ("no such aggregation", "cpu.aggregation = avg,p50\n", "x.conf:1:19: ", "avg, max, p95 and p99"),
    ("an option that was renamed", "keep = 5\n", "x.conf:1:1: ", 'it is called "last-samples" now'),
    ("a duration", "duration = 5x\n", "x.conf:1:12: ", "such as 10, 10s, 200ms or 2m"),
    ("an alert", "alert = cpu>80\n", "x.conf:1:9: ", "the name of a metric"),
    ("a switch", "threads = maybe\n", "x.conf:1:11: ", "true or false"),
    ("a rate for a metric without one", "[cpu_ns]\nrate = 5\n", "x.conf:2:8: ", "comes with every sample"),
    ("the same as an option", "rate = exit=5\n", "x.conf:1:8: ", "comes with every sample"),
    ("no kind of kernel event", "hz = 5\nkernel = process,cswich\n", "x.conf:2:10: ", '"cswich" is not a kind'),
    ("stacks of what is none", "stacks = PROFILES\n", "x.conf:1:10: ", '"PROFILES" is not a kind'),
    ("a stream with a size", "[storage]\ntype = stream\nsamples = 5\n", "x.conf:3:11: ", "for storage.type = ring"),
    ("the same in another order", "[storage]\nsamples = 5\ntype = stream\n", "x.conf:3:8: ", "keeps no samples"),
])
def an_error_has_line_and_column(text, place, says):
    result = config(text)
    check_eq(result.code, 2, "exit code")
    check_in(place, result.err, "place")
    check_in(says, result.err, "message")
    check_eq(result.err.count("\n"), 1, "lines")


@test
def show_prints_the_origin_of_each_value_and_is_itself_a_configuration():
    text = "hz = 50   # a comment\nname = py*\nname = onnx\n[memory]\nrate = 2\naggregation = max\n"
    result = config(text, "--show", "--budget-profile", "staging", "--latency", "20")
    check_eq(result.code, 0, f"exit code ({result.err})")
    lines = [re.sub(" +", " ", line) for line in result.out.splitlines()]
    for line in ("hz = 50 # file x.conf:1:6", "name = py* # file x.conf:2:8", "name = onnx # file x.conf:3:8",
                 "rate = memory=2 # file x.conf:5:8", "budget = 10 # budget-profile staging", "latency = 20 # command line",
                 "source = auto # default", "json = false # default", "# pid is not set", "aggregation = max # file"):
        check_in(line, lines, "lines of --show")
    again = config(result.out, "--show")
    check_eq(again.code, 0, f"its own output is refused: {again.err}")


@test
def the_command_line_wins_over_the_file_and_a_budget_over_a_profile():
    result = config("hz = 50\nbudget = 7\n", "--show", "--hz", "20", "--budget-profile", "critical")
    check_in("hz = 20    # command line", result.out, "hz")
    check_in("budget = 7    # file x.conf:2:10", result.out, "budget")


@test
def window_values_that_were_not_requested_are_null():
    with temp_dir() as folder:
        path = os.path.join(folder, "x.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write("[cpu]\naggregation = avg,p95\n")
        with running_process() as pid:
            result = run(["stat", "--config", path, "--source", "poll", "-p", pid, "--window", "0.3", "--duration",
                          "1", "--dense", "--json"])
    check_eq(result.code, 0, f"exit code ({result.err})")
    windows = [line for line in result.out.splitlines() if '"window"' in line]
    check(windows, "no window")
    check_in('"cpu_percent_max":null', windows[0], "CPU")
    check('"cpu_percent_avg":null' not in windows[0], "avg is null")
    check('"rss_bytes_max":null' not in windows[0], "memory is null")


@test
def a_window_can_have_any_selected_metric():
    with temp_dir() as folder:
        path = os.path.join(folder, "x.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write("[io_write_bytes]\naggregation = max\n[handles]\naggregation = avg,p99\n")
        with running_process() as pid:
            options = ["--source", "poll", "-p", pid, "--window", "0.3", "--duration", "1", "--dense"]
            result = run(["stat", "--config", path, "--aggregate", "threads", "--json", *options])
            table = run(["stat", "--csv", "--aggregate", "faults_minor", *options])
            columns = run(["stat", "--aggregate", "faults_minor", *options])
    check_eq((result.code, table.code, columns.code), (0, 0, 0), f"exit codes ({result.err})")
    windows = [json.loads(line) for line in result.out.splitlines() if '"window"' in line]
    check(windows, "no window")
    last = windows[-1]
    check_eq((last["io_write_bytes_avg"], last["handles_max"]), (None, None), "values that were not requested")
    check(last["handles_avg"] >= 3 and last["threads_avg"] == 1 == last["threads_p95"], f"{last}")
    check("gdi_objects_avg" in last and last["gdi_objects_avg"] is None, "values that are unknown here")
    header = table.out.splitlines()[0]
    check(header.endswith(",faults_minor_avg,faults_minor_max,faults_minor_p95,faults_minor_p99"), header)
    check_eq({line.count(",") for line in table.out.splitlines()}, {header.count(",")}, "columns")
    check_in("faults_minor avg", columns.out, "the table's headings")


@cases([
    ("without a window", ["stat", "-a", "--aggregate", "io"], "add --window"),
    ("no such metric", ["stat", "-a", "--window", "1", "--aggregate", "nonsense"], "nonsense"),
    ("a mask", ["stat", "-a", "--window", "1", "--aggregate", "affinity"], "affinity"),
    ("no id", ["stat", "--container", "web"], "hexadecimal"),
    ("too short", ["stat", "--container", "3f2"], "4 to 64"),
])
def invalid_combinations_are_refused(arguments, words):
    result = run(arguments)
    check_eq(result.code, 2, "exit code")
    check_in(words, result.err, "standard error")


@test
def an_alert_on_an_unavailable_metric_gives_a_warning():
    with running_process() as pid:
        arguments = ["stat", "--source", "poll", "-p", pid, "--duration", "2", "--json"]
        useless = run([*arguments, "--alert", "net_sent_bytes>1", "--alert", "rss_bytes>1KB"])
        fine = run([*arguments, "--alert", "rss_bytes>1KB"])
    check_eq((useless.code, fine.code), (0, 0), "exit codes")
    check_in('alert "net_sent_bytes>1" can never fire', useless.err, "standard error")
    check("rss_bytes" not in useless.err and "never" not in fine.err, f"{useless.err}{fine.err}")
    alerts = [json.loads(line) for line in fine.out.splitlines() if '"alert"' in line]
    check(alerts and alerts[0]["thread_count"] is None, "threads of an alert without thread details")


@test
def last_samples_writes_only_the_last_samples():
    with running_process() as pid:
        result = run(["stat", "--source", "poll", "-p", pid, "--dense", "--hz", "20", "--last-samples", "3", "--duration",
                      "1", "--json", "-q"])
    check_eq(result.code, 0, f"exit code ({result.err})")
    kinds = re.findall(r'^\{"type":"(\w+)"', result.out, re.M)
    check_eq(kinds, ["meta", "sample", "sample", "sample", "stats"], "objects")


main()
