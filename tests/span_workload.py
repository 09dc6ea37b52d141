# SPDX-License-Identifier: MIT
"""span_workload.py CAUSE: spans that are slow for one reason, and the workload's own account of it as JSON.

Not a test: tests/live/spans.py runs it under `etwatch run --spans`. What it measures itself (its CPU time, the time in
a call, the kernel's statistics of its cgroup) is the reference, so that a busy machine does not matter.
"""
import contextlib
import ctypes
import json
import mmap
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "python", "etwatch"))
import _marks  # noqa: E402  the module alone: the package needs the library

MARKS = _marks.connect()
CANNOT = 77


@contextlib.contextmanager
def span(name):
    with _marks.Span(MARKS, name, None) if MARKS else _marks.NoSpan():
        yield


def burn(cpu_ns):
    end = time.thread_time_ns() + cpu_ns
    while time.thread_time_ns() < end:
        pass


def rename(name):
    with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w", encoding="utf-8") as file:
        file.write(name)


def wait_with(hold):
    """Runs hold(begun) on another thread until it has begun."""
    begun = threading.Event()
    thread = threading.Thread(target=hold, args=(begun,))
    thread.start()
    begun.wait()
    return thread


def work():
    """Nothing but computing."""
    wall = cpu = 0
    for _ in range(20):
        wall_ns, cpu_ns = time.perf_counter_ns(), time.thread_time_ns()
        with span("work"):
            burn(5_000_000)
        wall += time.perf_counter_ns() - wall_ns
        cpu += time.thread_time_ns() - cpu_ns
    return {"wall_ns": wall, "cpu_ns": cpu}


def starved():
    """The same next to another process on the same CPU."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    ready, go = os.pipe()
    hog = os.fork()
    if hog == 0:
        rename("the-hog")
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, -10)  # heavier than whatever else this machine does
        os.write(go, b"g")
        while os.getppid() != 1:
            pass
        os._exit(0)
    os.read(ready, 1)
    try:
        return {**work(), "hog": hog}
    finally:
        os.kill(hog, 9)
        os.waitpid(hog, 0)


def faults():
    """Touches memory that was given back to the kernel."""
    pages, page = 4096, mmap.PAGESIZE
    memory = mmap.mmap(-1, pages * page)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    times = {"with": 0, "without": 0}
    for _ in range(8):
        memory.madvise(mmap.MADV_DONTNEED)
        cpu_ns = time.thread_time_ns()
        with span("faults"):
            ctypes.memset(address, 1, pages * page)
        times["with"] += time.thread_time_ns() - cpu_ns
        cpu_ns = time.thread_time_ns()
        ctypes.memset(address, 1, pages * page)
        times["without"] += time.thread_time_ns() - cpu_ns
    return {"count": 8 * pages, "cost_ns": times["with"] - times["without"], "cpu_ns": times["with"]}


def lock():
    """Waits for a lock that another thread holds."""
    mutex, waited = threading.Lock(), 0
    for _ in range(10):
        def hold(begun):
            rename("holder")
            with mutex:
                begun.set()
                time.sleep(0.02)
        thread = wait_with(hold)
        begun_ns = time.perf_counter_ns()
        with span("lock"):
            mutex.acquire()
        waited += time.perf_counter_ns() - begun_ns
        mutex.release()
        thread.join()
    return {"wait_ns": waited}


def gil():
    """Waits for the interpreter's lock, which another thread holds while it computes."""
    stop, waited = threading.Event(), 0

    def spin(begun):
        rename("spinner")
        begun.set()
        while not stop.is_set():
            sum(range(1000))
    thread = wait_with(spin)
    for _ in range(20):
        begun_ns = time.perf_counter_ns()
        with span("gil"):
            os.getppid()
            time.sleep(0)  # gives the lock away
        waited += time.perf_counter_ns() - begun_ns
    stop.set()
    thread.join()
    return {"wait_ns": waited}


def disk():
    """Reads from a disk, past the page cache."""
    size, waited = 1 << 20, 0
    path = os.path.join(os.getcwd(), f".span_workload.{os.getpid()}")
    with open(path, "wb") as file:
        file.write(os.urandom(16 * size))
        file.flush()
        os.fsync(file.fileno())
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    except OSError as error:
        sys.exit(cannot(f"no direct reads here: {error}"))
    finally:
        os.unlink(path)
    buffer = mmap.mmap(-1, size)
    buffer.write(b"\0" * size)
    for i in range(16):
        begun_ns = time.perf_counter_ns()
        with span("disk"):
            os.preadv(fd, [buffer], i * size)
        waited += time.perf_counter_ns() - begun_ns
    return {"wait_ns": waited}


def cannot(reason):
    sys.stderr.write(reason + "\n")
    return CANNOT


def throttled():
    """Uses more CPU than its cgroup may."""
    v2 = os.path.exists("/sys/fs/cgroup/cgroup.controllers")
    folder = f"/sys/fs/cgroup/{'' if v2 else 'cpu/'}etwatch-test-{os.getpid()}"
    limit = {"cpu.max": "20000 100000"} if v2 else {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "20000"}
    try:
        os.mkdir(folder)
        for name, value in limit.items():
            with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
                file.write(value)
        with open(f"{folder}/cgroup.procs", "w", encoding="utf-8") as file:
            file.write(str(os.getpid()))
    except OSError as error:
        sys.exit(cannot(f"no cgroup of our own: {error}"))

    def throttling():
        with open(f"{folder}/cpu.stat", encoding="utf-8") as file:
            stat = dict(line.split() for line in file)
        ns = int(stat["throttled_usec"]) * 1000 if "throttled_usec" in stat else int(stat["throttled_time"])
        return ns, int(stat["nr_throttled"])

    before_ns, before = throttling()
    try:
        result = work()
        after_ns, after = throttling()
        return {**result, "throttled_ns": after_ns - before_ns, "count": after - before}
    finally:
        with open(f"{os.path.dirname(folder)}/cgroup.procs", "w", encoding="utf-8") as file:
            file.write(str(os.getpid()))
        os.rmdir(folder)


def sleep():
    """Waits for a timer."""
    with span("sleep"):
        time.sleep(0.05)
    return {}


def processes():
    """Marks in a forked child and in a thread."""
    with span("parent"):
        pass
    child = os.fork()
    if child == 0:
        with span("child"):
            burn(1_000_000)
        os._exit(0)
    os.waitpid(child, 0)
    thread = threading.Thread(target=lambda: [burn(1) for _ in range(1) if not span("thread").__enter__()])
    thread.start()
    thread.join()
    return {"child": child, "pid": os.getpid()}


def cost():
    """What a pair of marks takes, in CPU time, beyond an empty loop; the best of some rounds."""
    marks = _marks.Span(MARKS, "mark", None) if MARKS else _marks.NoSpan()
    best = None
    for _ in range(20):
        begun_ns = time.thread_time_ns()
        for _ in range(1000):
            with marks:
                pass
        took_ns = (time.thread_time_ns() - begun_ns) / 1000
        best = took_ns if best is None else min(best, took_ns)
        time.sleep(0.05)  # the ring has room for 16384
    return {"pair_ns": best, "count": 20000}


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]]()))
