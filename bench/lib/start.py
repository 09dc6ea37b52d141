# SPDX-License-Identifier: MIT
"""start: how long it takes until a watcher watches, and what that costs.

`etwatch run -q -- true` as a whole, against plain `true`, `perf stat -- true` and a bpftrace program that exits
at once. `stat -a` with 1000 other processes, until its first line: the meta line is written when the
programs are attached and every process that exists is known, so from then on nothing is missed. All
commands once make a round, in a new order each time. Each is measured by once.c: wall time, and CPU time and
peak memory by wait4.
"""
import json
import random
import subprocess

from .figures import Section
from .processes import Ended, Missing

BARS = {"wall": 40, "cpu": 35, "peak": 10, "ready": 60}


class Command:
    """One command line and the answers of its runs."""

    def __init__(self, name, argv, first_line=False):
        self.name = name
        self.argv = argv  # returns the command line; raises Missing
        self.first_line = first_line
        self.runs = []
        self.missing = ""

    def run(self, bench):
        if self.missing:
            return
        try:
            argv = [bench.path("once"), *(["--first-line"] if self.first_line else []), *self.argv()]
            result = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False)
            answer = json.loads(result.stdout) if result.returncode == 0 else {"status": 127}
            if answer["status"] not in ((0, 130) if self.first_line else (0,)):  # ended by SIGINT
                raise Ended(f"exit status {answer['status']}")
            self.runs.append(answer)
        except FileNotFoundError:
            self.missing = "once is not built"
        except (Missing, Ended) as error:
            self.missing, self.runs = str(error), []

    def values(self, field, scale):
        return [run[field] / scale for run in self.runs]


def add_rows(section, command, plain, bars):
    """Wall time over plain `true` of the same round, CPU time, peak memory."""
    over = [value - base for value, base in zip(command.values("wall_ns", 1e6), plain.values("wall_ns", 1e6))]
    section.add(f"{command.name}: over true", "ms", over, bar=bars.get("wall"), note=command.missing)
    section.add(f"{command.name}: CPU", "ms", command.values("cpu_ns", 1e6), bar=bars.get("cpu"), note=command.missing)
    section.add(f"{command.name}: peak memory", "MB", command.values("peak_kb", 1024), bar=bars.get("peak"),
                note=command.missing)


def run(bench):
    repeat = bench.repeat or (3 if bench.quick else 30)
    idle = 100 if bench.quick else 1000
    section = Section("start", f"from start to exit or to the first line, {repeat} times")
    plain = Command("true", lambda: ["true"])
    ours = Command("run -q -- true", lambda: [bench.etwatch(), "run", "--source", bench.source, "-q", "--", "true"])
    peers = [Command("perf stat -- true", lambda: [bench.peer("perf"), "stat", "--", "true"]),
             Command("bpftrace BEGIN{exit()}", lambda: [bench.peer("bpftrace"), "-e", "BEGIN{exit()}"])]
    ready = Command("stat -a", lambda: [bench.etwatch(), "stat", "-a", "--source", bench.source, "--json"], True)
    in_turn = [plain, ours, *peers, ready]
    load = bench.load(idle, 0)
    try:
        for _ in range(repeat):
            random.shuffle(in_turn)
            for command in in_turn:
                command.run(bench)
    finally:
        bench.unload(load)
    section.add("true", "ms", plain.values("wall_ns", 1e6), note=plain.missing)
    add_rows(section, ours, plain, BARS)
    for peer in peers:
        add_rows(section, peer, plain, {})
    section.add(f"stat -a, {idle} processes: ready", "ms", ready.values("first_line_ns", 1e6), bar=BARS["ready"],
                note=ready.missing)
    section.add(f"stat -a, {idle} processes: peak memory", "MB", ready.values("peak_kb", 1024), bar=BARS["peak"],
                note=ready.missing)
    return section
