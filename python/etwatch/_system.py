# SPDX-License-Identifier: MIT
"""Values of the whole machine, and of one process at this moment, read from the operating system."""
import ctypes
import os
import sys
import threading
from typing import Any, List, Optional, Tuple


def _proc_lines(path: str) -> List[str]:
    with open(path, encoding="ascii", errors="replace") as file:
        return file.read().splitlines()


if sys.platform == "win32":
    class _MemoryStatus(ctypes.Structure):
        _fields_ = [("length", ctypes.c_uint32), ("load", ctypes.c_uint32),
                    *[(name, ctypes.c_uint64) for name in ("total", "available", "total_page", "available_page",
                                                          "total_virtual", "available_virtual", "extended")]]

    class _ThreadEntry(ctypes.Structure):
        _fields_ = [(name, ctypes.c_uint32) for name in ("size", "usage", "tid", "pid")] + \
            [(name, ctypes.c_int32) for name in ("base", "delta")] + [("flags", ctypes.c_uint32)]

    _kernel32: Any = ctypes.WinDLL("kernel32", use_last_error=True)
    _kernel32.OpenProcess.restype = ctypes.c_void_p
    _kernel32.CreateToolhelp32Snapshot.restype = ctypes.c_void_p
    _SNAP_THREADS = 4
    _SYNCHRONIZE = 0x100000
    _ERROR_INVALID_PARAMETER = 87

    def memory() -> Tuple[int, int]:
        """(total, available) bytes."""
        status = _MemoryStatus(length=ctypes.sizeof(_MemoryStatus))
        if not _kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):
            raise ctypes.WinError()
        return status.total, status.available

    def cpu_times() -> Tuple[float, float]:
        """(busy, all) seconds of all CPUs since the machine started."""
        idle, kernel, user = ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_uint64()
        if not _kernel32.GetSystemTimes(ctypes.byref(idle), ctypes.byref(kernel), ctypes.byref(user)):
            raise ctypes.WinError()
        whole = kernel.value + user.value  # kernel time includes idle time
        return (whole - idle.value) / 1e7, whole / 1e7

    def has_ended(pid: int) -> bool:
        """Whether the process has exited; another program may still hold a handle to it."""
        handle = ctypes.c_void_p(_kernel32.OpenProcess(_SYNCHRONIZE, False, pid))
        if not handle.value:
            return bool(ctypes.get_last_error() == _ERROR_INVALID_PARAMETER)
        ended = _kernel32.WaitForSingleObject(handle, 0) == 0
        _kernel32.CloseHandle(handle)
        return bool(ended)

    def thread_ids(pid: int) -> Optional[List[int]]:
        handle = ctypes.c_void_p(_kernel32.CreateToolhelp32Snapshot(_SNAP_THREADS, 0))
        if handle.value in (None, ctypes.c_void_p(-1).value):
            return None
        try:
            entry = _ThreadEntry(size=ctypes.sizeof(_ThreadEntry))
            found = []
            more = _kernel32.Thread32First(handle, ctypes.byref(entry))
            while more:
                if entry.pid == pid:
                    found.append(int(entry.tid))
                more = _kernel32.Thread32Next(handle, ctypes.byref(entry))
            return sorted(found) or None
        finally:
            _kernel32.CloseHandle(handle)
else:
    def memory() -> Tuple[int, int]:
        """(total, available) bytes."""
        found = {}
        for line in _proc_lines("/proc/meminfo"):
            name, _, rest = line.partition(":")
            if name in ("MemTotal", "MemAvailable"):
                found[name] = int(rest.split()[0]) * 1024
        return found["MemTotal"], found["MemAvailable"]

    def cpu_times() -> Tuple[float, float]:
        """(busy, all) seconds of all CPUs since the machine started."""
        ticks = [int(value) for value in _proc_lines("/proc/stat")[0].split()[1:9]]
        idle = ticks[3] + ticks[4]  # iowait counts as idle
        second = os.sysconf("SC_CLK_TCK")
        return (sum(ticks) - idle) / second, sum(ticks) / second

    def has_ended(pid: int) -> bool:
        """Whether the process has exited; it may not be reaped yet."""
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                return file.read().rpartition(")")[2].split()[:1] in (["Z"], ["X"])
        except OSError:
            return True

    def thread_ids(pid: int) -> Optional[List[int]]:
        try:
            return sorted(int(name) for name in os.listdir(f"/proc/{pid}/task"))
        except OSError:
            return None


def cpu_count() -> int:
    return os.cpu_count() or 1


class CpuUsage:
    """Per cent of all CPUs since the last call, or since construction; 100 means that all are busy."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = cpu_times()
        self._usage = 0.0

    def get(self) -> float:
        with self._lock:
            busy, whole = cpu_times()
            passed = whole - self._last[1]
            if passed > 0:  # the system counts in ticks: until the next tick the last value holds
                self._usage = min(100.0, max(0.0, 100.0 * (busy - self._last[0]) / passed))
                self._last = (busy, whole)
            return self._usage
