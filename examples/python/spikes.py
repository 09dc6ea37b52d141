#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reports every stretch of time in which a process used more than 80 % of a core, however short.

Samples are a millisecond long and cut by the kernel's own accounting, so a spike of 5 ms is about five of them;
adjacent ones are reported as one.

usage: spikes.py PID [SECONDS [PERCENT]]
"""
import sys

import etwatch

pid = int(sys.argv[1])
seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 5.0
limit = float(sys.argv[3]) if len(sys.argv) > 3 else 80.0


def report(begin_ns: int, end_ns: int, peak: float) -> None:
    print(f"spike at {begin_ns / 1e9:.6f} for {(end_ns - begin_ns) / 1e6:.1f} ms, up to {peak:.0f} %", flush=True)


spikes = 0
begin_ns = end_ns = 0
peak = 0.0
with etwatch.watch(pid, hz=1000, latency_ms=100) as watch:
    print(f"watching {pid}", file=sys.stderr, flush=True)
    for sample in watch.samples(duration=seconds):
        if sample.cpu_percent is None or sample.cpu_percent <= limit:
            continue
        if begin_ns and sample.t_ns - sample.dt_ns > end_ns:
            report(begin_ns, end_ns, peak)
            begin_ns, peak = 0, 0.0
        if not begin_ns:
            begin_ns = sample.t_ns - sample.dt_ns
            spikes += 1
        end_ns = sample.t_ns
        peak = max(peak, sample.cpu_percent)
    if begin_ns:
        report(begin_ns, end_ns, peak)
    print(f"{spikes} spikes, {watch.stats['lost']} events lost, source {watch.backend}")
