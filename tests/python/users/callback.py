# SPDX-License-Identifier: MIT
"""Block (b): add_process of a running inference and a callback that prints its CPU use."""
import sys
import time

from etwatch import ETWMonitor, MetricSample


def on_metric(sample: MetricSample) -> None:
    if sample.metric_name == "process_cpu_percent":
        print(f"{sample.timestamp:.3f} {sample.pid} {sample.process_name} {sample.value:.1f}{sample.unit}")


monitor = ETWMonitor()
monitor.add_process(int(sys.argv[1]))
monitor.register_callback(on_metric)
monitor.start_monitoring()
time.sleep(float(sys.argv[2]) if len(sys.argv) > 2 else 5)
monitor.stop_monitoring()
monitor.cleanup()
