# SPDX-License-Identifier: MIT
"""What every monitor has: a base class for monitors of one's own, and the same as a protocol for type checkers."""
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Dict, Optional, Protocol, runtime_checkable

if TYPE_CHECKING:
    from .devices import EnergyMonitor

__all__ = ["BaseMonitor", "MemoryUsage", "MonitorInterface"]


class MemoryUsage(float):
    """Used memory of the machine in per cent, with the bytes as whole numbers.

    Example:

        memory = etwatch.SystemMonitor().get_memory_usage()
        print(f"{memory:.1f} %", memory.used_bytes, memory["total"])

    The keys are `percent`, `total`, `used` and `available`.
    """

    total_bytes: int
    available_bytes: int

    def __new__(cls, total: int, available: int) -> "MemoryUsage":
        made = super().__new__(cls, 100.0 * (total - available) / total if total else 0.0)
        made.total_bytes = total
        made.available_bytes = available
        return made

    @property
    def used_bytes(self) -> int:
        """Total less available."""
        return self.total_bytes - self.available_bytes

    def as_dict(self) -> Dict[str, Any]:
        """The same by key.

        Example:

            etwatch.SystemMonitor().get_memory_usage().as_dict()
        """
        return {"percent": float(self), "total": self.total_bytes, "used": self.used_bytes,
                "available": self.available_bytes}

    def __getitem__(self, key: str) -> Any:
        return self.as_dict()[key]


class BaseMonitor(ABC):
    """Base class of monitors: `start_monitoring`, `stop_monitoring`, `get_cpu_usage` and `get_memory_usage`.

    Example:

        class MyMonitor(etwatch.BaseMonitor):
            def start_monitoring(self): ...
            def stop_monitoring(self): ...
            def get_cpu_usage(self): return 0.0
            def get_memory_usage(self): return 0

    A subclass need not call `super().__init__()`.
    """

    @abstractmethod
    def start_monitoring(self) -> None:
        """Starts monitoring; does nothing if it runs.

        Example:

            monitor.start_monitoring()
        """

    @abstractmethod
    def stop_monitoring(self) -> None:
        """Stops monitoring; may be called twice.

        Example:

            monitor.stop_monitoring()
        """

    @abstractmethod
    def get_cpu_usage(self) -> float:
        """Per cent of all CPUs of the machine.

        Example:

            print(monitor.get_cpu_usage())
        """

    @abstractmethod
    def get_memory_usage(self) -> Any:
        """Used memory of the machine.

        Example:

            print(monitor.get_memory_usage())
        """

    def get_power_metrics(self) -> Dict[str, Any]:
        """Power and energy of the machine by domain, as from EnergyMonitor; None is unknown. `joules` are since the first
        call: the meters are opened then, and stay open with the monitor.

        Example:

            print(etwatch.SystemMonitor().get_power_metrics()["package"]["watts"])
        """
        # Made on first use: a subclass may have an __init__ of its own.
        if self._energy_monitor is None:
            self._energy_monitor = self._energy()
        return self._energy_monitor.get_power_metrics()

    _energy_monitor: Optional["EnergyMonitor"] = None

    def _energy(self) -> "EnergyMonitor":
        from .devices import EnergyMonitor
        return EnergyMonitor()


@runtime_checkable
class MonitorInterface(Protocol):
    """What a function that takes any monitor can rely on.

    Example:

        def report(monitor: etwatch.MonitorInterface) -> None:
            print(monitor.get_cpu_usage())

    `isinstance(monitor, etwatch.MonitorInterface)` checks that the methods exist.
    """

    def start_monitoring(self) -> None:
        """Starts monitoring.

        Example:

            monitor.start_monitoring()
        """

    def stop_monitoring(self) -> None:
        """Stops monitoring.

        Example:

            monitor.stop_monitoring()
        """

    def get_cpu_usage(self) -> float:
        """Per cent of all CPUs of the machine.

        Example:

            print(monitor.get_cpu_usage())
        """

    def get_memory_usage(self) -> Any:
        """Used memory of the machine.

        Example:

            print(monitor.get_memory_usage())
        """
