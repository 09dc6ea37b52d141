# SPDX-License-Identifier: MIT
"""The names in the JSON output, written out: scripts depend on each of them with every source."""
from commandkit import UNDER_WINE, linux_only, sleeps, running_process, works
from lib import check, check_eq, json_lines, main, need_ebpf, run, test

WHICH = "pid start_ns name ppid session_id user cgroup".split()
WHEN = "t_ns dt_ns source complete".split()
CPU = """cpu_percent cpu_ns cpu_user_ns cpu_kernel_ns cycles instructions cache_misses
    switches_voluntary switches_involuntary runq_wait_ns priority affinity""".split()
MEMORY = """rss_bytes rss_peak_bytes private_bytes virtual_bytes faults_minor faults_major
    pool_paged_bytes pool_nonpaged_bytes""".split()
THREADS = "threads threads_running threads_ready threads_waiting threads_suspended".split()
IO = """io_read_bytes io_write_bytes io_other_bytes io_read_ops io_write_ops io_other_ops io_priority
    disk_read_bytes disk_write_bytes net_received_bytes net_sent_bytes""".split()
HANDLES = "handles handles_peak gdi_objects user_objects".split()
DEVICES = "gpu_ns gpu_percent gpu_memory_bytes npu_ns npu_percent energy_uj".split()
EXIT = "exit_ns exit_code exit_signal".split()
STATS = """source hz_requested hz_reached samples events lost undecoded late self_cpu_percent
    self_kernel_percent self_rss_bytes self_rss_peak_bytes wakeups""".split()
META = "version host os cpus source hz_requested anchor_unix_ns anchor_raw_ns estimated".split()

PROCESS = WHICH + WHEN + CPU + MEMORY + THREADS + IO + HANDLES + DEVICES
TYPES = {
    "meta": META,
    "start": PROCESS,
    "sample": PROCESS,
    "exit": PROCESS + EXIT,
    "thread": WHICH + WHEN + ["tid", "thread_name"] + CPU,
    "stats": STATS,
}
TEXT = "type name user cgroup cmdline source thread_name version host os fallback".split()
# Values that no source on Linux can know and that Wine does not count.
NEVER = "pool_paged_bytes pool_nonpaged_bytes gdi_objects user_objects".split()
ALWAYS = {"cpu_ns", "cpu_percent", "cpu_user_ns", "cpu_kernel_ns", "rss_bytes", "threads", "priority"}
if UNDER_WINE:
    NEVER = "switches_voluntary faults_minor io_read_bytes private_bytes".split()


def watch(source, *more):
    result = run(["run", "--json", "-q", "--threads", "--source", source, *more, "--", *works(5)])
    check_eq(result.code, 5, "exit code")
    # The command may write to the same output.
    return json_lines("\n".join(line for line in result.out.splitlines() if line.startswith('{"type":')))


def check_names(objects, without=()):
    seen = {o["type"] for o in objects}
    check_eq(sorted(set(TYPES) - seen - set(without)), [], "types that are missing")
    orders = {}
    for o in objects:
        missing = [name for name in TYPES.get(o["type"], []) if name not in o]
        check_eq(missing, [], f"names missing in {o['type']}")
        order = orders.setdefault(o["type"], list(o))
        check_eq(list(o), order, f"order of names in {o['type']}")


def check_types(objects):
    for o in objects:
        for name, value in o.items():
            if value is None or name in ("estimated", "available"):
                continue
            if name in TEXT:
                check(isinstance(value, str), f"{name} is {value!r}, not a string")
            elif name == "complete":
                check(isinstance(value, bool), f"{name} is {value!r}, not a boolean")
            elif name.endswith("_percent") or name.startswith("hz_"):
                check(isinstance(value, float), f"{name} is {value!r}, not a decimal number")
            else:
                check(isinstance(value, int), f"{name} is {value!r}, not an integer")


def check_order(objects):
    check_eq(objects[0]["type"], "meta", "first type")
    check_eq(objects[-1]["type"], "stats", "last type")
    kinds = [o["type"] for o in objects]
    check_eq((kinds.count("meta"), kinds.count("stats")), (1, 1), "number of meta and stats")
    state = {}
    for o in objects:
        key = (o.get("pid"), o.get("start_ns"))
        if o["type"] == "start":
            check(key not in state, f"two starts of {key}")
            state[key] = "alive"
        elif o["type"] in ("sample", "thread", "exit"):
            check_eq(state.get(key), "alive", f"state of {key} at its {o['type']}")
            if o["type"] == "exit":
                state[key] = "over"


def check_values(objects, source):
    root = next(o for o in objects if o["type"] == "exit")
    samples = [o for o in objects if o["type"] == "sample" and o["pid"] == root["pid"]]
    for o in samples:
        check_eq(o["source"], source, "source")
        for name in NEVER:
            check_eq(o[name], None, name)
    check(samples, "no sample of the process")
    check_eq(root["exit_code"], 5, "exit_code")
    check(root["cpu_ns"] > 1000000, f"cpu_ns is {root['cpu_ns']}")
    total = sum(o["cpu_ns"] or 0 for o in samples)  # Wine has no times of a process that starts
    check(abs(total - root["cpu_ns"]) <= 0.01 * root["cpu_ns"] + 1,
          f"samples add up to {total} ns, exit says {root['cpu_ns']}")
    check_eq(objects[-1]["lost"], 0, "lost")
    known = {name for o in samples for name, value in o.items() if value is not None}
    check_eq(sorted(ALWAYS - known), [], "metrics of every source that are missing")


def check_all(source):
    # The number of threads is read when samples are fetched: this must happen while the process lives.
    objects = watch(source, "--latency", 50)
    # Wine counts no CPU time of threads, so all of them look idle: contract/etw_live covers them.
    check_names(objects, ("thread",) if UNDER_WINE else ())
    check_types(objects)
    check_order(objects)
    check_values(objects, source)


@test
def every_name_is_present_when_polling():
    check_all("poll")


@test
def every_name_is_present_with_ebpf():
    need_ebpf()
    check_all("ebpf")


@test
def the_command_line_is_present_only_on_request():
    check("cmdline" not in watch("poll")[1], "cmdline without --cmdline")
    start = next(o for o in watch("poll", "--cmdline") if o["type"] == "sample")
    if start["cmdline"] is None:
        linux_only("this Wine does not provide the command lines of other processes")
    last = "work 5" if UNDER_WINE else "raise SystemExit(5)"
    check(last in start["cmdline"], f"cmdline is {start['cmdline']!r}")


@test
def a_secret_in_a_command_line_is_masked():
    result = run(["run", "--json", "-q", "--source", "poll", "--cmdline", "--",
                  *sleeps(0.5), "--password=hunter2"])
    check_eq(result.code, 0, "exit code")
    check("hunter2" not in result.out, "the password is in the output")
    if '"cmdline":null' in result.out:
        linux_only("this Wine does not provide the command lines of other processes")
    check("--password=" in result.out, "the option itself is not in the output")


@test
def stat_names_preexisting_processes():
    with running_process() as pid:
        result = run(["stat", "--json", "--source", "poll", "--duration", "0.5", "-p", pid])
    check_eq(result.code, 0, "exit code")
    start = next(o for o in json_lines(result.out) if o["type"] == "start")
    check_eq(start["pid"], pid, "pid")
    check(start["rss_bytes"] > 1000000, f"rss_bytes is {start['rss_bytes']}")
    check_eq(start["exit_code"] if "exit_code" in start else None, None, "exit_code")


@test
def events_have_every_name():
    need_ebpf()
    result = run(["run", "--json", "-q", "--events", "--", "sh", "-c", "/bin/true; sleep 0.2"])
    check_eq(result.code, 0, "exit code")
    events = [o for o in json_lines(result.out) if o["type"] == "event"]
    kinds = {o["event"] for o in events}
    check_eq(sorted({"switch", "wakeup", "fork", "exec", "exit"} - kinds), [], "kinds missing")
    names = """type event t_ns cpu pid tid name next_pid next_tid waker_pid waker_tid child_pid child_tid
        state io_wait wait_reason wait_ns ready_ns priority exit_code exit_signal""".split()
    for o in events:
        check_eq(list(o), names, "names of an event")


@test
def windows_have_every_name():
    names = "type pid start_ns name t_ns dt_ns source complete intervals".split()
    names += [f"{metric}_{part}" for metric in ("cpu_percent", "rss_bytes")
              for part in ("avg", "max", "p95", "p99")]
    with running_process():
        result = run(["stat", "--json", "--source", "poll", "-a", "--window", "0.5", "--duration", "1.2"])
    check_eq(result.code, 0, "exit code")
    windows = [o for o in json_lines(result.out) if o["type"] == "window"]
    check(windows, "no window")
    for o in windows:
        check_eq(list(o), names, "names of a window")
        if o["intervals"] == 0:
            check_eq(o["cpu_percent_avg"], None, "average of nothing")
            continue
        check(o["cpu_percent_p95"] <= o["cpu_percent_p99"] <= o["cpu_percent_max"], repr(o))
        check(o["cpu_percent_avg"] <= o["cpu_percent_max"], repr(o))


main()
