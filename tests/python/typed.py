# SPDX-License-Identifier: MIT
"""Types: the package and programs that use it pass strict type checking, and errors are detected."""
import os

from lib import ROOT, check_eq, check_in, main, run, temp_dir, test
from toolkit import PACKAGE, need, python

USER = """
import etwatch
from typing import List

def busiest(result: etwatch.RunResult) -> List[int]:
    return [row["pid"] for row in result.processes.head(3)]

def names(pid: int) -> str:
    process = etwatch.Process(pid)
    return process.name() + str(process.num_ctx_switches().voluntary)

def on_sample(sample: etwatch.MetricSample) -> None:
    print(sample.metric_name, sample.value)

monitor = etwatch.ETWMonitor(etwatch.ETWMonitorConfig(sampling_rate_hz=50.0))
monitor.register_callback(on_sample)
"""


def mypy(*paths):
    need("mypy")
    with temp_dir() as cache:
        return run(["-m", "mypy", "--strict", "--cache-dir", cache, *paths], program=python(), timeout=110,
                   env={**os.environ, "MYPYPATH": PACKAGE}, cwd=ROOT)


@test
def the_package_and_its_users_are_strictly_typed():
    with temp_dir() as folder:
        path = os.path.join(folder, "user.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(USER)
        result = mypy(os.path.join(PACKAGE, "etwatch"), path)
        check_eq(result.code, 0, result.out)


@test
def a_wrong_type_in_user_code_is_detected():
    with temp_dir() as folder:
        path = os.path.join(folder, "user.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(USER + "etwatch.Process('1')\nmonitor.add_process(None)\n")
        result = mypy(path)
        check_eq(result.code, 1, result.out)
        check_in("Process", result.out)
        check_in("add_process", result.out)


main()
