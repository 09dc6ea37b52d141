# SPDX-License-Identifier: MIT
"""Microsoft's decoder compared with this one: its counts, and every line that it printed, field by field.

A baseline has an EVENT line for the first few events of each kind (time in ms since the recording began, PID, TID,
process, CPU, payload length, then fields as it displays them) and a COUNT line for each kind. The tables below
describe how it displays values and where its names differ from the documented ones. Displayed values that are in no
payload are derived from other events or from the headers.
"""
import collections
import re
import time

from etlkit import NO_ID, check_payload, corpus, events, in_time_order, walk
from lib import cases, check, check_eq, main

FILES = ["perfview-net452-x64", "perfview-primitive-types", "perfview-gcevents", "perfview-gcrundown"]
CUT = 20  # longer values are cut there and end in "..."

Line = collections.namedtuple("Line", "time_ms name pid tid process cpu length fields")


def read_baseline(name):
    """([Line], {kind: count})"""
    lines, counts = [], {}
    with open(corpus("reference", name + ".baseline.txt"), encoding="utf-8-sig") as file:
        for text in file:
            if text.startswith("COUNT "):
                kind, count = text[6:].rstrip("\n").rsplit(":", 1)
                counts[kind] = int(count)
            elif text.startswith("EVENT "):
                lines.append(read_line(text.rstrip("\n")))
    return lines, counts


def read_line(text):
    time, name, rest = re.match(r"EVENT ([\d.,]+): (.*?) (PID=.*)$", text).groups()
    # A value may contain anything except "; Name=".
    parts = re.split(r"(?:^|; )(\w+)=", rest)[1:]
    fields = [(key, re.sub(r"; ?$", "", value)) for key, value in zip(parts[::2], parts[1::2])]
    head = dict(fields[:5])
    return Line(float(time.replace(",", "")), name, int(head["PID"]), int(head["TID"]), head["PName"],
                int(head["ProceNum"]), int(head["DataLen"]), fields[5:])


# ------------------------------------------------------- how it displays things


def cut(text):
    text = text.replace("\n", "\\n").replace("\r", "\\r")
    return text if len(text) <= CUT else text[:CUT] + "..."


def number(value):
    """The forms in which it shows a number: plain, with separators, as an address."""
    return [str(value), f"{value:,}", f"0x{value & (1 << 64) - 1:08x}"]


def date(text):
    """From our 2020-07-29T00:07:10.6912345Z."""
    match = re.match(r"\d\d(\d\d)-(\d\d)-(\d\d)T(\d\d:\d\d:\d\d)(\.\d+)?Z?$", text)
    if not match:
        return []
    year, month, day, clock, part = match.groups()
    return [f"{year}/{month}/{day} {clock}.{((part or '.')[1:] + '000000')[:6]}"]


def displays(value):
    """Every form in which it might show one of our values."""
    if value is None:
        return [""]
    if isinstance(value, bool):
        return [str(value), str(int(value))]
    if isinstance(value, int):
        return number(value)
    if isinstance(value, float):
        return [str(value), f"{value:,.3f}"]
    if isinstance(value, str):
        return [value, *date(value)]
    return []


def shown_as(value, text):
    return text in [cut(form) for form in displays(value)]


# ------------------------------------------------------------- where names differ

# Its name: ours, by the beginning of the kind. Names that differ only in case need no entry.
RENAMED = {
    "Windows Kernel/EventTrace": {"SessionName": "SessionNameString", "LogFileName": "LogFileNameString"},
    "Windows Kernel/Process/": {"PageDirectoryBase": "DirectoryTableBase", "MemoryCount": "PageFaultCount"},
    "Windows Kernel/Thread/": {"StartAddr": "Affinity"},
    "Windows Kernel/DiskIO/": {"FileKey": "FileObject"},
    "Windows Kernel/Memory/": {"FileKey": "FileObject"},
    "Windows Kernel/PerfInfo/": {"SampleSource": "Source"},
    "Microsoft-Windows-Kernel-File/Create": {"IrpPtr": "Irp", "FileAttributes": "CreateAttributes"},
}
# Shown with a sign although documented as unsigned.
SIGNED_32 = {"SessionID", "TimeDateStamp", "MaxHashTableSize"}
PROCESS_FLAGS = {0: "None", 1: "PackageFullName", 2: "Wow64", 4: "Protected"}
IO_PRIORITY = ["Notset", "Verylow", "Low", "Normal", "High", "Critical"]
DISPOSITION = ["SUPERSEDE", "OPEN_EXISTING", "CREATE_NEW", "OPEN_ALWAYS", "CREATE_ALWAYS", "TRUNCATE_EXISTING"]
SHARE = ["None", "Read", "Write", "ReadWrite", "Delete", "Read, Delete", "Write, Delete", "ReadWrite, Delete"]
IRP_FLAGS = [(1, "Nocache"), (2, "MountCompletion"), (4, "SynchronousApi"), (8, "AssociatedIrp"),
             (0x10, "BufferedIO"), (0x20, "DeallocateBuffer"), (0x40, "SynchronousPagingIO")]


def field(event, line, name):
    """(whether the field exists here, its value here) for one of its fields."""
    for kind, names in RENAMED.items():
        if line.name.startswith(kind):
            name = names.get(name, name)
    for ours, value in (event["fields"] or {}).items():
        if ours.lower() == name.lower():
            return True, value
    return False, None


# ------------------------------------------------------- values derived from payloads


class State:
    """The state it has collected from other events of the recording when it shows one."""

    def __init__(self, all_events):
        self.first_ns = all_events[0]["t_ns"]
        self.drives, self.files, self.system_drive = [], {}, ""
        self.names, self.types = {0: "Idle"}, {}
        self.frequency = 1
        disk_done = collections.Counter()
        for event in all_events:
            kind, fields = event["event"], event["fields"] or {}
            if kind in ("DiskIO/Read", "DiskIO/Write"):
                # An I/O is served from the completion of the previous one.
                event["served"] = min(fields["HighResResponseTime"], event["t_raw"] - disk_done[fields["DiskNumber"]])
                disk_done[fields["DiskNumber"]] = event["t_raw"]
            elif kind == "Type/BulkType":
                self.types.update((value["TypeID"], value["Name"]) for value in fields["Values"])
            elif kind.startswith("Process/") and "ImageFileName" in fields:
                self.names[fields["ProcessId"]] = fields["ImageFileName"]
            if kind == "SysConfig/VolumeMapping":
                self.drives.append((fields["NtPath"], fields["DosPath"]))
            elif kind == "SysConfig/SystemPaths":
                self.system_drive = fields["SystemDirectory"][:2]
            elif kind.startswith("FileIO/File") or kind == "FileIO/Name":
                self.files.setdefault(fields["FileObject"], fields["FileName"])
            elif kind == "EventTrace":
                self.frequency = fields["PerfFreq"]

    def dos_path(self, path):
        if path.lower().startswith("\\windows\\"):
            return self.system_drive + path  # the kernel's name for images loaded from there
        for nt_path, dos in self.drives:
            if path.lower().startswith(nt_path.lower()):
                return dos + path[len(nt_path):]
        return path

    def name(self, pid):
        """The form in which it shows a process name."""
        return re.sub(r"\.exe$", "", self.names.get(pid, "" if pid < 0 else f"Process({pid})"))

    def milliseconds(self, ticks):
        """It rounds halves up."""
        return f"{(ticks * 2_000_000 // self.frequency + 1) // 2 / 1000:,.3f}"


def unix_date(seconds):
    return time.strftime("%y/%m/%d %H:%M:%S.000000", time.gmtime(seconds))


def signed(value, bits):
    return value - (1 << bits) if value >> bits - 1 else value


def flags_text(value, names):
    return ", ".join(name for bit, name in names if value & bit) or "None"


def second_twice(text):
    second = re.match(r".*:(\d\d)", text)[1]
    return date(re.sub(r"\.\d+", f".0{second}", text))[0]


def create_options(value):
    """A name where it has one for the whole value."""
    value &= 0xFFFFFF
    return {0x20: "FILE_ATTRIBUTE_ARCHIVE"}.get(value, str(value))


def creator(event, which):
    """The creator of a thread: it is in the header."""
    return f"{event['header'][which]:,}" if event["event"] == "Thread/Start" else "-1"


def depth(fields):
    """The oldest generation that survived."""
    return str(max(i for i in range(3) if i == 0 or fields[f"TotalPromotedSize{i}"]))


def total(fields, name):
    return f"{sum(fields.get(f'{name}{i}', 0) for i in range(5)):,}"


# (beginning of the kind, field): (fields, event, state) -> the displayed value.
SHOWN = {
    ("Windows Kernel/Process/", "Flags"): lambda f, e, s: PROCESS_FLAGS[f["Flags"]],
    ("Windows Kernel/Image/", "FileName"): lambda f, e, s: s.dos_path(f["FileName"]),
    ("Windows Kernel/Image/", "BuildTime"): lambda f, e, s: unix_date(f["TimeDateStamp"]),
    ("Windows Kernel/DiskIO/", "IrpFlags"): lambda f, e, s: flags_text(f["IrpFlags"], IRP_FLAGS),
    ("Windows Kernel/DiskIO/", "Priority"): lambda f, e, s: IO_PRIORITY[f["IrpFlags"] >> 17 & 7],
    ("Windows Kernel/DiskIO/", "ElapsedTimeMSec"): lambda f, e, s: s.milliseconds(f["HighResResponseTime"]),
    ("Windows Kernel/DiskIO/", "FileName"): lambda f, e, s: s.dos_path(s.files.get(f["FileObject"], "")),
    ("Windows Kernel/Memory/", "FileName"): lambda f, e, s: s.dos_path(s.files.get(f["FileObject"], "")),
    ("Windows Kernel/Memory/", "ElapsedTimeMSec"): lambda f, e, s: s.milliseconds(e["t_raw"] - f["InitialTime"]),
    ("Windows Kernel/PerfInfo/", "ProcessorNumber"): lambda f, e, s: str(e["cpu"]),
    ("Windows Kernel/EventTrace", "UtcOffsetMinutes"): lambda f, e, s: str(f["TimeZoneInformation"]["Bias"]),
    ("Windows Kernel/DiskIO/", "DiskServiceTimeMSec"): lambda f, e, s: s.milliseconds(e["served"]),
    ("Windows Kernel/Thread/", "ParentThreadID"): lambda f, e, s: creator(e, 1),
    ("Windows Kernel/Thread/", "ParentProcessID"): lambda f, e, s: creator(e, 0),
    ("Microsoft-Windows-DotNETRuntime/GC/HeapStats", "Depth"): lambda f, e, s: depth(f),
    ("Microsoft-Windows-DotNETRuntime/GC/FinalizeObject", "TypeName"): lambda f, e, s: s.types.get(f["TypeID"], ""),
    # Windows 8 does not write it yet.
    ("Windows Kernel/Thread/", "ThreadName"): lambda f, e, s: f.get("ThreadName", ""),
    # It still uses the fields of the first version.
    ("Windows Kernel/UdpIp/", "context"): lambda f, e, s: f"0x{f['PID'] | f['size'] << 32:08x}",
    ("Windows Kernel/UdpIp/", "dsize"): lambda f, e, s: "0",
    ("Windows Kernel/SystemConfig/NIC", "PhysicalAddr"): lambda f, e, s: f"{signed(f['PhysicalAddr'], 64):,}",
    # Its own name for the ID.
    ("Windows Kernel/SystemConfig/Services", "ProcessName"):
        lambda f, e, s: f["ProcessName"].removesuffix(".exe") if f["ProcessId"] else "Idle",
    # It reads the upper half of the size.
    ("KernelTraceControl/ImageID", "ProcessID"): lambda f, e, s: str(f["ImageSize"] >> 32),
    ("KernelTraceControl/ImageID", "BuildTime"): lambda f, e, s: unix_date(f["TimeDateStamp"]),
    # The schema declares it unsigned.
    ("solar_system/", "int64_type"): lambda f, e, s: str(signed(f["int64_type"], 64)),
    # It takes the seconds for the milliseconds.
    ("solar_system/", "system_time_type"): lambda f, e, s: second_twice(f["system_time_type"]),
    # One word, shown in parts.
    ("Microsoft-Windows-Kernel-File/Create", "CreateOptions"): lambda f, e, s: create_options(f["CreateOptions"]),
    ("Microsoft-Windows-Kernel-File/Create", "CreateDisposition"):
        lambda f, e, s: DISPOSITION[f["CreateOptions"] >> 24],
    ("Microsoft-Windows-Kernel-File/Create", "ShareAccess"): lambda f, e, s: SHARE[f["ShareAccess"]],
    ("Microsoft-Windows-Kernel-File/Create", "FileName"): lambda f, e, s: s.dos_path(f["FileName"]),
    ("Microsoft-Windows-DotNETRuntime/GC/HeapStats", "TotalHeapSize"): lambda f, e, s: total(f, "GenerationSize"),
    ("Microsoft-Windows-DotNETRuntime/GC/HeapStats", "TotalPromoted"): lambda f, e, s: total(f, "TotalPromotedSize"),
    ("Microsoft-Windows-DotNETRuntime/Type/BulkType", "TypeID_0"):
        lambda f, e, s: f"0x{f['Values'][0]['TypeID']:08x}",
    ("Microsoft-Windows-DotNETRuntime/Type/BulkType", "TypeName_0"): lambda f, e, s: f["Values"][0]["Name"],
    ("Microsoft-Windows-DotNETRuntime", "ModuleILFileName"): lambda f, e, s: f["ModuleILPath"].rsplit("\\", 1)[-1],
    # Empty where no mechanism was used.
    ("Microsoft-Windows-DotNETRuntime", "ConcurrentCompactMechanisms"):
        lambda f, e, s: str(f.get("ConcurrentCompactMechanisms") or ""),
}
# IDs that differ from ours: (fields, event) -> the displayed process and thread. Ours belong to the subject of the
# event.
HEADER = "those in the header: the writer"
OTHER_IDS = {
    "Windows Kernel/SystemConfig/Services": ("the service's process", lambda f, e: (f["ProcessId"], e["header"][1])),
    "Windows Kernel/Image/Unload": ("without the thread", lambda f, e: (e["pid"], -1)),
    "Windows Kernel/DiskIO/WriteInit": (HEADER, lambda f, e: e["header"]),
    "Windows Kernel/DiskIO/FlushBuffers": ("the duration as the thread", lambda f, e: (-1, f["HighResResponseTime"])),
    "Microsoft-Windows-Kernel-Process/": (HEADER, lambda f, e: e["header"]),
}
# Shown with a default if the payload is of a version without them.
DEFAULTS = {"": ["PauseMode", "MemoryPressure", "CondemnReasons0", "CondemnReasons1", "Count", "FreeListAllocated",
                 "FreeListRejected", "EndOfSegAllocated", "CondemnedAllocated", "PinnedAllocated",
                 "PinnedAllocatedAdvance", "RunningFreeListEfficiency"],
            "0": ["ObjectSize", "ReJITID", "ClientSequenceNumber", "GenerationSize4", "TotalPromotedSize4"],
            "Unknown": ["OptimizationTier"]}


def rule(table, line, name):
    for (kind, which), value in table.items():
        if which == name and line.name.startswith(kind):
            return value
    return None


class Tally:
    """Counts of lines and fields that agree, by kind."""

    def __init__(self):
        self.lines = collections.Counter()
        self.good_lines = collections.Counter()
        self.fields = collections.Counter()
        self.good_fields = collections.Counter()
        self.other_ids = {}
        self.wrong = []

    def add(self, kind, results):
        """results: [(field, verdict, text)]"""
        self.lines[kind] += 1
        self.good_lines[kind] += all(good for _, good, _ in results)
        for name, good, text in results:
            self.fields[kind] += 1
            self.good_fields[kind] += good
            if not good:
                self.wrong.append((kind, f"{kind}: {name}: {text}"))

    def print(self, title):
        def share(good, of):
            good, of = sum(good.values()), sum(of.values())
            return f"{good} of {of} ({100 * good / max(1, of):.1f} %)"
        print(f"# {title}: {share(self.good_lines, self.lines)} lines, {share(self.good_fields, self.fields)} fields")
        for kind in sorted(self.lines):
            print(f"#   {kind}: {self.good_lines[kind]}/{self.lines[kind]} lines, "
                  f"{self.good_fields[kind]}/{self.fields[kind]} fields")
        for kind, reason in sorted(self.other_ids.items()):
            print(f"#   other ids: {kind}: {reason}")


def compare_field(line, event, state, name, text):
    """(whether it agrees, the value found)"""
    make = rule(SHOWN, line, name)
    if make is not None:
        got = cut(make(event["fields"] or {}, event, state))
        return got == text, f"{got!r}, not {text!r}"
    there, value = field(event, line, name)
    if not there:
        return name in DEFAULTS.get(text, []) and "payload" not in event["fields"], f"absent, not {text!r}"
    if name in SIGNED_32 and isinstance(value, int):
        value = signed(value, 32)
    return shown_as(value, text), f"{value!r}, not {text!r}"


def candidates(all_events, first_ns):
    """{(time in us, CPU, payload length): events}"""
    found = collections.defaultdict(list)
    for event in all_events:
        found[(event["t_ns"] - first_ns) // 1000, event["cpu"], len(event["payload"]) // 2].append(event)
    return found


def our_kind(line, event):
    """Whether an event is of the kind of a baseline line, as far as both can be compared."""
    provider, name = line.name.split("/", 1)
    if event["provider"] == provider:
        return event["event"] == name
    return False


def find(line, by_place, first_ns):
    """The event that corresponds to a line."""
    us, found = int(line.time_ms * 1000), []
    for near in (us - 1, us, us + 1):
        for event in by_place.get((near, line.cpu, line.length), []):
            if abs((event["t_ns"] - first_ns) / 1e6 - line.time_ms) < 0.00051 and "matched" not in event:
                found.append(event)
    check(found, f"no event of ours is at {line.time_ms} ms on CPU {line.cpu} with {line.length} bytes: {line.name}")
    event = next((event for event in found if our_kind(line, event)), found[0])
    event["matched"] = True  # the next line with this key is another event
    return event


def compare_ids(line, event, state, tally):
    pid, tid = (-1 if event[name] is None else event[name] for name in ("pid", "tid"))
    name = re.sub(r"\.exe$", "", event["name"] or "")
    for kind, (reason, ids) in OTHER_IDS.items():
        if line.name.startswith(kind):
            pid, tid = ids(event["fields"], event)
            name = state.name(pid)
            tally.other_ids[line.name] = reason
    if line.pid >= 0 and not name:
        name = f"Process({line.pid})"
    return [("PID", pid == line.pid, f"{pid}, not {line.pid}"), ("TID", tid == line.tid, f"{tid}, not {line.tid}"),
            ("PName", name == line.process, f"{name!r}, not {line.process!r}")]


def compare(line, event, state, tally):
    results = [("kind", our_kind(line, event), f"{event['provider']}/{event['event']}, not {line.name}")]
    results += compare_ids(line, event, state, tally)
    results += [(name, *compare_field(line, event, state, name, text)) for name, text in line.fields]
    tally.add(line.name, results)


def with_headers(ours, path):
    """Our events, each with its header, which a separate Python reader extracts."""
    records = in_time_order(walk(path))
    check_eq(len(ours), len(records), "number of events")
    for event, record in zip(ours, records):
        check_payload(event, record.payload, f"event at {record.offset:#x}")
        event["t_raw"] = record.t_raw
        event["header"] = tuple(-1 if number == NO_ID else number for number in (record.pid, record.tid))
    return ours


_read = {}


def read(name):
    """(lines, counts, events) of a recording, cached."""
    if name not in _read:
        path = corpus("etl", name + ".etl")
        _read[name] = *read_baseline(name), with_headers(events(path, "--payload"), path)
    return _read[name]


@cases([(name, name) for name in FILES])
def every_line_of_microsofts_decoder_agrees(name):
    lines, _, ours = read(name)
    state, tally = State(ours), Tally()
    by_place = candidates(ours, state.first_ns)
    for line in lines:
        compare(line, find(line, by_place, state.first_ns), state, tally)
    tally.print(name)
    for _, text in tally.wrong:
        print("#", text)
    check(not tally.wrong, f"{len(tally.wrong)} fields differ")


def counted(event):
    """Whether Microsoft's decoder shows an event: it omits samples of an idle CPU."""
    if event["provider"] == "Windows Kernel" and event["event"] == "PerfInfo/Sample":
        fields = event["fields"]
        return fields["ThreadId"] != 0 or fields["ExecutingDPC"] or fields["ExecutingISR"]
    return True


@cases([(name, name) for name in FILES])
def every_count_of_microsofts_decoder_agrees(name):
    _, counts, ours = read(name)
    got = collections.Counter(f"{e['provider']}/{e['event']}" for e in ours if counted(e))
    same = sum(got[kind] == count for kind, count in counts.items())
    print(f"# {name}: {same} of {len(counts)} counts")
    wrong = {kind: (got[kind], count) for kind, count in counts.items() if got[kind] != count}
    for kind, (ours_count, count) in sorted(wrong.items()):
        print(f"#   {kind}: {ours_count}, not {count}")
    check_eq(wrong, {}, "counts that differ")


main()
