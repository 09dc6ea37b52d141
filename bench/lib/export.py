# SPDX-License-Identifier: MIT
"""export: how fast a recording is converted to the formats of other tools.

The whole program runs, from start to exit, on all CPUs; the output is an ordinary file. The bound is a plain copy
of the recording. The peer that reads recordings outside of Windows decodes the fields of every event and writes
nothing; it gets a small file, because it reads some thousand events a second.
"""
import os

from .etl import File, Peer, folder, make, millions, run_on
from .figures import Section

BAR = 2e6
FORMATS = [
    ("arrow", ("-f", "arrow"), BAR), ("perfetto", ("-f", "perfetto"), BAR),
    ("arrow with fields", ("-f", "arrow", "--fields"), None),
    ("arrow, typed switches", ("-f", "arrow", "--typed", "--event", "CSwitch"), None),
    ("csv", ("-f", "csv"), None), ("jsonl with fields", ("-f", "jsonl"), None),
    ("chrome", ("-f", "chrome"), None), ("folded", ("-f", "folded"), None),
    ("samples at 100 Hz, arrow", ("-f", "arrow", "--table", "samples", "--hz", "100"), None),
]


def export(bench, file, options, out):
    """Wall seconds of one export."""
    _, wall = run_on(os.sched_getaffinity(0), [bench.etwatch(), "export", "-q", file.path, *options, "-o", out])
    return wall


def measure_peer(bench, section, ours):
    path = make(bench, "small.etl", "bench", "--events", 2000 if bench.quick else 20000, "--cpus", 2)
    file, peer = File(bench, "a small file", path), Peer("dissect", "dissect.etl")
    peer.measure(file, sorted(os.sched_getaffinity(0))[0])
    section.add("dissect.etl, reading alone", "M events/s", millions(peer.values), ratio_to=ours, note=peer.note)


def run(bench):
    repeat = bench.repeat or (2 if bench.quick else 9)
    events = 200_000 if bench.quick else 1_000_000
    section = Section("export", f"a recording in the formats of other tools, {repeat} runs each")
    file = File(bench, "plain", make(bench, "export.etl", "bench", "--events", events, "--cpus", 8))
    out = os.path.join(folder(bench), "out")
    found, sizes, copies = {name: [] for name, _, _ in FORMATS}, {}, []
    for _ in range(repeat):
        for name, options, _ in FORMATS:
            found[name].append(file.events / export(bench, file, options, out))
            sizes[name] = os.path.getsize(out)
        _, wall = run_on(os.sched_getaffinity(0), ["cp", file.path, out])
        copies.append(file.events / wall)
    bound = section.add("plain copy", "M events/s", millions(copies), note=f"{file.mb:.0f} MB, {file.events} events")
    rows = [section.add(name, "M events/s", millions(found[name]), bar=bar and bar / 1e6, at_least=True, ratio_to=bound,
                        note=f"{sizes[name] / 1e6:.1f} MB") for name, _, bar in FORMATS]
    measure_peer(bench, section, rows[2])
    os.unlink(file.path)
    return section
