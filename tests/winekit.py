# SPDX-License-Identifier: MIT
"""Programs built for Windows, run under Wine: a separate prefix in the build folder and one warm server.

    from winekit import wine, need_windows
    result = wine(["report", "x.etl"])          # build-windows/etwatch.exe

The user's own Wine is not touched: WINEPREFIX is in the build folder, and only the server of that prefix is ever ended.
"""
import functools
import os
import shutil
import subprocess
import tempfile

PREPARE_SECONDS = 180
VERSION = "win10"
READY = "ready-2"  # another name makes every prefix again

_warm = {}  # build: the program that keeps its Wine warm


def is_windows_build(build):
    return os.path.exists(os.path.join(build, "etwatch.exe"))


def environment(build):
    """Environment variables for Wine: its prefix, no messages on stderr, no download offers."""
    return {
        "WINEPREFIX": os.path.join(build, "wine", "prefix"),
        "WINEDEBUG": "-all",
        "WINEDLLOVERRIDES": "mscoree,mshtml=",
        "DISPLAY": "",
    }


@functools.lru_cache(None)
def launcher():
    """The command that precedes a program. Wine needs a page at a fixed address; once in some thousand starts it is
    taken (c0000018), and the program exits with 1 without a message. Without address randomization the page is always
    free."""
    fixed = ["setarch", "-R"]
    works = shutil.which(fixed[0]) and subprocess.run(fixed + ["true"], check=False,
                                                      stderr=subprocess.DEVNULL).returncode == 0
    return (fixed if works else []) + ["wine"]


def _call(build, *command):
    """Exit status and output. Not through a pipe: background processes of Wine would keep it open."""
    with tempfile.TemporaryFile() as output:
        done = subprocess.run(command, env={**os.environ, **environment(build)}, check=False,
                              timeout=PREPARE_SECONDS, stdin=subprocess.DEVNULL, stdout=output,
                              stderr=subprocess.STDOUT)
        output.seek(0)
        return done.returncode, output.read().decode(errors="replace")


def server():
    """wineserver is not in PATH everywhere."""
    for path in (shutil.which("wineserver"), "/usr/lib/wine/wineserver", "/usr/lib/wine/wineserver64"):
        if path and os.access(path, os.X_OK):
            return path
    return None


def prepare(build):
    """Makes the prefix if there is none, starts the server, and writes a script that runs the program. Returns None,
    or the reason for a failure."""
    if not shutil.which("wine") or not server():
        return "wine is not installed"
    folder = os.path.join(build, "wine")
    os.makedirs(folder, exist_ok=True)
    if not os.path.exists(os.path.join(folder, READY)):
        shutil.rmtree(os.path.join(folder, "prefix"), ignore_errors=True)
        status, output = _call(build, *launcher(), "wineboot", "-i")
        if status != 0:
            return "wineboot: " + output.strip()[-200:]
        _call(build, *launcher(), "reg", "add", r"HKCU\Software\Wine", "/v", "Version", "/d", VERSION, "/f")
        # A service has ten seconds to start, otherwise; a busy machine needs more.
        _call(build, *launcher(), "reg", "add", r"HKLM\System\CurrentControlSet\Control", "/v", "ServicesPipeTimeout", "/t",
              "REG_DWORD", "/d", str(PREPARE_SECONDS * 1000), "/f")
        _call(build, server(), "-k")  # the service manager reads it when it starts
        _call(build, server(), "-w")
        with open(os.path.join(folder, READY), "w", encoding="utf-8") as file:
            file.write(VERSION + "\n")
    # Wine ends its services with the last program and restarts them with the next, which takes a second and passes
    # that program's output to them: this program stays until our end of its input is closed.
    if build not in _warm:
        _warm[build] = subprocess.Popen([*launcher(), "cmd"], env={**os.environ, **environment(build)},
                                        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, start_new_session=True)
        _call(build, *launcher(), "cmd", "/c", "exit")
    script = os.path.join(folder, "etwatch")
    with open(script, "w", encoding="utf-8") as file:
        words = " ".join(f"{name}='{value}'" for name, value in environment(build).items())
        file.write(f"#!/bin/sh\nexec env {words} {' '.join(launcher())} '{build}/etwatch.exe' \"$@\"\n")
    os.chmod(script, 0o755)
    return None


def finish(build):
    """Ends the server of the prefix and everything that still runs in it."""
    _call(build, server(), "-k")
    child = _warm.pop(build)
    child.stdin.close()
    child.wait()


# ------------------------------------------------------------------- for tests


def windows_build():
    """The build folder that was passed to tests/run; skips the test without one."""
    from lib import skip
    build = os.environ.get("ETWATCH_WINDOWS")
    if not build:
        skip("no build for Windows: ./dev windows, then tests/run --also build-windows")
    return build


def wine(arguments, program=None, timeout=60, **options):
    """Runs a program of the build (etwatch.exe unless named) to its end."""
    from lib import run
    build = windows_build()
    options.setdefault("env", {**os.environ, **environment(build)})
    first, *rest = launcher()
    return run([*rest, os.path.join(build, program or "etwatch.exe"), *arguments], program=first,
               timeout=timeout, **options)


def start_wine(arguments, program=None, **options):
    from lib import start
    build = windows_build()
    options.setdefault("env", {**os.environ, **environment(build)})
    first, *rest = launcher()
    return start([*rest, os.path.join(build, program or "etwatch.exe"), *arguments], program=first, **options)
