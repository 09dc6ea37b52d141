# SPDX-License-Identifier: MIT
"""micro: the small benchmarks under bench/micro, one program per part of the library.

A program there prints one line of JSON for each value: {"name": …, "unit": …, "value": …} and optionally "bar" (the
value must be below it) and "ratio_to" (the name of an earlier value of the same program). It is run once for each
repeat.
"""
import json
import os
import subprocess

from .figures import Section


def programs(bench):
    folder = bench.path("micro")
    if not os.path.isdir(folder):
        return []
    paths = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
    return [p for p in paths if os.path.isfile(p) and os.access(p, os.X_OK)]


def run(bench):
    repeat = bench.repeat or (2 if bench.quick else 9)
    section = Section("micro", f"parts of the library in isolation, {repeat} runs each")
    paths = programs(bench)
    if not paths:
        section.note("no program is built under bench/micro")
    collected = {path: {} for path in paths}
    for _ in range(repeat):
        for path in paths:
            out = subprocess.run([path], check=True, stdout=subprocess.PIPE, text=True).stdout
            for line in out.splitlines():
                figure = json.loads(line)
                collected[path].setdefault(figure["name"], []).append(figure)
    for path, figures in collected.items():
        rows = {}
        for name, repeats in figures.items():
            last = repeats[-1]
            rows[name] = section.add(f"{os.path.basename(path)}: {name}", last["unit"],
                                     [f["value"] for f in repeats], bar=last.get("bar"),
                                     ratio_to=rows.get(last.get("ratio_to")))
    return section
