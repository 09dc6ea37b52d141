# SPDX-License-Identifier: MIT
"""record: the cost of recording every switch, next to other recorders.

Slowdown: by chunks of work with the recorder attached and detached in turn, as in the section slowdown. Storm: two
pipes, each on its own CPU, that only switch; losses and the size of a switch on disk come from the recorders' own
files.
"""
import json
import os
import re
import signal
import subprocess
import time

from .figures import Section
from .processes import Ended, Missing, Program, with_tracefs
from .slowdown import Nothing, Restarted, half_interval, measure

SLOWDOWN_BAR, BYTES_BAR = 1.03, 16
SWITCH_BAR = 300_000


class Recorder(Restarted):
    """etwatch record: attached once its file has content."""

    barred = True

    def __init__(self, bench):
        super().__init__("etwatch record", None)
        self.path, self.program_path = bench.file("run.pftrace"), bench.etwatch()

    def on(self):
        if os.path.exists(self.path):
            os.unlink(self.path)
        self.program = Program([self.program_path, "record", "-q", "-a", "-o", self.path], pipe_in=False,
                               out=subprocess.DEVNULL)
        for _ in range(300):
            if self.program.process.poll() is not None:
                raise Ended(f"{self.name}: {self.program.errors()}")
            if os.path.exists(self.path) and os.path.getsize(self.path) > 0:
                break
            time.sleep(0.05)
        time.sleep(0.5)


def recorders_of(bench):
    data, text = bench.file("sched.data"), bench.file("sched.txt")
    script = "tracepoint:sched:sched_switch { printf(\"%lld %d %d\\n\", nsecs, args->prev_pid, args->next_pid); }"
    return [Nothing(), Recorder(bench),
            Restarted("perf record -e sched:*",
                      lambda: [bench.peer("perf"), "record", "-q", "-a", "-e", "sched:*", "-o", data]),
            Restarted("trace-cmd record -e sched",
                      lambda: [bench.peer("trace-cmd"), "record", "-q", "-e", "sched", "-o", data]),
            Restarted("bpftrace, a line a switch", lambda: [bench.peer("bpftrace"), "-o", text, "-e", script])]


def slowdowns(bench, section, rounds):
    for kind, label in (("infer", "inference-like threads"), ("pipe2", "pipe, two CPUs")):
        if not bench.wanted(label):
            continue
        rows, resolution = {}, 0
        for recorder in recorders_of(bench):
            values, why = [], ""
            for _ in range(rounds if not why else 0):
                more, why = measure(bench, recorder, kind)
                values += more
                if why:
                    break
            barred = recorder.barred and kind == "infer"
            rows[recorder.name] = section.add(f"{label}: {recorder.name}", "times", values,
                                              bar=SLOWDOWN_BAR if barred else None,
                                              note=why or f"{len(values)} pairs")
        nothing, ours = rows["nothing"], rows["etwatch record"]
        if nothing.values and ours.values:
            resolution = abs(nothing.median - 1) + half_interval(nothing.values)
            ours.resolution = resolution + half_interval(ours.values)


def pipes(bench, loops):
    """Two pipes, one per CPU; seconds until both are done."""
    perf = bench.peer("perf")
    begin = time.monotonic()
    running = []
    for cpu in sorted(os.sched_getaffinity(0))[:2]:
        running.append(subprocess.Popen([perf, "bench", "sched", "pipe", "-l", str(loops)], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        preexec_fn=lambda cpu=cpu: os.sched_setaffinity(0, {cpu})))
    for process in running:
        process.wait()
    return time.monotonic() - begin


def storm_ours(bench, loops):
    """(switches per second, bytes per switch, lost, percent of a core) of one recorded storm."""
    path = bench.file("storm.pftrace")
    if os.path.exists(path):
        os.unlink(path)
    recorder = subprocess.Popen([bench.etwatch(), "record", "--json", "-a", "-o", path], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while recorder.poll() is None and not (os.path.exists(path) and os.path.getsize(path) > 0):
        time.sleep(0.05)
    seconds = pipes(bench, loops)
    recorder.send_signal(signal.SIGINT)
    out, words = recorder.communicate()
    trace = json.loads(out.splitlines()[0])
    cost = float(re.search(r"own cost ([\d.]+)", words).group(1))
    switches = trace["switches"]
    return switches / seconds, trace["file_bytes"] / switches, trace["lost"], cost


def storm_perf(bench, loops):
    """(switches per second, bytes per switch, lost) of perf record."""
    data = bench.file("storm.data")
    recorder = Program(with_tracefs([bench.peer("perf"), "record", "-a", "-e", "sched:sched_switch,sched:sched_waking",
                                     "-o", data]), pipe_in=False, out=subprocess.DEVNULL)
    time.sleep(1)
    seconds = pipes(bench, loops)
    recorder.end(signal.SIGINT)
    lost = re.search(r"lost ([\d,]+)|([\d,]+) events? lost|Lost (\d+)", recorder.errors() or "")
    text = subprocess.run([bench.peer("perf"), "report", "-i", data, "--stats"], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    counts = [int(n) for n in re.findall(r"SAMPLE events:\s+(\d+)", text)]
    lost_counts = [int(n) for n in re.findall(r"LOST(?:_SAMPLES)? events:\s+(\d+)", text)]
    switches = counts[1] if len(counts) > 1 else counts[0] // 2
    return switches / seconds, os.path.getsize(data) / max(1, switches), sum(lost_counts) + bool(lost)


def storms(bench, section):
    repeat = bench.repeat or (1 if bench.quick else 5)
    loops = 100_000 if bench.quick else 1_000_000
    try:
        alone = [4 * loops / pipes(bench, loops) for _ in range(repeat)]
        ours = [storm_ours(bench, loops) for _ in range(repeat)]
    except Missing as error:
        section.add("two pipes", "switches/s", [], note=f"perf: {error}")
        return
    section.add("two pipes, not recorded", "switches/s", alone, note=f"{loops} round trips each")
    rates, sizes, losts, costs = zip(*ours)
    section.add("two pipes: etwatch record", "switches/s", list(rates), bar=SWITCH_BAR, at_least=True)
    section.add("two pipes: etwatch record, lost", "events", list(losts), bar=1)
    section.add("two pipes: etwatch record, on disk", "bytes/switch", list(sizes), bar=BYTES_BAR,
                note="with its wake-up")
    section.add("two pipes: etwatch record, own cost", "% of a core", list(costs))
    try:
        theirs = [storm_perf(bench, loops) for _ in range(repeat)]
        rates, sizes, losts = zip(*theirs)
        section.add("two pipes: perf record", "switches/s", list(rates))
        section.add("two pipes: perf record, losses reported", "times", list(losts))
        section.add("two pipes: perf record, on disk", "bytes/switch", list(sizes), note="with its wake-up")
    except (Missing, Ended, IndexError, ValueError) as error:
        section.add("two pipes: perf record", "switches/s", [], note=str(error))


def run(bench):
    rounds = bench.repeat or (1 if bench.quick else 5)
    section = Section("record", f"every switch of the machine in a file, {rounds} rounds")
    slowdowns(bench, section, rounds)
    if bench.wanted("two pipes"):
        storms(bench, section)
    return section
