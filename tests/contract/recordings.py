# SPDX-License-Identifier: MIT
"""The interface for scripts that read recordings: names, exit codes, where messages go, how it ends."""
import json
import os
import signal
import time

from etlkit import recording
from lib import cases, check, check_eq, check_in, json_lines, main, run, skip, start, test

WHICH = "pid start_ns name ppid session_id user cgroup".split()
WHEN = "t_ns dt_ns source complete".split()
CPU = """cpu_percent cpu_ns cpu_user_ns cpu_kernel_ns cycles instructions cache_misses switches_voluntary
    switches_involuntary runq_wait_ns priority affinity""".split()
REST = """rss_bytes rss_peak_bytes private_bytes virtual_bytes faults_minor faults_major pool_paged_bytes
    pool_nonpaged_bytes threads threads_running threads_ready threads_waiting threads_suspended
    io_read_bytes io_write_bytes io_other_bytes io_read_ops io_write_ops io_other_ops io_priority
    disk_read_bytes disk_write_bytes net_received_bytes net_sent_bytes handles handles_peak gdi_objects
    user_objects gpu_ns gpu_percent gpu_memory_bytes npu_ns npu_percent energy_uj""".split()
EXIT = "exit_ns exit_code exit_signal presents gpu_encoder_ns gpu_decoder_ns rss_private_bytes".split()
META = "version host os cpus source hz_requested anchor_unix_ns anchor_raw_ns estimated".split()
STATS = """source hz_requested hz_reached samples events lost undecoded late self_cpu_percent
    self_kernel_percent self_rss_bytes self_rss_peak_bytes wakeups""".split()
TRACE = """type version source os os_build cpus cpu_mhz pointer_size clock clock_frequency start_ns end_ns boot_ns
    file_bytes compressed first_ns last_ns duration_ns events undecoded lost lost_buffers late bad_buffers
    bad_events bad_bytes first_bad_offset first_bad_file first_bad clock_set_back_ns complete cpu_from busy_ns idle_ns dpc_ns
    isr_ns unknown_ns switches samples files""".split()
CLASS = "type provider event id opcode version count decoded state".split()
EVENT = "type t_ns cpu pid tid name provider event id opcode version header_pid header_tid state fields".split()
IMAGE = "type pid base image_bytes load_ns unload_ns path".split()


def objects(arguments):
    result = run(arguments)
    check_eq(result.code, 0, f"exit code ({result.err})")
    return json_lines(result.out)


@test
def a_report_has_every_name_in_order():
    with recording("mixed", "--events", 5000) as path:
        found = objects(["report", "--json", "--threads", "--images", path])
    kinds = [o["type"] for o in found]
    check_eq(kinds[0], "trace", "first type")
    check_eq(kinds.count("trace"), 1, "number of trace objects")
    order = ["trace", "class", "process", "image"]
    places = [order.index("process" if k == "thread" else k) for k in kinds]
    check_eq(places, sorted(places), "order of types")
    names = {"trace": TRACE, "class": CLASS, "image": IMAGE,
             "process": ["type", *WHICH, *WHEN, *CPU, *REST, *EXIT, "estimated"]}
    for o in found:
        if o["type"] in names:
            check_eq(list(o), names[o["type"]], f"names of {o['type']}")
        else:
            missing = [n for n in [*WHICH, *WHEN, "tid", "thread_name", *CPU, "estimated"] if n not in o]
            check_eq((o["type"], missing), ("thread", []), "names missing")
    check_eq(sum(o["count"] for o in found if o["type"] == "class"), found[0]["events"], "sum of classes")


@test
def events_have_every_name_in_order_and_are_in_time_order():
    with recording("mixed", "--events", 3000) as path:
        found = objects(["events", "--json", path])
        raw = objects(["events", "--json", "--payload", "--limit", 5, path])
        all_events = objects(["report", "--json", path])[0]["events"]
    for o in found:
        check_eq(list(o), EVENT, "names of an event")
    times = [o["t_ns"] for o in found]
    check_eq(times, sorted(times), "times")
    check_eq(len(found), all_events, "number of events")
    check_eq(len(raw), 5, "number of events with --limit")
    for o in raw:
        check_eq(list(o), EVENT + ["payload"], "names of an event with --payload")
        if not o["event"].startswith("Process/"):  # has a command line
            bytes.fromhex(o["payload"])


@test
def samples_of_a_recording_have_the_names_of_live_ones():
    with recording("mixed", "--events", 5000) as path:
        found = objects(["stat", "--source", "etl", path, "--hz", "1000", "--json", "--threads", "-q"])
        again = objects(["stat", path, "--hz", "1000", "--json", "--threads", "-q"])
    check_eq((found[0]["type"], found[-1]["type"]), ("meta", "stats"), "first and last type")
    check_eq([n for n in META if n not in found[0]], [], "names missing in meta")
    check_eq([n for n in STATS if n not in found[-1]], [], "names missing in stats")
    check_eq((found[0]["source"], found[0]["os"], found[0]["host"]), ("etl", "Windows 10.0.19045", None), "meta")
    for o in found[1:-1]:
        check(o["type"] in ("start", "sample", "thread", "exit"), o["type"])
        check_eq(o["source"], "etl", "source")
        if o["type"] != "thread":
            check_eq([n for n in WHICH + WHEN + CPU + REST if n not in o], [], "names missing")
    check_eq(again[1:-1], found[1:-1], "the same with the file alone")


@test
def two_parts_add_up_to_the_whole():
    names = ["cpu_ns", "switches_voluntary", "switches_involuntary", "faults_minor", "disk_read_bytes",
             "net_sent_bytes"]
    with recording("mixed", "--events", 20000) as path:
        whole, first, second = (objects(["report", "--json", "--threads", *part, path])
                                for part in ([], ["--to", "137us"], ["--from", "137us"]))
    check_eq(first[0]["events"] + second[0]["events"], whole[0]["events"], "events")
    for name in ("busy_ns", "idle_ns", "unknown_ns", "dpc_ns", "isr_ns", "switches"):
        check_eq(first[0][name] + second[0][name], whole[0][name], name)
    check(first[0]["switches"] > 10 and second[0]["switches"] > 10, "one part is nearly empty")

    def sums(found):
        return {(o["pid"], o["start_ns"], o.get("tid"), n): o.get(n) or 0
                for o in found if o["type"] in ("process", "thread") for n in names}
    a, b = sums(first), sums(second)
    for key, value in sums(whole).items():
        check_eq(a.get(key, 0) + b.get(key, 0), value, f"{key}")


@test
def several_files_are_merged_and_worker_threads_change_nothing():
    with recording("mixed", "--events", 3000) as a, recording("tracelogging") as b:
        found = objects(["events", "--json", a, b])
        for workers in (1, 2, 5):
            check_eq(objects(["events", "--json", "--workers", workers, a, b]), found,
                     f"events with {workers} workers")
        files = objects(["report", "--json", a, b])[0]["files"]
    times = [o["t_ns"] for o in found]
    check_eq(times, sorted(times), "times")
    check_eq({o["provider"] for o in found} >= {"Windows Kernel", "Etwatch.Test"}, True, "providers")
    check_eq([f["path"] for f in files], [a, b], "files")


@test
def filters_select_what_they_name():
    with recording("mixed", "--events", 5000) as path:
        every = objects(["events", "--json", path])
        pid = next(o["pid"] for o in every if o["event"] == "Thread/CSwitch" and o["pid"])
        for arguments, keep in (
                (["--event", "cswitch"], lambda o: "CSwitch" in o["event"]),
                (["--event", "switch,Thread/Start"], lambda o: o["event"] == "Thread/Start"),
                (["--provider", "kernel"], lambda o: False),
                (["--provider", "windows kernel", "--event", "cswitch,*ready*"],
                 lambda o: "CSwitch" in o["event"] or "Ready" in o["event"]),
                (["--provider", "no such"], lambda o: False)):
            check_eq(objects(["events", "--json", *arguments, path]), [o for o in every if keep(o)], f"{arguments}")
        some = objects(["events", "--json", "-p", pid, path])
        check(0 < len(some) < len(every), f"{len(some)} of {len(every)} events")
        check(any(o["pid"] == pid for o in some), "none of the process itself")
        name = next(o["name"] for o in every if o["name"] and o["name"].endswith(".exe"))
        named = objects(["report", "--json", "-n", name[:-4], path])
        processes = [o for o in named if o["type"] == "process"]
        check(processes and any(o["name"] == name for o in processes), f"no {name}")
        counted = objects(["events", "--json", "--count-by-type", path])
        check_eq(sum(o["count"] for o in counted), len(every), "sum of --count-by-type")


@test
def command_lines_are_present_only_on_request_and_without_secrets():
    with recording("versions") as path:
        check("cmdline" not in run(["report", "--json", path]).out, "cmdline without --cmdline")
        found = objects(["report", "--json", "--cmdline", path])
    check(any(o.get("cmdline") for o in found if o["type"] == "process"), "no command line")


@cases([
    ("no recording at all", "not-etl"),
    ("empty", "empty"),
    ("too short", "short"),
])
def a_file_that_is_not_a_recording_is_1_with_the_offset(kind):
    with recording(kind) as path:
        for command in (["report"], ["events"], ["stat"], ["report", "--json"]):
            result = run([*command, path])
            check_eq((result.code, result.out), (1, ""), f"result of {command}")
            check_in(path, result.err)
            check_in("byte ", result.err)
            check_eq(result.err.count("\n"), 1, "lines on standard error")


@test
def a_missing_file_is_1_and_named():
    result = run(["report", "/no/such/file.etl"])
    check_eq((result.code, result.out), (1, ""), "result")
    check_in("/no/such/file.etl", result.err)


@cases([(kind, kind) for kind in ("truncated", "damaged-event-huge", "damaged-noise", "damaged-packed")])
def damage_is_reported_in_one_line_and_the_rest_is_read(kind):
    with recording(kind, "--events", 5000) as path:
        for command in (["report", "--json"], ["events", "--json"]):
            result = run([*command, path])
            check_eq(result.code, 0, f"exit code ({result.err})")
            check(len(json_lines(result.out)) > 5, "nothing was read")
        trace = json_lines(run(["report", "--json", path]).out)[0]
        if trace["bad_buffers"] + trace["bad_events"] == 0:
            check_eq(result.err, "", "standard error")
            return
        check_eq(trace["complete"], False, "complete")
        check_in(f"the first at byte {trace['first_bad_offset']}: ", result.err)
        check_in(path, result.err)


@test
def a_reader_that_closes_its_end_is_not_an_error():
    with recording("mixed", "--events", 50000) as path:
        for command in (["events", "--json"], ["events"], ["report", "--json", "--threads"]):
            child = start([*command, path])
            child.stdout.read(100)
            child.stdout.close()
            check_eq(child.wait(timeout=30), 0, f"exit code of {command}")
            check_eq(child.stderr.read(), b"", "standard error")


@test
def a_full_disk_is_1_with_a_message():
    if not os.path.exists("/dev/full"):
        skip("no /dev/full")
    with recording("mixed", "--events", 5000) as path:
        for command in (["events", "--json"], ["report"]):
            result = run([*command, "-o", "/dev/full", path])
            check_eq(result.code, 1, "exit code")
            check_in("cannot write to /dev/full: No space left on device", result.err)


@test
def an_interrupt_ends_with_whole_lines():
    with recording("mixed", "--events", 400000) as path:
        child = start(["events", "--json", path])
        first = child.stdout.readline()
        child.send_signal(signal.SIGINT)
        time.sleep(0.05)
        rest = child.stdout.read()
        check_eq(child.wait(timeout=30), 128 + signal.SIGINT, "exit code")
        lines = (first + rest).decode().splitlines()
        for line in (lines[0], lines[-1]):
            json.loads(line)


main()
