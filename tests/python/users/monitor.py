# SPDX-License-Identifier: MIT
"""Block (a): a configuration, five seconds, the summary and the statistics. The first argument shortens the five."""
import sys
import time

from etwatch import ETWMonitor, ETWMonitorConfig

config = ETWMonitorConfig(
    sampling_rate_hz=100.0,
    buffer_size=10000,
    target_process_names={"python", "python.exe", "onnxruntime"},
    max_processes=20,
)
monitor = ETWMonitor(config)
monitor.start_monitoring()
time.sleep(float(sys.argv[1]) if len(sys.argv) > 1 else 5)
summary = monitor.get_process_summary()
statistics = monitor.get_statistics()
monitor.stop_monitoring()
monitor.cleanup()

for pid, process in summary.items():
    cpu = process["metrics"].get("process_cpu_percent")
    if cpu is not None:
        print(f"{pid} {process['name']} average {cpu['average']:.1f} p95 {cpu['p95']:.1f} samples {process['samples']}")
print(f"backend {statistics['backend']} samples {statistics['samples']} rate {statistics['hz_requested']:.0f} "
      f"lost {statistics['lost']}")
