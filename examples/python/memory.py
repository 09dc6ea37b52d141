#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Page faults and allocations with address and size.

A Windows recording has each of them. For a running process only the number of faults and the amount of memory are
measured: address and size are then printed as unknown.

usage: memory.py FILE.etl | memory.py PID [SECONDS]
"""
import os
import sys
from typing import Optional

import etwatch


def line(t_ns: int, pid: Optional[int], what: str, address: Optional[int], size: Optional[int]) -> None:
    where = "unknown" if address is None else hex(address)
    print(f"{t_ns} {pid} {what} address {where} size {'unknown' if size is None else size}")


def recorded(path: str) -> None:
    trace = etwatch.open(path)
    for event in trace.events(event=["*Fault*", "*CopyOnWrite", "*GuardMemory*", "VirtualMem/*"]):
        fields = event.fields
        kind = event.event.split("/")[-1]
        if event.event.startswith("VirtualMem/"):
            line(event.t_ns, fields.get("ProcessId", event.pid), kind, fields.get("BaseAddress"), fields.get("RegionSize"))
        else:
            line(event.t_ns, event.pid, kind, fields.get("VirtualAddress"), fields.get("ByteCount", 4096))
    print(f"lost {trace.lost}")


def live(pid: int, seconds: float) -> None:
    with etwatch.watch(pid, hz=100, latency_ms=100) as watch:
        print(f"watching {pid}", file=sys.stderr, flush=True)
        held = None
        for sample in watch.samples(duration=seconds):
            if sample.faults_minor or sample.faults_major:
                line(sample.t_ns, sample.pid, f"{sample.faults_minor} minor and {sample.faults_major} major faults",
                     None, None)
            if sample.private_bytes is not None:
                if held is not None and sample.private_bytes > held:
                    line(sample.t_ns, sample.pid, "private memory grew", None, sample.private_bytes - held)
                held = sample.private_bytes
        print(f"lost {watch.stats['lost']}")


if os.path.exists(sys.argv[1]):
    recorded(sys.argv[1])
else:
    live(int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 2.0)
