# SPDX-License-Identifier: MIT
"""The example programs do what their file comments promise."""
import os
import subprocess

from etlkit import make_etl
from lib import BUILD, check, check_between, check_eq, check_in, main, run, start, temp_dir, test

BUSY = "while :; do :; done"


def example(name, *arguments):
    return run(arguments, program=os.path.join(BUILD, "examples", name))


@test
def measure_call_agrees_with_the_cpu_clock():
    result = example("measure_call", "300")
    check_eq(result.code, 0, result.err)
    values = dict(line.split() for line in result.out.splitlines())
    check(int(values["samples"]) > 1, result.out)
    clock_ms = float(values["clock_ms"])
    # Polling sees the time since the kernel's last tick late; eBPF sees all of it.
    slack = 0.02 if values["source"] == "ebpf" else 0.2
    check_between(float(values["cpu_ms"]), clock_ms * (1 - slack) - 1, clock_ms * (1 + slack) + 5,
                  "cpu_ms (with its own start and stop)")


@test
def spikes_reports_a_busy_process():
    busy = start(["-c", BUSY], program="/bin/sh", stdout=subprocess.DEVNULL)
    result = example("spikes", busy.pid, "0.7")
    check_eq(result.code, 0, result.err)
    check_in(f" {busy.pid} sh ", result.out)
    last = result.out.splitlines()[-1].split()
    check(int(last[1]) > 0, result.out)


@test
def spikes_reports_nothing_of_an_idle_process():
    idle = start(["30"], program="/bin/sleep")
    result = example("spikes", idle.pid, "0.5")
    check_eq(result.code, 0, result.err)
    check_eq(result.out.splitlines()[-1].split()[:2], ["spikes", "0"])


@test
def collect_writes_the_work_of_a_busy_process():
    busy = start(["-c", BUSY], program="/bin/sh", stdout=subprocess.DEVNULL)
    with temp_dir() as folder:
        out = os.path.join(folder, "samples.arrow")
        result = example("collect", busy.pid, "0.7", out)
        check_eq(result.code, 0, result.err)
        check(int(result.out.split()[-2]) > 10, result.out)
        with open(out, "rb") as file:
            data = file.read()
    check_eq((data[:8], data[-6:]), (b"ARROW1\0\0", b"ARROW1"), "both ends of the file")
    check_in(b"cpu_percent", data, "a column")


@test
def follow_watches_processes_added_one_after_the_other():
    busy = start(["-c", BUSY], program="/bin/sh", stdout=subprocess.DEVNULL)
    idle = start(["30"], program="/bin/sleep")
    result = example("follow", "0.6", busy.pid, idle.pid)
    check_eq(result.code, 0, result.err)
    first, second = result.out.splitlines()
    check(first.startswith(f"{busy.pid} sh samples "), first)
    check(int(first.split()[3]) > 3, first)
    check(float(first.split()[5]) > 0, first)
    check(second.startswith(f"{idle.pid} sleep samples 0 "), second)


@test
def follow_names_a_process_that_does_not_exist():
    gone = subprocess.Popen(["/bin/true"])
    gone.wait()
    result = example("follow", "0.2", gone.pid)
    check_eq(result.code, 1)
    check_in("no such process", result.err)


@test
def trace_report_names_the_busiest_processes():
    with temp_dir() as folder:
        path = os.path.join(folder, "t.etl")
        make_etl("switches", path, "--events", 5000)
        result = example("trace_report", path)
        check_eq(result.code, 0, result.err)
        lines = [line.split() for line in result.out.splitlines()]
        times = [float(line[1]) for line in lines if line[0] == "cpu_ms"]
        check_eq(len(times), 5, "number of processes")
        check_eq(times, sorted(times, reverse=True), "CPU times")
        check(times[-1] > 0, result.out)
        check_in("Thread/CSwitch", result.out)
        check_eq(lines[-1][2:], ["lost", "0"], "last line")
    result = example("trace_report", __file__)
    check_eq((result.code, result.out), (1, ""), "result for a file that is not a recording")
    check_in("not an .etl recording", result.err)


main()
