# SPDX-License-Identifier: MIT
"""The values of devices as MetricSamples, for the stream of a UnifiedMonitor. Drivers are read by threads of the library; what
they have read is taken without waiting, so a driver that hangs delays nothing. A reading is delivered once."""
import ctypes
import os
import time
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple

from . import _abi, _native
from .samples import MetricSample

_KINDS = {"gpu": _abi.ETWATCH_DEVICE_GPU, "npu": _abi.ETWATCH_DEVICE_NPU, "energy": _abi.ETWATCH_DEVICE_ENERGY}
_NAMES = [field[0] for field in _abi.Device._fields_]
_METRICS = _NAMES[_NAMES.index("estimated") + 1:]
_MB = 1 / (1024 * 1024)
_COUNTERS = ("busy_ns", "energy_uj")
DEFAULT_HZ = 1.0  # a reading of a large GPU costs 10 to 50 ms of CPU time

Key = Tuple[str, str, str]  # kind, driver, device


class _Value(NamedTuple):
    """How a metric of a device appears in the stream: `{kind}_{name}`, or of energy meters `{name}` with their domain."""

    metric: str
    name: str
    factor: float
    unit: str
    word: str  # of the list `metrics` in a configuration


_VALUES = (
    _Value("util_percent", "util_percent", 1, "%", "utilization"),
    _Value("busy_ns", "busy_ms", 1e-6, "ms", "utilization"),
    _Value("memory_util_percent", "memory_util_percent", 1, "%", "memory"),
    _Value("memory_used_bytes", "memory_used_mb", _MB, "MB", "memory"),
    _Value("memory_total_bytes", "memory_total_mb", _MB, "MB", "memory"),
    _Value("temperature_celsius", "temperature_celsius", 1, "C", "temperature"),
    _Value("power_watts", "power_watts", 1, "W", "power"),
    _Value("energy_uj", "energy_joules", 1e-6, "J", "energy"),
    _Value("clock_mhz", "clock_mhz", 1, "MHz", "clocks"),
    _Value("memory_clock_mhz", "memory_clock_mhz", 1, "MHz", "clocks"),
    _Value("encoder_percent", "encoder_percent", 1, "%", "encoder"),
    _Value("decoder_percent", "decoder_percent", 1, "%", "decoder"),
    _Value("pcie_received_bytes_per_second", "pcie_received_bytes_per_second", 1, "B/s", "bandwidth"),
    _Value("pcie_sent_bytes_per_second", "pcie_sent_bytes_per_second", 1, "B/s", "bandwidth"),
    _Value("processes", "processes", 1, "count", "processes"),
)


class DeviceSamples:
    """The devices of the kinds in `rates` (samples a second), read by one thread of the library per driver.

    words: by kind the selected metrics; none is all. A counter of a device is the sum since its last sample."""

    def __init__(self, rates: Mapping[str, float], words: Mapping[str, Iterable[str]],
                 roots: Mapping[str, Optional[str]]) -> None:
        self._latest: Dict[Key, Dict[str, Any]] = {}
        self._times: Dict[Key, int] = {}  # of the last reading; kept while a driver has a problem
        self._sums: Dict[Key, Dict[str, int]] = {}
        self._rates = dict(rates)
        self._words = {kind: tuple(words.get(kind, ())) for kind in rates}
        self._next = {kind: 0.0 for kind in rates}
        self._pid = os.getpid()
        self._handle = ctypes.c_void_p()
        if not rates:
            return
        options = _native.sized(_abi.DeviceOptions)
        options.kinds = sum(1 << _KINDS[kind] for kind in rates)
        options.hz = max(0.01, min(100.0, max(rates.values())))
        for name, root in roots.items():
            setattr(options, name, None if root is None else os.fsencode(root))
        _native.check(_native.lib.etwatch_device_reader_open(ctypes.byref(options), ctypes.byref(self._handle)))

    def close(self) -> None:
        """Ends the threads. May be called twice."""
        handle, self._handle = self._handle, ctypes.c_void_p()
        if handle and self._pid == os.getpid():
            _native.lib.etwatch_device_reader_close(handle)

    def latest(self, kind: str) -> List[Dict[str, Any]]:
        """The latest reading of each device of a kind; a metric that is not known is missing."""
        return [values for key, values in self._latest.items() if key[0] == kind]

    def take(self) -> List[MetricSample]:
        """What was read since the last call."""
        now = time.monotonic()
        if not self._handle or self._pid != os.getpid() or now < min(self._next.values()):
            return []
        due = [kind for kind, at in self._next.items() if now >= at]
        for kind in due:
            self._next[kind] = now + 1 / self._rates[kind]
        batch = _native.sized(_abi.Devices)
        count = _native.lib.etwatch_device_reader_read(self._handle, 0, ctypes.byref(batch))
        first = ctypes.cast(batch.items, ctypes.c_void_p).value or 0
        found: List[MetricSample] = []
        for index in range(max(0, count)):
            found += self._samples(_abi.Device.from_address(first + index * batch.stride), due)
        return found

    def _samples(self, row: Any, due: List[str]) -> List[MetricSample]:
        kind = next(name for name, number in _KINDS.items() if number == row.kind)
        driver = _native.text(row.driver) or ""
        key = (kind, driver, _native.text(row.id) or f"{driver}-{row.index}")
        if row.flags & _abi.ETWATCH_DEVICE_PROBLEM:
            for gone in [known for known in self._latest if known[:2] == key[:2]]:
                del self._latest[gone]  # its values are unknown from now on
            return []
        if self._times.get(key) == row.t_ns:
            return []
        self._times[key] = row.t_ns
        values = {name: getattr(row, name) for index, name in enumerate(_METRICS) if _native.set_has(row.has, index)}
        self._latest[key] = {"t_ns": row.t_ns, "id": key[2], "driver": driver, "name": _native.text(row.name), **values}
        sums = self._sums.setdefault(key, {})
        for name in _COUNTERS:
            if name in values:
                sums[name] = sums.get(name, 0) + values[name]
        # The meters of a GPU belong to energy too.
        group = kind if kind in self._rates else "energy"
        if group not in due:
            return []
        del self._sums[key]
        values.update(sums)
        wanted = self._words[group] if group == kind else ("power", "energy")
        prefix = kind if kind != "energy" else key[2].rsplit("/", 1)[-1].split("-")[0]  # package, core, dram, ...
        return [MetricSample(row.t_ns / 1e9, f"{prefix}_{value.name}", values[value.metric] * value.factor, value.unit, 0,
                             key[2], True)
                for value in _VALUES if value.metric in values and (not wanted or value.word in wanted)]
