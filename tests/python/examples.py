# SPDX-License-Identifier: MIT
"""The documented use cases as programs: each example of examples/python does what it describes."""
import os
import re
import subprocess
import sys

import etwatch
from etlkit import corpus, make_etl
from lib import ROOT, Result, cases, check, check_eq, check_in, main, need_ebpf, run, skip, start, temp_dir, test

BUSY = "import time\nend = time.time() + 60\nwhile time.time() < end: pass"
# Prints when it starts and stops being busy, for 5 ms, a few times, and how long it had a CPU meanwhile.
SPIKES = """
import sys, time
input()
for _ in range(6):
    begin, used = time.time(), time.thread_time()
    while time.time() - begin < 0.005: pass
    print(begin, time.time(), time.thread_time() - used, flush=True)
    time.sleep(0.15)
time.sleep(0.5)
"""
THREADS = """
import threading, time
input()
time.sleep(0.05)
for _ in range(5):
    thread = threading.Thread(target=time.sleep, args=(0.01,))
    thread.start(); thread.join()
"""


def example(name, *arguments, timeout=60):
    return run(["-X", "dev", os.path.join(ROOT, "examples", "python", name + ".py"), *arguments],
               program=sys.executable, timeout=timeout)


def python(code):
    return start(["-c", code], program=sys.executable, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def watching(name, child, *arguments):
    """Runs an example that prints when it is watching; the child continues from input() then."""
    path = os.path.join(ROOT, "examples", "python", name + ".py")
    program = start(["-X", "dev", path, child.pid, *arguments], program=sys.executable)
    first = program.stderr.readline()
    if not first.startswith(b"watching"):
        check(False, (first + program.stderr.read()).decode())
    child.stdin.write(b"\n")
    child.stdin.flush()
    out, err = program.communicate(timeout=60)
    return Result(program.returncode, out.decode(), err.decode())


@test
def monitor_reports_the_processes_of_a_name():
    busy = python(BUSY)
    result = example("monitor", "1.5", "python")
    check_eq(result.code, 0, result.err)
    lines = result.out.splitlines()
    mine = [line for line in lines if line.startswith(f"{busy.pid} ")]
    check_eq(len(mine), 1, f"lines about {busy.pid} in {result.out}")
    found = re.search(r"average ([\d.]+) maximum ([\d.]+) p95 ([\d.]+) p99 ([\d.]+)", mine[0])
    average, maximum, p95, p99 = map(float, found.groups())
    check(0 < average <= maximum and average <= p95 * 1.01 <= p99 * 1.02, mine[0])
    check(re.search(r"backend (ebpf|poll) requested 100 Hz", result.out), result.out)
    check(re.search(r"lost 0 own cpu", result.out), result.out)


@test
def callback_prints_the_cpu_use_of_one_process_only():
    busy = python(BUSY)
    for seconds in ("1", "10"):  # longer on a machine that is too busy to run it often
        result = example("callback", busy.pid, seconds)
        check_eq(result.code, 0, result.err)
        lines = result.out.splitlines()
        if len(lines) > 5:
            break
    check(len(lines) > 5, result.out)
    check_eq({line.split()[1] for line in lines}, {str(busy.pid)}, "pids")
    check(any(float(line.split()[3]) > 0 for line in lines), result.out)


@test
def callback_names_a_process_that_does_not_exist():
    gone = subprocess.Popen(["/bin/true"])
    gone.wait()
    result = example("callback", gone.pid, "1")
    check_eq(result.code, 1)
    check_in(f"pid {gone.pid}: no such process", result.err)


@test
def no_spike_of_five_milliseconds_is_missed():
    need_ebpf()
    child = python(SPIKES)
    result = watching("spikes", child, "30")
    check_eq(result.code, 0, result.err)
    made = [tuple(map(float, line.split())) for line in child.stdout.read().decode().splitlines()]
    check_eq(len(made), 6, "spikes that were made")
    truth = [(begin, end) for begin, end, used in made if used > 0.9 * (end - begin)]
    if not truth:
        skip("the machine is too busy: no spike had a CPU of its own")
    spikes = [(float(at), float(at) + float(ms) / 1000)
            for at, ms in re.findall(r"spike at ([\d.]+) for ([\d.]+) ms", result.out)]
    for begin, end in truth:
        check(any(to > begin - 0.002 and at < end + 0.002 for at, to in spikes),
              f"the spike of {begin} to {end} is not in {spikes}")
    check_in(" 0 events lost", result.out)


@test
def threads_shows_switches_and_new_threads_of_a_process():
    need_ebpf()
    child = python(THREADS)
    result = watching("threads", child, "30")
    check_eq(result.code, 0, result.err)
    new = re.findall(rf"new thread (\d+) of process {child.pid} starts at unknown", result.out)
    check_eq(len(new), 5, result.out[-2000:])
    for tid in new:
        check(re.search(rf"switch \d+ -> {tid} reason [\w ]+ waited [\d.]+ us", result.out), f"no switch to {tid}")
        check(re.search(rf"switch {tid} -> \d+ reason sleeping", result.out), f"{tid} never went to sleep")
    check_in("lost 0 dropped 0", result.out)


@test
def threads_shows_the_same_of_a_recording_with_start_addresses():
    with temp_dir() as folder:
        path = os.path.join(folder, "t.etl")
        make_etl("mixed", path)
        result = example("threads", path)
    check_eq(result.code, 0, result.err)
    check(re.search(r"new thread \d+ of process \d+ starts at 0x[1-9a-f]", result.out), result.out[:500])
    check(re.search(r"switch \d+ -> \d+ reason \d+ waited [1-9][\d.]* us", result.out), result.out[:500])
    check_eq(result.out.splitlines()[-1], "lost 0")


@cases([(name, name) for name in ("perfview-net452-x64.etl", "perfview-gcevents.etl", "dotnet-dynamic-events.etl")])
def threads_and_memory_ignore_the_threads_of_a_runtime(name):
    """.NET has events such as ThreadPoolWorkerThread/Start, which start no thread of the kernel."""
    path = corpus("etl", name)
    trace = etwatch.open(path)
    started = len(trace.event_table(event=["Thread/Start", "Thread/DCStart"]))
    check(any("Thread" in event or "GC" in event for event in trace.classes["event"]), "no events of .NET")
    for program in ("threads", "memory"):
        result = example(program, path)
        check_eq(result.code, 0, result.err)
        if program == "threads":
            check(result.out.count("new thread") <= started, f"{result.out.count('new thread')} of {started} threads")


@test
def memory_shows_address_and_size_of_faults_and_allocations():
    with temp_dir() as folder:
        path = os.path.join(folder, "t.etl")
        make_etl("mixed", path)
        result = example("memory", path)
    check_eq(result.code, 0, result.err)
    for kind in ("Alloc", "HardFault", "DemandZeroFault", "CopyOnWrite"):
        check(re.search(rf" \d+ {kind} address 0x[1-9a-f]\w+ size [1-9]\d+", result.out), f"no {kind}")


@test
def memory_reports_unknown_addresses_for_a_running_process():
    child = python("import time\ninput()\nfor _ in range(5):\n    time.sleep(0.05)\n    bytearray(20_000_000)")
    result = watching("memory", child, "30")
    check_eq(result.code, 0, result.err)
    check(re.search(r"minor and \d+ major faults address unknown size unknown", result.out), result.out)


@test
def recording_names_the_busiest_processes():
    with temp_dir() as folder:
        path = os.path.join(folder, "t.etl")
        make_etl("switches", path, "--events", 5000)
        result = example("recording", path)
    check_eq(result.code, 0, result.err)
    times = [float(ms) for ms in re.findall(r"^process \d+ .* cpu ([\d.]+) ms", result.out, re.M)]
    check_eq(len(times), 10, result.out)
    check_eq(times, sorted(times, reverse=True), "CPU times")
    check(re.search(r"^thread \d+ of .* cpu [\d.]+ ms", result.out, re.M), result.out)
    check_in("event Thread/CSwitch", result.out)
    result = example("recording", __file__)
    check_eq(result.code, 1)
    check_in("not an .etl recording", result.err)


main()
