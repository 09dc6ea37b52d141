# SPDX-License-Identifier: MIT
"""docs/metrics.md says what the sources say of themselves."""
import os
import re
import tempfile

from etlkit import make_etl
from lib import ROOT, check, check_eq, json_lines, main, need_ebpf, run, test


def rows():
    """{name: (ebpf, poll, etl)} of every table that has these columns."""
    table = {}
    with open(os.path.join(ROOT, "docs", "metrics.md"), encoding="utf-8") as file:
        for line in file:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if len(cells) == 7 and cells[0].startswith("`"):
                table[cells[0].strip("`")] = (cells[3], cells[4], cells[5])
    return table


def metrics():
    with open(os.path.join(ROOT, "include", "etwatch", "etwatch.h"), encoding="utf-8") as file:
        text = file.read().split("#define ETWATCH_METRICS(X)", 1)[1].split("\n\n", 1)[0]
    return re.findall(r"X\((\w+), ", text)


def check_source(source, column, what):
    result = run(["stat", "--json", "--source", source, *what])
    check_eq(result.code, 0, "exit code")
    meta = json_lines(result.out)[0]
    for name, words in rows().items():
        want = ("–" if name not in meta["available"] else
                "est." if name in meta["estimated"] else "exact")
        check_eq(words[column], want, f"{name} with {source} in docs/metrics.md")


@test
def every_metric_has_a_row():
    check_eq(sorted(rows()), sorted(metrics()), "names")
    check(len(metrics()) > 40, "the list in the header was not found")


@test
def the_column_of_poll_is_what_polling_can_do():
    check_source("poll", 1, ["-p", os.getpid(), "--duration", "0.1"])


@test
def the_column_of_ebpf_is_what_ebpf_can_do():
    need_ebpf()
    check_source("ebpf", 0, ["-p", os.getpid(), "--duration", "0.1"])


@test
def the_column_of_etl_is_what_a_recording_of_everything_knows():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "mixed.etl")
        make_etl("mixed", path)
        check_source("etl", 2, [path])


main()
