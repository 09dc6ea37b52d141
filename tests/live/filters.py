# SPDX-License-Identifier: MIT
"""Filters by pid, name, user and cgroup select exactly the right processes."""
import contextlib
import hashlib
import os
import shutil
import signal
import sys
import time

from lib import cases, check, check_eq, check_in, json_lines, main, need_ebpf, run, skip, start, temp_dir, test
from livekit import WORKLOADS, check_stories, of_type, read_lines, wait_until

SOURCES = [("ebpf", "ebpf"), ("poll", "poll")]


def need(source):
    if source == "ebpf":
        need_ebpf()


@contextlib.contextmanager
def watching(*options):
    """A `stat` that has started; yields a function that ends it and returns its output."""
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
def a_pid_selects_the_process_and_all_its_descendants(source):
    """Existing and later descendants; not its parent, not its siblings."""
    need(source)
    script = f"{WORKLOADS} sleep 60 & {WORKLOADS} sleep 60 & echo ready; read go; (sh -c '{WORKLOADS} burn 600; :'); :"
    with temp_dir() as folder:
        path = os.path.join(folder, "out")
        family = start(["-c", script], program="sh", stdin=-1)
        brother = start(["sleep", 60], program=WORKLOADS)
        family.stdout.readline()
        wait_until(lambda: sorted(map(name_of, children_of(family.pid))) == ["workloads", "workloads"], "the children")
        monitor = start(["stat", "--json", "-q", "--source", source, "-o", path, "-p", family.pid])
        wait_until(lambda: len(of_type(read_lines(path), "start")) >= 3, "the family")
        family.stdin.write(b"go\n")
        family.stdin.close()
        family.wait()
        wait_until(lambda: family.pid in pids(read_lines(path), "exit"), "the exit of the parent")
        monitor.send_signal(signal.SIGINT)
        monitor.wait()
        objects = read_lines(path)
    check_stories(objects)
    seen = pids(objects)
    check(brother.pid not in seen and os.getpid() not in seen, "another process is shown")
    burner = [e for e in of_type(objects, "exit", name="workloads") if e["cpu_ns"] >= 200e6]
    check_eq(len(burner), 1, "grandchildren that burnt")
    check_in(burner[0]["ppid"], seen, "parents that are shown")
    sleepers = [s for s in of_type(objects, "start", name="workloads", ppid=family.pid)]
    check_eq(len(sleepers), 2, "preexisting children")


@cases(SOURCES)
def a_name_selects_its_versions_and_nothing_else(source):
    need(source)
    with temp_dir() as folder:
        names = ["etwprog", "etwprog3.11", "etwprog-dbg", "etwprogress", "xetwprog"]
        for name in names:
            shutil.copy(WORKLOADS, os.path.join(folder, name))
        old = [start(["sleep", 60], program=os.path.join(folder, name)) for name in names[:3]]
        wait_until(lambda: [name_of(child.pid) for child in old] == names[:3], "the execs")
        with watching("--source", source, "-n", "etwprog", "--hz", 20) as finish:
            new = {name: start(["sleep", 60], program=os.path.join(folder, name)) for name in names}
            time.sleep(1)  # long enough for polling
            objects = finish()
        seen = pids(objects)
    for child in old:
        check_in(child.pid, seen, "preexisting processes")
    check_eq({name for name, child in new.items() if child.pid in seen}, set(names[:3]), "names that are shown")
    check_eq({s["name"] for s in of_type(objects, "start")} - set(names[:3]), set(), "other names")


@cases(SOURCES)
def a_user_selects_only_that_users_processes(source):
    need(source)
    if os.getuid() != 0 or not shutil.which("setpriv"):
        skip("needs root and setpriv to change the user")
    uid = 61234  # an unused user ID
    with temp_dir() as folder:
        os.chmod(folder, 0o755)
        program = os.path.join(folder, "workloads")
        shutil.copy(WORKLOADS, program)
        as_user = ["--reuid", uid, "--clear-groups", program, "sleep", 60]
        old = start(as_user, program="setpriv")
        wait_until(lambda: os.stat(f"/proc/{old.pid}").st_uid == uid, "the other user")
        with watching("--source", source, "--user", uid, "--hz", 20) as finish:
            # Selected through a parent of the same user: a user is matched when a process starts.
            new = start(["--reuid", uid, "--clear-groups", "sh", "-c", f"{program} burn 600; :"], program="setpriv")
            new.wait()
            time.sleep(0.3)
            objects = finish()
    check_in(old.pid, pids(objects), "preexisting processes")
    check_eq({s["user"] for s in of_type(objects, "start")}, {str(uid)}, "users")
    check([s for s in of_type(objects, "exit", name="workloads") if s["cpu_ns"] >= 500e6], "the new one is not shown")


@test
def a_cgroup_without_processes_is_reported():
    for wanted, words in ((["--cgroup", "no/such/group"], "no/such/group"), (["--container", "deadbeef01"], "deadbeef01")):
        result = run(["stat", "--source", "poll", "--json", "--duration", "0.3", *wanted])
        check_eq(result.code, 0, "exit code")
        check_in("there was no process in the cgroup ", result.err, "standard error")
        check_in(words, result.err, "standard error")


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
def a_cgroup_selects_processes_in_it_below_it_and_moved_into_it(source):
    need(source)
    root = cgroup_root()
    name = f"etwatch-test-{os.getpid()}-{source}"
    with cgroup(root, name) as group, cgroup(root, name + "/below") as below:
        inside, lower, outside, comer = (start(["burn", 60000], program=WORKLOADS) for _ in range(4))
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
    check_eq(pids(objects), {inside.pid, lower.pid, comer.pid}, "processes shown")
    groups = {s["pid"]: s["cgroup"] for s in of_type(objects, "start")}
    check_eq((groups[inside.pid], groups[lower.pid]), ("/" + name, "/" + name + "/below"), "names of the cgroups")
    for child in (inside, lower, comer):
        check(of_type(objects, "sample", pid=child.pid), "a busy process has no sample")


@cases(SOURCES)
def a_container_is_found_by_the_beginning_of_its_id(source):
    need(source)
    root = cgroup_root()
    found = hashlib.sha256(f"{os.getpid()} {source}".encode()).hexdigest()
    other = hashlib.sha256(f"{os.getpid()} {source} other".encode()).hexdigest()
    folder = f"etwatch-test-{os.getpid()}-{source}"
    with cgroup(root, folder), cgroup(root, f"{folder}/docker-{found}.scope") as group, \
            cgroup(root, f"{folder}/{other}") as another:
        inside, outside = (start(["burn", 60000], program=WORKLOADS) for _ in range(2))
        try:
            put_into(group, inside.pid)
            put_into(another, outside.pid)
            with watching("--source", source, "--container", found[:12], "--hz", 20) as finish:
                time.sleep(0.5)
                objects = finish()
        finally:
            for child in (inside, outside):
                child.kill()
                child.wait()
    check_eq(pids(objects), {inside.pid}, "processes shown")
    check_eq({s["cgroup"] for s in of_type(objects, "start")}, {f"/{folder}/docker-{found}.scope"}, "its cgroup")


@test
def a_container_in_cgroups_of_version_1_is_polled_and_shown():
    root = "/sys/fs/cgroup/pids"
    if not os.path.exists(os.path.join(root, "cgroup.procs")) or not os.access(root, os.W_OK):
        skip("no cgroup v1 hierarchy that can be written")
    need_ebpf()
    found = hashlib.sha256(f"{os.getpid()} version 1".encode()).hexdigest()
    folder = f"etwatch-test-{os.getpid()}"
    with cgroup(root, folder), cgroup(root, f"{folder}/{found}") as group:
        inside = start(["burn", 60000], program=WORKLOADS)
        try:
            put_into(group, inside.pid)
            polled = run(["stat", "--container", found[:12], "--json", "--duration", 1])
            by_events = run(["stat", "--source", "ebpf", "-p", inside.pid, "--json", "--duration", 0.5])
        finally:
            inside.kill()
            inside.wait()
    check_eq((polled.code, by_events.code), (0, 0), f"exit codes ({polled.err})")
    check_in("version 1", polled.err, "why it polls")
    for result in (polled, by_events):
        starts = of_type(json_lines(result.out), "start")
        check_eq({(s["pid"], s["cgroup"]) for s in starts}, {(inside.pid, f"/{folder}/{found}")},
                 "processes and cgroups shown")


@test
def a_container_that_does_not_exist_is_an_error():
    need_ebpf()
    result = run(["stat", "--source", "ebpf", "--container", "f" * 64, "--duration", 1])
    check_eq(result.code, 1, f"exit code ({result.err})")
    check("no such container" in result.err or "cgroup" in result.err, result.err)


@test
def rules_add_up():
    need_ebpf()
    with temp_dir() as folder:
        named = os.path.join(folder, "etwother")
        shutil.copy(WORKLOADS, named)
        first, second, third = (start(["sleep", 60], program=p) for p in (named, WORKLOADS, WORKLOADS))
        wait_until(lambda: name_of(first.pid) == "etwother", "the exec")
        with watching("--source", "ebpf", "-n", "etwother", "-p", second.pid) as finish:
            time.sleep(0.3)
            seen = pids(finish())
    check_eq(seen & {first.pid, second.pid, third.pid}, {first.pid, second.pid}, "processes shown")


@test
def a_zombie_is_refused_with_one_line_and_not_watched_forever():
    """It is still a process, but no further event of it can follow."""
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
def a_process_that_exits_during_the_start_ends_the_watching(source):
    need(source)
    for delay in (0.01, 0.03, 0.06, 0.1, 0.15, 0.2):
        child = start([delay], program="sleep")
        result = run(["stat", "--json", "-q", "--source", source, "-p", child.pid], timeout=30)
        check(result.code == 0 or "ended" in result.err, f"exit code {result.code}: {result.err!r}")
        child.wait()


@cases(SOURCES)
def a_glob_matches_whole_names(source):
    """Descendants are followed, as with any name."""
    need(source)
    with temp_dir() as folder:
        wanted, other = os.path.join(folder, "ew_globbed_1"), os.path.join(folder, "xew_globbed_1")
        shutil.copy("/bin/sleep", wanted)
        shutil.copy("/bin/sleep", other)
        family = [start([60], program=wanted), start([60], program=other)]
        wait_until(lambda: name_of(family[1].pid) == "xew_globbed_1", "the programs")
        with watching("-n", "ew_*bed_?", "--source", source) as finish:
            late = start([0.3], program=wanted)
            late.wait()
            time.sleep(0.3)
            seen = pids(finish())
        for child in family:
            child.kill()
            child.wait()
        check_eq(seen, {family[0].pid, late.pid}, "processes")


@cases(SOURCES)
def an_excluded_process_stays_excluded_until_it_runs_another_program(source):
    """By name, also for a fork that has not called exec yet; its descendants are not excluded."""
    need(source)
    with temp_dir() as folder:
        out = os.path.join(folder, "ew_excluded")
        shutil.copy(shutil.which("sh"), out)
        script = f"echo ready; read go; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; {WORKLOADS} burn 300; :"
        family = start(["-c", script], program=out, stdin=-1)
        family.stdout.readline()
        with watching("-p", family.pid, "--exclude-name", "ew_excl*", "--source", source, "--hz", 20) as finish:
            family.stdin.write(b"go\n")
            family.stdin.close()
            family.wait()
            time.sleep(0.3)
            objects = finish()
        named = {o["name"] for o in of_type(objects, "sample")}
        check_eq(named, {"workloads"}, "names of samples")
        burnt = [o for o in of_type(objects, "exit") if o["name"] == "workloads"]
        check_eq(len(burnt), 1, "exits")
        least = 300_000_000 if source == "ebpf" else 1  # polling has only the last round before the exit
        check(burnt[0]["cpu_ns"] >= least, f"{burnt[0]['cpu_ns']} ns")


@cases(SOURCES)
def a_pid_or_a_user_can_be_excluded(source):
    need(source)
    kept, left = start(["sleep", 60], program=WORKLOADS), start(["sleep", 60], program=WORKLOADS)
    with watching("-n", "workloads", "--exclude-pid", left.pid, "--source", source) as finish:
        seen = pids(finish())
    check(kept.pid in seen and left.pid not in seen, f"{seen} has {left.pid} or lacks {kept.pid}")
    with watching("-n", "workloads", "--exclude-user", os.getuid(), "--source", source) as finish:
        seen = pids(finish())
    for child in (kept, left):
        child.kill()
        child.wait()
    check(not seen & {kept.pid, left.pid}, f"{seen} has one of the test's own")


@cases(SOURCES)
def without_the_system_there_are_no_kernel_threads(source):
    need(source)
    if not os.path.exists("/proc/2/stat") or name_of(2) != "kthreadd":
        skip("no kernel threads are visible here")
    with watching("-a", "--kernel-threads", "--exclude-system", "--source", source) as finish:
        seen = pids(finish())
    check(2 not in seen and os.getpid() in seen, "kthreadd is shown, or the test itself is not")


main()
