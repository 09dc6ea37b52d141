# SPDX-License-Identifier: MIT
"""docs/metrics.md says what the sources say of themselves."""
import os
import re

from lib import ROOT, check, check_eq, json_lines, main, need_ebpf, run, test


def rows():
    """{name: (ebpf, poll)} of every table that has these columns."""
    table = {}
    with open(os.path.join(ROOT, "docs", "metrics.md"), encoding="utf-8") as file:
        for line in file:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if len(cells) == 6 and cells[0].startswith("`"):
                table[cells[0].strip("`")] = (cells[3], cells[4])
    return table


def metrics():
    with open(os.path.join(ROOT, "include", "etwatch", "etwatch.h"), encoding="utf-8") as file:
        text = file.read().split("#define ETWATCH_METRICS(X)", 1)[1].split("\n\n", 1)[0]
    return re.findall(r"X\((\w+), ", text)


def check_source(source, column):
    result = run(["stat", "--json", "--source", source, "-p", os.getpid(), "--duration", "0.1"])
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
    check_source("poll", 1)


@test
def the_column_of_ebpf_is_what_ebpf_can_do():
    need_ebpf()
    check_source("ebpf", 0)


main()
