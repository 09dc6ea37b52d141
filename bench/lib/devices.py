# SPDX-License-Identifier: MIT
"""devices: figures, energy and GPU time of an NVIDIA GPU against the driver's own and against CUDA events.

Needs an NVIDIA driver and a Python with PyTorch (ETWATCH_BENCH_PYTHON, else this one); no compiler, no network. About three
minutes. The load is bench/gpu_work.py.

- energy: one run of a load that changes each second; `stat` of etwatch, the driver's ring of power samples (20 ms), its
  energy counter and `nvidia-smi` at the same time, compared over exactly the same window. The counter is updated in steps,
  and it is the counter that etwatch makes up for: the step is a row, because it is the resolution of that comparison.
- duty: three processes with a kernel of 50, 30 and 10 % of each 20 ms share the GPU. `run --gpu-trace` against the sum of their
  CUDA events, and the estimate that NVML allows (`stat --gpu`) of the same seconds.
- loops: the time of a kernel alone and under `run --gpu-trace`, in turns.
- sampling: CPU time of `stat --hz 10` with and without `--gpu`, the difference of a long and a short run, so that the start of
  the driver's library drops out.
"""
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import time

from . import nvml
from .figures import Section
from .processes import ROOT, Missing

PYTHON = os.environ.get("ETWATCH_BENCH_PYTHON", sys.executable)
WORK = os.path.join(ROOT, "bench", "gpu_work.py")
DUTIES = (50, 30, 10)
LIBRARY = os.environ.get("ETWATCH_BENCH_NVML")  # for a check without a GPU: a fake driver library
WITH_LIBRARY = ["--nvml-library", LIBRARY] if LIBRARY else []
START_SECONDS = int(os.environ.get("ETWATCH_BENCH_START", "25"))  # for PyTorch and CUDA to load, three at a time


def work(mode, *arguments):
    return [PYTHON, WORK, mode, *(f"{value:.6f}" for value in arguments)]


def lines_of(text, key):
    """The objects of the lines that have this key."""
    found = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return [o for o in found if key in o]


def output_of(argv, timeout=120):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=timeout, check=False)
    if done.returncode != 0:
        raise Missing(f"{os.path.basename(argv[0])}: {done.stderr.strip()[-300:] or done.returncode}")
    return done.stdout


def objects_of(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


# ------------------------------------------------------------------------- energy

def start_smi(bench):
    """nvidia-smi to a file, with the momentary power; None: not installed."""
    smi = shutil.which("nvidia-smi")
    if smi is None:
        return None, None
    path = bench.file("smi.csv")
    with open(path, "w", encoding="utf-8") as out:
        return subprocess.Popen([smi, "-i", "0", "--query-gpu=timestamp,utilization.gpu,memory.used,power.draw.instant",
                                 "--format=csv,noheader,nounits", "-lms", "250"], stdout=out,
                                stderr=subprocess.DEVNULL), path


def smi_rows(path):
    """(Unix time, use, MiB, W)"""
    rows = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            cells = [cell.strip() for cell in line.split(",")]
            try:
                day, part = cells[0].rsplit(".", 1)
                t = time.mktime(time.strptime(day, "%Y/%m/%d %H:%M:%S")) + float("0." + part)
                rows.append((t, float(cells[1]), float(cells[2]), float(cells[3])))
            except (ValueError, IndexError):
                continue  # the last line may be cut
    return rows


def nearest(rows, t):
    return min(rows, key=lambda row: abs(row[0] - t)) if rows else None


def compare_figures(section, devices, rows, other):
    """Share of the readings of etwatch that equal a reading nearby; the driver has new values each 0.2 s."""
    if not rows:
        section.note(f"{other} gave no figures")
        return
    pairs = [(o, nearest(rows, o["t_ns"] / 1e9)) for o in devices]
    pairs = [(o, row) for o, row in pairs if abs(row[0] - o["t_ns"] / 1e9) < 0.3]
    memory = [abs(o["memory_used_bytes"] / 2**20 - row[2]) for o, row in pairs if o["memory_used_bytes"] is not None]
    equal = [any(o["util_percent"] == row[1] for row in rows if abs(row[0] - o["t_ns"] / 1e9) < 0.5)
             for o, _ in pairs if o["util_percent"] is not None]
    power = [statistics.mean(o["power_watts"] for o, _ in pairs if o["power_watts"] is not None),
             statistics.mean(row[3] for _, row in pairs)] if pairs else []
    if memory:
        section.add(f"memory: median difference from {other}", "MiB", [statistics.median(memory)], bar=2,
                    note=f"largest {max(memory):.0f} of {len(memory)} pairs")
    if equal:
        section.add(f"use: readings equal to one of {other} within 0.5 s", "%", [100 * sum(equal) / len(equal)], bar=95,
                    at_least=True, note=f"{len(equal)} readings")
    if power:
        section.add(f"power: mean against {other}", "%", [100 * abs(power[0] / power[1] - 1)], bar=5,
                    note=f"{power[0]:.1f} and {power[1]:.1f} W")


def compare_energy(section, devices, follower):
    known = [o for o in devices if o["energy_uj"] is not None and o["dt_ns"] > 0]
    if not known:
        raise Missing("etwatch reported no energy")
    begin, end = (known[0]["t_ns"] - known[0]["dt_ns"]) / 1e9, known[-1]["t_ns"] / 1e9
    joules = sum(o["energy_uj"] for o in known) / 1e6
    section.note(f"energy over {end - begin:.2f} s: etwatch {joules:.1f} J")
    if follower.power:
        ring = nvml.integral(follower.power, begin, end)
        section.add("energy: against the integral of the driver's power samples", "%", [100 * abs(joules / ring - 1)], bar=1,
                    note=f"{ring:.1f} J from {len(follower.power)} samples")
    steps = nvml.changes(follower.counter)
    if len(steps) < 3:
        section.note("the energy counter did not change: not compared")
        return
    gaps = [after[0] - before[0] for before, after in zip(steps, steps[1:])]
    edges = [nvml.value_at(steps, t) for t in (begin, end)]
    if None not in edges:
        counter = edges[1] - edges[0]
        step_percent = 100 * max(gaps) / (end - begin)
        section.add("energy: against the counter, between its updates interpolated", "%", [100 * abs(joules / counter - 1)],
                    bar=1, resolution=step_percent, note=f"{counter:.1f} J")
    section.add("energy: time between two updates of the counter", "ms", [1000 * gap for gap in gaps],
                note="read each 20 ms; a reading is that old at most")
    if follower.power:
        ring = nvml.integral(follower.power, steps[0][0], steps[-1][0])
        own = steps[-1][1] - steps[0][1]
        section.add("energy: the counter against the integral of the samples, from update to update", "%",
                    [100 * (own / ring - 1)], note=f"{own:.1f} and {ring:.1f} J: this part is the driver's own")


def run_energy(bench, section, driver):
    seconds = 8 if bench.quick else 22
    out = bench.file("energy.jsonl")
    load = subprocess.Popen(work("load", seconds + 30), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    smi, path = start_smi(bench)
    follower = nvml.Follower(driver)
    try:
        wait_for_use(driver)
        follower.start()
        time.sleep(0.5)
        output_of([bench.etwatch(), "stat", "-p", str(load.pid), "--gpu", "--energy", *WITH_LIBRARY, "--json", "-q",
                   "--source", bench.source, "--budget", "off", "--duration", str(seconds - 2), "-o", out])
        time.sleep(1)
    finally:
        if follower.is_alive():
            follower.stop()
        for child in (load, smi):
            if child is not None:
                child.kill()
                child.wait()
    devices = [o for o in objects_of(out) if o["type"] == "device" and o["kind"] == "gpu" and o["problem"] is None
               and o["index"] == 0]
    compare_energy(section, devices, follower)
    if path is not None:
        compare_figures(section, devices, smi_rows(path), "nvidia-smi")
    else:
        section.note("nvidia-smi is not installed: the driver's own figures are compared")
        compare_figures(section, devices, [(use[0], use[1], memory[1] / 2**20, power[1]) for use, memory, power in
                                           zip(follower.use, follower.memory, follower.instant)], "the driver")


def wait_for_use(driver):
    """Until the load has reached the GPU."""
    until = time.time() + 40
    while time.time() < until:
        if (driver.util_percent() or 0) >= 20:
            return
        time.sleep(0.1)
    raise Missing("the load did not reach the GPU: does this Python have PyTorch with CUDA?")


# --------------------------------------------------------------------------- duty

def run_duty(bench, section):
    seconds = 4 if bench.quick else 8
    trace, estimate = bench.file("duty.jsonl"), bench.file("estimate.jsonl")
    at = time.time() + START_SECONDS
    parts = " & ".join(" ".join(work("duty", percent, seconds, at)) for percent in DUTIES)
    common = [*WITH_LIBRARY, "--json", "-q", "--source", bench.source, "--budget", "off"]
    traced = subprocess.Popen([bench.etwatch(), "run", "--gpu-trace", *common, "-o", trace, "--", "sh", "-c",
                               parts + " & wait"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(max(0.0, at - time.time()))
    watcher = subprocess.Popen([bench.etwatch(), "stat", "-a", "--gpu", *common, "--duration", str(seconds), "-o", estimate],
                               stderr=subprocess.DEVNULL)
    text, errors = traced.communicate(timeout=120)
    watcher.wait(timeout=60)
    said = {o["pid"]: o for o in lines_of(text, "events_ms")}
    found = {o["pid"]: o for o in objects_of(trace) if o["type"] == "gpu_process"}
    guessed = {}
    for o in objects_of(estimate):
        if o["type"] == "sample" and o["gpu_ns"]:
            guessed[o["pid"]] = guessed.get(o["pid"], 0) + o["gpu_ns"] / 1e6
    if len(said) != len(DUTIES):
        raise Missing(f"{len(said)} of 3 duties ran: {errors.strip()[-300:]}")
    for percent, own in zip(DUTIES, sorted(said.values(), key=lambda o: -o["events_ms"])):
        got = found.get(own["pid"])
        if got is None:
            section.add(f"duty {percent} %: --gpu-trace against CUDA events", "%", [], bar=2, note="no trace of the process")
            continue
        ms = got["gpu_ns"] / 1e6
        nvml_text = f"{guessed[own['pid']]:.1f} ms" if own["pid"] in guessed else "nothing"
        section.add(f"duty {percent} %: --gpu-trace against CUDA events", "%", [100 * abs(ms / own["events_ms"] - 1)], bar=2,
                    note=f"{ms:.1f} and {own['events_ms']:.1f} ms, {got['state']}; of the duty alone {own['duty_ms']:.1f} ms, "
                         f"by NVML {nvml_text}" + (", began late" if own["late"] else ""))


# -------------------------------------------------------------------------- loops

def run_loops(bench, section):
    turns, seconds = (1, 1) if bench.quick else (bench.repeat or 3, 2)
    alone, traced, cost = [], [], []
    for _ in range(turns):
        for watched in random.sample((False, True), 2):
            argv = work("loops", seconds)
            if watched:
                argv = [bench.etwatch(), "run", "--gpu-trace", *WITH_LIBRARY, "-q", "--json", "--source", bench.source, "-o",
                        bench.file("loops.jsonl"), "--", *argv]
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            found = lines_of(output_of(argv), "product_us")
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            if not found:
                raise Missing("the loops gave no figures")
            (traced if watched else alone).append(found[0])
            cost.append((watched, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
            if watched:
                processes = [o for o in objects_of(bench.file("loops.jsonl")) if o["type"] == "gpu_process"]
                if not any(o["kernels"] for o in processes):
                    raise Missing("no kernel was traced, so the cost of tracing is not measured: "
                                  + (processes[0]["problem"] or "no records" if processes else "no CUDA process"))
                section.note(f"loops: {sum(o['kernels'] for o in processes)} kernels traced, "
                             f"{sum(o['lost'] for o in processes)} records lost")
    for key, name, bar in (("product_us", "4096x4096 bf16 products", 1), ("small_us", "10 us kernels", 5)):
        off = [statistics.median(found[key]) for found in alone]
        on = [statistics.median(found[key]) for found in traced]
        spread = 100 * (max(off) / min(off) - 1)
        base = section.add(f"{name}: alone", "us", off)
        section.add(f"{name}: under --gpu-trace", "us", on, ratio_to=base)
        section.add(f"{name}: cost of --gpu-trace", "%", [100 * (statistics.median(on) / statistics.median(off) - 1)], bar=bar,
                    resolution=spread, note=f"the runs alone differ by {spread:.2f} %")


# ----------------------------------------------------------------------- sampling

def cpu_seconds(argv):
    """CPU time of one run, by the kernel's account of exactly that child."""
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise Missing(f"etwatch ended with {child.returncode}")
    return usage.ru_utime + usage.ru_stime


def run_sampling(bench, section):
    short, long = (2, 6) if bench.quick else (4, 16)
    load = subprocess.Popen(work("load", 200), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    percent = {}
    try:
        wait_for_use(nvml.Driver(LIBRARY))
        for name, options in (("nothing", []), ("--gpu", ["--gpu", *WITH_LIBRARY]),
                              ("--gpu --energy", ["--gpu", "--energy", *WITH_LIBRARY])):
            used = [cpu_seconds([bench.etwatch(), "stat", "-p", str(load.pid), "--json", "-q", "--hz", "10", "--budget", "off",
                                 "--source", bench.source, "--duration", str(seconds), *options]) for seconds in (short, long)]
            percent[name] = 100 * (used[1] - used[0]) / (long - short)
    finally:
        load.kill()
        load.wait()
    for name in ("--gpu", "--gpu --energy"):
        section.add(f"ten readings a second: {name}", "% of a core", [percent[name] - percent["nothing"]], bar=0.2,
                    note=f"{percent[name]:.3f} less {percent['nothing']:.3f} without devices")


def run(bench):
    driver = nvml.Driver(LIBRARY)
    section = Section("devices", "an NVIDIA GPU: figures, energy, GPU time, cost")
    if subprocess.run([PYTHON, "-c", "import torch; torch.zeros(1, device='cuda')"], stderr=subprocess.DEVNULL,
                      check=False).returncode != 0:
        raise Missing(f"{PYTHON} has no PyTorch with CUDA (ETWATCH_BENCH_PYTHON names another one)")
    parts = {"duty": lambda: run_duty(bench, section), "energy": lambda: run_energy(bench, section, driver),
             "loops": lambda: run_loops(bench, section), "sampling": lambda: run_sampling(bench, section)}
    for name, part in parts.items():
        if not bench.wanted(name):
            continue
        try:
            part()
        except (Missing, subprocess.TimeoutExpired) as error:  # the other parts are worth their time
            section.add(name, "", [], bar=0, note=f"not measured: {error}")
    return section
