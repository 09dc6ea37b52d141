# SPDX-License-Identifier: MIT
"""Waits and wakers: a chain of threads that wake each other a known number of times."""
import os
import sys

from lib import (BUILD, ETWATCH, check, check_between, check_eq, check_in, json_lines, main, need_ebpf, run, skip, start,
                 temp_dir, test)
from livekit import of_type, one, truth_of, wait_until, watch

RELAY = os.path.join(BUILD, "tests", "relay")
COUNT, MS = 25, 10


def watch_relay(*options):
    """`etwatch waits` of a relay that is watched from before its first byte."""
    child = start(["-c", f"read go; exec {RELAY} pass {COUNT} {MS}"], program="sh", stdin=-1)
    monitor = start(["waits", "-q", "-p", child.pid, *options], program=ETWATCH)
    wait_until(lambda: os.path.exists(f"/proc/{monitor.pid}") and programs_loaded(monitor.pid), "the monitor")
    child.stdin.write(b"go\n")
    child.stdin.close()
    truth = truth_of(child.stdout.read().decode())[0]
    child.wait()
    out = monitor.stdout.read().decode()
    check_eq(monitor.wait(), 0, "exit code")
    return truth, out


def run_relay(workload):
    """`etwatch run --waits` of a relay."""
    watched = watch([workload, COUNT, MS], "--waits", program=RELAY)
    check_eq(watched.code, 0, f"exit code ({watched.err})")
    return truth_of(watched.truth)[0], watched.objects


def programs_loaded(pid):
    """The process sleeps in its loop with the descriptors of its programs open."""
    links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        state = file.read().rsplit(")", 1)[1].split()[0]
    return state == "S" and sum("bpf_link" in link or "bpf-link" in link for link in links) >= 5


def check_chain(objects, truth):
    """The threads of a relay woke each other as often as it printed, and waited as long."""
    middle = one(objects, "wake", tid=truth["middle"], waker_tid=truth["first"])
    last = one(objects, "wake", tid=truth["last"], waker_tid=truth["middle"])
    # The first thread creates this thread: its first wake-up is not a wait.
    for edge, name, waker in ((middle, "middle", "first"), (last, "last", "middle")):
        check_eq((edge["thread_name"], edge["waker_name"]), (name, waker), "names")
        check_eq((edge["pid"], edge["waker_pid"]), (truth["pid"], truth["pid"]), "processes")
        check_between(edge["count"], COUNT - 1, COUNT, f"wake-ups of {name}")
        check(edge["wait_ns"] >= (COUNT - 1) * (MS - 1) * 1_000_000, f"{name} waited only {edge['wait_ns']} ns")
        check_eq(edge["blocked_ns"], 0, "time blocked")
    thread = one(objects, "waits", tid=truth["last"])
    check(thread["sleep_ns"] >= last["wait_ns"], "a thread slept less than it waited for another")
    check_eq(thread["thread_name"], "last", "name")


@test
def a_chain_of_threads_is_found_with_exact_counts():
    need_ebpf()
    truth, out = watch_relay("--json")
    objects = json_lines(out)
    check_eq(one(objects, "stats")["lost"], 0, "lost")
    check_chain(objects, truth)


@test
def every_switch_has_the_wait_and_the_waker_of_the_incoming_thread():
    need_ebpf()
    with temp_dir() as folder:
        path = os.path.join(folder, "out.jsonl")
        result = run(["run", "--events", "--json", "-q", "-o", path, "--", RELAY, "pass", COUNT, MS])
        check_eq(result.code, 0, f"exit code ({result.err})")
        with open(path, encoding="utf-8") as file:
            objects = json_lines(file.read())
    truth = truth_of(result.out)[0]
    check_eq(one(objects, "stats")["lost"], 0, "lost")
    came = [o for o in of_type(objects, "event", event="switch", next_tid=truth["last"])
            if o["waker_tid"] == truth["middle"]]
    check_between(len(came), COUNT - 1, COUNT, "switches to the last thread after the middle one woke it")
    for event in came:
        check_eq(event["waker_pid"], truth["pid"], "process of the waker")
        check(event["ready_ns"] <= event["wait_ns"], f"ready for {event['ready_ns']} of {event['wait_ns']} ns")
    check(sum(event["wait_ns"] for event in came) >= (COUNT - 1) * (MS - 1) * 1_000_000, "the wait is too short")
    for event in of_type(objects, "event", event="switch", next_tid=0):
        check_eq((event["wait_ns"], event["waker_tid"]), (None, None), "wait of the idle thread")


@test
def run_reports_the_waits_of_its_command_in_the_same_format():
    need_ebpf()
    truth, objects = run_relay("pass")
    check_chain(objects, truth)
    check_eq(objects[-1]["type"], "stats", "the last object")
    check_eq([o["type"] for o in objects if o["type"] == "event"], [], "events that were not requested")
    shown = run(["run", "--waits", "-q", "--", RELAY, "pass", 5, 2])
    check_in("\nchains of wakers: ", shown.out, "table")
    check_in("relay", shown.out, "summary")


FAULTS = """
import mmap, os, resource, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.write(fd, os.urandom(8 << 20)); os.fsync(fd)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
area = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
area.madvise(mmap.MADV_RANDOM)
before = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
sum(area[i] for i in range(0, 4 << 20, 16384))
print(resource.getrusage(resource.RUSAGE_SELF).ru_majflt - before)
for i in range(4 << 20, 8 << 20, 16384):
    os.pread(fd, 4096, i)
"""


@test
def waits_for_disk_reads_and_for_page_faults_are_distinguished():
    need_ebpf()
    with temp_dir() as folder:
        out = os.path.join(folder, "out.jsonl")
        result = run(["run", "--waits", "--json", "-q", "-o", out, "--", sys.executable, "-c", FAULTS,
                      os.path.join(folder, "data")])
        check_eq(result.code, 0, f"exit code ({result.err})")
        with open(out, encoding="utf-8") as file:
            thread = max(of_type(json_lines(file.read()), "waits"), key=lambda o: o["disk_ns"] or 0)
    check(thread["fault_ns"] <= thread["disk_ns"], f"{thread}")
    if int(result.out) < 20 or thread["blocked_ns"] < 1_000_000:
        skip("the pages of a file that was just written do not leave the cache here")
    check(0 < thread["fault_ns"] < thread["disk_ns"] <= thread["blocked_ns"] + thread["sleep_ns"], f"{thread}")


@test
def a_recording_has_the_same_waits():
    need_ebpf()
    with temp_dir() as folder:
        path = os.path.join(folder, "run.pftrace")
        done = run(["record", "-q", "-o", path, "--", RELAY, "pass", COUNT, MS])
        check_eq(done.code, 0, f"exit code ({done.err})")
        truth = truth_of(done.out)[0]
        found = run(["waits", "-q", "--json", "-p", truth["pid"], path])
    check_eq((found.code, found.err), (0, ""), "exit code and words")
    objects = json_lines(found.out)
    check_chain(objects, truth)
    check_eq({o["pid"] for o in objects if o["type"] == "waits"}, {truth["pid"]}, "processes")


@test
def an_uninterruptible_wait_is_distinguished_and_has_its_waker():
    need_ebpf()
    truth, objects = run_relay("borrow")
    parent = one(objects, "waits", tid=truth["pid"])
    blocked = [o for o in of_type(objects, "wake") if o["tid"] == truth["pid"] and o["blocked_ns"] > 0]
    children = {o["tid"] for o in of_type(objects, "waits")} - {truth["pid"]}
    by_children = [o for o in blocked if o["waker_tid"] in children]
    # They share locks of the kernel too (31 waits were seen once).
    check_between(sum(o["count"] for o in by_children), COUNT, 2 * COUNT, "times that a child released its parent")
    check_eq(len(by_children), COUNT, "children")
    check(all(o["blocked_ns"] >= MS * 1_000_000 for o in by_children), "one wait is too short")
    check(parent["blocked_ns"] <= truth["waited_ns"], f"{parent['blocked_ns']} blocked of {truth['waited_ns']}")
    check_eq(parent["blocked_ns"], sum(o["blocked_ns"] for o in blocked), "time blocked, by waker")


@test
def the_table_has_the_chain():
    need_ebpf()
    truth, out = watch_relay()
    chain = [line for line in out.splitlines() if line.startswith(f"last ({truth['last']}) <- ")]
    check_eq(len(chain), 1, f"lines of the chain in {out!r}")
    check_in(f" - middle ({truth['middle']}) <- ", chain[0], "chain")
    check_in(f" - first ({truth['first']})", chain[0], "chain")


@test
def waits_needs_processes_and_cannot_poll():
    result = run(["waits"])
    check_eq(result.code, 2, "exit code")
    check_in("waits needs a selection of processes", result.err, "message")


main()
