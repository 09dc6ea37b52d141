# SPDX-License-Identifier: MIT
"""Checks the output of a guest against what its load measured of itself. Every function yields sentences: the
problems. Durations are not checked: time in an emulator has little meaning."""
import json

BOUNDS = {  # counter: the key of the load's own value, which is its lower limit
    "faults_minor": ("memory_bytes", 4096), "io_write_bytes": ("written_bytes", 1),
    "io_write_ops": ("writes", 1), "switches_voluntary": ("sleeps", 1),
}
TICK_NS = 10_000_000  # the longest tick that a kernel may have


class Step:
    """One command of the guest: its lines of output and its exit status."""

    def __init__(self, name):
        self.name = name
        self.data, self.out, self.err = [], [], []
        self.status = None

    def objects(self, kind=None):
        found = [json.loads(line) for line in self.data]
        return [one for one in found if kind is None or one["type"] == kind]


def parse(text):
    """{name: Step}, the spinner's pid, whether the guest ran to its end."""
    steps, spinner, ended, step = {}, None, False, None
    for line in text.split("\n"):
        word, _, rest = line.partition(" ")
        if word == "step":
            step = steps[rest] = Step(rest)
        elif word == "spinner":
            spinner = int(rest)
        elif word == "end":
            ended = True
        elif word == "status" and step is not None:
            step.status = int(rest)
        elif word in ("data", "out", "err") and step is not None:
            getattr(step, word).append(rest)
    return steps, spinner, ended


def check_whole(step, source):
    """The frame of every stream: meta first, stats last, the correct source, nothing lost."""
    if step.status != 0:
        yield f"exit status {step.status}: {' '.join(step.err[:1])}"
    kinds = [one["type"] for one in step.objects()]
    if not kinds or kinds[0] != "meta" or kinds[-1] != "stats":
        yield "the output does not begin with meta and end with stats"
        return
    meta, stats = step.objects()[0], step.objects()[-1]
    for one in (meta, stats):
        if one["source"] != source:
            yield f"{one['type']} has source {one['source']}, not {source}"
    for count in ("lost", "undecoded"):
        if stats[count] != 0:
            yield f"{stats[count]} {count}"
    incomplete = sum(1 for one in step.objects("sample") if not one["complete"])
    if incomplete and source == "ebpf":
        yield f"{incomplete} samples are not complete"


def check_fallback(step, reason):
    """One line that names the failure, the replacement and the fix."""
    words = [line for line in step.err if line.startswith("etwatch:")]
    if len(words) != 1 or "polling" not in words[0] or "fix:" not in words[0]:
        yield f"no single line with polling and the fix: {words}"
    elif reason not in words[0]:
        yield f"the line does not contain '{reason}': {words[0]}"


def check_cpu(step, truth, share, slack_ns):
    """CPU time in the exit object: the measured value plus a little, because exiting takes CPU time that neither
    the process nor its parent can measure."""
    for end in step.objects("exit"):
        low, high = truth["cpu_ns"] * (1 - share) - 10_000, truth["cpu_ns"] * (1 + share) + slack_ns
        if end["pid"] == truth["pid"] and (end["cpu_ns"] is None or not low <= end["cpu_ns"] <= high):
            yield f"pid {end['pid']}: cpu_ns {end['cpu_ns']}, measured {truth['cpu_ns']}"


def check_all_cpu(step, truth):
    """An emulated CPU may stop for a while in the middle of a switch while its clock goes on: a few children may be
    somewhat off, not many, and none by far."""
    yield from check_cpu(step, truth, 0.05, 20e6)
    off = [line for child in truth["children"] for line in check_cpu(step, child, 0.01, 10e6)]
    if len(off) > len(truth["children"]) // 6:
        yield from off
    else:
        yield from (line for child in truth["children"] for line in check_cpu(step, child, 0.5, 100e6))


def check_process(step, truth, is_child):
    """One process of the load: one start, one exit as its parent saw it, and samples that add up."""
    pid = truth["pid"]
    mine = [one for one in step.objects() if one.get("pid") == pid]
    starts = [one for one in mine if one["type"] == "start"]
    exits = [one for one in mine if one["type"] == "exit"]
    if len(starts) != 1 or len(exits) != 1:
        yield f"pid {pid}: {len(starts)} starts, {len(exits)} exits"
        return
    end = exits[0]
    if end["cpu_ns"] is None:
        yield f"pid {pid}: no cpu_ns"
        return
    added = sum(one["cpu_ns"] or 0 for one in mine if one["type"] == "sample")
    # The first process existed before watching began; of its children nothing may be missing.
    before = 1000 if is_child else end["cpu_ns"] * 0.02
    if not -1000 <= end["cpu_ns"] - added <= before:
        yield f"pid {pid}: samples add up to {added} ns, the exit has {end['cpu_ns']}"
    if is_child:
        for name, none in (("exit_code", -1), ("exit_signal", 0)):
            if truth[name] != none and end[name] != truth[name]:
                yield f"pid {pid}: {name} {end[name]}, its parent got {truth[name]}"


def check_totals(step, truth):
    """The load's own totals, as far as the kernel keeps them; the others must be null."""
    available = step.objects("meta")[0]["available"]
    for end in step.objects("exit"):
        if end["pid"] != truth["pid"]:
            continue
        for name, (key, unit) in BOUNDS.items():
            least = truth[key] // unit
            if name not in available:
                if end[name] is not None:
                    yield f"{name} is not available, yet {end[name]}"
            elif end[name] is None or not least <= end[name] <= least * 3 + 2000:
                yield f"{name} {end[name]}, the load measured {least}"
        peak = end["rss_peak_bytes"]
        if peak is None or not truth["memory_bytes"] <= peak <= 2 * truth["memory_bytes"]:
            yield f"rss_peak_bytes {peak}, the load touched {truth['memory_bytes']}"


def check_run(step, source):
    """All of `run`: every process of the load."""
    yield from check_whole(step, source)
    try:
        truth = json.loads(step.out[-1])
    except (IndexError, ValueError):
        yield f"the load did not report: {step.out} {step.err}"
        return
    if not step.objects():
        return
    if source == "poll":  # short children are missed, which is why polling is only the fallback
        exits = [one for one in step.objects("exit") if one["pid"] == truth["pid"]]
        if len(exits) != 1:
            yield f"{len(exits)} exits of the load"
        return
    yield from check_all_cpu(step, truth)
    yield from check_process(step, truth, False)
    for child in truth["children"]:
        yield from check_process(step, child, True)
    yield from check_totals(step, truth)
    if any(one["name"] != "load" for one in step.objects("exit")):
        yield f"other names than load: {sorted({one['name'] for one in step.objects('exit')})}"


def check_stat(step, source, spinner, only):
    """A spinner keeps one CPU busy: it must be reported so, and with a filter no other process."""
    yield from check_whole(step, source)
    began = [one["t_ns"] for one in step.objects("start") if one["pid"] == spinner]
    samples = [one for one in step.objects("sample") if one["pid"] == spinner and
               began and one["t_ns"] - one["dt_ns"] >= began[0] + one["dt_ns"]]
    if not samples:
        yield "no sample of the spinner"
        return
    if any(one["cpu_ns"] is None for one in samples):
        yield "a sample of the spinner has no cpu_ns"
    shares = [one["cpu_ns"] / one["dt_ns"] for one in samples if one["cpu_ns"] is not None]
    if not shares:
        return
    # The kernel updates a running thread's CPU time once per tick, which comes late in an emulated machine: the CPU
    # time at the start of watching is known only to a tick, and the rest is added when the thread next leaves the
    # CPU, however many intervals later.
    over_ns = [one["cpu_ns"] - one["dt_ns"] for one in samples if (one["cpu_ns"] or 0) > 1.01 * one["dt_ns"]]
    if source == "ebpf" and sum(over_ns) > TICK_NS:
        yield f"the spinner, one thread, used {max(shares):.3f} CPUs"
    if source == "ebpf" and sum(shares) / len(shares) < 0.5:
        yield f"the spinner used only {sum(shares) / len(shares):.3f} CPUs"
    others = {one["pid"] for one in step.objects("sample")} - {spinner}
    if only and others:
        yield f"samples of others: {sorted(others)}"


def check_events(step):
    kinds = [one["event"] for one in step.objects("event")]
    for kind in ("switch", "wakeup"):
        if kind not in kinds:
            yield f"no {kind} among {len(kinds)} events"


def check_doctor(step, works):
    lines = [line.split() for line in step.out if " source ebpf " in line]
    if len(lines) != 1:
        yield f"doctor has no line about the source ebpf: {step.out} {step.err}"
    elif (lines[0][0] == "ok") != works:
        yield f"doctor reports: {' '.join(lines[0])}"


def check_guest(text, source, reason):
    """All checks. source: the source that must have been selected; reason: what the message of a fallback must
    contain."""
    steps, spinner, ended = parse(text)
    filtered = {"pid", "cgroup", "name", "metrics", "least"}
    for name in ("doctor", "run", "run_1000hz", "all", "pid", "name", "uid", "cgroup", "metrics", "least", "events"):
        if name not in steps or steps[name].status is None:
            yield name, "did not finish"
            continue
        step = steps[name]
        if name == "doctor":
            problems = list(check_doctor(step, source == "ebpf"))
        elif name.startswith("run"):
            problems = list(check_run(step, source))
        elif source == "poll" and name in ("cgroup", "events"):
            continue  # limits of polling are tested elsewhere
        else:
            problems = list(check_stat(step, source, spinner, name in filtered))
            problems += check_events(step) if name == "events" else []
        if source == "poll" and name != "doctor":
            problems += check_fallback(step, reason)
        yield from ((name, problem) for problem in problems)
    if "no_btf" in steps:
        for problem in (*check_run(steps["no_btf"], "poll"),
                        *check_fallback(steps["no_btf"], "type information")):
            yield "no_btf", problem
    if not ended:
        yield "guest", "did not run to its end"
