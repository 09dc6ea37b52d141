# SPDX-License-Identifier: MIT
"""etl: how fast recordings are read and added up per process, and with how much memory.

The whole program runs, from start to exit, on one or two CPUs: the events of its report divided by its wall time.
The files are made here, with the mix of events of a scheduler recording. They are in an ordinary file system and
have been read before, so that no disk is involved. The bound is `cat` of the same file. The peers decode the fields
of every event, their imports not counted; they get a small file, because they read some thousand events a second,
and so does our program in the row next to them.
"""
import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from .figures import Section
from .processes import HERE, ROOT, Ended, Missing

PLAIN_BAR = 25e6
COMPRESSED_BAR = 5e6
TWO_CORES_BAR = 1.7
MEMORY_BAR_MB = 64
PEERS = {"dissect": "dissect.etl", "etl-parser": "etl.etl"}


def make(bench, name, kind, *options):
    """A generated recording."""
    path = os.path.join(folder(bench), name)
    command = [bench.path("make_etl"), kind, path, *map(str, options)]
    if not os.access(command[0], os.X_OK):
        raise Missing("make_etl is not built")
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise Ended(f"make_etl: {done.stderr.strip()[-300:]}")
    with open(path, "rb") as file:
        os.fsync(file)  # not during the measurement
    return path


def folder(bench):
    """The build folder: the folder of the run is in memory, and files there are read more slowly."""
    if not hasattr(bench, "etl_folder"):
        bench.etl_folder = tempfile.mkdtemp(prefix="etwatch-bench-", dir=bench.build)
        atexit.register(shutil.rmtree, bench.etl_folder, True)
    return bench.etl_folder


def run_on(cpus, argv, out=subprocess.DEVNULL):
    """The output of a program on these CPUs, and its wall seconds."""
    begin = time.perf_counter()
    done = subprocess.run(argv, check=False, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, text=True,
                          preexec_fn=lambda: os.sched_setaffinity(0, cpus))
    wall = time.perf_counter() - begin
    if done.returncode != 0:
        raise Ended(f"{os.path.basename(argv[0])}: {done.stderr.strip()[-300:]}")
    return done.stdout, wall


# A small process measures the memory: the peak of a parent counts in its child.
PEAK = """
import os, sys
null = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
_, status, usage = os.wait4(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=null), 0)
print(usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def peak_mb(cpus, argv):
    """The peak resident memory of a program."""
    out, _ = run_on(cpus, [sys.executable, "-I", "-S", "-c", PEAK, *argv], subprocess.PIPE)
    return int(out) / 1024


class File:
    """A recording and its measurements, one entry per repeat."""

    def __init__(self, bench, name, path):
        self.bench, self.name, self.path = bench, name, path
        self.mb = os.path.getsize(path) / 1e6
        out, _ = run_on(os.sched_getaffinity(0), self.report(1), subprocess.PIPE)
        found = next(o for o in map(json.loads, out.splitlines()) if o["type"] == "trace")
        if found["bad_buffers"] or found["bad_events"] or found["late"]:
            raise Ended(f"{name}: the report finds damage in a generated file")
        self.events = found["events"]
        self.one, self.two, self.gain, self.read = [], [], [], []

    def report(self, workers):
        return [self.bench.etwatch(), "report", "--json", "--workers", str(workers), self.path]

    def measure(self, cpus):
        _, one = run_on(cpus[:1], self.report(1))
        self.one.append(self.events / one)
        if len(cpus) > 1:
            _, two = run_on(cpus[:2], self.report(2))
            self.two.append(self.events / two)
            self.gain.append(one / two)
        _, read = run_on(cpus[:1], ["cat", self.path])
        self.read.append(self.events / read)

    def fill(self, section, bar):
        what = f"{self.name}, {self.mb:.0f} MB, {self.events / 1e6:.2f} M events"
        bound = section.add(f"plain read of {self.name}", "M events/s", millions(self.read),
                            note=f"{what}; cat to /dev/null")
        section.add(f"report, {self.name}, one core", "M events/s", millions(self.one), bar=bar / 1e6, at_least=True,
                    ratio_to=bound)
        section.add(f"report, {self.name}, two cores", "M events/s", millions(self.two), ratio_to=bound)
        section.add(f"two cores to one, {self.name}", "times", self.gain, bar=TWO_CORES_BAR, at_least=True)


def millions(values):
    return [value / 1e6 for value in values]


# ------------------------------------------------------------------------- peers


def find_python(module):
    """A Python that has the module: ./dev bench installs the peers into a separate folder."""
    for python in (os.path.join(ROOT, "build-peers", "bin", "python3"), sys.executable, shutil.which("python3")):
        if python and os.path.exists(python) and subprocess.run(
                [python, "-c", f"import {module}"], check=False, stderr=subprocess.DEVNULL).returncode == 0:
            return python
    raise Missing("not installed")


class Peer:
    def __init__(self, name, module):
        self.name, self.values, self.note = name, [], ""
        try:
            self.python = find_python(module)
        except Missing as error:
            self.python, self.note = None, str(error)

    def measure(self, file, cpu):
        if self.python is None:
            return
        done = subprocess.run([self.python, "-I", os.path.join(HERE, "lib", "etl_peer.py"), self.name, file.path],
                              check=False, capture_output=True, text=True,
                              preexec_fn=lambda: os.sched_setaffinity(0, [cpu]))
        if done.returncode != 0:
            self.note = "ends with " + (done.stderr.strip().splitlines() or ["nothing"])[-1][-80:]
            return
        out = json.loads(done.stdout)
        self.note = f"{out['events']} of {file.events} events, {out['decoded']} with fields"
        if out["events"]:
            self.values.append(out["events"] / out["seconds"])


def measure_peers(bench, section, name, path, cpus, repeat):
    """The peers and our program on a small file; ours includes its start-up."""
    file = File(bench, name, path)
    peers = [Peer(peer, module) for peer, module in PEERS.items()]
    for _ in range(repeat):
        file.measure(cpus[:1])
        for peer in peers:
            peer.measure(file, cpus[0])
    ours = section.add(f"report, {name}", "k events/s", [v / 1e3 for v in file.one],
                       note=f"{file.events} events: mostly start-up")
    for peer in peers:
        section.add(f"{peer.name}, {name}", "k events/s", [v / 1e3 for v in peer.values], ratio_to=ours,
                    note=peer.note)


# --------------------------------------------------------------------- the section


def measure_memory(bench, section, cpus):
    size = 200_000_000 if bench.quick else 2_000_000_000
    for name, options in (("plain", ()), ("compressed", ("--compress",))):
        path = make(bench, "large.etl", "bench", "--bytes", size, "--cpus", 8, *options)
        file = File(bench, name, path)
        for workers in range(1, min(2, len(cpus)) + 1):
            peak = peak_mb(cpus[:workers], file.report(workers))
            section.add(f"memory, {name}, {workers} at work", "MB peak", [peak], bar=MEMORY_BAR_MB, worst=True,
                        note=f"{file.mb:.0f} MB, {file.events / 1e6:.1f} M events")
        os.unlink(path)


def run(bench):
    repeat = bench.repeat or (2 if bench.quick else 9)
    size = 30_000_000 if bench.quick else 1_000_000_000
    cpus = sorted(os.sched_getaffinity(0))
    section = Section("etl", f"recordings read and added up per process, {repeat} runs each")
    files = [(File(bench, "plain", make(bench, "plain.etl", "bench", "--bytes", size, "--cpus", 8)), PLAIN_BAR),
             (File(bench, "compressed", make(bench, "compressed.etl", "bench", "--bytes", size // 4, "--cpus", 8,
                                             "--compress")), COMPRESSED_BAR)]
    for _ in range(repeat):
        for file, _ in files:
            file.measure(cpus)
    for file, bar in files:
        file.fill(section, bar)
        os.unlink(file.path)
    events = 2000 if bench.quick else 20000
    for name, options in (("a small plain file", ()), ("a small compressed file", ("--compress",))):
        path = make(bench, "small.etl", "bench", "--events", events, "--cpus", 2, *options)
        measure_peers(bench, section, name, path, cpus, 1 if bench.quick else min(3, repeat))
    measure_memory(bench, section, cpus)
    return section
