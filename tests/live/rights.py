# SPDX-License-Identifier: MIT
"""An ordinary user with exactly the documented capabilities: events instead of polling, for every live command."""
import os
import shutil
import signal

from lib import ETWATCH, cases, check, check_eq, end, json_lines, main, need_ebpf, run, skip, start, temp_dir, test
from livekit import wait_until

CAPS = "+bpf,+perfmon"


def run_with_documented_rights(arguments, folder):
    if os.getuid() != 0 or not shutil.which("setpriv"):
        skip("needs root and setpriv to become an ordinary user")
    os.chmod(folder, 0o777)
    copy = os.path.join(folder, "etwatch")
    shutil.copy(ETWATCH, copy)
    os.chmod(copy, 0o755)
    return run(["--reuid", 65534, "--regid", 65534, "--clear-groups", f"--inh-caps=-all,{CAPS}", f"--ambient-caps={CAPS}",
                f"--bounding-set=-all,{CAPS}", copy, *arguments], program="setpriv", cwd="/")


@cases([("run", ["run", "--json", "-q", "--no-fallback", "--", "true"]),
        ("stat", ["stat", "-a", "--json", "-q", "--no-fallback", "--duration", "0.5"])])
def events_are_measured_with_the_documented_capabilities(arguments):
    with temp_dir() as folder:
        done = run_with_documented_rights(arguments, folder)
        if "not supported" in done.err:
            skip(done.err.strip())
        check_eq(done.code, 0, done.err)
        check_eq(json_lines(done.out)[0]["source"], "ebpf", "source")


@cases([("record", ["record", "-q", "--no-fallback", "-o", "FOLDER/x.pftrace", "--", "true"]),
        ("top", ["top", "--no-fallback", "--duration", "0.5"])])
def other_live_commands_work_with_the_documented_capabilities(arguments):
    with temp_dir() as folder:
        done = run_with_documented_rights([word.replace("FOLDER", folder) for word in arguments], folder)
        check_eq(done.code, 0, done.err)
        check("polling instead" not in done.err, done.err)
        if arguments[0] == "record":
            check(os.path.getsize(os.path.join(folder, "x.pftrace")) > 0, "the recording is empty")


def folder_of_another_user(folder):
    if os.getuid() != 0:
        skip("needs root to write into the folder of another user")
    need_ebpf()
    home = os.path.join(folder, "home")
    os.mkdir(home, 0o700)
    os.chown(home, 65534, 65534)
    return home


def catches(pid, number):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        caught = next(line for line in file if line.startswith("SigCgt:"))
    return int(caught.split()[1], 16) >> (number - 1) & 1 == 1


@test
def root_rotates_files_in_the_folder_of_another_user():
    with temp_dir() as folder:
        home = folder_of_another_user(folder)
        done = run(["record", "-q", "--max-size", "64K", "--rotate", "2", "-o", os.path.join(home, "x.pftrace"), "--",
                    "sh", "-c", "for i in $(seq 1500); do /bin/true; done"])
        check_eq(done.code, 0, done.err)
        found = os.listdir(home)
        check_eq(len(found), 2, f"number of files kept ({found})")
        check("x.pftrace" not in found, "no second file was begun")
        for name in found:
            path = os.path.join(home, name)
            check_eq(os.stat(path).st_uid, 65534, "owner")
            check_eq(run(["report", "--json", path]).code, 0, f"report of {name}")


@test
def root_writes_the_ring_twice_into_the_folder_of_another_user():
    with temp_dir() as folder:
        home = folder_of_another_user(folder)
        path = os.path.join(home, "x.pftrace")
        child = start(["record", "-a", "--ring", "5s", "-o", path])
        wait_until(lambda: catches(child.pid, signal.SIGUSR1), "the recorder handles SIGUSR1")
        for name in ("x.pftrace", "x.2.pftrace"):
            file = os.path.join(home, name)
            child.send_signal(signal.SIGUSR1)
            wait_until(lambda file=file: os.path.exists(file) and os.path.getsize(file) > 0, f"{name} is written")
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=30)
        end(child)
        check_eq(child.returncode, 130, err.decode())


main()
