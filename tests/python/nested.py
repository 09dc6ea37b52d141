# SPDX-License-Identifier: MIT
"""The documented nested configuration: what it accepts, what it refuses, what it changes."""
import json
import os
import sys

from etwatch import ETWMonitor, ETWMonitorConfig
from lib import cases, check, check_eq, check_in, main, start, temp_dir, test
from livekit import wait_until

BUSY = "import time\nend = time.time() + 60\nwhile time.time() < end: pass"


def busy():
    return start(["-c", BUSY], program=sys.executable)


NESTED = {"monitoring": {
    "cpu": {"backend": "auto", "sampling_hz": 200, "aggregation": "p95"},
    "memory": {"backend": "psutil", "sampling_hz": 10, "aggregation": ["avg", "max"]},
    "gpu": {"backend": "nvml", "sampling_hz": 10}, "npu": {"enabled": False},
    "storage": {"type": "circular_buffer", "max_samples": 5000, "persist_to_disk": False},
    "overhead_limit": 3.0}}


@test
def the_nested_dict_is_accepted_as_configuration():
    monitor = ETWMonitor(NESTED)
    check_eq((monitor.config.sampling_rate_hz, monitor.config.buffer_size, monitor.config.overhead_limit),
             (200, 5000, 3.0))
    check_eq(ETWMonitorConfig.from_dict(NESTED), monitor.config)
    check_eq(ETWMonitor({"sampling_rate_hz": 20}).config.sampling_rate_hz, 20)


@cases([
    ("an unknown group", {"monitoring": {"cpus": {}}}, ValueError, "cpus cpu memory"),
    ("an unknown key", {"monitoring": {"cpu": {"hz": 1}}}, ValueError, "monitoring.cpu 'hz' sampling_hz"),
    ("an unknown backend", {"monitoring": {"cpu": {"backend": "magic"}}}, ValueError, "backend magic etw ebpf poll"),
    ("an aggregation that no summary has", {"monitoring": {"memory": {"aggregation": "sum"}}}, ValueError,
     "monitoring.memory.aggregation sum p99"),
    ("an unknown aggregation", {"monitoring": {"cpu": {"aggregation": "p12"}}}, ValueError, "aggregation p12 p95"),
    ("a rate out of range", {"monitoring": {"cpu": {"sampling_hz": 0}}}, ValueError, "monitoring.cpu.sampling_hz"),
    ("another storage", {"monitoring": {"storage": {"type": "tape"}}}, ValueError, "storage.type tape"),
    ("a number as group", {"monitoring": {"cpu": 7}}, TypeError, "monitoring.cpu dict"),
    ("no dict at all", "fast", TypeError, "config fast"),
    ("a field that does not exist", {"sampling_rate": 1}, ValueError, "sampling_rate"),
])
def a_nested_dict_with_a_mistake_is_refused_with_its_path(settings, kind, words):
    try:
        ETWMonitor(settings)
    except kind as error:
        for word in words.split():
            check_in(word, str(error), "message")
    else:
        check(False, "nothing was raised")


@test
def a_group_has_the_requested_aggregates_and_none_if_it_is_off():
    child = busy()
    monitor = ETWMonitor({"monitoring": {"cpu": {"sampling_hz": 50, "aggregation": ["p95", "max"]}, "memory": {},
                                         "io": {"enabled": False}}, "target_processes": {child.pid}})
    with monitor:
        wait_until(lambda: "cpu_ns" in monitor.get_process_summary().get(child.pid, {}).get("metrics", {}),
                   "it is in the summary")
        names = {sample.metric_name for sample in monitor.collect_metrics()}
        found = monitor.get_process_summary()[child.pid]
    check_eq(set(found["metrics"]["cpu_ns"]), {"p95", "maximum", "intervals"})
    check_eq(set(found["metrics"]["process_cpu_percent"]), {"p95", "maximum", "intervals"})
    check_eq(set(found["metrics"]["rss_bytes"]), {"average", "maximum", "p95", "p99", "intervals"})
    off = [name for name in [*found["metrics"], *found["totals"], *names] if "io_" in name or "net_" in name]
    check_eq(off, [])


@test
def persisted_data_is_json_lines():
    with temp_dir() as folder:
        path = os.path.join(folder, "kept.jsonl")
        child = busy()
        monitor = ETWMonitor({"monitoring": {"cpu": {"sampling_hz": 50}, "memory": {"backend": "psutil"},
                                             "storage": {"persist_to_disk": path}},
                              "target_processes": {child.pid}})
        with monitor:
            wait_until(lambda: os.path.getsize(path) > 0, "a file is written")
        with open(path, encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        check_eq({row["pid"] for row in rows}, {child.pid})
        del monitor


# ---------------------------------------------------------------------------- monitor


main()
