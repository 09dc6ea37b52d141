# SPDX-License-Identifier: MIT
"""The commands on a live ETW session: the interface for scripts is the same as with every other source.

The session is the emulator's (tests/windows/etwatch_emulated.c): it begins with the program and plays a recording.
Under Wine it is the program for Windows.
"""
import collections
import contextlib
import importlib.util
import os

import lib
from commandkit import exits, run_tool, running_process, touches
from etlkit import make_etl
from lib import ROOT, cases, check, check_eq, check_in, json_lines, main, run, temp_dir, test

WAYS = [("event by event", ""), ("whole buffers", ",buffers")]


def borrow(script):
    """Imports the lists and checks of another script without its tests."""
    spec = importlib.util.spec_from_file_location(os.path.basename(script), os.path.join(ROOT, "tests", script + ".py"))
    module = importlib.util.module_from_spec(spec)
    kept, run_all = list(lib._tests), lib.main
    lib.main = lambda: None
    spec.loader.exec_module(module)
    lib._tests[:], lib.main = kept, run_all
    return module


NAMES = borrow("contract/json_names")
EVERY_KIND = ("process,thread,image,counters,cswitch,dpc,interrupt,syscall,disk,filenames,disk-init,dispatcher,pagefaults,"
              "hardfaults,virtualalloc,network,splitio,driver,profile,fileio,fileio-init")


@contextlib.contextmanager
def recording(*arguments):
    """The path of a recording that lasts some tenths of a second."""
    with temp_dir() as folder:
        path = os.path.join(folder, "made.etl")
        make_etl((arguments or ("mixed",))[0], path, "--events", 20000, *arguments[1:])
        yield path


def emulated(how, *arguments):
    return run_tool("etwatch_emulated", how, *arguments)


def objects_of(result, code=0):
    check_eq(result.code, code, f"exit code ({result.err.strip()})")
    return json_lines(result.out)


# ------------------------------------------------------------------------ output


@cases(WAYS)
def samples_have_every_name_and_are_in_order(way):
    with recording() as path:
        objects = objects_of(emulated(path + way, "stat", "-a", "--json", "-q", "--threads", "--hz", "100", "--duration", "0.5"))
    NAMES.check_types(objects)
    NAMES.check_order(objects)
    NAMES.check_names(objects)
    check_eq(objects[0]["source"], "etw", "source")
    check_eq({o["source"] for o in objects if o["type"] == "sample"}, {"etw"}, "sources of the samples")
    check_eq((objects[-1]["lost"], objects[-1]["undecoded"]), (0, 0), "lost and undecoded")
    check(sum(o["type"] == "thread" for o in objects) > 20, "few threads")


@cases(WAYS)
def events_have_every_name_and_are_those_of_the_recording(way):
    names = """type event t_ns cpu pid tid name next_pid next_tid waker_pid waker_tid child_pid child_tid
        state io_wait wait_reason wait_ns ready_ns priority exit_code exit_signal""".split()
    with recording() as path:
        objects = objects_of(emulated(path + way, "stat", "-a", "--json", "-q", "--events", "--duration", "0.5"))
        counted = {o["event"]: o["count"] for o in json_lines(run(["events", "--json", "--count-by-type", path]).out)}
        reported = [o for o in json_lines(run(["events", "--json", "--event", "cswitch", path]).out)]
    events = [o for o in objects if o["type"] == "event"]
    for o in events:
        check_eq(list(o), names, "names of an event")
    kinds = collections.Counter(o["event"] for o in events)
    want = {"switch": counted["Thread/CSwitch"], "wakeup": counted["Dispatcher/ReadyThread"],
            "fork": counted["Thread/Start"], "exit": counted["Thread/Stop"]}
    check_eq(dict(kinds), want, "kinds of events")
    switches = [(o["cpu"], o["tid"], o["next_tid"]) for o in events if o["event"] == "switch"]
    wanted = [(o["cpu"], o["fields"]["OldThreadId"], o["fields"]["NewThreadId"]) for o in reported]
    check_eq(collections.Counter(switches), collections.Counter(wanted), "switches")
    check({o["state"] for o in events if o["event"] == "switch"} <= {0, 1, 2, 128}, "other states")
    # The wait reason of a thread, and for the incoming thread how long it waited and which thread woke it.
    for o in events:
        waits = o["event"] == "switch" and o["state"] in (1, 2) and o["tid"] != 0
        check_eq(o["wait_reason"] is not None, waits, f"reason in {o}")
    woken = [o for o in events if o["event"] == "switch" and o["waker_tid"] is not None]
    check(len(woken) > 20, "no wake-up was found")
    check(all(0 <= o["ready_ns"] <= o["wait_ns"] for o in woken), "ready for longer than off the CPU")


@cases(WAYS)
def inferences_are_those_that_the_runtime_logged(way):
    """Their session plays the recording earlier than that of the switches, so the causes are those of tests/etl/onnx.py only there."""
    with recording("onnx") as path:
        objects = objects_of(emulated(path + way, "onnx", "-a", "--json", "-q", "--duration", "2"))
        rest = objects_of(emulated(path + way, "onnx", "-n", "hog", "--json", "-q", "--duration", "1"))
    spans = [o for o in objects if o["type"] == "span"]
    check_eq([(s["kind"], s["session"], s["pid"], s["tid"], s["dt_ns"]) for s in spans],
             [("load", "mlp.onnx", 4000, 4004, 10_000_000)] +
             [("inference", "mlp.onnx", 4000, 4004, ns) for ns in [4_000_000] * 9 + [46_000_000]], "spans")
    for s in spans:
        causes = ("work", "runq_wait", "throttled", "fault", "disk_wait", "lock_wait", "process_wait", "sleep", "unknown")
        check_eq(sum(s[f"{name}_ns"] for name in causes), s["dt_ns"], "sum of the causes")
    check_eq((objects[-1]["type"], objects[-1]["lost"]), ("stats", 0), "the last object, lost")
    check_eq([s for s in rest if s["type"] == "span"], [], "inferences of a process that infers nothing")


@test
def only_events_of_selected_processes_are_reported_unless_all_are_requested():
    with recording() as path:
        objects = objects_of(emulated(path, "stat", "-n", "code", "--json", "-q", "--events", "--duration", "0.5"))
    pids = {o["pid"] for o in objects if o["type"] == "start"}
    events = [o for o in objects if o["type"] == "event"]
    check(pids and events, "no process or no event")
    for o in events:
        check({o["pid"], o["next_pid"], o["child_pid"]} & pids, f"of another process: {o}")


@cases(WAYS)
def users_come_from_the_events_even_of_processes_that_are_gone(way):
    with recording() as path:
        live = objects_of(emulated(path + way, "stat", "-a", "--json", "-q", "--duration", "0.5"))
        recorded = [o for o in json_lines(run(["report", "--json", path]).out) if o["type"] == "process" and o["exit_ns"]]
    want = collections.Counter((o["pid"], o["name"], o["user"]) for o in recorded)
    check({"SYSTEM", None} <= {o["user"] for o in recorded}, "users of the recording")
    got = collections.Counter((o["pid"], o["name"], o["user"]) for o in live if o["type"] == "exit")
    # Where the events have no user, the system is queried, and Wine may have a process of that pid.
    for pid, name, user in list(got - want):
        if want[pid, name, None] > 0 and user is not None:
            got[pid, name, None] += got.pop((pid, name, user))
    check_eq(got, want, "users")


@test
def waits_and_wakers_are_those_of_the_recording():
    def pairs(objects):
        return {(o["tid"], o["waker_tid"]): (o["count"], o["wait_ns"], o["wait_max_ns"], o["blocked_ns"], o["ready_ns"])
                for o in objects if o["type"] == "wake"}
    with recording("switches") as path:
        live = pairs(objects_of(emulated(path, "waits", "-a", "--json", "-q", "--duration", "0.5")))
        want = pairs(json_lines(run(["waits", "--json", "-q", path]).out))
        check_eq(emulated(path, "record", "-q", "-o", path + ".pftrace", "--duration", "0.5").code, 0, "exit code of record")
        recorded = pairs(json_lines(run(["waits", "--json", "-q", path + ".pftrace"]).out))
    check(len(want) > 20, f"only {len(want)} pairs")
    check_eq(live, want, "pairs")
    check_eq(recorded, want, "pairs of what was recorded")


@cases([("requested", ["--events"], True), ("not requested", [], False)])
def session_options_do_not_disable_needed_events(more, want):
    with recording() as path:
        meta = objects_of(emulated(path, "stat", "-a", "--json", "-q", "--kernel", "process", *more, "--duration", "0.3"))[0]
    check_eq({name in meta["available"] for name in ("cpu_ns", "runq_wait_ns")}, {want}, "switch metrics available")


@cases([(f"{enabled}, {read}", enabled, read) for enabled in ("flags", "providers") for read in ("events", "buffers")])
def every_way_gives_the_same_switches(enabled, read):
    with recording() as path:
        counted = {o["event"]: o["count"] for o in json_lines(run(["events", "--json", "--count-by-type", path]).out)}
        os.environ["ETWATCH_ETW"] = f"{enabled},{read}"
        try:
            objects = objects_of(emulated(path + ",buffers", "stat", "-a", "--json", "-q", "--events", "--duration", "0.5"))
        finally:
            del os.environ["ETWATCH_ETW"]
    check_eq(sum(o["type"] == "event" and o["event"] == "switch" for o in objects), counted["Thread/CSwitch"], "switches")
    # The emulated Windows 11 (22631) has no keyword for reads and writes: without flags they are unknown, not 0.
    known = {o["io_read_bytes"] is not None for o in objects if o["type"] == "exit"}
    check_eq(True in known, enabled == "flags", "file I/O known")


# ------------------------------------------------------------------------- recording


def report(path, *options):
    result = run(["report", "--json", *options, path])
    check_eq((result.code, result.err), (0, ""), "exit code and messages of report")
    return result.out


@cases([(f"{what}, {way}", options, word) for what, *options in (("every process", "-a"), ("a name", "-n", "code"),
                                                                ("a pid", "-p", "PID"), ("at 1000 Hz", "-a", "--hz", "1000"),
                                                                ("with devices", "-a", "--metrics", "all"))
        for way, word in WAYS])
def a_recording_is_read_back_as_it_was_reported(options, way):
    with recording() as path, temp_dir() as folder:
        out = os.path.join(folder, "run.pftrace")
        with running_process() as pid:
            options = [str(pid) if word == "PID" else word for word in options]
            result = emulated(path + way, "record", "-q", "--json", "--threads", "-o", out, "--duration", "0.5", *options)
        reported = objects_of(result)
        check_eq(report(out, "--threads"), result.out, "report")
        events = json_lines(run(["events", "--json", "--count-by-type", out]).out)
        counted = {o["event"]: o["count"] for o in json_lines(run(["events", "--json", "--count-by-type", path]).out)}
    check_eq((reported[0]["source"], reported[0]["lost"], reported[0]["complete"]), ("etw", 0, True),
             "source, lost and complete")
    check_eq(reported[0]["switches"], counted["Thread/CSwitch"], "switches")
    found = {o["event"]: o["count"] for o in events}
    check_eq((found["sched_switch"], found["sched_waking"], found["task_newtask"], found["sched_process_exit"]),
             (counted["Thread/CSwitch"], counted["Dispatcher/ReadyThread"], counted["Thread/Start"], counted["Thread/Stop"]),
             "events")
    check("-a" not in options or sum(o["type"] == "process" for o in reported) > 10, "few processes")


@cases(WAYS)
def losses_are_counted_in_the_recording_too(way):
    with recording() as path, temp_dir() as folder:
        out = os.path.join(folder, "run.pftrace")
        # Every class of the recording is enabled: the emulator loses one of 97 events that the session gets.
        result = emulated(path + ",loses" + way, "record", "-q", "--json", "--threads", "-o", out, "--duration", "0.5",
                          "--kernel", EVERY_KIND)
        reported = objects_of(result)
        check_eq(report(out, "--threads"), result.out, "report")
        whole = json_lines(run(["report", "--json", path]).out)[0]
    check_eq(reported[0]["lost"], whole["events"] // 97, "lost")
    check_eq(reported[0]["complete"], False, "complete")


@test
def a_recording_of_a_command_ends_with_its_status():
    with recording() as path, temp_dir() as folder:
        out = os.path.join(folder, "run.pftrace")
        result = emulated(path, "record", "--json", "-q", "-o", out, "--", *exits(5))
        check_eq(result.code, 5, f"exit code ({result.err})")
        check_eq(report(out), result.out, "report")


# ------------------------------------------------------------------- errors


@cases([
    ("no rights", "no-rights", ["--no-fallback"], 3, "access is denied", "--elevate), or add the user to the group Performance Log Users"),
    ("no rights for the requested source", "no-rights", ["--source", "etw"], 3, "access is denied", "--elevate), or add the user to the group Performance Log Users"),
    ("no privilege", "no-privilege", ["--no-fallback", "--kernel", "profile"], 3, "", "Profile system performance"),
    ("all loggers in use", "full", ["--no-fallback"], 1, "all system loggers", "etwatch sessions"),
    ("no such session", "logger", ["--session", "no-such"], 1, "no-such", "etwatch sessions"),
    ("no such provider", "logger", ["--no-fallback", "--enable-provider", "No-Such-Provider"], 2, "No-Such-Provider", ""),
    ("no such kind", "logger", ["--kernel", "process,swaps"], 2, '"swaps" is not a kind', ""),
    ("a buffer too large", "logger", ["--buffer-size", "99999"], 2, "from 4K to 16M", ""),
    ("maximum below minimum", "logger", ["--no-fallback", "--min-buffers", "64", "--max-buffers", "8"], 2, "", ""),
])
def an_error_has_its_code_and_a_fix(how, arguments, code, words, fix):
    result = emulated(how, "stat", "-a", "--json", "--duration", "0.3", *arguments)
    check_eq((result.code, result.out), (code, ""), f"exit code and output ({result.err})")
    check_in(words, result.err, "what")
    check_in(fix, result.err, "what helps")
    check_eq(result.err.count("\n"), 1, "lines on standard error")


@test
def a_session_of_ours_that_cannot_be_stopped_stays_and_another_name_is_used():
    result = emulated("stuck", "stat", "-a", "--json", "--duration", "0.3", "--no-fallback")
    check_eq((result.code, objects_of(result)[0]["source"]), (0, "etw"), result.err)


@test
def without_the_privilege_to_profile_the_session_goes_on_and_says_so():
    result = emulated("no-privilege", "stat", "-a", "--json", "--duration", "0.3", "--kernel", "cswitch,profile")
    meta = objects_of(result)[0]
    check_eq((result.code, meta["source"]), (0, "etw"), result.err)
    check_in("cannot profile", meta["fallback"], "fallback")
    check_in("goes on without it", result.err, "message")


@cases([("no rights", "no-rights", "access is denied"), ("all loggers in use", "full", "all system loggers")])
def without_a_session_it_polls_and_reports_the_reason_in_one_line(how, words):
    result = emulated(how, "stat", "-a", "--json", "--duration", "0.3")
    meta = objects_of(result)[0]
    check_eq(meta["source"], "poll", "source")
    check_in(words, meta["fallback"], "fallback")
    check_eq(result.err.count("\n"), 1, "lines on standard error")


@test
def a_session_that_is_stopped_repeatedly_is_replaced_by_polling():
    with recording() as path:
        # Each stop is noticed at the next wake-up, of which there are many: also a busy machine has them.
        result = emulated(path + ",stops", "stat", "-a", "--json", "--duration", "3", "--latency", "50")
    objects = objects_of(result)
    check_eq(objects[0]["source"], "etw", "source at the beginning")
    check_eq(sum(o["count"] for o in objects if o["type"] == "loss"), 3, "gaps")
    check_eq(objects[-1]["source"], "poll", "source at the end")


@cases([("a recording written by ETW", "x.etl"), ("of ours", "x.pftrace")])
def a_failed_recording_leaves_no_file_and_starts_no_command(name):
    with temp_dir() as folder:
        mark, path = os.path.join(folder, "mark"), os.path.join(folder, name)
        result = emulated("no-rights", "record", "-o", path, "--no-fallback", "--", *touches(mark))
        check_eq(result.code, 3, f"exit code ({result.err})")
        check_in("access is denied", result.err)
        check(not os.path.exists(mark), "the command ran")
        check(not os.path.exists(path), "a file was left")


@test
def a_foreign_session_is_read_and_keeps_running():
    with recording() as path:
        result = emulated(path + ",logger", "stat", "-a", "--json", "-q", "--session", "NT Kernel Logger", "--duration", "2")
        objects = objects_of(result)
        check_eq(objects[0]["source"], "etw", "source")
        listed = objects_of(emulated("logger", "sessions", "--json"))
    check_eq([(o["name"], o["ours"]) for o in listed], [("NT Kernel Logger", False)], "sessions")


main()
