#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The busiest processes and threads of a recording (.etl, .pftrace), without Windows.

usage: recording.py FILE
"""
import sys

import etwatch

path = sys.argv[1]
try:
    trace = etwatch.open(path)
except (OSError, etwatch.ETWError) as error:
    sys.exit(f"recording.py: {error}")

print(f"{path}: {trace.stats['events']} events in {trace.duration:.3f} s, lost {trace.lost}")
rows = [row for row in trace.processes.rows() if row["pid"] != 0]  # pid 0 is the idle loop
for row in sorted(rows, key=lambda row: -(row["cpu_ns"] or 0))[:10]:
    used = "unknown" if row["cpu_ns"] is None else f"{row['cpu_ns'] / 1e6:.3f} ms"
    print(f"process {row['pid']} {row['name']} cpu {used}")
busiest = sorted(trace.threads.rows(), key=lambda row: -(row["cpu_ns"] or 0))[:5]
for row in busiest:
    used = "unknown" if row["cpu_ns"] is None else f"{row['cpu_ns'] / 1e6:.3f} ms"
    print(f"thread {row['tid']} of {row['name']} cpu {used}")
for row in sorted(trace.classes.rows(), key=lambda row: -row["count"])[:5]:
    print(f"event {row['event']} {row['count']}")
