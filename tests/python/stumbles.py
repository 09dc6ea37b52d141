# SPDX-License-Identifier: MIT
"""What new users stumbled over, each as the behaviour that they expected."""
import asyncio
import contextlib
import dataclasses
import importlib.machinery
import os
import subprocess
import sys
import time
import warnings

import etwatch
from etlkit import make_etl
from etwatch import ETWMonitor, ETWMonitorConfig
from etwatch import config as config_module
from etwatch import devices as devices_module
from etwatch.config import read_settings
from etwatch.etw import flush_ms, kernel_kinds, session_buffers
from etwatch.samples import ALIASES, MetricTable, TotalTable
from lib import BUILD, ROOT, cases, check, check_between, check_eq, check_in, main, raises, run, start, temp_dir, test
from livekit import wait_until

BUSY = "import time\nend = time.time() + 60\nwhile time.time() < end: pass"
WRITES = "import os, time\nend = time.time() + 60\nf = os.open('/dev/null', os.O_WRONLY)\n" \
         "while time.time() < end: os.write(f, b'x' * 100)"


def python(code=BUSY):
    return start(["-c", code], program=sys.executable)


def warned(*arguments, **named):
    """(monitor, its warnings as text)"""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        monitor = ETWMonitor(*arguments, **named)
    check(all(one.filename == __file__ for one in caught), f"{[one.filename for one in caught]}: not the caller's line")
    return monitor, [str(one.message) for one in caught]


# ------------------------------------------------------------------------- configurations


@cases([
    ("a group of a device", {"monitoring": {"gpu": {"metrics": ["utilization"]}}}, ["monitoring.gpu"]),
    ("allocations without ETW", {"monitoring": {"memory": {"track_allocations": True}}},
     ["monitoring.memory.track_allocations"]),
    ("no allocations", {"monitoring": {"memory": {"track_allocations": False}}}, []),
    ("profiling of the watched program", {"monitoring": {"npu": {"enable_profiling": True}}},
     ["monitoring.npu.enable_profiling", "monitoring.npu"]),
    ("the source of another system", {"monitoring": {"cpu": {"backend": "etw"}}}, ["monitoring.cpu.backend"]),
    ("a flag without a group", {"kernel_flags": ["EVENT_TRACE_FLAG_IMAGE_LOAD", "EVENT_TRACE_FLAG_CSWITCH"]},
     ["kernel_flags"]),
    ("a setting of a session", {"process_filter": {}, "min_buffers": 8, "flush_timer": 2}, ["min_buffers", "flush_timer"]),
    ("the same as a config", ETWMonitorConfig(min_buffers=8), ["min_buffers"]),
    ("a name of Windows", ETWMonitorConfig(target_process_names={"python.exe"}), ["target_process_names"]),
    ("stacks without ETW", {"stack_walk_enabled": True}, ["stack_walk_enabled"]),
    ("a setting of a session next to groups",
     {"monitoring": {"cpu": {}}, "min_buffers": 8, "enable_stack_walking": True}, ["min_buffers", "enable_stack_walking"]),
    ("another source for a group", {"monitoring": {"cpu": {"backend": "psutil"}, "io": {"backend": "psutil"},
                                                   "memory": {"backend": "ebpf"}}}, ["monitoring.memory.backend"]),
    ("a polled group of an event source", {"monitoring": {"disk": {"backend": "psutil"}, "memory": {"backend": "psutil"}}},
     ["monitoring.disk.backend"]),
    ("the backend of a device", {"monitoring": {"gpu": {"backend": "magic"}}}, ["monitoring.gpu.backend", "monitoring.gpu"]),
    ("the backend of the machine", {"monitoring": {"system": {"backend": "psutil"}}},
     ["monitoring.system.backend", "monitoring.system"]),
    ("nothing in particular", {"sampling_rate_hz": 10}, []),
    ("the defaults", None, []),
])
def a_setting_without_effect_gives_one_warning_with_its_key(settings, keys):
    monitor, texts = warned(settings)
    check_eq([text.split(":")[0] for text in texts], keys, "warnings")
    check(all(len(text.split(": ", 1)[1]) > 15 for text in texts), f"no reason in {texts}")
    monitor.cleanup()


@contextlib.contextmanager
def system(windows, devices=False):
    """The configuration as on another machine."""
    before = config_module.WINDOWS, devices_module.unavailable_reason
    config_module.WINDOWS = windows
    devices_module.unavailable_reason = lambda name: None if devices else f"there is no {name} here"
    try:
        yield
    finally:
        config_module.WINDOWS, devices_module.unavailable_reason = before


def users_configuration(name):
    path = os.path.join(ROOT, "tests", "python", "users", "configurations.py")
    return getattr(importlib.machinery.SourceFileLoader("configurations", path).load_module(), name)


SESSION_KEYS = ["session_name", "buffer_size", "min_buffers", "max_buffers", "flush_timer", "cpu_sampling_interval"]


@cases([
    ("on Linux", "PRODUCTION_CONFIG", False, False,
     ["gpu", "npu.backend", "npu.enable_profiling", "npu"]),
    ("on Linux with devices", "PRODUCTION_CONFIG", False, True,
     ["gpu.metrics", "npu.backend", "npu.enable_profiling"]),
    ("on Windows", "PRODUCTION_CONFIG", True, False, ["gpu", "npu.backend", "npu.enable_profiling", "npu"]),
    ("on Linux", "ETW_SESSION_CONFIG", False, False, [*SESSION_KEYS, "kernel_flags"]),
    ("on Windows", "ETW_SESSION_CONFIG", True, False, []),
])
def a_configuration_of_the_users_warns_of_every_key_that_has_no_effect(name, windows, devices, keys):
    with system(windows, devices):
        found = read_settings(users_configuration(name))
    want = [f"monitoring.{key}" for key in keys] if name == "PRODUCTION_CONFIG" else keys
    check_eq(sorted([*found.ignored, *found.unified]), sorted(want), "keys")


@cases([
    ("flags without a session", {"kernel_flags": ["EVENT_TRACE_FLAG_REGISTRY", "EVENT_TRACE_FLAG_IMAGE_LOAD"]}, None,
     ["kernel_flags"]),
    ("allocations", {"monitoring": {"memory": {"track_allocations": True}}}, None, ["monitoring.memory.track_allocations"]),
    ("a session", {"monitoring": {}, "min_buffers": 8}, None, []),
    ("a session that is not opened", {"monitoring": {}, "min_buffers": 8}, "poll", ["min_buffers"]),
    ("the polling source of the configuration", {"monitoring": {"cpu": {"backend": "psutil"}}, "min_buffers": 8}, None,
     ["min_buffers"]),
    ("a source that the monitor overrides", {"monitoring": {"cpu": {"backend": "etw"}}}, "poll", ["monitoring.cpu.backend"]),
    ("the source of Linux", {"monitoring": {"cpu": {"backend": "ebpf"}}}, None, ["monitoring.cpu.backend"]),
])
def a_setting_without_effect_on_windows_gives_one_warning_too(settings, source, keys):
    with system(windows=True):
        found = read_settings(settings, source=source)
    check_eq(list(found.ignored), keys)
    check("virtualalloc" not in kernel_kinds(found.config), "events that nothing reports")


@test
def a_monitor_that_polls_warns_of_another_source():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        etwatch.PSUtilMonitor({"monitoring": {"cpu": {"backend": "ebpf"}}})
    check_eq([str(one.message).split(":")[0] for one in caught], ["monitoring.cpu.backend"])


@test
def every_flag_opens_a_session_of_windows():
    program = """
import warnings
from etwatch import ETWMonitor, config, etw
config.WINDOWS = etw.WINDOWS = True
for flag in config.FLAG_SWITCHES:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with ETWMonitor({"kernel_flags": [config.PREFIX + flag]}, fallback=False) as monitor:
            print(flag, monitor.backend, len(caught))
"""
    with temp_dir() as folder:
        recording = os.path.join(folder, "t.etl")
        make_etl("consumers", recording)
        result = run(["-c", program], program=sys.executable, env={
            **os.environ, "PYTHONPATH": os.path.join(ROOT, "python"), "ETWATCH_EMULATED": recording,
            "ETWATCH_LIBRARY": os.path.join(BUILD, "tests", "libetwatch_emulated.so")})
    check_eq(result.code, 0, result.err)
    check_eq(result.out.splitlines(), [f"{flag} etw {int(flag in config_module.NOT_ENABLED)}"
                                       for flag in config_module.FLAG_SWITCHES])


@cases([
    ("an unknown key", {"process_filter": {"pids": []}}, ValueError, "process_filter pids include_pids"),
    ("a flag that does not exist", {"kernel_flags": ["EVENT_TRACE_FLAG_MAGIC"]}, ValueError, "kernel_flags MAGIC CSWITCH"),
    ("a switch in words", {"stack_walk_enabled": "no"}, TypeError, "stack_walk_enabled"),
    ("an unknown metric of a device", {"monitoring": {"gpu": {"metrics": ["mood"]}}}, ValueError, "gpu.metrics mood"),
    ("a rate in words", "100", TypeError, "config 100"),
    ("a rate out of range", 5000, ValueError, "sampling_rate_hz 1000"),
    ("a truth value", True, TypeError, "sampling_rate_hz"),
])
def a_mistake_in_a_configuration_is_refused_with_its_key(settings, kind, words):
    raises(kind, words, ETWMonitor, settings)


@test
def an_impossible_value_is_a_value_error_with_the_field_and_its_range():
    for value in ("100", -1, float("nan"), [1], None):
        error = raises(ValueError, "sampling_rate_hz 0.1 1000", ETWMonitorConfig, sampling_rate_hz=value)
        check(isinstance(error, TypeError) == (not isinstance(value, (int, float))), repr(error))
    for field in dataclasses.fields(ETWMonitorConfig):
        raises(ValueError, field.name, ETWMonitorConfig, **{field.name: object()})
    for field in ("buffer_size", "max_buffers", "callback_batch_ms"):
        raises(ValueError, f"{field} whole from to", ETWMonitorConfig, **{field: 1.5})


class Whole:
    """A whole number that is no int, as those of numpy and pandas."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value

    def __hash__(self):
        return hash(self.value)

    def __eq__(self, other):
        return self.value == other


@test
def whole_numbers_of_other_libraries_are_taken():
    child = python()
    pid = Whole(child.pid)
    config = ETWMonitorConfig(sampling_rate_hz=Whole(50), buffer_size=Whole(500), target_processes={pid})
    check_eq([type(value) for value in (config.sampling_rate_hz, config.buffer_size, *config.target_processes)], [int] * 3)
    with ETWMonitor(config) as monitor:
        monitor.add_process(pid)
        wait_until(lambda: child.pid in monitor.get_process_metrics(), "samples")
        check_eq(monitor.get_process_metrics(pid).pid, child.pid)
        monitor.remove_process(pid)
    check_eq(etwatch.Process(pid).pid, child.pid)
    check(etwatch.pid_exists(pid), "pid_exists")
    with etwatch.watch(pid, hz=Whole(50), duration=0.3) as watched:
        check_eq({sample.pid for sample in watched} - {child.pid}, set())


@test
def the_configuration_of_a_session_means_the_buffers_of_etw_by_buffer_size():
    settings = read_settings({"buffer_size": 128, "kernel_flags": ["EVENT_TRACE_FLAG_CSWITCH"], "process_filter": {
        "include_pids": [os.getpid()], "exclude_pids": [0, 4], "include_names": {"a"}, "exclude_names": ["System"]}})
    config = settings.config
    check_eq((config.buffer_size_kb, config.buffer_size), (128, 10000))
    check_eq((config.target_processes, config.exclude_processes), ({os.getpid()}, {4}))
    check_eq((config.target_process_names, config.exclude_process_names), ({"a"}, {"System"}))
    check(config.enable_context_switch and not config.enable_memory_events, "the flags do not switch the groups")
    check_in("EVENT_TRACE_FLAG_CSWITCH", kernel_kinds(config))


@test
def a_config_as_a_dict_means_the_same():
    config = ETWMonitorConfig(buffer_size=500, kernel_flags=["EVENT_TRACE_FLAG_CSWITCH"], exclude_processes={4})
    check_eq(read_settings(dataclasses.asdict(config)).config, read_settings(dataclasses.replace(config)).config)


@test
def a_number_is_the_rate():
    check_eq(ETWMonitor(250).config.sampling_rate_hz, 250)
    check_eq(ETWMonitor(0.5).config.sampling_rate_hz, 0.5)


@test
def a_name_with_exe_matches_the_program_without_it():
    child = python()
    monitor, _ = warned(ETWMonitorConfig(target_process_names={"python.exe"}))
    with monitor:
        wait_until(lambda: child.pid in monitor.get_process_metrics(), "python by the name python.exe")


@test
def excluded_processes_are_not_reported():
    first, second = python(), python()
    with ETWMonitor({"target_processes": {first.pid, second.pid}, "exclude_processes": {second.pid}}) as monitor:
        got = set()
        wait_until(lambda: got.update(s.pid for s in monitor.collect_metrics()) or first.pid in got, "the other one")
        time.sleep(0.5)
        got.update(s.pid for s in monitor.collect_metrics())
    check_eq(got, {first.pid})


@test
def buffers_suffice_for_a_million_switches_a_second_whatever_the_minimum_is():
    for cpus in (1, 4, 16, 128):
        least, most = session_buffers(ETWMonitorConfig(), cpus)
        check(least >= max(16, 8 * cpus) and most >= least, f"{least} to {most} buffers for {cpus} CPUs")
    check_eq(session_buffers(ETWMonitorConfig(min_buffers=200, max_buffers=400), 4), (200, 400))
    check_eq(session_buffers(ETWMonitorConfig(max_buffers=20), 4), (20, 20))  # a stated maximum holds


@test
def events_do_not_stay_in_a_buffer_longer_than_samples_may_be_held():
    check_eq(flush_ms(ETWMonitorConfig()), 100)
    check_eq(flush_ms(ETWMonitorConfig(callback_batch_ms=5000)), 1000)
    check_eq(flush_ms(ETWMonitorConfig(flush_timer=0.02)), 20)


# ---------------------------------------------------------------------------------- rates


@test
def each_group_has_its_own_rate():
    child = python(WRITES)
    monitor = ETWMonitor({"monitoring": {"cpu": {"sampling_hz": 10}, "io": {"sampling_hz": 100, "aggregation": "p99"},
                                         "memory": {"sampling_hz": 20}}, "target_processes": {child.pid}})
    check_eq(monitor.config.sampling_rate_hz, 100)
    got = []
    with monitor:
        wait_until(lambda: got.extend(monitor.collect_metrics()) or
                   sum(s.metric_name == "process_cpu_percent" for s in got) > 10, "samples")
    got += monitor.collect_metrics()
    times = {name: [s.timestamp for s in got if s.metric_name == name]
             for name in ("process_cpu_percent", "process_io_write_bytes")}
    steps = [b - a for a, b in zip(times["process_cpu_percent"], times["process_cpu_percent"][1:])]
    # The last interval ends with monitoring, and one in which the process did not run is missing.
    check(all(abs(step / 0.1 - round(step / 0.1)) < 0.01 for step in steps[:-1]), f"intervals of {steps}")
    # Ten times as often on a quiet machine; an interval in which the process did not get a CPU has no sample.
    check(len(times["process_io_write_bytes"]) > len(times["process_cpu_percent"]), "io is not faster")
    found = monitor.get_process_summary()[child.pid]
    for ours, theirs in (("io_write_bytes", "process_io_write_bytes"), ):
        check_eq(sum(s.value for s in got if s.metric_name == theirs), found["totals"][ours], theirs)
    switches = sum(s.value for s in got if s.metric_name == "process_context_switches")
    check_eq(switches, found["totals"]["process_context_switches"], "switches")
    busy = sum(s.value for s in got if s.metric_name == "process_cpu_percent")
    check(busy > 0 and max(s.value for s in got if s.metric_name == "process_cpu_percent") <= 110, "CPU use")
    check(found["metrics"]["cpu_ns"]["intervals"] < found["metrics"]["io_write_bytes"]["intervals"],
          "the summary has other intervals")
    check_eq(set(found["metrics"]["io_write_bytes"]), {"p99", "intervals"})


# ---------------------------------------------------------------------------------- summary


@test
def every_name_of_the_users_is_found_in_a_summary_by_index_in_and_get():
    child = python(WRITES)
    with ETWMonitor(ETWMonitorConfig(target_processes={child.pid})) as monitor:
        wait_until(lambda: monitor.get_process_summary().get(child.pid, {"samples": 0})["samples"] > 20, "samples")
        found = monitor.get_process_summary()[child.pid]
    metrics, totals = found["metrics"], found["totals"]
    for name in ("process_context_switches", "process_page_faults", "process_cpu_time_ms", "process_cpu_percent",
                 "process_memory_rss_mb", "process_memory_percent", "process_io_write_bytes"):
        check_in(name, ALIASES)
        check(name in metrics, f"{name} is not in the summary")
        check_eq(metrics.get(name), metrics[name], name)
        check_eq(set(metrics[name]), {"average", "maximum", "p95", "p99", "intervals"}, name)
    for name in ALIASES:
        check_eq(name in metrics, metrics.get(name) is not None, f"{name}: in and get")
    check("process_magic" not in metrics and metrics.get("process_magic") is None, "a name that does not exist")
    check_eq(metrics["process_cpu_time_ms"]["maximum"], metrics["cpu_ns"]["maximum"] * 1e-6)
    both = metrics["switches_voluntary"]["maximum"], metrics["switches_involuntary"]["maximum"]
    check_between(metrics["process_context_switches"]["maximum"], max(both), sum(both), "switches in one interval")
    check_eq(totals["process_context_switches"], totals["switches_voluntary"] + totals["switches_involuntary"])
    check_between(totals["process_cpu_time_ms"], 1, 1e6, "CPU time")


@test
def a_name_without_its_metric_is_neither_found_nor_in():
    table = MetricTable({"cpu_percent": {"average": 1.0}})
    check("process_io_read_bytes" not in table and "process_context_switches" not in table, "unknown metrics")
    raises(KeyError, "process_context_switches", table.__getitem__, "process_context_switches")
    check("process_context_switches" not in TotalTable({"switches_voluntary": 1}), "half of a sum")


@test
def a_flag_without_effect_gives_a_warning_whenever_it_is_set():
    monitor = ETWMonitor()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        monitor.set_kernel_flags(["EVENT_TRACE_FLAG_CSWITCH", "EVENT_TRACE_FLAG_REGISTRY"])
        monitor.set_kernel_flags(["EVENT_TRACE_FLAG_CSWITCH"])
    check_eq([str(one.message) for one in caught], ["flags: no effect on this system: EVENT_TRACE_FLAG_REGISTRY"])


@test
def flags_that_change_later_leave_earlier_samples_alone():
    child = python()
    monitor = ETWMonitor(ETWMonitorConfig(target_processes={child.pid}, sampling_rate_hz=50))
    lists = []
    monitor.register_batch_callback(lambda samples: lists.append({s.metric_name for s in samples}))
    with monitor:
        wait_until(lambda: monitor.get_statistics()["samples"] > 10 and lists, "samples")
        monitor.set_kernel_flags(["EVENT_TRACE_FLAG_PROCESS", "EVENT_TRACE_FLAG_CSWITCH"])
        names = {sample.metric_name for sample in monitor.collect_metrics()}
        check_in("process_memory_rss_mb", names)
        check_in("rss_bytes", monitor.get_process_summary()[child.pid]["metrics"])
        wait_until(lambda: lists and "process_memory_rss_mb" not in lists[-1], "the flags apply")


# --------------------------------------------------------------------------- watch and run


@test
def a_watch_takes_a_duration():
    child = python()
    with etwatch.watch(child.pid, hz=50, duration=0.5) as watched:
        count = sum(1 for _ in watched)
    check(count > 0, "no samples")

    async def every():
        async with etwatch.watch(child.pid, hz=50, latency_ms=50, duration=0.5) as other:
            return [sample async for sample in other]

    check(asyncio.run(every()), "no samples")
    with etwatch.watch(child.pid, events=True, duration=0.5) as watched:
        list(watched.events())
    raises(TypeError, "duration", etwatch.watch, child.pid, duration="long")


@test
def the_statistics_of_a_watch_are_there_after_it():
    child = python()
    with etwatch.watch(child.pid, hz=50, duration=0.5) as watched:
        count = sum(1 for _ in watched)
    check(watched.stats["samples"] >= count > 0, repr(watched.stats))
    check_in(watched.backend, ("ebpf", "poll", "etw"))
    check_eq(watched.stats["lost"], 0)


@cases([("without a pipe", {}), ("with a pipe", {"capture_output": True})])
def the_error_of_a_timeout_has_the_command_of_the_user(options):
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    error = raises(subprocess.TimeoutExpired, "", etwatch.run, command, timeout=0.3, **options)
    check_eq(error.cmd, command)


@test
def numbers_of_bytes_are_ints_everywhere():
    child = python("held = bytearray(1000)\n" + BUSY)
    with ETWMonitor(ETWMonitorConfig(target_processes={child.pid}), metrics=["all"]) as monitor:
        wait_until(lambda: child.pid in monitor.get_process_metrics() and monitor.get_process_summary(), "samples")
        process, memory = monitor.get_process_metrics(child.pid), monitor.get_memory_usage()
        totals = monitor.get_process_summary()[child.pid]["totals"]
    found = {name: getattr(process, name) for name in (
        "working_set_size", "private_bytes", "virtual_bytes", "page_faults", "hard_faults", "peak_working_set", "read_bytes",
        "write_bytes", "handle_count", "thread_count")}
    found.update({name: memory[name] for name in ("total", "used", "available")})
    found.update({name: totals[name] for name in ("io_write_bytes", "cpu_ns")})
    found.update(etwatch.Process(child.pid).memory_info()._asdict())
    check_eq({name: type(value).__name__ for name, value in found.items() if type(value) is not int}, {})


@test
def a_process_shows_its_command_line_and_environment_as_psutil_does():
    child = start(["-c", "input()", "--password=secret"], program=sys.executable, stdin=subprocess.PIPE,
                  env={**os.environ, "API_TOKEN": "secret"})
    process = etwatch.Process(child.pid)
    wait_until(lambda: "--password=secret" in process.cmdline(), "its command line")
    check_eq(process.environ()["API_TOKEN"], "secret")
    for result in (etwatch.run([sys.executable, "-c", "pass", "--password=secret"], command_lines=True),):
        check("secret" not in " ".join(line or "" for line in result.processes["cmdline"]), "samples mask secrets")


main()
