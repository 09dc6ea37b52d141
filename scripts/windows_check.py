#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests on a real Windows what no emulator can: starts sessions and checks their output.

usage: python scripts/windows_check.py [--unit | --wheel FILE.whl] [--report FILE] BUILD-FOLDER

Needs an elevated terminal. --unit runs the unit tests of the folder instead. --wheel installs the Python package into a
virtual environment and runs the first users' program with it. Ends with one line and status 0 if everything held.
--report writes what was found, with the version of Windows and the messages of etwatch, into a text file that can be
sent to the developers; it has names of programs, but no command lines. A check that fails in any way, or that is ended,
leaves the lines of all checks before it. Standard library only.
"""
import ctypes
import glob
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import traceback

failures, children = [], []
report = None  # the file of --report, written line by line


def note(line):
    print(line, flush=True)
    if report:
        report.write(line + "\n")
        report.flush()


def say(ok, what, found=""):
    note(f"{'ok  ' if ok else 'FAIL'} {what}{': ' + str(found) if found != '' else ''}")
    if not ok:
        failures.append(what)


def start(*words, **options):
    """A child that is killed if its check fails."""
    child = subprocess.Popen([str(word) for word in words], **options)
    children.append(child)
    return child


class Watcher:
    """A running etwatch. Its output is read all the time: a full pipe (4 KB on Windows) would stop it."""

    def __init__(self, *words):
        self.child = start(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.out, self.err, self.begun = [], [], threading.Event()
        self.readers = [threading.Thread(target=self.read, args=pair, daemon=True)
                        for pair in ((self.child.stdout, self.out), (self.child.stderr, self.err))]
        for reader in self.readers:
            reader.start()
        self.begun.wait(60)

    def read(self, file, lines):
        for line in file:
            lines.append(line.decode(errors="replace"))
            if lines is self.out:
                self.begun.set()
        self.begun.set()

    def finish(self, timeout=60):
        """Status, objects, messages."""
        self.child.wait(timeout)
        for reader in self.readers:
            reader.join(timeout)
        return self.child.returncode, objects("".join(self.out)), "".join(self.err).strip()

    def kill(self):
        """The last line may be cut off: it is not read."""
        self.child.kill()
        self.child.wait()


def attempt(check, *arguments):
    """A check that raises is one that failed; the others still run."""
    try:
        check(*arguments)
    except Exception as error:  # whatever a first contact brings
        where = traceback.extract_tb(error.__traceback__)[-1]
        say(False, check.__name__, f"{type(error).__name__}: {error} (line {where.lineno})")
    finally:
        for child in children:
            if child.poll() is None:
                child.kill()
                child.wait()
        children.clear()
        os.environ.pop("ETWATCH_ETW", None)


def call(*words, timeout=120):
    done = subprocess.run([str(word) for word in words], capture_output=True, check=False, timeout=timeout)
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


def objects(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def sessions(etwatch):
    return [o for o in objects(call(etwatch, "sessions", "--json")[1]) if o["type"] == "session"]


def ours(etwatch):
    return sorted(o["name"] for o in sessions(etwatch) if o["ours"])


def check_doctor(etwatch):
    code, out, err = call(etwatch, "doctor", "--json")
    checks = {o["id"]: o for o in objects(out)}
    say(code == 0 and checks.get("source_etw", {}).get("state") == "ok", "doctor opens a session",
        err or checks.get("source_etw"))


def check_stat(etwatch):
    code, out, err = call(etwatch, "stat", "-a", "--hz", 20, "--duration", 5, "--json", "--no-fallback")
    lines = objects(out)
    say(code == 0 and lines and lines[0]["source"] == "etw", "stat watches through ETW", err)
    if not lines:
        return
    stats = lines[-1]
    begun = [o for o in lines if o["type"] == "start"]
    say(len(begun) > 30, "the rundown reports preexisting processes", len(begun))
    say(any(o["name"] == "services.exe" for o in begun), "with their names")
    used = sum(o["cpu_ns"] or 0 for o in lines if o["type"] == "sample")
    say(0 < used <= 5.5e9 * lines[0]["cpus"], "CPU time is at most the available time", used)
    for name in ("lost", "late", "undecoded"):
        say(stats[name] == 0, f"{name} is 0", stats[name])
    gauges = {name for o in lines if o["type"] == "sample" for name, value in o.items() if value is not None}
    for name in ("cpu_ns", "switches_voluntary", "runq_wait_ns", "rss_bytes", "private_bytes", "handles", "threads"):
        say(name in gauges, f"{name} is known")
    note(f"     own cost: {stats['self_cpu_percent']} % of a core, {stats['self_rss_peak_bytes'] >> 20} MB")


class IoCounters(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("read_ops", "write_ops", "other_ops", "read", "write", "other")]


def own_io():
    """I/O of this process, as Windows counts it (GetProcessIoCounters)."""
    counters, kernel32 = IoCounters(), ctypes.windll.kernel32
    kernel32.GetCurrentProcess.restype = ctypes.c_void_p
    kernel32.GetProcessIoCounters(ctypes.c_void_p(kernel32.GetCurrentProcess()), ctypes.byref(counters))
    return counters


def check_ways(etwatch, folder):
    """The four ways to a session: each must give this process's I/O and CPU time, its name and its user, without loss."""
    for enabled in ("flags", "providers"):
        for read in ("events", "buffers"):
            attempt(check_way, etwatch, folder, enabled, read)


def check_way(etwatch, folder, enabled, read):
    os.environ["ETWATCH_ETW"] = f"{enabled},{read}"
    way = f"{enabled}, {read}"
    watcher = Watcher(etwatch, "stat", "-p", os.getpid(), "--json", "--hz", "10", "--duration", "8", "--no-fallback")
    time.sleep(1)  # the session has begun
    before, cpu_before = own_io(), time.process_time_ns()
    path = os.path.join(folder, "written")
    with open(path, "wb", buffering=0) as file:
        for _ in range(64):
            file.write(bytes(1 << 20))
    with open(path, "rb", buffering=0) as file:
        while file.read(1 << 20):
            pass
    while time.process_time_ns() - cpu_before < 1_000_000_000:
        sum(range(10000))
    after, cpu = own_io(), time.process_time_ns() - cpu_before
    code, lines, err = watcher.finish()
    own = [o for o in lines if o["type"] == "sample" and o["pid"] == os.getpid()]
    say(code == 0 and own, f"{way}: this process is watched", err)
    if not own:
        return
    for what, metric in (("read", "io_read_bytes"), ("write", "io_write_bytes")):
        moved = [o[metric] for o in own if o[metric] is not None]
        wanted = getattr(after, what) - getattr(before, what)
        # Providers of builds before 26100 have no keyword for reads and writes: unknown is right there, 0 is not.
        say(abs(sum(moved) - wanted) <= 0.02 * wanted if moved else enabled == "providers",
            f"{way}: {metric} matches GetProcessIoCounters", f"{sum(moved) if moved else None} of {wanted}")
    used = sum(o["cpu_ns"] or 0 for o in own)
    say(abs(used - cpu) <= 0.1 * cpu, f"{way}: CPU time matches GetProcessTimes", f"{used} of {cpu}")
    say(own[-1]["name"].lower() == os.path.basename(sys.executable).lower(), f"{way}: name", own[-1]["name"])
    say((own[-1]["user"] or "").lower() == os.environ.get("USERNAME", "").lower(), f"{way}: user", own[-1]["user"])
    say(lines[-1]["lost"] == 0 and lines[-1]["late"] == 0, f"{way}: nothing lost or late",
        (lines[-1]["lost"], lines[-1]["late"]))


def check_load(etwatch, workloads):
    code, out, err = call(etwatch, "run", "--json", "-q", "--no-fallback", "--hz", 100, "--", workloads, "burn", 2000)
    said = [line for line in out.splitlines() if line.strip().isdigit()]
    ends = [o for o in objects(out) if o["type"] == "exit"]
    say(code == 0 and said and ends, "a known load is watched", err)
    if said and ends:
        wanted, got = float(said[0]), ends[0]["cpu_ns"] / 1e6
        say(abs(got - wanted) <= 0.02 * wanted, "its CPU time matches its own measurement", f"{got} ms of {wanted}")


def check_counters(etwatch, workloads, folder):
    """Hardware counters where the machine has them, and CycleTime everywhere."""
    names = ("cycles", "instructions", "cache_misses")
    known = {o["name"]: o["sources"] for o in objects(call(etwatch, "doctor", "--metrics", "--json")[1])}
    say(known["cycles"]["poll"]["exactness"] == "polled", "cycles can be polled", known["cycles"]["poll"])
    burn = (workloads, "burn", 1000)
    for source in ("poll", "etw"):
        _, out, err = call(etwatch, "run", "--json", "-q", "--source", source, "--metrics", "cpu", "--", *burn)
        ends = [o for o in objects(out) if o["type"] == "exit"]
        say(bool(ends), f"a load is counted ({source})", err)
        for name in names if ends else ():
            had = known[name].get(source, {})
            if had.get("exactness", "unavailable") == "unavailable":
                say(ends[0][name] is None, f"{name} ({source}) is null", had.get("how"))
            else:  # at least 0.2 and at most 8 per nanosecond; any number of misses
                rate = (ends[0][name] or 0) / max(ends[0]["cpu_ns"], 1)
                say(name == "cache_misses" or 0.2 < rate < 8, f"{name} ({source}) for a ns of CPU time", rate)
    path = os.path.join(folder, "counters.etl")
    _, _, err = call(etwatch, "record", "-o", path, "--metrics", ",".join(names), "--", *burn)
    found = [o for o in objects(call(etwatch, "report", "--json", path)[1])
             if o["type"] == "process" and o["name"] == "workloads.exe"]
    for name in names if found else ():
        wanted = known[name]["etw"]["exactness"] == "exact"
        say((found[0][name] is not None) == wanted, f"{name} in a recording", err.strip() or found[0][name])


def check_short(etwatch, workloads):
    script = f"for i in range(200): __import__('subprocess').call([{workloads!r}, 'exit', '7'])"
    _, out, _ = call(etwatch, "run", "--json", "-q", "--no-fallback", "--", sys.executable, "-c", script)
    codes = [o["exit_code"] for o in objects(out) if o["type"] == "exit" and o["name"] == "workloads.exe"]
    say(codes == [7] * 200, "200 short processes are all reported, with their exit codes", len(codes))


def check_record(etwatch, folder):
    path = os.path.join(folder, "trace.etl")
    code, _, err = call(etwatch, "record", "-o", path, "--duration", 3, "--cpu-sample-hz", 1000, "--stacks", "profile",
                        "--enable-provider", "Microsoft-Windows-Kernel-File:5:0x10")
    say(code == 0 and os.path.getsize(path) > 100000, "ETW writes a recording", err.strip())
    code, out, err = call(etwatch, "report", "--json", path)
    kinds = {o["type"] for o in objects(out)}
    say(code == 0 and {"trace", "class", "process"} <= kinds, "and it can be read", err)
    events = {o["event"] for o in objects(out) if o["type"] == "class"}
    for name in ("CSwitch", "SampleProf", "StackWalk", "DbgID_RSDS"):
        say(any(name.lower() in event.lower().replace("/", "") for event in events if event), f"it contains {name}")
    processes = [o for o in objects(out) if o["type"] == "process"]
    say(len(processes) > 30, "with the processes of the machine", len(processes))
    say(not any(o["name"] == "etwatch-record" for o in sessions(etwatch)), "the session is over")
    code, _, err = call(etwatch, "record", "-o", os.path.join(folder, "c.etl"), "--", "cmd", "/c", "exit 5")
    say(code == 5, "record -- CMD ends with its status", err)
    code, _, err = call(etwatch, "record", "-o", os.path.join(folder, "no", "x.etl"))
    say(code == 1 and not ours(etwatch), "a file that cannot be written is reported first", err)


def check_perfetto(etwatch, folder):
    """A Perfetto recording: every switch, and a report on it that equals that of the run."""
    path = os.path.join(folder, "run.pftrace")
    script = "import threading; [threading.Thread(target=sum, args=(range(3000000),)).start() for _ in range(8)]"
    code, live, err = call(etwatch, "record", "-q", "--json", "--threads", "--no-fallback", "-o", path, "--",
                           sys.executable, "-c", script)
    lines = objects(live)
    say(code == 0 and lines and lines[0]["source"] == "etw", "record -o FILE.pftrace -- CMD", err)
    say(call(etwatch, "report", "--json", "--threads", path)[1] == live, "its report equals that of the run, byte for byte")
    if lines:
        say(lines[0]["lost"] == 0 and lines[0]["switches"] > 1000, "with every switch", lines[0]["switches"])
    kinds = {o["event"]: o["count"] for o in objects(call(etwatch, "events", "--json", "--count-by-type", path)[1])}
    for name in ("sched_switch", "sched_waking", "task_newtask", "sched_process_exit"):
        say(kinds.get(name, 0) > 0, f"it contains {name}", kinds.get(name))
    code, out, err = call(etwatch, "stat", "-a", "--json", "--events", "--duration", 1, "--no-fallback")
    events = {o["event"] for o in objects(out) if o["type"] == "event"}
    say(code == 0 and {"switch", "wakeup"} <= events, "--events reports switches and wake-ups", sorted(events))
    code, out, err = call(etwatch, "waits", "-a", "--json", "-q", "--duration", 1)
    say(code == 0 and any(o["type"] == "wake" for o in objects(out)), "waits reports waiting threads and their wakers", err)


def check_refusals(etwatch):
    for words, want in (((["--enable-provider", "No-Such-Provider"]), 2), (["--kernel", "swaps"], 2),
                        (["--session", "no such session"], 1)):
        code, _, err = call(etwatch, "stat", "-a", "--duration", 1, *words)
        say(code == want and not ours(etwatch), f"refused: {' '.join(words)}", err.strip())


def check_endings(etwatch):
    watch = [etwatch, "stat", "-a", "--json", "--no-fallback"]
    first, second = Watcher(*watch), Watcher(*watch)
    say(len(ours(etwatch)) >= 2, "two at once have a session each", ours(etwatch))
    say(not any(o["orphan"] for o in sessions(etwatch)), "and neither is an orphan")
    first.kill()
    second.kill()
    say(all(o["orphan"] for o in sessions(etwatch) if o["ours"]), "after a kill they are")
    for _ in range(20):
        Watcher(*watch).kill()
    say(len(ours(etwatch)) <= 2, "20 more kills leave no more", ours(etwatch))
    code, out, _ = call(etwatch, "sessions", "--cleanup")
    say(code == 0 and not ours(etwatch), "cleanup leaves none", out.strip())


def check_restart(etwatch):
    watcher = Watcher(etwatch, "stat", "-a", "--json", "--duration", "6", "--no-fallback")
    time.sleep(2)
    for name in ours(etwatch):
        call("logman", "stop", name, "-ets")
    code, lines, _ = watcher.finish()
    say(code == 0 and lines and lines[-1]["lost"] > 0, "a session stopped from outside is restarted, with a loss",
        lines[-1] if lines else "")


def check_attach(etwatch):
    name = "NT Kernel Logger"
    code, out, err = call("logman", "start", name, "-p", "Windows Kernel Trace", "(process,thread,cswitch)", "-rt",
                          "-ets")
    if code != 0:
        note(f"skip foreign session: {out} {err}")
        return
    try:
        code, out, err = call(etwatch, "stat", "-a", "--json", "--duration", 4, "--session", name)
        lines = objects(out)
        say(code == 0 and any(o["type"] == "sample" and o["cpu_ns"] for o in lines), "a foreign session is read", err)
        say(any(o["name"] == name for o in sessions(etwatch)), "and keeps running")
    finally:
        call("logman", "stop", name, "-ets")


def run_unit(build):
    for program in sorted(glob.glob(os.path.join(build, "tests", "test_*.exe"))):
        code, out, err = call(program, timeout=300)
        bad = [line for line in out.splitlines() if line.startswith("not ok")]
        say(code == 0 and not bad, os.path.basename(program), (bad or [err.strip()])[0])


def check_wheel(wheel, etwatch):
    """Block (a) of the users: a configuration, five seconds, the summary and the statistics."""
    block = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests", "python", "users", "monitor.py")
    with tempfile.TemporaryDirectory() as folder:
        call(sys.executable, "-m", "venv", folder)
        python = os.path.join(folder, "Scripts", "python.exe")
        code, _, err = call(python, "-m", "pip", "install", "--no-index", wheel)
        say(code == 0, "the wheel is installed", err.strip()[-200:] if code else "")
        code, out, err = call(python, "-X", "dev", block, "5")
        last = (out.splitlines() or [""])[-1]
        say(code == 0 and last.startswith("backend etw "), "the users' program watches through ETW", last or err[-500:])
        say(any(" python.exe average " in line for line in out.splitlines()), "and finds the processes of a name", out[-300:])
        say(last.endswith(" lost 0"), "without a loss", last)
    say(not ours(etwatch), "no session is left", ours(etwatch))


def describe_machine(etwatch):
    note(call(etwatch, "--version")[1].strip())
    note(f"{sys.getwindowsversion()} {os.environ.get('PROCESSOR_ARCHITECTURE')} {os.cpu_count()} CPUs")
    note(call(etwatch, "doctor")[1].strip())
    call(etwatch, "sessions", "--cleanup")


def check_sessions(etwatch, workloads):
    """Everything that needs a real session, in the order of what a user does."""
    attempt(describe_machine, etwatch)
    with tempfile.TemporaryDirectory() as folder:
        attempt(check_doctor, etwatch)
        attempt(check_stat, etwatch)
        check_ways(etwatch, folder)
        if os.path.exists(workloads):
            attempt(check_load, etwatch, workloads)
            attempt(check_counters, etwatch, workloads, folder)
            attempt(check_short, etwatch, workloads)
        else:
            note("skip known loads: there is no workloads.exe")
        attempt(check_record, etwatch, folder)
        attempt(check_perfetto, etwatch, folder)
        attempt(check_refusals, etwatch)
        attempt(check_endings, etwatch)
        attempt(check_restart, etwatch)
        attempt(check_attach, etwatch)


def main():
    global report
    wheel = sys.argv[sys.argv.index("--wheel") + 1] if "--wheel" in sys.argv else None
    if "--report" in sys.argv:
        report = open(sys.argv[sys.argv.index("--report") + 1], "w", encoding="utf-8")
    build = os.path.abspath(sys.argv[-1])
    etwatch, workloads = os.path.join(build, "etwatch.exe"), os.path.join(build, "tests", "workloads.exe")
    if "--unit" in sys.argv:
        attempt(run_unit, build)
    elif wheel:
        attempt(check_wheel, os.path.abspath(wheel), etwatch)
    else:
        check_sessions(etwatch, workloads)
    note(f"{len(failures)} failed" if failures else "all held")
    if report:
        report.close()
    return 1 if failures else 0


sys.exit(main())
