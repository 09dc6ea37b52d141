# SPDX-License-Identifier: MIT
"""watch and run: samples of running processes, and of a command from start to exit.

    with etwatch.watch(pid, hz=1000) as w:
        for sample in w:                  # async for works too
            print(sample.t_ns, sample.cpu_percent)

    result = etwatch.run(["python", "x.py"])
    result.status, result.processes, result.threads, result.samples
"""
import ctypes
import html
import os
import signal
import subprocess
import sys
import threading
import time
from typing import (Any, AsyncIterator, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple,
                    TypeVar, Union)

from . import _abi, _native, _system
from ._batch import COLUMNS, SOURCES, TYPES, Batch, Sample
from ._collector import Collector
from ._engine import logger
from ._monitor import SLICE_MS, NativeMonitor, make_config
from ._summary import ProcessSummary, Summary
from .config import check_name, check_pid, members, number
from .errors import ETWSessionError, ETWSessionLostError, in_python
from .table import Table

__all__ = ["watch", "Watch", "run", "RunResult", "SchedulerEvent"]

T = TypeVar("T")
Target = Union[int, str, Iterable[Union[int, str]], None]


class SchedulerEvent(NamedTuple):
    """One event of the scheduler. Fields that do not apply to its kind are None.

    event is one of:
    "switch": the thread `tid` leaves the CPU and `next_tid` gets it. `state` is the reason: 0 is preempted, else the
    kernel's task state. next_tid had been off the CPU for wait_ns, was ready for the last ready_ns of that, and was
    woken by waker_tid.
    "wakeup": the thread becomes ready, woken by waker_tid. "fork": it created child_tid. "exec", "exit".

    Example:

        with etwatch.watch(pid, events=True) as w:
            for event in w.events(duration=1):
                if event.event == "switch":
                    print(event.t_ns, event.cpu, event.tid, event.next_tid, event.reason)
    """

    t_ns: int
    event: str
    cpu: int
    pid: int
    tid: int
    name: Optional[str]
    next_pid: Optional[int]
    next_tid: Optional[int]
    waker_pid: Optional[int]
    waker_tid: Optional[int]
    child_pid: Optional[int]
    child_tid: Optional[int]
    state: Optional[int]
    priority: Optional[int]
    exit_code: Optional[int]
    exit_signal: Optional[int]
    wait_ns: Optional[int] = None
    ready_ns: Optional[int] = None
    wait_reason: Optional[str] = None

    @property
    def reason(self) -> Optional[str]:
        """Why the thread left the CPU, as text (on Windows the name of the wait reason); None if this is not a switch."""
        if self.event != "switch" or self.state is None:
            return None
        if self.wait_reason is not None:
            return self.wait_reason
        if self.state == 0:
            return "preempted"
        names = {0x01: "sleeping", 0x02: "waiting", 0x04: "stopped", 0x08: "traced", 0x10: "dead", 0x20: "zombie",
                 0x40: "parked", 0x80: "dead"}
        if self.state & 0x402 == 0x402:
            return "idle"  # of a kernel thread: waits, but does not count as load
        return next((name for bit, name in names.items() if self.state & bit), f"state {self.state:#x}")


def _selected_metrics(metrics: Iterable[str]) -> List[str]:
    selected = [str(name) for name in members("metrics", metrics)]
    return ["default", *selected] if selected else []


def _split(target: Target) -> Tuple[List[int], List[str]]:
    if target is None:
        return [], []
    values: Iterable[object] = [target] if isinstance(target, str) or not isinstance(target, Iterable) else target
    pids, names = [], []
    for value in values:
        if isinstance(value, str):
            names.append(check_name("target", value))
        else:
            pids.append(check_pid("target", value))
    if not pids and not names:
        raise ValueError("target: an empty list; None is every process")
    return pids, names


async def _in_thread(function: Callable[..., T], *arguments: Any) -> T:
    import asyncio  # large, and rarely needed
    return await asyncio.get_running_loop().run_in_executor(None, function, *arguments)


class Watch:
    """Samples of selected or all processes, as they arrive. Made by `watch`; a context manager.

    Iteration ends when all processes that were selected by pid have exited, after stop(), or after `duration`. One
    consumer at a time.

    Example:

        with etwatch.watch(pid, hz=1000) as w:
            for sample in w:
                print(sample.t_ns, sample.cpu_percent)
    """

    def __init__(self, target: Target = None, *, hz: float = 10.0, threads: bool = False, events: bool = False,
                 lifecycle: bool = False, latency_ms: Optional[int] = None, budget: Optional[float] = None,
                 source: str = "auto", fallback: bool = True, command_lines: bool = False,
                 metrics: Iterable[str] = (), queue_samples: int = 65536, duration: Optional[float] = None) -> None:
        pids, names = _split(target)
        if duration is not None:
            number("duration", duration, 0, 1e9)
        number("hz", hz, 0.1, 1000)
        if latency_ms is not None:
            number("latency_ms", latency_ms, 1, 60000, True)
        if budget is not None:
            number("budget", budget, 0.01, 1000)
        number("queue_samples", queue_samples, 1, 10_000_000, True)
        flags = _abi.ETWATCH_CONFIG_QUEUE
        for wanted, flag in ((target is None, _abi.ETWATCH_CONFIG_ALL), (threads, _abi.ETWATCH_CONFIG_THREADS),
                             (events, _abi.ETWATCH_CONFIG_EVENTS), (not fallback, _abi.ETWATCH_CONFIG_NO_FALLBACK),
                             (budget is None, _abi.ETWATCH_CONFIG_NO_BUDGET), (command_lines, _abi.ETWATCH_CONFIG_CMDLINE)):
            flags |= flag if wanted else 0
        config = make_config(source=source, hz=float(hz), latency_ms=latency_ms or 0, budget_percent=float(budget or 0),
                             names=names, flags=flags, queue_samples=queue_samples,
                             metrics=_selected_metrics(metrics))
        callbacks = _native.sized(_abi.Callbacks)
        self._collector = Collector() if events else None
        if self._collector is not None:
            self._collector.attach_events(callbacks)
        self._latency_s = (latency_ms or 400) / 1000
        self._pids = set(pids)
        self._only_pids = bool(pids) and not names
        self._live: Set[Tuple[int, int]] = set()
        self._seen = False
        self._lifecycle = lifecycle
        self._ended = threading.Event()
        self._started = False
        self._duration = duration
        self._until: Optional[float] = None  # by time.monotonic()
        self._stats: Optional[Dict[str, Any]] = None  # the last, after close
        self._backend: Optional[str] = None
        self._native = NativeMonitor(config, callbacks, self._collector)
        try:
            for pid in pids:
                self._native.add(pid)
        except BaseException:
            self._native.close()
            raise

    # ------------------------------------------------------------------------ life

    def start(self) -> "Watch":
        """Starts watching; `with` calls it. Does nothing if it was started already.

        Example:

            w.start()
        """
        if not self._started:
            self._native.start()
            self._started = True
            if self._duration is not None:
                self._until = time.monotonic() + self._duration
            fallback = _native.text(self._native.meta().fallback)
            if fallback:
                logger.warning("%s", in_python(fallback))
        return self

    def stop(self) -> None:
        """Stops watching; samples that have arrived can still be read.

        Example:

            w.stop()
        """
        self._ended.set()
        if not self._native.closed:
            self._native.stop()

    def close(self) -> None:
        """Ends the watch and frees what it holds; `with` calls it. `stats` and `backend` keep their last values.

        Example:

            w.close()
        """
        self._ended.set()
        if not self._native.closed:
            try:
                self._native.stop()
                self._stats, self._backend = stats_of(self._native.stats()), self.backend
            except ETWSessionError:
                pass  # closed meanwhile, or by a fork
        self._native.close()

    def __enter__(self) -> "Watch":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> "Watch":
        return await _in_thread(self.start)

    async def __aexit__(self, *_: object) -> None:
        await _in_thread(self.close)

    def add(self, pid: int) -> None:
        """Watches one more process and its descendants.

        Example:

            w.add(pid)
        """
        self._native.add(check_pid("pid", pid))
        self._pids.add(pid)

    def remove(self, pid: int) -> None:
        """Stops watching a process.

        Example:

            w.remove(pid)
        """
        self._native.remove(check_pid("pid", pid))
        self._pids.discard(pid)

    @property
    def backend(self) -> Optional[str]:
        """The source in use: "etw", "ebpf" or "poll"; None before the start.

        Example:

            print(w.backend)
        """
        if self._native.closed:
            return self._backend
        return SOURCES.get(self._native.meta().source) if self._started else None

    @property
    def stats(self) -> Dict[str, Any]:
        """Rates, loss and own cost so far, by the names of the output; after the end those of the whole watch.

        Example:

            print(w.stats["samples"], w.stats["lost"], w.stats["self_cpu_percent"])
        """
        if self._stats is not None:
            return dict(self._stats)
        return stats_of(self._native.stats())

    # --------------------------------------------------------------------- samples

    def read(self, timeout: Optional[float] = None) -> Optional[Batch]:
        """The next batch: starts, samples, threads, exits. None if nothing arrived within `timeout` seconds, or if the
        watch has ended (`ended`).

        Example:

            batch = w.read(timeout=1)
        """
        if not self._started:
            self.start()
        limit = None if timeout is None else time.monotonic() + timeout
        while True:
            left_ms = SLICE_MS if limit is None else max(0, min(SLICE_MS, int((limit - time.monotonic()) * 1000)))
            over = self._ended.is_set()
            try:
                batch = self._native.read(0 if over else left_ms)
            except ETWSessionError as error:
                if self._ended.is_set() or self._native.closed:
                    return None
                raise ETWSessionLostError(f"the session ended unexpectedly: {error}") from error
            if batch is not None:
                self._note(batch)
                return batch
            if over or (limit is not None and time.monotonic() >= limit):
                self._check_targets()
                return None
            self._check_targets()

    def _note(self, batch: Batch) -> None:
        """Ends the watch when the last of the selected processes has exited."""
        if not self._only_pids:
            return
        for row in batch.of_type(_abi.ETWATCH_TYPE_START):
            self._live.add((batch[row].pid, batch[row].start_ns))
            self._seen = True
        for row in batch.of_type(_abi.ETWATCH_TYPE_EXIT):
            self._live.discard((batch[row].pid, batch[row].start_ns))
        if self._seen and not self._live:
            self._ended.set()

    def _check_targets(self) -> None:
        """Ends the watch if all selected processes exited before it began: no event will report that."""
        if self._only_pids and not self._seen and all(_system.has_ended(pid) for pid in self._pids):
            self._ended.set()

    @property
    def ended(self) -> bool:
        """Whether the watch is over: all selected processes exited, or stop() was called."""
        return self._ended.is_set()

    def batches(self, *, duration: Optional[float] = None, timeout: Optional[float] = None) -> Iterator[Batch]:
        """Batches as they arrive. duration: end after this many seconds. timeout: raise TimeoutError if nothing arrives
        for this many seconds.

        Example:

            for batch in w.batches(duration=10):
                print(batch.column("pid"), batch.column("cpu_percent"))
        """
        self.start()
        end = self._end_of(duration)
        while True:
            wait = timeout
            if end is not None:
                wait = max(0.0, min(end - time.monotonic(), timeout if timeout is not None else float("inf")))
            batch = self.read(wait)
            if batch is not None:
                yield batch
            elif self.ended or (end is not None and time.monotonic() >= end):
                return
            elif timeout is not None:
                raise TimeoutError(f"no sample within {timeout} s")

    def _end_of(self, duration: Optional[float]) -> Optional[float]:
        """When an iteration ends: after its own duration or that of the watch, whichever comes first."""
        ends = [self._until] if self._until is not None else []
        if duration is not None:
            ends.append(time.monotonic() + duration)
        return min(ends) if ends else None

    def samples(self, *, duration: Optional[float] = None, timeout: Optional[float] = None) -> Iterator[Sample]:
        """Samples one by one; with threads=True also of threads, with lifecycle=True also starts and exits.

        Example:

            for sample in w.samples(timeout=5):
                print(sample)
        """
        for batch in self.batches(duration=duration, timeout=timeout):
            yield from self._selected(batch)

    def _selected(self, batch: Batch) -> List[Sample]:
        wanted = ("sample", "thread", "start", "exit") if self._lifecycle else ("sample", "thread")
        kinds = {kind for kind, name in TYPES.items() if name in wanted}
        return [Sample(batch, row) for row, kind in enumerate(batch.types()) if kind in kinds]

    def __iter__(self) -> Iterator[Sample]:
        return self.samples()

    async def _read(self) -> Optional[Batch]:
        wait = SLICE_MS / 1000
        if self._until is not None:
            wait = max(0.0, min(wait, self._until - time.monotonic()))
        return await _in_thread(self.read, wait)

    async def __aiter__(self) -> AsyncIterator[Sample]:
        while True:
            batch = await self._read()
            if batch is not None:
                for sample in self._selected(batch):
                    yield sample
            elif self.ended or (self._until is not None and time.monotonic() >= self._until):
                return

    # ---------------------------------------------------------------------- events

    def events(self, *, duration: Optional[float] = None) -> Iterator[SchedulerEvent]:
        """Every switch, wake-up, fork, exec and exit; needs events=True. Ends when the samples end.

        Example:

            for event in w.events(duration=1):
                print(event.event, event.tid)
        """
        if self._collector is None:
            raise ETWSessionError("the event stream is off: use watch(..., events=True)")
        self.start()
        end = self._end_of(duration)
        taken = self._collector.table(_abi.ETWATCH_TABLE_EVENTS, take=True)
        names = SchedulerEvent._fields
        while True:
            over = self.ended or (end is not None and time.monotonic() >= end)
            for row in taken.rows():
                yield SchedulerEvent._make([row.get(name) for name in names])
            if over:
                return
            wait = self._latency_s if end is None else min(self._latency_s, max(0.0, end - time.monotonic()))
            self.read(wait)

    @property
    def events_dropped(self) -> int:
        """Events that were dropped because they were not read in time."""
        return self._collector.dropped() if self._collector is not None else 0


def watch(target: Target = None, *, hz: float = 10.0, threads: bool = False, events: bool = False,
          lifecycle: bool = False, latency_ms: Optional[int] = None, budget: Optional[float] = None,
          source: str = "auto", fallback: bool = True, command_lines: bool = False, metrics: Iterable[str] = (),
          queue_samples: int = 65536, duration: Optional[float] = None) -> Watch:
    """Watches processes and their descendants: a pid, a name, several of them, or every process (None).

    hz: samples a second, 0.1 to 1000.
    threads: also samples of threads. events: the full event stream of the scheduler. lifecycle: also starts and exits.
    latency_ms: how long samples may be held back (400). duration: iteration ends this many seconds after the start.
    budget: own cost in per cent of one core; the rate is lowered to keep it. None: the rate is never lowered.
    metrics: names or groups to measure in addition to the default (see `etwatch metrics`).
    fallback: if rights are missing, poll and log a warning (True) or raise ETWAccessDeniedError (False).

    Raises ProcessLookupError for a pid that does not exist.

    Example:

        with etwatch.watch("python", hz=100, duration=10) as w:
            for sample in w:
                print(sample.pid, sample.name, sample.cpu_percent)
    """
    return Watch(target, hz=hz, threads=threads, events=events, lifecycle=lifecycle, latency_ms=latency_ms,
                 budget=budget, source=source, fallback=fallback, command_lines=command_lines,
                 metrics=metrics, queue_samples=queue_samples, duration=duration)


def stats_of(stats: Any) -> Dict[str, Any]:
    """A stats struct as a dict with the names of the output."""
    found = {name: getattr(stats, name) for name, *_ in _abi.Stats._fields_ if name not in ("size", "source")}
    found["source"] = SOURCES.get(stats.source)
    if found["self_kernel_percent"] < 0:
        found["self_kernel_percent"] = None
    return found


# ------------------------------------------------------------------------------- run


class RunResult:
    """What a command did. `status` is the return code as in subprocess (minus the signal that killed it). `processes`,
    `threads`, `samples`, `thread_samples` and `devices` are tables, built on access.

    Example:

        result = etwatch.run(["python3", "infer.py"])
        print(result.status, result.duration, result.processes.head(3))
    """

    def __init__(self, command: Sequence[str], status: int, pid: int, stats: Dict[str, Any],
                 summaries: List[ProcessSummary], collector: Collector, stdout: Any, stderr: Any) -> None:
        self.command = list(command)
        self.status = status
        self.pid = pid
        self.stats = stats
        self.stdout = stdout
        self.stderr = stderr
        self.duration = stats["duration_ns"] / 1e9
        self._summaries = summaries
        self._collector = collector
        self._tables: Dict[str, Table] = {}

    @property
    def returncode(self) -> int:
        """The same as `status`."""
        return self.status

    @property
    def backend(self) -> Optional[str]:
        """The source that was used: "etw", "ebpf" or "poll"."""
        source = self.stats["source"]
        return None if source is None else str(source)

    @property
    def processes(self) -> Table:
        """Totals of the command and of each descendant, in the order in which they started."""
        if "processes" not in self._tables:
            names = [name for name in COLUMNS if name not in ("type", "tid", "thread_name")]
            self._tables["processes"] = Table({name: [getattr(process.sample, name) for process in self._summaries]
                                               for name in names}, name="processes")
        return self._tables["processes"]

    @property
    def samples(self) -> Table:
        """What each process did in each interval."""
        return self._kept("samples", _abi.ETWATCH_TABLE_SAMPLES)

    @property
    def thread_samples(self) -> Table:
        """What each thread did in each interval."""
        return self._kept("thread_samples", _abi.ETWATCH_TABLE_THREAD_SAMPLES)

    @property
    def devices(self) -> Table:
        """Every reading of GPUs, NPUs and energy meters (metrics=["gpu_ns"], "npu_ns", "energy_uj"), and their problems. The
        column `estimated` names the metrics of a row that are estimates."""
        return self._kept("devices", _abi.ETWATCH_TABLE_DEVICES)

    def _kept(self, name: str, table: int) -> Table:
        if name not in self._tables:
            self._tables[name] = self._collector.table(table)
        return self._tables[name]

    @property
    def threads(self) -> Table:
        """Totals of each thread while it was watched."""
        if "threads" not in self._tables:
            self._tables["threads"] = _thread_totals(self.thread_samples)
        return self._tables["threads"]

    @property
    def dropped(self) -> int:
        """Rows that were dropped because of max_samples."""
        return self._collector.dropped()

    def plot(self, *, top: int = 10) -> Any:
        """CPU by thread, memory, I/O and the schedule, as one matplotlib figure.

        Example:

            result.plot().savefig("run.png")
        """
        from . import plot
        return plot.plot_run(self, top=top)

    def _repr_html_(self) -> str:
        words = html.escape(" ".join(self.command))
        return (f"<p><code>{words}</code>: status {self.status}, {self.duration:.3f} s, source {self.backend}</p>"
                f"{self.processes._repr_html_()}")

    def __repr__(self) -> str:
        return (f"<RunResult {self.command[0]!r}: status {self.status}, {len(self._summaries)} processes, "
                f"{self.duration:.3f} s on {self.backend}>")


def _thread_totals(samples: Table) -> Table:
    counters = [name for name, _, kind in _abi.METRICS if kind == "counter" and name in samples.columns]
    which = ["pid", "start_ns", "name", "tid", "thread_name"]
    totals: Dict[Tuple[Any, ...], Dict[str, Any]] = {}
    for row in samples.rows():
        key = (row["pid"], row["start_ns"], row["tid"])
        total = totals.setdefault(key, {**{name: None for name in counters}, "t_ns": 0, "dt_ns": 0})
        total.update({name: row[name] for name in which})
        total["t_ns"] = max(total["t_ns"], row["t_ns"])
        total["dt_ns"] += row["dt_ns"]
        for name in counters:
            if row[name] is not None:
                total[name] = (total[name] or 0) + row[name]
    names = [*which, "t_ns", "dt_ns", *counters]
    return Table({name: [total[name] for total in totals.values()] for name in names}, name="threads")


_SHELL = "/bin/sh"
_HOLD = 'kill -STOP $$; exec "$0" "$@"'
_CREATE_SUSPENDED = 4


class _Held:
    """A child that is stopped before its first instruction, so that monitoring sees all of it."""

    def __init__(self, command: Sequence[str], options: Dict[str, Any]) -> None:
        self.stopped = False
        if sys.platform == "win32":
            self.child: "subprocess.Popen[Any]" = subprocess.Popen(command, creationflags=_CREATE_SUSPENDED, **options)
            return
        _find(command[0], options.get("env"), options.get("cwd"))
        if os.access(_SHELL, os.X_OK):
            # The shell stops itself, then execs the command: the same process, with no additional descriptors.
            self.child = subprocess.Popen([_SHELL, "-c", _HOLD, *command], **options)
            self.child.args = list(command)  # for the message of TimeoutExpired
            self.stopped = os.waitid(os.P_PID, self.child.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT) is not None
        else:
            self.child = subprocess.Popen(command, **options)

    def release(self) -> None:
        if sys.platform == "win32":
            ntdll: Any = ctypes.WinDLL("ntdll")
            ntdll.NtResumeProcess(ctypes.c_void_p(int(getattr(self.child, "_handle"))))
        elif self.stopped:
            os.kill(self.child.pid, signal.SIGCONT)

    def wait(self, timeout: Optional[float]) -> None:
        """Waits until the child has exited, without reaping it: its last counters can still be read."""
        if sys.platform == "win32":
            self.child.wait(timeout)
            return
        limit = None if timeout is None else time.monotonic() + timeout
        pause = 0.001
        options = os.WEXITED | os.WNOWAIT | (os.WNOHANG if limit is not None else 0)
        while os.waitid(os.P_PID, self.child.pid, options) is None:
            if limit is not None and time.monotonic() >= limit:
                raise subprocess.TimeoutExpired(self.child.args, timeout or 0)
            time.sleep(pause)
            pause = min(0.05, pause * 2)

    def kill(self) -> None:
        self.child.kill()
        self.release()
        self.child.wait()
        for pipe in (self.child.stdin, self.child.stdout, self.child.stderr):
            if pipe is not None:
                pipe.close()


def _find(program: str, env: Optional[Dict[str, str]], cwd: Optional[str]) -> None:
    path = (env or os.environ).get("PATH")
    if os.sep in program:
        full = os.path.join(cwd or ".", program)
        if not os.path.exists(full):
            raise FileNotFoundError(2, "No such file or directory", program)
        if not os.access(full, os.X_OK) or os.path.isdir(full):
            raise PermissionError(13, "Permission denied", program)
    elif not any(os.access(os.path.join(folder or ".", program), os.X_OK)
                 for folder in (path if path is not None else os.defpath).split(os.pathsep)):
        raise FileNotFoundError(2, "No such file or directory", program)


def run(command: Sequence[Union[str, "os.PathLike[str]"]], *, hz: float = 100.0, threads: bool = True,
        timeout: Optional[float] = None, capture_output: bool = False, text: bool = False,
        cwd: Optional[str] = None, env: Optional[Dict[str, str]] = None, stdin: Any = None, stdout: Any = None,
        stderr: Any = None, budget: Optional[float] = None, source: str = "auto", fallback: bool = True,
        command_lines: bool = False, metrics: Iterable[str] = (), max_samples: int = 1_000_000) -> RunResult:
    """Runs a command until it exits and returns what it and its descendants did.

    The command is watched from its first instruction on.

    hz: samples a second. max_samples: rows kept in each table; the oldest are dropped first.
    timeout: kill the command and raise subprocess.TimeoutExpired after this many seconds.
    budget, source, fallback, command_lines, metrics: as in `watch`. The other arguments are those of subprocess.run.

    Example:

        result = etwatch.run(["python3", "infer.py"], hz=1000, capture_output=True, text=True)
        print(result.status, result.stdout, result.samples["cpu_percent"])
    """
    if isinstance(command, (str, bytes)) or not isinstance(command, Sequence):
        raise TypeError(f"command: a list of the program and its arguments is needed, not {command!r}")
    words = [os.fspath(word) for word in command]
    if not words or not words[0]:
        raise ValueError("command: an empty list")
    number("hz", hz, 0.1, 1000)
    number("max_samples", max_samples, 1, 1_000_000_000, True)
    if timeout is not None:
        number("timeout", timeout, 0, 1e9)
    options: Dict[str, Any] = {"cwd": cwd, "env": env, "stdin": stdin, "stdout": stdout, "stderr": stderr, "text": text}
    if capture_output:
        if stdout is not None or stderr is not None:
            raise ValueError("capture_output: not together with stdout or stderr")
        options["stdout"] = options["stderr"] = subprocess.PIPE
    flags = 0 if fallback else _abi.ETWATCH_CONFIG_NO_FALLBACK
    for wanted, flag in ((threads, _abi.ETWATCH_CONFIG_THREADS), (budget is None, _abi.ETWATCH_CONFIG_NO_BUDGET),
                         (command_lines, _abi.ETWATCH_CONFIG_CMDLINE)):
        flags |= flag if wanted else 0
    collector = Collector(max_samples, command_lines)
    summary = Summary(16384, collector)
    config = make_config(source=source, hz=float(hz), budget_percent=float(budget or 0), flags=flags,
                         metrics=_selected_metrics(metrics))
    callbacks = _native.sized(_abi.Callbacks)
    summary.attach(callbacks)
    native = NativeMonitor(config, callbacks, summary)
    try:
        return _watch_child(native, words, options, timeout, summary, collector)
    finally:
        native.close()


def _watch_child(native: NativeMonitor, command: List[str], options: Dict[str, Any], timeout: Optional[float],
                 summary: Summary, collector: Collector) -> RunResult:
    held = _Held(command, options)
    out: Tuple[Any, Any] = (None, None)
    try:
        native.add(held.child.pid)
        native.start()
        fallback = _native.text(native.meta().fallback)
        if fallback:
            logger.warning("%s", in_python(fallback))
        held.release()
        if options["stdout"] == subprocess.PIPE or options["stderr"] == subprocess.PIPE:
            out = held.child.communicate(timeout=timeout)
        else:
            held.wait(timeout)
        native.stop()
        status = held.child.wait()
    except BaseException:
        held.kill()
        raise
    return RunResult(command, status, held.child.pid, stats_of(native.stats()), summary.processes(), collector, *out)
