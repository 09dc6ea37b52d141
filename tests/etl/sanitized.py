# SPDX-License-Identifier: MIT
"""Every command that reads a file, built with the address and undefined behaviour sanitizers, over the fuzz corpus.

The fuzz targets call the parsers; this is the way from a file to every output. Inputs that are recordings get every
command, the others (payloads, text of /proc) the two that read most."""
import concurrent.futures
import glob
import os
import subprocess

from lib import ROOT, cases, check, check_eq, main, skip

PROGRAM = os.path.join(ROOT, "build-address-undefined", "etwatch")
CORPUS = os.path.join(ROOT, "tests", "fuzz", "corpus")
RECORDINGS = {"cost", "etl_container", "etl_whole", "export", "pftrace"}
FIRST = [["report", "--json", "--threads", "--cmdline"], ["events", "--json", "--payload", "--cmdline"]]
COMMANDS = FIRST + [["report", "--images"], ["report", "--csv"], ["stat", "--source", "etl", "--json", "--threads", "--hz", "1000"],
                    ["stat", "--source", "etl", "--csv", "--csv-raw"], ["events"], ["events", "--count-by-type"], ["waits", "--json"],
                    ["waits"], *(["export", "-f", kind, "--typed"] for kind in ("csv", "jsonl", "arrow")),
                    ["export", "-f", "csv", "--fields", "--payload", "--cmdline"],
                    *(["export", "-f", "csv", "--table", table] for table in ("samples", "processes", "images")),
                    *(["export", "-f", kind] for kind in ("perfetto", "chrome", "folded", "speedscope"))]
# An exit status that only the sanitizers use.
ENVIRONMENT = {**os.environ, "ASAN_OPTIONS": "exitcode=99:allocator_may_return_null=1",
               "UBSAN_OPTIONS": "exitcode=99:halt_on_error=1:print_stacktrace=1"}


def attempt(arguments, path):
    """None, or what went wrong."""
    try:
        done = subprocess.run([PROGRAM, *arguments, "-q", path], check=False, env=ENVIRONMENT, timeout=60,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    except subprocess.TimeoutExpired:
        return f"{arguments} {path}: does not end"
    if done.returncode in (0, 1):
        return None
    return f"{arguments} {path}: {done.returncode}: {done.stderr.decode(errors='replace')[-600:]}"


@cases([(target, target) for target in sorted(os.listdir(CORPUS))])
def no_command_reads_beyond_its_memory_or_relies_on_undefined_behaviour(target):
    if not os.access(PROGRAM, os.X_OK):
        skip("there is no build-address-undefined")
    paths = sorted(glob.glob(os.path.join(CORPUS, target, "*")))
    check(paths, "no inputs")
    commands = COMMANDS if target in RECORDINGS else FIRST
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        found = pool.map(lambda one: attempt(*one), [(command, path) for command in commands for path in paths])
    check_eq([text for text in found if text], [], "what the sanitizers found")


main()
