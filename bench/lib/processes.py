# SPDX-License-Identifier: MIT
"""Programs controlled by the driver: started, queried, measured from outside, ended by their pid.

CPU time of another process is read from its CPU clock, which counts all its threads, including exited ones, in
nanoseconds and without a file. The bench programs use a line protocol: they print "ready PID …", take one command
per line and answer with a line.
"""
import atexit
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(HERE)
_running = []


class Missing(Exception):
    """A peer, a right or a program is missing; the text names it."""


class Ended(Exception):
    """A program ended before it answered; the text is its output."""


def _end_all():
    for program in list(_running):
        program.kill()


atexit.register(_end_all)


class Program:
    def __init__(self, argv, *, pipe_in=True, out=subprocess.PIPE, env=None, group=False):
        self.argv = [str(a) for a in argv]
        self._errors = tempfile.TemporaryFile("w+")
        try:
            self.process = subprocess.Popen(
                self.argv, stdin=subprocess.PIPE if pipe_in else subprocess.DEVNULL, stdout=out,
                stderr=self._errors, text=True, bufsize=1, env=env, start_new_session=group)
        except FileNotFoundError as error:
            raise Missing(f"{os.path.basename(self.argv[0])} is not built") from error
        self.group = group
        self.pid = self.process.pid
        _running.append(self)

    def line(self):
        text = self.process.stdout.readline()
        if text == "":
            self.process.wait()
            raise Ended(f"{os.path.basename(self.argv[0])}: {self.errors() or 'ended early'}")
        return text.rstrip("\n")

    def ready(self):
        words = self.line().split()
        if not words or words[0] != "ready":
            raise Ended(f"{self.argv[0]}: printed {words} instead of ready")
        return words[1:]

    def ask(self, command):
        try:
            self.process.stdin.write(command + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # line() reports the reason
        return self.line()

    def ask_json(self, command):
        return json.loads(self.ask(command))

    def errors(self):
        self._errors.seek(0)
        return self._errors.read().strip().replace("\n", "; ")[-300:]

    def signal(self, number):
        if self.process.poll() is None:
            if self.group:
                os.killpg(self.pid, number)
            else:
                os.kill(self.pid, number)

    def end(self, number=None, timeout=20):
        """Closes stdin (or sends a signal), waits; returns the rest of its output."""
        if number is not None:
            self.signal(number)
        try:
            rest, _ = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Ended(f"{self.argv[0]} did not end on request") from None
        self._forget()
        return rest or ""

    def kill(self):
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGKILL)
        self.process.wait()
        self._forget()

    def _forget(self):
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    pass
        if self in _running:
            _running.remove(self)


def cpu_ns(pid):
    """CPU time of all threads of a process so far, by its own clock (see clock_getcpuclockid)."""
    try:
        return time.clock_gettime_ns((~pid << 3) | 2)
    except OSError:
        raise Ended(f"process {pid} has ended") from None


def status_kb(pid, *names):
    """Values from /proc/PID/status, by name."""
    found = {}
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            for line in file:
                name, _, value = line.partition(":")
                if name in names:
                    found[name] = int(value.split()[0])
    except OSError:
        raise Ended(f"process {pid} has ended") from None
    return [found.get(name, 0) for name in names]


def task_count():
    """Number of tasks of the whole system."""
    with open("/proc/loadavg", encoding="ascii") as file:
        return int(file.read().split()[3].split("/")[1])


class Bench:
    """The context of one driver run: options, programs, peers, a folder for files."""

    def __init__(self, build, quick=False, repeat=None, source="ebpf", only=None, minutes=None):
        self.build = os.path.abspath(build)
        self.quick = quick
        self.repeat = repeat
        self.source = source
        self.only = only
        self.minutes = minutes
        self.dir = tempfile.mkdtemp(prefix="etwatch-bench-",
                                    dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        atexit.register(shutil.rmtree, self.dir, True)
        self._psutil = None

    def wanted(self, name):
        """Whether --only selects this group of rows."""
        return self.only is None or self.only in name

    def path(self, name):
        return os.path.join(self.build, "bench", name)

    def tool(self, name, *args, **kwargs):
        return Program([self.path(name), *args], **kwargs)

    def etwatch(self):
        path = os.path.join(self.build, "etwatch")
        if not os.access(path, os.X_OK):
            raise Missing("etwatch is not built")
        return path

    def file(self, name):
        return os.path.join(self.dir, name)

    def watch(self, *args):
        """watch_lib with the source of this run; not started yet."""
        return self.tool("watch_lib", "--source", self.source, *args)

    def load(self, idle, busy, on_us=500, off_us=10000):
        tasks = task_count()
        program = self.tool("load", "--idle", idle, "--busy", busy, "--on-us", on_us,
                            "--off-us", off_us)
        program.tasks_before = tasks
        program.ready()
        time.sleep(0.5)
        return program

    def unload(self, program):
        """The children die with their parent, but not all at once."""
        program.kill()
        for _ in range(200):
            if task_count() <= program.tasks_before + 20:
                return
            time.sleep(0.1)

    def psutil(self, *args):
        if self._psutil is None:
            self._psutil = find_psutil()
        program = Program([self._psutil, os.path.join(HERE, "lib", "psutil_peer.py"), *args])
        program.ready()
        return program

    def peer(self, name):
        path = shutil.which(name)
        if path is None:
            raise Missing("not installed")
        return path


def find_psutil():
    """A Python that has psutil: the system's package is often not for the Python in PATH."""
    for python in (sys.executable, "/usr/bin/python3", shutil.which("python3")):
        if python and subprocess.run([python, "-c", "import psutil"], check=False,
                                     stderr=subprocess.DEVNULL).returncode == 0:
            return python
    raise Missing("not installed")


def with_tracefs(argv):
    """A command that sees tracefs; mounted only for it where the system has not mounted it."""
    if os.path.isdir("/sys/kernel/tracing/events"):
        return argv
    if shutil.which("unshare") is None:
        raise Missing("tracefs is not mounted")
    script = 'mount -t tracefs none /sys/kernel/tracing && exec "$@"'
    return ["unshare", "-m", "sh", "-c", script, "sh", *argv]
