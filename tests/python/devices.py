# SPDX-License-Identifier: MIT
"""GPUMonitor, NPUMonitor and EnergyMonitor with a fake driver and an injected tree."""
import os
import sys

import etwatch
from etwatch.devices import backend_of
from lib import BUILD, cases, check, check_eq, main, raises, skip, start, temp_dir, test
from livekit import wait_until

LIBRARY = os.path.join(BUILD, "tests", "libfakenvml.so")


def need_library():
    if sys.platform == "win32" or not os.path.exists(LIBRARY):
        skip("the fake driver was not built")


@test
def a_gpu_monitor_has_a_dict_per_device():
    need_library()
    monitor = etwatch.GPUMonitor.create(nvml_library=LIBRARY, sys_root="/none")
    check(monitor is not None, "no monitor")
    device, = monitor.get_metrics()
    check_eq((device["gpu_util"], device["mem_util"], device["mem_used_mb"], device["mem_total_mb"], device["temperature"],
              device["power_watts"], device["encoder_util"], device["decoder_util"]), (0, 7, 2048, 141 * 1024, 47, 100, 0, 0))


@test
def without_devices_there_is_no_monitor_and_no_value():
    check_eq(etwatch.GPUMonitor.create(nvml_library="none", sys_root="/none"), None)
    npu = etwatch.NPUMonitor(sys_root="/none")
    check_eq((npu.backend, npu.get_metrics()), (None, []))
    power = etwatch.EnergyMonitor(nvml_library="none", sys_root="/none").get_power_metrics()
    check_eq(power["package"], {"watts": None, "joules": None})
    check_eq(etwatch.EnergyMonitor.calculate_efficiency({"cpu_seconds": 1}, power), None)


@test
def joules_are_what_the_meter_counted_since_the_monitor_was_made():
    if sys.platform == "win32":
        skip("RAPL is read on Linux")
    with temp_dir() as root:
        folder = os.path.join(root, "class", "powercap", "intel-rapl:0")
        os.makedirs(folder)
        for name, value in (("name", "package-0"), ("energy_uj", 1000000), ("max_energy_range_uj", 1 << 40)):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(f"{value}\n")
        monitor = etwatch.EnergyMonitor(nvml_library="none", sys_root=root)
        check_eq(monitor.get_power_metrics()["package"]["joules"], 0)
        with open(os.path.join(folder, "energy_uj"), "r+", encoding="utf-8") as file:
            file.write("4000000\n")
        joules = 0
        while not joules:
            joules = monitor.get_power_metrics()["package"]["joules"]
        for _ in range(3):
            joules = monitor.get_power_metrics()["package"]["joules"]
        check_eq(joules, 3)


@test
def a_monitor_keeps_its_meters_and_has_the_energy_of_its_processes():
    need_library()
    with temp_dir() as root:
        control = os.path.join(root, "control")
        with open(control, "w", encoding="utf-8") as file:
            file.write(f"util 40\nwatts 200\npid {os.getpid()} 512 30\n")
        os.environ["FAKE_NVML"] = control
        folder = os.path.join(root, "class", "powercap", "intel-rapl:0")
        os.makedirs(folder)
        for name, value in (("name", "package-0"), ("energy_uj", 1000000), ("max_energy_range_uj", 1 << 40)):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(f"{value}\n")
        monitor = etwatch.ETWMonitor({"target_processes": {os.getpid()}}, metrics=["energy_uj"], sys_root=root,
                                     nvml_library=LIBRARY)
        with monitor:
            check_eq(monitor.get_power_metrics()["package"]["joules"], 0)
            with open(os.path.join(folder, "energy_uj"), "r+", encoding="utf-8") as file:
                file.write("4000000\n")
            wait_until(lambda: monitor.get_power_metrics()["package"]["joules"] == 3, "joules since the first call")
            wait_until(lambda: sum(range(10000)) and
                       monitor.get_power_metrics()["processes"].get(os.getpid(), {}).get("joules"), "energy of the process")
            used = monitor.get_power_metrics()["processes"][os.getpid()]
        check(used["watts"] > 0 and used["joules"] > 0, str(used))
        check_eq(etwatch.ETWMonitor(sys_root=root, nvml_library=LIBRARY).get_power_metrics()["processes"], {})


@test
def watched_processes_have_joules_and_others_do_not():
    need_library()
    with temp_dir() as folder:
        child = start(["-c", "import time; time.sleep(60)"], program=sys.executable)
        os.environ["FAKE_NVML"] = os.path.join(folder, "control")
        with open(os.environ["FAKE_NVML"], "w", encoding="utf-8") as file:
            file.write(f"util 40\nwatts 200\npid {child.pid} 512 30\npid {os.getpid()} 100 10\n")
        monitor = etwatch.EnergyMonitor(pids=[child.pid], nvml_library=LIBRARY, sys_root=folder)
        found = []

        def has_joules():
            found.append(monitor.get_power_metrics()["processes"])
            return (found[-1].get(child.pid) or {}).get("joules")
        wait_until(has_joules, "energy of the process")
        first = found[-1][child.pid]["joules"]
        wait_until(lambda: has_joules() > first, "more energy")
        check_eq(set(found[-1]), {child.pid}, "processes")
        monitor.close()
        monitor.close()
        check_eq(monitor.get_power_metrics()["processes"], {}, "after close")
        child.kill()
        child.wait()
    raises(TypeError, "pids: a set is needed", etwatch.EnergyMonitor, pids="python", sys_root="/none")
    raises(ValueError, "pids: 0 is not a process id", etwatch.EnergyMonitor, pids=[0], sys_root="/none")


@cases([
    ("Intel on Linux", "intel_vpu", "Intel NPU", "Intel"),
    ("AMD on Linux", "amdxdna_accel_driver", None, "AMD"),
    ("Qualcomm on Linux", "qaic", None, "Qualcomm"),
    ("a vendor without a name for users", "rocket", None, None),
    ("Intel on Windows", "wddm", "Intel(R) AI Boost", "Intel"),
    ("Qualcomm on Windows", "wddm", "Snapdragon(R) X Elite - X1E78100 - Qualcomm(R) Hexagon(TM) NPU", "Qualcomm"),
    ("AMD on Windows", "wddm", "AMD IPU Device", "AMD"),
    ("another on Windows", "wddm", "NPU Compute Accelerator Device", "DirectML"),
    ("a name that is not known on Windows", "wddm", None, "DirectML"),
])
def the_backend_of_an_npu_is_its_vendor(driver, name, backend):
    check_eq(backend_of({"driver": driver, "name": name}), backend)


@test
def an_npu_has_a_backend_busy_time_and_memory():
    if sys.platform == "win32":
        skip("sysfs")
    with temp_dir() as root:
        folder = os.path.join(root, "bus", "pci", "drivers", "intel_vpu", "0000:00:0b.0")
        os.makedirs(folder)
        for name, value in (("npu_busy_time_us", 1000000), ("npu_memory_utilization", 3 << 20)):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(f"{value}\n")
        npu = etwatch.NPUMonitor(sys_root=root)
        check_eq(npu.backend, "Intel")
        device, = npu.get_metrics()
        check_eq((device["mem_used_mb"], device["id"], device["busy_ms"]), (3, "0000:00:0b.0", None))
        with open(os.path.join(folder, "npu_busy_time_us"), "r+", encoding="utf-8") as file:
            file.write("1250000\n")
        busy = []

        def has_busy():
            busy.extend(device["busy_ms"] for device in npu.get_metrics() if device["busy_ms"])
            return busy
        wait_until(has_busy, "busy time")
        check_eq(busy, [250], "busy time")


main()
