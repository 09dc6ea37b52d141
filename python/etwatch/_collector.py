# SPDX-License-Identifier: MIT
"""The library's collector: keeps the samples and events of a monitor as columns in C and exports them as tables."""
import ctypes
from typing import Any

from . import _abi, _native
from ._owned import Owned
from .table import Table


class Collector(Owned):
    """Fed by a Summary (samples) or attached to a config (events). It must outlive what feeds it."""

    def __init__(self, max_rows: int = 0, command_lines: bool = False) -> None:
        super().__init__()
        options = _native.sized(_abi.TableOptions)
        options.max_rows = max_rows
        options.flags = _abi.ETWATCH_TABLE_CMDLINE if command_lines else 0
        info = _native.new_error()
        _native.check(_native.lib.etwatch_collector_new(ctypes.byref(options), ctypes.byref(self.pointer),
                                                        ctypes.byref(info)), info)

    def attach_events(self, callbacks: Any) -> None:
        """Makes the monitor deliver the full event stream to this collector."""
        callbacks.on_events = ctypes.cast(_native.lib.etwatch_collector_on_events, type(callbacks.on_events))
        callbacks.ctx = self.pointer.value

    def attach_devices(self, callbacks: Any) -> None:
        """Makes the monitor deliver the readings of devices to this collector."""
        callbacks.on_devices = ctypes.cast(_native.lib.etwatch_collector_on_devices, type(callbacks.on_devices))
        callbacks.ctx = self.pointer.value

    def table(self, table: int, take: bool = False) -> Table:
        """A table of the rows present at each read; with take every row is delivered once."""
        name = _native.text(_native.lib.etwatch_table_name(table)) or "table"

        def open_stream(address: int) -> None:
            stream = _abi.ArrowArrayStream.from_address(address)
            _native.check(_native.lib.etwatch_collector_table(self.pointer, table,
                                                              _abi.ETWATCH_TABLE_TAKE if take else 0,
                                                              ctypes.byref(stream)))
        return Table.from_stream(open_stream, name=name)

    def dropped(self) -> int:
        stats = _native.sized(_abi.CollectorStats)
        _native.check(_native.lib.etwatch_collector_stats(self.pointer, ctypes.byref(stats)))
        return int(stats.dropped)

    def free(self, pointer: ctypes.c_void_p) -> None:
        _native.lib.etwatch_collector_free(pointer)
