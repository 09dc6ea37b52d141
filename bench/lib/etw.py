# SPDX-License-Identifier: MIT
"""etw: live ETW at a million events a second, with the emulator of the tests instead of Windows.

Switches of eight CPUs go through the default buffers of a session (bench/micro/etw_live.c), are delivered event by
event or in whole buffers, taken ten times a second, decoded and added up. Nothing may be lost; where some events
are lost on purpose, exactly those must be reported. The bar for the accounting thread is three million events per
second and core.
"""
import json
import os
import subprocess

from .figures import Section
from .processes import Missing

WAYS = ("events", "buffers")
LOSE_EVERY = 1009


def run(bench):
    program = bench.path("micro/etw_live")
    if not os.access(program, os.X_OK):
        raise Missing("bench/micro/etw_live is not built")
    seconds = 3 if bench.quick else 30
    repeat = bench.repeat or (1 if bench.quick else 3)
    section = Section("etw", f"a million events a second for {seconds} s, {repeat} runs each")
    collected = {}
    for _ in range(repeat):
        for way in WAYS:
            for lose in (0, LOSE_EVERY):
                out = subprocess.run([program, str(seconds), way, str(lose)], check=True,
                                     stdout=subprocess.PIPE, text=True).stdout
                for line in out.splitlines():
                    figure = json.loads(line)
                    name = figure["name"] + (" (losing some)" if lose else "")
                    collected.setdefault(name, []).append(figure)
    for name, figures in collected.items():
        section.add(name, figures[-1]["unit"], [f["value"] for f in figures],
                    bar=figures[-1].get("bar"), worst=figures[-1]["unit"] == "events")
    return section
