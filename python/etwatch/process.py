# SPDX-License-Identifier: MIT
"""`etwatch.Process(pid)`: one process, with psutil's methods and their meaning.

CPU, memory, I/O, threads and other figures come from the library in one reading. Values that the library does not
have (command line, paths, user ids, priorities) are read from the system here. It is read-only: nothing here
changes, stops or kills another process.
"""
import ctypes
import operator
import os
import time
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple, TypeVar

from . import _abi, _native
from ._process_types import (
    LINUX, AccessDenied, Error, NoSuchProcess, TimeoutExpired, ZombieProcess, pcputimes, pctxsw, pfullmem, pgids, pio,
    pionice, pmem, popenfile, ppagefaults, pthread, puids,
)

__all__ = ["Process", "Error", "NoSuchProcess", "ZombieProcess", "AccessDenied", "TimeoutExpired", "pids",
           "pid_exists", "process_iter"]

_THREADS_FIRST = 64
_LIST_FIRST = 1024
_INDEX = {name: i for i, (name, _type, _kind) in enumerate(_abi.METRICS)}
T = TypeVar("T")


# ------------------------------------------------------------------- values of the library

class Reading:
    """One reading of the library: counters since the process started, gauges as of now."""

    def __init__(self, pid: int, thread_sums: bool = False) -> None:
        sample, info = _native.sized(_abi.Sample), _native.new_error()
        identity, name = _abi.ProcessId(), ctypes.create_string_buffer(64)
        flags = _abi.ETWATCH_PROCESS_THREAD_SUMS if thread_sums else 0
        code = _native.lib.etwatch_process_read(pid, flags, ctypes.byref(sample), name, 64,
                                                ctypes.byref(identity), ctypes.byref(info))
        if code == _abi.ETWATCH_ENOENT:
            raise NoSuchProcess(pid)
        if code == _abi.ETWATCH_EPERM:
            raise AccessDenied(pid)
        _native.check(code, info)
        self._sample = sample
        self.start_raw_ns: int = identity.start_raw_ns
        self.start_ns: int = identity.start_ns
        self.ppid: int = identity.ppid
        self.name: str = name.value.decode("utf-8", "surrogateescape")
        self.t_ns: int = sample.t_ns

    def get(self, metric: str) -> Optional[int]:
        """A value; None if it is unknown."""
        if not _native.set_has(self._sample.has, _INDEX[metric]):
            return None
        value: int = getattr(self._sample, metric)
        return value


def _grown(kind: Any, first: int, call: Callable[[Any, int], int]) -> List[Any]:
    """The rows that a call fills in; repeats the call with more room if there are more rows than `first`."""
    room = first
    while True:
        rows = (kind * room)()
        count = call(rows, room)
        if count <= room:
            return list(rows[:count])
        room = count + count // 4


def _list() -> List[Any]:
    info = _native.new_error()
    return _grown(_abi.ProcessId, _LIST_FIRST, lambda rows, room: _native.check(
        _native.lib.etwatch_process_list(rows, room, ctypes.byref(info)), info))


def pids() -> List[int]:
    """The ids of all processes, sorted.

    Example:

        print(etwatch.pids())
    """
    return sorted(row.pid for row in _list())


def _whole(pid: object) -> int:
    """As int; numpy's and pandas' whole numbers are taken too."""
    if isinstance(pid, bool) or not hasattr(pid, "__index__"):
        raise TypeError(f"pid: an integer is needed, not {pid!r}")
    return operator.index(pid)


def pid_exists(pid: int) -> bool:
    """Whether a process with this id exists.

    Example:

        etwatch.pid_exists(1)
    """
    pid = _whole(pid)
    if pid <= 0:
        return pid == 0 and not LINUX
    try:
        Reading(pid)
    except NoSuchProcess:
        return False
    except AccessDenied:
        pass
    return True


# ------------------------------------------------------------------------------ the process

STATUSES = {"R": "running", "S": "sleeping", "D": "disk-sleep", "T": "stopped", "t": "tracing-stop",
            "Z": "zombie", "X": "dead", "x": "dead", "K": "wake-kill", "W": "waking", "I": "idle", "P": "parked"}


class Process:
    """One process, by its pid (default: this process). Two are equal if pid and start time are equal.

    Every method raises NoSuchProcess after the process has exited, and AccessDenied if rights are missing.

    Example:

        process = etwatch.Process()
        print(process.name(), process.cpu_percent(interval=1), process.memory_info().rss)
    """

    def __init__(self, pid: Optional[int] = None) -> None:
        pid = os.getpid() if pid is None else _whole(pid)
        if not 0 < pid < 2**32:
            raise ValueError(f"pid: 1 to 4294967295, not {pid}")
        self._pid = pid
        self._shared: Optional[Dict[str, Any]] = None  # within oneshot()
        try:
            reading = Reading(pid)
        except NoSuchProcess:
            raise NoSuchProcess(pid, msg="process PID not found") from None
        self._start_raw_ns = reading.start_raw_ns
        self._create_time = reading.start_ns / 1e9
        self._name = reading.name
        self._last: Optional[Tuple[int, int]] = None  # (t_ns, cpu_ns) of the last cpu_percent()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._pid

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Process):
            return NotImplemented
        return self._pid == other._pid and _same_start(self._start_raw_ns, other._start_raw_ns)

    def __hash__(self) -> int:
        return hash(self._pid)

    def __repr__(self) -> str:
        state = "" if self.is_running() else ", status='terminated'"
        return f"etwatch.Process(pid={self._pid}, name={self._name!r}{state})"

    # ------------------------------------------------------------------------ reading

    @contextmanager
    def oneshot(self) -> Iterator[None]:
        """A context in which values of the same kind come from one reading.

        Example:

            with process.oneshot():
                print(process.name(), process.num_threads(), process.memory_info().rss)
        """
        if self._shared is not None:
            yield
            return
        self._shared = {}
        try:
            yield
        finally:
            self._shared = None

    def _once(self, key: str, read: Callable[[], T]) -> T:
        if self._shared is None:
            return read()
        if key not in self._shared:
            self._shared[key] = read()
        value: T = self._shared[key]
        return value

    def _reading(self, thread_sums: bool = False) -> Reading:
        def read() -> Reading:
            reading = Reading(self._pid, thread_sums)
            if not _same_start(reading.start_raw_ns, self._start_raw_ns):
                raise NoSuchProcess(self._pid, self._name, "process no longer exists and its PID has been reused")
            self._name = reading.name
            return reading
        try:
            return self._once("sums" if thread_sums else "reading", read)
        except NoSuchProcess as error:
            raise NoSuchProcess(self._pid, self._name, error.msg) from None

    def _value(self, metric: str, thread_sums: bool = False) -> int:
        """A value that every process has; without it rights are missing or the process is a zombie."""
        value = self._reading(thread_sums).get(metric)
        if value is None:
            self._refuse(metric)
        return value  # type: ignore[return-value]

    def _refuse(self, what: str) -> None:
        if LINUX and self.status() == "zombie":
            raise ZombieProcess(self._pid, self._name)
        raise AccessDenied(self._pid, self._name, f"{what} cannot be read")

    def _file(self, name: str) -> str:
        return self._once(name, lambda: self._query(lambda: _read_text(f"/proc/{self._pid}/{name}")))

    def _query(self, read: Callable[[], T]) -> T:
        """Reads from the system; translates its errors into ours."""
        _linux_only()
        try:
            return read()
        except (FileNotFoundError, ProcessLookupError):
            self._reading()  # raises NoSuchProcess if it has exited
            raise ZombieProcess(self._pid, self._name) from None
        except PermissionError as error:
            raise AccessDenied(self._pid, self._name) from error

    def _stat(self) -> List[str]:
        text = self._file("stat")
        return text[text.rindex(")") + 2:].split()

    # ---------------------------------------------------------------------- identity

    def name(self) -> str:
        """Its name.

        Example:

            print(etwatch.Process(pid).name())
        """
        name = self._reading().name
        if LINUX and len(name) >= 15:  # the kernel truncates it to 15 bytes
            try:
                arguments = self.cmdline()
            except Error:
                return name
            if arguments and os.path.basename(arguments[0]).startswith(name):
                return os.path.basename(arguments[0])
        return name

    def ppid(self) -> int:
        """The id of its parent.

        Example:

            print(process.ppid())
        """
        return self._reading().ppid

    def parent(self) -> Optional["Process"]:
        """Its parent; None if it has none.

        Example:

            print(process.parent())
        """
        ppid = self.ppid()
        if ppid == 0:
            return None
        try:
            parent = Process(ppid)
        except NoSuchProcess:
            return None
        return parent if parent._start_raw_ns <= self._start_raw_ns else None

    def parents(self) -> List["Process"]:
        """Its ancestors, the nearest first.

        Example:

            print(process.parents())
        """
        found: List[Process] = []
        parent = self.parent()
        while parent is not None and parent not in found:
            found.append(parent)
            parent = parent.parent()
        return found

    def children(self, recursive: bool = False) -> List["Process"]:
        """Its children; with recursive=True all descendants.

        Example:

            for child in process.children(recursive=True):
                print(child.pid, child.name())
        """
        self._reading()
        by_parent: Dict[int, List[Any]] = {}
        rows = {row.pid: row for row in _list()}
        for row in rows.values():
            by_parent.setdefault(row.ppid, []).append(row)
        found, queue, seen = [], [(self._pid, self._start_raw_ns)], {self._pid}
        while queue:
            pid, started = queue.pop(0)
            for row in sorted(by_parent.get(pid, []), key=lambda row: int(row.pid)):
                # A child older than its parent: the pid of the parent was reused.
                if row.pid in seen or row.start_raw_ns < started:
                    continue
                seen.add(row.pid)
                try:
                    found.append(Process(row.pid))
                except Error:
                    continue
                if recursive:
                    queue.append((row.pid, row.start_raw_ns))
        return found

    def create_time(self) -> float:
        """When it started: Unix time in seconds.

        Example:

            print(process.create_time())
        """
        return self._create_time

    def is_running(self) -> bool:
        """Whether it exists and is still the same process.

        Example:

            print(process.is_running())
        """
        try:
            return _same_start(Reading(self._pid).start_raw_ns, self._start_raw_ns)
        except NoSuchProcess:
            return False
        except AccessDenied:
            return True

    def exe(self) -> str:
        """The path of its program.

        Example:

            print(process.exe())
        """
        try:
            path = self._query(lambda: os.readlink(f"/proc/{self._pid}/exe"))
        except ZombieProcess:
            return ""  # a kernel thread, or a process that has exited
        return path[:-len(" (deleted)")] if path.endswith(" (deleted)") and not os.path.exists(path) else path

    def cmdline(self) -> List[str]:
        """The arguments, unchanged: secrets in them are not masked here.

        Example:

            print(etwatch.Process(pid).cmdline())
        """
        text = self._file("cmdline")
        if not text:
            if self.status() == "zombie":
                raise ZombieProcess(self._pid, self._name)
            return []
        end = "\0" if "\0" in text else " "  # some programs overwrite their arguments with a title
        return text.rstrip("\0").split(end) if end == "\0" else text.split(end)

    def cwd(self) -> str:
        """Its working folder.

        Example:

            print(process.cwd())
        """
        return self._query(lambda: os.readlink(f"/proc/{self._pid}/cwd"))

    def environ(self) -> Dict[str, str]:
        """Its environment, unmasked, as the system has it.

        Example:

            print(process.environ())
        """
        pairs = (entry.partition("=") for entry in self._file("environ").split("\0") if "=" in entry)
        return {name: value for name, _, value in pairs}

    def username(self) -> str:
        """The name of its user.

        Example:

            print(process.username())
        """
        uid = self.uids().real
        try:
            import pwd
            return pwd.getpwuid(uid).pw_name
        except (ImportError, KeyError):
            return str(uid)

    def _ids(self, key: str) -> List[int]:
        for line in self._file("status").splitlines():
            if line.startswith(key + ":"):
                return [int(part) for part in line.split()[1:4]]
        raise AccessDenied(self._pid, self._name)

    def uids(self) -> puids:
        """Its real, effective and saved user ids.

        Example:

            print(process.uids())
        """
        return puids(*self._ids("Uid"))

    def gids(self) -> pgids:
        """Its real, effective and saved group ids.

        Example:

            print(process.gids())
        """
        return pgids(*self._ids("Gid"))

    def terminal(self) -> Optional[str]:
        """Its terminal; None if it has none.

        Example:

            print(process.terminal())
        """
        number = int(self._stat()[4])
        for folder in ("/dev/pts", "/dev"):
            try:
                names = os.listdir(folder)
            except OSError:
                continue
            for name in names:
                if folder == "/dev" and not name.startswith("tty"):
                    continue
                try:
                    if number and os.stat(os.path.join(folder, name)).st_rdev == number:
                        return os.path.join(folder, name)
                except OSError:
                    continue
        return None

    def status(self) -> str:
        """Its state: "running", "sleeping", ...

        Example:

            print(process.status())
        """
        return STATUSES.get(self._stat()[0], "?")

    # -------------------------------------------------------------------------- cpu

    def cpu_times(self) -> Any:
        """CPU time in seconds: user, system, and of waited children.

        Example:

            print(process.cpu_times().user, process.cpu_times().system)
        """
        reading = self._reading()
        user, system = (reading.get(name) or 0 for name in ("cpu_user_ns", "cpu_kernel_ns"))
        if not LINUX:
            return pcputimes(user / 1e9, system / 1e9, 0.0, 0.0)
        fields, tick = self._stat(), os.sysconf("SC_CLK_TCK")
        waited = int(fields[39]) / tick if len(fields) > 39 else 0.0
        return pcputimes(user / 1e9, system / 1e9, int(fields[13]) / tick, int(fields[14]) / tick, waited)

    def _clock(self) -> Tuple[int, int]:
        reading = self._reading()
        cpu = reading.get("cpu_ns")
        if cpu is None:
            cpu = (reading.get("cpu_user_ns") or 0) + (reading.get("cpu_kernel_ns") or 0)
        return reading.t_ns, cpu

    def cpu_percent(self, interval: Optional[float] = None) -> float:
        """CPU time in per cent of one core; more than 100 is possible with several threads. Without an interval: since
        the last call, 0.0 on the first call. From the exact CPU clock; psutil counts in ticks of 10 ms.

        Example:

            print(process.cpu_percent(interval=1))
        """
        if interval is not None and interval < 0:
            raise ValueError(f"interval: 0 or more, not {interval}")
        if interval:
            before = self._clock()
            time.sleep(interval)
            if self._shared is not None:
                self._shared.clear()
        else:
            before = self._last or (0, 0)
        now = self._clock()
        self._last = now
        if before[0] == 0 or now[0] <= before[0]:
            return 0.0
        return round(100.0 * max(0, now[1] - before[1]) / (now[0] - before[0]), 1)

    def cpu_num(self) -> int:
        """The CPU on which it ran last.

        Example:

            print(process.cpu_num())
        """
        return int(self._stat()[36])

    def cpu_affinity(self) -> List[int]:
        """The CPUs on which it may run.

        Example:

            print(process.cpu_affinity())
        """
        return sorted(self._query(lambda: os.sched_getaffinity(self._pid)))

    def nice(self) -> int:
        """Its niceness.

        Example:

            print(process.nice())
        """
        return self._query(lambda: os.getpriority(os.PRIO_PROCESS, self._pid))

    def ionice(self) -> pionice:
        """Its I/O priority.

        Example:

            print(process.ionice())
        """
        value = self._query(lambda: _ioprio_get(self._pid))
        return pionice(value >> 13, value & 0x1FFF)

    def num_ctx_switches(self) -> pctxsw:
        """Switches of all current threads; psutil counts those of the first thread only.

        Example:

            print(process.num_ctx_switches().voluntary)
        """
        reading = self._reading(thread_sums=True)
        return pctxsw(reading.get("switches_voluntary"), reading.get("switches_involuntary"))

    # ---------------------------------------------------------------------- threads

    def num_threads(self) -> int:
        """The number of its threads.

        Example:

            print(process.num_threads())
        """
        return self._value("threads")

    def threads(self) -> List[pthread]:
        """Its threads with their CPU times.

        Example:

            for thread in process.threads():
                print(thread.id, thread.user_time + thread.system_time)
        """
        info = _native.new_error()

        def read(rows: Any, room: int) -> int:
            code: int = _native.lib.etwatch_process_threads(self._pid, rows, room, ctypes.byref(info))
            if code == _abi.ETWATCH_ENOENT:
                raise NoSuchProcess(self._pid, self._name)
            return _native.check(code, info)
        rows = _grown(_abi.ProcessThread, _THREADS_FIRST, read)
        return [pthread(row.tid, row.cpu_user_ns / 1e9, row.cpu_kernel_ns / 1e9)
                for row in sorted(rows, key=lambda row: int(row.tid))]

    # ----------------------------------------------------------------------- memory

    def memory_info(self) -> Any:
        """Its memory: rss, vms and more, in bytes.

        Example:

            print(process.memory_info().rss, process.memory_info().vms)
        """
        reading = self._reading()
        rss, vms = reading.get("rss_bytes") or 0, reading.get("virtual_bytes") or 0
        if not LINUX:
            private = reading.get("private_bytes") or 0
            return pmem(rss, private, reading.get("rss_peak_bytes") or 0, rss, private)
        page = os.sysconf("SC_PAGE_SIZE")
        _size, _resident, shared, text, lib, data, dirty = (int(n) * page for n in self._file("statm").split()[:7])
        return pmem(rss, vms, shared, text, lib, data, dirty)

    def memory_full_info(self) -> Any:
        """memory_info with uss (memory that exit would free), pss (shared pages divided by their users) and swap. Slow:
        the kernel walks all pages of the process.

        Example:

            print(process.memory_full_info())
        """
        _linux_only()
        sums = {"Pss:": 0, "Swap:": 0, "Private_Clean:": 0, "Private_Dirty:": 0, "Private_Hugetlb:": 0}
        for line in self._file("smaps_rollup").splitlines():
            key, *rest = line.split()
            if key in sums and rest:
                sums[key] += int(rest[0]) * 1024
        uss = sums["Private_Clean:"] + sums["Private_Dirty:"] + sums["Private_Hugetlb:"]
        return pfullmem(*self.memory_info(), uss, sums["Pss:"], sums["Swap:"])

    def memory_percent(self, memtype: str = "rss") -> float:
        """A value of memory_info in per cent of the machine's memory.

        Example:

            print(process.memory_percent())
        """
        names = pfullmem._fields
        if memtype not in names:
            raise ValueError(f"memtype: one of {', '.join(names)}, not {memtype!r}")
        info = self.memory_info() if memtype in pmem._fields else self.memory_full_info()
        return float(getattr(info, memtype)) / _total_memory() * 100

    def page_faults(self) -> ppagefaults:
        """Minor and major page faults since it started.

        Example:

            print(process.page_faults())
        """
        reading = self._reading()
        return ppagefaults(reading.get("faults_minor"), reading.get("faults_major"))

    # --------------------------------------------------------------------------- io

    def io_counters(self) -> Any:
        """Linux: read and write calls, disk bytes, bytes of all calls. Windows: calls and bytes by kind.

        Example:

            print(process.io_counters().read_bytes)
        """
        if LINUX:
            names = ("io_read_ops", "io_write_ops", "disk_read_bytes", "disk_write_bytes", "io_read_bytes",
                     "io_write_bytes")
            with self.oneshot():
                return pio(*(self._value(name) for name in names))
        reading = self._reading()
        names = ("io_read_ops", "io_write_ops", "io_read_bytes", "io_write_bytes", "io_other_ops", "io_other_bytes")
        return pio(*(reading.get(name) or 0 for name in names))

    def num_fds(self) -> int:
        """The number of open descriptors (Linux).

        Example:

            if sys.platform != "win32":
                print(process.num_fds())
        """
        _linux_only()
        folder = f"/proc/{self._pid}/fd"
        if self._pid == os.getpid():  # listing opens a descriptor, which is not counted
            return len(self._query(lambda: os.listdir(folder))) - 1
        count = self._reading().get("handles")
        return count if count is not None else len(self._query(lambda: os.listdir(folder)))

    def num_handles(self) -> int:
        """The number of open handles (Windows).

        Example:

            if sys.platform == "win32":
                print(process.num_handles())
        """
        if LINUX:
            raise NotImplementedError("num_handles: Windows only; use num_fds on Linux")
        return self._value("handles")

    def open_files(self) -> List[popenfile]:
        """The regular files that the process has open.

        Example:

            print(process.open_files())
        """
        folder, found = f"/proc/{self._pid}/fd", []
        for name in self._query(lambda: os.listdir(folder)):
            try:
                path = os.readlink(os.path.join(folder, name))
                if path.startswith("/") and os.path.isfile(path):
                    found.append(popenfile(path, int(name)))
            except OSError:
                continue  # closed in between
        return sorted(found, key=lambda entry: entry.fd)

    # ------------------------------------------------------------------------ the end

    def wait(self, timeout: Optional[float] = None) -> Optional[int]:
        """Waits until the process has exited. Returns the exit status of a child of this process, None for any other
        process. Raises TimeoutExpired after `timeout` seconds.

        Example:

            try:
                print(process.wait(timeout=1))
            except etwatch.TimeoutExpired:
                print("it still runs")
        """
        if timeout is not None and timeout < 0:
            raise ValueError(f"timeout: 0 or more, not {timeout}")
        until = None if timeout is None else time.monotonic() + timeout
        pause = 0.001
        while True:
            over, status = self._ended()
            if over:
                return status
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                raise TimeoutExpired(timeout or 0.0, self._pid, self._name)
            time.sleep(pause if left is None else min(pause, left))
            pause = min(pause * 2, 0.04)

    def _ended(self) -> Tuple[bool, Optional[int]]:
        if hasattr(os, "waitpid") and LINUX:
            try:
                pid, status = os.waitpid(self._pid, os.WNOHANG)
                if pid == self._pid:
                    return True, -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
                return False, None
            except (ChildProcessError, OSError):
                pass  # not a child of this process
        if not self.is_running():
            return True, None
        try:  # a zombie that this process cannot reap has exited
            return (LINUX and self.status() == "zombie"), None
        except NoSuchProcess:
            return True, None

    def as_dict(self, attrs: Optional[List[str]] = None, ad_value: Any = None) -> Dict[str, Any]:
        """Several values in one reading, by name; ad_value where access is denied.

        Example:

            print(process.as_dict(["pid", "name", "cpu_percent"]))
        """
        if attrs is not None and not isinstance(attrs, (list, tuple, set, frozenset)):
            raise TypeError(f"attrs: a list of names is needed, not {type(attrs).__name__}")
        unknown = set(attrs or ()) - set(_ATTRIBUTES)
        if unknown:
            raise ValueError(f"attrs: no such names: {', '.join(sorted(unknown))}")
        found: Dict[str, Any] = {}
        with self.oneshot():
            for name in attrs if attrs is not None else _ATTRIBUTES:
                try:
                    found[name] = self._pid if name == "pid" else getattr(self, name)()
                except (AccessDenied, ZombieProcess):
                    found[name] = ad_value
                except NotImplementedError:
                    if attrs is not None:
                        raise
        return found


_ATTRIBUTES = ["pid", "name", "ppid", "exe", "cmdline", "cwd", "environ", "username", "uids", "gids", "terminal",
               "status", "create_time", "cpu_times", "cpu_percent", "cpu_num", "cpu_affinity", "nice", "ionice",
               "num_ctx_switches", "num_threads", "threads", "memory_info", "memory_full_info", "memory_percent",
               "page_faults", "io_counters", "num_fds", "num_handles", "open_files"]


def process_iter(attrs: Optional[List[str]] = None, ad_value: Any = None) -> Iterator[Process]:
    """All processes, in order of pid. With attrs each has the attribute `info`, the result of as_dict(attrs).

    Example:

        for process in etwatch.process_iter(["name", "cpu_percent"]):
            print(process.pid, process.info["name"])
    """
    for pid in pids():
        try:
            process = Process(pid)
            if attrs is not None:
                process.info = process.as_dict(attrs, ad_value)  # type: ignore[attr-defined]
        except (NoSuchProcess, AccessDenied):
            continue
        yield process


# ----------------------------------------------------------------------------- the system

def _same_start(a: int, b: int) -> bool:
    """Whether two start times are equal. Linux counts them in steps of 10 ms; on Windows two clocks differ slightly."""
    return abs(a - b) < 5_000_000


def _linux_only() -> None:
    if not LINUX:
        raise NotImplementedError("this method is available on Linux only")


def _read_text(path: str) -> str:
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        return file.read()


def _total_memory() -> int:
    if LINUX:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

    class Status(ctypes.Structure):
        _fields_ = [("length", ctypes.c_uint32), ("load", ctypes.c_uint32), ("total", ctypes.c_uint64),
                    ("rest", ctypes.c_uint64 * 6)]
    status = Status(length=ctypes.sizeof(Status))
    kernel32: Any = getattr(ctypes, "windll").kernel32
    if not kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):
        raise OSError("cannot read the size of the memory")
    return int(status.total)


_IOPRIO_GET = {"x86_64": 252, "aarch64": 31}


def _ioprio_get(pid: int) -> int:
    number = _IOPRIO_GET.get(os.uname().machine)
    if number is None:
        raise NotImplementedError("ionice: not supported on this architecture")
    libc = ctypes.CDLL(None, use_errno=True)
    value = int(libc.syscall(ctypes.c_long(number), ctypes.c_int(1), ctypes.c_int(pid)))
    if value < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return value
