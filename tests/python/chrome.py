# SPDX-License-Identifier: MIT
"""etwatch.chrome: slices of other profilers on the time axis of a recording, as Perfetto's own trace processor reads it."""
import gzip
import json
import os

from lib import check, check_between, check_eq, check_in, main, raises, run, skip, temp_dir, test
from toolkit import environment, need, python, sql

import etwatch.chrome
from etwatch._private_file import appending

PROGRAM = """
import json, os, sys, threading, time
begun, events = time.time_ns(), []
def work(name):
    tid = threading.get_native_id()
    for i in range(3):
        at = time.time_ns()
        end = time.perf_counter() + 0.01
        while time.perf_counter() < end:
            pass
        events.append({"ph": "X", "name": f"{name}{i}", "cat": "test", "pid": os.getpid(), "tid": tid,
                       "ts": (at - begun) / 1000, "dur": (time.time_ns() - at) / 1000})
thread = threading.Thread(target=work, args=("other",))
thread.start()
work("main")
thread.join()
events += [{"ph": "i", "name": "mark", "pid": os.getpid(), "tid": os.getpid(), "ts": 1.5},
           {"ph": "M", "name": "thread_name", "pid": 0, "tid": "stream 7", "args": {"name": "GPU"}},
           {"ph": "B", "name": "kernel", "pid": 0, "tid": "stream 7", "ts": 10},
           {"ph": "E", "pid": 0, "tid": "stream 7", "ts": 30}, {"ph": "C", "name": "memory", "ts": 1, "args": {"a": 1}},
           {"ph": "X", "name": "no time"}]
with open(sys.argv[1], "w") as file:
    json.dump({"traceEvents": events, "baseTimeNanoseconds": begun}, file)
"""


def recorded(folder):
    """A recording of a program and the trace that it wrote."""
    trace, chrome = os.path.join(folder, "run.pftrace"), os.path.join(folder, "other.json")
    result = run(["record", "-q", "-o", trace, "--", python(), "-c", PROGRAM, chrome])
    check_eq(result.code, 0, result.err)
    return trace, chrome


@test
def slices_of_a_profiler_are_on_the_threads_of_the_recording():
    need("viztracer")
    with temp_dir() as folder:
        trace, chrome = recorded(folder)
        merged = os.path.join(folder, "merged.pftrace")
        check_eq(etwatch.chrome.merge(trace, chrome, merged), (7, 1, 2), "slices, instants, skipped")
        with open(chrome, encoding="utf-8") as file:
            content = json.load(file)
        slices = "slice JOIN thread_track ON slice.track_id = thread_track.id JOIN thread USING (utid)"
        found, kernel, sched, ran = sql(
            merged,
            f"SELECT slice.name AS name, slice.ts AS ts, slice.dur AS dur, tid FROM {slices} WHERE category = 'test'",
            "SELECT slice.dur AS dur, track.name AS name FROM slice JOIN track ON slice.track_id = track.id "
            "WHERE slice.name = 'kernel'",
            "SELECT (SELECT boot.clock_value FROM clock_snapshot AS boot WHERE boot.clock_name = 'BOOTTIME' LIMIT 1) - "
            "(SELECT wall.clock_value FROM clock_snapshot AS wall WHERE wall.clock_name = 'REALTIME' LIMIT 1) AS offset",
            f"SELECT count(DISTINCT slice.id) AS count FROM {slices} JOIN sched USING (utid) WHERE category = 'test' AND "
            "sched.ts < slice.ts + slice.dur AND sched.ts + sched.dur > slice.ts")
        offset_ns = sched[0][0]
        true = {event["name"]: event for event in content["traceEvents"] if event.get("cat") == "test"}
        check_eq(sorted(row[0] for row in found), sorted(true), "slices")
        for name, ts, dur, tid in found:
            event = true[name]
            check_eq(tid, event["tid"], "thread")
            # The trace processor's answer has times as double: 256 ns.
            check_between(ts - content["baseTimeNanoseconds"] - offset_ns, event["ts"] * 1000 - 1000, event["ts"] * 1000 + 1000,
                          f"start of {name}")
            check_between(dur, event["dur"] * 1000 - 4, event["dur"] * 1000 + 4, f"length of {name}")
        check_eq(kernel, [[20000, "other.json: 0 GPU"]], "a slice without a thread")
        if ran != [[0]]:  # else the recording was made by polling
            check_eq(ran, [[6]], "slices in which their thread ran")


@test
def viztracer_lines_up():
    need("viztracer")
    with temp_dir() as folder:
        script, trace, chrome = (os.path.join(folder, name) for name in ("script.py", "run.pftrace", "viz.json"))
        with open(script, "w", encoding="utf-8") as file:
            file.write("import time\ndef busy():\n    end = time.time() + 0.05\n    while time.time() < end: pass\nbusy()\n")
        result = run(["record", "-q", "-o", trace, "--", python(), "-m", "viztracer", "--quiet", "-o", chrome, script])
        check_eq(result.code, 0, result.err)
        merged = os.path.join(folder, "merged.pftrace")
        result = run(["-m", "etwatch.chrome", trace, chrome, "-o", merged, "--label", "viztracer"], program=python(),
                     env=environment())
        check_eq(result.code, 0, result.err)
        check_in("slices", result.out)
        slices = "slice JOIN thread_track ON slice.track_id = thread_track.id JOIN thread USING (utid)"
        inside, = sql(merged, f"SELECT count(*) AS count FROM {slices} JOIN process USING (upid) WHERE slice.name LIKE 'busy%' "
                              "AND slice.ts > process.start_ts AND slice.dur > 49000000")
        check_eq(inside, [[1]], "the function in the time of its process")


@test
def what_cannot_be_merged_is_refused():
    with temp_dir() as folder:
        trace, chrome, other = (os.path.join(folder, name) for name in ("run.pftrace", "other.json", "out.pftrace"))
        with open(trace, "wb") as file:
            file.write(b"\x0a\x00")
        for content, words in (("{", "not a trace in Chrome's format"), ("{}", "it has no traceEvents"),
                               ("[]", "does not say when it began")):
            with open(chrome, "w", encoding="utf-8") as file:
                file.write(content)
            raises(ValueError, words, etwatch.chrome.merge, trace, chrome, other)
        raises(ValueError, "the recording itself", etwatch.chrome.merge, trace, chrome, trace, begin_ns=1)
        with gzip.open(chrome + ".gz", "wt") as file:
            file.write('[{"ph": "X", "ts": 1, "name": "x"}]')
        check_eq(etwatch.chrome.merge(trace, chrome + ".gz", other, begin_ns=10**18).slices, 1, "slices")
        with open(trace, "wb") as file:
            file.write(b"hello")
        os.remove(other)
        raises(ValueError, "not a recording", etwatch.chrome.merge, trace, chrome + ".gz", other, begin_ns=1)
        check(not os.path.exists(other), "a file for an error")


def inputs(folder):
    """A recording and a trace that can be merged."""
    trace, chrome = os.path.join(folder, "run.pftrace"), os.path.join(folder, "other.json")
    with open(trace, "wb") as file:
        file.write(b"\x0a\x00")
    with open(chrome, "w", encoding="utf-8") as file:
        file.write('[{"ph": "X", "ts": 1, "name": "x"}]')
    return trace, chrome


def mode(path):
    return os.stat(path).st_mode & 0o777


@test
def a_merged_recording_is_private_and_keeps_the_mode_of_the_file_that_it_replaces():
    if os.name != "posix":
        skip("Windows has no file modes")
    with temp_dir() as folder:
        trace, chrome = inputs(folder)
        output, second_name = os.path.join(folder, "out.pftrace"), os.path.join(folder, "second")
        before = os.umask(0)
        try:
            etwatch.chrome.merge(trace, chrome, output, begin_ns=10**18)
            check_eq(oct(mode(output)), "0o600", "mode of a new file")
            os.chmod(output, 0o644)
            os.link(output, second_name)
            size = os.path.getsize(second_name)
            etwatch.chrome.merge(trace, chrome, output, begin_ns=10**18, label="a longer label")
            check_eq(oct(mode(output)), "0o644", "mode of a file that was there")
            check_eq(os.path.getsize(second_name), size, "size of the file under its second name")
            check(os.path.getsize(output) > size, "nothing was written")
            with appending(os.path.join(folder, "samples.jsonl")) as file:
                file.write("{}\n")
            check_eq(oct(mode(file.name)), "0o600", "mode of new samples")
        finally:
            os.umask(before)


@test
def a_link_is_followed_only_if_root_or_the_caller_owns_it():
    if os.name != "posix" or os.geteuid() != 0:
        skip("needs root to make a link of another user")
    with temp_dir() as folder:
        trace, chrome = inputs(folder)
        victim, link = os.path.join(folder, "victim"), os.path.join(folder, "out.pftrace")
        with open(victim, "w", encoding="utf-8") as file:
            file.write("precious")
        os.symlink("victim", link)
        os.chown(link, 65534, 65534, follow_symlinks=False)
        raises(OSError, "a symbolic link of another user", etwatch.chrome.merge, trace, chrome, link, begin_ns=10**18)
        raises(OSError, "a symbolic link of another user", appending, link)
        check_eq(os.path.getsize(victim), len("precious"), "size of the victim")
        os.chown(link, 0, 0, follow_symlinks=False)
        etwatch.chrome.merge(trace, chrome, link, begin_ns=10**18)
        check(os.path.islink(link) and os.path.getsize(victim) > len("precious"), "an own link was not followed")
        check_eq(sorted(os.listdir(folder)), ["other.json", "out.pftrace", "run.pftrace", "victim"], "files")


@test
def a_failed_merge_leaves_the_file_that_was_there():
    with temp_dir() as folder:
        trace, chrome = inputs(folder)
        output = os.path.join(folder, "out.pftrace")
        with open(output, "w", encoding="utf-8") as file:
            file.write("before")
        # A time that no 64-bit integer holds, when the first event is already written.
        with open(chrome, "w", encoding="utf-8") as file:
            file.write('[{"ph": "X", "ts": 1, "name": "x"}, {"ph": "X", "ts": Infinity, "name": "y"}]')
        raises(ValueError, "a time that is no number", etwatch.chrome.merge, trace, chrome, output, begin_ns=10**18)
        with open(output, encoding="utf-8") as file:
            check_eq(file.read(), "before", "the file")
        check_eq(len(os.listdir(folder)), 3, "number of files")


main()
