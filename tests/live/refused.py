# SPDX-License-Identifier: MIT
"""Where the kernel refuses access: one clear line and polling instead, or exit code 3."""
import os
import shutil

from lib import ETWATCH, cases, check, check_eq, check_in, json_lines, main, need_ebpf, run, skip, temp_dir, test
from livekit import WORKLOADS, run_unprivileged, of_type

STAT = ["stat", "--json", "--duration", "0.3", "-p", str(os.getpid())]


def in_own_mount_namespace(setup, arguments):
    """Runs etwatch in its own mount namespace in which `setup` has changed the mounts."""
    if os.getuid() != 0 or not shutil.which("unshare"):
        skip("needs root and unshare")
    return run(["-m", "sh", "-c", f'{setup} || exit 99; exec "$@"', "sh", ETWATCH, *arguments], program="unshare")


def without_btf(arguments):
    result = in_own_mount_namespace("mount -t tmpfs none /sys/kernel/btf", arguments)
    return result, "has no type information"


def locked_down(arguments):
    if not os.path.isdir("/sys/kernel/security"):
        skip("there is no /sys/kernel/security to put a file into")
    setup = ("mount -t tmpfs none /sys/kernel/security && "
             "echo 'none integrity [confidentiality]' > /sys/kernel/security/lockdown")
    return in_own_mount_namespace(setup, arguments), "locked down"


def without_bpf(arguments):
    return run(["without-bpf", ETWATCH, *arguments], program=WORKLOADS), "not permitted"


def without_rights(arguments):
    with temp_dir() as folder:
        return run_unprivileged(arguments, folder), "not permitted"


def in_a_pid_namespace(arguments):
    if os.getuid() != 0 or not shutil.which("unshare"):
        skip("needs root and unshare")
    arguments = ["1" if a == str(os.getpid()) else a for a in arguments]
    return run(["-p", "-f", "--mount-proc", ETWATCH, *arguments], program="unshare"), "container"


REFUSALS = [
    ("no type information in the kernel", without_btf),
    ("a locked-down kernel", locked_down),
    ("bpf() refused by a sandbox", without_bpf),
    ("no rights", without_rights),
    ("a pid namespace", in_a_pid_namespace),
]


def checked(result):
    if result.code == 99:
        skip("cannot mount here: " + result.err.strip())
    return result


@cases(REFUSALS)
def it_polls_and_reports_the_reason_in_one_line(refuse):
    need_ebpf()
    result, reason = refuse(STAT)
    checked(result)
    check_eq(result.code, 0, f"exit code ({result.err.strip()})")
    lines = result.err.splitlines()
    check_eq(len(lines), 1, f"lines on standard error: {result.err!r}")
    check_in(reason, lines[0].lower().replace("operation ", ""), "the line")
    check_in("polling", lines[0], "the line")
    check_in("fix:", lines[0], "the line")
    objects = json_lines(result.out)
    check_eq({o["source"] for o in objects if "source" in o}, {"poll"}, "sources")
    check_in(reason, objects[0]["fallback"].lower(), "fallback in the meta object")
    check(of_type(objects, "start"), "no process was reported")


@cases(REFUSALS)
def without_a_fallback_it_is_exit_code_3_and_one_line(refuse):
    need_ebpf()
    for more in (["--no-fallback"], ["--source", "ebpf"]):
        result, reason = refuse([*STAT, *more])
        checked(result)
        check_eq(result.code, 3, f"exit code with {more} ({result.err.strip()})")
        check_eq(len(result.err.splitlines()), 1, f"lines on standard error: {result.err!r}")
        check_in(reason, result.err.lower(), "the line")
        check_eq(result.out, "", "standard output")


@cases(REFUSALS)
def a_command_that_cannot_be_watched_as_requested_is_not_run(refuse):
    need_ebpf()
    with temp_dir() as folder:
        os.chmod(folder, 0o777)
        mark = os.path.join(folder, "ran")
        result, _ = refuse(["run", "--no-fallback", "--", "touch", mark])
        checked(result)
        check_eq(result.code, 3, f"exit code ({result.err.strip()})")
        check(not os.path.exists(mark), "the command was run nevertheless")


@cases(REFUSALS)
def run_falls_back_too_and_keeps_the_status(refuse):
    need_ebpf()
    result, _ = refuse(["run", "--json", "--", "sh", "-c", "exit 5"])
    checked(result)
    check_eq(result.code, 5, f"exit code ({result.err.strip()})")
    check_eq({o["source"] for o in json_lines(result.out) if "source" in o}, {"poll"}, "sources")


def complaints(result):
    check_eq(result.code, 0, f"exit code ({result.err.strip()})")
    return {c["id"]: c for c in json_lines(result.out) if c.get("state") not in (None, "ok")}


@cases(REFUSALS)
def doctor_names_the_problem_and_the_fix(refuse):
    need_ebpf()
    result, _ = refuse(["doctor", "--json"])
    found = complaints(checked(result))
    usual = complaints(run(["doctor", "--json"]))
    more = [c for name, c in found.items() if name not in usual or c["state"] != usual[name]["state"]]
    check(more, f"doctor finds no more problems than usual: {sorted(usual)}")
    for c in more:
        check(c["cost"] and c["fix"], f"the consequence or the fix is missing: {c}")


@test
def integrity_lockdown_does_not_prevent_watching():
    need_ebpf()
    if not os.path.isdir("/sys/kernel/security"):
        skip("there is no /sys/kernel/security to put a file into")
    setup = ("mount -t tmpfs none /sys/kernel/security && "
             "echo 'none [integrity] confidentiality' > /sys/kernel/security/lockdown")
    result = checked(in_own_mount_namespace(setup, [*STAT, "--no-fallback"]))
    check_eq(result.code, 0, f"exit code ({result.err.strip()})")


@test
def the_event_stream_has_no_fallback():
    need_ebpf()
    result, _ = without_bpf([*STAT, "--events"])
    check_eq(result.code, 3, f"exit code ({result.err.strip()})")
    check_eq(len(result.err.splitlines()), 1, f"lines on standard error: {result.err!r}")


@test
def root_in_a_sandbox_is_not_advised_to_become_root():
    need_ebpf()
    if os.getuid() != 0:
        skip("needs root")
    result, _ = without_bpf([*STAT, "--no-fallback"])
    check("run as root" not in result.err, f"root is advised to become root: {result.err!r}")
    check_in("seccomp", result.err, "the line")


@test
def an_unreadable_proc_does_not_affect_kernel_metrics():
    """Names of users and command lines come from files; the metrics do not."""
    need_ebpf()
    if os.getuid() != 0 or not shutil.which("unshare"):
        skip("needs root and unshare")
    script = f"mount -t tmpfs none /proc || exit 99; exec {ETWATCH} run --json -q --cmdline -- {WORKLOADS} burn 30"
    result = checked(run(["-m", "sh", "-c", script], program="unshare"))
    check_eq(result.code, 0, f"exit code ({result.err.strip()})")
    ended = of_type(json_lines(result.out), "exit")[-1]
    check_eq((ended["source"], ended["cmdline"], ended["complete"]), ("ebpf", None, True), "source, command line")
    check(ended["cpu_ns"] >= 30e6, f"CPU time is {ended['cpu_ns']}")


main()
