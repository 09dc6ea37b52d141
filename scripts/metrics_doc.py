#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""metrics_doc.py PROGRAM [--check]: writes the tables of docs/metrics.md from `PROGRAM metrics --json`.

The page keeps its own text; only the tables between `<!-- table NAME -->` and `<!-- end -->` are generated. With --check
nothing is written: the first difference is printed, and the exit status is 1.
"""
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(ROOT, "docs", "metrics.md")
SOURCES = ["etw", "etl", "ebpf", "poll-linux", "poll-windows"]
SHORT = {"exact": "exact", "polled": "polled", "estimated": "est.", "unavailable": "–"}


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def cell(source):
    return SHORT[source["exactness"]] + (" *" if source["on_request"] else "")


def group_table(metrics, group):
    if not any(m["group"] == group for m in metrics):
        return "No source measures a metric of this group yet. Its names are reserved: no output has them."
    return table(["name", "kind", "unit", "meaning"] + SOURCES,
                 [[f"`{m['name']}`", m["kind"], m["unit"], m["help"]] +
                  [cell(m["sources"][source]) for source in SOURCES]
                  for m in metrics if m["group"] == group])


def how_table(metrics):
    return table(["name"] + SOURCES,
                 [[f"`{m['name']}`"] + [m["sources"][source]["how"] for source in SOURCES] for m in metrics])


def export_table(metrics):
    rows = []
    for m in metrics:
        prometheus = otlp = "–"
        if m["prometheus"]:
            labels = "{" + m["prometheus_labels"] + "}" if m["prometheus_labels"] else ""
            prometheus = f"`{m['prometheus']}{labels}`"
        if m["otlp"]:
            otlp = f"`{m['otlp']}`" + (f" `{m['otlp_attribute']}`" if m["otlp_attribute"] else "")
            otlp += f", {m['otlp_unit']}"
            if m["otlp_linux"] != m["otlp"]:
                otlp += f"; on Linux `{m['otlp_linux']}`, {m['otlp_linux_unit']}"
        rate = f"{m['default_hz']:g} Hz" if m["default_hz"] else "every sample"
        rows.append([f"`{m['name']}`", prometheus, otlp, rate])
    return table(["name", "Prometheus", "OpenTelemetry", "read at most"], rows)


def system_table(metrics):
    return table(["name", "kind", "unit", "meaning", "Linux", "Windows"],
                 [[f"`{m['name']}`", m["kind"], m["unit"], m["help"]] +
                  [f"{SHORT[m['sources'][os]['exactness']]}: {m['sources'][os]['how']}" for os in ("linux", "windows")]
                  for m in metrics])


def generate(page, metrics, system):
    def fill(match):
        name = match.group(1)
        if name == "system":
            text = system_table(system)
        elif name == "system_export":
            text = export_table(system)
        elif name == "how":
            text = how_table(metrics)
        elif name == "export":
            text = export_table(metrics)
        else:
            text = group_table(metrics, name)
        return f"<!-- table {name} -->\n{text}\n<!-- end -->"
    return re.sub(r"<!-- table (\w+) -->\n.*?<!-- end -->", fill, page, flags=re.S)


def main():
    program, check = sys.argv[1], "--check" in sys.argv[2:]
    result = subprocess.run([program, "metrics", "--json"], check=True, capture_output=True)
    rows = [json.loads(line) for line in result.stdout.decode().splitlines()]
    metrics = [row for row in rows if row["type"] == "metric"]
    system = [row for row in rows if row["type"] == "system_metric"]
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    want = generate(page, metrics, system)
    if not check:
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(want)
        return 0
    for have, line in zip(page.split("\n"), want.split("\n")):
        if have != line:
            print(f"docs/metrics.md has:     {have}\nthe program prints:      {line}")
            return 1
    return 0 if len(page) == len(want) else 1


sys.exit(main())
