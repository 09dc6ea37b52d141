# SPDX-License-Identifier: MIT
"""ETWMonitorConfig, and the nested dict that is accepted in its place."""
import math
from dataclasses import dataclass, field, fields
from typing import Any, Dict, Iterable, Mapping, Optional, Set, Tuple, Union

__all__ = ["ETWMonitorConfig", "Settings", "read_settings"]

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


def number(name: str, value: object, low: float, high: float, whole: bool = False) -> None:
    """Raises TypeError or ValueError unless the value is a number in this range."""
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
        raise TypeError(f"{name}: {'a whole number' if whole else 'a number'} is needed, not {value!r}")
    if not math.isfinite(value) or not low <= value <= high:
        raise ValueError(f"{name}: {value!r} is not within {low:g} and {high:g}")


def check_pid(name: str, pid: object) -> int:
    if isinstance(pid, bool) or not isinstance(pid, int):
        raise TypeError(f"{name}: a process id is needed, not {pid!r}")
    if not 0 < pid < 2**32:
        raise ValueError(f"{name}: {pid!r} is not within 1 and 4294967295")
    return pid


def check_name(name: str, text: object) -> str:
    if not isinstance(text, str):
        raise TypeError(f"{name}: a name is needed, not {text!r}")
    if not text or "\0" in text or len(text) > 255:
        raise ValueError(f"{name}: {text!r} is not 1 to 255 characters")
    return text


def members(name: str, values: object) -> Iterable[object]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"{name}: a set is needed, not {values!r}")
    return values


@dataclass
class ETWMonitorConfig:
    """Settings of ETWMonitor. All fields are optional; TypeError or ValueError names a wrong one and its range."""

    sampling_rate_hz: float = 100.0
    buffer_size: int = 10000
    target_processes: Optional[Set[int]] = None
    target_process_names: Optional[Set[str]] = None
    max_processes: Optional[int] = None
    exclude_system_processes: bool = True
    session_name: str = "OnnxInferenceMonitor"
    buffer_size_kb: int = 64
    min_buffers: int = 4
    max_buffers: int = 64
    flush_timer: float = 1
    enable_process_events: bool = True
    enable_thread_events: bool = True
    enable_cpu_sampling: bool = True
    enable_memory_events: bool = True
    enable_context_switch: bool = True
    enable_disk_io: bool = False
    enable_stack_walking: bool = False
    cpu_sampling_interval: int = 1000
    overhead_limit: float = 5.0
    callback_batch_ms: int = 100

    def __post_init__(self) -> None:
        self.validate()

    def validate(self) -> None:
        """Checks every field again, after they may have been changed."""
        for name, (low, high, whole) in _RANGES.items():
            value = getattr(self, name)
            if value is not None or name != "max_processes":
                number(name, value, low, high, whole)
        for name in _SWITCHES:
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name}: True or False is needed, not {getattr(self, name)!r}")
        if self.min_buffers > self.max_buffers:
            raise ValueError(f"min_buffers: {self.min_buffers} is not within 2 and max_buffers ({self.max_buffers})")
        check_name("session_name", self.session_name)
        if self.target_processes is not None:
            self.target_processes = {check_pid("target_processes", pid)
                                     for pid in members("target_processes", self.target_processes)}
        if self.target_process_names is not None:
            self.target_process_names = {check_name("target_process_names", name) for name in
                                         members("target_process_names", self.target_process_names)}

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> "ETWMonitorConfig":
        """Makes a config from a dict of its fields, or from the nested {'monitoring': {…}}."""
        return read_settings(settings).config


@dataclass
class Settings:
    """The settings of a nested dict."""

    config: ETWMonitorConfig
    source: str = "auto"
    groups: Tuple[str, ...] = ("cpu", "memory")
    off: Tuple[str, ...] = ()  # disabled groups
    aggregation: Dict[str, Tuple[str, ...]] = field(default_factory=dict)  # by group: the statistics in a summary
    rates: Tuple[Tuple[str, float], ...] = ()  # groups of metrics with a lower rate
    polled: Tuple[str, ...] = ()  # polled gauges next to an event source
    persist_to_disk: Optional[str] = None


_BACKENDS = {"auto": "auto", "etw": "etw", "ebpf": "ebpf", "poll": "poll", "polling": "poll", "psutil": "poll"}
# Accepted names, and the names in a summary.
_AGGREGATIONS = {"avg": "average", "average": "average", "mean": "average", "max": "maximum", "maximum": "maximum",
                 "p95": "p95", "p99": "p99"}
_GROUPS = ("cpu", "memory", "io", "disk", "gpu", "npu", "energy", "system")


def _keys(where: str, part: object, known: Iterable[str]) -> Mapping[str, Any]:
    if not isinstance(part, Mapping):
        raise TypeError(f"{where}: a dict is needed, not {part!r}")
    for key in part:
        if key not in known:
            raise ValueError(f"{where}: {key!r} is none of {', '.join(sorted(known))}")
    return part


def _read_group(name: str, part: object, found: Settings, rates: Dict[str, float]) -> None:
    where = f"monitoring.{name}"
    group = _keys(where, part, ("backend", "sampling_hz", "aggregation", "enabled"))
    if group.get("enabled", True) is not True:
        if group["enabled"] is not False:
            raise TypeError(f"{where}.enabled: True or False is needed, not {group['enabled']!r}")
        found.off += (name,)
        return
    if "sampling_hz" in group:
        number(f"{where}.sampling_hz", group["sampling_hz"], 0.1, 1000)
        rates[name] = float(group["sampling_hz"])
    aggregations = group.get("aggregation", ())
    for aggregation in [aggregations] if isinstance(aggregations, str) else members(f"{where}.aggregation", aggregations):
        if aggregation not in _AGGREGATIONS:
            raise ValueError(f"{where}.aggregation: {aggregation!r} is none of {', '.join(_AGGREGATIONS)}")
        found.aggregation[name] = (*found.aggregation.get(name, ()), _AGGREGATIONS[aggregation])
    backend = group.get("backend", "auto")
    # Devices have backends of their own (nvml, drm, rapl, …); the name is not checked.
    if name in ("cpu", "memory", "io", "disk"):
        if backend not in _BACKENDS:
            raise ValueError(f"{where}.backend: {backend!r} is none of {', '.join(_BACKENDS)}")
        if name == "cpu":
            found.source = _BACKENDS[backend]
        elif name == "memory" and _BACKENDS[backend] == "poll":
            found.polled = ("rss_bytes", "rss_peak_bytes", "private_bytes", "virtual_bytes")
    elif not isinstance(backend, str):
        raise TypeError(f"{where}.backend: a name is needed, not {backend!r}")
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


def read_settings(settings: Union[Mapping[str, Any], ETWMonitorConfig, None]) -> Settings:
    """Reads and checks any accepted form of configuration."""
    if settings is None:
        return Settings(ETWMonitorConfig())
    if isinstance(settings, ETWMonitorConfig):
        settings.validate()
        return Settings(settings)
    if not isinstance(settings, Mapping):
        raise TypeError(f"config: an ETWMonitorConfig or a dict is needed, not {settings!r}")
    known = tuple(each.name for each in fields(ETWMonitorConfig))
    if "monitoring" not in settings:
        return Settings(ETWMonitorConfig(**_keys("config", settings, known)))
    rest = {key: value for key, value in settings.items() if key != "monitoring"}
    values: Dict[str, Any] = dict(_keys("config", rest, known))
    monitoring = _keys("monitoring", settings["monitoring"], (*_GROUPS, "storage", "overhead_limit"))
    found = Settings(ETWMonitorConfig(), groups=())
    rates: Dict[str, float] = {}
    for name in _GROUPS:
        if name in monitoring:
            _read_group(name, monitoring[name], found, rates)
    if rates:
        # A stream has one rate, the highest requested; a group may be read less often.
        values["sampling_rate_hz"] = max(rates.values())
        found.rates = tuple((name, hz) for name, hz in rates.items()
                            if name == "memory" and hz < values["sampling_rate_hz"])
    if "storage" in monitoring:
        _read_storage(monitoring["storage"], values, found)
    if "overhead_limit" in monitoring:
        number("monitoring.overhead_limit", monitoring["overhead_limit"], 0.01, 1000)
        values["overhead_limit"] = monitoring["overhead_limit"]
    found.config = ETWMonitorConfig(**values)
    return found
