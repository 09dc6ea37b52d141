# SPDX-License-Identifier: MIT
"""The Python package on Windows: CPython for Windows (build-winpython/, see scripts/windows_python.py) runs it under Wine,
with the library for Windows. Wine has no ETW, so sessions are those of the emulator (tests/windows/emulated_library.c)."""
import json
import os
import re
import sys

from etlkit import make_etl
from lib import ROOT, Result, check, check_between, check_eq, check_in, main, run, skip, temp_dir, test
from toolkit import python as tools
from winekit import environment, launcher, windows_build

PYTHON = os.environ.get("ETWATCH_WINPYTHON", os.path.join(ROOT, "build-winpython"))


def windows_path(path):
    return "Z:" + os.path.abspath(path).replace("/", "\\")


def python(*arguments, library="etwatch.dll", timeout=110, **more):
    """Runs CPython for Windows with the package and a library of the build."""
    build = windows_build()
    program = os.path.join(PYTHON, "python.exe")
    if not os.path.exists(program):
        skip("no Python for Windows: scripts/windows_python.py build-winpython")
    if not os.path.exists(os.path.join(build, library)):
        skip(f"no {library} in {build}")
    first, *rest = launcher()
    # Paths of this system in PYTHONPATH would hide those of Windows.
    done = run([*rest, program, "-X", "utf8", *arguments], program=first, timeout=timeout,
               env={**os.environ, **environment(build), "PYTHONPATH": windows_path(os.path.join(ROOT, "python")),
                    "PYTHONDONTWRITEBYTECODE": "1", "ETWATCH_LIBRARY": windows_path(os.path.join(build, library)), **more})
    return Result(done.code, done.out.replace("\r\n", "\n"), done.err.replace("\r\n", "\n"))


def report(code, **options):
    """Runs code that prints one JSON object."""
    result = python("-c", code, **options)
    check_eq(result.code, 0, result.err)
    return json.loads(result.out.splitlines()[-1]), result.err


@test
def block_a_of_the_users_runs_on_windows():
    result = python(windows_path(os.path.join(ROOT, "tests", "python", "users", "monitor.py")), "1.5")
    check_eq(result.code, 0, result.err)
    check(re.search(r"^\d+ python\.exe average [\d.]+ p95 [\d.]+ samples [1-9]", result.out, re.M), result.out)
    check(re.search(r"^backend poll samples [1-9]\d* rate 100 lost 0$", result.out, re.M), result.out)
    check_in("no ETW; polling instead", result.err)
    check("UserWarning" not in result.err, result.err)  # python.exe is the name here


@test
def the_classes_and_configurations_of_the_users_work_on_windows():
    for name in ("classes", "configurations"):
        result = python(windows_path(os.path.join(ROOT, "tests", "python", "users", name + ".py")))
        check_eq(result.code, 0, result.err)
    check_eq(result.out.splitlines(), ["production poll True", "session poll True"])
    # What has no effect there: devices. The session is that of Windows, so its settings have.
    keys = set(re.findall(r"UserWarning: ([\w.]+):", result.err))
    check("min_buffers" not in keys and "kernel_flags" not in keys and "monitoring.npu.enable_profiling" in keys, str(keys))


@test
def a_process_has_its_figures_on_windows():
    found, _ = report("""if True:
        import json, os, etwatch
        process = etwatch.Process()
        total = sum(range(3_000_000))
        print(json.dumps([process.pid == os.getpid(), process.name(), process.num_threads(), process.num_handles(),
                          process.memory_info().rss, process.cpu_times().user, process.is_running(),
                          process.pid in etwatch.pids(), [p.name() for p in process.children()],
                          etwatch.Process(process.ppid()).name() if process.ppid() else None]))""")
    check_eq((found[0], found[1], found[6], found[7]), (True, "python.exe", True, True))
    check(found[2] >= 1 and found[3] > 0 and found[4] > 1_000_000 and found[5] > 0, str(found))


@test
def a_command_is_run_and_watched_on_windows():
    found, _ = report("""if True:
        import json, sys, etwatch
        result = etwatch.run([sys.executable, "-c", "x = sum(range(3_000_000)); raise SystemExit(3)"], hz=50)
        row = result.processes[0]
        print(json.dumps([result.status, len(result.processes), row["name"], row["cpu_ns"], len(result.samples)]))""")
    check_eq((found[0], found[2]), (3, "python.exe"))
    check(found[3] > 1_000_000 and found[4] > 0, str(found))


@test
def a_recording_is_read_on_windows_as_on_linux():
    with temp_dir() as folder:
        path = os.path.join(folder, "t.etl")
        make_etl("mixed", path, "--events", 5000)
        code = """if True:
            import json, sys, etwatch
            trace = etwatch.open(sys.argv[1])
            print(json.dumps([sum(filter(None, trace.processes["cpu_ns"])), len(trace.threads),
                              sum(1 for _ in trace.events(event="Thread/CSwitch")), trace.lost]))"""
        there = python("-c", code, windows_path(path))
        check_eq(there.code, 0, there.err)
        import etwatch
        trace = etwatch.open(path)
        here = [sum(filter(None, trace.processes["cpu_ns"])), len(trace.threads),
                sum(1 for _ in trace.events(event="Thread/CSwitch")), trace.lost]
    check_eq(json.loads(there.out), here)


@test
def a_monitor_has_an_etw_session_on_windows():
    with temp_dir() as folder:
        path = os.path.join(folder, "t.etl")
        make_etl("switches", path, "--events", 20000)
        found, err = report("""if True:
            import json, time, etwatch
            with etwatch.ETWMonitor(etwatch.ETWMonitorConfig(sampling_rate_hz=100, min_buffers=4)) as monitor:
                got = []
                for _ in range(100):
                    got += monitor.collect_metrics()
                    if len(got) > 100:
                        break
                    time.sleep(0.1)
                monitor.set_kernel_flags(["EVENT_TRACE_FLAG_PROCESS", "EVENT_TRACE_FLAG_THREAD", "EVENT_TRACE_FLAG_CSWITCH"])
                stats = monitor.get_statistics()
                stacks = monitor.enable_stack_walking(True)
            print(json.dumps([stats["backend"], len(got), stats["min_buffers_requested"], stats["min_buffers"],
                              stats["flush_ms"], stacks, sorted({s.metric_name for s in got})[:3]]))""",
                            library=os.path.join("tests", "etwatch_emulated.dll"), ETWATCH_EMULATED=windows_path(path))
    check_eq((found[0], found[2], found[4], found[5]), ("etw", 4, 100, True), err)
    check(found[1] > 100, f"{found[1]} samples")
    check_between(found[3], 16, 65536, "buffers")


def emulated(path):
    """The library with the emulated ETW, and its recording."""
    return {"library": os.path.join("tests", "etwatch_emulated.dll"), "ETWATCH_EMULATED": windows_path(path)}


@test
def the_configurations_of_the_users_reach_a_session_on_windows():
    with temp_dir() as folder:
        path = os.path.join(folder, "t.etl")
        make_etl("switches", path, "--events", 20000)
        users = windows_path(os.path.join(ROOT, "tests", "python", "users"))
        result = python(os.path.join(users, "configurations.py").replace("/", "\\"), **emulated(path))
        check_eq(result.code, 0, result.err)
        check_eq(result.out.splitlines(), ["production poll True", "session etw True"])
        check("UserWarning: min_buffers" not in result.err and "UserWarning: kernel_flags" not in result.err, result.err)
        found, err = report(f"""if True:
            import json, sys, warnings, etwatch
            from etwatch import _abi, _native
            sys.path.insert(0, {users!r})
            from configurations import ETW_SESSION_CONFIG
            def sessions():
                found = []
                function = _native.lib.etwatch_session_list
                def note(_, info):
                    one = info.contents
                    if one.flags & _abi.ETWATCH_SESSION_OURS:
                        found.append([one.name.decode(), one.buffer_kb, one.min_buffers, one.max_buffers, one.kernel.decode()])
                function(function.argtypes[0](note), None, None)
                return found
            settings = {{**ETW_SESSION_CONFIG, "max_buffers": 80}}
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                with etwatch.ETWMonitor(settings) as monitor:
                    during, stats = sessions(), monitor.get_statistics()
            print(json.dumps([during, len(sessions()), [str(one.message) for one in caught], stats["min_buffers"]]))""",
                            **emulated(path))
    (session,), left, texts, least = found
    check_eq((session[0], session[1], session[2], session[3], left, texts),
             ("etwatch-OnnxInferenceMonitor", 64, least, 80, 0, []), err)
    for kind in ("process", "thread", "image", "disk", "pagefaults", "profile", "cswitch"):
        check_in(kind, session[4].split(","))


@test
def callbacks_and_a_unified_monitor_have_the_samples_of_a_session_on_windows():
    with temp_dir() as folder:
        path = os.path.join(folder, "t.etl")
        make_etl("switches", path, "--events", 20000)
        found, err = report("""if True:
            import json, time, etwatch
            names, sizes = set(), []
            with etwatch.UnifiedMonitor(etwatch.ETWMonitorConfig(sampling_rate_hz=100)) as monitor:
                monitor.register_callback(lambda sample: names.add(sample.metric_name))
                monitor.register_batch_callback(lambda samples: sizes.append(len(samples)))
                for _ in range(200):
                    if {"process_cpu_percent", "system_cpu_percent"} <= names and sum(sizes) > 100:
                        break
                    time.sleep(0.05)
                now, backend = monitor.get_current_metrics(), monitor.backend
                errors = monitor.get_statistics()["callback_errors"]
            print(json.dumps([backend, sorted(names), sum(sizes), errors, len(now["process"]),
                              now["system"]["memory_total_bytes"] > 0]))""", **emulated(path))
    check_eq((found[0], found[3], found[5]), ("etw", 0, True), err)
    check("process_cpu_percent" in found[1] and "system_cpu_percent" in found[1], str(found[1]))
    check(found[2] > 100 and found[4] > 0, str(found))


@test
def blocks_a_and_b_of_the_users_run_on_a_session_on_windows():
    with temp_dir() as folder:
        path = os.path.join(folder, "t.etl")
        make_etl("switches", path, "--events", 20000)
        users = os.path.join(ROOT, "tests", "python", "users")
        result = python(windows_path(os.path.join(users, "monitor.py")), "1.5", **emulated(path))
        check_eq(result.code, 0, result.err)
        check(re.search(r"^backend etw samples \d+ rate 100 lost 0$", result.out, re.M), result.out)
        # The emulator's processes are those of its recording, which may have one with our own pid.
        result = python("-c", f"""if True:
            import os, runpy, sys
            sys.argv[1:] = [str(os.getpid()), "0.5"]
            runpy.run_path({windows_path(os.path.join(users, "callback.py"))!r}, run_name="__main__")""", **emulated(path))
        check_eq(result.code, 0, result.err)
        check(all(re.fullmatch(r"\d+\.\d{3} \d+ \S+ [\d.]+%", line) for line in result.out.splitlines()), result.out)


@test
def the_wheel_for_windows_is_installed_and_runs_block_a():
    build = windows_build()
    with temp_dir() as folder:
        made = run([os.path.join(ROOT, "packaging", "etwatch_build.py"), "windows", folder, build], program=sys.executable)
        check_eq(made.code, 0, made.err)
        site = os.path.join(folder, "site")
        done = run(["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--platform", "win_amd64",
                    "--only-binary=:all:", "--target", site, made.out.strip()], program=tools(), timeout=110)
        if "No module named pip" in done.err:
            skip("no pip here")
        check_eq(done.code, 0, done.err)
        users = os.path.join(ROOT, "tests", "python", "users", "monitor.py")
        result = python(windows_path(users), "1.5", PYTHONPATH=windows_path(site), ETWATCH_LIBRARY="")
        check_eq(result.code, 0, result.err)
        check(re.search(r"^backend poll samples [1-9]\d* rate 100 lost 0$", result.out, re.M), result.out)
        where = python("-c", "import etwatch; from etwatch import _native; print(etwatch.__file__); print(_native.lib._name)",
                       PYTHONPATH=windows_path(site), ETWATCH_LIBRARY="")
        check(all("\\site\\etwatch\\" in line for line in where.out.splitlines()), where.out + where.err)


@test
def a_consumer_gets_the_events_of_a_session_on_windows():
    with temp_dir() as folder:
        path = os.path.join(folder, "t.etl")
        make_etl("switches", path, "--events", 5000)
        found, err = report("""if True:
            import json, etwatch
            with etwatch.ETWConsumer("Microsoft-Windows-Kernel-Thread") as consumer:
                seen = [event for event, _ in zip(consumer, range(200))]
            print(json.dumps([len(seen), sorted({event.type for event in seen})]))""",
                            library=os.path.join("tests", "etwatch_emulated.dll"), ETWATCH_EMULATED=windows_path(path))
    check_eq(found[0], 200, err)
    check_in("ThreadContextSwitch", found[1])


main()
