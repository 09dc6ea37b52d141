# SPDX-License-Identifier: MIT
"""record -o FILE.pftrace: the file is read back as it was reported live, and other tools read it the same way."""
import collections
import os
import re
import shutil
import signal
import subprocess
import time

from lib import check, check_eq, check_in, json_lines, main, need_ebpf, run, skip, start, temp_dir, test
from livekit import WORKLOADS, of_type, wait_until
import protokit
import toolkit

# Threads that share the CPUs, processes that come and go, and one that sleeps. Few enough that no process ID is
# reused: the test identifies threads by them.
WORK = f"{WORKLOADS} threads 4 30 >/dev/null; {WORKLOADS} forks 10 2 >/dev/null; /bin/true; sleep 0.1"

def record(folder, *options, command=("sh", "-c", WORK), name="run.pftrace", code=0, **more):
    path = os.path.join(folder, name)
    tail = ["--", *command] if command else []
    result = run(["record", "-q", "-o", path, *options, *tail], **more)
    check_eq(result.code, code, f"exit code ({result.err.strip()})")
    return path, result


def report(path, *options):
    result = run(["report", "--json", *options, path])
    check_eq((result.code, result.err), (0, ""), "exit code and words")
    return result.out


def classes(text):
    return {o["event"]: o["count"] for o in of_type(json_lines(text), "class")}


@test
def the_report_on_the_file_equals_the_report_of_the_run_byte_for_byte():
    need_ebpf()
    with temp_dir() as folder:
        path, live = record(folder, "--json", "--threads", "--cmdline", "--hz", "100")
        check_eq(report(path, "--threads", "--cmdline"), live.out, "report")
        reported = json_lines(live.out)
        check(len(of_type(reported, "process")) >= 7, "a shell, its commands and their children")
        check(len(of_type(reported, "thread")) > 0, "threads")
        check_eq(reported[0]["complete"], True, "complete")


@test
def polling_records_counters_without_switches():
    with temp_dir() as folder:
        path = os.path.join(folder, "run.pftrace")
        live = run(["record", "--json", "--source", "poll", "-o", path, "--", "sh", "-c", "sleep 0.5"])
        check_eq(live.code, 0, "exit code")
        check_in("polling sees no context switches", live.err)
        check_eq(report(path), live.out, "report")
        check_eq(json_lines(live.out)[0]["source"], "poll", "source")


def gaps(path):
    """The switches that the trace has although no event was observed: the kernel reports some to no tracer."""
    with open(path, "rb") as file:
        bundles = [value for packet in protokit.packets(file.read()) for number, value in packet if number == 1]
    events = [value for bundle in bundles for number, value in protokit.fields(bundle) if number == 2]
    switches = [value for event in events for number, value in protokit.fields(event) if number == 4]
    return sum(3 not in dict(protokit.fields(switch)) for switch in switches)  # no priority of the outgoing thread


@test
def perfetto_reads_every_packet_and_counts_the_same():
    need_ebpf()
    with temp_dir() as folder:
        path, live = record(folder, "--json")
        theirs = toolkit.perfetto_reads(path)
        ours = classes(live.out)
        ours["sched_switch"] += gaps(path)
        for name in ("sched_switch", "sched_waking", "task_newtask", "sched_process_exec", "sched_process_exit"):
            check_eq(theirs["counts"].get(name, 0), ours.get(name, 0), name)
        check_eq(theirs["counts"]["unknown"], 0, "fields that Perfetto does not know")
        check(theirs["columns"], "columns of a compact bundle differ in length")
        missing = {o["pid"] for o in of_type(json_lines(live.out), "process")} - set(theirs["pids"])
        check_eq(missing, set(), "processes that Perfetto does not know")


@test
def perfettos_trace_processor_agrees_with_the_report():
    need_ebpf()
    with temp_dir() as folder:
        path, live = record(folder, "--json", "--alert", "cpu_percent>20 for 10ms")
        reported, ours = json_lines(live.out), classes(live.out)
        started = {o["pid"]: o for o in of_type(reported, "process") if o["start_ns"] >= reported[0]["start_ns"]}
        pids = ",".join(map(str, started))
        broken, [[switches]], [[woken]], kinds, states, processes, counters, alerts = toolkit.sql(
            path,
            "select name, value from stats where value != 0 and severity in ('error', 'data_loss')",
            "select count(*) from sched",
            "select count(*) from thread_state where waker_utid is not null",
            "select name, count(*) from ftrace_event group by name",
            "select distinct state from thread_state",
            f"""select pid, name, start_ts is not null, end_ts is not null,
                (select count(*) from thread where thread.upid = process.upid),
                (select count(*) from process_track t join slice s on s.track_id = t.id
                 where t.upid = process.upid and s.dur > 0) from process where pid in ({pids})""",
            f"""select distinct t.name from process_counter_track t join process using (upid) where pid in ({pids})""",
            "select count(*) from slice where name = 'alert'")
        check_eq(broken, [], "what it cannot use")
        ours["sched_switch"] += gaps(path)
        check_eq(switches, ours["sched_switch"], "switches")
        check(woken > 0.5 * ours["sched_waking"], f"wake-ups: {woken} of {ours['sched_waking']}")
        for name, count in kinds:
            if name != "sched_process_free":
                check_eq(count, ours[name], name)
        check({"Running", "R", "S"} <= {state for state, in states}, f"states of threads: {states}")
        check_eq(sorted(row[0] for row in processes), sorted(started), "processes, once each")
        for pid, name, begins, ends, threads, lives in processes:
            check_eq(name, started[pid]["name"], "name of a process")
            check((begins, ends) == (1, 1) and threads >= 1 and lives >= 1, f"lifetime of {name} ({pid})")
        names = {name for name, in counters}
        check({"cpu_percent", "rss_bytes", "faults_minor/s", "io_read_bytes/s"} <= names, f"counters: {names}")
        check_eq(alerts, [[ours.get("alert", 0)]], "alerts")
        check(ours.get("alert", 0) > 0, "no alert to look for")


def perf_switches(folder, until):
    """Switches by outgoing thread, from perf, while until() runs; None where perf cannot be used.

    Only of threads of which perf saw the start and the end, once each: a tid that was used twice, or before perf was ready, would
    count for two threads."""
    data = os.path.join(folder, "perf.data")
    perf = subprocess.Popen(["perf", "record", "-q", "-a", "-m", "8192", "-e", "sched:sched_switch", "-e",
                             "sched:sched_process_fork", "-o", data, "--", "sleep", "60"], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        time.sleep(2)
        if perf.poll() is not None:
            return None
        until()
    finally:
        perf.send_signal(signal.SIGINT)
        words = perf.communicate(timeout=60)[1].decode(errors="replace")
    check("lost" not in words.lower(), f"perf lost events: {words}")
    script = run(["script", "-i", data, "-F", "event,trace"], program="perf", timeout=100)
    check_eq(script.code, 0, f"perf script ({script.err[-200:]})")
    switches, starts, ends = collections.Counter(), collections.Counter(), collections.Counter()
    for line in script.out.splitlines():
        if "prev_pid=" in line:
            tid = int(line.split("prev_pid=")[1].split()[0])
            switches[tid] += 1
            ends[tid] += "prev_state=X" in line or "prev_state=Z" in line
        elif "child_pid=" in line:
            starts[int(line.split("child_pid=")[1].split()[0])] += 1
    return {tid: count for tid, count in switches.items() if starts[tid] == ends[tid] == 1}


@test
def perf_counts_the_same_number_of_switches_of_every_thread():
    need_ebpf()
    if shutil.which("perf") is None:
        skip("perf is not installed")
    with temp_dir() as folder:
        got = {}

        def work():
            got["path"], got["live"] = record(folder, "--json", timeout=100)
        theirs = perf_switches(folder, work)
        if theirs is None:
            skip("perf cannot record scheduler events here")
        reported = json_lines(got["live"].out)
        if not reported[0]["complete"]:
            skip(f"this machine is too busy: the recording lost {reported[0]['lost']} events, and counted them")
        events = run(["events", "--json", got["path"]], timeout=100)
        ours, begun, ended = collections.Counter(), set(), set()
        for o in json_lines(events.out):
            fields = o["fields"]
            if o["event"] == "sched_switch":
                ours[fields["prev_pid"]] += 1
                if fields["prev_state"] == 128:  # its last one
                    ended.add(fields["prev_pid"])
            elif o["event"] == "task_newtask":
                begun.add(fields["child_tid"])
        # Processes that lived entirely within both recordings, of the whole machine.
        both = begun & ended & set(theirs)
        watched = {o["pid"] for o in of_type(reported, "process")}
        check(len(both & watched) >= 6, f"processes to compare: {both & watched}")
        differing = {tid: (ours[tid], theirs[tid]) for tid in both if ours[tid] != theirs[tid]}
        check_eq(differing, {}, "switches by thread, ours and perf's")


@test
def the_file_of_a_killed_recorder_is_readable():
    need_ebpf()
    with temp_dir() as folder:
        path = os.path.join(folder, "run.pftrace")
        recorder = start(["record", "-q", "-a", "-o", path])
        wait_until(lambda: os.path.exists(path) and os.path.getsize(path) > 2000, "something in the file", 60)
        recorder.kill()
        recorder.wait()
        trace = json_lines(report(path))[0]
        check_eq(trace["end_ns"], None, "end of a recording that was never closed")
        check(trace["events"] > 0, "events")


@test
def a_full_disk_is_reported_and_the_recording_is_kept():
    need_ebpf()
    if os.geteuid() != 0:
        skip("a small disk needs root to mount it")
    with temp_dir() as folder:
        disk = os.path.join(folder, "disk")
        os.mkdir(disk)
        mounted = run(["-t", "tmpfs", "-o", "size=128k", "none", disk], program="mount")
        if mounted.code != 0:
            skip("cannot mount a small disk: " + mounted.err.strip())
        try:
            path, result = record(disk, "-a", "--hz", "1000", "--duration", "60", command=None, code=1, timeout=100)
            check_in("No space left on device", result.err)
            check_in("can be read", result.err)
            trace = json_lines(report(path))[0]
            check(trace["events"] > 0, "events")
            check_eq(trace["bad_events"], 0, "packets that are cut")
        finally:
            run([disk], program="umount")


@test
def a_file_that_cannot_be_opened_is_reported_before_the_command_runs():
    with temp_dir() as folder:
        mark = os.path.join(folder, "ran")
        result = run(["record", "-o", os.path.join(folder, "no", "run.pftrace"), "--", "touch", mark])
        check_eq(result.code, 1, "exit code")
        check_in("cannot write to", result.err)
        check(not os.path.exists(mark), "the command ran")


@test
def the_exit_status_is_that_of_the_command():
    with temp_dir() as folder:
        record(folder, "--source", "poll", command=("sh", "-c", "exit 7"), code=7)
        record(folder, "--source", "poll", command=("/does/not/exist",), code=127)


@test
def files_are_rotated_and_each_is_readable_alone():
    need_ebpf()
    with temp_dir() as folder:
        record(folder, "--max-size", "64K", "--rotate", "2", "--hz", "1000", "--latency", "20",
               command=("sh", "-c", f"{WORKLOADS} storm 4 >/dev/null"), timeout=100)
        names = sorted(os.listdir(folder))
        check_eq(len(names), 2, f"files: {names}")
        check("run.pftrace" not in names, f"the first file was kept: {names}")
        switches = 0
        for name in names:
            reported = json_lines(report(os.path.join(folder, name)))
            switches += reported[0]["switches"]
            check(of_type(reported, "process"), f"processes in {name}")
            check_eq(reported[0]["bad_events"], 0, "damage")
        check(switches > 0, "switches")


@test
def the_maximum_file_size_ends_the_recording():
    need_ebpf()
    with temp_dir() as folder:
        path, _ = record(folder, "--max-size", "64K", "--hz", "1000", "--latency", "20", "-a", command=None,
                         timeout=100)
        check(json_lines(report(path))[0]["end_ns"] is not None, "it was closed")


@test
def the_ring_is_written_on_a_signal():
    need_ebpf()
    with temp_dir() as folder:
        path = os.path.join(folder, "run.pftrace")
        recorder = start(["record", "-a", "-o", path, "--ring", "2s"], stderr=subprocess.PIPE)
        wait_until(lambda: os.path.exists(path), "the file", 60)
        time.sleep(3)
        check_eq(os.path.getsize(path), 0, "bytes before the signal")
        recorder.send_signal(signal.SIGUSR1)
        wait_until(lambda: os.path.getsize(path) > 0, "the ring in the file", 60)
        time.sleep(0.5)
        trace = json_lines(report(path))[0]
        check(trace["switches"] > 0, "switches")
        recorder.send_signal(signal.SIGINT)
        words = recorder.communicate(timeout=60)[1].decode()
        check_eq(recorder.returncode, 130, f"exit code ({words})")
        check_in("wrote " + path, words)


@test
def the_ring_is_written_when_its_condition_holds_and_otherwise_leaves_no_file():
    need_ebpf()
    with temp_dir() as folder:
        path, _ = record(folder, "--ring", "5s", "--trigger", "cpu_percent>1 for 10ms",
                         command=("sh", "-c", f"{WORKLOADS} burn 300 >/dev/null; sleep 1"))
        reported = json_lines(report(path))
        check(of_type(reported, "process"), "processes")
        record(folder, "--ring", "5s", "--trigger", "rss_bytes>1000000000000",
               command=("sleep", "0.3"), name="none.pftrace")
        check(not os.path.exists(os.path.join(folder, "none.pftrace")), "an empty file stays")


@test
def a_ring_that_is_never_written_is_summarized():
    need_ebpf()
    with temp_dir() as folder:
        path = os.path.join(folder, "run.pftrace")
        result = run(["record", "-o", path, "--ring", "5s", "--", "sh", "-c", WORK])
        check_eq(result.code, 0, f"exit code ({result.err})")
        line = [line for line in result.err.splitlines() if "was not written" in line][0]
        check(re.search(r"[0-9.]+ s, [1-9][0-9]* events, [1-9][0-9.]* [KM]B in the ring, written: 0, lost: [0-9]+; "
                        r"own cost [0-9.]+ % of a core", line), f"the last line: {line}")


main()
