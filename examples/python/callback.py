#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Monitors one running process, such as an inference, and prints its CPU use as it arrives.

usage: callback.py PID [SECONDS]
"""
import sys
import time

from etwatch import ETWMonitor, MetricSample

pid = int(sys.argv[1])
seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 5.0


def on_sample(sample: MetricSample) -> None:
    if sample.metric_name == "process_cpu_percent":
        print(f"{sample.timestamp:.3f} {sample.pid} {sample.process_name} {sample.value:.1f} {sample.unit}", flush=True)


monitor = ETWMonitor()
monitor.register_callback(on_sample)
try:
    monitor.add_process(pid)
except ProcessLookupError as error:
    sys.exit(f"callback.py: {error}")
monitor.start_monitoring()
try:
    time.sleep(seconds)
finally:
    monitor.cleanup()
