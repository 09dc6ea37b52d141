# SPDX-License-Identifier: MIT
"""Groups of devices and of the machine in the stream: UnifiedMonitor, and the nested configuration, with a fake driver."""
import collections
import os
import sys
import time
import warnings

import etwatch
from lib import BUILD, cases, check, check_between, check_eq, check_in, main, raises, skip, start, temp_dir, test
from livekit import wait_until

LIBRARY = os.path.join(BUILD, "tests", "libfakenvml.so")
BUSY = "import time\nend = time.time() + 60\nwhile time.time() < end: pass"
IDLE = "import time\ntime.sleep(60)"


def fake_driver(folder, pid):
    """Options of a monitor on a machine with one GPU, on which the process computes."""
    if sys.platform == "win32" or not os.path.exists(LIBRARY):
        skip("the fake driver was not built")
    os.environ["FAKE_NVML"] = os.path.join(folder, "control")
    with open(os.environ["FAKE_NVML"], "w", encoding="utf-8") as file:
        file.write(f"util 40\nwatts 200\npid {pid} 512 30\n")
    return {"nvml_library": LIBRARY, "sys_root": os.path.join(folder, "sys")}


def python(code=BUSY):
    return start(["-c", code], program=sys.executable)


def quiet(kind, *arguments, **named):
    """A monitor without any warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return kind(*arguments, **named)


def nested(pid, **groups):
    return {"monitoring": {name: settings for name, settings in groups.items()}, "target_processes": {pid}}


def names_of(samples):
    return collections.Counter(sample.metric_name for sample in samples)


@test
def devices_their_processes_and_the_machine_are_in_one_stream():
    child = python()
    with temp_dir() as folder:
        monitor = quiet(etwatch.UnifiedMonitor, {"target_processes": {child.pid}}, **fake_driver(folder, child.pid))
        called, collected = [], []
        monitor.register_callback(called.append)
        wanted = {"process_cpu_percent", "process_gpu_percent", "process_gpu_memory_mb", "system_cpu_percent",
                  "gpu_util_percent", "gpu_memory_used_mb", "gpu_temperature_celsius", "gpu_power_watts"}
        with monitor:
            wait_until(lambda: collected.extend(monitor.collect_metrics()) or (
                wanted <= set(names_of(called)) and wanted <= set(names_of(collected))), "every kind, for both consumers")
            # A driver that does not answer in time, as on a busy machine, has no devices.
            wait_until(lambda: monitor.get_current_metrics()["gpu"]["devices"], "the GPU")
            now = monitor.get_current_metrics()
        check_eq({s.value for s in collected if s.metric_name == "gpu_util_percent"}, {40})
        check_eq({(s.pid, s.process_name) for s in collected if s.metric_name == "gpu_power_watts"}, {(0, "00000000:41:00.0")})
        check_eq({s.value for s in collected if s.metric_name == "process_gpu_memory_mb"}, {512})
        for device in now["gpu"]["devices"]:
            check_eq((device["name"], device["util_percent"], device["power_watts"]),
                     ("NVIDIA Fake 0", 40, 200))
        times = [s.timestamp for s in called if s.metric_name == "gpu_util_percent"]
        check_eq(len(set(times)), len(times), "each reading is delivered once")


@test
def without_callbacks_and_without_activity_the_machine_is_sampled_at_its_rate():
    child = python(IDLE)
    monitor = quiet(etwatch.UnifiedMonitor, nested(child.pid, system={"sampling_hz": 50}))
    with monitor:
        time.sleep(1.0)
        found = names_of(monitor.collect_metrics())
        wait_until(lambda: found.update(names_of(monitor.collect_metrics())) or found["system_cpu_percent"] > 10, "samples")
    check_eq(found["system_cpu_percent"], found["system_memory_used_mb"])
    # A group that is disabled is not read.
    with quiet(etwatch.UnifiedMonitor, nested(child.pid, system={"enabled": False})) as monitor:
        time.sleep(0.2)
        check_eq([name for name in names_of(monitor.collect_metrics()) if name.startswith("system")], [])


@test
def the_group_of_a_device_measures_its_processes_at_its_rate():
    child = python()
    with temp_dir() as folder:
        settings = nested(child.pid, cpu={"sampling_hz": 50}, gpu={"sampling_hz": 5, "metrics": ["utilization", "memory"]})
        monitor = quiet(etwatch.ETWMonitor, settings, **fake_driver(folder, child.pid))
        check_eq(monitor.config.sampling_rate_hz, 50)
        got = []
        with monitor:
            wait_until(lambda: got.extend(monitor.collect_metrics()) or
                       sum(s.metric_name == "process_gpu_percent" and s.value > 0 for s in got) > 3, "GPU time")
            summary = monitor.get_process_summary()[child.pid]["metrics"]
        counts = names_of(got)
        check(counts["process_gpu_percent"] * 3 < counts["process_cpu_percent"], f"{counts}: not a tenth of the rate")
        check("process_energy_uj" not in counts, f"{counts}: a group that is not configured")
        times = sorted(s.timestamp for s in got if s.metric_name == "process_gpu_percent")
        check(min(b - a for a, b in zip(times, times[1:])) > 0.15, f"{times}: not 5 Hz")
        check_in("gpu_percent", summary)
        # An interval that was delivered before the device was read is not counted as idle.
        values = sorted(s.value for s in got if s.metric_name == "process_gpu_percent" and s.value > 0)
        check_between(values[len(values) // 2], 20, 45, f"the process computes for 30 %: {values}")
        check(all(0 <= s.value <= 150 for s in got if s.metric_name == "process_gpu_percent"), "per cent of an interval")


@test
def a_monitor_measures_the_metrics_of_a_device_that_are_selected():
    child = python()
    for kind in (etwatch.ETWMonitor, etwatch.UnifiedMonitor):
        with temp_dir() as folder:
            monitor = quiet(kind, nested(child.pid, gpu={"metrics": ["memory"]}), **fake_driver(folder, child.pid))
            got = []
            with monitor:
                wait_until(lambda: got.extend(monitor.collect_metrics()) or
                           names_of(got)["process_gpu_memory_mb"] > 1, "GPU memory")
            check_eq(names_of(got)["process_gpu_percent"], 0, kind.__name__)


@cases([(name, name) for name in ("cpu", "memory", "threads", "io", "disk", "network", "handles")])
def every_group_may_have_its_own_rate(name):
    child = python()
    other = "cpu" if name != "cpu" else "io"
    monitor = quiet(etwatch.ETWMonitor, nested(child.pid, **{name: {"sampling_hz": 2}, other: {"sampling_hz": 40}}))
    check_eq(monitor.config.sampling_rate_hz, 40)
    aliases = {"cpu": "process_cpu_percent", "memory": "process_memory_rss_mb", "threads": "process_threads",
               "io": "process_io_read_bytes", "handles": "process_handles"}
    ours = {"disk": "disk_read_bytes", "network": "net_received_bytes"}  # only in summaries
    with monitor:
        got = []
        wait_until(lambda: got.extend(monitor.collect_metrics()) or
                   names_of(got)["process_cpu_percent" if other == "cpu" else "process_io_read_bytes"] > 40 and
                   (name not in aliases or names_of(got)[aliases[name]] > 0), "samples")
    counts = names_of(got)
    fast = counts["process_cpu_percent" if other == "cpu" else "process_io_read_bytes"]
    if name in aliases and name != "memory":  # its values are in every sample that they are valid for
        check(counts[aliases[name]] * 4 < fast, f"{counts}")
    if name in ours:
        found = monitor.get_process_summary()[child.pid]["metrics"]
        if name == "network" and ours[name] not in found:
            skip("this kernel does not count the network bytes of a process")
        check_between(found[ours[name]]["intervals"], 1, fast / 4, f"intervals of {name} next to {fast}")


@test
def memory_is_read_as_often_as_requested():
    child = python("import time\nend = time.time() + 60\nheld = []\n"
                   "while time.time() < end: held.append(bytearray(40960)); time.sleep(0.001)")
    found = []
    for hz in (2, 50):
        monitor = quiet(etwatch.ETWMonitor, nested(child.pid, cpu={"sampling_hz": 50}, memory={"sampling_hz": hz}))
        values = []
        with monitor:
            wait_until(lambda: values.extend(s for s in monitor.collect_metrics() if s.metric_name.endswith(
                ("cpu_percent", "rss_mb"))) or names_of(values)["process_cpu_percent"] > 50, "samples")
        found.append(names_of(values)["process_memory_rss_mb"] / names_of(values)["process_cpu_percent"])
    check(found[0] * 2 < found[1], f"{found}: the part of samples with memory at 2 and at 50 Hz")


@test
def a_slow_gauge_is_the_latest_that_was_known():
    child = python()
    monitor = quiet(etwatch.ETWMonitor, nested(child.pid, cpu={"sampling_hz": 50}, handles={"sampling_hz": 2}))
    got = []
    with monitor:
        wait_until(lambda: got.extend(s for s in monitor.collect_metrics() if s.metric_name == "process_handles") or
                   len(got) > 1, "handles")
    check(all(sample.value > 2 for sample in got), f"{got}")


@test
def what_only_a_unified_monitor_has_gives_a_warning_elsewhere():
    settings = {"monitoring": {"system": {"sampling_hz": 5}, "gpu": {"metrics": ["utilization", "temperature"]}}}
    with temp_dir() as folder:
        driver = fake_driver(folder, os.getpid())
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            etwatch.ETWMonitor(settings, **driver)
        check_eq(sorted(str(one.message).split(":")[0] for one in caught), ["monitoring.gpu.metrics", "monitoring.system"])
        quiet(etwatch.UnifiedMonitor, settings, **driver).cleanup()


@test
def a_counter_of_a_device_has_no_gap_though_its_group_is_slower():
    child = python()
    with temp_dir() as folder:
        settings = nested(child.pid, gpu={"sampling_hz": 20}, energy={"sampling_hz": 4, "metrics": ["energy"]})
        monitor = quiet(etwatch.UnifiedMonitor, settings, **fake_driver(folder, child.pid))
        got = []
        with monitor:
            wait_until(lambda: got.extend(s for s in monitor.collect_metrics() if s.metric_name == "gpu_energy_joules") or
                       len(got) > 20, "energy of the GPU")
        # It draws 200 W, and the energy of each reading is since the one before.
        seconds = got[-1].timestamp - got[0].timestamp
        check_between(sum(sample.value for sample in got[1:]) / seconds, 150, 250, "watts")


@test
def a_unified_monitor_ends_its_threads():
    before = set(os.listdir("/proc/self/task")) if sys.platform != "win32" else set()
    child = python()
    with temp_dir() as folder:
        monitor = quiet(etwatch.UnifiedMonitor, {"target_processes": {child.pid}}, **fake_driver(folder, child.pid))
        with monitor:
            wait_until(monitor.collect_metrics, "samples")
        monitor.start_monitoring()
        wait_until(lambda: names_of(monitor.collect_metrics())["gpu_util_percent"] > 0, "the GPU after a restart")
        monitor.cleanup()
        monitor.cleanup()
        del monitor
    wait_until(lambda: set(os.listdir("/proc/self/task")) <= before or sys.platform == "win32", "its threads ended")
    raises(TypeError, "nvml", etwatch.ETWMonitor, nvml=1)


main()
