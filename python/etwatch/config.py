# SPDX-License-Identifier: MIT
"""ETWMonitorConfig, and the other forms of configuration that are accepted in its place: a number, and dicts in the two
shapes that the first users wrote. A setting that has no effect on this machine is accepted with a warning."""
import math
import numbers
import operator
import sys
from dataclasses import dataclass, field, fields
from typing import Any, Dict, Iterable, List, Mapping, Optional, Set, Tuple, Union

__all__ = ["ETWMonitorConfig", "MonitorConfig", "Settings", "read_settings"]

WINDOWS = sys.platform == "win32"
_SWITCHES = ("exclude_system_processes", "enable_process_events", "enable_thread_events", "enable_cpu_sampling",
             "enable_memory_events", "enable_context_switch", "enable_disk_io", "enable_stack_walking")
# field: (lowest, highest, whole numbers only)
_RANGES: Dict[str, Tuple[float, float, bool]] = {
    "sampling_rate_hz": (0.1, 1000, False),
    "buffer_size": (1, 10_000_000, True),
    "max_processes": (1, 65536, True),
    "buffer_size_kb": (4, 16384, True),
    "min_buffers": (2, 65536, True),
    "max_buffers": (2, 65536, True),
    "flush_timer": (0.001, 60, False),
    "cpu_sampling_interval": (1, 8000, True),
    "overhead_limit": (0.01, 1000, False),
    "callback_batch_ms": (1, 60000, True),
}


class WrongType(TypeError, ValueError):
    """A value of a wrong type is an impossible value too: either way of catching it works."""


def number(name: str, value: object, low: float, high: float, whole: bool = False) -> Any:
    """The value, as int or float. Raises TypeError or ValueError unless it is a number in this range."""
    what = f"{'a whole number' if whole else 'a number'} from {low:.10g} to {high:.10g}"
    plain = _plain(value, whole)
    if plain is None:
        raise WrongType(f"{name}: {what} is needed, not {value!r}")
    if not math.isfinite(plain) or not low <= plain <= high:
        raise ValueError(f"{name}: {value!r} is not {what}")
    return plain


def _plain(value: Any, whole: bool) -> Union[int, float, None]:
    """The number as int or float, also one of numpy, which pandas returns; None if it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int) or hasattr(value, "__index__"):
        return operator.index(value)
    return float(value) if not whole and isinstance(value, numbers.Real) else None


def check_pid(name: str, pid: object) -> int:
    plain = _plain(pid, True)
    if plain is None:
        raise WrongType(f"{name}: a process id is needed, not {pid!r}")
    if not 0 < plain < 2**32:
        raise ValueError(f"{name}: {pid!r} is not a process id from 1 to 4294967295")
    return int(plain)


def check_pids(name: str, pids: object) -> List[int]:
    """Process ids; one may stand for a list of one."""
    return [check_pid(name, pid) for pid in ([pids] if _plain(pids, True) is not None else members(name, pids))]


def check_names(name: str, names: object) -> List[str]:
    """Names; one may stand for a list of one."""
    return [check_name(name, text) for text in ([names] if isinstance(names, str) else members(name, names))]


def check_name(name: str, text: object) -> str:
    if not isinstance(text, str):
        raise WrongType(f"{name}: a name is needed, not {text!r}")
    if not text or "\0" in text or len(text) > 255:
        raise ValueError(f"{name}: {text!r} is not 1 to 255 characters")
    return text


def members(name: str, values: object) -> Iterable[object]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise WrongType(f"{name}: a set is needed, not {values!r}")
    return values


@dataclass
class ETWMonitorConfig:
    """Settings of ETWMonitor. All fields are optional; TypeError or ValueError names a wrong one and its range.

    Example:

        config = etwatch.ETWMonitorConfig(sampling_rate_hz=100.0, target_process_names={"python"}, max_processes=20)
        monitor = etwatch.ETWMonitor(config)

    The fields from `session_name` to `flush_timer`, and `cpu_sampling_interval`, are settings of the ETW session: elsewhere
    than on Windows a value other than the default has no effect, and a warning says so.
    """

    sampling_rate_hz: float = 100.0
    """samples a second, 0.1 to 1000"""
    buffer_size: int = 10000
    """samples kept for collect_metrics; the oldest are dropped first, and counted"""
    target_processes: Optional[Set[int]] = None
    """process ids, with their descendants; None with no names: every process"""
    target_process_names: Optional[Set[str]] = None
    """names; "python" also matches python.exe and python3.11"""
    max_processes: Optional[int] = None
    """report the busiest N, and the sum of the others"""
    exclude_system_processes: bool = True
    """Windows: System, Idle and Registry; Linux: kernel threads"""
    session_name: str = "OnnxInferenceMonitor"
    """ETW session"""
    buffer_size_kb: int = 64
    """size of an ETW buffer"""
    min_buffers: int = 4
    """lower bound: the library allocates eight a CPU (get_statistics has the effective number)"""
    max_buffers: int = 64
    """upper bound; its default is raised if the machine has many CPUs"""
    flush_timer: float = 1
    """seconds that events may stay in a buffer; at most callback_batch_ms"""
    enable_process_events: bool = True
    enable_thread_events: bool = True
    enable_cpu_sampling: bool = True
    enable_memory_events: bool = True
    enable_context_switch: bool = True
    enable_disk_io: bool = False
    enable_stack_walking: bool = False
    """stacks of samples and switches, for recordings (ETW)"""
    cpu_sampling_interval: int = 1000
    """CPU samples a second (ETW)"""
    overhead_limit: float = 5.0
    """budget in per cent of one core; the rate is lowered to keep it"""
    callback_batch_ms: int = 100
    """how long samples may be held back"""
    exclude_processes: Optional[Set[int]] = None
    """process ids that are not monitored"""
    exclude_process_names: Optional[Set[str]] = None
    """names that are not monitored"""
    kernel_flags: Optional[List[str]] = None
    """kinds of kernel events by their Windows names, as in set_kernel_flags; None: by the switches above"""

    def __post_init__(self) -> None:
        self.validate()

    def validate(self) -> None:
        """Checks every field again, after they may have been changed.

        Example:

            config.sampling_rate_hz = 50
            config.validate()
        """
        for name, (low, high, whole) in _RANGES.items():
            value = getattr(self, name)
            if value is not None or name != "max_processes":
                setattr(self, name, number(name, value, low, high, whole))
        for name in _SWITCHES:
            if not isinstance(getattr(self, name), bool):
                raise WrongType(f"{name}: True or False is needed, not {getattr(self, name)!r}")
        if self.min_buffers > self.max_buffers:
            raise ValueError(f"min_buffers: {self.min_buffers} is not within 2 and max_buffers ({self.max_buffers})")
        check_name("session_name", self.session_name)
        for name in ("target_processes", "exclude_processes"):
            if getattr(self, name) is not None:
                setattr(self, name, {check_pid(name, pid) for pid in members(name, getattr(self, name))})
        for name in ("target_process_names", "exclude_process_names"):
            if getattr(self, name) is not None:
                setattr(self, name, {check_name(name, text) for text in members(name, getattr(self, name))})
        if self.kernel_flags is not None:
            self.kernel_flags = [PREFIX + bare for bare in bare_flags("kernel_flags", self.kernel_flags)]

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> "ETWMonitorConfig":
        """Makes a config from a dict: of its fields, of an ETW session, or the nested {'monitoring': {…}}.

        Example:

            etwatch.ETWMonitorConfig.from_dict({"monitoring": {"cpu": {"sampling_hz": 50}}})
        """
        return read_settings(settings).config


MonitorConfig = ETWMonitorConfig
"""The name that the first users gave the base class of the configuration."""


# ------------------------------------------------------------------------------- kernel flags

PREFIX = "EVENT_TRACE_FLAG_"
# Kernel flags and the switch of the config for each; flags without a switch are only passed to ETW.
FLAG_SWITCHES: Dict[str, Optional[str]] = {
    "PROCESS": "enable_process_events", "THREAD": "enable_thread_events", "CSWITCH": "enable_context_switch",
    "DISPATCHER": "enable_context_switch", "PROFILE": "enable_cpu_sampling", "MEMORY_PAGE": "enable_memory_events",
    "MEMORY_PAGE_FAULTS": "enable_memory_events", "MEMORY_HARD_FAULTS": "enable_memory_events",
    "VIRTUAL_ALLOC": "enable_memory_events", "VAMAP": "enable_memory_events", "DISK_IO": "enable_disk_io",
    "DISK_IO_INIT": "enable_disk_io", "DISK_FILE_IO": "enable_disk_io", "FILE_IO": "enable_disk_io",
    "FILE_IO_INIT": "enable_disk_io", "SPLIT_IO": "enable_disk_io", "IMAGE_LOAD": None, "PROCESS_COUNTERS": None,
    "DPC": None, "INTERRUPT": None, "SYSTEMCALL": None, "REGISTRY": None, "NETWORK_TCPIP": None, "ALPC": None,
    "DRIVER": None, "DBGPRINT": None, "JOB": None, "DEBUG_EVENTS": None, "NO_SYSCONFIG": None,
}


def bare_flags(where: str, flags: object) -> List[str]:
    """The names of kernel flags without their prefix."""
    found = []
    for flag in members(where, flags):
        if not isinstance(flag, str):
            raise WrongType(f"{where}: names are needed, not {flag!r}")
        bare = flag[len(PREFIX):] if flag.startswith(PREFIX) else flag
        if bare not in FLAG_SWITCHES:
            raise ValueError(f"{where}: {flag!r} is none of "
                             + ", ".join(PREFIX + name for name in sorted(FLAG_SWITCHES)))
        found.append(bare)
    return found


# Flags of Windows that no session of etwatch enables: no metric comes from their events.
NOT_ENABLED = ("VAMAP", "REGISTRY", "ALPC", "DBGPRINT", "JOB", "DEBUG_EVENTS", "NO_SYSCONFIG")


def without_effect(bare: Iterable[str]) -> str:
    """Which flags switch nothing on this system; "" if each does."""
    alone = [PREFIX + name for name in bare if (name in NOT_ENABLED if WINDOWS else FLAG_SWITCHES[name] is None)]
    return f"no effect on this system: {', '.join(alone)}" if alone else ""


def switch_by_flags(config: ETWMonitorConfig, bare: Iterable[str]) -> None:
    """Sets the switches of the config as the flags say."""
    on = {FLAG_SWITCHES[name] for name in bare}
    for switch in {switch for switch in FLAG_SWITCHES.values() if switch is not None}:
        setattr(config, switch, switch in on)
    config.enable_process_events = True  # processes cannot be identified without


# ------------------------------------------------------------------------------------- dicts


@dataclass
class Settings:
    """What a configuration of any form says."""

    config: ETWMonitorConfig
    source: str = "auto"
    groups: Tuple[str, ...] = ("cpu", "memory")
    off: Tuple[str, ...] = ()  # disabled groups
    aggregation: Dict[str, Tuple[str, ...]] = field(default_factory=dict)  # by group: the statistics in a summary
    rates: Tuple[Tuple[str, float], ...] = ()  # of groups of metrics
    polled: Tuple[str, ...] = ()  # polled gauges next to an event source
    persist_to_disk: Optional[str] = None
    backends: Dict[str, str] = field(default_factory=dict)  # by group: the source that it names
    device_metrics: Dict[str, Tuple[str, ...]] = field(default_factory=dict)  # by group of devices: the selected ones
    system_hz: Optional[float] = None  # of the whole machine
    unified: Dict[str, str] = field(default_factory=dict)  # by key: why it has an effect in a UnifiedMonitor only
    ignored: Dict[str, str] = field(default_factory=dict)  # by key: why it has no effect on this machine
    session: Dict[str, str] = field(default_factory=dict)  # by the user's key: the field, of settings of an ETW session


_BACKENDS = {"auto": "auto", "etw": "etw", "ebpf": "ebpf", "poll": "poll", "polling": "poll", "psutil": "poll"}
# Accepted names, and the names in a summary.
_AGGREGATIONS = {"avg": "average", "average": "average", "mean": "average", "max": "maximum", "maximum": "maximum",
                 "p95": "p95", "p99": "p99"}
_GROUPS = ("cpu", "memory", "threads", "io", "disk", "network", "handles", "gpu", "npu", "energy", "system")
DEVICES = ("gpu", "npu", "energy")
_OF_PROCESSES = ("utilization", "memory", "energy")  # metrics of devices that are known by process
_KEYS = ("backend", "sampling_hz", "aggregation", "enabled")
_MORE_KEYS = {"memory": ("track_allocations",), "gpu": ("metrics",), "npu": ("metrics", "enable_profiling"),
              "energy": ("metrics",)}
_DEVICE_METRICS = ("utilization", "memory", "temperature", "power", "energy", "clocks", "fan", "processes", "encoder",
                   "decoder", "bandwidth")


def _keys(where: str, part: object, known: Iterable[str]) -> Mapping[str, Any]:
    if not isinstance(part, Mapping):
        raise WrongType(f"{where}: a dict is needed, not {part!r}")
    for key in part:
        if key not in known:
            raise ValueError(f"{where}: {key!r} is none of {', '.join(sorted(known))}")
    return part


def _switch(where: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise WrongType(f"{where}: True or False is needed, not {value!r}")
    return value


def _read_aggregation(name: str, group: Mapping[str, Any], found: Settings) -> None:
    where = f"monitoring.{name}.aggregation"
    aggregations = group.get("aggregation", ())
    for aggregation in [aggregations] if isinstance(aggregations, str) else members(where, aggregations):
        if aggregation not in _AGGREGATIONS:
            raise ValueError(f"{where}: {aggregation!r} is none of {', '.join(_AGGREGATIONS)}")
        found.aggregation[name] = (*found.aggregation.get(name, ()), _AGGREGATIONS[str(aggregation)])


def _read_backend(name: str, group: Mapping[str, Any], found: Settings) -> None:
    where = f"monitoring.{name}.backend"
    backend = group.get("backend", "auto")
    if not isinstance(backend, str):
        raise WrongType(f"{where}: a name is needed, not {backend!r}")
    # Devices have backends of their own (nvml, drm, rapl, onnx_runtime, …); the name is not checked.
    if name in (*DEVICES, "system"):
        if backend != "auto":
            found.ignored[where] = f"{backend!r} selects nothing: " + (
                "the values of the whole machine have one source" if name == "system" else
                "every driver that is found is read")
        return
    if backend not in _BACKENDS:
        raise ValueError(f"{where}: {backend!r} is none of {', '.join(_BACKENDS)}")
    source = _BACKENDS[backend]
    if source == ("ebpf" if WINDOWS else "etw"):
        found.ignored[where] = f"{backend!r} is a source of {'Linux' if WINDOWS else 'Windows'}; " \
                               "the best source of this machine is used"
        source = "auto"
    found.backends[name] = source
    if name == "cpu":
        found.source = source
    elif name == "memory" and source == "poll":
        found.polled = ("rss_bytes", "rss_peak_bytes", "private_bytes", "virtual_bytes")


def _note_backends(found: Settings) -> None:
    """A monitor has one source, that of the group cpu; only the gauges of memory can be polled next to it."""
    source = found.source if found.source != "auto" else "etw" if WINDOWS else "ebpf"
    for name, wanted in found.backends.items():
        if wanted not in ("auto", source) and (name, wanted) != ("memory", "poll"):
            found.ignored[f"monitoring.{name}.backend"] = f"{wanted!r} is not the source of this monitor ({source!r}), " \
                "which monitoring.cpu.backend or the monitor itself selects for every group"


def _read_more(name: str, group: Mapping[str, Any], found: Settings) -> None:
    """The keys that only this group has."""
    where = f"monitoring.{name}"
    if _switch(f"{where}.track_allocations", group.get("track_allocations", False)):
        found.ignored[f"{where}.track_allocations"] = "allocations are events, which no metric counts; an " \
            "ETWConsumer(events='MemAlloc') has each with its address and size" if WINDOWS else \
            "allocations are events of ETW, which only Windows has"
    for metric in members(f"{where}.metrics", group.get("metrics", ())):
        if metric not in _DEVICE_METRICS:
            raise ValueError(f"{where}.metrics: {metric!r} is none of {', '.join(_DEVICE_METRICS)}")
        found.device_metrics[name] = (*found.device_metrics.get(name, ()), str(metric))
    if _switch(f"{where}.enable_profiling", group.get("enable_profiling", False)):
        found.ignored[f"{where}.enable_profiling"] = "a monitor does not change the program that it watches; set " \
            "enable_profiling in the SessionOptions of ONNX Runtime"


def _read_group(name: str, part: object, found: Settings, rates: Dict[str, float], elsewhere: bool) -> None:
    where = f"monitoring.{name}"
    group = _keys(where, part, (*_KEYS, *_MORE_KEYS.get(name, ())))
    if not _switch(f"{where}.enabled", group.get("enabled", True)):
        found.off += (name,)
        return
    if "sampling_hz" in group:
        number(f"{where}.sampling_hz", group["sampling_hz"], 0.1, 1000)
        rates[name] = float(group["sampling_hz"])
    _read_aggregation(name, group, found)
    _read_backend(name, group, found)
    _read_more(name, group, found)
    if name in DEVICES:
        from .devices import unavailable_reason
        reason = None if elsewhere else unavailable_reason(name)
        if reason is not None:
            found.ignored[where] = reason
        whole = [metric for metric in found.device_metrics.get(name, ()) if metric not in _OF_PROCESSES]
        if whole and reason is None:
            found.unified[f"{where}.metrics"] = f"{', '.join(whole)}: of the whole device, not of a process; " \
                "UnifiedMonitor has these values"
    elif name == "system":
        found.unified[where] = "the values of the whole machine are in the stream of UnifiedMonitor"
    found.groups += (name,)


def _read_storage(part: object, values: Dict[str, Any], found: Settings) -> None:
    storage = _keys("monitoring.storage", part, ("type", "max_samples", "persist_to_disk"))
    kind = storage.get("type", "circular_buffer")
    if kind != "circular_buffer":
        raise ValueError(f"monitoring.storage.type: {kind!r} is not 'circular_buffer'")
    if "max_samples" in storage:
        number("monitoring.storage.max_samples", storage["max_samples"], 1, 10_000_000, True)
        values["buffer_size"] = storage["max_samples"]
    persist = storage.get("persist_to_disk", False)
    if persist is True:
        found.persist_to_disk = "etwatch.jsonl"
    elif isinstance(persist, str) and persist:
        found.persist_to_disk = persist
    elif persist not in (False, None):
        raise ValueError("monitoring.storage.persist_to_disk: False, True (etwatch.jsonl) or the path of a file "
                         f"for JSON Lines, not {persist!r}")


def _read_nested(settings: Mapping[str, Any], elsewhere: bool) -> Settings:
    rest = {key: value for key, value in settings.items() if key != "monitoring"}
    values: Dict[str, Any] = dict(_keys("config", rest, _FIELDS))
    monitoring = _keys("monitoring", settings["monitoring"], (*_GROUPS, "storage", "overhead_limit"))
    found = Settings(ETWMonitorConfig(), groups=())
    rates: Dict[str, float] = {}
    for name in _GROUPS:
        if name in monitoring:
            _read_group(name, monitoring[name], found, rates, elsewhere)
    # A stream has one rate, the highest requested; the other groups have longer intervals. Devices that are not there have
    # no part in it, and the machine is read apart from it.
    found.system_hz = rates.pop("system", None)
    rates = {name: hz for name, hz in rates.items() if f"monitoring.{name}" not in found.ignored}
    if any(name not in DEVICES for name in rates):
        values["sampling_rate_hz"] = max(rates.values())
    found.rates = tuple(rates.items())
    if "storage" in monitoring:
        _read_storage(monitoring["storage"], values, found)
    if "overhead_limit" in monitoring:
        number("monitoring.overhead_limit", monitoring["overhead_limit"], 0.01, 1000)
        values["overhead_limit"] = monitoring["overhead_limit"]
    found.config = ETWMonitorConfig(**values)
    found.session = {name: name for name in rest if name in _SESSION_FIELDS}
    return found


# Keys of the configuration of a session, where buffer_size is that of an ETW buffer in KB.
_SESSION_KEYS = ("kernel_flags", "stack_walk_enabled", "process_filter")
_FILTER_KEYS = ("include_pids", "exclude_pids", "include_names", "exclude_names")


def _read_filter(part: object, values: Dict[str, Any]) -> None:
    chosen = _keys("process_filter", part, _FILTER_KEYS)
    for key, name in zip(_FILTER_KEYS, ("target_processes", "exclude_processes", "target_process_names",
                                        "exclude_process_names")):
        listed = chosen.get(key)
        if listed is None:
            continue
        given = set(members(f"process_filter.{key}", listed))
        if key == "exclude_pids":
            given.discard(0)  # the idle process, which is never reported
        values[name] = given or None


def _read_session(settings: Mapping[str, Any]) -> Settings:
    given = dict(_keys("config", settings, (*_FIELDS, *_SESSION_KEYS)))
    values = {key: value for key, value in given.items() if key not in _SESSION_KEYS}
    if "buffer_size" in values:
        values["buffer_size_kb"] = values.pop("buffer_size")
    if "stack_walk_enabled" in given:
        values["enable_stack_walking"] = _switch("stack_walk_enabled", given["stack_walk_enabled"])
    if given.get("process_filter") is not None:
        _read_filter(given["process_filter"], values)
    if given.get("kernel_flags") is not None:
        values["kernel_flags"] = given["kernel_flags"]
    found = Settings(ETWMonitorConfig(**values))
    spelled = {"buffer_size_kb": "buffer_size", "enable_stack_walking": "stack_walk_enabled"}
    found.session = {spelled.get(name, name): name for name in values if name in _SESSION_FIELDS}
    return found


_FIELDS = tuple(each.name for each in fields(ETWMonitorConfig))
_DEFAULTS = {each.name: each.default for each in fields(ETWMonitorConfig)}
_SESSION_FIELDS = ("session_name", "buffer_size_kb", "min_buffers", "max_buffers", "flush_timer",
                   "cpu_sampling_interval", "enable_stack_walking")


def _note_session(found: Settings) -> None:
    """Notes the settings of an ETW session that have no effect."""
    if WINDOWS and found.source in ("auto", "etw"):
        return
    for key, name in found.session.items():
        if name != "enable_stack_walking" or found.config.enable_stack_walking:
            found.ignored[key] = "a setting of an ETW session, and there is none " + \
                                 ("when polling" if WINDOWS else "on this system")


def _note_rest(found: Settings) -> None:
    """Notes flags and names that this machine cannot honour as they are written."""
    config = found.config
    if config.kernel_flags is not None:
        bare = bare_flags("kernel_flags", config.kernel_flags)
        switch_by_flags(config, bare)
        reason = without_effect(bare)
        if reason:
            found.ignored["kernel_flags"] = reason
    for key in ("target_process_names", "exclude_process_names"):
        named = sorted(name for name in getattr(config, key) or () if name != plain_name(name))
        if named:
            found.ignored[key] = f"on this system {', '.join(named)} means " \
                                 f"{', '.join(plain_name(name) for name in named)}"


def plain_name(name: str) -> str:
    """The name of a program on this system: programs of other systems than Windows have no .exe."""
    return name[:-4] if not WINDOWS and len(name) > 4 and name.lower().endswith(".exe") else name


def read_settings(settings: Union[Mapping[str, Any], ETWMonitorConfig, float, None], elsewhere: bool = False,
                  source: Optional[str] = None) -> Settings:
    """Reads and checks any accepted form of configuration. elsewhere: devices are not looked for in the system's places.
    source: overrides that of the configuration."""
    found = _read(settings, elsewhere)
    found.source = source or found.source
    _note_backends(found)
    _note_session(found)
    _note_rest(found)
    return found


def _read(settings: Union[Mapping[str, Any], ETWMonitorConfig, float, None], elsewhere: bool) -> Settings:
    if settings is None:
        return Settings(ETWMonitorConfig())
    if isinstance(settings, ETWMonitorConfig):
        settings.validate()
        found = Settings(settings)
        found.session = {name: name for name in _SESSION_FIELDS if getattr(settings, name) != _DEFAULTS[name]}
    elif isinstance(settings, bool) or _plain(settings, False) is not None:
        found = Settings(ETWMonitorConfig(sampling_rate_hz=settings))  # type: ignore[arg-type]
    elif not isinstance(settings, Mapping):
        raise WrongType(f"config: an ETWMonitorConfig, a dict or a rate in Hz is needed, not {settings!r}")
    elif "monitoring" in settings:
        found = _read_nested(settings, elsewhere)
    elif any(key in settings for key in _SESSION_KEYS) and "buffer_size_kb" not in settings:
        found = _read_session(settings)
    else:
        found = Settings(ETWMonitorConfig(**_keys("config", settings, _FIELDS)))
        found.session = {name: name for name in _SESSION_FIELDS if name in settings}
    return found
