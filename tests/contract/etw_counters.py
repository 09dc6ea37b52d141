# SPDX-License-Identifier: MIT
"""Cycles, instructions and cache misses of a live ETW session: exact, or null with a reason.

The session is the emulator's (tests/windows/etwatch_emulated.c), which lists the hardware counters of various
machines and plays a recording of a synthetic machine with known values for every thread.
"""
import collections
import json
import os

from commandkit import run_tool
from etlkit import make_etl
from lib import cases, check, check_eq, check_in, json_lines, main, run, temp_dir, test

PMC = ["cycles", "instructions", "cache_misses"]
WAYS = [("event by event", ""), ("whole buffers", ",buffers")]


def emulated(how, *arguments, code=0):
    result = run_tool("etwatch_emulated", how, *arguments)
    check_eq(result.code, code, f"exit code ({result.err.strip()})")
    return result


def made(folder, kind="counters-ours"):
    path, truth = os.path.join(folder, "made.etl"), os.path.join(folder, "truth.json")
    make_etl(kind, path, "--events", 20000, "--truth", truth)
    with open(truth, encoding="utf-8") as file:
        return path, json.load(file)


def watched(how, *more):
    options = ("--hz", "100", "--duration", "0.5", "--json", "-q")
    return json_lines(emulated(how, "stat", "-a", "--threads", *options, *more).out)


def sums(objects, kind, key):
    found = {name: collections.Counter() for name in PMC}
    for o in objects:
        if o["type"] == kind:
            for name in PMC:
                found[name][o[key]] += o[name]
    return found


@cases(WAYS)
def live_counters_are_exact_for_every_thread(way):
    with temp_dir() as folder:
        path, truth = made(folder)
        objects = watched(f"counters{way},{path}", "--metrics", "cpu")
    check(set(PMC) <= set(objects[0]["available"]), f"available: {objects[0]['available']}")
    check(not set(PMC) & set(objects[0]["estimated"]), "estimated")
    for kind, key in (("sample", "pid"), ("thread", "tid")):
        got, want = sums(objects, kind, key), sums([{"type": kind, **t} for t in truth["threads"]], kind, key)
        for name in PMC:
            check_eq(+got[name], +want[name], f"{name} by {key}")


@test
def counters_that_are_not_selected_are_null_and_not_requested():
    with temp_dir() as folder:
        path, _ = made(folder)
        objects = watched(f"counters,{path}")
        some = watched(f"amd,{path}", "--metrics", "instructions")
    check_eq({o[name] for o in objects if o["type"] == "sample" for name in PMC}, {None}, "counters")
    check_eq(set(PMC) & set(objects[0]["available"]), set(), "available")
    # The session has three counters, and only one was requested: their meaning is unknown.
    check_eq({o[name] for o in some if o["type"] == "sample" for name in PMC}, {None}, "other counters")


@cases([
    ("all of them", "counters", {}),
    ("a processor of AMD", "amd", {"cache_misses": "no such counter"}),
    ("a virtual machine", "no-counters", dict.fromkeys(PMC, "as in most virtual machines")),
    ("an old Windows", "logger", dict.fromkeys(PMC, "lists no hardware counters (error 50)")),
    ("all in use", "busy", dict.fromkeys(PMC, "other programs may use the counters (error 170)")),
])
def doctor_reports_available_counters_and_reasons(how, lacks):
    metrics = {o["name"]: o["sources"]["etw"] for o in json_lines(emulated(how, "doctor", "--metrics", "--json").out)
               if o["type"] == "metric"}
    for name in PMC:
        if name in lacks:
            check_eq(metrics[name]["exactness"], "unavailable", name)
            check_in(lacks[name], metrics[name]["how"], name)
        else:
            check_eq(metrics[name]["exactness"], "exact", name)


@test
def refused_counters_do_not_affect_other_metrics():
    with temp_dir() as folder:
        path, truth = made(folder)
        objects = watched(f"busy,{path}", "--metrics", "cpu", "--kernel", "process,thread,cswitch,dispatcher,dpc,interrupt")
        samples = [o for o in objects if o["type"] == "sample"]
    check_eq({o[name] for o in samples for name in PMC}, {None}, "counters")
    check_eq(objects[0]["source"], "etw", "source")
    check_eq(sum(o["cpu_ns"] for o in samples), sum(t["cpu_ns"] - t["interrupt_ns"] for t in truth["threads"]), "CPU time")


@test
def losses_are_marked_and_add_nothing():
    with temp_dir() as folder:
        path, truth = made(folder)
        objects = watched(f"counters,loses,{path}", "--metrics", "cpu")
    samples = [o for o in objects if o["type"] == "sample"]
    check(objects[-1]["lost"] > 0 and any(not o["complete"] for o in samples), "nothing is marked")
    for name in PMC:
        got, want = sum(o[name] for o in samples), sum(t[name] for t in truth["threads"])
        check(0 < got < want, f"{name}: {got} of {want}")


@test
def a_recording_is_made_without_refused_counters_and_reports_them():
    with temp_dir() as folder:
        out = os.path.join(folder, "x.etl")
        result = emulated("amd", "record", "-o", out, "--metrics", ",".join(PMC), "--duration", "0.2")
    check_in("cache_misses is not recorded: Windows lists no such counter", result.err, "words")
    check("cycles is not" not in result.err and "instructions is not" not in result.err, f"more messages: {result.err}")


@cases([("early names", "counters"), ("late names", "counters-late")])
def a_recording_with_names_is_exact_with_every_command(kind):
    with temp_dir() as folder:
        path, truth = made(folder, kind)
        report = json_lines(run(["report", "--json", path]).out)
        table = run(["stat", path, "--json", "-q", "--metrics", "cycles"]).out
    want = sum(t["cycles"] for t in truth["threads"])
    check_eq(sum(o["cycles"] for o in report if o["type"] == "process" and o["pid"]), want, "report")
    check_eq(sum(o["cycles"] for o in json_lines(table) if o["type"] == "sample"), want, "stat")


main()
