#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Monitors processes by name for some seconds, then prints what they did and what the monitor cost.

usage: monitor.py [SECONDS [NAME...]]
"""
import sys
import time

from etwatch import ETWMonitor, ETWMonitorConfig

seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
names = set(sys.argv[2:]) or {"python", "onnxruntime_perf_test"}

config = ETWMonitorConfig(sampling_rate_hz=100.0, buffer_size=10000, target_process_names=names, max_processes=20)
monitor = ETWMonitor(config)
monitor.start_monitoring()
time.sleep(seconds)

for pid, summary in monitor.get_process_summary().items():
    cpu = summary["metrics"].get("cpu_percent")
    if cpu is not None:
        print(f"{pid} {summary['name']} cpu average {cpu['average']:.1f} maximum {cpu['maximum']:.1f} "
              f"p95 {cpu['p95']:.1f} p99 {cpu['p99']:.1f} of {summary['lifetime']:.2f} s")

statistics = monitor.get_statistics()
print(f"backend {statistics['backend']} requested {statistics['hz_requested']:g} Hz reached {statistics['hz_reached']:.2f} Hz")
print(f"samples {statistics['samples']} lost {statistics['lost']} own cpu {statistics['self_cpu_percent']:.3f} % "
      f"own memory {statistics['self_rss_bytes'] / 1e6:.1f} MB")

monitor.stop_monitoring()
monitor.cleanup()
