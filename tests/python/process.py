# SPDX-License-Identifier: MIT
"""etwatch.Process compared with psutil.Process: the same calls, the same answers."""
import json
import os

from lib import cases, check, check_eq, check_in, main, skip, start, test
from toolkit import need, snippet

HEAD = """
import os, signal, subprocess, sys, time
import etwatch.process as ours
from etwatch.process import Process
"""
# A process that does not change while it is read: it sleeps.
BESIDE = HEAD + """
import psutil
child = subprocess.Popen(["sleep", "60"])
try:
    while psutil.Process(child.pid).name() != "sleep" or psutil.Process(child.pid).status() == "running":
        time.sleep(0.01)
    mine, theirs = Process(child.pid), psutil.Process(child.pid)
    {code}
finally:
    child.kill()
    child.wait()
"""


def runs(code, **options):
    result = snippet(code, **options)
    check_eq(result.code, 0, result.out + result.err)
    return result


NAMES = ["pid", "name", "ppid", "exe", "cmdline", "cwd", "environ", "username", "uids", "gids", "terminal", "status",
         "cpu_times", "cpu_num", "cpu_affinity", "nice", "ionice", "num_ctx_switches", "num_threads", "memory_info",
         "memory_full_info", "memory_percent", "io_counters", "num_fds", "is_running"]
_answers = {}


def answers():
    """The answers of both by name, read once. For tuples, the fields that both have."""
    need("psutil")
    if not _answers:
        result = runs(BESIDE.replace("{code}", f"""
    import json
    answers_of = {{}}
    for name in {NAMES!r}:
        a, b = getattr(mine, name), getattr(theirs, name)
        a, b = (a, b) if name == "pid" else (a(), b())
        if hasattr(b, "_fields"):
            common = [field for field in a._fields if field in b._fields]
            a, b = ({{field: getattr(one, field) for field in common}} for one in (a, b))
        answers_of[name] = [a, b]
    print(json.dumps(answers_of))
    """))
        _answers.update(json.loads(result.out))
    return _answers


@cases([(name, name) for name in NAMES])
def an_answer_equals_that_of_psutil(name):
    mine, theirs = answers()[name]
    check_eq(mine, theirs, name)


@test
def thread_ids_and_times_equal_those_of_psutil():
    need("psutil")
    runs(BESIDE.replace("{code}", """
    assert [tuple(t) for t in mine.threads()] == [tuple(t) for t in theirs.threads()]
    """))


@test
def the_start_equals_that_of_psutil_within_rounding():
    need("psutil")
    runs(BESIDE.replace("{code}", "assert abs(mine.create_time() - theirs.create_time()) < 1.5"))


@test
def parents_and_children_equal_those_of_psutil():
    need("psutil")
    runs(BESIDE.replace("{code}", """
    assert [p.pid for p in mine.parents()] == [p.pid for p in theirs.parents()]
    assert child.pid in [p.pid for p in Process().children()]
    assert [p.pid for p in Process(os.getppid()).children(recursive=True)] == \\
        [p.pid for p in psutil.Process(os.getppid()).children(recursive=True)]
    """))


@test
def open_files_equal_those_of_psutil():
    need("psutil")
    runs(HEAD + """
import psutil, tempfile
with tempfile.NamedTemporaryFile() as file:
    mine, theirs = Process().open_files(), psutil.Process().open_files()
    assert [(f.path, f.fd) for f in mine] == [(f.path, f.fd) for f in theirs] and file.name in [f.path for f in mine]
""")


@test
def cpu_percent_of_a_busy_process_is_close_to_that_of_psutil():
    need("psutil")
    runs(BESIDE.replace('["sleep", "60"]', '[sys.executable, "-c", "print(flush=True)\\nimport time\\nend = time.time() + 60\\nwhile time.time() < end: pass"], '
                        'stdout=subprocess.PIPE').replace(
        'psutil.Process(child.pid).name() != "sleep" or psutil.Process(child.pid).status() == "running"',
        'not child.stdout.readline()').replace("{code}", """
    assert mine.cpu_percent() == 0.0
    theirs.cpu_percent()
    time.sleep(0.5)
    a, b = mine.cpu_percent(), theirs.cpu_percent()
    assert a > 0 and abs(a - b) < 12, (a, b)
    assert mine.cpu_percent(interval=0.1) > 0
    """))


@test
def many_threads_are_all_listed():
    runs(HEAD + """
import threading
go = threading.Event()
threads = [threading.Thread(target=go.wait) for _ in range(150)]
[t.start() for t in threads]
answers_of = Process().threads()
assert len(answers_of) == Process().num_threads() == 151
assert {t.native_id for t in threads} < {t.id for t in answers_of}
go.set()
[t.join() for t in threads]
""")


@test
def as_dict_and_oneshot_read_once():
    runs(HEAD + """
process = Process()
readings, original = [], ours.Reading
class Counted(original):
    def __init__(self, *arguments):
        readings.append(arguments)
        super().__init__(*arguments)
ours.Reading = Counted
with process.oneshot():
    process.num_threads(), process.memory_info(), process.cpu_times(), process.ppid()
assert len(readings) == 1, readings
got = process.as_dict(["pid", "name", "memory_info"])
assert got["pid"] == os.getpid() and got["memory_info"].rss > 0 and len(readings) == 2
assert len(process.as_dict()) >= 29
info = [p for p in ours.process_iter(["pid", "name"]) if p.pid == os.getpid()][0].info
assert info["pid"] == os.getpid()
""")


@test
def equality_is_pid_and_start():
    runs(HEAD + """
assert Process() == Process() and len({Process(), Process()}) == 1
assert Process() != Process(os.getppid()) and Process() != 3
""")


@test
def an_exited_process_raises_no_such_process():
    runs(HEAD + """
child = subprocess.Popen(["sleep", "60"])
process = Process(child.pid)
assert process.is_running() and ours.pid_exists(child.pid)
child.kill(); child.wait()
assert not process.is_running() and not ours.pid_exists(child.pid)
assert "terminated" in repr(process)
for call in (process.cpu_times, process.memory_info, process.io_counters, process.threads, process.cmdline,
            process.status, process.exe, process.children, process.num_ctx_switches, process.cpu_affinity):
    try:
        call()
    except ours.NoSuchProcess as error:
        assert isinstance(error, ProcessLookupError) and error.pid == child.pid and not isinstance(
            error, ours.ZombieProcess), error
    else:
        raise AssertionError(call)
""")


@test
def a_zombie_is_distinguished():
    runs(HEAD + """
child = subprocess.Popen(["true"])
process = Process(child.pid)
while process.status() != "zombie":
    time.sleep(0.01)
assert process.is_running()
try:
    process.cmdline()
except ours.ZombieProcess:
    pass
else:
    raise AssertionError("a command line")
child.wait()
""")


@test
def wait_gives_the_status_of_a_child_and_keeps_its_limit():
    runs(HEAD + """
first = subprocess.Popen(["sh", "-c", "exit 7"])
assert Process(first.pid).wait() == 7
child = subprocess.Popen(["sleep", "60"])
process = Process(child.pid)
try:
    process.wait(timeout=0.05)
except ours.TimeoutExpired as error:
    assert isinstance(error, TimeoutError) and error.seconds == 0.05 and error.pid == child.pid
else:
    raise AssertionError
child.kill()
assert process.wait(5) == -signal.SIGKILL
""", options=("-X", "dev", "-W", "ignore::ResourceWarning"))


@test
def unreadable_values_raise_access_denied():
    if os.geteuid() != 0:
        skip("needs root to change the user")
    keeper = start(["30"], program="/bin/sleep")
    runs(HEAD + f"""
os.setgroups([]); os.setgid(65534); os.setuid(65534)
process = Process({keeper.pid})
assert process.name() == "sleep" and process.memory_info().rss > 0 and process.num_threads() == 1
for call in (process.io_counters, process.environ, process.cwd, process.open_files):
    try:
        call()
    except ours.AccessDenied as error:
        assert isinstance(error, PermissionError) and error.pid == {keeper.pid}
    else:
        raise AssertionError(call)
assert process.as_dict(["io_counters", "name"], ad_value="?") == {{"io_counters": "?", "name": "sleep"}}
""")


@cases([
    ("a text as pid", "Process('1')", "TypeError: pid"),
    ("a boolean as pid", "Process(True)", "TypeError: pid"),
    ("a negative pid", "Process(-1)", "ValueError: pid"),
    ("a pid beyond the maximum", "Process(2**32)", "ValueError: pid"),
    ("an unused pid", "Process(4194304)", "NoSuchProcess: process PID not found (pid=4194304)"),
    ("a negative interval", "Process().cpu_percent(-1)", "ValueError: interval"),
    ("a negative timeout", "Process().wait(-1)", "ValueError: timeout"),
    ("an unknown kind of memory", "Process().memory_percent('rsx')", "ValueError: memtype: one of rss"),
    ("an unknown attribute", "Process().as_dict(['cpu'])", "ValueError: attrs: no such names: cpu"),
    ("attributes as text", "Process().as_dict('name')", "TypeError: attrs"),
])
def misuse_is_reported(code, expected):
    result = snippet(HEAD + code)
    check_eq(result.code, 1)
    check_in(expected, result.err)


@test
def on_windows_the_tuples_are_those_of_windows_and_the_rest_is_not_implemented():
    runs("""
import ctypes, importlib, os, subprocess, sys
import etwatch
class Windows:
    def GlobalMemoryStatusEx(self, status):
        status._obj.total = 2**33
        return 1
ctypes.windll = type("windll", (), {"kernel32": Windows()})
sys.platform = "win32"  # from here on; the library stays the one of this system
importlib.reload(etwatch._process_types)
ours = importlib.reload(etwatch.process)
process = ours.Process()
assert process.cpu_times()._fields == ("user", "system", "children_user", "children_system")
assert process.memory_info()._fields == ("rss", "vms", "peak_wset", "wset", "private")
assert process.io_counters()._fields[-2:] == ("other_count", "other_bytes")
assert process.num_handles() > 0 and process.num_threads() >= 1 and process.name() and process.ppid() == os.getppid()
assert process.cpu_percent() == 0.0 and process.threads() and process.parent().pid == os.getppid()
for name in ("cmdline", "exe", "cwd", "status", "uids", "nice", "ionice", "cpu_affinity", "num_fds", "open_files",
             "terminal", "environ", "memory_full_info"):
    try:
        getattr(process, name)()
    except NotImplementedError:
        continue
    raise AssertionError(name)
known = process.as_dict()
assert "cmdline" not in known and known["num_handles"] > 0, known
child = subprocess.Popen(["sleep", "60"])
other = ours.Process(child.pid)
assert other in process.children()
child.kill()
child.wait()
assert other.wait(5) is None and not other.is_running()
""")


@test
def the_list_of_processes_equals_that_of_the_kernel():
    result = runs(HEAD + "print(*ours.pids())")
    answers_of = set(map(int, result.out.split()))
    there = {int(name) for name in os.listdir("/proc") if name.isdigit()}
    check_in(os.getpid(), answers_of)
    check(len(answers_of ^ there) < 0.2 * len(there), f"{len(answers_of)} against {len(there)}")


@test
def twenty_threads_may_read_at_once():
    runs(HEAD + """
import threading
wrong = []
def call():
    try:
        for _ in range(50):
            assert Process().num_threads() >= 1 and len(ours.pids()) > 1
    except BaseException as error:
        wrong.append(error)
threads = [threading.Thread(target=call) for _ in range(20)]
[t.start() for t in threads]; [t.join() for t in threads]
assert not wrong, wrong
""")


main()
