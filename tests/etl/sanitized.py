# SPDX-License-Identifier: MIT
"""Every command that reads a file, built with the address and undefined behaviour sanitizers, over the fuzz corpus.

The fuzz targets call the parsers; this is the way from a file to every output. Inputs that are recordings get every
command, the others (payloads, text of /proc) the two that read most; compare also gets the JSON that it reads."""
import concurrent.futures
import contextlib
import glob
import http.client
import json
import os
import re
import subprocess
import time

from lib import ROOT, cases, check, check_eq, main, skip, temp_dir

PROGRAM = os.path.join(ROOT, "build-address-undefined", "etwatch")
CORPUS = os.path.join(ROOT, "tests", "fuzz", "corpus")
RECORDINGS = {"cost", "etl_container", "etl_whole", "export", "pftrace"}
FIRST = [["report", "--json", "--threads", "--cmdline"], ["events", "--json", "--payload", "--cmdline"]]
COMMANDS = FIRST + [["report", "--images"], ["report", "--csv"], ["stat", "--source", "etl", "--json", "--threads", "--hz", "1000"],
                    ["stat", "--source", "etl", "--csv", "--csv-raw"], ["events"], ["events", "--count-by-type"], ["waits", "--json"],
                    ["waits"], *(["export", "-f", kind, "--typed"] for kind in ("csv", "jsonl", "arrow")),
                    ["export", "-f", "csv", "--fields", "--payload", "--cmdline"],
                    *(["export", "-f", "csv", "--table", table] for table in ("samples", "processes", "images")),
                    *(["export", "-f", kind] for kind in ("perfetto", "chrome", "folded", "speedscope")),
                    # a selection of processes, by pid and by name, and of time
                    *([*command, *selection] for selection in (["-p", "1000"], ["-n", "*"]) for command in
                      (["report", "--threads", "--images", "--json"], ["events", "--json", "--payload"], ["waits", "--json"],
                       ["stat", "--source", "etl", "--json"], ["export", "-f", "csv", "--table", "samples"],
                       ["export", "-f", "perfetto"])),
                    *([*command, "--from", "0.001", "--to", "0.5"] for command in
                      (["report", "--json"], ["events"], ["export", "-f", "folded"], ["export", "-f", "chrome"]))]
JSON = {"json_read"}
COMPARE = [["compare"], ["compare", "--json"]]
# An exit status that only the sanitizers use.
ENVIRONMENT = {**os.environ, "ASAN_OPTIONS": "exitcode=99:allocator_may_return_null=1",
               "UBSAN_OPTIONS": "exitcode=99:halt_on_error=1:print_stacktrace=1"}


def attempt(arguments, path):
    """None, or what went wrong."""
    paths = [path, path] if arguments[0] == "compare" else [path]
    try:
        done = subprocess.run([PROGRAM, *arguments, "-q", *paths], check=False, env=ENVIRONMENT, timeout=60,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    except subprocess.TimeoutExpired:
        return f"{arguments} {path}: does not end"
    return judge(arguments, path, done.returncode, done.stderr, (0, 1))


def judge(arguments, path, code, err, codes):
    """The exit status of a process that the program started is not known, but what it prints."""
    if code in codes and b"Sanitizer" not in err and b"runtime error" not in err:
        return None
    return f"{arguments} {path}: {code}: {err.decode(errors='replace')[-600:]}"


def name_by_content(path, folder):
    """compare and serve find the format by the name of the file."""
    with open(path, "rb") as file:
        kind = "pftrace" if file.read(1) == b"\x0a" else "etl"
    name = os.path.join(folder, f"{os.path.basename(path)}.{kind}")
    os.symlink(path, name)
    return name


def ask(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    with contextlib.closing(connection):
        connection.request("GET", path)
        return connection.getresponse().read()


def attempt_serve(path):
    """Serves the file, and gets what every page gets once it is read. None, or what went wrong."""
    with subprocess.Popen([PROGRAM, "serve", "--listen", "127.0.0.1:0", path], env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as child:
        err = b""
        for line in child.stderr:
            err += line
            found = re.search(rb"serving http://127.0.0.1:(\d+)/", line)
            if found:
                break
        else:
            return judge("serve", path, child.wait(60), err, (0, 1))
        deadline = time.monotonic() + 60
        with contextlib.suppress(OSError, http.client.HTTPException):  # what it printed shows why it ended
            while not json.loads(ask(int(found[1]), "/api/v1/meta"))["ended"] and time.monotonic() < deadline:
                time.sleep(0.05)
            for what in ("/metrics", "/api/v1/processes", "/api/v1/system/history", "/api/v1/alerts", "/api/v1/devices"):
                ask(int(found[1]), what)
        child.terminate()
        err += child.stderr.read()
        return judge("serve", path, child.wait(60), err, (0, 1, 143))


@cases([(target, target) for target in sorted(os.listdir(CORPUS))])
def no_command_reads_beyond_its_memory_or_relies_on_undefined_behaviour(target):
    if not os.access(PROGRAM, os.X_OK):
        skip("there is no build-address-undefined")
    paths = sorted(glob.glob(os.path.join(CORPUS, target, "*")))
    check(paths, "no inputs")
    commands = COMMANDS if target in RECORDINGS else FIRST
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool, temp_dir() as folder:
        found = list(pool.map(lambda one: attempt(*one), [(command, path) for command in commands for path in paths]))
        if target in RECORDINGS | JSON:
            found += pool.map(lambda one: attempt(*one), [(command, path) for command in COMPARE for path in paths])
        if target in RECORDINGS:
            named = [name_by_content(path, folder) for path in paths]
            found += pool.map(lambda one: attempt(*one), [(command, path) for command in COMPARE for path in named])
            found += pool.map(attempt_serve, named)
    check_eq([text for text in found if text], [], "what the sanitizers found")


main()
