# SPDX-License-Identifier: MIT
"""wine: the time of the program for Windows from start to exit, under a warm Wine.

The reference is a program that does nothing, which shows the cost of Wine itself. The bar is 50 ms. Wine cleans up
for some 40 ms after a program has exited, and another that starts meanwhile waits for it: so there is a pause
before each. Needs build-windows (./dev windows) and Wine.
"""
import os
import subprocess
import sys
import time

from .figures import Section
from .processes import ROOT, Missing

sys.path.insert(0, os.path.join(ROOT, "tests"))

PAUSE_S = 0.2


def run(bench):
    import winekit
    build = os.path.join(ROOT, "build-windows")
    if not winekit.is_windows_build(build):
        raise Missing("build-windows/etwatch.exe is not built: ./dev windows")
    refused = winekit.prepare(build)
    if refused:
        raise Missing(refused)
    repeat = bench.repeat or (5 if bench.quick else 50)
    section = Section("wine", f"the program for Windows under a warm Wine, {repeat} starts each")
    programs = (("a program that does nothing", ["tests/workloads.exe", "exit", "0"], None),
                ("etwatch --version", ["etwatch.exe", "--version"], 50),
                ("etwatch --help", ["etwatch.exe", "--help"], 50))
    environment = {**os.environ, **winekit.environment(build)}
    found = {name: [] for name, _, _ in programs}
    try:
        for _ in range(repeat):
            for name, (program, *words), _ in programs:
                time.sleep(PAUSE_S)
                began = time.monotonic()
                subprocess.run([*winekit.launcher(), os.path.join(build, program), *words], check=True,
                               env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
                found[name].append((time.monotonic() - began) * 1e3)
    finally:
        winekit.finish(build)
    nothing = None
    for name, _, bar in programs:
        row = section.add(name, "ms", found[name], bar=bar, ratio_to=nothing)
        nothing = nothing or row
    return section
