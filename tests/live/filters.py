# SPDX-License-Identifier: MIT
"""Only those who were asked for, and all of them: by pid, name, user and cgroup."""
import contextlib
import os
import shutil
import signal
import sys
import time

from lib import cases, check, check_eq, check_in, main, need_ebpf, run, skip, start, temp_dir, test
from livekit import DEEDS, check_stories, of_type, read_lines, wait_until

SOURCES = [("ebpf", "ebpf"), ("poll", "poll")]


def need(source):
    if source == "ebpf":
        need_ebpf()


@contextlib.contextmanager
def watching(*options):
    """A `stat` that has begun; yields the function that ends it and returns what it wrote."""
    with temp_dir() as folder:
        path = os.path.join(folder, "out")
        monitor = start(["stat", "--json", "-q", "-o", path, *options])
        wait_until(lambda: read_lines(path), "the first line of " + " ".join(map(str, options)))

        def finish():
            monitor.send_signal(signal.SIGINT)
            monitor.wait()
            objects = read_lines(path)
            check_stories(objects)
            return objects
        yield finish


def pids(objects, kind="start"):
    return {o["pid"] for o in of_type(objects, kind)}


def name_of(pid):
    with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
        return file.read().strip()


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
        return file.read().split()


@cases(SOURCES)
def a_pid_means_the_process_and_all_its_descendants(source):
    """Those it has already, and those it makes later; not its parent, not its brothers."""
    need(source)
    script = f"{DEEDS} sleep 60 & {DEEDS} sleep 60 & echo ready; read go; (sh -c '{DEEDS} burn 600; :'); :"
    with temp_dir() as folder:
        path = os.path.join(folder, "out")
        family = start(["-c", script], program="sh", stdin=-1)
        brother = start(["sleep", 60], program=DEEDS)
        family.stdout.readline()
        wait_until(lambda: sorted(map(name_of, children_of(family.pid))) == ["deeds", "deeds"], "the children")
        monitor = start(["stat", "--json", "-q", "--source", source, "-o", path, "-p", family.pid])
        wait_until(lambda: len(of_type(read_lines(path), "start")) >= 3, "the family")
        family.stdin.write(b"go\n")
        family.stdin.close()
        family.wait()
        wait_until(lambda: family.pid in pids(read_lines(path), "exit"), "the end of the family's head")
        monitor.send_signal(signal.SIGINT)
        monitor.wait()
        objects = read_lines(path)
    check_stories(objects)
    seen = pids(objects)
    check(brother.pid not in seen and os.getpid() not in seen, "somebody else is shown")
    burner = [e for e in of_type(objects, "exit", name="deeds") if e["cpu_ns"] >= 200e6]
    check_eq(len(burner), 1, "grandchildren that burnt")
    check_in(burner[0]["ppid"], seen, "parents that are shown")
    sleepers = [s for s in of_type(objects, "start", name="deeds", ppid=family.pid)]
    check_eq(len(sleepers), 2, "children that were there before")


@cases(SOURCES)
def a_name_means_its_versions_and_nothing_else(source):
    need(source)
    with temp_dir() as folder:
        names = ["etwprog", "etwprog3.11", "etwprog-dbg", "etwprogress", "xetwprog"]
        for name in names:
            shutil.copy(DEEDS, os.path.join(folder, name))
        old = [start(["sleep", 60], program=os.path.join(folder, name)) for name in names[:3]]
        wait_until(lambda: [name_of(child.pid) for child in old] == names[:3], "the execs")
        with watching("--source", source, "-n", "etwprog", "--hz", 20) as finish:
            new = {name: start(["sleep", 60], program=os.path.join(folder, name)) for name in names}
            time.sleep(1)  # long enough for polling
            objects = finish()
        seen = pids(objects)
    for child in old:
        check_in(child.pid, seen, "processes that were there before")
    check_eq({name for name, child in new.items() if child.pid in seen}, set(names[:3]), "names that are shown")
    check_eq({s["name"] for s in of_type(objects, "start")} - set(names[:3]), set(), "other names")


@cases(SOURCES)
def a_user_means_his_processes_and_nobody_elses(source):
    need(source)
    if os.getuid() != 0 or not shutil.which("setpriv"):
        skip("needs root and setpriv to be somebody else")
    uid = 61234  # nobody has it
    with temp_dir() as folder:
        os.chmod(folder, 0o755)
        program = os.path.join(folder, "deeds")
        shutil.copy(DEEDS, program)
        as_user = ["--reuid", uid, "--clear-groups", program, "sleep", 60]
        old = start(as_user, program="setpriv")
        wait_until(lambda: os.stat(f"/proc/{old.pid}").st_uid == uid, "the other user")
        with watching("--source", source, "--uid", uid, "--hz", 20) as finish:
            # Named through a parent of his own: a user is recognised when something begins.
            new = start(["--reuid", uid, "--clear-groups", "sh", "-c", f"{program} burn 600; :"], program="setpriv")
            new.wait()
            time.sleep(0.3)
            objects = finish()
    check_in(old.pid, pids(objects), "processes that were there before")
    check_eq({s["user"] for s in of_type(objects, "start")}, {str(uid)}, "users")
    check([s for s in of_type(objects, "exit", name="deeds") if s["cpu_ns"] >= 500e6], "the new one is not shown")


def cgroup_root():
    for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
        if os.path.exists(os.path.join(root, "cgroup.controllers")) and os.access(root, os.W_OK):
            return root
    skip("no cgroup v2 hierarchy that can be written")


@contextlib.contextmanager
def cgroup(root, path):
    full = os.path.join(root, path)
    try:
        os.mkdir(full)
    except OSError as error:
        skip(f"cannot make a cgroup: {error}")
    try:
        yield full
    finally:
        wait_until(lambda: not open(os.path.join(full, "cgroup.procs"), encoding="utf-8").read(), "an empty cgroup")
        os.rmdir(full)


def put_into(group, pid):
    with open(os.path.join(group, "cgroup.procs"), "w", encoding="utf-8") as file:
        file.write(str(pid))


@cases(SOURCES)
def a_cgroup_means_who_is_in_it_or_below_or_comes_in(source):
    need(source)
    root = cgroup_root()
    name = f"etwatch-test-{os.getpid()}-{source}"
    with cgroup(root, name) as group, cgroup(root, name + "/below") as below:
        inside, lower, outside, comer = (start(["burn", 60000], program=DEEDS) for _ in range(4))
        try:
            put_into(group, inside.pid)
            put_into(below, lower.pid)
            with watching("--source", source, "--cgroup", name, "--hz", 20) as finish:
                put_into(group, comer.pid)
                time.sleep(1)
                objects = finish()
        finally:
            for child in (inside, lower, outside, comer):
                child.kill()
                child.wait()
    check_eq(pids(objects), {inside.pid, lower.pid, comer.pid}, "who is shown")
    groups = {s["pid"]: s["cgroup"] for s in of_type(objects, "start")}
    check_eq((groups[inside.pid], groups[lower.pid]), ("/" + name, "/" + name + "/below"), "names of the cgroups")
    for child in (inside, lower, comer):
        check(of_type(objects, "sample", pid=child.pid), "a busy process has no sample")


@test
def rules_add_up():
    need_ebpf()
    with temp_dir() as folder:
        named = os.path.join(folder, "etwother")
        shutil.copy(DEEDS, named)
        first, second, third = (start(["sleep", 60], program=p) for p in (named, DEEDS, DEEDS))
        wait_until(lambda: name_of(first.pid) == "etwother", "the exec")
        with watching("--source", "ebpf", "-n", "etwother", "-p", second.pid) as finish:
            time.sleep(0.3)
            seen = pids(finish())
    check_eq(seen & {first.pid, second.pid, third.pid}, {first.pid, second.pid}, "who is shown")


@test
def a_zombie_is_one_clear_line_and_not_watched_for_ever():
    """It is still a process, but nothing will ever be heard of it."""
    need_ebpf()
    parent = start(["-c", "import os, time\n"
                    "pid = os.fork()\n"
                    "if pid == 0: os._exit(0)\n"
                    "print(pid, flush=True)\n"
                    "time.sleep(60)\n"], program=sys.executable)
    zombie = int(parent.stdout.readline())

    def is_zombie():
        with open(f"/proc/{zombie}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"
    wait_until(is_zombie, "the zombie")
    result = run(["stat", "--json", "-q", "--source", "ebpf", "-p", zombie], timeout=30)
    check_eq(result.code, 1, f"exit code ({result.err.strip()})")
    check_in("ended", result.err, "standard error")


@cases(SOURCES)
def a_process_that_ends_while_we_begin_ends_the_watching(source):
    need(source)
    for delay in (0.01, 0.03, 0.06, 0.1, 0.15, 0.2):
        child = start([delay], program="sleep")
        result = run(["stat", "--json", "-q", "--source", source, "-p", child.pid], timeout=30)
        check(result.code == 0 or "ended" in result.err, f"exit code {result.code}: {result.err!r}")
        child.wait()


main()
