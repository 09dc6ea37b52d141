# SPDX-License-Identifier: MIT
"""python: the cost of the Python package for the process that uses it, next to psutil's loop in the same run.

Memory is relative to a bare interpreter of the same kind; CPU is that of the whole process, ours and Python's. The
stress test is the users' own: 100 Hz, about 100 processes, a minute or as long as requested (--minutes), and must
not grow; psutil next to it needs only a tenth of that. The recording is read by the C reader alone and into a
polars table, in turn.
"""
import json
import os
import signal
import statistics
import subprocess
import sys
import time

from . import etl
from .figures import Section
from .processes import HERE, ROOT, Ended, Missing, Program, cpu_ns, status_kb

CPU_BARS = {100: 0.5, 1000: 1.0}
MEMORY_BAR_MB = 25
ONE_BAR = 2.0
RATE_BAR = 0.1
GROWTH_BAR_MB = 1.0
ARROW_BAR = 1.2
CONSUMER_ARROW_BAR, CONSUMER_OBJECTS_BAR = 5.0, 0.3  # million events a second
PEER = os.path.join(HERE, "lib", "python_peer.py")


def show(line):
    """Prints each value at once: the whole table takes long."""
    print(f"  {line}", file=sys.stderr, flush=True)


def environment(bench):
    return {**os.environ, "PYTHONPATH": os.path.join(ROOT, "python"),
            "ETWATCH_LIBRARY": os.path.join(bench.build, "libetwatch.so")}


def start(bench, *arguments):
    program = Program([sys.executable, PEER, *arguments], env=environment(bench))
    program.ready()
    return program


def measure(program, seconds):
    """(CPU percent, resident MB) in its steady state."""
    time.sleep(1.0)
    cpu, begin = cpu_ns(program.pid), time.monotonic_ns()
    time.sleep(seconds)
    cpu, wall = cpu_ns(program.pid) - cpu, time.monotonic_ns() - begin
    return 100.0 * cpu / wall, status_kb(program.pid, "VmRSS")[0] / 1024


def finish(program):
    return json.loads(program.end(signal.SIGTERM).splitlines()[-1])


class Case:
    """One kind of watcher and its values, one per repeat."""

    def __init__(self, name, begin, hz=None, seconds=None):
        self.name, self.begin, self.hz, self.seconds = name, begin, hz, seconds
        self.cpu, self.mb, self.off, self.missing = [], [], [], None

    def turn(self, seconds):
        if self.missing:
            return
        try:
            program = self.begin()
            try:
                cpu, mb = measure(program, self.seconds or seconds)
                answer_of = finish(program)
            finally:
                program.kill()
        except (Missing, Ended) as error:
            self.missing = str(error)
            return
        show(f"{self.name}: {cpu:.3f} %, {mb:.1f} MB")
        self.cpu.append(cpu)
        self.mb.append(mb)
        if self.hz and "statistics" in answer_of:
            reached = float(answer_of["statistics"]["hz_reached"])
            self.off.append(100.0 * abs(reached - self.hz) / self.hz)


def watchers(bench, busy):
    return [
        Case("bare interpreter", lambda: start(bench, "bare"), seconds=1),
        Case("batch callback, all, 100 Hz", lambda: start(bench, "batch", 100), 100),
        Case("batch callback, all, 1000 Hz", lambda: start(bench, "batch", 1000), 1000),
        Case("one sample at a time, 20 processes, 100 Hz", lambda: start(bench, "one", 100, *busy), 100),
        Case("psutil, all, 100 Hz", lambda: bench.psutil("all", 100)),
    ]


def busy_pids(load):
    """The children of the load that compute: those with CPU time."""
    with open(f"/proc/{load.pid}/task/{load.pid}/children", encoding="ascii") as file:
        children = [int(pid) for pid in file.read().split()]
    return sorted(children, key=cpu_ns, reverse=True)[:20]


def fill_watchers(section, cases):
    bare = next(c for c in cases if c.name.startswith("bare"))
    peer = next(c for c in cases if c.name.startswith("psutil"))
    psutil_row = section.add(peer.name, "% of a core", peer.cpu, note=peer.missing or "")
    for case in cases:
        if case in (bare, peer):
            continue
        bar = ONE_BAR if case.name.startswith("one") else CPU_BARS[case.hz]
        section.add(case.name, "% of a core", case.cpu, bar=bar, ratio_to=psutil_row, note=case.missing or "")
    floor = statistics.median(bare.mb) if bare.mb else None
    for case in cases:
        if case is not bare and floor is not None:
            section.add(f"memory over bare, {case.name}", "MB", [mb - floor for mb in case.mb],
                        bar=None if case is peer else MEMORY_BAR_MB, note=case.missing or f"bare: {floor:.1f} MB")
    for case in cases:
        if case.hz:
            section.add(f"rate off, {case.name}", "%", case.off, bar=RATE_BAR, note=case.missing or "")


def stress(bench, section, seconds):
    """Memory at the end relative to that after the first tenth, ours and, for a tenth of the time, psutil's."""
    load = bench.load(80, 20)
    try:
        for name, begin, seconds in (
                ("stress test, 100 Hz, 100 processes", lambda: start(bench, "batch", 100), seconds),
                ("stress test, psutil", lambda: bench.psutil("all", 100), max(5.0, seconds / 10))):
            try:
                program = begin()
            except (Missing, Ended) as error:
                section.add(name, "% of a core", [], note=str(error))
                continue
            try:
                _, first = measure(program, max(1.0, seconds / 10))
                cpu, last = measure(program, seconds)
                answer_of = finish(program)
            finally:
                program.kill()
            own = answer_of.get("statistics", {})
            note = f"own value: {own['self_cpu_percent']:.3f} %" if "self_cpu_percent" in own else \
                f"{answer_of.get('hz_reached', 0):.1f} Hz reached"
            section.add(name, "% of a core", [cpu], note=note)
            show(f"{name}: {cpu:.3f} %")
            section.add(f"growth in {seconds:.0f} s, {name}", "MB", [last - first],
                        bar=GROWTH_BAR_MB if "psutil" not in name else None)
    finally:
        bench.unload(load)


def tools_python():
    """An interpreter with polars: ./dev bench makes one in build-python."""
    tools = os.environ.get("ETWATCH_TOOLS", os.path.join(ROOT, "build-python"))
    for python in (os.path.join(tools, "bin", "python3"), sys.executable):
        if os.access(python, os.X_OK) and subprocess.run([python, "-c", "import polars"], check=False,
                                                         stderr=subprocess.DEVNULL).returncode == 0:
            return python
    raise Missing("polars is not installed")


def arrow(bench, section, events, repeat):
    try:
        python = tools_python()
        path = etl.make(bench, "python.etl", "bench", "--events", events)
    except (Missing, Ended) as error:
        section.add("recording to polars", "times the C reader", [], bar=ARROW_BAR, note=str(error))
        return
    for extra, bar in (((), ARROW_BAR), (("fields",), None)):
        reader, table, ratio = [], [], []
        for _ in range(repeat + 1):
            one = answer([bench.path("walk_etl"), path, *extra], None)
            two = answer([python, PEER, "polars", path, *extra], environment(bench))
            if one["events"] != two["events"]:
                raise Ended(f"polars got {two['events']} of {one['events']} events")
            reader.append(one["seconds"])
            table.append(two["seconds"])
            show(f"recording{' with fields' if extra else ''}: {one['seconds']:.2f} s, polars {two['seconds']:.2f} s")
            ratio.append(two["seconds"] / one["seconds"])
        what = ", with fields as JSON" if extra else ""
        section.add(f"C reader, every event{', fields decoded' if extra else ''}", "s", reader[1:],
                    note=f"{one['events'] / 1e6:.2f} M events")
        section.add(f"the same as a polars table{what}", "s", table[1:], note=f"peak of the process {two['peak_mb']:.0f} MB")
        section.add(f"recording to polars{what}", "times the C reader", ratio[1:], bar=bar)


def consumer(bench, section, events, repeat):
    path = etl.make(bench, "consumer.etl", "bench", "--events", events)
    for how, what, bar in (("arrow", "as Arrow", CONSUMER_ARROW_BAR), ("arrow_json", "as Arrow with fields as JSON", None),
                           ("arrow_typed", "switches as Arrow with typed fields", None), ("objects", "as Python objects", CONSUMER_OBJECTS_BAR),
                           ("fields", "as Python objects with their fields", None)):
        rates = []
        for _ in range(repeat):
            got = answer([sys.executable, PEER, "consumer", path, how], environment(bench))
            rates.append(got["events"] / got["seconds"] / 1e6)
            show(f"ETWConsumer {what}: {rates[-1]:.2f} M/s")
        section.add(f"ETWConsumer on a recording, {what}", "M events/s", rates, bar=bar, at_least=True,
                    note=f"{got['events'] / 1e6:.2f} M events")


def answer(argv, env):
    done = subprocess.run(argv, check=False, capture_output=True, text=True, env=env)
    if done.returncode != 0:
        raise Ended(f"{os.path.basename(argv[0])}: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout.splitlines()[-1])


def run(bench):
    idle = 200 if bench.quick else 1000
    seconds = 2 if bench.quick else 10
    repeat = bench.repeat or (1 if bench.quick else 5)
    recordings = bench.repeat or (1 if bench.quick else 3)
    section = Section("python", f"a Python process that watches; {idle} idle and 20 busy processes, "
                                f"{repeat} x {seconds} s each")
    if bench.wanted("watch"):
        load = bench.load(idle, 20)
        try:
            time.sleep(1.0)
            cases = watchers(bench, busy_pids(load))
            for _ in range(repeat):
                for case in cases:
                    case.turn(seconds)
        finally:
            bench.unload(load)
        fill_watchers(section, cases)
    if bench.wanted("stress"):
        stress(bench, section, 60.0 * bench.minutes if bench.minutes else 5 if bench.quick else 60)
    if bench.wanted("arrow"):
        arrow(bench, section, 1_000_000 if bench.quick else 10_000_000, recordings)
    if bench.wanted("consumer"):
        consumer(bench, section, 1_000_000 if bench.quick else 5_000_000, recordings)
    return section
