# SPDX-License-Identifier: MIT
"""onnx_workload.py CAUSE MODEL: inferences of which some are slow for one reason, and the workload's own account as JSON.

Not a test: tests/live/onnx_causes.py runs it under `etwatch run --onnx`. Every tenth inference gets inputs that take long
to prepare: the runtime asks a dict for its keys inside of `run`, and there the deed is done. What the workload measures
itself is the reference, so that a busy machine does not matter.
"""
import contextlib
import ctypes
import json
import mmap
import os
import resource
import sys
import threading
import time

import numpy
import onnxruntime

from span_workload import burn, cannot, rename, wait_with

COUNT, EVERY = 40, 10


class Feed(dict):
    """Inputs of an inference; `deed` is done when the runtime reads their names."""

    def __init__(self, deed=None):
        super().__init__(x=numpy.ones((1, 256), numpy.float32))
        self.deed = deed

    def keys(self):
        if self.deed is not None:
            self.deed()
        return super().keys()


def make(threads=1):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(sys.argv[2], options, providers=["CPUExecutionProvider"])
    session.run(None, Feed())
    return session


def minor_faults():
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt


def infer(deed, before=lambda: None, after=lambda: None):
    """Runs all inferences. The time and the CPU time of the slow ones."""
    session = make()
    wall = cpu = count = 0
    for number in range(COUNT):
        slow = number % EVERY == EVERY - 1
        if slow:
            before()
        before_count, wall_ns, cpu_ns = minor_faults(), time.perf_counter_ns(), time.thread_time_ns()
        session.run(None, Feed(deed if slow else None))
        if slow:
            wall += time.perf_counter_ns() - wall_ns
            cpu += time.thread_time_ns() - cpu_ns
            count += minor_faults() - before_count
            after()
    return {"wall_ns": wall, "cpu_ns": cpu, "faults": count}


def quiet():
    """Nothing but computing, also on the threads of the runtime."""
    session = make(2)
    feed = {"x": numpy.ones((256, 256), numpy.float32)}
    wall = cpu = 0
    for _ in range(COUNT):
        wall_ns, cpu_ns = time.perf_counter_ns(), time.thread_time_ns()
        session.run(None, feed)
        wall += time.perf_counter_ns() - wall_ns
        cpu += time.thread_time_ns() - cpu_ns
    return {"wall_ns": wall, "cpu_ns": cpu}


def starved():
    """Another process on the same CPU, while a deed computes."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    hogs = []

    def before():
        ready, go = os.pipe()
        parent = os.getpid()
        hogs.append(os.fork())
        if hogs[-1] == 0:
            rename("onnx-hog")
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, 0, -20)
            os.write(go, b"g")
            while os.getppid() == parent:
                pass
            os._exit(0)
        os.read(ready, 1)
        os.close(ready)
        os.close(go)

    def after():
        os.kill(hogs[-1], 9)
        os.waitpid(hogs[-1], 0)

    return {**infer(lambda: burn(5_000_000), before, after), "hogs": hogs}


def faults():
    """Touches memory that was given back to the kernel."""
    pages, page = 8192, mmap.PAGESIZE
    memory = mmap.mmap(-1, pages * page)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))

    return infer(lambda: ctypes.memset(address, 1, pages * page), lambda: memory.madvise(mmap.MADV_DONTNEED))


def lock():
    """Waits for a lock that another thread holds."""
    mutex, threads = threading.Lock(), []

    def hold(begun):
        rename("onnx-holder")
        with mutex:
            begun.set()
            time.sleep(0.02)

    def after():
        mutex.release()
        threads.pop().join()

    return infer(mutex.acquire, lambda: threads.append(wait_with(hold)), after)


def gil():
    """The runtime gives Python's lock away while it computes, and another thread takes it."""
    stop, threads = threading.Event(), []

    def spin(begun):
        rename("onnx-spinner")
        begun.set()
        while not stop.is_set():
            sum(range(1000))

    def before():
        stop.clear()
        threads.append(wait_with(spin))

    def after():
        stop.set()
        threads.pop().join()

    return infer(lambda: time.sleep(0), before, after)


def disk():
    """Reads from a disk, past the page cache."""
    size = 4 << 20
    path = os.path.join(os.getcwd(), f".onnx_workload.{os.getpid()}")
    with open(path, "wb") as file:
        file.write(os.urandom(4 * size))
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
    at = iter(range(COUNT))
    return infer(lambda: os.preadv(fd, [buffer], next(at) * size))


def throttled():
    """Uses more CPU than its cgroup may."""
    v2 = os.path.exists("/sys/fs/cgroup/cgroup.controllers")
    folder = f"/sys/fs/cgroup/{'' if v2 else 'cpu/'}etwatch-onnx-{os.getpid()}"
    limit = {"cpu.max": "5000 100000"} if v2 else {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "5000"}

    def move(where):
        with open(f"{where}/cgroup.procs", "w", encoding="utf-8") as file:
            file.write(str(os.getpid()))

    def throttling():
        with open(f"{folder}/cpu.stat", encoding="utf-8") as file:
            stat = dict(line.split() for line in file)
        ns = int(stat["throttled_usec"]) * 1000 if "throttled_usec" in stat else int(stat["throttled_time"])
        return ns, int(stat["nr_throttled"])

    try:
        os.mkdir(folder)
        for name, value in limit.items():
            with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
                file.write(value)
    except OSError as error:
        sys.exit(cannot(f"no cgroup of our own: {error}"))
    try:
        result = infer(lambda: burn(15_000_000), lambda: move(folder), lambda: move(os.path.dirname(folder)))
        ns, count = throttling()
        return {**result, "throttled_ns": ns, "count": count}
    finally:
        os.rmdir(folder)


if __name__ == "__main__":
    # What else this machine does must not become the first cause: a session of its own is a group of the scheduler.
    with contextlib.suppress(OSError):
        os.setsid()
        with open("/proc/self/autogroup", "w", encoding="utf-8") as group:
            group.write("-20")
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, 0 if sys.argv[1] == "starved" else -20)
    print(json.dumps(globals()[sys.argv[1]]()))
