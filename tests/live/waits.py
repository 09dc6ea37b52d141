# SPDX-License-Identifier: MIT
"""Who waited for whom: a chain of threads that wake each other a known number of times."""
import os

from lib import (BUILD, ETWATCH, check, check_between, check_eq, check_in, json_lines, main, need_ebpf, run, start,
                 temp_dir, test)
from livekit import of_type, one, truth_of, wait_until

RELAY = os.path.join(BUILD, "tests", "relay")
COUNT, MS = 25, 10


def watch_relay(*options):
    """`etwatch waits` of a relay that runs under it from before its first byte."""
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


def programs_loaded(pid):
    """It sleeps in its loop, with the descriptors of its programs open."""
    links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        state = file.read().rsplit(")", 1)[1].split()[0]
    return state == "S" and sum("bpf_link" in link or "bpf-link" in link for link in links) >= 5


def check_chain(objects, truth):
    """The threads of a relay woke each other as often as it says, and waited as long."""
    middle = one(objects, "wake", tid=truth["middle"], waker_tid=truth["first"])
    last = one(objects, "wake", tid=truth["last"], waker_tid=truth["middle"])
    # The thread itself is made by the first one: its first wake-up is no wait.
    for edge, name, waker in ((middle, "middle", "first"), (last, "last", "middle")):
        check_eq((edge["thread_name"], edge["waker_name"]), (name, waker), "names")
        check_eq((edge["pid"], edge["waker_pid"]), (truth["pid"], truth["pid"]), "processes")
        check_between(edge["count"], COUNT - 1, COUNT, f"wake-ups of {name}")
        check(edge["wait_ns"] >= (COUNT - 1) * (MS - 1) * 1_000_000, f"{name} waited only {edge['wait_ns']} ns")
        check_eq(edge["blocked_ns"], 0, "time blocked")
    thread = one(objects, "waits", tid=truth["last"])
    check(thread["sleep_ns"] >= last["wait_ns"], "a thread slept less than it waited for another")
    check_eq(thread["thread_name"], "last", "name")
    check_eq(thread["fault_ns"], None, "time of page faults, which nobody tells apart here")


@test
def a_chain_of_threads_is_found_with_exact_counts():
    need_ebpf()
    truth, out = watch_relay("--json")
    objects = json_lines(out)
    check_eq(one(objects, "stats")["lost"], 0, "lost")
    check_chain(objects, truth)


@test
def run_tells_of_its_command_in_the_same_words():
    need_ebpf()
    with temp_dir() as folder:
        path = os.path.join(folder, "out.jsonl")
        result = run(["run", "--waits", "--json", "-q", "-o", path, "--", RELAY, "pass", COUNT, MS])
        check_eq(result.code, 0, f"exit code ({result.err})")
        with open(path, encoding="utf-8") as file:
            objects = json_lines(file.read())
    check_chain(objects, truth_of(result.out)[0])
    check_eq(objects[-1]["type"], "stats", "the last object")
    check_eq([o["type"] for o in objects if o["type"] == "event"], [], "events, which nobody asked for")
    shown = run(["run", "--waits", "-q", "--", RELAY, "pass", 5, 2])
    check_in("chains: who ended most of the waiting of whom", shown.out, "table")
    check_in("relay", shown.out, "summary")


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
def a_wait_that_nothing_interrupts_is_told_apart_and_who_ended_it():
    need_ebpf()
    with temp_dir() as folder:
        path = os.path.join(folder, "out.jsonl")
        result = run(["run", "--waits", "--json", "-q", "-o", path, "--", RELAY, "borrow", COUNT, MS])
        check_eq(result.code, 0, f"exit code ({result.err})")
        truth = truth_of(result.out)[0]
        with open(path, encoding="utf-8") as file:
            objects = json_lines(file.read())
    parent = one(objects, "waits", tid=truth["pid"])
    blocked = [o for o in of_type(objects, "wake") if o["tid"] == truth["pid"] and o["blocked_ns"] > 0]
    children = {o["tid"] for o in of_type(objects, "waits")} - {truth["pid"]}
    by_children = [o for o in blocked if o["waker_tid"] in children]
    check_eq(sum(o["count"] for o in by_children), COUNT, "times that a child let go of its parent")
    check_eq(len(by_children), COUNT, "children")
    check(all(o["blocked_ns"] >= MS * 1_000_000 for o in by_children), "one waited too short")
    check(parent["blocked_ns"] <= truth["waited_ns"], f"{parent['blocked_ns']} blocked of {truth['waited_ns']}")
    check_eq(parent["blocked_ns"], sum(o["blocked_ns"] for o in blocked), "time blocked, by who ended it")


@test
def the_table_has_the_chain():
    need_ebpf()
    truth, out = watch_relay()
    chain = [line for line in out.splitlines() if line.startswith(f"last ({truth['last']}) <- ")]
    check_eq(len(chain), 1, f"lines of the chain in {out!r}")
    check_in(f" - middle ({truth['middle']}) <- ", chain[0], "chain")
    check_in(f" - first ({truth['first']})", chain[0], "chain")


@test
def it_needs_to_know_whom_and_cannot_poll():
    result = run(["waits"])
    check_eq(result.code, 2, "exit code")
    check_in("waits needs to know which processes", result.err, "message")


main()
