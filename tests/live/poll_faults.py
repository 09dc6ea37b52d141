# SPDX-License-Identifier: MIT
"""Polling when something is missing: rights, files, descriptors, processes."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time

from lib import (ETWATCH, ROOT, check, check_eq, check_in, json_lines, main, run, skip, start, temp_dir,
                 test)
from livekit import run_unprivileged

IO_NAMES = ("io_read_bytes", "io_write_bytes", "io_read_ops", "io_write_ops", "disk_read_bytes",
            "disk_write_bytes")


def by_type(result, kind):
    return [o for o in json_lines(result.out) if o["type"] == kind]


@test
def without_rights_it_polls_and_reports_that_in_one_line():
    with temp_dir() as folder:
        result = run_unprivileged(["stat", "-a", "--json", "--duration", "0.5"], folder)
    check_eq(result.code, 0, "exit code")
    lines = [line for line in result.err.splitlines() if "polling" in line]
    check_eq(len(lines), 1, f"lines about polling in {result.err!r}")
    check_in("fix", lines[0], "the line about polling")
    check_eq({o["source"] for o in json_lines(result.out) if "source" in o}, {"poll"}, "sources")
    check(by_type(result, "start"), "no process was reported")


@test
def without_rights_and_without_fallback_it_is_exit_code_3():
    with temp_dir() as folder:
        for more in (["--no-fallback"], ["--source", "ebpf"]):
            result = run_unprivileged(["stat", "-a", "--json", "--duration", "0.5", *more], folder)
            check_eq(result.code, 3, f"exit code with {more}")
            check_eq(len(result.err.splitlines()), 1, f"lines on standard error: {result.err!r}")


@test
def io_of_other_users_processes_is_unknown():
    child = subprocess.Popen(["sleep", "60"])
    try:
        with temp_dir() as folder:
            result = run_unprivileged(["stat", "-p", child.pid, "--dense", "--json", "--source", "poll",
                                "--duration", "0.5"], folder)
    finally:
        child.kill()
        child.wait()
    check_eq(result.code, 0, "exit code")
    starts = by_type(result, "start")
    check_eq([s["pid"] for s in starts], [child.pid], "processes")
    samples = by_type(result, "sample")
    check(samples, "no sample")
    for sample in samples:
        for name in IO_NAMES:
            check_eq(sample[name], None, name)
        check(sample["rss_bytes"] and sample["cpu_ns"] == 0, f"no memory value: {sample}")


@test
def without_rights_an_own_command_has_all_values():
    with temp_dir() as folder:
        result = run_unprivileged(["run", "--json", "--hz", "50", "--", "sh", "-c",
                            "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; exit 7"], folder)
    check_eq(result.code, 7, "exit code")
    exits = by_type(result, "exit")
    check_eq(len(exits), 1, "exits")
    check(exits[0]["cpu_ns"] > 0, "no CPU time")
    samples = by_type(result, "sample")
    check(any(s["io_read_bytes"] is not None for s in samples), "io of its own child is unknown")


@test
def a_process_that_does_not_exist_is_refused_with_one_line():
    result = run(["stat", "-p", 4194303, "--source", "poll", "--json", "--duration", "0.3"])
    check_eq(result.code, 1, "exit code")
    check_in("4194303", result.err, "standard error")


@test
def a_root_that_is_not_a_proc_file_system_is_refused_with_one_line():
    result = run(["stat", "-a", "--source", "poll", "--proc-root", "/no/such/proc", "--duration", "0.3"])
    check(result.code in (1, 2), f"exit code is {result.code}")
    check_in("/no/such/proc", result.err, "standard error")


@test
def an_unreadable_root_is_refused_with_one_line_and_exit_code_3():
    with temp_dir() as folder:
        closed = os.path.join(folder, "closed")
        os.mkdir(closed, 0o700)
        result = run_unprivileged(["stat", "-a", "--source", "poll", "--proc-root", closed, "--duration", "0.3"], folder)
    check_eq(result.code, 3, "exit code")
    check_eq(len(result.err.splitlines()), 1, f"lines on standard error: {result.err!r}")
    check_in(f"cannot open {closed}: Permission denied", result.err, "standard error")


@test
def unreadable_and_truncated_files_are_counted_and_the_rest_is_read():
    for tree, pids, undecoded in (("unreadable", {100, 101, 103}, False),
                                  ("truncated", {101, 102, 103, 105}, True)):
        root = os.path.join(ROOT, "tests/golden/proc", tree)
        result = run(["stat", "-a", "--source", "poll", "--proc-root", root, "--json", "--duration", "0.5"])
        check_eq(result.code, 0, f"exit code with {tree}")
        check_eq({s["pid"] for s in by_type(result, "start")}, pids, f"processes of {tree}")
        stats = by_type(result, "stats")[0]
        check_eq(stats["undecoded"] > 0, undecoded, f"undecoded > 0 with {tree}")


@test
def few_descriptors_are_enough():
    child = subprocess.Popen([sys.executable, "-c", "import time\nend = time.time() + 60\nwhile time.time() < end: pass"])
    try:
        result = run(["-c", 'ulimit -n 24; exec "$@"', "sh", ETWATCH, "stat", "-a", "--threads", "--source",
                      "poll", "--json", "--hz", "20", "--duration", "1"], program="sh")
    finally:
        child.kill()
        child.wait()
    check_eq(result.code, 0, "exit code")
    mine = [s for s in by_type(result, "sample") if s["pid"] == child.pid]
    check(mine and all(s["cpu_ns"] > 0 and s["rss_bytes"] for s in mine[1:]), "the busy child is not read")


@test
def many_threads_are_read_and_memory_is_bounded():
    count = 2000
    work = ("import threading, time\n"
            "threading.stack_size(65536)\n"
            "stop = threading.Event()\n"
            f"ts = [threading.Thread(target=stop.wait) for _ in range({count})]\n"
            "[t.start() for t in ts]\n"
            "time.sleep(2); stop.set()\n"
            "[t.join() for t in ts]\n")
    result = run(["run", "--source", "poll", "--threads", "--json", "-q", "--hz", "10", "--", sys.executable,
                  "-c", work], timeout=110)
    check_eq(result.code, 0, "exit code")
    most = max(s["threads"] or 0 for s in by_type(result, "sample"))
    check_eq(most, count + 1, "most threads of a sample")
    tids = {t["tid"] for t in by_type(result, "thread")}
    check(len(tids) > count, f"{len(tids)} of {count + 1} threads were reported")
    stats = by_type(result, "stats")[0]
    check_eq(stats["lost"], 0, "lost")
    check(stats["self_rss_peak_bytes"] < 24e6, f"{stats['self_rss_peak_bytes']} bytes of memory")


@test
def killed_at_any_moment_it_leaves_whole_lines():
    for delay in (0.05, 0.2, 0.35, 0.5):
        with temp_dir() as folder:
            path = os.path.join(folder, "out.json")
            monitor = start(["stat", "-a", "--source", "poll", "--json", "--hz", "100", "--dense", "-o", path])
            time.sleep(delay)
            os.kill(monitor.pid, signal.SIGKILL)
            monitor.wait()
            text = ""
            if os.path.exists(path):  # otherwise it was killed before it opened the file
                with open(path, encoding="utf-8", errors="replace") as file:
                    text = file.read()
        whole = text[:text.rfind("\n") + 1]
        for line in whole.splitlines():
            json.loads(line)


@test
def a_reused_pid_is_another_process():
    """In its own pid namespace the next pid can be selected."""
    if os.getuid() != 0 or not shutil.which("unshare"):
        skip("needs root and unshare for a pid namespace")
    if run(["-pf", "--mount-proc", "true"], program="unshare").code != 0:
        skip("no pid namespaces here")
    script = r"""
        "$1" stat -a --source poll --json --hz 50 -o "$2" & monitor=$!
        sleep 0.5
        for round in 1 2 3; do
            echo 499 > /proc/sys/kernel/ns_last_pid || exit 77
            sleep 30 & child=$!
            [ $child = 500 ] || exit 77
            sleep 0.3
            kill -9 $child; wait $child 2>/dev/null
        done
        sleep 0.3
        kill -TERM $monitor; wait $monitor
    """
    with temp_dir() as folder:
        path = os.path.join(folder, "out.json")
        result = run(["-pf", "--mount-proc", "sh", "-c", script, "sh", ETWATCH, path], program="unshare")
        if result.code == 77:
            skip("the next pid cannot be selected here")
        with open(path, encoding="utf-8") as file:
            objects = json_lines(file.read())
    starts = [o["start_ns"] for o in objects if o["type"] == "start" and o["pid"] == 500]
    exits = [o["start_ns"] for o in objects if o["type"] == "exit" and o["pid"] == 500]
    check_eq(len(starts), 3, "starts of pid 500")
    check_eq(len(set(starts)), 3, "different start times")
    check_eq(exits, starts, "exits of the same processes in the same order")
    for sample in (o for o in objects if o["type"] == "sample" and o["pid"] == 500):
        check_in(sample["start_ns"], starts, "start times")


main()
