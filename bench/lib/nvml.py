# SPDX-License-Identifier: MIT
"""The figures of the NVIDIA driver, read directly, to compare etwatch with. Declarations as in nvml.h."""
import ctypes
import threading
import time

from .processes import Missing


class _Sample(ctypes.Structure):
    _fields_ = [("time_us", ctypes.c_ulonglong), ("value", ctypes.c_ulonglong)]


class _Field(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint), ("scope", ctypes.c_uint), ("time_us", ctypes.c_longlong),
                ("latency_us", ctypes.c_longlong), ("type", ctypes.c_int), ("code", ctypes.c_int), ("value", ctypes.c_ulonglong)]


class _Rates(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class _Memory(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint), ("total", ctypes.c_ulonglong), ("reserved", ctypes.c_ulonglong),
                ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


POWER_SAMPLES, POWER_INSTANT, RING = 0, 186, 1000


class Driver:
    """The first GPU. Every method returns None for what the driver does not know."""

    def __init__(self, path=None):
        try:
            self._lib = ctypes.CDLL(path or "libnvidia-ml.so.1")
        except OSError as error:
            raise Missing(f"no NVIDIA driver: {error}") from None
        self._gpu = ctypes.c_void_p()
        if self._lib.nvmlInit_v2() != 0 or self._lib.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self._gpu)) != 0:
            raise Missing("the NVIDIA driver has no GPU")
        self._seen_us = 0

    def energy_mj(self):
        value = ctypes.c_ulonglong()
        code = self._lib.nvmlDeviceGetTotalEnergyConsumption(self._gpu, ctypes.byref(value))
        return value.value if code == 0 else None

    def power_watts(self):
        field = _Field(id=POWER_INSTANT)
        code = self._lib.nvmlDeviceGetFieldValues(self._gpu, 1, ctypes.byref(field))
        return (field.value & 0xffffffff) / 1000 if code == 0 and field.code == 0 else None

    def util_percent(self):
        rates = _Rates()
        return rates.gpu if self._lib.nvmlDeviceGetUtilizationRates(self._gpu, ctypes.byref(rates)) == 0 else None

    def memory_bytes(self):
        memory = _Memory(version=ctypes.sizeof(_Memory) | 2 << 24)
        return memory.used if self._lib.nvmlDeviceGetMemoryInfo_v2(self._gpu, ctypes.byref(memory)) == 0 else None

    def power_samples(self):
        """(Unix time in s, W) of the driver's ring since the last call."""
        count, kind, ring = ctypes.c_uint(RING), ctypes.c_int(), (_Sample * RING)()
        code = self._lib.nvmlDeviceGetSamples(self._gpu, POWER_SAMPLES, ctypes.c_ulonglong(self._seen_us), ctypes.byref(kind),
                                              ctypes.byref(count), ring)
        if code != 0:
            return []
        found = [(sample.time_us / 1e6, (sample.value & 0xffffffff) / 1000) for sample in ring[:min(count.value, RING)]
                 if sample.time_us > self._seen_us]
        self._seen_us = max([self._seen_us] + [int(t * 1e6) for t, _ in found])
        return found


class Follower(threading.Thread):
    """Follows the driver: power samples, the energy counter, use and memory, all with their Unix times."""

    def __init__(self, driver):
        super().__init__(daemon=True)
        self.power, self.counter, self.use, self.memory, self.instant = [], [], [], [], []
        self._driver, self._stop_event = driver, threading.Event()

    def run(self):
        samples_at = 0.0
        while not self._stop_event.is_set():
            begin = time.time()
            energy = self._driver.energy_mj()
            now = time.time()
            if energy is not None:
                self.counter.append(((begin + now) / 2, energy / 1000))
            self.instant.append((now, self._driver.power_watts()))
            self.use.append((now, self._driver.util_percent()))
            self.memory.append((now, self._driver.memory_bytes()))
            if now - samples_at >= 1:
                samples_at = now
                self.power += self._driver.power_samples()
            time.sleep(0.02)
        self.power += self._driver.power_samples()

    def stop(self):
        self._stop_event.set()
        self.join()


def integral(samples, begin, end):
    """Joules between two times, each value valid until the next sample."""
    total = 0.0
    for (t, watts), (after, _) in zip(samples, samples[1:] + [(end, 0)]):
        total += watts * max(0.0, min(after, end) - max(t, begin))
    return total


def changes(counter):
    """The readings at which the counter had a new value: only there is its age known."""
    return [now for before, now in zip(counter, counter[1:]) if now[1] != before[1]]


def value_at(points, t):
    """Linear between two points; None outside of them."""
    for (t0, v0), (t1, v1) in zip(points, points[1:]):
        if t0 <= t <= t1:
            return v0 + (v1 - v0) * ((t - t0) / (t1 - t0) if t1 > t0 else 0)
    return None
