# SPDX-License-Identifier: MIT
"""The interface for scripts that export: the same data in every format, exit codes, and where messages go."""
import collections
import csv
import io
import json
import os

from commandkit import UNDER_WINE
from etlkit import corpus, recording
from lib import ETWATCH, cases, check, check_eq, check_in, json_lines, main, run, temp_dir, test
from protokit import fields, packets
import toolkit

EVENT = "t_ns cpu pid tid name provider event id opcode version header_pid header_tid state".split()
FORMATS = ["perfetto", "arrow", "csv", "jsonl", "folded", "speedscope", "chrome"]


def export(path, *arguments):
    result = run(["export", "-q", path, *arguments])
    check_eq(result.code, 0, f"exit code of export {arguments} ({result.err})")
    return result.out


def report(path, *arguments):
    found = json_lines(run(["report", "--json", *arguments, path]).out)
    return {kind: [o for o in found if o["type"] == kind] for kind in ("trace", "class", "process", "thread", "image")}


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


# ----------------------------------------------------------------------- tables


@cases([("every class of the kernel", "mixed", "--events", 5000), ("schemas in the stream", "tracelogging"),
        ("every version", "versions"), ("lost events", "lost")])
def json_lines_of_events_equal_the_output_of_the_events_command(kind, *arguments):
    with recording(kind, *arguments) as path:
        for more in ([], ["--payload"], ["--event", "*switch,start"], ["--provider", "*kernel", "--from", "1ms"]):
            check_eq(export(path, "-f", "jsonl", *more), run(["events", "--json", *more, path]).out, f"output {more}")


@test
def every_run_writes_the_same_bytes():
    """Hash tables are seeded anew in each run: their order must not reach the output."""
    with recording("mixed", "--events", 4000) as path:
        for kind in ("perfetto", "arrow", "chrome", "folded", "speedscope"):
            written = set()
            for i in range(3):
                out = f"{path}.{i}"
                check_eq(run(["export", path, "-q", "-f", kind, "-o", out]).code, 0, kind)
                with open(out, "rb") as file:
                    written.add(file.read())
                os.remove(out)
            check_eq(len(written), 1, f"different outputs of {kind}")


@test
def csv_has_the_same_rows_as_json_lines():
    with recording("mixed", "--events", 3000) as path:
        for table in ("events", "samples", "processes", "threads", "classes", "images", "thread_samples"):
            text = export(path, "-f", "csv", "--table", table)
            objects = json_lines(export(path, "-f", "jsonl", "--table", table))
            found = rows(text)
            check_eq(len(found), len(objects), f"rows of {table}")
            check(objects, f"{table} is empty")
            for row, wanted in zip(found, objects):
                for name, value in row.items():
                    other = wanted[name]
                    if isinstance(other, float):
                        value = float(value)
                    elif not isinstance(other, str):
                        other = "" if other is None else json.dumps(other)
                    check_eq(value, other, f"{table}.{name}")


@test
def processes_and_threads_equal_those_of_the_report():
    with recording("mixed", "--events", 20000) as path:
        wanted = report(path, "--threads", "--images", "--cmdline")
        for table, kind in (("processes", "process"), ("threads", "thread"), ("classes", "class"),
                            ("images", "image")):
            more = ["--cmdline"] if table == "processes" else []
            found = json_lines(export(path, "-f", "jsonl", "--table", table, *more))
            check_eq(len(found), len(wanted[kind]), f"number of {table}")
            for got, want in zip(found, wanted[kind]):
                for name, value in got.items():
                    if name == "estimated":
                        value = (value or "").split()
                    check_eq(value, want[name], f"{table}.{name}")


@test
def samples_equal_those_of_stat():
    with recording("mixed", "--events", 20000) as path:
        stat = json_lines(run(["stat", "-q", path, "--hz", "1000", "--json", "--threads"]).out)
        for table, kind in (("samples", "sample"), ("thread_samples", "thread")):
            wanted = [o for o in stat if o["type"] == kind]
            found = json_lines(export(path, "-f", "jsonl", "--table", table, "--hz", "1000"))
            check_eq(len(found), len(wanted), f"number of {table}")
            check(len(found) > 50, f"only {len(found)} {table}")
            for got, want in zip(found, wanted):
                check_eq(got, {name: want[name] for name in got}, table)


@test
def columns_have_the_documented_names_and_order():
    with recording("mixed", "--events", 1000) as path:
        check_eq(export(path, "-f", "csv").splitlines()[0].split(","), EVENT, "events")
        check_eq(export(path, "-f", "csv", "--fields", "--payload").splitlines()[0].split(","),
                 EVENT + ["fields", "payload"], "events with fields and payload")
        typed = export(path, "-f", "csv", "--typed", "--event", "ReadyThread").splitlines()[0].split(",")
        check_eq(typed, EVENT + ["TThreadId", "AdjustReason", "AdjustIncrement", "Flag", "Reserved"], "typed")


@test
def filters_select_as_in_report_and_events():
    with recording("mixed", "--events", 20000) as path:
        names = collections.Counter(o["name"] for o in json_lines(export(path, "-f", "jsonl")) if o["name"])
        name, _ = names.most_common(1)[0]
        choice = ["-n", name, "--from", "100us", "--to", "2ms"]
        found = json_lines(export(path, "-f", "jsonl", *choice))
        check_eq(len(found), report(path, *choice)["trace"][0]["events"] and
                 len(json_lines(run(["events", "--json", *choice, path]).out)), "events")
        processes = json_lines(export(path, "-f", "jsonl", "--table", "processes", *choice))
        check_eq([o["pid"] for o in processes], [o["pid"] for o in report(path, *choice)["process"]], "processes")


# --------------------------------------------------------------- stacks, timelines


@test
def slices_of_chrome_add_up_to_the_cpu_time_of_the_report():
    with recording("switches", "--events", 20000, "--cpus", 4) as path:
        found = json.loads(export(path, "-f", "chrome"))
        threads = report(path, "--threads")["thread"]
    sums, names = collections.Counter(), collections.defaultdict(set)  # an ID may be reused
    for event in found["traceEvents"]:
        if event["ph"] == "X":
            sums[event["pid"], event["tid"]] += round(event["dur"] * 1000)
            check(event["ts"] >= 0 and event["dur"] >= 0, f"a slice out of time: {event}")
        elif event["name"] == "process_name":
            names[event["pid"]].add(event["args"]["name"])
    wanted = collections.Counter()
    for thread in threads:
        if thread["tid"] and thread["cpu_ns"] is not None:
            wanted[thread["pid"], thread["tid"]] += thread["cpu_ns"]
            check_in(thread["name"], names[thread["pid"]], "name of a process")
    # Time before the first switch is in the report, but not as a slice.
    early = {key for key, value in wanted.items() if sums[key] != value}
    check(len(early) <= 4, f"slices of these threads do not add up: {sorted(early)}")
    check(len(wanted) > 10 and sum(sums.values()) > 0, "nothing to compare")


@test
def perfetto_has_every_switch_and_ready_thread_in_its_own_messages():
    with recording("mixed", "--events", 20000) as path:
        out = path + ".pftrace"
        export(path, "-o", out)
        classes = {o["event"]: o["count"] for o in report(path)["class"]}
        with open(out, "rb") as file:
            found = list(packets(file.read()))
        export(path, "-o", out, "--event", "Process/Start")
        with open(out, "rb") as file:
            more = list(packets(file.read()))
    bundles = [value for packet in found for number, value in packet if number == 95]
    events = [value for bundle in bundles for number, value in fields(bundle) if number == 2]
    kinds = collections.Counter(number for event in events for number, _ in fields(event) if number in (2, 3))
    check_eq(kinds[2], classes["Thread/CSwitch"], "switches")
    check_eq(kinds[3], classes["Dispatcher/ReadyThread"], "ready threads")
    instants = sum(number == 11 for packet in more for number, _ in packet)
    check_eq(instants - sum(number == 11 for packet in found for number, _ in packet), classes["Process/Start"],
             "instants of a kind that was named")


def facts(path, *arguments):
    """What a report contains about the recording, its processes and threads, unchanged."""
    result = run(["report", "--json", "--threads", "--cmdline", *arguments, path])
    check_eq(result.code, 0, f"exit code of report ({result.err})")
    trace = json_lines(result.out)[0]
    names = "source os cpus lost cpu_from busy_ns idle_ns dpc_ns isr_ns unknown_ns switches samples".split()
    lines = [line for line in result.out.splitlines() if '"type":"process"' in line or '"type":"thread"' in line]
    return {name: trace[name] for name in names}, lines


@cases([("every class of the kernel", "mixed", "--events", 20000), ("switches alone", "switches"),
        ("profile samples alone", "profile"), ("Windows 7", "windows7"), ("lost events", "lost"),
        ("never closed", "unclosed"), ("a damaged file", "damaged-noise")])
def a_perfetto_trace_gives_the_report_of_its_recording(kind, *arguments):
    with recording(kind, *arguments) as path:
        out = path + ".pftrace"
        run(["export", "-q", "--cmdline", path, "-o", out])
        (ours, rows_of_ours), (theirs, rows_of_theirs) = facts(path), facts(out)
        if kind.startswith("damaged"):
            check(theirs.pop("lost") >= ours.pop("lost"), "the gap caused by damage is not reported")
        check_eq(theirs, ours, "the recording as a whole")
        check_eq(rows_of_theirs, rows_of_ours, "processes and threads")
        check(rows_of_ours, "no processes")
        selected = json.loads(rows_of_ours[-1])["name"]
        if selected and not selected.startswith("["):
            check_eq(facts(out, "-n", selected)[1], facts(path, "-n", selected)[1], f"those of {selected}")
            run(["export", "-q", "--cmdline", "-n", selected, "--from", "1ms", path, "-o", out])
            check_eq(facts(out)[1], facts(path, "-n", selected, "--from", "1ms")[1], f"a part of {selected}")


@cases([(name, name) for name in ("perfview-net452-x64.etl", "tx-process.etl", "airbus-shutdown.etl")])
def a_perfetto_trace_of_a_real_recording_gives_its_report(name):
    path = corpus("etl", name)
    with temp_dir() as folder:
        out = os.path.join(folder, "out.pftrace")
        export(path, "-o", out)
        ours, theirs = (run(["report", "--json", "--threads", file]).out.splitlines() for file in (path, out))
    rows_of = [[line for line in lines if '"type":"process"' in line or '"type":"thread"' in line]
               for lines in (theirs, ours)]
    check_eq(rows_of[0] == rows_of[1] and len(rows_of[0]) > 100, True, "processes and threads are the same")


@test
def a_perfetto_trace_has_samples_starts_and_losses_in_order():
    for kind in ("mixed", "lost"):
        with recording(kind, *(["--events", 20000] if kind == "mixed" else [])) as path:
            out = path + ".pftrace"
            export(path, "-o", out, "--hz", "100")
            samples = json_lines(export(path, "-f", "jsonl", "--table", "samples", "--hz", "100"))
            found = json_lines(export(out, "-f", "jsonl", "--table", "samples"))
            order = [sorted(json.dumps(o) for o in objects) for objects in (found, samples)]
            check_eq(order[0] == order[1], True, f"samples of {kind} are the same")
            reported = report(out)
            stat = json_lines(run(["stat", "-q", path, "--hz", "100", "--json"]).out)
            counts = collections.Counter(o["type"] for o in stat)
            classes = {o["event"]: o["count"] for o in reported["class"]}
            for name in ("start", "exit", "loss"):
                check_eq(classes.get(name, 0), counts[name], f"{name} of {kind}")
            check_eq(reported["trace"][0]["late"], 0, "out of order")
            times = [o["t_ns"] for o in json_lines(run(["events", "--json", out]).out)]
            check_eq(times, sorted(times), "order of the walk")


@cases([("switches alone", "switches", "--events", 20000, "--cpus", 4),
        ("every class of the kernel", "mixed", "--events", 20000), ("lost events", "lost")])
def perfettos_trace_processor_agrees_with_the_report(kind, *arguments):
    with recording(kind, *arguments) as path:
        out = path + ".pftrace"
        export(path, "-o", out)
        reported = report(path, "--threads")
        broken, [[switches]], woken, ran, lives, counters, [[lost]] = toolkit.sql(
            out,
            "select name, value from stats where value != 0 and severity in ('error', 'data_loss')",
            "select count(*) from sched",
            "select count(*) from thread_state where waker_utid is not null",
            "select pid, tid, sum(dur) from sched join thread using (utid) join process using (upid)"
            " where dur > 0 group by pid, tid",
            "select pid, s.name from slice s join process_track t on s.track_id = t.id join process using (upid)"
            " where dur != 0",
            "select distinct t.name from process_counter_track t",
            "select count(*) from slice where name = 'loss'")
    count = {o["event"]: o["count"] for o in reported["class"]}
    if kind != "lost":
        check_eq(broken, [], "what it cannot use")
        check_eq(switches, count["Thread/CSwitch"], "switches")
        check(woken[0][0] > count["Dispatcher/ReadyThread"] / 2, f"wake-ups: {woken}")
    if kind == "switches":
        # IDs are reused, and time before the first switch is only in the report.
        wanted, sums = collections.Counter(), {(pid, tid): ns for pid, tid, ns in ran}
        for o in reported["thread"]:
            wanted[o["pid"], o["tid"]] += o["cpu_ns"]
        same = [key for key, ns in sums.items() if wanted.get(key) == ns]
        check(len(same) > 0.7 * len(sums), f"{len(same)} of {len(sums)} threads ran as long as in the report")
    if kind == "mixed":
        check({"cpu_percent", "rss_bytes", "faults_minor/s", "faults_major/s", "io_read_bytes/s", "disk_read_bytes/s",
               "net_sent_bytes/s", "threads"} <= {name for name, in counters}, f"counters: {counters}")
    if kind == "lost":
        check(lost > 0, "losses are not marked")
    real = collections.Counter((o["pid"], o["name"]) for o in reported["process"] if o["pid"] and o["name"][0] != "[")
    check_eq({tuple(row) for row in lives}, set(real), "lifetimes of processes")


@test
def excluded_processes_are_absent_from_every_format_but_their_children_are_not():
    with recording("mixed", "--events", 20000) as path:
        out = path + ".pftrace"
        export(path, "-o", out)
        for name in (path, out):
            every = report(name)["process"]
            victim = collections.Counter(o["name"] for o in every if o["name"]).most_common(1)[0][0]
            left = [o["pid"] for o in every if o["name"] != victim]
            check_eq([o["pid"] for o in report(name, "--exclude-name", victim)["process"]], left, "report")
            some = every[0]["pid"]
            check_eq([o["pid"] for o in report(name, "--exclude-pid", str(some))["process"]],
                     [o["pid"] for o in every if o["pid"] != some], "report without a process")
            children = report(name, "-n", victim, "--exclude-name", victim)["process"]
            both = report(name, "-n", victim)["process"]
            check_eq(children, [o for o in both if o["name"] != victim], "descendants")
            for command in (["events", "--json"], ["export", "-q", "-f", "jsonl"]):
                names = {o["name"] for o in json_lines(run([*command, "--exclude-name", victim, path]).out)}
                check(victim not in names and len(names) > 3, f"{command}: {names}")
        system = {o["pid"] for o in report(path)["process"]} - {o["pid"] for o in report(path, "--exclude-system")["process"]}
        check(system <= {0, 4}, f"the system's own: {system}")
        rows_left = rows(export(path, "-f", "csv", "--table", "samples", "--exclude-name", victim))
        check(victim not in {row["name"] for row in rows_left} and rows_left, "samples")


@cases([(name, name) for name in (".arrow", ".speedscope.json", ".trace.json")])
def a_file_that_needs_its_end_appears_only_when_complete(ending):
    with recording("mixed", "--events", 2000) as path:
        out = path + ending
        with open(out, "wb") as file:
            file.write(b"before")
        failed = run(["export", "-q", ETWATCH, "-o", out])
        check_eq(failed.code, 1, "exit code")
        with open(out, "rb") as file:
            check_eq(file.read(), b"before", "the previous file after a failed export")
        export(path, "-o", out)
        check_eq(sorted(os.listdir(os.path.dirname(path))), sorted([os.path.basename(path), os.path.basename(out)]),
                 "files")
        check(os.path.getsize(out) > 100, "it was not written")
        if UNDER_WINE:
            return  # Windows programs in Wine do not see Unix links
        link = path + ".link" + ending
        os.symlink(out, link)
        export(path, "-o", link)
        check(os.path.islink(link), "a link was replaced")


@test
def perfettos_classes_know_every_field():
    with recording("mixed", "--events", 5000) as path:
        out = path + ".pftrace"
        export(path, "-o", out, "--event", "Process/Start,DiskIo")
        found = toolkit.perfetto_reads(out)
        reported = report(path)
    counts, ours = found["counts"], {o["event"]: o["count"] for o in reported["class"]}
    check_eq(counts["unknown"], 0, "fields that Perfetto does not know")
    check_eq(counts["c_switch"], ours["Thread/CSwitch"], "switches")
    check_eq(counts["ready_thread"], ours["Dispatcher/ReadyThread"], "ready threads")
    check_eq({o["pid"] for o in reported["process"] if o["pid"] and o["name"][0] != "["} - set(found["pids"]), set(),
             "processes that Perfetto does not know")


@test
def stacks_have_every_sample_of_the_report():
    with recording("mixed", "--events", 20000) as path:
        folded = export(path, "-f", "folded")
        scope = json.loads(export(path, "-f", "speedscope"))
        samples = report(path)["trace"][0]["samples"]
    check(samples > 100, "too few samples in this recording")
    total = 0
    for line in folded.splitlines():
        stack, _, count = line.rpartition(" ")
        check(len(stack.split(";")) >= 3, f"no process, thread and frame in {line!r}")
        total += int(count)
    check_eq(total, samples, "samples in folded stacks")
    check_eq(scope["$schema"], "https://www.speedscope.app/file-format-schema.json", "$schema")
    frames = scope["shared"]["frames"]
    check(all(isinstance(frame["name"], str) for frame in frames), "names of frames")
    found = 0
    for profile in scope["profiles"]:
        check_eq(profile["type"], "sampled", "type of a profile")
        check_in(profile["unit"], ["none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"], "unit")
        check_eq(len(profile["samples"]), len(profile["weights"]), "samples and weights")
        check_eq(profile["endValue"] - profile["startValue"], sum(profile["weights"]), "sum of the weights")
        check(all(0 <= frame < len(frames) for stack in profile["samples"] for frame in stack), "an invalid frame")
        found += len(profile["samples"])
    check_eq(found, samples, "samples in speedscope")


@test
def stacks_of_a_real_recording_begin_at_thread_starts():
    path = corpus("etl", "perfview-net452-x64.etl")
    whole = from_start = 0
    for line in export(path, "-f", "folded").splitlines():
        stack, _, count = line.rpartition(" ")
        frames = stack.split(";")[2:]
        if len(frames) > 8:
            whole += int(count)
            from_start += int(count) * frames[0].startswith(("ntdll.dll!", "ntoskrnl.exe!"))
    check(whole > 1000, f"only {whole} samples with a deep stack")
    check(from_start > whole * 0.9, f"only {from_start} of {whole} begin in ntdll or the kernel")


# ------------------------------------------------------------------ errors


@test
def the_extension_of_the_output_selects_the_format():
    endings = {".csv": b"t_ns,cpu", ".arrow": b"ARROW1\0\0", ".feather": b"ARROW1\0\0", ".jsonl": b'{"type":"event"',
               ".folded": b"", ".speedscope.json": b'{"$schema"', ".trace.json": b'{"displayTimeUnit"'}
    with recording("mixed", "--events", 2000) as path:
        for ending, begin in endings.items():
            out = path + ending
            export(path, "-o", out)
            with open(out, "rb") as file:
                check_eq(file.read(len(begin)), begin, ending)


@cases([
    ("no format", [], "export needs a format"),
    ("an unknown format", ["-f", "xml"], "-f needs one of"),
    ("an unknown table", ["-f", "csv", "--table", "x"], "--table needs one of"),
    ("a table for stacks", ["-f", "folded", "--table", "events"], "is not a table"),
    ("fields of processes", ["-f", "csv", "--table", "processes", "--fields"], "for the table events"),
    ("a rate for events", ["-f", "csv", "--hz", "10"], "are for samples"),
    ("both kinds of fields", ["-f", "csv", "--fields", "--typed"], "exclude each other"),
    ("timestamps in text", ["-f", "csv", "--timestamps"], "needs -f arrow"),
])
def a_wrong_command_line_is_reported_with_exit_code_2(arguments, words):
    with temp_dir() as folder:
        out = os.path.join(folder, "out")
        result = run(["export", "x.etl", "-o", out, *arguments])
        check_eq(result.code, 2, "exit code")
        check_in(words, result.err, "message")
        check(not os.path.exists(out), "an output was made")


@cases([(name, name) for name in FORMATS])
def a_file_that_is_not_a_recording_is_refused(name):
    result = run(["export", "-f", name, "-q", ETWATCH])
    check_eq((result.code, result.out), (1, ""), "exit code and output")
    check_in(os.path.basename(ETWATCH), result.err, "message")


@cases([(name, name) for name in ("arrow", "csv", "folded", "chrome", "perfetto")])
def a_full_disk_is_an_error(name):
    if not os.path.exists("/dev/full"):
        return
    with recording("mixed", "--events", 20000) as path:
        result = run(["export", "-q", path, "-f", name, "-o", "/dev/full"])
    check_eq(result.code, 1, "exit code")
    check_in("/dev/full", result.err, "message")


@cases([("noise", "damaged-noise"), ("an event that is too large", "damaged-event-huge"), ("a buffer that does not decompress", "damaged-packed")])
def damaged_files_are_read_as_far_as_possible_and_reported(kind):
    with recording(kind) as path:
        events = json_lines(run(["report", "--json", path]).out)[0]["events"]
        for name in ("csv", "arrow", "chrome"):
            with temp_dir() as folder:
                result = run(["export", path, "-f", name, "-o", os.path.join(folder, "out")])
                check_eq(result.code, 0, f"exit code of {name} ({result.err})")
                check_in("damaged", result.err, f"messages of {name}")
        check_eq(len(export(path, "-f", "csv").splitlines()) - 1, events, "rows")


@test
def recordings_without_samples_have_no_stacks_and_an_error():
    with recording("switches", "--events", 1000) as path:
        result = run(["export", path, "-f", "folded"])
    check_eq((result.code, result.out), (1, ""), "exit code and output")
    check_in("no profile samples", result.err, "message")


main()
