# SPDX-License-Identifier: MIT
"""GPUs, NPUs and energy of this machine, with the interface that the first users specified. A value that no driver reports is
unknown (None); a configuration with a group that cannot be read gets a warning with the reason."""
import ctypes
import time
from typing import Any, Dict, Iterable, List, Mapping, Optional

from . import _abi, _native
from ._batch import TYPES, Batch
from ._monitor import NativeMonitor, make_config
from .config import check_pid, members

__all__ = ["EnergyMonitor", "GPUMonitor", "NPUMonitor"]

_KINDS = {"gpu": _abi.ETWATCH_DEVICE_GPU, "npu": _abi.ETWATCH_DEVICE_NPU, "energy": _abi.ETWATCH_DEVICE_ENERGY}
_DOMAINS = ("package", "core", "dram", "gpu")
_NPU_BACKENDS = {"intel_vpu": "Intel", "habanalabs": "Intel", "amdxdna": "AMD", "qaic": "Qualcomm"}  # by driver; the driver of Windows is the same for all vendors
_NPU_VENDORS = ("Qualcomm", "Intel", "AMD")
_WAIT_MS = 300  # for the drivers of devices to answer
_MB = 1024 * 1024
_NAMES = [field[0] for field in _abi.Device._fields_]
_METRICS = _NAMES[_NAMES.index("estimated") + 1:]


class _Reader:
    """The devices of some kinds. Drivers are read by threads of the library."""

    def __init__(self, *kinds: str, proc_root: Optional[str] = None, sys_root: Optional[str] = None,
                 nvml_library: Optional[str] = None) -> None:
        options = _native.sized(_abi.DeviceOptions)
        options.kinds = sum(1 << _KINDS[kind] for kind in kinds)
        for name, value in (("proc_root", proc_root), ("sys_root", sys_root), ("nvml_library", nvml_library)):
            setattr(options, name, None if value is None else value.encode())
        self._handle = ctypes.c_void_p()
        _native.check(_native.lib.etwatch_device_reader_open(ctypes.byref(options), ctypes.byref(self._handle)))

    def __del__(self) -> None:
        handle, self._handle = getattr(self, "_handle", None), ctypes.c_void_p()
        if handle:
            _native.lib.etwatch_device_reader_close(handle)

    def read(self) -> List[Dict[str, Any]]:
        """A dict per device and per problem. Counters are since the last call."""
        batch = _native.sized(_abi.Devices)
        count = _native.check(_native.lib.etwatch_device_reader_read(self._handle, _WAIT_MS, ctypes.byref(batch)))
        start = ctypes.cast(batch.items, ctypes.c_void_p).value or 0
        return [_device(_abi.Device.from_address(start + i * batch.stride)) for i in range(count)]


def _device(row: Any) -> Dict[str, Any]:
    values = {name: getattr(row, name) if _native.set_has(row.has, i) else None for i, name in enumerate(_METRICS)}
    values.update({name: _native.text(getattr(row, name)) for name in ("driver", "id", "name", "problem")})
    processes = [row.process_list[i] for i in range(row.process_count)]
    values["process_list"] = [
        {"pid": p.pid, "mem_used_mb": p.memory_bytes / _MB if p.has & _abi.ETWATCH_DEVICE_PROCESS_MEMORY else None}
        for p in processes]
    values["kind"] = next(name for name, kind in _KINDS.items() if kind == row.kind)
    values["failed"] = bool(row.flags & _abi.ETWATCH_DEVICE_PROBLEM)
    return values


def unavailable_reason(group: str) -> Optional[str]:
    """Why the group "gpu", "npu" or "energy" has no values on this machine; None if it has."""
    options, batch = _native.sized(_abi.DeviceOptions), _native.sized(_abi.Devices)
    options.kinds = 1 << _KINDS[group]
    reader = ctypes.c_void_p()
    _native.check(_native.lib.etwatch_device_reader_open(ctypes.byref(options), ctypes.byref(reader)))
    try:
        count = _native.check(_native.lib.etwatch_device_reader_read(reader, _WAIT_MS, ctypes.byref(batch)))
        first = ctypes.cast(batch.items, ctypes.c_void_p).value or 0
        devices = [_abi.Device.from_address(first + index * batch.stride) for index in range(count)]
        if any(not device.flags & _abi.ETWATCH_DEVICE_PROBLEM for device in devices):
            return None
        problems = "; ".join(f"{_native.text(device.driver)}: {_native.text(device.problem)}" for device in devices)
        return f"no device can be read; its values are unknown (None){': ' + problems if problems else ''}"
    finally:
        _native.lib.etwatch_device_reader_close(reader)


def _megabytes(count: Optional[int]) -> Optional[float]:
    return None if count is None else count / _MB


class GPUMonitor:
    """The GPUs of this machine. `create` makes one, or returns None if there is none that can be read.

    Example:

        monitor = etwatch.GPUMonitor.create()
        for device in monitor.get_metrics() if monitor else []:
            print(device["gpu_util"], device["mem_used_mb"])
    """

    def __init__(self, **options: Optional[str]) -> None:
        self._reader = _Reader("gpu", **options)

    @staticmethod
    def create(**options: Optional[str]) -> Optional["GPUMonitor"]:
        """A monitor, or None if no GPU can be read. Options for tests: proc_root, sys_root, nvml_library.

        Example:

            monitor = etwatch.GPUMonitor.create()
        """
        monitor = GPUMonitor(**options)
        return monitor if monitor.get_metrics() else None

    def get_metrics(self) -> List[Dict[str, Any]]:
        """A dict per device: `gpu_util`, `mem_util`, `encoder_util` and `decoder_util` in per cent, `mem_used_mb`,
        `mem_total_mb`, `temperature`, `power_watts`, `clock_mhz`, `processes` (pid and memory), `name`, `id`. None is unknown.
        The GPU time of processes is in the samples of an ETWMonitor.

        Example:

            print(monitor.get_metrics())
        """
        return [{"gpu_util": device["util_percent"], "mem_util": device["memory_util_percent"],
                 "encoder_util": device["encoder_percent"], "decoder_util": device["decoder_percent"],
                 "mem_used_mb": _megabytes(device["memory_used_bytes"]),
                 "mem_total_mb": _megabytes(device["memory_total_bytes"]), "temperature": device["temperature_celsius"],
                 "power_watts": device["power_watts"], "clock_mhz": device["clock_mhz"],
                 "memory_clock_mhz": device["memory_clock_mhz"], "throttle_reasons": device["throttle_reasons"],
                 "processes": device["process_list"], "name": device["name"], "id": device["id"],
                 "driver": device["driver"]}
                for device in self._reader.read() if device["kind"] == "gpu" and not device["failed"]]


def backend_of(device: Mapping[str, Any]) -> Optional[str]:
    """The name that users have for the backend of an NPU; None if its driver is not known."""
    if device["driver"] == "wddm":
        return next((vendor for vendor in _NPU_VENDORS if vendor in (device["name"] or "")), "DirectML")
    return next((name for prefix, name in _NPU_BACKENDS.items() if device["driver"].startswith(prefix)), None)


class NPUMonitor:
    """The NPU of this machine.

    Example:

        npu = etwatch.NPUMonitor()
        print(npu.backend, npu.get_metrics())
    """

    backend: Optional[str] = None
    """Intel, AMD, Qualcomm, DirectML (an NPU of Windows with a name that has none of these), or None: there is none that can be
    read, or it is of another vendor."""

    def __init__(self, **options: Optional[str]) -> None:
        self._reader = _Reader("npu", **options)
        for device in self._devices():
            self.backend = self.backend or backend_of(device)

    def _devices(self) -> List[Dict[str, Any]]:
        return [device for device in self._reader.read() if device["kind"] == "npu" and not device["failed"]]

    def get_metrics(self) -> List[Dict[str, Any]]:
        """A dict per device: `npu_util` in per cent, `busy_ms` since the last call, `mem_used_mb`. None is unknown.

        Example:

            print(etwatch.NPUMonitor().get_metrics())
        """
        return [{"npu_util": device["util_percent"],
                 "busy_ms": None if device["busy_ns"] is None else device["busy_ns"] / 1e6,
                 "mem_used_mb": _megabytes(device["memory_used_bytes"]), "id": device["id"], "name": device["name"],
                 "driver": device["driver"]} for device in self._devices()]


class _Processes:
    """The energy of processes, added up from the samples of a monitor of its own."""

    def __init__(self, pids: Iterable[object], options: Mapping[str, Optional[str]]) -> None:
        config = make_config(hz=1.0, metrics=["default", "energy_uj"], queue_samples=65536,
                             flags=_abi.ETWATCH_CONFIG_QUEUE | _abi.ETWATCH_CONFIG_NO_BUDGET,
                             pids=[check_pid("pids", pid) for pid in members("pids", pids)])
        for name, value in options.items():
            if value is not None:
                setattr(config, name, value.encode())
        self._found: Dict[int, Dict[str, Any]] = {}
        self._monitor = NativeMonitor(config)
        self._monitor.start()

    def _take(self, batch: Batch) -> None:
        for sample in batch:
            found = self._found.setdefault(sample.pid, {"name": sample.name, "joules": None})
            joules = None if sample.energy_uj is None else sample.energy_uj / 1e6
            if sample.type == TYPES[_abi.ETWATCH_TYPE_EXIT]:
                found["joules"] = joules  # its total
            elif sample.type == TYPES[_abi.ETWATCH_TYPE_SAMPLE] and joules is not None:
                found["joules"] = (found["joules"] or 0.0) + joules

    def read(self) -> Dict[int, Dict[str, Any]]:
        batch = self._monitor.read(0)
        while batch is not None:
            self._take(batch)
            batch = self._monitor.read(0)
        return {pid: dict(found) for pid, found in self._found.items()}

    def close(self) -> None:
        self._monitor.close()


class EnergyMonitor:
    """Power and energy by domain: package, core, dram and gpu; with `pids` also of these processes and their descendants.

    Example:

        power = etwatch.EnergyMonitor(pids=[pid]).get_power_metrics()
        print(power["package"]["watts"], power["processes"])
    """

    def __init__(self, pids: Iterable[int] = (), **options: Optional[str]) -> None:
        self._reader = _Reader("energy", **options)
        self._joules: Dict[str, float] = {}
        wanted = list(members("pids", pids))
        self._processes = _Processes(wanted, options) if wanted else None

    def close(self) -> None:
        """Ends the watch of `pids`; what was read stays. Not needed without them.

        Example:

            energy = etwatch.EnergyMonitor(pids=[pid])
            energy.close()
        """
        if self._processes is not None:
            self._processes.close()
            self._processes = None

    def _read(self) -> List[Dict[str, Any]]:
        devices = [device for device in self._reader.read() if not device["failed"]]
        for device in devices:
            gpu = device["kind"] == "gpu"
            device["domain"] = "gpu" if gpu else device["id"].rsplit("/", 1)[-1].split("-")[0]
            if device["energy_uj"] is not None:
                name = device["domain"]
                self._joules[name] = self._joules.get(name, 0.0) + device["energy_uj"] / 1e6
        return devices

    def get_power_metrics(self) -> Dict[str, Any]:
        """`watts` and `joules` (since the monitor was made) of each domain, summed over its meters. None is unknown.
        `processes`: for each watched pid its `name` and `joules` so far, an estimate (see docs/devices.md); one sample a
        second. It is empty without `pids`.

        Example:

            print(etwatch.EnergyMonitor().get_power_metrics()["package"]["joules"])
        """
        devices = self._read()
        for _ in range(10):  # the first reading of a counter has no difference
            if all(device["power_watts"] is not None for device in devices):
                break
            time.sleep(0.05)
            devices = self._read()
        domains: Dict[str, Any] = {name: {"watts": None, "joules": None} for name in _DOMAINS}
        for device in devices:
            domain = domains.get(device["domain"])
            if domain is not None and device["power_watts"] is not None:
                domain["watts"] = (domain["watts"] or 0.0) + device["power_watts"]
        for name in domains:
            domains[name]["joules"] = self._joules.get(name)
        return {**domains, "processes": {} if self._processes is None else self._processes.read()}

    @staticmethod
    def calculate_efficiency(cpu_metrics: Mapping[str, Any], power_metrics: Mapping[str, Any]) -> Optional[float]:
        """CPU seconds per joule; None if one of them is unknown.

        cpu_metrics: a dict with `cpu_seconds` or `cpu_ns`. power_metrics: from get_power_metrics.

        Example:

            etwatch.EnergyMonitor.calculate_efficiency({"cpu_seconds": 2.0}, power)
        """
        seconds = cpu_metrics.get("cpu_seconds")
        if seconds is None and cpu_metrics.get("cpu_ns") is not None:
            seconds = cpu_metrics["cpu_ns"] / 1e9
        joules = (power_metrics.get("package") or {}).get("joules")
        return float(seconds) / float(joules) if seconds is not None and joules else None
