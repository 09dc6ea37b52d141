# SPDX-License-Identifier: MIT
"""Devices through the program: energy meters and GPUs from injected trees and a fake driver."""
import os
import re
import signal
import subprocess
import sys
import time

from commandkit import linux_only
import toolkit
from lib import BUILD, ETWATCH, check, check_eq, check_in, json_lines, main, run, skip, start, temp_dir, test

RANGE = 262143328850
METERS = {"intel-rapl:0": "package-0", "intel-rapl:0:0": "core", "intel-rapl:0:1": "dram", "intel-rapl:1": "psys",
          "intel-rapl-mmio:0": "package-0"}
# Uses CPU time before and after it sets the meters, so that some of it is in the same interval.
COMMAND = """if True:
    import sys, time
    def work(seconds):
        end = time.process_time() + seconds
        while time.process_time() < end: pass
    work(0.2)
    for pair in sys.argv[1:]:
        path, value = pair.split("=")
        with open(path, "r+") as file: file.write(value + "\\n")
    work(0.3)
"""


def make_powercap(root, meters=None, energy=1000):
    """/sys/class/powercap as Linux has it on an Intel machine (Documentation/power/powercap)."""
    for entry, name in (meters or METERS).items():
        folder = os.path.join(root, "class", "powercap", entry)
        os.makedirs(folder)
        for file, value in (("name", name), ("energy_uj", energy), ("max_energy_range_uj", RANGE)):
            with open(os.path.join(folder, file), "w", encoding="utf-8") as out:
                out.write(f"{value}\n")


def energy_file(root, entry):
    return os.path.join(root, "class", "powercap", entry, "energy_uj")


def run_json(root, *pairs, options=("--energy",)):
    done = run(["run", "--json", "--source", "poll", *options, "--sys-root", root, "--", sys.executable, "-c", COMMAND,
                *pairs])
    check_eq(done.code, 0, done.err)
    return done, json_lines(done.out)


def meter(objects, name, key):
    return sum(o[key] or 0 for o in objects if o["type"] == "device" and o["id"] == name)


@test
def the_parts_of_a_meter_add_up_to_its_energy():
    linux_only("RAPL")
    with temp_dir() as root:
        make_powercap(root)
        _, objects = run_json(root, f"{energy_file(root, 'intel-rapl:0')}=5001000")
        check_eq(meter(objects, "package-0", "energy_uj"), 5000000, "energy")
        parts = [meter(objects, "package-0", f"{part}_energy_uj") for part in ("idle", "watched", "other")]
        check_eq(sum(parts), 5000000, "sum of the parts")
        check(parts[1] > 0, f"nothing attributed: {parts}")
        processes = sum(o["energy_uj"] or 0 for o in objects if o["type"] == "sample")
        check_eq(processes, parts[1], "energy of the samples")
        check_in("energy_uj", objects[0]["estimated"])
        check_in("energy_uj", objects[0]["available"])


@test
def a_package_contains_its_cores_and_the_board_contains_both():
    linux_only("RAPL")
    with temp_dir() as root:
        make_powercap(root)
        _, objects = run_json(root, *(f"{energy_file(root, entry)}=2001000" for entry in METERS))
        names = {o["id"] for o in objects if o["type"] == "device"}
        check_eq(names, {"package-0", "package-0/core", "package-0/dram", "psys"})
        for name, attributed in (("package-0", True), ("package-0/dram", True), ("package-0/core", False),
                                 ("psys", False)):
            check_eq(meter(objects, name, "energy_uj"), 2000000, name)
            known = any(o["watched_energy_uj"] is not None for o in objects
                        if o["type"] == "device" and o["id"] == name)
            check_eq(known, attributed, f"{name} is attributed")
        total = sum(o["energy_uj"] or 0 for o in objects if o["type"] == "sample")
        check(0 < total <= 4000000, f"counted twice: {total}")


@test
def a_counter_that_wraps_is_continued():
    linux_only("RAPL")
    with temp_dir() as root:
        make_powercap(root, {"intel-rapl:0": "package-0"}, energy=RANGE - 1000)
        _, objects = run_json(root, f"{energy_file(root, 'intel-rapl:0')}=000000004000")
        check_eq(meter(objects, "package-0", "energy_uj"), 5000)


@test
def a_meter_that_cannot_be_read_is_null_and_one_line():
    linux_only("RAPL")
    with temp_dir() as root:
        make_powercap(root, {"intel-rapl:0": "package-0"})
        os.remove(energy_file(root, "intel-rapl:0"))
        os.mkdir(energy_file(root, "intel-rapl:0"))
        done, objects = run_json(root)
        values = [o for o in objects if o["type"] == "device" and o["energy_uj"] is not None]
        check_eq(values, [])
        lines = [line for line in done.err.splitlines() if "energy (powercap)" in line]
        check_eq(len(lines), 1, done.err)
        check_in("package-0", lines[0])


@test
def a_machine_without_devices_has_null_and_one_line_each():
    linux_only("its child is a Python of Linux")
    with temp_dir() as root:
        done, objects = run_json(root, options=("--gpu", "--npu", "--energy", "--nvml-library", "no-such-library"))
        for o in objects:
            if o["type"] in ("sample", "exit"):
                check_eq([o[name] for name in ("gpu_ns", "gpu_percent", "gpu_memory_bytes", "npu_ns", "npu_percent",
                                               "energy_uj")], [None] * 6, "values")
        lines = re.findall(r"^etwatch: (gpu|npu|energy) \(", done.err, re.M)
        check_eq(sorted(lines), ["energy", "gpu", "npu"], done.err)


# ------------------------------------------------------------------------------ NVML

# Announces itself to the fake driver, then works.
GPU_COMMAND = """if True:
    import os, sys, time
    with open(sys.argv[1] + ".new", "w") as file: file.write(sys.argv[2].replace("PID", str(os.getpid())))
    os.replace(sys.argv[1] + ".new", sys.argv[1])
    end = time.time() + float(sys.argv[3])
    while time.time() < end: time.sleep(0.01)
"""


def run_gpu(root, text, options=("--gpu",), seconds=1.5, before="util 0\n"):
    """(standard error, objects) of a command; text describes the fake driver."""
    linux_only("a shared library")
    library = os.path.join(BUILD, "tests", "libfakenvml.so")
    if not os.path.exists(library):
        skip("the fake driver was not built")
    control = os.path.join(root, "control")
    with open(control, "w", encoding="utf-8") as file:
        file.write(before)
    done = run(["run", "--json", "--source", "poll", *options, "--sys-root", root, "--nvml-library", library, "--",
                sys.executable, "-c", GPU_COMMAND, control, text, str(seconds)],
               env={**os.environ, "FAKE_NVML": control})
    check_eq(done.code, 0, done.err)
    lines = [line for line in done.err.splitlines() if "(nvml)" in line]
    return lines, json_lines(done.out)


def gpus(objects):
    return [o for o in objects if o["type"] == "device" and o["driver"] == "nvml" and o["problem"] is None]


def check_cpu(objects):
    """The samples of processes are complete and have CPU time, whatever the driver does."""
    samples = [o for o in objects if o["type"] == "sample"]
    check(len(samples) >= 5, f"only {len(samples)} samples")
    check(all(o["cpu_ns"] is not None for o in samples), "CPU time is missing")


@test
def a_gpu_has_figures_and_its_processes_have_memory_and_an_estimated_time():
    with temp_dir() as root:
        lines, objects = run_gpu(root, "util 40\nwatts 200\npid PID 512 30\n", ("--gpu", "--energy"), 2.5)
        check_eq(lines, [])
        last = gpus(objects)[-1]
        check_eq((last["name"], last["id"], last["util_percent"], last["memory_total_bytes"], last["power_watts"],
                  last["temperature_celsius"], last["clock_mhz"], last["throttle_reasons"]),
                 ("NVIDIA Fake 0", "00000000:41:00.0", 40, 141 << 30, 200, 47, 1980, 4))
        for o in gpus(objects):
            if o["watched_energy_uj"] is not None:
                check_eq(o["idle_energy_uj"] + o["watched_energy_uj"] + o["other_energy_uj"], o["energy_uj"], "parts")
        known = [o for o in objects if o["type"] == "sample" and o["gpu_ns"]]
        check(known, "no sample has GPU time")
        check(all(abs(o["gpu_percent"] - o["gpu_ns"] * 100 / o["dt_ns"]) < 0.01 for o in known), "gpu_percent")
        check(any(o["gpu_memory_bytes"] == 512 << 20 for o in objects if o["type"] == "sample"), "memory")
        ends = [o for o in objects if o["type"] == "exit" and o["gpu_ns"]]
        check_eq(len(ends), 1, "processes with GPU time")
        check_eq(sum(o["gpu_ns"] for o in known) <= ends[0]["gpu_ns"], True, "total")
        check_eq({"gpu_ns", "gpu_percent", "energy_uj"} - set(objects[0]["estimated"]), set(), "estimates")


@test
def the_table_has_columns_and_a_line_for_devices_only_where_they_are_read():
    with temp_dir() as root:
        run_gpu(root, "util 0\n", seconds=0.1)  # skips without the fake driver
        control = os.path.join(root, "control")
        child = start(["-c", "while True: pass"], program=sys.executable)
        try:
            write(control, f"util 40\nwatts 200\npid {child.pid} 512 30\n")
            done = run(["stat", "-p", str(child.pid), "--source", "poll", "--duration", "2", "--gpu", "--energy", "--sys-root", root,
                        "--nvml-library", os.path.join(BUILD, "tests", "libfakenvml.so")],
                       env={**os.environ, "FAKE_NVML": control})
            none = run(["stat", "-p", str(child.pid), "--source", "poll", "--duration", "1", "--gpu", "--energy", "--sys-root", root,
                        "--nvml-library", "none"])
        finally:
            child.kill()
            child.wait()
        check_eq((done.code, none.code), (0, 0), done.err + none.err)
        check_in("~GPU   GPU-MEM   ~ENERGY", done.out)
        check(re.search(r"^ *%d .* \S+ m?s +512 MB +\d+\.\d J$" % child.pid, done.out, re.M), done.out)
        check(re.search(r"^gpu 00000000:41:00\.0 NVIDIA Fake 0: 40 %, 2\.00 GB of 141 GB, 47 C, 1980 MHz, 200\.0 W, \d+\.\d J$",
                        done.out, re.M), done.out)
        check("GPU" not in none.out and "gpu" not in none.out, none.out)


@test
def energy_that_cannot_be_attributed_is_unknown_and_not_zero():
    with temp_dir() as root:
        _, objects = run_gpu(root, "util 40\nuse 3\npid PID 512 30\npid 1 100 5\n", ("--gpu", "--energy"), 2)
        known = [o for o in gpus(objects) if o["energy_uj"]]
        check(known, "the GPU has no energy")
        late = known[len(known) // 2:]
        check_eq([o[name] for o in late for name in ("watched_energy_uj", "other_energy_uj")], [None] * 2 * len(late),
                 "parts of the energy")
        ends = [o["energy_uj"] for o in objects if o["type"] == "exit"]
        check_eq([o for o in ends if o is not None], [], "energy of the processes")


@test
def a_driver_that_blocks_for_seconds_delays_no_cpu_sample():
    with temp_dir() as root:
        lines, objects = run_gpu(root, "block 5000\npid PID 512 30\n", seconds=2.5)
        check_cpu(objects)
        check_eq(len(lines), 1, "lines")
        check_in("has not answered", lines[0])
        stuck = next(o for o in objects if o["type"] == "device" and o["problem"])
        late = [o for o in objects if o["type"] == "sample" and o["t_ns"] > stuck["t_ns"]]
        check(late, "no sample while the driver hung")
        check_eq([o["gpu_ns"] for o in late], [None] * len(late), "values while the driver hangs")


@test
def a_driver_that_returns_garbage_gives_unknown_values():
    with temp_dir() as root:
        lines, objects = run_gpu(root, "util 0\n", before="util 0\n", seconds=0.6)
        check_eq(lines, [])
        lines, objects = run_gpu(root, "garbage 1\npid PID 512 30\n", seconds=3)
        check_cpu(objects)
        check_eq(len(lines), 1, "lines")
        check_in("4000000000 GPUs", lines[0])
        for o in gpus(objects)[-3:]:
            check_eq([o[name] for name in ("util_percent", "memory_used_bytes", "temperature_celsius", "clock_mhz",
                                           "power_watts", "throttle_reasons")], [None] * 6, "garbage")
        check_eq({o["gpu_ns"] for o in objects if o["type"] == "sample"}, {None}, "garbage became GPU time")


@test
def a_changed_number_of_gpus_is_one_line():
    with temp_dir() as root:
        lines, objects = run_gpu(root, "count 3\n", seconds=3)
        check_cpu(objects)
        check_eq(len(lines), 1, "lines")
        check_in("from 1 to 3", lines[0])


@test
def a_lost_gpu_is_unknown_and_one_line():
    with temp_dir() as root:
        lines, objects = run_gpu(root, "lost 1\n", seconds=1.5)
        check_cpu(objects)
        check_eq(len(lines), 1, "lines")
        check_in("GPU is lost", lines[0])
        check_eq((gpus(objects)[-1]["power_watts"], gpus(objects)[-1]["memory_used_bytes"]), (None, None))


@test
def a_driver_that_is_not_loaded_is_one_line():
    with temp_dir() as root:
        lines, objects = run_gpu(root, "init 9\n", before="init 9\n", seconds=2)
        check_cpu(objects)
        check_eq(len(lines), 1, "lines")
        check_in("does not start: Driver Not Loaded", lines[0])


@test
def instances_of_a_gpu_are_devices_and_list_its_processes_once():
    with temp_dir() as root:
        lines, objects = run_gpu(root, "mig 2\npid PID 100 5\n", before="mig 2\n", seconds=2)
        check_eq(lines, [])
        check_eq({o["id"] for o in gpus(objects)},
                 {"00000000:41:00.0", "00000000:41:00.0/mig0", "00000000:41:00.0/mig1"})
        memory = {o["gpu_memory_bytes"] for o in objects if o["type"] == "sample"} - {None}
        check_eq(memory, {100 << 20}, "memory is counted once")


# --------------------------------------------------------------------- DRM and NPUs

AMD = """pos:	0
drm-driver:	amdgpu
drm-client-id:	{client}
drm-pdev:	0000:03:00.0
drm-total-vram:	4096 KiB
drm-resident-vram:	2048 KiB
drm-resident-gtt:	1 MiB
drm-memory-vram:	2048 KiB
drm-engine-gfx:	{gfx} ns
drm-engine-compute:	{compute} ns
drm-engine-capacity-gfx:	2
"""
XE = """drm-driver:	xe
drm-client-id:	{client}
drm-pdev:	0000:03:00.0
drm-cycles-rcs:	{gfx}
drm-total-cycles-rcs:	{compute}
"""
XDNA = """drm-driver:	amdxdna_accel_driver
drm-client-id:	{client}
drm-pdev:	0000:c4:00.1
drm-engine-npu-amdxdna:	{gfx} ns
"""


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def make_drm(root, fdinfo, copies=1, node="/dev/dri/renderD128"):
    """/sys of an AMD GPU (Documentation/gpu/amdgpu/driver-misc, hwmon) and /proc of two processes that use it."""
    linux_only("DRM")
    device = os.path.join(root, "sys", "bus", "pci", "devices", "0000:03:00.0")
    for name, value in (("gpu_busy_percent", 37), ("mem_info_vram_used", 1 << 30), ("mem_info_vram_total", 8 << 30),
                        ("hwmon/hwmon3/temp1_input", 51000), ("hwmon/hwmon3/power1_average", 42000000),
                        ("hwmon/hwmon3/freq1_input", 1500000000)):
        write(os.path.join(device, name), f"{value}\n")
    os.makedirs(os.path.join(root, "drivers", "amdgpu"))
    os.symlink(os.path.join(root, "drivers", "amdgpu"), os.path.join(device, "driver"))
    card = os.path.join(root, "sys", "class", "drm", "card0")
    os.makedirs(card)
    os.symlink(device, os.path.join(card, "device"))
    proc = os.path.join(root, "proc")
    for pid, name in ((100, "render"), (200, "other")):
        write(os.path.join(proc, str(pid), "stat"), f"{pid} ({name}) S 1 {pid} {pid} 0 -1 4194304 10 0 0 0 5 5 0 0 20 0 1 0 "
                                                    "100 1000000 100 18446744073709551615" + " 0" * 27 + "\n")
        os.makedirs(os.path.join(proc, str(pid), "fd"))
        for fd in range(3, 3 + copies):
            os.symlink(node, os.path.join(proc, str(pid), "fd", str(fd)))
            write(os.path.join(proc, str(pid), "fdinfo", str(fd)), fdinfo.format(client=pid, gfx=1000, compute=5000))
    return proc, os.path.join(root, "sys")


def set_fdinfo(proc, pid, copies, text):
    for fd in range(3, 3 + copies):
        with open(os.path.join(proc, str(pid), "fdinfo", str(fd)), "r+", encoding="utf-8") as file:
            file.write(text)


def watch(proc, sys_root, options, change):
    """(standard error, objects) of a recorded tree that changes once while it is watched. Ends when each device was read three times
    after the change, however long that takes on a busy machine, but not before every sensor had its turn."""
    end = time.monotonic() + (3.5 if "--npu" in options or proc == "/proc" else 2)
    child = start(["stat", "-a", "--json", "--source", "poll", "--duration", "50", *options, "--proc-root", proc,
                   "--sys-root", sys_root, "--nvml-library", "none"])
    objects, readings, changed_ns, ended = [], {}, 0, False
    for line in child.stdout:
        objects += json_lines(line.decode())
        device = objects[-1]
        if device["type"] != "device" or device["problem"] is not None:
            continue
        readings[device["id"]] = readings.get(device["id"], 0) + (device["t_ns"] > changed_ns)
        if change is not None and device["dt_ns"] > 0:
            change()
            change, changed_ns, readings = None, time.time_ns(), dict.fromkeys(readings, 0)
        if not ended and change is None and min(readings.values()) >= 3 and time.monotonic() > end:
            child.send_signal(signal.SIGTERM)
            ended = True
    words = child.stderr.read().decode()
    check(ended, f"not enough readings in 50 s: {readings} {words}")
    check_eq(child.wait(), 128 + signal.SIGTERM, f"exit status: {words}")
    return words, objects


def objects_of(*arguments):
    return watch(*arguments)[1]


def devices_of(*arguments):
    return [o for o in objects_of(*arguments) if o["type"] == "device" and o["problem"] is None]


@test
def engine_time_and_figures_of_a_drm_device_are_read():
    with temp_dir() as root:
        proc, sys_root = make_drm(root, AMD)
        objects = objects_of(proc, sys_root, ["--gpu"], lambda: set_fdinfo(
            proc, 100, 1, AMD.format(client=100, gfx=3001000, compute=2005000)))
        used = [o for o in objects if o["type"] == "sample" and o["gpu_ns"]]
        check_eq(({o["pid"] for o in used}, sum(o["gpu_ns"] for o in used), {o["gpu_memory_bytes"] for o in used}),
                 ({100}, 5000000, {3 << 20}), "the process")
        check("gpu_ns" not in objects[0]["estimated"], "exact time is marked as an estimate")
        got = [o for o in objects if o["type"] == "device" and o["problem"] is None]
        check_eq(sum(o["busy_ns"] or 0 for o in got), 5000000, "busy time")
        last = got[-1]
        check_eq([last[name] for name in ("driver", "id", "util_percent", "memory_used_bytes", "memory_total_bytes",
                                          "temperature_celsius", "power_watts", "clock_mhz", "processes")],
                 ["amdgpu", "0000:03:00.0", 37, 1 << 30, 8 << 30, 51, 42, 1500, 2])


def device_file(root, name):
    return os.path.join(root, "sys", "bus", "pci", "devices", "0000:03:00.0", name)


@test
def energy_alone_reads_the_counter_of_a_drm_device_and_shares_it():
    with temp_dir() as root:
        proc, sys_root = make_drm(root, AMD)
        counter = device_file(root, "hwmon/hwmon3/energy1_input")
        write(counter, "1000000\n")
        write(device_file(root, "gpu_busy_percent"), "100\n")

        def work():
            set_fdinfo(proc, 100, 1, AMD.format(client=100, gfx=3001000, compute=5000))
            set_fdinfo(proc, 200, 1, AMD.format(client=200, gfx=1001000, compute=5000))
            write(counter, "9000000\n")
        objects = objects_of(proc, sys_root, ["--energy"], work)
        got = [o for o in objects if o["type"] == "device" and o["driver"] == "amdgpu"]
        check_eq(sum(o["energy_uj"] or 0 for o in got), 8000000, "energy of the device")
        check("energy_uj" not in got[-1]["estimated"], "a counter is marked as an estimate")
        parts = [sum(o[f"{part}_energy_uj"] or 0 for o in got) for part in ("idle", "watched", "other")]
        check_eq((sum(parts), parts[2]), (8000000, 0), "the parts")
        samples = [o for o in objects if o["type"] == "sample"]
        by_pid = [sum(o["energy_uj"] or 0 for o in samples if o["pid"] == pid) for pid in (100, 200)]
        # An interval that was delivered before the reading arrived stays unknown: on a busy machine some are.
        check(0 <= sum(by_pid) <= parts[1] and parts[1] > 0, f"energy of the samples: {by_pid} of {parts[1]}")
        check(abs(by_pid[0] - 3 * by_pid[1]) <= 12, f"shared as 3 to 1: {by_pid}")
        check_in("energy_uj", objects[0]["estimated"])


@test
def the_energy_of_a_gpu_without_a_counter_is_an_estimate_from_its_power():
    with temp_dir() as root:
        proc, sys_root = make_drm(root, AMD)
        got = devices_of(proc, sys_root, ["--gpu", "--energy"], None)
        later = [o for o in got if o["driver"] == "amdgpu" and o["dt_ns"] > 0]
        check(later, "no later reading")
        for o in later:
            check(abs(o["energy_uj"] - 42 * o["dt_ns"] / 1000) <= 1, f"{o['energy_uj']} uJ in {o['dt_ns']} ns")
            check_in("energy_uj", o["estimated"])


@test
def a_card_without_energy_is_no_energy_meter():
    with temp_dir() as root:
        proc, sys_root = make_drm(root, AMD)
        os.remove(device_file(root, "hwmon/hwmon3/power1_average"))
        done = run(["stat", "-a", "--json", "--source", "poll", "--duration", "0.5", "--energy", "--proc-root", proc,
                    "--sys-root", sys_root, "--nvml-library", "none"])
        check_eq(done.code, 0, done.err)
        check_eq(len(re.findall(r"^etwatch: energy \(", done.err, re.M)), 1, done.err)
        objects = json_lines(done.out)
        check_eq({o["problem"] is None for o in objects if o["type"] == "device"} - {False}, set(), "devices")
        check("energy_uj" not in objects[0]["available"], "energy_uj is available")


@test
def the_energy_of_processes_is_unknown_if_a_process_may_not_be_read():
    with temp_dir() as root:
        proc, sys_root = make_drm(root, AMD)
        os.remove(os.path.join(proc, "200", "fd", "3"))
        os.rmdir(os.path.join(proc, "200", "fd"))
        words, objects = watch(proc, sys_root, ["--gpu", "--energy"], None)
        check_eq(len([line for line in words.splitlines() if "CAP_SYS_PTRACE" in line]), 1, words)
        got = [o for o in objects if o["type"] == "device" and o["driver"] == "amdgpu"]
        check(any(o["energy_uj"] for o in got), "no energy")
        check_eq({o["watched_energy_uj"] for o in got}, {None}, "watched energy")


V3D = """drm-driver:	v3d
drm-client-id:	{client}
drm-engine-render:	{gfx} ns
"""


@test
def a_device_without_a_pci_address_is_one_device():
    with temp_dir() as root:
        proc, sys_root = make_drm(root, V3D)
        card = os.path.join(sys_root, "class", "drm", "card0")
        os.remove(os.path.join(card, "device"))
        device = os.path.join(sys_root, "devices", "platform", "fec00000.v3d")
        os.makedirs(device)
        os.makedirs(os.path.join(root, "drivers", "v3d"))
        os.symlink(os.path.join(root, "drivers", "v3d"), os.path.join(device, "driver"))
        os.symlink(device, os.path.join(card, "device"))
        got = devices_of(proc, sys_root, ["--gpu"], lambda: set_fdinfo(proc, 100, 1, V3D.format(client=100, gfx=701000)))
        check_eq({(o["driver"], o["id"], o["processes"]) for o in got}, {("v3d", "fec00000.v3d", 2)}, "devices")
        check_eq(sum(o["busy_ns"] or 0 for o in got), 700000, "busy time")


@test
def an_intel_gpu_has_its_clock():
    with temp_dir() as root:
        proc, sys_root = make_drm(root, XE)
        os.remove(device_file(root, "hwmon/hwmon3/freq1_input"))
        write(device_file(root, "tile0/gt0/freq0/act_freq"), "1300\n")
        got = devices_of(proc, sys_root, ["--gpu"], None)
        check_eq({o["clock_mhz"] for o in got}, {1300}, "xe")
        write(os.path.join(sys_root, "class", "drm", "card0", "gt_act_freq_mhz"), "1100\n")
        os.remove(device_file(root, "tile0/gt0/freq0/act_freq"))
        got = devices_of(proc, sys_root, ["--gpu"], None)
        check_eq({o["clock_mhz"] for o in got}, {1100}, "i915")


@test
def a_client_with_several_files_counts_once():
    with temp_dir() as root:
        proc, sys_root = make_drm(root, AMD, copies=3)
        got = devices_of(proc, sys_root, ["--gpu"], lambda: set_fdinfo(
            proc, 100, 3, AMD.format(client=100, gfx=1001000, compute=5000)))
        check_eq(sum(o["busy_ns"] or 0 for o in got), 1000000, "busy time")


@test
def a_counter_that_goes_backwards_counts_nothing():
    with temp_dir() as root:
        proc, sys_root = make_drm(root, AMD)
        got = devices_of(proc, sys_root, ["--gpu"], lambda: set_fdinfo(
            proc, 100, 1, AMD.format(client=100, gfx=7, compute=5000)))
        check_eq(sum(o["busy_ns"] or 0 for o in got), 0, "busy time")


@test
def cycles_of_the_xe_driver_become_time():
    with temp_dir() as root:
        proc, sys_root = make_drm(root, XE)
        got = devices_of(proc, sys_root, ["--gpu"], lambda: set_fdinfo(
            proc, 100, 1, XE.format(client=100, gfx=1000 + 50, compute=5000 + 100)))
        used = [o for o in got if o["busy_ns"]]
        check_eq(len(used), 1, "readings with use")
        check(abs(used[0]["busy_ns"] - used[0]["dt_ns"] / 2) < 1000, f"{used[0]['busy_ns']} of {used[0]['dt_ns']}")


@test
def an_amd_npu_has_time_of_its_own():
    with temp_dir() as root:
        proc, sys_root = make_drm(root, XDNA, node="/dev/accel/accel0")
        got = devices_of(proc, sys_root, ["--npu"], lambda: set_fdinfo(
            proc, 100, 1, XDNA.format(client=100, gfx=501000, compute=0)))
        check_eq({o["kind"] for o in got}, {"npu"})
        check_eq(sum(o["busy_ns"] or 0 for o in got), 500000, "busy time")


@test
def every_device_of_the_class_accel_is_an_npu_and_no_gpu():
    """Qualcomm's qaic has no fdinfo (Documentation/accel/qaic); rocket is Rockchip's."""
    with temp_dir() as root:
        proc, sys_root = make_drm(root, XDNA.replace("amdxdna_accel_driver", "rocket"), node="/dev/accel/accel1")
        device = os.path.join(sys_root, "bus", "pci", "devices", "0000:82:00.0")
        os.makedirs(device)
        os.makedirs(os.path.join(root, "drivers", "qaic"))
        os.symlink(os.path.join(root, "drivers", "qaic"), os.path.join(device, "driver"))
        card = os.path.join(sys_root, "class", "accel", "accel0")
        os.makedirs(card)
        os.symlink(device, os.path.join(card, "device"))
        got = devices_of(proc, sys_root, ["--gpu", "--npu"], lambda: set_fdinfo(
            proc, 100, 1, XDNA.replace("amdxdna_accel_driver", "rocket").format(client=100, gfx=501000, compute=0)))
        check_eq({(o["kind"], o["driver"], o["id"]) for o in got},
                 {("gpu", "amdgpu", "0000:03:00.0"), ("npu", "qaic", "0000:82:00.0"), ("npu", "rocket", "0000:c4:00.1")})
        check_eq({(o["busy_ns"], o["processes"]) for o in got if o["driver"] == "qaic"}, {(None, None)}, "without fdinfo")
        check_eq(sum(o["busy_ns"] or 0 for o in got), 500000, "busy time")


@test
def an_intel_npu_has_busy_time_and_use_and_is_read_at_most_once_a_second():
    linux_only("sysfs")
    with temp_dir() as root:
        busy = os.path.join(root, "bus", "pci", "drivers", "intel_vpu", "0000:00:0b.0", "npu_busy_time_us")
        write(busy, "1000000\n")
        write(os.path.join(os.path.dirname(busy), "npu_memory_utilization"), "65536\n")
        objects = objects_of("/proc", root, ["--npu"], lambda: write(busy, "1200000\n"))
        got = [o for o in objects if o["type"] == "device" and o["problem"] is None]
        # All but the first are a second apart, except that each may be late: n readings take n - 2 seconds or more, less that.
        seconds = (got[-1]["t_ns"] - got[0]["t_ns"]) / 1e9
        check(len(got) >= 3 and seconds > len(got) - 2.5, f"{len(got)} readings in {seconds} s")
        check_eq((got[0]["busy_ns"], got[-1]["id"], got[-1]["memory_used_bytes"]), (None, "0000:00:0b.0", 65536))
        used = [o for o in got if o["busy_ns"]]
        check_eq([o["busy_ns"] for o in used], [200000000], "busy time")
        check(abs(used[0]["util_percent"] - 100 * used[0]["busy_ns"] / used[0]["dt_ns"]) < 0.01, str(used))


@test
def a_battery_has_power_and_estimated_energy_only_while_it_is_discharged():
    linux_only("power_supply")
    with temp_dir() as root:
        folder = os.path.join(root, "class", "power_supply", "BAT0")
        for name, value in (("type", "Battery"), ("status", "Discharging"), ("current_now", 2000000),
                            ("voltage_now", 11500000)):
            write(os.path.join(folder, name), f"{value}\n")
        write(os.path.join(root, "class", "power_supply", "mouse", "type"), "Battery\n")
        write(os.path.join(root, "class", "power_supply", "mouse", "scope"), "Device\n")
        write(os.path.join(root, "class", "power_supply", "AC", "type"), "Mains\n")
        objects = objects_of("/proc", root, ["--energy"], None)
        got = [o for o in objects if o["type"] == "device" and o["problem"] is None]
        check_eq({(o["driver"], o["id"], o["power_watts"]) for o in got}, {("power_supply", "battery/BAT0", 23)}, "power")
        later = [o for o in got if o["dt_ns"] > 0]
        check(later, "no later reading")
        for o in later:
            check(abs(o["energy_uj"] - 23 * o["dt_ns"] / 1000) <= 1, str(o))
            check_eq((o["estimated"], o["watched_energy_uj"]), (["energy_uj"], None), "attribution")
        write(os.path.join(folder, "status"), "Charging\n")
        got = [o for o in objects_of("/proc", root, ["--energy"], None) if o["type"] == "device" and o["problem"] is None]
        check_eq({(o["power_watts"], o["energy_uj"]) for o in got}, {(None, None)}, "charged")


@test
def run_ends_with_the_energy_of_each_meter_and_the_part_of_the_command():
    linux_only("RAPL")
    with temp_dir() as root:
        make_powercap(root)
        done = run(["run", "--energy", "--sys-root", root, "--", sys.executable, "-c", COMMAND,
                    f"{energy_file(root, 'intel-rapl:0')}=5001000"])
        check_eq(done.code, 0, done.err)
        found = re.search(r"^energy of package-0: 5\.000 J \(idle (\S+) J, \S+ (\S+) J, others (\S+) J; estimate\)$",
                          done.out, re.M)
        check(found, done.out)
        check(abs(sum(float(part) for part in found.groups()) - 5) < 0.002, found.group(0))
        check_in("energy of package-0/core: 0.000 J\n", done.out)
        check(re.search(r"^ *PID .*~ENERGY +EXIT$", done.out, re.M), done.out)
        check(re.search(r"^ *\d+ .* \d\.\d+ J +0$", done.out, re.M), done.out)


def doctor(root, *options, environment=None):
    """The lines of the doctor about devices, by their id."""
    done = run(["doctor", "--json", "--sys-root", root, *options], env={**os.environ, **(environment or {})})
    return {o["id"]: o for o in json_lines(done.out) if o.get("id", "").startswith("device_")}


@test
def the_doctor_has_a_line_for_each_kind_of_device():
    linux_only("sysfs")
    with temp_dir() as root:
        none = doctor(root, "--nvml-library", "no-such-library")
        check_eq({name: (line["state"], line["fix"]) for name, line in none.items()},
                 {name: ("ok", None) for name in ("device_gpu", "device_npu", "device_energy")}, "no devices")
        check_in("no-such-library", none["device_gpu"]["found"])
        check_in("no energy meter", none["device_energy"]["found"])
        make_powercap(root)
        write(os.path.join(root, "bus", "pci", "drivers", "intel_vpu", "0000:00:0b.0", "npu_busy_time_us"), "7\n")
        found = doctor(root, "--nvml-library", "no-such-library")
        check_in("package-0 (powercap)", found["device_energy"]["found"])
        check_in("Intel NPU (intel_vpu)", found["device_npu"]["found"])


@test
def the_doctor_names_the_meter_of_a_gpu_and_warns_of_a_driver_that_hangs():
    with temp_dir() as root:
        run_gpu(root, "util 0\n", seconds=0.1)  # skips without the fake driver
        control = os.path.join(root, "control")
        options = ("--nvml-library", os.path.join(BUILD, "tests", "libfakenvml.so"))
        lines = doctor(root, *options, environment={"FAKE_NVML": control})
        check_eq([(lines[name]["state"], lines[name]["found"]) for name in ("device_gpu", "device_energy")],
                 [("ok", "NVIDIA Fake 0 (nvml)")] * 2)
        write(control, "block 60000\n")
        line = doctor(root, *options, environment={"FAKE_NVML": control})["device_gpu"]
        check_eq(line["state"], "warn")
        check_in("has not answered", line["found"])


@test
def the_doctor_says_how_an_energy_meter_becomes_readable():
    linux_only("RAPL")
    with temp_dir() as root:
        make_powercap(root, {"intel-rapl:0": "package-0"})
        os.chmod(root, 0o755)
        os.chmod(energy_file(root, "intel-rapl:0"), 0)
        other = {"user": 65534, "group": 65534, "extra_groups": []} if os.getuid() == 0 else {}
        done = subprocess.run([ETWATCH, "doctor", "--json", "--sys-root", root, "--nvml-library", "none"], check=False, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **other)
        if not done.stdout:
            skip(f"the program cannot be run by another user: {done.stderr[-200:]}")
        line = next(o for o in json_lines(done.stdout) if o.get("id") == "device_energy")
        check_eq(line["state"], "warn")
        check_in("Permission denied", line["found"])
        check("fix:" not in line["found"], line["found"])
        check_in("setcap cap_dac_read_search,cap_perfmon+ep etwatch", line["fix"])


@test
def a_perfetto_trace_has_the_meters_as_counter_tracks():
    linux_only("RAPL")
    with temp_dir() as root:
        make_powercap(root)
        path = os.path.join(root, "out.pftrace")
        done = run(["record", "--energy", "--source", "poll", "--sys-root", root, "-o", path, "--", sys.executable, "-c",
                    COMMAND, f"{energy_file(root, 'intel-rapl:0')}=5001000"])
        check_eq(done.code, 0, done.err)
        reported = run(["report", "--json", path])
        check_eq(reported.code, 0, reported.err)
        processes = [o for o in json_lines(reported.out) if o["type"] == "process" and o["energy_uj"]]
        check(processes, "no process has energy in the report")
        # A rate applies until the next value, so the values times their durations are the energy again.
        tracks, energy = toolkit.sql(
            path, "select distinct p.name, t.name from counter c join track t on c.track_id = t.id"
                  " join track p on t.parent_id = p.id where t.name like '%uj/s'",
            "select sum(value * dur) / 1e9 from (select c.value as value, lead(c.ts) over (order by c.ts) - c.ts as dur"
            " from counter c join track t on c.track_id = t.id join track p on t.parent_id = p.id"
            " where p.name = 'energy powercap package-0' and t.name = 'energy_uj/s')")
        check({("energy powercap " + name, "energy_uj/s") for name in ("package-0", "package-0/core", "package-0/dram", "psys")}
              <= {tuple(row) for row in tracks}, f"tracks: {tracks}")
        check(abs(energy[0][0] - 5000000) < 50000, f"energy in the trace: {energy}")


main()
