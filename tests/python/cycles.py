# SPDX-License-Identifier: MIT
"""Cycles by thread: from the CPU's counters where they can be read, otherwise from hand-made values."""
import ctypes
import sys

from etwatch import ETWMonitor, ETWMonitorConfig, _abi, _native
from etwatch._batch import METRIC_NAMES
from lib import check, check_eq, main, start, test
from livekit import wait_until


def busy():
    return start(["-c", "while True: pass"], program=sys.executable)


@test
def cycles_are_reported_by_thread_where_available():
    child = busy()
    with ETWMonitor(ETWMonitorConfig(target_processes={child.pid}), metrics=["cycles"]) as monitor:
        wait_until(lambda: child.pid in monitor.get_process_metrics(), "the process is known")
        wait_until(lambda: (monitor.get_process_metrics(child.pid).user_time or 0) > 50, "CPU time")
        metrics = monitor.get_process_metrics(child.pid)
        if metrics.cpu_cycles is None:  # no CPU counters: the test supplies the library's values
            check_eq(metrics.thread_cpu_cycles, None)
            row = _native.sized(_abi.Sample)
            row.type, row.pid, row.tid, row.cycles = _abi.ETWATCH_TYPE_THREAD, child.pid, child.pid, 1234
            row.start_ns = monitor._engine.summary.processes(child.pid)[0].sample.start_ns
            row.has.words[0] = 1 << METRIC_NAMES.index("cycles")
            _native.lib.etwatch_summary_add(monitor._engine.summary.pointer, ctypes.byref(row), 1)
            check_eq(monitor.get_process_metrics(child.pid).thread_cpu_cycles, {child.pid: 1234})
        else:
            check(metrics.thread_cpu_cycles[child.pid] > 1_000_000, repr(metrics))
        check_eq(monitor.get_statistics()["lost"], 0)
    child.kill()
    child.wait()


main()
