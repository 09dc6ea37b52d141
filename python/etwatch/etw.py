# SPDX-License-Identifier: MIT
"""ETWMonitor: a monitor with callbacks and a configuration object, on kernel events. The first users specified the
interface."""
import ctypes
import json
import os
import sys
import threading
import weakref
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple, Union, overload

from . import _abi, _native, _system
from ._batch import METRIC_NAMES, SOURCES
from ._engine import BatchCallback, Engine, SampleCallback, flag_bits, logger
from ._monitor import make_config
from ._private_file import appending
from ._slow_groups import SlowGroup
from ._summary import ProcessSummary, Spread
from .base import BaseMonitor, MemoryUsage
from .config import (DEVICES, NOT_ENABLED, PREFIX, WINDOWS, ETWMonitorConfig, bare_flags, check_pid, members, plain_name, read_settings,
                     switch_by_flags, without_effect)
from .devices import EnergyMonitor
from .errors import ETWError, in_python, warn
from .samples import MetricSample, MetricTable, ProcessMetrics, TotalTable, exit_code_of, process_metrics

__all__ = ["ETWMonitor"]

Config = Union[ETWMonitorConfig, Mapping[str, Any], float, None]

_SPELLINGS = {"MEMORY_PAGE": "MEMORY_PAGE_FAULTS"}  # spelling of the users: spelling of Windows
_SWITCHED: Dict[str, Tuple[str, ...]] = {
    "enable_thread_events": ("threads", "threads_running", "threads_ready", "threads_waiting", "threads_suspended"),
    "enable_context_switch": ("switches_voluntary", "switches_involuntary", "runq_wait_ns"),
    "enable_memory_events": ("rss_bytes", "rss_peak_bytes", "private_bytes", "virtual_bytes", "faults_minor",
                             "faults_major", "pool_paged_bytes", "pool_nonpaged_bytes", "rss_private_bytes"),
    "enable_disk_io": ("disk_read_bytes", "disk_write_bytes"),
}
_CPU = ("cpu_percent", "cpu_ns", "cpu_user_ns", "cpu_kernel_ns", "cycles", "instructions", "cache_misses")
# The groups of the nested configuration.
_GROUPS: Dict[str, Tuple[str, ...]] = {
    "cpu": _CPU + _SWITCHED["enable_context_switch"] + ("priority", "affinity"),
    "memory": _SWITCHED["enable_memory_events"],
    "threads": _SWITCHED["enable_thread_events"],
    "io": ("io_read_bytes", "io_write_bytes", "io_other_bytes", "io_read_ops", "io_write_ops", "io_other_ops",
           "io_priority", "net_received_bytes", "net_sent_bytes"),
    "disk": _SWITCHED["enable_disk_io"],
    "network": ("net_received_bytes", "net_sent_bytes"),
    "handles": ("handles", "handles_peak", "gdi_objects", "user_objects"),
    "gpu": ("gpu_ns", "gpu_percent", "gpu_memory_bytes"),
    "npu": ("npu_ns", "npu_percent"),
    "energy": ("energy_uj",),
}
# What a configuration calls the metrics of processes on devices.
_WORDS = {"gpu_ns": "utilization", "gpu_percent": "utilization", "gpu_memory_bytes": "memory", "npu_ns": "utilization",
          "npu_percent": "utilization", "energy_uj": "energy"}
_BITS = {name: 1 << bit for bit, name in enumerate(METRIC_NAMES)}


class ETWMonitor(BaseMonitor):
    """Monitors processes and delivers what they did.

    Example:

        config = etwatch.ETWMonitorConfig(sampling_rate_hz=100.0, target_process_names={"python"}, max_processes=20)
        with etwatch.ETWMonitor(config) as monitor:
            time.sleep(5)
            print(monitor.get_process_summary(), monitor.get_statistics())

    config: an ETWMonitorConfig, a dict of its fields, the nested {'monitoring': …}, the dict of an ETW session, or a number:
    samples a second. A setting that has no effect on this machine gives a warning with the reason. Without targets every
    process is monitored; the first add_process narrows this to the added processes.
    fallback: if False, raise ETWAccessDeniedError instead of polling when rights are missing.
    command_lines: also set ProcessMetrics.command_line (secrets masked).
    metrics: names or groups to measure in addition to the default, such as "cycles" (see `etwatch metrics`). With
    "cycles", and if the counters of the CPU can be read, ProcessMetrics.thread_cpu_cycles has them by thread.
    sys_root, nvml_library: where devices are found instead of the system's places, for tests.
    """

    _UNIFIED = False  # whether the machine and whole devices are in the stream
    _POLLED: Tuple[str, ...] = ()  # gauges that are polled next to an event source

    def __init__(self, config: Config = None, *, fallback: bool = True,
                 source: Optional[str] = None, command_lines: bool = False, metrics: Iterable[str] = (),
                 sys_root: Optional[str] = None, nvml_library: Optional[str] = None) -> None:
        settings = self._settings = read_settings(config, sys_root is not None or nvml_library is not None, source)
        for key, reason in {**settings.ignored, **({} if self._UNIFIED else settings.unified)}.items():
            warn(f"{key}: {reason}")
        self._roots = {"sys_root": sys_root, "nvml_library": nvml_library}
        groups = (*settings.groups, *settings.off)
        self._metrics = [*members("metrics", metrics), *(
            metric for name in settings.groups for metric in self._requested(name))]
        # The library reads gauges and devices at a rate; what is below that of the stream is added up here. Memory is not:
        # its values are in the samples that they are valid for.
        self._rates = tuple((metric, hz) for name, hz in settings.rates for metric in self._rated(name))
        slow = [SlowGroup(_group(name, groups), hz) for name, hz in settings.rates
                if name != "memory" and hz < settings.config.sampling_rate_hz]
        self._polled = settings.polled or self._POLLED
        self._cpu = _system.CpuUsage()
        self._off = [name for group in settings.off for name in _group(group, groups)]
        self._aggregation = {name: selected for group, selected in settings.aggregation.items()
                             for name in _group(group, groups)}
        self.config = settings.config
        self._source = settings.source
        self._fallback = fallback
        self._command_lines = command_lines
        self._lock = threading.RLock()
        self._only_added = False  # after a target was added, an empty set of targets means nothing, not everything
        self._warned = False
        self._engine = Engine(self.config.buffer_size, slow)
        self._apply_switches()
        self._native_config()  # rejects unknown names now, not at the start
        self._finalizer = weakref.finalize(self, self._engine.close)
        if settings.persist_to_disk is not None:
            self.register_batch_callback(_Writer(settings.persist_to_disk))

    def _requested(self, name: str) -> Tuple[str, ...]:
        """The metrics that a configured group adds to the default ones: those of devices that can be read."""
        if name in ("threads", "handles", "network"):
            return _GROUPS[name]
        return self._of_device(name) if name in DEVICES and f"monitoring.{name}" not in self._settings.ignored else ()

    def _of_device(self, name: str) -> Tuple[str, ...]:
        """The metrics of processes on a group of devices: all, or those that the configuration selects."""
        words = self._settings.device_metrics.get(name)
        return _GROUPS[name] if words is None else tuple(
            metric for metric in _GROUPS[name] if _WORDS[metric] in words)

    def _rated(self, name: str) -> Tuple[str, ...]:
        """The metrics of a group that the library reads at a rate of their own."""
        if name == "threads":
            return _GROUPS[name][1:]
        if name in DEVICES:
            return self._of_device(name)
        return ("memory",) if name == "memory" else _GROUPS[name] if name == "handles" else ()

    def _measure_devices(self, rates: Mapping[str, float]) -> None:
        """Measures the processes on devices, by group and rate, in addition to what the configuration says."""
        for name, hz in rates.items():
            self._metrics += self._of_device(name)
            self._rates += tuple((metric, hz) for metric in self._of_device(name))

    # ------------------------------------------------------------------------ life

    def start_monitoring(self) -> None:
        """Starts monitoring. Does nothing if it runs already. Allowed after stop_monitoring and cleanup.

        Example:

            monitor.start_monitoring()
        """
        with self._lock:
            self.config.validate()
            self._apply_switches()
            if self._engine.running and self._engine.lost is not None:
                self._engine.stop()
            if not self._engine.running:
                self._engine.start(self._native_config())
                self._warn_of_fallback()

    def stop_monitoring(self) -> None:
        """Reads the remaining samples and stops; the results stay available.

        Example:

            monitor.stop_monitoring()
            print(monitor.get_process_summary())
        """
        self._engine.stop()

    def cleanup(self) -> None:
        """Stops and releases all system resources.

        Example:

            monitor.cleanup()
        """
        self._engine.close()
        self._energy_monitor = None

    def __enter__(self) -> "ETWMonitor":
        self.start_monitoring()
        return self

    def __exit__(self, *_: object) -> None:
        self.cleanup()

    def get_cpu_usage(self) -> float:
        """Per cent of all CPUs of the machine since the last call (or since construction).

        Example:

            print(f"{monitor.get_cpu_usage():.1f} %")
        """
        return self._cpu.get()

    def get_memory_usage(self) -> MemoryUsage:
        """Used memory of the machine, as from SystemMonitor.

        Example:

            print(monitor.get_memory_usage().used_bytes)
        """
        return MemoryUsage(*_system.memory())

    def _energy(self) -> EnergyMonitor:
        return EnergyMonitor((), **self._roots)

    def get_power_metrics(self) -> Dict[str, Any]:
        """Power and energy by domain, as from EnergyMonitor; None is unknown. `joules` are since the first call.
        `processes` has by pid the energy of each monitored process while it was monitored, an estimate: `joules`, and
        `watts` on average. It is measured with `metrics=["energy_uj"]`, by a group `energy` and by UnifiedMonitor; else
        `processes` is empty.

        Example:

            power = etwatch.UnifiedMonitor().get_power_metrics()
            print(power["package"]["watts"], power["processes"])
        """
        found = super().get_power_metrics()
        for process in self._engine.summary.processes():
            used, seconds = process.sample.get("energy_uj"), (process.last_ns - process.first_ns) / 1e9
            if used is not None and process.sample.pid != -1:
                found["processes"][process.sample.pid] = {
                    "joules": used / 1e6, "watts": used / 1e6 / seconds if seconds > 0 else None}
        return found

    @property
    def is_monitoring(self) -> bool:
        """Whether samples are being taken.

        Example:

            print(monitor.is_monitoring)
        """
        return self._engine.running and self._engine.lost is None

    @property
    def backend(self) -> Optional[str]:
        """The source in use: "etw", "ebpf" or "poll"; None before the first start.

        Example:

            print(monitor.backend)
        """
        native = self._engine.native
        try:
            meta = native.meta() if native is not None else self._engine.last_meta
        except ETWError:
            meta = self._engine.last_meta
        return None if meta is None else SOURCES.get(meta.source)

    def _native_config(self) -> Any:
        config = self.config
        pids = sorted(config.target_processes or ())
        names = sorted({plain_name(name) for name in config.target_process_names or ()})
        everything = not pids and not names and not self._only_added
        flags = flag_bits(everything=everything, system=not config.exclude_system_processes,
                          fallback=self._fallback, command_lines=self._command_lines)
        # Gauges that need a system call per process are measured for selected processes only.
        metrics = ["default", *([] if everything else ["threads", "handles", "io_priority"]), *self._metrics]
        made = make_config(metrics=[str(name) for name in metrics], rates=self._rates, polled=self._polled,
                           top_n=config.max_processes or 0, source=self._source,
                           hz=float(config.sampling_rate_hz), latency_ms=config.callback_batch_ms,
                           budget_percent=float(config.overhead_limit), pids=pids, names=names, flags=flags,
                           exclude_pids=sorted(config.exclude_processes or ()),
                           exclude_names=sorted({plain_name(name) for name in config.exclude_process_names or ()}),
                           queue_samples=max(4096, min(config.buffer_size // 4, 100_000)))
        for name, root in self._roots.items():
            setattr(made, name, None if root is None else os.fsencode(root))
        if _native.set_has(made.metrics, METRIC_NAMES.index("cycles")):
            made.flags |= _abi.ETWATCH_CONFIG_THREADS  # for thread_cpu_cycles
        if WINDOWS and self._source in ("auto", "etw"):
            self._add_session(made)
        return made

    def _add_session(self, made: Any) -> None:
        config = self.config
        session = _native.sized(_abi.SessionOptions)
        session.buffer_kb = config.buffer_size_kb
        session.min_buffers, session.max_buffers = session_buffers(config, _system.cpu_count())
        session.flush_ms = flush_ms(config)
        session.profile_hz = config.cpu_sampling_interval if config.enable_cpu_sampling else 0
        session.name = config.session_name.encode()
        session.kernel = ",".join(kernel_kinds(config)).encode()
        session.stacks = b"profile,cswitch" if config.enable_stack_walking else None
        made.session_options = ctypes.pointer(session)

    def _warn_of_fallback(self) -> None:
        native = self._engine.native
        if native is None or self._warned:
            return
        fallback = _native.text(native.meta().fallback)
        if fallback:
            self._warned = True
            logger.warning("%s", in_python(fallback))

    # --------------------------------------------------------------------- targets

    def add_process(self, pid: int) -> None:
        """Monitors this process and its descendants too. Raises ProcessLookupError if it does not exist.

        Example:

            monitor.add_process(pid)
        """
        pid = check_pid("pid", pid)
        with self._lock:
            targets = set(self.config.target_processes or ())
            narrows = not targets and not self.config.target_process_names and not self._only_added
            native = self._engine.native
            if self._engine.running and native is not None and not narrows:
                native.add(pid)
            elif not _exists(pid):
                raise ProcessLookupError(f"pid {pid}: no such process")
            self.config.target_processes = targets | {pid}
            self._only_added = True
            if narrows and self._engine.running:
                self._engine.stop()
                self._engine.start(self._native_config())

    def remove_process(self, pid: int) -> None:
        """Stops monitoring this process. Does nothing if it was not monitored.

        Example:

            monitor.remove_process(pid)
        """
        pid = check_pid("pid", pid)
        with self._lock:
            targets = set(self.config.target_processes or ())
            if pid in targets:
                self._only_added = True
            targets.discard(pid)
            self.config.target_processes = targets
            native = self._engine.native
            if self._engine.running and native is not None:
                try:
                    native.remove(pid)
                except ProcessLookupError:
                    pass

    # --------------------------------------------------------------------- samples

    def collect_metrics(self) -> List[MetricSample]:
        """The samples since the last call, at most `buffer_size`. The oldest are dropped first, and counted.

        Example:

            for sample in monitor.collect_metrics():
                print(sample.timestamp, sample.process_name, sample.metric_name, sample.value, sample.unit)
        """
        return self._engine.collect()

    def register_callback(self, callback: SampleCallback) -> None:
        """Registers a function that is called with one MetricSample at a time, from a separate thread.

        Example:

            def on_sample(sample):
                if sample.metric_name == "process_cpu_percent":
                    print(sample.pid, sample.value)

            monitor.register_callback(on_sample)
        """
        self._engine.callbacks.add(callback, False)
        self._engine.callbacks_changed()

    def register_batch_callback(self, callback: BatchCallback) -> None:
        """Registers a function that is called with a list of MetricSamples. The list is filled on its first access. Its
        attribute `samples` has the same data as a Batch, for columns without objects.

        Example:

            def on_batch(samples):
                print(sum(filter(None, samples.samples.column("cpu_ns"))))

            monitor.register_batch_callback(on_batch)
        """
        self._engine.callbacks.add(callback, True)
        self._engine.callbacks_changed()

    def unregister_callback(self, callback: Any) -> bool:
        """Unregisters a callback of either kind. Returns False if it was not registered.

        Example:

            monitor.register_callback(print)
            monitor.unregister_callback(print)
        """
        return self._engine.callbacks.remove(callback)

    # ------------------------------------------------------------------- processes

    @overload
    def get_process_metrics(self, pid: int) -> ProcessMetrics: ...
    @overload
    def get_process_metrics(self, pid: None = None) -> Dict[int, ProcessMetrics]: ...
    def get_process_metrics(self, pid: Optional[int] = None) -> Union[ProcessMetrics, Dict[int, ProcessMetrics]]:
        """One process, or all known processes by pid. Raises ProcessLookupError if the pid was never monitored.

        Example:

            print(monitor.get_process_metrics(pid).cpu_percent, len(monitor.get_process_metrics()))
        """
        if pid is not None:
            pid = check_pid("pid", pid)
            known = self._engine.summary.processes(pid)
            found = self._metrics_of(pid, known[-1] if known else None)
            if found is None:
                raise ProcessLookupError(f"pid {pid}: no such process is watched")
            return found
        all_known = {}
        for process in self._engine.summary.processes():
            if process.sample.pid == -1:
                continue  # the sample for all processes that are not among the top N
            found = self._metrics_of(process.sample.pid, process)
            if found is not None:
                all_known[process.sample.pid] = found
        return all_known

    def _metrics_of(self, pid: int, known: Optional[ProcessSummary]) -> Optional[ProcessMetrics]:
        totals = None
        if known is None or not known.ended:
            native = self._engine.native
            try:
                totals = native.snapshot(pid) if native is not None else None
            except (ETWError, ProcessLookupError):
                pass
        if known is None and totals is None:
            return None
        latest = known.sample if known is not None else None
        source = totals if totals is not None else latest
        assert source is not None
        alive = known is None or not known.ended
        found = process_metrics(source, latest, _system.thread_ids(pid) if alive else None)
        if known is not None:
            found.command_line = known.sample.cmdline
            found.thread_cpu_cycles = known.thread_cycles or None
            found.name = found.name or known.sample.name
            if alive and known.last_ns - known.sample.t_ns > 1.5e9 / self.config.sampling_rate_hz:
                found.cpu_percent = 0.0  # it has not run since its last sample
        return found

    def get_process_summary(self) -> Dict[int, Dict[str, Any]]:
        """A summary of each process by pid: `metrics` (average, maximum, p95 and p99 over the intervals), `totals`,
        `lifetime` in seconds. A reused pid has the latest process. pid -1 stands for all processes that were not among
        the max_processes busiest. A group with configured `aggregation` has only those statistics.

        Example:

            for pid, process in monitor.get_process_summary().items():
                cpu = process["metrics"].get("process_cpu_percent")
                print(pid, process["name"], process["lifetime"], cpu["p95"] if cpu else None, process["totals"].get("cpu_ns"))
        """
        found = {}
        for process in self._engine.summary.processes():
            sample = process.sample
            begin = sample.start_ns or process.first_ns
            seen = self._engine.seen
            spreads, sums = self._spreads(process)
            wanted = {name: spread for name, spread in spreads.items() if _BITS[name] & seen}
            totals = {name: sample.get(name) for name, _, kind in _abi.METRICS
                      if kind == "counter" and _BITS[name] & seen and sample.get(name) is not None}
            found[sample.pid] = {
                "pid": sample.pid, "name": sample.name, "start_time": begin / 1e9, "ended": process.ended,
                "exit_code": exit_code_of(sample), "lifetime": max(0, process.last_ns - begin) / 1e9,
                "watched": max(0, process.last_ns - process.first_ns) / 1e9,
                "samples": process.samples,
                "metrics": MetricTable({name: self._aggregates(name, s) for name, s in wanted.items()},
                                       {names: self._aggregates(names[0], s) for names, s in sums.items()
                                        if all(_BITS[name] & seen for name in names)}),
                "totals": TotalTable(totals),
            }
        return found

    def _spreads(self, process: ProcessSummary) -> Tuple[Dict[str, Spread], Dict[Tuple[str, ...], Spread]]:
        """The statistics of a process; those of a group with a rate of its own are over its intervals."""
        spreads, sums = dict(process.metrics), dict(process.sums)
        for group in self._engine.slow:
            own = [one for one in group.summary.processes(process.sample.pid)
                   if one.sample.start_ns == process.sample.start_ns]
            slow = {name for name in METRIC_NAMES if _BITS[name] & group.mask}
            spreads = {name: spread for name, spread in spreads.items() if name not in slow}
            sums = {names: spread for names, spread in sums.items() if not slow.issuperset(names)}
            if own:
                spreads.update({name: spread for name, spread in own[-1].metrics.items() if name in slow})
                sums.update({names: spread for names, spread in own[-1].sums.items() if slow.issuperset(names)})
        return spreads, sums

    def _aggregates(self, name: str, spread: Spread) -> Dict[str, float]:
        selected = self._aggregation.get(name, ("average", "maximum", "p95", "p99"))
        return {**{key: getattr(spread, key) for key in selected}, "intervals": spread.intervals}

    # ------------------------------------------------------------------ statistics

    def get_statistics(self) -> Dict[str, Any]:
        """Statistics of the monitor itself: rates, loss and cost.

        Example:

            statistics = monitor.get_statistics()
            print(statistics["samples"], statistics["hz_reached"], statistics["lost"], statistics["self_cpu_percent"])
        """
        engine = self._engine
        native = engine.native
        try:
            stats = native.stats() if native is not None else engine.last_stats
        except ETWError:
            stats = engine.last_stats
        found: Dict[str, Any] = {
            "backend": self.backend, "running": self.is_monitoring, "hz_requested": self.config.sampling_rate_hz,
            "callbacks": len(engine.callbacks.entries), "callback_errors": engine.callbacks.errors,
            "callback_dropped": engine.pending.dropped, "callback_seconds": engine.callbacks.busy_s,
            "error": engine.lost,
        }
        for name in ("hz_reached", "hz_effective", "samples", "events", "lost", "undecoded", "late", "wakeups", "processes",
                     "threads", "self_cpu_percent", "self_rss_bytes", "self_rss_peak_bytes"):
            found[name] = getattr(stats, name) if stats is not None else None
        seconds = stats.duration_ns / 1e9 if stats is not None else 0
        kernel = stats.self_kernel_percent if stats is not None else -1
        found["self_kernel_percent"] = kernel if kernel >= 0 else None
        found["duration"] = seconds
        etw = found["backend"] == "etw"
        found["min_buffers_requested"] = self.config.min_buffers if etw else None
        buffers = session_buffers(self.config, _system.cpu_count()) if etw else (None, None)
        found["min_buffers"], found["max_buffers"] = buffers
        found["flush_ms"] = flush_ms(self.config) if etw else None
        # collect_dropped: rows missing from collect_metrics. dropped: rows that no consumer received.
        missed = stats.queue_dropped if stats is not None else 0
        found["collect_dropped"] = engine.store.dropped + missed
        found["dropped"] = missed + engine.pending.dropped if engine.callbacks.entries else found["collect_dropped"]
        found["collection_time_avg_ms"] = found["collection_time_max_ms"] = None
        if stats is not None and stats.wakeups:
            found["collection_time_avg_ms"] = stats.step_ns / stats.wakeups / 1e6
            found["collection_time_max_ms"] = stats.step_max_ns / 1e6
        if seconds > 0:
            found["self_cpu_percent"] += 100 * engine.callbacks.busy_s / seconds
        return found

    # -------------------------------------------------------------------- switches

    def set_kernel_flags(self, flags: Iterable[str]) -> None:
        """Selects kinds of kernel events by their Windows names. On other systems the same names enable and disable the
        matching groups of metrics. Samples from before the call are not affected.

        Example:

            monitor.set_kernel_flags(["EVENT_TRACE_FLAG_PROCESS", "EVENT_TRACE_FLAG_CSWITCH"])
        """
        wanted = bare_flags("flags", flags)
        reason = without_effect(wanted)
        if reason:
            warn(f"flags: {reason}")
        with self._lock:
            self.config.kernel_flags = [PREFIX + bare for bare in wanted]
            switch_by_flags(self.config, wanted)
            self._apply_switches()
            if self.backend == "etw" and self._engine.running:
                self._set_kernel()

    def _set_kernel(self) -> None:
        """Changes the running session to what the config says now."""
        native = self._engine.native
        assert native is not None
        stacks = b"profile,cswitch" if self.config.enable_stack_walking else b""
        native.set_kernel(",".join(kernel_kinds(self.config)).encode(), stacks)

    def enable_stack_walking(self, enable: bool = True) -> bool:
        """Logs stacks with profile samples and switches, for recordings. Returns whether it is effective: only ETW
        supports it.

        Example:

            if not monitor.enable_stack_walking(True):
                print("no stacks with", monitor.backend)
        """
        if not isinstance(enable, bool):
            raise TypeError(f"enable: True or False is needed, not {enable!r}")
        with self._lock:
            self.config.enable_stack_walking = enable
            if self.backend == "etw" and self._engine.running:
                self._set_kernel()
                return enable
        return False

    def _apply_switches(self) -> None:
        mask = -1
        config = self.config
        for name in self._off:
            mask &= ~_BITS[name]
        for switch, names in _SWITCHED.items():
            # Disk I/O needs extra events only on Windows; on Linux the kernel counts it anyway.
            if not getattr(config, switch) and (switch != "enable_disk_io" or sys.platform == "win32"):
                for name in names:
                    mask &= ~_BITS[name]
        if not config.enable_context_switch and not config.enable_cpu_sampling:
            for name in _CPU:
                mask &= ~_BITS[name]
        self._engine.set_mask(mask)

    def __repr__(self) -> str:
        return f"<ETWMonitor {'on ' + str(self.backend) if self.is_monitoring else 'stopped'}>"


def _group(name: str, configured: Iterable[str]) -> Tuple[str, ...]:
    """The metrics of a group. Those of the network belong to io unless they are configured."""
    metrics = _GROUPS.get(name, ())
    if name == "io" and "network" in configured:
        metrics = tuple(metric for metric in metrics if metric not in _GROUPS["network"])
    return metrics


def _windows_flags(bare: Iterable[str]) -> List[str]:
    return [PREFIX + _SPELLINGS.get(name, name) for name in bare if name not in NOT_ENABLED]


def session_buffers(config: ETWMonitorConfig, cpus: int) -> Tuple[int, int]:
    """(minimum, maximum) of the buffers of a session. Switches are logged where no memory can be allocated, so the buffers
    must exist from the start: eight a CPU lose nothing at a million switches a second, one a CPU lose 16 %."""
    most = config.max_buffers
    if most == ETWMonitorConfig.max_buffers:
        most = max(most, 16 * cpus)
    return min(max(config.min_buffers, 8 * cpus, 16), most), most


def flush_ms(config: ETWMonitorConfig) -> int:
    """How long events stay in a buffer: no longer than samples may be held back."""
    return max(1, min(round(config.flush_timer * 1000), config.callback_batch_ms))


def kernel_kinds(config: ETWMonitorConfig) -> List[str]:
    """The kinds of kernel events that an ETW session logs for the flags or the switches of a config."""
    if config.kernel_flags is not None:
        return ["process", "thread", *_windows_flags(bare_flags("kernel_flags", config.kernel_flags))]
    kinds = ["process", "thread", "counters", "network"]  # processes, and their counters at exit
    for switch, more in (("enable_context_switch", ("cswitch", "dispatcher")), ("enable_cpu_sampling", ("profile",)),
                         ("enable_memory_events", ("hardfaults",)),
                         ("enable_disk_io", ("disk", "disk-init", "fileio-init"))):
        kinds += more if getattr(config, switch) else ()
    return kinds


class _Writer:
    """Appends samples as JSON Lines to a file, for storage.persist_to_disk."""

    def __init__(self, path: str) -> None:
        self._file = appending(path)

    def __call__(self, samples: List[MetricSample]) -> None:
        rows = getattr(samples, "samples", None)
        self._file.writelines(json.dumps(row.as_dict()) + "\n" for row in rows or ())
        self._file.flush()

    def __del__(self) -> None:
        self._file.close()


def _exists(pid: int) -> bool:
    """Whether the library finds this process."""
    from ._monitor import NativeMonitor
    probe = NativeMonitor(make_config())
    try:
        probe.add(pid)
        return True
    except ProcessLookupError:
        return False
    finally:
        probe.close()


