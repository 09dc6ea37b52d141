# SPDX-License-Identifier: MIT
"""Names of events and providers: the types that users know, and the kernel events behind providers that Windows does
not log under the name that users write."""
import re
from typing import Dict, List, NamedTuple, Tuple

# The event's own name: its type. Other events have their own name as type.
TYPES: Dict[str, str] = {
    "Process/Start": "ProcessStart", "ProcessStart/Start": "ProcessStart",
    "Process/Stop": "ProcessStop", "ProcessStop/Stop": "ProcessStop",
    "Thread/Start": "ThreadStart", "ThreadStart/Start": "ThreadStart",
    "Thread/Stop": "ThreadStop", "ThreadStop/Stop": "ThreadStop",
    "Thread/CSwitch": "ThreadContextSwitch", "Dispatcher/ReadyThread": "ThreadReady",
    "PerfInfo/Sample": "CPUSample",
    **{f"Memory/{name}": "PageFault" for name in (
        "TransitionFault", "DemandZeroFault", "CopyOnWrite", "GuardMemory", "HardFault", "AccessViolation")},
    "VirtualMem/Alloc": "MemAlloc", "VirtualMem/Free": "MemFree",
    "Image/Load": "ImageLoad", "Image/Unload": "ImageUnload",
    "DiskIO/Read": "DiskRead", "DiskIO/Write": "DiskWrite", "FileIO/Read": "FileRead", "FileIO/Write": "FileWrite",
    "sched_switch": "ThreadContextSwitch", "sched_waking": "ThreadReady", "task_newtask": "ThreadStart",
    "sched_process_exec": "ProcessExec", "sched_process_exit": "ThreadStop",
}
# The first thread of a process stands for the process.
OF_FIRST_THREAD = {"task_newtask": "ProcessStart", "sched_process_exit": "ProcessStop"}

# The kernel events that a session needs for a type. Soft faults name no thread: switches show which one ran.
KINDS: Dict[str, Tuple[str, ...]] = {
    "ProcessStart": ("process",), "ProcessStop": ("process",), "ThreadStart": ("thread",), "ThreadStop": ("thread",),
    "ThreadContextSwitch": ("cswitch",), "ThreadReady": ("dispatcher",), "CPUSample": ("profile",),
    "PageFault": ("pagefaults", "hardfaults", "cswitch"), "MemAlloc": ("virtualalloc",), "MemFree": ("virtualalloc",),
    "ImageLoad": ("image",), "ImageUnload": ("image",), "DiskRead": ("disk",), "DiskWrite": ("disk",),
    "FileRead": ("fileio", "fileio-init"), "FileWrite": ("fileio", "fileio-init"),
}
# The live events of Linux, by type.
LIVE: Dict[str, Tuple[str, ...]] = {
    "ProcessStart": ("task_newtask",), "ProcessExec": ("sched_process_exec",), "ProcessStop": ("sched_process_exit",),
    "ThreadStart": ("task_newtask",), "ThreadStop": ("sched_process_exit",),
    "ThreadContextSwitch": ("sched_switch",), "ThreadReady": ("sched_waking",),
}


class Kernel(NamedTuple):
    """The kernel events that carry the facts of a provider."""
    kinds: Tuple[str, ...]
    events: Tuple[str, ...]  # patterns of their names
    logged: bool  # a provider of this name exists in Windows too


KERNEL_PROVIDER = "Windows Kernel"
_ALL = Kernel(("process", "thread", "image", "disk", "network"), ("*",), False)
_SAMPLES = Kernel(("profile",), ("PerfInfo/Sample", "PerfInfo/Collection*", "PerfInfo/SetInterval"), False)
PROVIDERS: Dict[str, Kernel] = {
    "windows kernel": _ALL,
    "nt kernel logger": _ALL,
    "microsoft-windows-kernel-process": Kernel(("process", "thread", "image"),
                                               ("Process/*", "Thread/St*", "Thread/DC*", "Image/*"), True),
    "microsoft-windows-kernel-thread": Kernel(("thread", "cswitch", "dispatcher"), ("Thread/*", "Dispatcher/*"), False),
    "microsoft-windows-kernel-processor": _SAMPLES,
    "cpu_sampling": _SAMPLES,
    "microsoft-windows-kernel-memory": Kernel(("pagefaults", "hardfaults", "virtualalloc", "cswitch"),
                                              ("Memory/*", "VirtualMem/*"), False),
    "microsoft-windows-kernel-disk": Kernel(("disk",), ("DiskIO/*",), True),
    "microsoft-windows-kernel-file": Kernel(("fileio", "fileio-init"), ("FileIO/*",), True),
    "microsoft-windows-kernel-network": Kernel(("network",), ("TcpIp/*", "UdpIp/*"), True),
}
# For messages: names that users may have meant.
KNOWN: List[str] = [
    "Windows Kernel", "NT Kernel Logger", "CPU_SAMPLING", "Microsoft-Windows-Kernel-Process",
    "Microsoft-Windows-Kernel-Thread", "Microsoft-Windows-Kernel-Processor", "Microsoft-Windows-Kernel-Memory",
    "Microsoft-Windows-Kernel-Disk", "Microsoft-Windows-Kernel-File", "Microsoft-Windows-Kernel-Network",
    "Microsoft-Windows-DxgKrnl", "Microsoft-Windows-DXGI", "Microsoft-Windows-D3D9", "Microsoft-Windows-DotNETRuntime",
    "Microsoft-Windows-Kernel-Power", "Microsoft-Windows-Kernel-Registry", "Microsoft-Windows-DNS-Client",
]

_snakes: Dict[str, str] = {}


def snake(name: str) -> str:
    """NewThreadId: new_thread_id; ParentProcessID: parent_process_id; wait_ns stays."""
    known = _snakes.get(name)
    if known is None:
        known = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
        if len(_snakes) < 10000:
            _snakes[name] = known
    return known
