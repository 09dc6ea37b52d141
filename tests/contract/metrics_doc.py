# SPDX-License-Identifier: MIT
"""docs/metrics.md agrees with what the sources declare."""
import os
import re
import subprocess
import sys
import tempfile

from commandkit import UNDER_WINE, running_process
from etlkit import make_etl
from lib import ETWATCH, ROOT, check, check_eq, json_lines, main, need_ebpf, run, test


COLUMNS = ["etw", "etl", "ebpf", "poll-linux", "poll-windows"]
DEVICES = ["gpu_ns", "gpu_percent", "gpu_memory_bytes", "npu_ns", "npu_percent", "energy_uj", "presents",
           "gpu_encoder_ns", "gpu_decoder_ns"]
HARDWARE = ["cycles", "instructions", "cache_misses"]
MARKS = {"–": "unavailable", "est.": "estimated", "polled": "polled", "exact": "exact"}


def rows():
    """{name: {source: exactness}} of every table with these columns."""
    table = {}
    with open(os.path.join(ROOT, "docs", "metrics.md"), encoding="utf-8") as file:
        for line in file:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if len(cells) == 4 + len(COLUMNS) and cells[0].startswith("`"):
                table[cells[0].strip("`")] = {way: MARKS[cell.removesuffix(" *")]
                                              for way, cell in zip(COLUMNS, cells[4:])}
    return table


def metrics(header="etwatch.h", macro="ETWATCH_METRICS"):
    with open(os.path.join(ROOT, "include", "etwatch", header), encoding="utf-8") as file:
        text = file.read().split(f"#define {macro}(X)", 1)[1].split("\n\n", 1)[0]
    return [name for name in re.findall(r"X\((\w+), ", text)]


def check_source(source, column, what):
    result = run(["stat", "--json", "--source", source, "--metrics", "all", *what])
    check_eq(result.code, 0, "exit code")
    meta = json_lines(result.out)[0]
    for name, words in rows().items():
        if name in HARDWARE and name not in meta["available"]:
            continue  # most virtual machines have no counters
        if name in DEVICES and name not in meta["available"]:
            continue  # nor devices
        measured = ["exact", "polled"]
        if UNDER_WINE and source == "poll" and name not in meta["available"]:
            continue  # Wine does not count everything that Windows does
        want = (["unavailable"] if name not in meta["available"] else
                ["estimated"] if name in meta["estimated"] else measured)
        check(words[column] in want, f"{name} with {source}: {words[column]}, not {want}")


@test
def the_page_equals_the_table_in_the_program():
    script = os.path.join(ROOT, "scripts", "metrics_doc.py")
    result = subprocess.run([sys.executable, script, ETWATCH, "--check"], check=False,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    check_eq(result.returncode, 0, result.stdout.decode())


@test
def every_metric_has_a_row():
    check_eq(sorted(rows()), sorted(metrics()), "names")
    check(len(metrics()) > 40, "the list in the header was not found")


@test
def the_poll_column_matches_polling():
    with running_process() as pid:
        check_source("poll", "poll-windows" if UNDER_WINE else "poll-linux", ["-p", pid, "--duration", "0.1"])


@test
def the_ebpf_column_matches_ebpf():
    need_ebpf()
    check_source("ebpf", "ebpf", ["-p", os.getpid(), "--duration", "0.1"])


@test
def the_etl_column_matches_a_recording_of_every_event():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "mixed.etl")
        make_etl("mixed", path)
        check_source("etl", "etl", [path])


@test
def recordings_of_memory_events_have_the_private_working_set():
    """The events of make_etl: 5 pages of process 4321, 1 page of process 4."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "versions.etl")
        make_etl("versions", path)
        processes = [o for o in json_lines(run(["report", "--json", path]).out) if o["type"] == "process"]
    check_eq({o["pid"]: o["rss_private_bytes"] for o in processes if o["rss_private_bytes"] is not None},
             {4321: 5 * 4096, 4: 4096}, "private working sets")


@test
def doctor_shows_the_metric_matrix_of_this_machine():
    for arguments in ([], ["--json"]):
        result = run(["doctor", "--metrics", *arguments])
        check_eq((result.code, result.err), (0, ""), "result")
    lines = json_lines(result.out)
    here = {o["name"]: o["sources"] for o in lines if o["type"] == "metric"}
    machine = {o["name"]: o["sources"] for o in lines if o["type"] == "system_metric"}
    check_eq(sorted(here), sorted(metrics()), "names")
    check_eq(sorted(machine), sorted(metrics("system.h", "ETWATCH_SYSTEM_METRICS")), "names of the whole machine")
    check_eq({os for sources in machine.values() for os in sources}, {"windows" if UNDER_WINE else "linux"}, "system")
    check_eq({o["exactness"] for o in machine["memory_total_bytes"].values()}, {"polled"}, "memory")
    check_eq({o["exactness"] for o in machine["processes_started"].values()}, {"estimated"}, "starts")
    for name, sources in [*here.items(), *machine.items()]:
        for source, cell in sources.items():
            check(cell["how"], f"{name} with {source} has no reason")
    # Windows charges the thread that runs when its clock ticks.
    check_eq(here["cpu_ns"]["poll"]["exactness"], "estimated" if UNDER_WINE else "polled", "cpu_ns")
    check_eq(here["net_sent_bytes"]["poll"]["exactness"], "unavailable", "net_sent_bytes")


@test
def unselected_metrics_are_null_and_selected_ones_add_only_their_cost():
    with running_process() as pid:
        result = run(["stat", "--json", "--source", "poll", "--metrics", "memory,handles", "--duration",
                      "0.5", "--dense", "-p", pid])
    check_eq(result.code, 0, "exit code")
    lines = json_lines(result.out)
    check_eq([n for n in lines[0]["available"] if n.startswith(("cpu", "io", "disk", "switches"))], [],
             "available")
    samples = [o for o in lines if o["type"] == "sample"]
    check(samples, "no samples")
    for sample in samples:
        check_eq((sample["cpu_ns"], sample["io_read_bytes"], sample["cpu_percent"]), (None,) * 3, "null")
    check(any(sample["rss_bytes"] for sample in samples), "no memory")


main()
