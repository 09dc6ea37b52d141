# SPDX-License-Identifier: MIT
"""Every command gives up its rights before it reads foreign bytes: seen in /proc while its output is blocked."""
import ctypes
import fcntl
import os
import platform
import struct

from etlkit import make_etl
from lib import BUILD, cases, check, check_eq, end, main, run, skip, start, temp_dir, test
from livekit import wait_until
from servekit import serve


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


@cases([("recordings", "pftrace"), ("output of run", "json")])
def compare_has_no_rights(kind):
    need_filter()
    with temp_dir() as folder:
        path = os.path.join(folder, f"a.{kind}")
        command = ["record", "-o", path] if kind == "pftrace" else ["run", "--json", "-o", path]
        check_eq(run([*command, "-q", "--source", "poll", "--hz", "50", "--", "sleep", "0.3"]).code, 0, command[0])
        # With itself: samples of two runs differ in length on a loaded machine, which compare refuses.
        found = blocked_status(["compare", "--json", path, path])
        check_eq((found["NoNewPrivs"], int(found["CapEff"], 16), int(found["CapPrm"], 16)), ("1", 0, 0), "rights")


@cases([("etl", "etl"), ("pftrace", "pftrace")])
def a_server_of_a_recording_has_no_rights(kind):
    need_filter()
    if sanitized():
        skip("a sanitizer needs system calls that the filter refuses")
    with temp_dir() as folder:
        server = serve(recording(folder, kind), source=None)
        for pid in (server.child.pid, server.serving_pid()):
            wait_until(lambda pid=pid: status(pid)["Seccomp"] == "2", f"a filter for {status(pid)['Name']}")
            found = status(pid)
            check_eq((found["NoNewPrivs"], int(found["CapEff"], 16), int(found["CapPrm"], 16)), ("1", 0, 0), f"rights of {found['Name']}")
        end(server.child)


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


@cases([("events", "auto"), ("polling", "poll")])
def the_collecting_process_of_a_server_keeps_only_what_monitoring_needs(source):
    need_filter()
    if sanitized():
        skip("a sanitizer needs system calls that the filter refuses")
    server = serve("-a", source=source)
    wait_until(lambda: status(server.child.pid)["Seccomp"] == "2", "a filter")
    found = status(server.child.pid)
    check_eq((found["NoNewPrivs"], int(found["CapEff"], 16) & ~LIVE_CAPS), ("1", 0), "rights")
    end(server.child)


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


def refuse_filters():
    """From here on this process and its children cannot install a filter: EPERM, as in some containers."""
    number = {"x86_64": 157, "aarch64": 167}[platform.machine()]  # of prctl
    code = [(0x20, 0, 0, 0), (0x15, 0, 3, number),      # the system call: prctl, else allowed
            (0x20, 0, 0, 16), (0x15, 0, 1, 22),         # its first argument: PR_SET_SECCOMP, else allowed
            (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
    program = b"".join(struct.pack("<HBBI", *one) for one in code)
    kept = ctypes.create_string_buffer(program, len(program))
    libc = ctypes.CDLL(None, use_errno=True)
    head = struct.pack("<H6xQ", len(code), ctypes.addressof(kept))
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, head, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot install the filter of the test")


def need_refusal():
    need_filter()
    if sanitized():
        skip("a build for a sanitizer has no filter")
    if platform.machine() not in ("x86_64", "aarch64"):
        skip("the number of prctl is not known")


REFUSED = "etwatch: the system refuses the filter of system calls (seccomp): Operation not permitted; continuing without it"


@cases([("report", ["report", "--json", "FILE"]), ("stat", ["stat", "--json", "-q", "FILE"]), ("export", ["export", "-f", "csv", "FILE"]),
        ("a live command", ["run", "--json", "-q", "--source", "poll", "--", "true"])])
def a_command_says_that_its_filter_is_refused(arguments):
    need_refusal()
    with temp_dir() as folder:
        path = recording(folder, "etl")
        words = [word.replace("FILE", path) for word in arguments]
        done = run(words, preexec_fn=refuse_filters)
        check_eq(done.code, 0, done.err)
        check_eq(done.err.splitlines().count(REFUSED), 1, f"message in {done.err!r}")
        check(done.out != "", "no output")
        check(REFUSED not in run(words).err, "the message although the filter is effective")


@test
def a_server_says_that_the_filters_of_both_processes_are_refused():
    need_refusal()
    server = serve("-a", preexec_fn=refuse_filters)
    check_eq(server.get("/healthz")[0], 200, "status")
    printed = server.stop()
    check_eq(printed.splitlines().count(REFUSED), 2, f"messages in {printed!r}")


main()
