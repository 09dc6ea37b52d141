# SPDX-License-Identifier: MIT
"""Who waited for whom: a chain of threads that wake each other a known number of times."""
import os

from lib import BUILD, ETWATCH, check, check_between, check_eq, check_in, json_lines, main, need_ebpf, run, start, test
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


@test
def a_chain_of_threads_is_found_with_exact_counts():
    need_ebpf()
    truth, out = watch_relay("--json")
    objects = json_lines(out)
    check_eq(one(objects, "stats")["lost"], 0, "lost")
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
