# SPDX-License-Identifier: MIT
"""Overload: a full log, ring or table is counted, marks the affected samples, and the monitor recovers."""
import os
import signal
import subprocess
import time

from lib import cases, check, check_between, check_eq, main, need_ebpf, start, temp_dir, test
from livekit import (WORKLOADS, check_stories, first_line, of_type, one, read_lines, truth_with, total, truth_of, wait_until,
                     watch)

STAGES = ("kernel_log", "lifecycle", "stream", "table", "queue", "buffers")


def worker_exit(story):
    """The exit of the process that printed its usage. A storm may use up all pids and reuse this one."""
    exits = of_type(story.objects, "exit", pid=story.truth["pid"])
    identities = {e["start_ns"] for e in exits}
    check_eq(len(identities), len(exits), f"exits of one process: {exits}")
    return max(exits, key=lambda e: e["cpu_ns"] or 0)


def lost(objects, stage):
    return sum(o["count"] for o in of_type(objects, "loss", stage=stage))


def stall(monitor, until):
    """The reader is suspended until the condition holds."""
    os.kill(monitor.pid, signal.SIGSTOP)
    try:
        until()
    finally:
        os.kill(monitor.pid, signal.SIGCONT)


class Stalled:
    """A watched shell that produces a storm while the reader is suspended, and continues after it resumes."""

    def __init__(self, *options):
        with temp_dir() as folder:
            path = os.path.join(folder, "out")
            # Each line that it reads lets it continue.
            script = (f"read go; {WORKLOADS} forks 6000 0 >/dev/null; {WORKLOADS} storm 1 >/dev/null; echo stormed;"
                      f" read go; {WORKLOADS} usage burn 300; exit 7")
            monitor = start(["run", "--json", "-q", "--source", "ebpf", "-o", path, *options, "--", "sh", "-c",
                             script], stdin=subprocess.PIPE)
            wait_until(lambda: of_type(read_lines(path), "start"), "the start of the shell", 60)

            def storm():
                monitor.stdin.write(b"go\n")
                monitor.stdin.flush()
                check_eq(first_line(monitor), b"stormed\n", "the output of the shell")
            stall(monitor, storm)
            wait_until(lambda: of_type(read_lines(path), "loss"), "a loss object", 60)
            time.sleep(1)  # intervals without loss
            monitor.stdin.write(b"go\n")
            monitor.stdin.flush()
            self.truth = truth_of(first_line(monitor).decode())[0]
            self.code = monitor.wait()
            with open(path, encoding="utf-8") as file:
                self.objects = truth_of(file.read())
        self.stats = one(self.objects, "stats")


@test
def a_full_log_is_counted_marks_the_affected_samples_and_recovers():
    need_ebpf()
    story = Stalled("--hz", "1000", "--budget", "off")
    objects = story.objects
    check_eq(story.code, 7, "exit code")
    check(lost(objects, "kernel_log") > 0, "the log of a CPU was never full")
    check(lost(objects, "lifecycle") > 0, "the ring of lifecycle records was never full")
    check_eq(story.stats["lost"], sum(lost(objects, stage) for stage in STAGES), "lost, in the statistics")
    losses = of_type(objects, "loss")
    for o in losses:
        check(o["from_ns"] < o["to_ns"], f"a loss without a time: {o}")
    # Samples that overlap a loss are marked; samples after all losses are not.
    marked = [s for s in of_type(objects, "sample") if not s["complete"]]
    check(marked, "no sample is marked")
    for sample in of_type(objects, "sample"):
        touched = any(o["from_ns"] < sample["t_ns"] and sample["t_ns"] - sample["dt_ns"] < o["to_ns"]
                      for o in losses if o["stage"] in ("kernel_log", "lifecycle"))
        check(not touched or not sample["complete"], f"a sample that overlaps a loss is marked complete: {sample}")
    after = max(o["to_ns"] for o in losses)
    later = [s for s in of_type(objects, "sample") if s["t_ns"] - s["dt_ns"] > after]
    check(len(later) >= 100, f"{len(later)} samples after the last loss")
    check(all(s["complete"] for s in later), "a sample after the last loss is marked")
    check_stories(objects)


@test
def totals_are_correct_after_a_loss_and_no_process_stays_in_the_table():
    need_ebpf()
    story = Stalled("--hz", "100")
    check(story.stats["lost"] > 0, "nothing was lost")
    worker = worker_exit(story)
    check_eq(worker["complete"], True, "the process that came after the loss is complete")
    check_between(worker["cpu_ns"], story.truth["cpu_ns"], story.truth["cpu_ns"] * 1.001 + 2000, "its CPU time")
    # A process with a lost exit ends too: with unknown status, and marked.
    check_eq(story.stats["processes"], 0, "processes left in the table")
    starts = {(o["pid"], o["start_ns"]) for o in of_type(story.objects, "start")}
    exits = [(o["pid"], o["start_ns"]) for o in of_type(story.objects, "exit")]
    check_eq(len(exits), len(set(exits)), "exits, each once")
    check_eq(set(exits), starts, "processes that started and exited")
    for o in of_type(story.objects, "exit"):
        check(o["exit_code"] is not None or not o["complete"], f"complete although its exit status is unknown: {o}")


@test
def stat_ends_with_its_processes_even_if_their_exits_were_lost():
    need_ebpf()
    with temp_dir() as folder:
        path = os.path.join(folder, "out")
        shell = start(["-c", f"read go; {WORKLOADS} forks 6000 0"], program="sh", stdin=subprocess.PIPE)
        monitor = start(["stat", "--json", "-q", "--source", "ebpf", "-o", path, "-p", shell.pid])
        wait_until(lambda: of_type(read_lines(path), "start"), "the start of the shell")

        def finish():
            shell.stdin.write(b"go\n")
            shell.stdin.flush()
            shell.stdout.read()
            shell.wait()
        stall(monitor, finish)
        check_eq(monitor.wait(timeout=60), 0, "exit code")
        objects = read_lines(path)
    check(lost(objects, "lifecycle") > 0, "nothing was lost")
    check(of_type(objects, "exit", pid=shell.pid), "the shell does not end")
    check_eq(one(objects, "stats")["processes"], 0, "processes left in the table")


@test
def a_full_event_stream_is_counted_and_continues():
    need_ebpf()
    story = Stalled("--hz", "10", "--events")
    check(lost(story.objects, "stream") > 0, "the stream was never full")
    check_eq(story.stats["lost"], sum(lost(story.objects, stage) for stage in STAGES), "lost, in the statistics")
    after = max(o["to_ns"] for o in of_type(story.objects, "loss"))
    mine = [e for e in of_type(story.objects, "event") if e["pid"] == story.truth["pid"] and e["t_ns"] > after]
    kinds = {e["event"] for e in mine}
    check({"switch", "exit"} <= kinds, f"events of the process that came after the loss: {kinds}")
    worker = worker_exit(story)
    check_between(worker["cpu_ns"], story.truth["cpu_ns"], story.truth["cpu_ns"] * 1.001 + 2000, "its CPU time")


@test
def without_a_loss_every_event_of_the_stream_is_delivered():
    need_ebpf()
    watched = watch(["forks", 50, 1], "--events", "--hz", 10)
    stats = one(watched.objects, "stats")
    check_eq(stats["lost"], 0, "lost")
    parent = of_type(watched.objects, "exit")[-1]
    exits = of_type(watched.objects, "exit", ppid=parent["pid"])
    children = {e["pid"] for e in exits}
    check_eq(len(children), 50, "children")
    events = of_type(watched.objects, "event")
    for kind, field in (("fork", "child_pid"), ("exit", "pid")):
        check_eq({e[field] for e in events if e["event"] == kind} & children, children, f"{kind} events")
    # Each switch-out of a child is one event: as many as the kernel counted, plus the last one.
    for e in exits:
        switches = [s for s in events if s["event"] == "switch" and s["pid"] == e["pid"]]
        check_eq(len(switches), e["switches_voluntary"] + e["switches_involuntary"], "switches of one child")
    times = [e["t_ns"] for e in events]
    check(len(events) > 200, f"{len(events)} events")
    check(times[0] > 0 and max(times) > min(times), "events have no times")


@test
def five_thousand_threads_are_all_reported_or_counted_and_memory_is_bounded():
    need_ebpf()
    count = 5000
    watched = watch(["usage", "crowd", count, 1], "--threads", "--hz", 10, timeout=110)
    check_eq(watched.code, 0, "exit code")
    truth = truth_with(watched.truth, "status")
    ended = one(watched.objects, "exit", pid=truth["pid"])
    samples = of_type(watched.objects, "sample", pid=truth["pid"])
    threads = of_type(watched.objects, "thread", pid=truth["pid"])
    check_eq(max(s["threads"] or 0 for s in samples), count + 1, "most threads at once")
    stats = one(watched.objects, "stats")
    check_eq((stats["threads"], stats["processes"]), (0, 0), "left in the tables")
    check(stats["self_rss_peak_bytes"] < 32e6, f"{stats['self_rss_peak_bytes']} bytes of memory")
    check_eq(total(threads, "cpu_ns"), total(samples, "cpu_ns"), "CPU time of all threads")
    if stats["lost"] == 0:
        check_eq(len({t["tid"] for t in threads}), count + 1, "threads that were reported")
        check_eq((ended["complete"], ended["faults_minor"]), (True, truth["faults_minor"]), "complete, and faults")
    else:
        # The reader may not get the CPU for long; in that case it reports a loss.
        check_eq(ended["complete"], False, "complete, although something was lost")


@cases([("ebpf", "ebpf"), ("poll", "poll")])
def a_fork_bomb_is_reported_or_counted_and_memory_is_bounded(source):
    if source == "ebpf":
        need_ebpf()
    count = 4000
    # All of them exist for two seconds: many rounds of polling, also on a busy machine.
    watched = watch(["bomb", count, 2000], "--hz", 10, source=source, timeout=110)
    check_eq(watched.code, 0, "exit code")
    stories = check_stories(watched.objects)
    stats = one(watched.objects, "stats")
    check(stats["self_rss_peak_bytes"] < 32e6, f"{stats['self_rss_peak_bytes']} bytes of memory")
    check_eq(stats["processes"], 0, "left in the table")
    check_eq([process for process, story in stories.items() if story[-1]["type"] != "exit"], [], "processes without an exit")
    if stats["lost"] == 0:
        check(len(stories) >= count, f"{len(stories)} of {count} processes were reported")


@test
def memory_is_bounded_in_a_storm_of_short_lived_threads():
    need_ebpf()
    watched = watch(["usage", "storm", 2], "--hz", 100)
    stats = one(watched.objects, "stats")
    check(stats["self_rss_peak_bytes"] < 32e6, f"{stats['self_rss_peak_bytes']} bytes of memory")
    check_eq(stats["threads"], 0, "threads left in the table")
    made = next(t["threads"] for t in watched.truth if "threads" in t)
    check(made > 1000, f"only {made} threads in the storm")
    truth = next(t for t in watched.truth if "status" in t)
    ended = one(watched.objects, "exit", pid=truth["pid"])
    if stats["lost"] == 0:
        check_eq(ended["complete"], True, "complete")
        check_eq(ended["faults_minor"], truth["faults_minor"], "faults")
        # For each thread wait4() misses its last steps.
        check_between(ended["cpu_ns"], truth["cpu_ns"], truth["cpu_ns"] * 1.5, "CPU time")


main()
