# SPDX-License-Identifier: MIT
"""Nothing that a caller does from Python crashes the interpreter: every snippet runs in its own interpreter under
-X dev with faulthandler, and must exit normally."""
import os
import sys

from lib import cases, check, check_eq, check_in, main, run, skip, test

HEAD = """
import faulthandler, gc, os, random, signal, sys, threading, time
faulthandler.enable()
faulthandler.dump_traceback_later(100, exit=True)
import etwatch
from etwatch import ETWMonitor, ETWMonitorConfig
me = ETWMonitorConfig(target_processes={os.getpid()}, callback_batch_ms=20, sampling_rate_hz=200)
def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end: pass
"""


def runs(code, expect="done", status=0):
    result = run(["-X", "dev", "-W", "error::ResourceWarning", "-c", HEAD + code], program=sys.executable, timeout=110)
    check_eq(result.code, status, result.err[-3000:])
    check_in(expect, result.out)
    check("Fatal Python error" not in result.err, result.err[-3000:])
    return result


EVERYTHING = """
def operations(m, pid=os.getpid()):
    return [m.start_monitoring, m.stop_monitoring, m.cleanup, m.collect_metrics, m.get_process_metrics,
            lambda: m.get_process_metrics(pid), lambda: m.add_process(pid), lambda: m.remove_process(pid),
            lambda: m.register_callback(print_nothing), lambda: m.unregister_callback(print_nothing),
            lambda: m.register_batch_callback(len), lambda: m.unregister_callback(len), m.get_process_summary,
            m.get_statistics, lambda: m.set_kernel_flags(["EVENT_TRACE_FLAG_CSWITCH", "EVENT_TRACE_FLAG_PROCESS"]),
            lambda: m.enable_stack_walking(True), lambda: m.backend, lambda: repr(m)]
def print_nothing(sample): pass
expected = (etwatch.ETWError, ProcessLookupError)
"""


@test
def every_function_may_be_called_in_any_order():
    runs(EVERYTHING + """
random.seed(7)
for round in range(3):
    m = ETWMonitor(me)
    for _ in range(60):
        try: random.choice(operations(m))()
        except expected: pass
    if round: m.cleanup()
    for d in operations(m):
        try: d()
        except expected: pass
    del m
    gc.collect()
print("done")
""")


@test
def every_function_may_be_called_from_many_threads_at_once():
    runs(EVERYTHING + """
m = ETWMonitor(me)
errors = []
def work(seed):
    r = random.Random(seed)
    end = time.monotonic() + 3
    while time.monotonic() < end:
        try: r.choice(operations(m))()
        except expected: pass
        except BaseException as e: errors.append(repr(e)); return
threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
for t in threads: t.start()
for t in threads: t.join()
m.cleanup()
assert not errors, errors
print("done")
""")


@test
def the_native_monitor_may_be_called_after_it_was_closed():
    runs("""
from etwatch._monitor import NativeMonitor, make_config
from etwatch import _abi
n = NativeMonitor(make_config(flags=_abi.ETWATCH_CONFIG_ALL | _abi.ETWATCH_CONFIG_QUEUE, hz=100, latency_ms=20))
calls = [n.start, n.stop, n.read, n.stats, n.meta, lambda: n.add(1), lambda: n.remove(1), lambda: n.snapshot(1),
         lambda: n.poll(0), n.open, lambda: n.set_kernel(b"process", b"")]
ok = (etwatch.ETWError, ProcessLookupError, ValueError)
for c in calls:
    try: c()
    except ok: pass
# Readers wait inside while it is closed.
readers = [threading.Thread(target=lambda: [n.read(50) for _ in range(100)]) for _ in range(4)]
threading.excepthook = lambda args: None
n2 = n
for t in readers: t.start()
time.sleep(0.2)
n.close(); n.close()
for t in readers: t.join()
for c in calls:
    try: c()
    except etwatch.ETWSessionError: pass
    else: assert False, c
print("done")
""")


@cases([
    ("without a stop", "m.start_monitoring(); time.sleep(0.2)"),
    ("with a running callback", "m.register_callback(lambda s: None); m.start_monitoring(); spin(0.3)"),
    ("with a callback that blocks", "m.register_batch_callback(lambda b: time.sleep(100)); m.start_monitoring(); spin(0.4)"),
    ("with a watch in the middle", "w = etwatch.watch(os.getpid(), hz=1000).start(); i = iter(w); spin(0.2); next(i)"),
    ("with a watch in another thread", """w = etwatch.watch(os.getpid(), hz=100, latency_ms=20).start()
threading.Thread(target=lambda: [None for _ in w], daemon=True).start(); spin(0.2)"""),
    ("in the middle of an event stream", """w = etwatch.watch(os.getpid(), events=True, latency_ms=20, source='auto')
w.start(); i = w.events(duration=0.2); time.sleep(0.1)"""),
    ("in a cycle of references", "m.me = m; m.register_callback(m.__repr__); m.start_monitoring(); spin(0.2)"),
    ("from another thread", "m.start_monitoring(); threading.Timer(0.2, m.cleanup).start()"),
])
def the_interpreter_may_end_at_any_time(code):
    runs("m = ETWMonitor(me)\n" + code + "\nprint('done', flush=True)\n")


@test
def sys_exit_and_signals_end_the_interpreter_as_usual():
    runs("m = ETWMonitor(me)\nm.start_monitoring()\nprint('done', flush=True)\nsys.exit(3)", status=3)
    runs("m = ETWMonitor(me)\nm.start_monitoring()\nprint('done', flush=True)\nos.kill(os.getpid(), signal.SIGTERM)\n"
         "time.sleep(50)", status=128 + 15)
    result = runs("m = ETWMonitor(me)\nm.register_callback(lambda s: None)\nm.start_monitoring()\n"
                  "print('done', flush=True)\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(50)", status=128 + 2)
    check_in("KeyboardInterrupt", result.err)


@test
def a_forked_child_does_not_affect_the_monitor_and_may_make_its_own():
    runs(EVERYTHING + """
m = ETWMonitor(me)
m.register_callback(print_nothing)
w = etwatch.watch(os.getpid(), hz=100).start()
m.start_monitoring()
spin(0.3)
for _ in range(5):
    pid = os.fork()
    if pid == 0:
        for d in operations(m)[1:]:
            try: d()
            except expected: pass
        try: w.read(0.1)
        except etwatch.ETWError: pass
        w.close()
        del m, w
        gc.collect()
        with ETWMonitor(ETWMonitorConfig(target_processes={os.getpid()}, callback_batch_ms=20)) as own:
            end = time.monotonic() + 20
            while not own.collect_metrics() and time.monotonic() < end: spin(0.05)
            os._exit(0 if time.monotonic() < end else 9)
    assert os.waitpid(pid, 0)[1] == 0
before = m.get_statistics()["samples"]
spin(0.3)
assert m.get_statistics()["samples"] > before, "the parent's monitor has stopped"
m.cleanup(); w.close()
print("done")
""")


@test
def multiprocessing_by_fork_works_next_to_a_monitor():
    runs("""
import multiprocessing
def square(x): return x * x
m = ETWMonitor(me)
m.register_callback(lambda s: None)
m.start_monitoring()
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(square, range(10)) == [x * x for x in range(10)]
    pool.close(); pool.join()
m.cleanup()
print("done")
""")


@test
def a_callback_may_drop_the_last_reference():
    runs("""
for kind in ("register_callback", "register_batch_callback"):
    box = [ETWMonitor(me)]
    gone = threading.Event()
    def callback(_):
        box.clear(); gc.collect(); gone.set()
    getattr(box[0], kind)(callback)
    box[0].start_monitoring()
    end = time.monotonic() + 30
    while not gone.is_set() and time.monotonic() < end: spin(0.02)
    assert gone.is_set()
    time.sleep(0.2)
print("done")
""")


@test
def exceptions_in_callbacks_do_not_end_the_callbacks():
    runs("""
seen = []
def callback(batch):
    seen.append(len(batch))
    raise (ValueError if len(seen) % 2 else StopIteration)("on purpose")
import logging; logging.disable(logging.CRITICAL)
with ETWMonitor(me) as m:
    m.register_batch_callback(callback)
    end = time.monotonic() + 30
    while len(seen) < 10 and time.monotonic() < end: spin(0.02)
    assert m.get_statistics()["callback_errors"] >= 9
print("done")
""")


@test
def memory_does_not_grow_over_many_monitors():
    if os.environ.get("ETWATCH_SANITIZED"):
        skip("the address sanitizer keeps freed memory")
    runs("""
def rss():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
import warnings; warnings.simplefilter("ignore")
sizes = []
for round in range(12):
    with ETWMonitor(me) as m:
        m.register_batch_callback(list)
        spin(0.1)
        m.collect_metrics(); m.get_process_summary(); m.get_process_metrics()
    gc.collect()
    sizes.append(rss())
assert sizes[-1] - sizes[3] < 3_000_000, sizes
print("done")
""")


@test
def a_watcher_that_does_not_read_stops_no_program():
    if not sys.platform.startswith("linux"):
        skip("marks are part of Linux")
    runs("""
import socket
watcher = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
watcher.bind(b"\\0etwatch-test-%d" % os.getpid())
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
    other.setblocking(False)
    try:
        while True:
            other.sendto(b"x", watcher.getsockname())
    except BlockingIOError:
        pass
os.environ["ETWATCH_SPANS"] = "@etwatch-test-%d" % os.getpid()
with etwatch.span("step"):
    pass
watcher.close()
print("done")
""")


@test
def strings_that_are_not_valid_text_are_handled():
    runs("""
import subprocess
name = b"\\xff\\xfe\\"<\\x01>"
child = subprocess.Popen(["/bin/sh", "-c", "read x; while :; do :; done"], stdin=subprocess.PIPE)
with open(f"/proc/{child.pid}/comm", "wb") as f: pass
with etwatch.watch(child.pid, hz=50, latency_ms=20) as w:
    child.stdin.write(b"\\n"); child.stdin.flush()
    s = next(iter(w))
    assert isinstance(s.name, str), s
child.kill(); child.wait(); child.stdin.close()
try: etwatch.watch("a\\0b")
except ValueError: pass
else: assert False
try: etwatch.run(["tr\\0ue"])
except (ValueError, FileNotFoundError): pass
else: assert False
print("done")
""")


main()
