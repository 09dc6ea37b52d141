# SPDX-License-Identifier: MIT
"""run, watch and open: what they return, what they refuse, and how they end."""
import asyncio
import os
import re
import subprocess
import sys
import time

import etwatch
from etlkit import make_etl
from etwatch import _system
from lib import cases, check, check_between, check_eq, check_in, main, need_ebpf, raises, run, start, temp_dir, test
from livekit import wait_until

BUSY = "import time\nend = time.time() + {}\nwhile time.time() < end: pass"
FAMILY = """
import subprocess, sys, threading, time
def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: pass
threads = [threading.Thread(target=spin, args=(0.05,)) for _ in range(3)]
for t in threads: t.start()
for t in threads: t.join()
subprocess.run(["/bin/true"], check=True)
sys.exit(7)
"""


def python(code):
    """A child that runs this code when go() is called."""
    return start(["-c", "input()\n" + code], program=sys.executable, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)


def go(child):
    child.stdin.write(b"\n")
    child.stdin.flush()


def sleepers(pid):
    """The children of a process that sleep."""
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
            found += file.read().split()
    return [child for child in found if name_of(child) == "sleep"]


def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return None


# ------------------------------------------------------------------------------- run


@test
def a_run_returns_status_processes_threads_and_samples():
    result = etwatch.run([sys.executable, "-c", FAMILY], hz=200)
    check_eq((result.status, result.returncode), (7, 7))
    names = result.processes["name"]
    check_eq(result.processes["pid"][0], result.pid)
    check(len(names) >= 2 and "true" in names, repr(names))
    check_eq(result.processes["exit_code"][names.index("true")], 0)
    total_ns = sum(result.processes["cpu_ns"])
    check(total_ns > 150_000_000, f"{total_ns} ns for three threads of 50 ms each")
    samples = result.samples
    check(len(samples) > 10 and set(samples["pid"]) <= set(result.processes["pid"]), repr(samples))
    if result.backend == "ebpf":
        threads = [ns for pid, ns in zip(result.threads["pid"], result.threads["cpu_ns"]) if pid == result.pid]
        check_eq(len(threads), 4, "threads of the command")
        check(sum(ns > 45_000_000 for ns in threads) >= 3, f"threads that worked: {threads}")
    check_eq(result.stats["lost"], 0)
    check_in("status 7", repr(result))


@test
def a_run_misses_nothing_of_a_command_that_is_over_at_once():
    need_ebpf()
    for _ in range(10):
        result = etwatch.run(["/bin/true"])
        check_eq((result.status, result.processes["name"], result.processes["exit_code"]), (0, ["true"], [0]))


@test
def a_run_passes_output_environment_and_folder():
    with temp_dir() as folder:
        result = etwatch.run(["sh", "-c", 'echo "$WORD"; pwd; echo no >&2; kill -9 $$'], capture_output=True, text=True,
                             cwd=folder, env={"WORD": "yes", "PATH": os.environ["PATH"]})
        check_eq((result.stdout.split(), result.stderr), (["yes", os.path.realpath(folder)], "no\n"))
        check_eq(result.status, -9)
        with open(os.path.join(folder, "out"), "w+", encoding="utf-8") as file:
            etwatch.run(["echo", "a b", "c'd"], stdout=file)
            file.seek(0)
            check_eq(file.read(), "a b c'd\n")


@test
def a_run_has_a_table_of_the_devices_that_it_read():
    command = ["sh", "-c", "sleep 0.5"]
    kept = etwatch.run(command, metrics=["energy_uj"], source="poll").devices
    # Energy meters, or the reason why there are none.
    check(len(kept) >= 1, "no row")
    check({"kind", "driver", "id", "t_ns", "energy_uj", "power_watts", "estimated", "problem"} <= set(kept.columns), kept.columns)
    for row in kept.rows():
        check((row["problem"] is None) != (row["index"] is None), str(row))
    check_eq(len(etwatch.run(command, source="poll").devices), 0, "devices that were not requested")


@cases([
    ("no such program", FileNotFoundError, "nowhere", ["nowhere/to/be/found"], {}),
    ("not in the path", FileNotFoundError, "no-such-program", ["no-such-program"], {}),
    ("no program", PermissionError, "passwd", ["/etc/passwd"], {}),
    ("one string", TypeError, "command", "ls -l", {}),
    ("nothing", ValueError, "command", [], {}),
    ("a rate too high", ValueError, "hz 1000", ["true"], {"hz": 1e6}),
    ("an unknown source", ValueError, "source magic", ["true"], {"source": "magic"}),
    ("an unknown metric", ValueError, "metrics magic", ["true"], {"metrics": ["magic"]}),
    ("both kinds of output", ValueError, "capture_output", ["true"], {"capture_output": True, "stdout": 1}),
])
def an_impossible_run_is_refused(kind, words, command, options):
    raises(kind, words, etwatch.run, command, **options)


@test
def a_run_past_its_timeout_is_ended():
    began = time.monotonic()
    raises(subprocess.TimeoutExpired, "", etwatch.run, ["sleep", "60"], timeout=0.3)
    raises(subprocess.TimeoutExpired, "", etwatch.run, ["sleep", "60"], timeout=0.3, capture_output=True)
    check(time.monotonic() - began < 50, "it continued")
    check_eq(sleepers(os.getpid()), [], "children that are left")


@test
def ctrl_c_ends_a_run_and_its_child():
    code = "import etwatch, sys\nprint('on', flush=True)\netwatch.run(['sleep', '60'])"
    child = start(["-X", "dev", "-c", code], program=sys.executable)
    child.stdout.readline()
    wait_until(lambda: sleepers(child.pid), "the command runs")
    sleeper = sleepers(child.pid)[0]
    child.send_signal(2)
    check_eq(child.wait(30), -2, "exit status")
    check_in(b"KeyboardInterrupt", child.stderr.read())
    check(not os.path.exists(f"/proc/{sleeper}"), "the command still runs")


# ----------------------------------------------------------------------------- watch


@test
def a_watch_ends_with_its_process():
    child = python(BUSY.replace("time.time", "time.process_time").format(0.4))  # however long it takes
    with etwatch.watch(child.pid, hz=1000, latency_ms=50) as watch:
        go(child)
        samples = list(watch)
    check(len(samples) > 100, f"{len(samples)} samples")
    check_eq({sample.pid for sample in samples}, {child.pid})
    times = [sample.t_ns for sample in samples]
    check_eq(times, sorted(set(times)), "times")
    if samples[0].source == "ebpf":
        check_between(sorted(sample.dt_ns for sample in samples)[len(samples) // 2], 999_000, 1_001_000, "interval")


@test
def a_watch_of_a_process_that_exits_before_it_begins_is_over():
    child = python("pass")
    watch = etwatch.watch(child.pid)
    go(child)
    wait_until(lambda: _system.has_ended(child.pid), "its end")
    with watch:
        check_eq([sample.pid for sample in watch if sample.pid != child.pid], [])


@test
def a_watch_can_be_limited_in_time():
    child = start(["60"], program="/bin/sleep")
    with etwatch.watch(child.pid, hz=50, latency_ms=50) as watch:
        check_eq(list(watch.samples(duration=0.5)), [], "samples of an idle process")
        batch = watch.read(timeout=0.1)
        check(batch is None or len(batch) < 3, repr(batch))
        raises(TimeoutError, "0.2", list, watch.samples(timeout=0.2))


@test
def a_watch_returns_threads_starts_and_exits_on_request():
    child = python(FAMILY)
    with etwatch.watch(child.pid, hz=100, threads=True, lifecycle=True) as watch:
        go(child)
        kinds = {}
        for sample in watch:
            kinds.setdefault(sample.type, []).append(sample)
    check_eq(set(kinds), {"start", "sample", "thread", "exit"})
    check(all(sample.tid for sample in kinds["thread"]), "a thread without tid")
    check_eq(kinds["start"][0].preexisting, True)
    check_eq([s.exit_code for s in kinds["exit"] if s.pid == child.pid], [7])
    check_eq(kinds["exit"][-1].get("exit_signal"), 0)


@test
def a_watch_works_with_async_for():
    async def count():
        child = python(BUSY.format(0.6))
        async with etwatch.watch(child.pid, hz=100, latency_ms=50) as watch:
            go(child)
            found = [sample async for sample in watch]
        return len(found), {sample.pid for sample in found} == {child.pid}

    async def both():
        return await asyncio.gather(count(), count())

    for number, same in asyncio.run(both()):
        check(number > 5 and same, f"{number} samples")


@test
def a_watch_can_select_by_name_or_everything():
    child = python(BUSY.format(60))
    go(child)
    for target in ("python", ["python", child.pid], None):
        with etwatch.watch(target, hz=20, latency_ms=50) as watch:
            check(any(sample.pid == child.pid for sample in watch.samples(duration=20) if True), f"{target!r}")


@test
def values_of_a_sample_are_available_by_name_and_in_columns():
    child = python(BUSY.format(60))
    go(child)
    with etwatch.watch(child.pid, hz=50, latency_ms=50) as watch:
        batch = next(b for b in watch.batches() if any(s.type == "sample" for s in b))
    sample = next(s for s in batch if s.type == "sample")
    check_eq(sample.as_dict()["cpu_ns"], sample.cpu_ns)
    check_eq(batch.column("cpu_ns"), [s.cpu_ns for s in batch])
    for name in ("pid", "name", "t_ns", "priority", "cpu_percent", "complete", "user", "type"):
        check_eq(batch.column(name), [getattr(s, name) for s in batch], name)
    check_eq(len(batch[1:]), len(batch) - 1)
    check_eq(batch[-1].t_ns, batch[len(batch) - 1].t_ns)
    raises(IndexError, "index", lambda: batch[len(batch)])
    raises(KeyError, "magic", batch.column, "magic")
    raises(AttributeError, "magic", lambda: sample.magic)
    from etwatch._batch import join
    both = join([batch, batch[:1]])
    check_eq([s.as_dict() for s in both], [s.as_dict() for s in [*batch, batch[0]]])


@cases([
    ("a dead process", ProcessLookupError, "pid 999999999", 999999999, {}),
    ("no process", ValueError, "target", 0, {}),
    ("half a process", TypeError, "target", [1.5], {}),
    ("nothing", ValueError, "target empty", [], {}),
    ("a rate of 0", ValueError, "hz 0.1", None, {"hz": 0}),
    ("a latency of 0", ValueError, "latency_ms", None, {"latency_ms": 0}),
    ("a budget of 0", ValueError, "budget", None, {"budget": 0}),
    ("a rate in words", TypeError, "hz", None, {"hz": "fast"}),
])
def an_impossible_watch_is_refused(kind, words, target, options):
    raises(kind, words, etwatch.watch, target, **options)


@test
def ctrl_c_ends_a_watch():
    code = ("import etwatch, os\nwith etwatch.watch(os.getppid(), hz=10) as w:\n    print('on', flush=True)\n"
            "    for s in w.batches(): pass")
    child = start(["-X", "dev", "-c", code], program=sys.executable)
    child.stdout.readline()
    child.send_signal(2)
    check_eq(child.wait(30), -2, "exit status")
    check_in(b"KeyboardInterrupt", child.stderr.read())


@test
def events_that_were_not_requested_are_refused():
    with etwatch.watch(os.getpid()) as watch:
        raises(etwatch.ETWSessionError, "events=True", lambda: next(watch.events()))


# ------------------------------------------------------------------------ recordings


def recording(folder, kind="mixed", *options):
    path = os.path.join(folder, kind + ".etl")
    make_etl(kind, path, *options)
    return path


@test
def a_recording_agrees_with_the_program():
    from lib import json_lines
    with temp_dir() as folder:
        path = recording(folder)
        report = json_lines(run(["report", "--json", "--threads", path]).out)
        with etwatch.open(path) as trace:
            reported = [o for o in report if o["type"] == "process"]
            check_eq([(r["pid"], r["name"], r["cpu_ns"]) for r in trace.processes],
                     [(o["pid"], o["name"], o["cpu_ns"]) for o in reported], "processes")
            check_eq(len(trace.threads), sum(o["type"] == "thread" for o in report), "threads")
            check_eq(trace.stats["events"], sum(o["count"] for o in report if o["type"] == "class"), "events")
            check_eq(sum(trace.classes["count"]), trace.stats["events"])
            check_eq(trace.files[0]["path"], path)
            check_between(trace.duration, 0.01, 100, "seconds")


@test
def events_of_a_recording_agree_with_the_program():
    from lib import json_lines
    with temp_dir() as folder:
        path = recording(folder)
        want = [(o["t_ns"], o["pid"], o["tid"], o["event"], o["fields"])
                for o in json_lines(run(["events", "--json", path]).out) if o["event"] == "Thread/CSwitch"]
        trace = etwatch.open(path)
        got = [(e.t_ns, e.pid, e.tid, e.event, e.fields) for e in trace.events(event="CSwitch")]
        check_eq(len(got), len(want), "switches")
        check_eq(got[:50], want[:50], "switches")
        check_eq(len(list(trace.events(provider="no such provider"))), 0)
        few = trace.events(provider="Windows Kernel", event=["CSwitch", "Thread/Start"])
        check_eq({re.sub(".*/", "", e.event) for e in few}, {"CSwitch", "Start"})


@test
def an_event_of_a_recording_has_its_state_and_its_own_time():
    with temp_dir() as folder:
        states = [e.state for e in etwatch.open(recording(folder, "states")).events()]
        check_eq(states, ["decoded", "decoded", "partly", "partly", "raw", "raw"])
        trace = etwatch.open(recording(folder, "clock-set-back"))
        hour = 3600 * 10**9
        times = [e.t_ns for e in trace.events()]
        check_eq([t - times[3] for t in times[:4]], [-hour, 10**9 - hour, 2 * 10**9 - hour, 0], "times")
        check_eq(trace.stats["clock_set_back_ns"], hour)


@test
def samples_of_a_recording_add_up_to_its_totals():
    with temp_dir() as folder:
        trace = etwatch.open(recording(folder, "switches"))
        totals = {(r["pid"], r["start_ns"]): r["cpu_ns"] for r in trace.processes}
        sums = {}
        for row in trace.samples(hz=1000).rows():
            key = (row["pid"], row["start_ns"])
            sums[key] = sums.get(key, 0) + (row["cpu_ns"] or 0)
        check(sums, "no samples")
        for key, total in sums.items():
            check_between(total, (totals[key] or 0) - 1000, (totals[key] or 0) + 1000, f"cpu_ns of {key}")
        raises(ValueError, "hz 1000", trace.samples, 5000)


@test
def a_perfetto_recording_is_read_in_the_same_way():
    need_ebpf()
    with temp_dir() as folder:
        path = os.path.join(folder, "t.pftrace")
        result = run(["record", "-q", "-o", path, "--", sys.executable, "-c", "sum(range(2000000))"])
        check_eq(result.code, 0, result.err)
        with etwatch.open(path) as trace:
            check(any(name.startswith("python") for name in trace.processes["name"]), repr(trace.processes["name"]))
            check(len(trace.samples(hz=100)) > 0, "no samples")
            switches = list(trace.events(event="sched_switch"))
            check(switches and "next_pid" in switches[0].fields, repr(switches[:1]))
            check_eq(trace.lost, 0)


@test
def progress_is_reported_and_an_exception_in_it_ends_the_reading():
    with temp_dir() as folder:
        path = recording(folder, "switches", "--events", 300000)
        reported = []
        trace = etwatch.open(path, progress=lambda done, whole: reported.append((done, whole)))
        check(trace.stats["events"] >= 300000, "events")
        check(reported and all(0 <= done <= whole for done, whole in reported), repr(reported[:5]))

        def enough(_done, _whole):
            raise KeyError("enough")

        stopped = etwatch.open(path, progress=enough)
        raises(KeyError, "enough", lambda: stopped.stats)
        raises(KeyError, "enough", lambda: list(stopped.events()))


@cases([
    ("not there", FileNotFoundError, "none.etl", "none.etl", {}),
    ("a folder", IsADirectoryError, "", ".", {}),
    ("no recording", etwatch.ETWError, "not recording", __file__, {}),
    ("no path", TypeError, "path 7", 7, {}),
    ("nothing", ValueError, "path", [], {}),
    ("bytes", TypeError, "path", b"x.etl", {}),
    ("an end before the start", ValueError, "end", __file__, {"start": 2, "end": 1}),
    ("a progress that cannot be called", TypeError, "progress", __file__, {"progress": 7}),
    ("a pid in words", TypeError, "pids", __file__, {"pids": ["x"]}),
])
def a_recording_that_cannot_be_read_is_refused(kind, words, path, options):
    raises(kind, words, etwatch.open, path, **options)


@test
def a_closed_recording_raises_an_error_and_may_be_closed_again():
    with temp_dir() as folder:
        trace = etwatch.open(recording(folder, "switches"))
        rows = trace.processes.rows()
        next(rows)
        trace.close()
        trace.close()
        check(len(list(rows)) > 3, "a started iteration does not continue")
        raises(etwatch.ETWSessionError, "closed", lambda: trace.stats)
        raises(etwatch.ETWSessionError, "closed", lambda: list(trace.processes.rows()))


main()
