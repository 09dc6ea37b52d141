# SPDX-License-Identifier: MIT
"""Values compared with the kernel's own record of the same process."""
import itertools
import json
import os
import shutil
import signal
import sys

from lib import check, check_between, check_eq, main, need_ebpf, run, skip, start, test
from livekit import WORKLOADS, check_stories, identity, of_type, one, truth_with, total, watch

# The last switch of a thread is counted when it has happened, possibly after a waiting process has read the count.
SWITCHES_LATE = 1


def exit_of(watched, pid):
    return one(watched.objects, "exit", pid=pid)


def check_usage(watched, threads=1):
    """The exit object of the child, its samples and the result of wait4() must agree."""
    truth = truth_with(watched.truth, "status")
    check_stories(watched.objects)
    ended = exit_of(watched, truth["pid"])
    samples = of_type(watched.objects, "sample", pid=truth["pid"])
    check_eq(ended["complete"], True, "complete")
    # wait4() rounds down to microseconds and misses the last steps of threads other than the leader.
    check_between(ended["cpu_ns"], truth["cpu_ns"], truth["cpu_ns"] * 1.001 + 2000 + (threads - 1) * 5e6,
                  "CPU time")
    check_eq(ended["faults_minor"], truth["faults_minor"], "minor faults")
    check_eq(ended["faults_major"], truth["faults_major"], "major faults")
    check_between(ended["switches_voluntary"], truth["switches_voluntary"],
                  truth["switches_voluntary"] + SWITCHES_LATE * threads, "voluntary switches")
    check_between(ended["switches_involuntary"], truth["switches_involuntary"],
                  truth["switches_involuntary"] + SWITCHES_LATE * threads, "involuntary switches")
    check_eq(ended["rss_peak_bytes"], truth["rss_peak_bytes"], "peak of the memory")
    for name in ("cpu_ns", "faults_minor", "faults_major", "switches_voluntary", "switches_involuntary",
                 "io_read_bytes", "io_write_bytes", "io_read_ops", "io_write_ops", "runq_wait_ns"):
        check_eq(total(samples, name), ended[name], f"{name} of all samples")
    return ended


@test
def cpu_time_is_what_the_kernel_charged():
    need_ebpf()
    ended = check_usage(watch(["usage", "burn", 200], "--hz", 100))
    check(ended["cpu_ns"] >= 200e6, f"{ended['cpu_ns']} for 200 ms of work")


@test
def faults_switches_and_memory_match_wait4():
    need_ebpf()
    ended = check_usage(watch(["usage", "mix"], "--hz", 1000))
    check(ended["faults_minor"] >= 3000 and ended["switches_voluntary"] >= 25, "the workload did not run")


@test
def reads_and_writes_match_proc_self_io():
    need_ebpf()
    watched = watch(["usage", "mix"], "--hz", 100)
    truth = truth_with(watched.truth, "io_read_bytes")
    ended = exit_of(watched, truth_with(watched.truth, "status")["pid"])
    # After reading the file it read that answer itself and wrote one line.
    for name, more in (("io_read_bytes", 512), ("io_write_bytes", 512), ("io_read_ops", 1), ("io_write_ops", 1)):
        check_between(ended[name], truth[name], truth[name] + more, name)


@test
def many_threads_add_up_to_their_process():
    need_ebpf()
    watched = watch(["usage", "threads", 5, 40], "--hz", 100, "--threads")
    ended = check_usage(watched, threads=6)
    rows = of_type(watched.objects, "thread", pid=ended["pid"])
    for truth in (t for t in watched.truth if "tid" in t):
        mine = [r for r in rows if r["tid"] == truth["tid"]]
        check_between(total(mine, "cpu_ns"), truth["cpu_ns"], truth["cpu_ns"] + 5e6,
                      f"CPU time of thread {truth['tid']}")
        check_eq({r["thread_name"] for r in mine if r["thread_name"] != "workloads"}, {truth["thread_name"]},
                 "names of the thread")
    for sample in of_type(watched.objects, "sample", pid=ended["pid"]):
        same = [r for r in rows if r["t_ns"] == sample["t_ns"]]
        for name in ("cpu_ns", "switches_voluntary", "switches_involuntary", "faults_minor", "runq_wait_ns",
                     "io_read_bytes", "io_write_bytes"):
            check_eq(total(same, name), sample[name] or 0, f"{name} of the threads in one interval")


@test
def a_process_ended_by_several_threads_at_once_exits_once():
    need_ebpf()
    for _ in range(5):
        watched = watch(["usage", "die-together", 20], "--hz", 1000)
        ended = check_usage(watched, threads=21)
        check_eq((ended["exit_code"], ended["exit_signal"]), (3, 0), "how it ended")


@test
def freeing_memory_at_exit_counts_as_cpu_time():
    """The kernel reports an exit before it frees the memory, which may take long."""
    need_ebpf()
    for options in (["--hz", 1000, "--latency", 1], ["--hz", 10]):
        check_usage(watch(["usage", "hoard", 600], *options))


@test
def twenty_three_processes_are_twenty_three_starts_and_exits():
    need_ebpf()
    watched = watch(["forks", 23, 2], "--hz", 100)
    parent = of_type(watched.objects, "exit")[-1]
    starts = of_type(watched.objects, "start", ppid=parent["pid"])
    exits = of_type(watched.objects, "exit", ppid=parent["pid"])
    check_eq((len(starts), len(exits)), (23, 23), "starts and exits")
    check_eq(sorted(e["exit_code"] for e in exits), list(range(23)), "exit codes")
    check_eq({identity(e) for e in exits}, {identity(s) for s in starts}, "processes that started and exited")
    for e in exits:
        samples = of_type(watched.objects, "sample", pid=e["pid"], start_ns=e["start_ns"])
        check_eq(total(samples, "cpu_ns"), e["cpu_ns"], "CPU time of the samples")
    truth = watched.truth[0]["cpu_ns"]
    check_between(total(exits, "cpu_ns"), truth, truth * 1.01 + 1e6, "CPU time of all children")


@test
def the_exit_status_and_the_signal_are_reported():
    need_ebpf()
    script = "(exit 7) & (kill -TERM $BASHPID) & (kill -KILL $BASHPID) & wait; exit 0"
    if not shutil.which("bash"):
        skip("needs bash")
    watched = watch(["-c", script], program="bash")
    main_pid = of_type(watched.objects, "exit")[-1]["pid"]
    ends = sorted((e["exit_code"], e["exit_signal"]) for e in of_type(watched.objects, "exit", ppid=main_pid))
    check_eq(ends, [(0, signal.SIGKILL), (0, signal.SIGTERM), (7, 0)], "exit codes and signals")


@test
def priority_and_affinity_follow_the_process():
    need_ebpf()
    if os.cpu_count() < 2 or not shutil.which("taskset") or not shutil.which("nice"):
        skip("needs two CPUs, taskset and nice")
    watched = watch(["-c", f"nice -n 7 taskset -c 1 {WORKLOADS} burn 150; exit 0"], "--hz", 50, program="sh")
    ended = one(watched.objects, "exit", name="workloads")
    # A gauge is on the sample it was read for, null on the others.
    known = [s for s in of_type(watched.objects, "sample", pid=ended["pid"]) if s["priority"] is not None]
    with open("/proc/self/stat", encoding="utf-8") as file:
        ours = int(file.read().rsplit(")", 1)[1].split()[15])
    for o in [ended, known[-1]]:
        check_eq((o["priority"], o["affinity"]), (min(ours + 7, 39), 2), f"priority and affinity in a {o['type']}")


@test
def the_wait_for_a_cpu_matches_schedstat():
    need_ebpf()
    if not os.path.exists("/proc/self/schedstat"):
        skip("the kernel keeps no schedstat")
    script = ("import time\n"
              "end = time.process_time() + 0.2\n"
              "while time.process_time() < end: pass\n"
              "print(open('/proc/self/schedstat').read().split()[1])\n")
    watched = watch(["-c", script], "--hz", 100, program=sys.executable)
    ended = of_type(watched.objects, "exit")[-1]
    # It read the file before it exited, and may have waited once more since.
    check(ended["runq_wait_ns"] >= int(watched.truth), f"{ended['runq_wait_ns']} for {watched.truth}")
    samples = of_type(watched.objects, "sample", pid=ended["pid"])
    check_between(total(samples, "runq_wait_ns"), 0, ended["runq_wait_ns"], "what the samples add up to")


@test
def a_thread_that_never_leaves_the_cpu_is_in_every_interval():
    """Nothing switches while it computes: its CPU time must not appear as one lump at the end."""
    need_ebpf()
    watched = watch(["burn", 900], "--hz", 20)
    ended = of_type(watched.objects, "exit")[-1]
    samples = of_type(watched.objects, "sample", pid=ended["pid"])
    check(len(samples) >= 18, f"{len(samples)} samples of 900 ms of work at 20 Hz")
    for sample in samples:
        check_between(sample["cpu_percent"], 0, 100.5, "percent of one core for one thread")
    check_between(total(samples, "cpu_ns"), 900e6, ended["cpu_ns"], "CPU time of all samples")
    # It wants the CPU all the time: when it was not running, it waited for the CPU.
    inner = samples[1:-1]
    wanted = total(inner, "cpu_ns") + total(inner, "runq_wait_ns")
    check(wanted >= 0.9 * total(inner, "dt_ns"), f"used or waited for {wanted} of {total(inner, 'dt_ns')} ns")


@test
def no_interval_has_more_cpu_time_than_its_length():
    """With other processes starting and exiting, at a high rate, and with threads that move between CPUs."""
    need_ebpf()
    watched = watch(["-c", f"{WORKLOADS} threads 4 60 & {WORKLOADS} burn 150 & {WORKLOADS} forks 20 3 & wait"], "--hz", 1000,
                    "--threads", program="sh")
    rows = of_type(watched.objects, "thread")
    check(len(rows) > 100, f"only {len(rows)} rows")
    for row in rows:
        check_between(row["cpu_ns"], 0, row["dt_ns"] + 100000, f"CPU time of thread {row['tid']} in {row['dt_ns']} ns")
    for sample in of_type(watched.objects, "sample"):
        check_between(sample["cpu_ns"], 0, sample["dt_ns"] * os.cpu_count() + 100000, "CPU time of a process")


@test
def switches_and_waits_of_a_busy_thread_are_known_in_every_interval():
    need_ebpf()
    child = start(["-c", "import time\nend = time.time() + 60\nwhile time.time() < end: pass"], program=sys.executable)
    result = run(["stat", "-p", child.pid, "--hz", 1000, "--duration", 2, "--json"])
    check_eq(result.code, 0, result.err)
    samples = [json.loads(line) for line in result.out.splitlines()]
    samples = [s for s in samples if s["type"] == "sample" and s["complete"]]
    check(len(samples) > 100, f"{len(samples)} samples")
    for name in ("switches_voluntary", "switches_involuntary", "runq_wait_ns"):
        # Where the kernel skips a switch, the beginning of a run is unknown, and null in its intervals: few runs, of which
        # one may be long.
        stretches = [len(list(group)) for unknown, group in itertools.groupby(s[name] is None for s in samples) if unknown]
        check(len(stretches) <= len(samples) // 50 and sum(stretches) <= len(samples) // 2,
              f"{name} is null in {stretches} of {len(samples)} complete samples")


main()
