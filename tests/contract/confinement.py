# SPDX-License-Identifier: MIT
"""Every command gives up its rights before it reads foreign bytes: seen in /proc while its output is blocked."""
import fcntl
import os

from etlkit import make_etl
from lib import BUILD, cases, check_eq, end, main, run, skip, start, temp_dir
from livekit import wait_until


def need_filter():
    if os.environ.get("ETWATCH_UNDER_WINE") == "1":
        skip("Windows has no filter of system calls")
    if not os.path.exists("/proc/sys/kernel/seccomp/actions_avail"):
        skip("the kernel has no seccomp")


def full_pipe():
    """A pipe that takes no more bytes: the first write of the command blocks."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    try:
        while True:
            os.write(writer, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(writer, True)
    return reader, writer


def status(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def sanitized():
    with open(os.path.join(BUILD, "build.ninja"), encoding="utf-8") as file:
        return "-DEW_CONFINE=0" in file.read()


def blocked_status(arguments):
    """The state of the command at its first write."""
    if sanitized():
        skip("a sanitizer needs system calls that the filter refuses")
    reader, writer = full_pipe()
    child = start(arguments, stdout=writer)
    os.close(writer)
    try:
        def filtered():
            if child.poll() is not None:
                raise AssertionError(f"{arguments} ended: {child.stderr.read().decode()}")
            return status(child.pid)["Seccomp"] == "2"
        wait_until(filtered, f"a filter for {arguments}")
        return status(child.pid)
    finally:
        end(child)
        os.close(reader)


def recording(folder, kind):
    if kind == "etl":
        make_etl("switches", os.path.join(folder, "source.etl"))
        return os.path.join(folder, "source.etl")
    path = os.path.join(folder, "source.pftrace")
    check_eq(run(["record", "-q", "--source", "poll", "-o", path, "--", "true"]).code, 0, "record")
    return path


READERS = [("report", ["report"]), ("report in JSON", ["report", "--json"]), ("events", ["events"]), ("waits", ["waits"]),
           ("export to CSV", ["export", "-f", "csv"]), ("export to Arrow", ["export", "-f", "arrow"]),
           ("export to Perfetto", ["export", "-f", "perfetto"]), ("stat", ["stat", "--json"])]


@cases([(f"{remark}, {kind}", arguments, kind) for remark, arguments in READERS for kind in ("etl", "pftrace")
        if (arguments[0], kind) != ("stat", "pftrace") and (arguments[-1], kind) != ("perfetto", "pftrace")])
def a_reader_of_recordings_has_no_rights(arguments, kind):
    need_filter()
    with temp_dir() as folder:
        found = blocked_status([*arguments, recording(folder, kind)])
        check_eq((found["NoNewPrivs"], int(found["CapEff"], 16), int(found["CapPrm"], 16)), ("1", 0, 0), "rights")


# What monitoring needs: KILL, DAC_READ_SEARCH, SYS_PTRACE, PERFMON, BPF.
LIVE_CAPS = 1 << 5 | 1 << 2 | 1 << 19 | 1 << 38 | 1 << 39


@cases([("run", ["run", "--json", "--", "sleep", "9"]), ("stat", ["stat", "-a", "--json"]), ("top", ["top", "-a", "--duration", "9"]),
        ("waits", ["waits", "-a", "--json", "--duration", "0.5"]),
        ("onnx", ["onnx", "-a", "--json", "--duration", "0.5"]),
        ("stat by polling", ["stat", "-p", os.getpid(), "--source", "poll", "--json"])])
def a_live_command_keeps_only_what_monitoring_needs(arguments):
    need_filter()
    found = blocked_status(arguments)
    check_eq((found["NoNewPrivs"], int(found["CapEff"], 16) & ~LIVE_CAPS), ("1", 0), "rights")


@cases([("record", ["record", "-a", "-q"]), ("record with a ring", ["record", "-a", "-q", "--ring", "5s"])])
def a_recorder_keeps_only_what_monitoring_needs(arguments):
    need_filter()
    with temp_dir() as folder:
        found = blocked_status([*arguments, "-o", os.path.join(folder, "x.pftrace")])
        check_eq((found["NoNewPrivs"], int(found["CapEff"], 16) & ~LIVE_CAPS), ("1", 0), "rights")


@cases([("run", ["run", "-q"]), ("record", ["record", "-q", "-o", "FOLDER/x.pftrace"])])
def the_command_itself_is_not_confined(arguments):
    need_filter()
    with temp_dir() as folder:
        done = run([word.replace("FOLDER", folder) for word in arguments] + ["--", "cat", "/proc/self/status"])
        check_eq(done.code, 0, done.err)
        found = dict(line.split(":\t", 1) for line in done.out.splitlines() if ":\t" in line)
        own = status(os.getpid())
        for name in ("Seccomp", "NoNewPrivs", "CapEff", "CapBnd"):
            check_eq(found[name], own[name], name)


main()
