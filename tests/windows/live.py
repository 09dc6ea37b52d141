# SPDX-License-Identifier: MIT
"""The program for Windows watches processes in Wine."""
import os
import shutil

from lib import cases, check, check_between, check_eq, check_in, json_lines, main, temp_dir, test
from winekit import start_wine, windows_build, wine


def workloads():
    return os.path.join(windows_build(), "tests", "workloads.exe")


def split(text):
    """The output of the command, and our objects: both go to standard output."""
    lines = text.splitlines()
    ours = [line for line in lines if line.startswith('{"type":')]
    return [line for line in lines if line not in ours], json_lines("\n".join(ours))


def watch(*command, options=()):
    result = wine(["run", "--source", "poll", "--json", "-q", *options, "--", *command])
    words, objects = split(result.out)
    return result, words, objects


def exits(objects):
    return {o["pid"]: o for o in objects if o["type"] == "exit"}


@test
def cpu_time_matches_that_of_the_load():
    result, words, objects = watch(workloads(), "burn", 1500, options=["--hz", "20"])
    check_eq(result.code, 0, f"exit code ({result.err})")
    said_ms = int(words[0])
    (end,) = exits(objects).values()
    check_eq(end["name"], "workloads.exe")
    check_between(end["cpu_ns"] / 1e6, said_ms * 0.98, said_ms * 1.02, "cpu_ns of the exit")
    sampled = sum(o["cpu_ns"] or 0 for o in objects if o["type"] == "sample")
    check_between(sampled / 1e6, said_ms * 0.97, said_ms * 1.02, "cpu_ns of the samples")
    check(all(o["source"] == "poll" for o in objects if o["type"] == "sample"), "another source")
    check(max(o["rss_bytes"] or 0 for o in objects if o["type"] == "sample") > 1_000_000, "no memory")


@test
def all_processes_of_wine_are_reported():
    result = wine(["stat", "-a", "--source", "poll", "--hz", "5", "--duration", "0.5", "--json"])
    check_eq(result.code, 0, f"exit code ({result.err})")
    objects = json_lines(result.out)
    check_eq(objects[0]["type"], "meta")
    check_in("Windows 10.0.", objects[0]["os"])
    check_in("Wine", objects[0]["os"])
    names = {o["name"] for o in objects if o["type"] == "start"}
    for name in ("services.exe", "etwatch.exe", "cmd.exe"):
        check(name in names, f"no {name} among {sorted(names)}")
    check_eq(objects[-1]["type"], "stats")
    check_eq(objects[-1]["lost"], 0)


@test
def metrics_that_wine_does_not_count_are_null_and_not_zero():
    result = wine(["stat", "-a", "--source", "poll", "--hz", "5", "--duration", "0.5", "--json"])
    objects = json_lines(result.out)
    for o in objects:
        if o["type"] in ("start", "sample"):
            for name in ("io_read_bytes", "faults_minor", "switches_voluntary", "private_bytes"):
                check_eq(o[name], None, name)
    check("cpu_ns" in objects[0]["available"], "cpu_ns is not available")
    check("io_read_bytes" not in objects[0]["available"], "io_read_bytes is listed as available")


@test
def a_process_has_its_user_and_on_request_its_command_line():
    result, _, objects = watch(workloads(), "sleep", 100, "--password=secret", options=["--cmdline"])
    check_eq(result.code, 0, f"exit code ({result.err})")
    start = next(o for o in objects if o["type"] == "start")
    check(start["user"], f"no user: {start}")
    check(start["cmdline"] and "workloads" in start["cmdline"] and "secret" not in start["cmdline"], f"{start['cmdline']}")
    # The user is selected and excluded by that name.
    poll = ["--source", "poll", "--duration", "0.3", "--json", "-q"]
    mine, others = (wine(["stat", *rule, *poll]) for rule in (["-u", start["user"]], ["-a", "--exclude-user", start["user"]]))
    check_eq((mine.code, others.code), (0, 0), f"exit codes ({mine.err}{others.err})")
    check_eq({o["user"] for o in json_lines(mine.out) if o["type"] == "start"}, {start["user"]}, "users selected")
    check_eq([o for o in json_lines(others.out) if o["type"] == "start" and o["user"] == start["user"]], [], "excluded")
    for wrong in (["-u", "0"], ["-u", "nosuchuser"], ["-u", start["user"], "-n", "x"], ["-a", "--exclude-cgroup", "x"]):
        check_eq(wine(["stat", *poll, *wrong]).code, 2, f"exit code of {wrong}")


@test
def children_are_watched_too():
    result, _, objects = watch(workloads(), "tree", 300, options=["--hz", "50"])
    check_eq(result.code, 0)
    ends = list(exits(objects).values())
    check_eq(len(ends), 2, "processes")
    parents = {o["pid"]: o["ppid"] for o in objects if o["type"] == "start"}
    (child,) = [pid for pid, parent in parents.items() if parent in parents]
    check_between(exits(objects)[child]["cpu_ns"] / 1e6, 280, 400, "cpu_ns of the child")


@test
def a_process_that_outlives_its_parents_is_watched_too():
    result, _, objects = watch(workloads(), "orphan", 400, options=["--hz", "20", "--wait-all"])
    check_eq(result.code, 0, f"exit code ({result.err})")
    burnt = max(o["cpu_ns"] or 0 for o in exits(objects).values())
    check_between(burnt / 1e6, 380, 500, "cpu_ns of the last")


@cases([("small", "3", 3), ("large", "0x1234", 0x1234 & 0xFF), ("none", "0", 0)])
def the_exit_status_of_the_command_is_returned(status, want):
    result, _, objects = watch(workloads(), "exit", status)
    check_eq(result.code, want, "exit code")
    for end in exits(objects).values():
        check_eq(end["exit_code"], int(status, 0))


@test
def arguments_arrive_as_they_were_given():
    given = ["plain", "two words", "", 'with "quotes"', "back\\slash", "C:\\a dir\\", 'a\\"b', "tab\there",
             "Größe Ж 漢 😀", "*", "%PATH%", "a&b|c<d>e^f"]
    _, words, _ = watch(workloads(), "args", *given)
    check_eq(words, given)


@test
def a_program_of_any_name_is_run_and_named():
    with temp_dir() as folder:
        path = os.path.join(folder, "Größe 漢.exe")
        shutil.copy(workloads(), path)
        result, _, objects = watch(path, "sleep", "200")
        check_eq(result.code, 0, f"exit code ({result.err})")
        check_eq({o["name"] for o in objects if o["type"] == "exit"}, {"Größe 漢.exe"})


@test
def a_command_that_does_not_exist_is_127():
    result = wine(["run", "--source", "poll", "--", "no-such-program-here"])
    check_eq(result.code, 127)
    check_in("cannot run no-such-program-here: No such file or directory", result.err)


@test
def a_batch_file_gets_its_arguments_and_none_is_a_command():
    with temp_dir() as folder:
        path = os.path.join(folder, "a build.cmd")
        with open(path, "w", encoding="utf-8") as file:
            file.write("@echo got %1 %2\r\n@exit /b 7\r\n")
        result = wine(["run", "--source", "poll", "--json", "-q", "--", path, "x-1", "a&echo broken"])
        check_eq(result.code, 7, f"exit code ({result.err})")
        lines = [line.rstrip() for line in result.out.splitlines() if not line.startswith('{"type"')]
        check_eq(lines, ['got x-1 "a&echo broken"'], "what it printed")
        check_in('"name":"cmd.exe"', result.out)
        # Without extension too.
        result = wine(["run", "--source", "poll", "--json", "-q", "--", path[:-4], "y", "z"])
        check_eq(result.code, 7, f"exit code ({result.err})")
        check_in("got y z", result.out)
        result = wine(["run", "--source", "poll", "--", path, "two\nlines"])
        check_eq(result.code, 126, f"exit code ({result.err})")


@test
def arguments_reach_a_program_behind_a_batch_file():
    # Not a percent sign: the cmd of Wine expands it (tests/unit/test_quote.c has what Windows gets).
    given = ["plain", "two words", "a&b|c", "^x^", "!x!", "<in", ">out", 'say "hi"', '"&echo broken', "end\\", "C:\\a b\\", "",
             "(x)", "a=b;c,d", "Größe 漢"]
    with temp_dir() as folder:
        path = os.path.join(folder, "forward.cmd")
        with open(path, "w", encoding="ascii") as file:
            file.write('@"Z:' + workloads().replace("/", "\\") + '" args %*\r\n@exit /b 7\r\n')
        result = wine(["run", "--source", "poll", "--json", "-q", "-o", os.path.join(folder, "x.jsonl"), "--", path, *given])
        check_eq(result.code, 7, f"exit code ({result.err})")
        check_eq(result.out.splitlines(), given, "arguments")
        check_eq(sorted(os.listdir(folder)), ["forward.cmd", "x.jsonl"], "files")


@test
def a_path_may_have_more_than_260_characters():
    with temp_dir() as folder:
        deep = os.path.join(folder, *["d" * 60] * 5)
        os.makedirs(deep)
        path = os.path.join(deep, "run.pftrace")
        result = wine(["record", "--source", "poll", "-q", "-o", path, "--", workloads(), "exit", "0"])
        check_eq(result.code, 0, f"exit code of record ({result.err})")
        check(os.path.getsize(path) > 100, "nothing was recorded")
        report = wine(["report", "--json", path])
        check_eq(report.code, 0, f"exit code of report ({report.err})")
        check_in('"name":"workloads.exe"', report.out)


@test
def a_process_that_elevate_starts_works_in_the_folder_of_its_caller():
    options = ["stat", "-a", "--elevate", "--source", "poll", "--duration", "0.3", "--json", "-q", "-o", "here.jsonl"]
    with temp_dir() as folder:
        start = "--elevated-from=0:Z:" + folder.replace("/", "\\")
        result = wine([start, *options])
        check_eq(result.code, 0, f"exit code ({result.err})")
        check(os.path.getsize(os.path.join(folder, "here.jsonl")) > 100, "nothing was written")
        result = wine([start + "\\gone", *options])
        check_eq(result.code, 1, f"exit code ({result.err})")
        check_in("cannot be reached with the rights of an administrator", result.err)


@test
def elevate_runs_the_command_and_returns_its_exit_code():
    with temp_dir() as folder:
        path = os.path.join(folder, "a name & 100%.jsonl")
        result = wine(["run", "--elevate", "--source", "poll", "--json", "-q", "-o", "Z:" + path.replace("/", "\\"), "--",
                       workloads(), "exit", "7"])
        check_eq(result.code, 7, f"exit code ({result.err})")
        with open(path, encoding="utf-8") as file:
            check_in('"name":"workloads.exe"', file.read())


@test
def a_batch_file_that_does_not_exist_is_127():
    result = wine(["run", "--source", "poll", "--", "no-such-batch.cmd"])
    check_eq(result.code, 127, result.err)


@test
def without_events_it_polls_and_reports_that():
    result = wine(["run", "--", workloads(), "exit", "0"])
    check_eq(result.code, 0)
    check_in("polling instead", result.err)
    check_in("PID", result.out)
    result = wine(["stat", "--source", "etw", "-a", "--duration", "1"])
    check_eq(result.code, 3, f"exit code of --source etw ({result.err})")
    result = wine(["stat", "--source", "ebpf", "-a", "--duration", "1"])
    check_eq(result.code, 3, f"exit code of --source ebpf ({result.err})")


@test
def doctor_reports_wine_and_the_rights():
    result = wine(["doctor", "--json"])
    check_eq(result.code, 0)
    checks = {o["id"]: o for o in json_lines(result.out)}
    for name in ("windows", "wine", "admin", "perf_log_users", "se_system_profile", "se_debug", "source_etw",
                 "source_poll"):
        check(name in checks, f"nothing about {name}")
    check_eq(checks["windows"]["state"], "ok")
    check_in("Wine", checks["wine"]["found"])
    check_eq(checks["source_poll"]["state"], "ok")
    check("source_ebpf" not in checks, "eBPF on Windows")


@test
def the_whole_machine_is_reported_as_far_as_wine_knows_it():
    result = wine(["stat", "--system-stats", "--json", "-a", "--source", "poll", "--hz", "1", "--duration", "2.5"])
    check_eq(result.code, 0, f"exit code ({result.err})")
    objects = json_lines(result.out)
    first, *later = [o for o in objects if o["type"] == "system"]
    check(later, "only one reading")
    meta = objects[0]
    with open("/proc/meminfo", encoding="ascii") as file:
        memory = next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemTotal:"))
    check_between(later[0]["memory_total_bytes"], memory - 65536, memory + 65536, "memory_total_bytes")
    check_eq({len(o["cpu_percents"]) for o in later}, {meta["cpus"]}, "CPUs")
    for o in later:
        check(all(0 <= p <= 100 for p in o["cpu_percents"]), f"cpu_percents: {o['cpu_percents']}")
        check(abs(o["cpu_percent"] - sum(o["cpu_percents"])) <= 100, f"{o['cpu_percent']} of {o['cpu_percents']}")
        check(o["processes"] >= 1 and o["threads"] >= o["processes"], f"{o['processes']} processes, {o['threads']} threads")
        check(o["processes_started"] is not None and o["processes_ended"] is not None, "starts and exits")
        check({"processes_started", "processes_ended"} <= set(o["estimated"]), f"estimated: {o['estimated']}")
    # Wine does not report thread states, and has neither page files nor paging.
    for name in ("load_1", "threads_running", "swap_total_bytes", "paged_in_bytes"):
        check_eq({o[name] for o in [first, *later]}, {None}, name)


@test
def the_matrix_has_a_reason_per_metric_and_one_line_per_missing_source():
    result = wine(["doctor", "--metrics"])
    check_eq(result.code, 0, "exit code")
    rows = {tuple(line.split()[:2]): line for line in result.out.splitlines() if line.count("  ") > 1}
    check_in("no such counter", rows["io", "net_sent_bytes"], "reason")
    check_eq(result.out.count("has no ETW"), 1, "number of such lines")


@test
def a_reader_that_closes_its_end_is_not_an_error():
    child = start_wine(["stat", "-a", "--source", "poll", "--hz", "50", "--duration", "20", "--json"])
    child.stdout.readline()
    child.stdout.close()
    child.wait(timeout=30)
    err = child.stderr.read().decode(errors="replace")
    check_eq((child.returncode, err), (0, ""))


@test
def a_replacement_for_proc_is_refused():
    result = wine(["stat", "-a", "--source", "poll", "--proc-root", "C:\\", "--duration", "1"])
    check_eq(result.code, 2)
    check_in("/proc", result.err)


@test
def usage_text_is_the_same():
    result = wine(["stat", "--hz", "no"])
    check_eq(result.code, 2)
    check_in("--hz", result.err)
    check("\r" not in result.err + wine(["--help"]).out, "other line ends")


main()
