#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints every context switch with the outgoing and the incoming thread, the reason, and how long the incoming thread
had waited for the CPU; and every new thread with its process and start address.

Works with a running process (on Linux, with eBPF) or a recording (anywhere). Linux does not report the start address of
a new thread: it is unknown there.

usage: threads.py PID [SECONDS] | threads.py FILE.etl
"""
import os
import sys
from typing import Dict, Optional

import etwatch


def switch(t_ns: int, cpu: int, old: int, new: int, reason: str, wait_ns: Optional[int]) -> None:
    waited = "unknown" if wait_ns is None else f"{wait_ns / 1000:.1f} us"
    print(f"{t_ns} cpu {cpu} switch {old} -> {new} reason {reason} waited {waited}")


def new_thread(t_ns: int, pid: int, tid: int, address: Optional[int]) -> None:
    print(f"{t_ns} new thread {tid} of process {pid} starts at {'unknown' if address is None else hex(address)}")


def live(pid: int, seconds: float) -> None:
    ready: Dict[int, int] = {}  # thread: ready since
    with etwatch.watch(pid, events=True, latency_ms=100) as watch:
        print(f"watching {pid}", file=sys.stderr, flush=True)
        for event in watch.events(duration=seconds):
            if event.event == "wakeup":
                ready[event.tid] = event.t_ns
            elif event.event == "fork" and event.child_tid is not None and event.child_pid is not None:
                ready[event.child_tid] = event.t_ns
                new_thread(event.t_ns, event.child_pid, event.child_tid, None)
            elif event.event == "switch" and event.next_tid is not None:
                since = ready.pop(event.next_tid, None)
                switch(event.t_ns, event.cpu, event.tid, event.next_tid, event.reason or "unknown",
                       None if since is None else event.t_ns - since)
                if event.state == 0:
                    ready[event.tid] = event.t_ns  # preempted: it waits from now on
        print(f"lost {watch.stats['lost']} dropped {watch.events_dropped}")


def recorded(path: str) -> None:
    ready: Dict[int, int] = {}
    trace = etwatch.open(path)
    for event in trace.events(event=["CSwitch", "ReadyThread", "Thread/Start"]):
        fields = event.fields
        if event.event.endswith("ReadyThread"):
            ready[fields["TThreadId"]] = event.t_ns
        elif event.event.endswith("Start"):
            new_thread(event.t_ns, fields["ProcessId"], fields["TThreadId"], fields.get("Win32StartAddr"))
        else:
            since = ready.pop(fields["NewThreadId"], None)
            switch(event.t_ns, event.cpu, fields["OldThreadId"], fields["NewThreadId"],
                   str(fields["OldThreadWaitReason"]), None if since is None else event.t_ns - since)
    print(f"lost {trace.lost}")


if os.path.exists(sys.argv[1]):
    recorded(sys.argv[1])
else:
    live(int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 1.0)
