# SPDX-License-Identifier: MIT
"""hardening: what the hardening flags of the compiler cost the hot loops.

The programs of bench/micro are built twice, with the flags (build) and without them (build-plain, -Dhardening=false).
Both run alternately; each value is the ratio of two neighbouring runs, so that a slow phase of the machine meets both.
"""
import json
import os
import subprocess

from .figures import Section, median_interval
from .micro import programs
from .processes import Missing, ROOT

BAR = 1.01
PLAIN = os.path.join(ROOT, "build-plain")


def figures_of(path):
    out = subprocess.run([path], check=True, stdout=subprocess.PIPE, text=True).stdout
    return {figure["name"]: figure["value"] for figure in map(json.loads, out.splitlines())}


def run(bench):
    repeat = bench.repeat or (2 if bench.quick else 9)
    section = Section("hardening", f"hot loops with the hardening flags against the same without, {repeat} pairs each")
    pairs = [(path, os.path.join(PLAIN, "bench", "micro", os.path.basename(path))) for path in programs(bench)]
    if not pairs or not all(os.path.exists(plain) for _, plain in pairs):
        raise Missing("build-plain is not built: ./dev bench hardening does it")
    for path, plain in pairs:
        ratios = {}
        for turn in range(repeat):
            both = (path, plain) if turn % 2 == 0 else (plain, path)
            values = {program: figures_of(program) for program in both}
            for name, value in values[path].items():
                if values[plain].get(name):
                    ratios.setdefault(name, []).append(value / values[plain][name])
        for name, values in ratios.items():
            low, high = median_interval(values)
            section.add(f"{os.path.basename(path)}: {name}", "x", values, bar=BAR, resolution=(high - low) / 2)
    return section
