# SPDX-License-Identifier: MIT
"""ETWMonitor and its environment: every documented name, default and behaviour."""
import dataclasses
import inspect
import logging
import os
import pickle
import subprocess
import sys
import threading
import time

import etwatch
from etwatch import ETWMonitor, ETWMonitorConfig, MetricSample, ProcessMetrics
from etwatch import _native
from etwatch._native import error_of
from etwatch.etw import kernel_kinds
from etwatch.samples import ALIASES, MetricList
from lib import cases, check, check_between, check_eq, check_in, main, raises, run, skip, start, test
from livekit import wait_until

DEFAULTS = {
    "sampling_rate_hz": 100.0, "buffer_size": 10000, "target_processes": None, "target_process_names": None,
    "max_processes": None, "exclude_system_processes": True, "session_name": "OnnxInferenceMonitor",
    "buffer_size_kb": 64, "min_buffers": 4, "max_buffers": 64, "flush_timer": 1, "enable_process_events": True,
    "enable_thread_events": True, "enable_cpu_sampling": True, "enable_memory_events": True,
    "enable_context_switch": True, "enable_disk_io": False, "enable_stack_walking": False,
    "cpu_sampling_interval": 1000, "overhead_limit": 5.0, "callback_batch_ms": 100,
    "exclude_processes": None, "exclude_process_names": None, "kernel_flags": None,  # ours
}
PROCESS_METRICS = """pid name parent_pid session_id create_time exit_time exit_code command_line
    cpu_percent cpu_cycles kernel_time user_time context_switches priority affinity_mask
    working_set_size private_bytes virtual_bytes page_faults hard_faults peak_working_set paged_pool non_paged_pool
    thread_count thread_ids active_threads suspended_threads thread_cpu_cycles thread_states
    read_operations write_operations other_operations read_bytes write_bytes io_priority
    handle_count gdi_objects user_objects peak_handle_count""".split()
FLAGS = ["EVENT_TRACE_FLAG_" + name for name in ("PROCESS", "THREAD", "IMAGE_LOAD", "DISK_IO", "MEMORY_PAGE_FAULTS",
                                                 "MEMORY_HARD_FAULTS", "MEMORY_PAGE", "PROFILE", "CSWITCH")]
BUSY = "import time\nend = time.time() + 60\nwhile time.time() < end: pass"


def busy():
    return start(["-c", BUSY], program=sys.executable)


class Logged(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append((record.levelname, record.getMessage()))

    def __enter__(self):
        logging.getLogger("etwatch").addHandler(self)
        return self

    def __exit__(self, *_):
        logging.getLogger("etwatch").removeHandler(self)


# ------------------------------------------------------------------------------ config


@test
def every_field_has_its_default_and_is_a_keyword():
    check(dataclasses.is_dataclass(ETWMonitorConfig), "no dataclass")
    check_eq({field.name: getattr(ETWMonitorConfig(), field.name) for field in dataclasses.fields(ETWMonitorConfig)},
             DEFAULTS)
    changed = ETWMonitorConfig(sampling_rate_hz=50, flush_timer=0.25, target_processes={1}, max_processes=20)
    check_eq((changed.sampling_rate_hz, changed.flush_timer, changed.target_processes), (50, 0.25, {1}))


@cases([
    ("no rate", "sampling_rate_hz", 0, "sampling_rate_hz 0.1 1000"),
    ("a rate too high", "sampling_rate_hz", 1001, "sampling_rate_hz 0.1 1000"),
    ("not a number", "sampling_rate_hz", float("nan"), "sampling_rate_hz"),
    ("no room", "buffer_size", 0, "buffer_size 1"),
    ("pid 0", "target_processes", {0}, "target_processes 1"),
    ("an empty name", "target_process_names", {""}, "target_process_names"),
    ("no processes", "max_processes", 0, "max_processes 1"),
    ("no session", "session_name", "", "session_name"),
    ("small buffers", "buffer_size_kb", 1, "buffer_size_kb 4 16384"),
    ("too few buffers", "min_buffers", 1, "min_buffers 2"),
    ("maximum below minimum", "max_buffers", 3, "min_buffers max_buffers"),
    ("no flush", "flush_timer", 0, "flush_timer"),
    ("a profile rate that no machine has", "cpu_sampling_interval", 9000, "cpu_sampling_interval 8000"),
    ("a budget below 0", "overhead_limit", -1, "overhead_limit"),
    ("a batch of nothing", "callback_batch_ms", 0, "callback_batch_ms 1 60000"),
])
def an_impossible_value_is_refused_by_field_and_range(field, value, words):
    raises(ValueError, words, ETWMonitorConfig, **{field: value})


@cases([
    ("a rate in words", "sampling_rate_hz", "fast"),
    ("half a sample", "buffer_size", 1.5),
    ("a pid in words", "target_processes", {"python"}),
    ("one name instead of a set", "target_process_names", "python"),
    ("a number as name", "target_process_names", {7}),
    ("a switch that is neither on nor off", "enable_disk_io", 1),
    ("a session without a name", "session_name", None),
    ("a truth value as rate", "sampling_rate_hz", True),
])
def a_wrong_type_is_refused_by_field(field, value):
    raises(TypeError, field, ETWMonitorConfig, **{field: value})


@test
def a_field_made_invalid_later_is_refused_at_the_start():
    monitor = ETWMonitor()
    monitor.config.sampling_rate_hz = 5000
    raises(ValueError, "sampling_rate_hz", monitor.start_monitoring)
    check(not monitor.is_monitoring, "it runs")


@test
def the_documented_names_exist():
    for name in """ETWMonitorConfig ETWMonitor MetricSample ProcessMetrics ETWError ETWSessionError
            ETWAccessDeniedError ETWProviderError ETWSessionLostError MonitorFactory select_monitor SystemMonitor
            UnifiedMonitor AdaptiveSampler run watch open""".split():
        check(hasattr(etwatch, name) and name in etwatch.__all__, f"no {name}")
    for name in """start_monitoring stop_monitoring cleanup collect_metrics get_process_metrics add_process
            remove_process register_callback register_batch_callback unregister_callback get_process_summary
            get_statistics set_kernel_flags enable_stack_walking backend""".split():
        check(hasattr(ETWMonitor, name), f"no ETWMonitor.{name}")
    check_eq(MetricSample._fields, ("timestamp", "metric_name", "value", "unit", "pid", "process_name", "complete"))
    have = [field.name for field in dataclasses.fields(ProcessMetrics)]
    check_eq([name for name in PROCESS_METRICS if name not in have], [], "missing in ProcessMetrics")
    check_eq(list(inspect.signature(ETWMonitor.__init__).parameters)[1], "config")


@test
def errors_have_one_base_class_and_carry_the_code_and_the_fix():
    for name in ("ETWSessionError", "ETWAccessDeniedError", "ETWProviderError", "ETWSessionLostError"):
        kind = getattr(etwatch, name)
        check(issubclass(kind, etwatch.ETWError), name)
        error = kind("what", os_code=5, fix="do this")
        check_eq((error.os_code, error.fix, str(error)), (5, "do this", "what (do this)"))
    check(isinstance(error_of(-3), etwatch.ETWAccessDeniedError), "EPERM")


@test
def samples_have_the_documented_names():
    child = busy()
    with ETWMonitor(ETWMonitorConfig(target_processes={child.pid}, sampling_rate_hz=50)) as monitor:
        check_in(monitor.backend, ("ebpf", "poll", "etw"))
        got = []
        known = {"process_cpu_percent", "process_memory_rss_mb", "process_memory_vms_mb", "process_memory_percent",
                 "process_threads", "process_context_switches", "process_io_read_bytes"}
        wait_until(lambda: got.extend(monitor.collect_metrics()) or known <= {s.metric_name for s in got}, "samples")
        wait_until(lambda: got.extend(monitor.collect_metrics()) or any(
            s.value > 5 for s in got if s.metric_name == "process_cpu_percent"), "a busy process uses CPU")
        check_eq({s.pid for s in got}, {child.pid})
        now = time.time()
        for sample in got:
            check(isinstance(sample, MetricSample) and isinstance(sample.timestamp, float), repr(sample))
            check_between(sample.timestamp, now - 60, now + 1, "timestamp")
            check_in(sample.metric_name, ALIASES)
            check(sample.value >= 0 and sample.unit and isinstance(sample.complete, bool), repr(sample))
            check(sample.process_name.startswith("python"), sample.process_name)
        check_between(max(s.value for s in got if s.metric_name == "process_memory_rss_mb"), 1, 500, "MB")


@test
def collect_returns_each_sample_once_and_no_more_than_the_buffer_holds():
    child = busy()
    config = ETWMonitorConfig(target_processes={child.pid}, sampling_rate_hz=200, buffer_size=40)
    with ETWMonitor(config) as monitor:
        wait_until(lambda: monitor.get_statistics()["samples"] > 60, "more than there is room for")
        first = monitor.collect_metrics()
        check_between(len(first), 1, 40, "samples")
        found = monitor.get_statistics()
        check(found["dropped"] == found["collect_dropped"] > 0, "dropped samples are not counted")
        seen = {(s.timestamp, s.metric_name) for s in first}
        wait_until(lambda: monitor.get_statistics()["samples"] > 120, "more")
        for sample in monitor.collect_metrics():
            check((sample.timestamp, sample.metric_name) not in seen, f"twice: {sample}")
            check(sample.timestamp >= first[-1].timestamp, "out of order")


@test
def start_stop_and_cleanup_may_each_be_called_twice_and_in_any_order():
    monitor = ETWMonitor(ETWMonitorConfig(target_processes={os.getpid()}))
    monitor.stop_monitoring()
    monitor.cleanup()
    for _ in range(2):
        monitor.start_monitoring()
        monitor.start_monitoring()
        check(monitor.is_monitoring, "it does not run")
        monitor.stop_monitoring()
        monitor.stop_monitoring()
        check(not monitor.is_monitoring, "it still runs")
    monitor.cleanup()
    monitor.cleanup()
    monitor.collect_metrics()
    check(monitor.get_statistics()["samples"] is not None, "the last values are gone")
    with monitor as same:
        check(same is monitor and monitor.is_monitoring, "no context manager")
    check(not monitor.is_monitoring, "it still runs")


@test
def one_process_has_its_metrics_and_all_are_a_dict():
    child = busy()
    with ETWMonitor(ETWMonitorConfig(target_processes={child.pid})) as monitor:
        wait_until(lambda: child.pid in monitor.get_process_metrics(), "the process is known")
        wait_until(lambda: (monitor.get_process_metrics(child.pid).user_time or 0) > 50, "CPU time")
        metrics = monitor.get_process_metrics(child.pid)
        check(isinstance(metrics, ProcessMetrics), repr(metrics))
        check_eq((metrics.pid, metrics.parent_pid, metrics.exit_time), (child.pid, os.getpid(), None))
        check(metrics.name.startswith("python"), metrics.name)
        check_between(metrics.create_time, time.time() - 60, time.time(), "create_time")
        check(metrics.thread_ids == [child.pid] and metrics.thread_count == 1, repr(metrics))
        check(metrics.working_set_size > 1e6 and metrics.virtual_bytes >= metrics.working_set_size, repr(metrics))
        check(metrics.page_faults > 100 and metrics.context_switches > 0, repr(metrics))
        check_eq(metrics.command_line, None, "command line that was not requested")
        everyone = monitor.get_process_metrics()
        check(isinstance(everyone, dict) and everyone[child.pid].pid == child.pid, repr(everyone))
        child.kill()
        child.wait()
        wait_until(lambda: monitor.get_process_metrics(child.pid).exit_time is not None, "its exit")
        check_eq(monitor.get_process_metrics(child.pid).exit_code, -9)
        raises(ProcessLookupError, "pid 999999999", monitor.get_process_metrics, 999999999)
        raises(TypeError, "pid", monitor.get_process_metrics, "all")


@test
def the_summary_has_averages_and_percentiles_also_of_exited_processes():
    child = busy()
    with ETWMonitor(ETWMonitorConfig(target_processes={child.pid})) as monitor:
        wait_until(lambda: monitor.get_statistics()["samples"] > 30, "samples")
        child.kill()
        child.wait()
        wait_until(lambda: monitor.get_process_summary()[child.pid]["ended"], "its exit")
        summary = monitor.get_process_summary()[child.pid]
        cpu = summary["metrics"]["cpu_percent"]
        check(0 < cpu["average"] <= cpu["maximum"] and cpu["p95"] <= cpu["p99"] * 1.0001 <= cpu["maximum"] * 1.01,
              repr(cpu))
        check_eq(summary["metrics"]["process_cpu_percent"]["average"], cpu["average"])
        rss = summary["metrics"]["process_memory_rss_mb"]["maximum"]
        check_between(rss, 1, 500, "MB")
        check(summary["totals"]["cpu_ns"] > 0 and summary["lifetime"] > 0.1, repr(summary))
        check_eq(summary["exit_code"], -9)


@test
def statistics_have_the_rate_the_loss_and_the_cost():
    child = busy()
    with ETWMonitor(ETWMonitorConfig(target_processes={child.pid}, sampling_rate_hz=100)) as monitor:
        wait_until(lambda: monitor.get_statistics()["duration"] > 1, "a second")
        found = monitor.get_statistics()
        for name in ("samples", "hz_requested", "hz_reached", "collection_time_avg_ms", "collection_time_max_ms",
                     "self_cpu_percent", "self_rss_bytes", "events", "lost", "backend"):
            check(found[name] is not None, f"no {name}")
        check_eq((found["hz_requested"], found["lost"], found["backend"]), (100.0, 0, monitor.backend))
        check(0 < found["collection_time_avg_ms"] <= found["collection_time_max_ms"], repr(found))


@test
def processes_can_be_added_and_removed_while_it_runs():
    first, second = busy(), busy()
    monitor = ETWMonitor()
    monitor.start_monitoring()  # everything
    monitor.add_process(first.pid)  # this one from now on
    pids = set()
    monitor.collect_metrics()
    wait_until(lambda: pids.update(s.pid for s in monitor.collect_metrics()) or first.pid in pids, "the first")
    monitor.collect_metrics()
    monitor.add_process(second.pid)
    pids = set()
    wait_until(lambda: pids.update(s.pid for s in monitor.collect_metrics()) or len(pids) == 2, "both")
    check_eq(pids, {first.pid, second.pid})
    monitor.remove_process(first.pid)
    wait_until(lambda: {s.pid for s in monitor.collect_metrics()} == {second.pid}, "the second alone")
    monitor.remove_process(first.pid)
    monitor.cleanup()
    gone = subprocess.Popen(["/bin/true"])
    gone.wait()
    for state in (monitor.stop_monitoring, monitor.start_monitoring):
        state()
        raises(ProcessLookupError, f"pid {gone.pid}", monitor.add_process, gone.pid)
    for bad in (0, -1, 2**32):
        raises(ValueError, "pid", monitor.add_process, bad)
    raises(TypeError, "pid", monitor.add_process, "me")
    monitor.cleanup()


@test
def beyond_max_processes_the_busiest_are_reported_and_the_rest_is_summed():
    children = [busy() for _ in range(3)]
    config = ETWMonitorConfig(target_processes={child.pid for child in children}, max_processes=1, sampling_rate_hz=10)
    with ETWMonitor(config) as monitor:
        got = []
        wait_until(lambda: got.extend(monitor.collect_metrics()) or -1 in {s.pid for s in got}, "the others")
        rest = [s for s in got if s.pid == -1]
        check_eq({s.process_name for s in rest}, {"(others)"})
        for at in {s.timestamp for s in rest}:
            check(len({s.pid for s in got if s.timestamp == at}) <= 2, "more than the busiest and the rest")
        check(-1 not in monitor.get_process_metrics(), "the others are not a process")
        check_in(-1, monitor.get_process_summary())


@test
def a_name_matches_with_version_and_without():
    child = busy()
    with ETWMonitor(ETWMonitorConfig(target_process_names={"python"})) as monitor:
        wait_until(lambda: child.pid in monitor.get_process_metrics(), "python3.x by the name python")


# --------------------------------------------------------------------------- callbacks


@test
def callbacks_get_one_sample_or_lists_until_they_are_unregistered():
    child = busy()
    singles, lists = [], []

    def single(sample):
        singles.append(sample)

    with ETWMonitor(ETWMonitorConfig(target_processes={child.pid}, callback_batch_ms=50)) as monitor:
        monitor.register_callback(single)
        monitor.register_batch_callback(lists.append)
        wait_until(lambda: len(singles) > 50 and len(lists) > 3, "samples")
        check(all(isinstance(sample, MetricSample) for sample in singles), "not all are MetricSample")
        check(all(isinstance(some, list) for some in lists), "not all are lists")
        check(monitor.unregister_callback(single) and monitor.unregister_callback(lists.append), "not unregistered")
        check(not monitor.unregister_callback(single), "unregistered twice")
        time.sleep(0.3)
        before = len(singles)
        time.sleep(0.3)
        check_eq(len(singles), before, "calls after it was unregistered")
    raises(TypeError, "callback", monitor.register_callback, 7)


@test
def a_list_of_samples_behaves_like_a_list():
    child = busy()
    lists = []
    with ETWMonitor(ETWMonitorConfig(target_processes={child.pid})) as monitor:
        monitor.register_batch_callback(lists.append)
        wait_until(lambda: len(lists) > 12, "lists")
    full = [some for some in lists if some]
    check(len(full) > 8, "lists")
    operations = [len, list, sorted, lambda x: x[0], lambda x: x[-1], lambda x: [] + x, lambda x: x + [], lambda x: x[:2],
             lambda x: [s for s in x], lambda x: x.copy(), lambda x: x == [], repr, bool, tuple, lambda x: x.index(x[0])]
    for operation in operations:
        batch = full[0].samples
        fresh, plain = MetricList(batch), list(MetricList(batch))
        check_eq(operation(fresh), operation(plain), f"operation {operations.index(operation)}")
        check_eq(len(fresh), len(plain))
    check_eq(pickle.loads(pickle.dumps(MetricList(full[0].samples))), list(full[0]))


@test
def a_callback_that_raises_is_logged_and_counted_and_the_others_continue():
    child = busy()
    good = []

    def bad(_):
        raise RuntimeError("on purpose")

    with Logged() as log, ETWMonitor(ETWMonitorConfig(target_processes={child.pid})) as monitor:
        monitor.register_batch_callback(bad)
        monitor.register_callback(bad)
        monitor.register_batch_callback(good.append)
        wait_until(lambda: len(good) > 5 and monitor.get_statistics()["callback_errors"] > 20, "calls")
        errors = [line for level, line in log.lines if level == "ERROR"]
        check(errors and len(errors) < 10, f"{len(errors)} lines")
        check_in("continues", errors[0])
        check(monitor.is_monitoring, "it stopped")


@test
def a_callback_that_blocks_does_not_delay_the_others_and_drops_are_counted():
    child = busy()
    go, inside = threading.Event(), threading.Event()

    def slow(_):
        inside.set()
        go.wait(60)

    config = ETWMonitorConfig(target_processes={child.pid}, sampling_rate_hz=1000, buffer_size=200)
    monitor = ETWMonitor(config)
    monitor.register_batch_callback(slow)
    monitor.start_monitoring()
    check(inside.wait(30), "it was never called")
    total = []
    wait_until(lambda: total.extend(monitor.collect_metrics()) or len(total) > 1000, "samples meanwhile")
    wait_until(lambda: monitor.collect_metrics() and monitor.get_statistics()["callback_dropped"] > 0, "drops")
    go.set()
    monitor.cleanup()


@test
def a_callback_may_stop_clean_up_and_drop_its_monitor():
    child = busy()
    for method in ("stop_monitoring", "cleanup", "__del__"):
        done = threading.Event()
        holder = [ETWMonitor(ETWMonitorConfig(target_processes={child.pid}, callback_batch_ms=20))]

        def callback(_, method=method, holder=holder, done=done):
            if holder and method == "__del__":
                holder.clear()
            elif holder:
                getattr(holder[0], method)()
            done.set()

        holder[0].register_callback(callback)
        holder[0].start_monitoring()
        check(done.wait(30), f"{method} in a callback")
        holder.clear()


# ------------------------------------------------------------------------ switches


@test
def kernel_flags_switch_the_matching_groups():
    child = busy()
    with ETWMonitor(ETWMonitorConfig(target_processes={child.pid}, sampling_rate_hz=50)) as monitor:
        monitor.set_kernel_flags(FLAGS)
        check(monitor.config.enable_disk_io and monitor.config.enable_memory_events, "groups")
        monitor.set_kernel_flags(["EVENT_TRACE_FLAG_PROCESS", "EVENT_TRACE_FLAG_CSWITCH"])
        check(not monitor.config.enable_memory_events, "memory is still on")
        monitor.collect_metrics()
        got = []
        wait_until(lambda: got.extend(monitor.collect_metrics()) or len(got) > 30, "samples")
        names = {sample.metric_name for sample in got}
        check("process_cpu_percent" in names and "process_memory_rss_mb" not in names, repr(names))
        raises(ValueError, "EVENT_TRACE_FLAG_MAGIC EVENT_TRACE_FLAG_CSWITCH", monitor.set_kernel_flags,
               ["EVENT_TRACE_FLAG_MAGIC"])
        raises(TypeError, "flags", monitor.set_kernel_flags, "EVENT_TRACE_FLAG_PROCESS")
        raises(TypeError, "flags", monitor.set_kernel_flags, [7])
        check_in(monitor.enable_stack_walking(True), (True, False))
        check(monitor.config.enable_stack_walking, "the config does not know")
        raises(TypeError, "enable", monitor.enable_stack_walking, "yes")


@test
def the_switches_of_a_config_are_known_etw_kernel_events():
    known, index = set(), 0
    while _native.lib.etwatch_session_kernel_name(index) is not None:
        known.add(_native.lib.etwatch_session_kernel_name(index).decode())
        index += 1
    everything = kernel_kinds(ETWMonitorConfig(enable_disk_io=True))
    check_eq([kind for kind in everything if kind not in known], [], "unknown kinds")
    check_eq([kind for kind in everything if kind not in kernel_kinds(ETWMonitorConfig())],
             ["disk", "disk-init", "fileio-init"])
    check("cswitch" not in kernel_kinds(ETWMonitorConfig(enable_context_switch=False)), "switched off")


# -------------------------------------------------------------------------- other classes


@test
def the_limits_of_each_use_case_are_as_documented():
    limits = {"development": 50, "testing": 20, "staging": 10, "production": 5, "critical": 2}
    for use_case, limit in limits.items():
        monitor = etwatch.select_monitor(use_case, 20)
        check_eq((monitor.config.overhead_limit, monitor.config.sampling_rate_hz), (limit, 20))
    raises(ValueError, "use_case holiday production", etwatch.select_monitor, "holiday", 10)
    raises(ValueError, "sampling_hz 1000", etwatch.select_monitor, "testing", 2000)


@test
def the_factory_makes_a_monitor():
    check(isinstance(etwatch.MonitorFactory.create_monitor(), ETWMonitor), "none")
    cheap = etwatch.MonitorFactory.create_monitor(prefer_low_overhead=True)
    check_eq(cheap.config.overhead_limit, 2.0)


@test
def the_adaptive_sampler_slows_down_and_recovers():
    sampler = etwatch.AdaptiveSampler(100.0, 5.0)
    check_eq([round(sampler.adjust_rate(x), 6) for x in (5.1, 9, 5.0, 2.0, 1.9, 1.9, 0)], [80, 64, 64, 64, 76.8, 92.16, 100])
    rates = []
    sampler = etwatch.AdaptiveSampler(rates.append, sampling_hz=10)
    sampler.adjust_rate(50)
    sampler.adjust_rate(3)
    check_eq(rates, [8.0])
    raises(ValueError, "overhead", sampler.adjust_rate, -1)


@test
def the_system_monitor_reports_the_whole_machine():
    system = etwatch.SystemMonitor()
    busy()
    time.sleep(0.3)
    check_between(system.get_cpu_usage(), 1, 100, "CPU")
    memory = system.get_memory_usage()
    check_between(memory, 0.1, 100, "memory")
    check_eq(memory.used_bytes + memory.available_bytes, memory.total_bytes)


@test
def the_unified_monitor_has_processes_and_the_system_in_one_stream():
    child = busy()
    names = set()
    with etwatch.UnifiedMonitor(ETWMonitorConfig(target_processes={child.pid})) as monitor:
        monitor.register_callback(lambda sample: names.add(sample.metric_name))
        wait_until(lambda: {"process_cpu_percent", "system_cpu_percent", "system_memory_percent"} <= names, "both")
        got = []
        wait_until(lambda: got.extend(monitor.collect_metrics()) or
                   {0, child.pid} <= {sample.pid for sample in got}, "both")
        now = monitor.get_current_metrics()
        check_in(child.pid, now["process"])
        check(now["system"]["cpu_percent"] is not None, repr(now["system"]))
        check_eq((set(now["gpu"]), set(now["npu"]), set(now["energy"])),
                 ({"percent", "memory_bytes", "devices"}, {"percent", "devices"}, {"uj", "devices"}))


@test
def without_rights_it_polls_and_warns_once_or_refuses():
    code = """if True:
        import logging, os, etwatch
        logging.basicConfig(format="%(levelname)s %(message)s")
        os.setuid(65534)
        monitor = etwatch.ETWMonitor(etwatch.ETWMonitorConfig(target_processes={os.getpid()}))
        monitor.start_monitoring(); monitor.stop_monitoring(); monitor.start_monitoring()
        print(monitor.backend)
        monitor.cleanup()
        try:
            etwatch.ETWMonitor(fallback=False).start_monitoring()
        except etwatch.ETWAccessDeniedError as error:
            print(type(error).__name__, bool(error.fix), error.os_code)
            print(os.path.realpath(__import__("sys").executable) in error.fix, "etwatch)" in error.fix)
    """
    if os.getuid() != 0:
        skip("only root can drop privileges")
    result = run(["-X", "dev", "-c", code], program=sys.executable)
    check_eq(result.code, 0, result.err)
    lines = result.out.split("\n")
    check_eq(lines[0], "poll", result.err)
    check(lines[1].startswith("ETWAccessDeniedError True"), result.out)
    check_eq(lines[2], "True False", "the fix is for this interpreter, not for the program etwatch")
    check_eq(result.err.count("WARNING"), 1, result.err)


main()
