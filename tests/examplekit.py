# SPDX-License-Identifier: MIT
"""The examples in the docstrings of the package: finds them, and runs each with what its names stand for.

Run as a program it runs them all, and prints one line for each that fails: the name, the error, the code.
"""
import ast
import contextlib
import inspect
import io
import os
import subprocess
import sys
import tempfile
import time
import traceback
import warnings

BUSY = "import time\nend = time.time() + 120\nwhile time.time() < end: sum(range(1000)); time.sleep(0.0005)"
SECONDS = 0.1  # a watch in an example, whatever it says
TOOLS = ("pandas", "polars", "pyarrow", "matplotlib")


def examples(text):
    """The code blocks below "Example:" in a docstring."""
    found, inside = [], False
    for line in inspect.cleandoc(text or "").split("\n"):
        if line == "Example:":
            inside = True
            found.append([])
        elif inside and (not line or line.startswith("    ")):
            found[-1].append(line[4:])
        else:
            inside = False
    return ["\n".join(lines).strip() for lines in found]


def documented(package):
    """(name, docstring) of every public name, and of the public members that its class defines."""
    for name in package.__all__:
        thing = getattr(package, name)
        if name.startswith("__") or not (inspect.isclass(thing) or callable(thing)):
            continue
        yield name, thing.__doc__
        if inspect.isclass(thing):
            for member, value in vars(thing).items():
                if not member.startswith("_") and (callable(getattr(thing, member)) or isinstance(value, property)) and \
                        not inspect.isclass(value):
                    yield f"{name}.{member}", value.__doc__ if isinstance(value, property) else getattr(thing, member).__doc__


class Short:
    """The package, with a watch that ends soon, and a consumer that ends: of a recording."""

    def __init__(self, package):
        self._package = package

    def __getattr__(self, name):
        return getattr(self._package, name)

    def watch(self, *arguments, **named):
        return self._package.watch(*arguments, **{**named, "duration": SECONDS})

    def ETWConsumer(self, *arguments, **named):  # pylint: disable=invalid-name
        return self._package.ETWConsumer(*arguments, **{"file": "boot.etl", **named})


class ShortTime:
    """The module time, with a short sleep."""

    def __getattr__(self, name):
        return getattr(time, name)

    @staticmethod
    def sleep(seconds):
        time.sleep(min(seconds, SECONDS))


class Names:
    """What the names in examples stand for. Each is made when an example uses it."""

    def __init__(self, package, pid, owner):
        self.etwatch, self.pid, self.owner = package, pid, owner
        self.stack = contextlib.ExitStack()

    def make(self, name):
        made = getattr(self, "make_" + name, None)
        return made() if made is not None else None

    def make_monitor(self):
        kind = self.owner if self.owner in ("UnifiedMonitor", "GPUMonitor") else "ETWMonitor"
        if kind == "GPUMonitor":
            return self.etwatch.GPUMonitor()
        monitor = self.stack.enter_context(getattr(self.etwatch, kind)({"target_processes": {self.pid}}))
        deadline = time.monotonic() + 30
        while self.pid not in monitor.get_process_summary() and time.monotonic() < deadline:
            time.sleep(0.01)
        return monitor

    def make_consumer(self):
        return self.etwatch.ETWConsumer(file="boot.etl")

    def make_config(self):
        return self.etwatch.ETWMonitorConfig()

    def make_event(self):
        return next(iter(self.make_trace().events()))

    def make_power(self):
        return self.etwatch.EnergyMonitor().get_power_metrics()

    def make_process(self):
        return self.etwatch.Process(self.pid)

    def make_result(self):
        return self.etwatch.run([sys.executable, "infer.py"])

    def make_sampler(self):
        return self.etwatch.AdaptiveSampler(100.0)

    def make_system(self):
        return self.etwatch.SystemMonitor()

    def make_table(self):
        if self.owner == "Table.plot":
            return self.make_trace().samples(hz=100)
        return self.make_trace().processes

    def make_trace(self):
        return self.stack.enter_context(self.etwatch.open("boot.etl"))

    def make_w(self):
        return self.stack.enter_context(self.etwatch.watch(self.pid, hz=100, events=self.owner == "Watch.events",
                                                           duration=SECONDS))


def used(tree):
    """The names that code reads before it sets them."""
    stored, found = set(), []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.append(node.id)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            stored.add(node.id)
        if isinstance(node, ast.arg):
            stored.add(node.arg)
    return [name for name in dict.fromkeys(found) if name not in stored]


def run_example(package, name, code, pid):
    """Runs one example. Raises what it raises."""
    tree = ast.parse(code)
    owner = name if name in ("Watch.events", "Table.plot") else name.split(".")[0]
    names = Names(package, pid, owner)
    space = {"etwatch": Short(package), "time": ShortTime(), "os": os, "sys": sys, "pid": pid, "__name__": "example"}
    with names.stack, warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        for one in used(tree):
            made = names.make(one) if one not in space else None
            if made is not None:
                space[one] = made
        exec(compile(tree, f"<example of {name}>", "exec"), space)


def run_all(package, recording, select=()):
    """Runs every example in an empty folder with a recording. Returns (number run, [(name, error, code)])."""
    count, failed = 0, []
    with tempfile.TemporaryDirectory() as folder:
        here = os.getcwd()
        os.chdir(folder)
        with open(recording, "rb") as file:
            data = file.read()
        for path, content in (("boot.etl", data), ("damaged.etl", data[:100]), ("infer.py", b"print(sum(range(10 ** 6)))")):
            with open(path, "wb") as file:
                file.write(content)
        child = subprocess.Popen([sys.executable, "-c", BUSY])
        try:
            for name, text in documented(package):
                if select and not any(part in name for part in select):
                    continue
                for code in examples(text):
                    count += 1
                    try:
                        run_example(package, name, code, child.pid)
                    except ImportError as error:
                        if error.name not in TOOLS:
                            failed.append((name, repr(error), code))
                    except Exception as error:  # pylint: disable=broad-except
                        if os.environ.get("ETWATCH_NO_EVENTS") and isinstance(error, (package.ETWAccessDeniedError,
                                                                                      package.ETWProviderError)):
                            continue  # this machine has no source of events
                        failed.append((name, repr(error) + "\n" + traceback.format_exc(), code))
        finally:
            child.kill()
            child.wait()
            os.chdir(here)
    return count, failed


def main():
    import etwatch
    count, failed = run_all(etwatch, sys.argv[1], sys.argv[2:])
    for name, error, code in failed:
        print(f"{name}: {error}\n{code}\n")
    print(f"{count} examples, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
