# SPDX-License-Identifier: MIT
"""kill -9 at any moment: nothing stays in the kernel, no process stays, and the output so far is readable."""
import os
import random
import shutil
import signal
import sys
import time

from lib import check, check_eq, main, need_ebpf, run, start, temp_dir, test
from livekit import (WORKLOADS, alive, check_no_orphans, held, loaded, of_type, pinned, programs_of, read_lines,
                     wait_until)


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def check_nothing_stays(before, made):
    check_no_orphans(before)
    for pid in made:
        wait_until(lambda p=pid: not alive(p), f"process {pid} stays")


def check_whole(path):
    """Every line except a truncated last one is an object; the first is the meta object."""
    if not os.path.exists(path):
        return 0
    with open(path, encoding="utf-8") as file:
        rest = file.read().rpartition("\n")[2]
    check(rest[:1] in ("", "{"), f"no line begins like that: {rest[:40]!r}")
    objects = read_lines(path)
    if objects:
        check_eq(objects[0]["type"], "meta", "first object")
    return len(objects)


def kill_after(arguments, seconds, folder, number):
    path = os.path.join(folder, f"{number}.jsonl")
    monitor = start([*arguments[:1], "--json", "-q", "-o", path, *arguments[1:]])
    time.sleep(seconds)
    made = children(monitor.pid)
    os.kill(monitor.pid, signal.SIGKILL)
    monitor.wait()
    for pipe in (monitor.stdout, monitor.stderr):
        pipe.close()
    return path, made


@test
def loaded_programs_are_found_while_watching():
    """Otherwise the tests below would find nothing even if something stayed."""
    need_ebpf()
    before = loaded()
    with temp_dir() as folder:
        path = os.path.join(folder, "out")
        monitor = start(["stat", "-a", "--json", "-q", "--source", "ebpf", "-o", path])
        wait_until(lambda: read_lines(path), "the first line")
        new = loaded() - before
        check(len(new) >= 4, f"{len(new)} programs are loaded while watching")
        check(len(programs_of(monitor.pid) & new) >= 4, "the programs are not found through the descriptors")


@test
def killed_during_the_start_it_leaves_nothing():
    need_ebpf()
    chance = random.Random(11)
    before, pins = loaded() - held(), pinned()
    with temp_dir() as folder:
        made = []
        for number in range(40):
            command = ["run", "--source", "ebpf", "--", "sleep", "60"] if number % 2 else \
                ["stat", "-a", "--source", "ebpf"]
            path, pids = kill_after(command, chance.random() * 0.12, folder, number)
            check_whole(path)
            made += pids
        check_nothing_stays(before, made)
    check_eq(pinned(), pins, "pinned objects")


@test
def killed_while_watching_a_storm_it_leaves_nothing():
    need_ebpf()
    chance = random.Random(12)
    before, pins = loaded() - held(), pinned()
    lines = 0
    with temp_dir() as folder:
        made = []
        for number in range(12):
            command = ["run", "--source", "ebpf", "--hz", "1000", "--threads", "--events", "--", "sh", "-c",
                       f"while :; do {WORKLOADS} forks 50 0 >/dev/null; done"]
            path, pids = kill_after(command, 0.2 + chance.random() * 0.4, folder, number)
            lines += check_whole(path)
            made += pids
        check(made, "no command was ever started")
        check(lines > 100, f"{lines} lines were written in all")
        check_nothing_stays(before, made)
    check_eq(pinned(), pins, "pinned objects")


@test
def a_suspended_monitor_that_is_killed_leaves_nothing():
    need_ebpf()
    before = loaded() - held()
    with temp_dir() as folder:
        path = os.path.join(folder, "out")
        monitor = start(["run", "--json", "-q", "--source", "ebpf", "-o", path, "--", "sleep", "60"])
        wait_until(lambda: of_type(read_lines(path), "start"), "the start of the command")
        made = children(monitor.pid)
        check_eq(len(made), 1, "commands")
        os.kill(monitor.pid, signal.SIGSTOP)
        os.kill(monitor.pid, signal.SIGKILL)
        monitor.wait()
        check_nothing_stays(before, made)
        check(check_whole(path) >= 1, "the first line is missing")


@test
def a_file_of_spans_gets_its_name_when_it_is_complete():
    need_ebpf()
    with temp_dir() as folder:
        path = os.path.join(folder, "spans.arrow")
        with open(path, "w", encoding="utf-8") as file:
            file.write("of an earlier run")
        monitor = start(["run", "--spans", "-q", "-o", path, "--", "sh", "-c", "echo begun; exec sleep 60"])
        check_eq(monitor.stdout.readline(), b"begun\n", "output of the command")
        os.kill(monitor.pid, signal.SIGKILL)
        monitor.wait()
        wait_until(lambda: os.listdir(folder) == ["spans.arrow"], f"files stay: {os.listdir(folder)}")
        with open(path, encoding="utf-8") as file:
            check_eq(file.read(), "of an earlier run", "the file after kill -9")
        check_eq(run(["run", "--spans", "-q", "-o", path, "--", "true"]).code, 0, "exit code")
        with open(path, "rb") as file:
            check_eq(file.read()[:6], b"ARROW1", "begin of the complete file")
        check_eq(os.listdir(folder), ["spans.arrow"], "files")


def with_pins():
    """Mounts a bpf file system if there is none: otherwise nothing pinned could be found."""
    if os.path.ismount("/sys/fs/bpf") or os.geteuid() != 0 or "ETWATCH_PINS" in os.environ or \
            not shutil.which("unshare"):
        return
    script = 'mount -t bpf bpf /sys/fs/bpf 2>/dev/null; exec "$@"'
    os.execvpe("unshare", ["unshare", "-m", "sh", "-c", script, "sh", sys.executable, *sys.argv],
               {**os.environ, "ETWATCH_PINS": "1"})


with_pins()
main()
