# SPDX-License-Identifier: MIT
"""ETWConsumer: the users' own consumers, on a recording, live on Linux, and live against the emulated ETW."""
import asyncio
import json
import os
import subprocess
import sys
import threading
import time
import warnings

import etwatch
from etlkit import make_etl
from etwatch import ETWEvent
from etwatch._events import EventRows
from lib import BUILD, ROOT, check, check_between, check_eq, check_in, main, need_ebpf, raises, run, start, temp_dir, test
from toolkit import need, python

PACKAGE = os.path.join(ROOT, "python")

# The users' programs. SOURCE is nothing (live) or the recording; each prints what it found.
PROCESSES = """
import etwatch
consumer = etwatch.ETWConsumer("Microsoft-Windows-Kernel-Process", SOURCE)
def started(event):
    print("start", event.process_id, event.parent_process_id, event.process_name)
def stopped(event):
    print("stop", event.process_id, event.exit_code)
consumer.on("ProcessStart", started)
consumer.on("ProcessStop", stopped)
"""
# The same of the kernel's own events, which a recording without the provider has.
EXITS = PROCESSES.replace("Microsoft-Windows-Kernel-Process", "NT Kernel Logger")
MEMORY = """
import etwatch
consumer = etwatch.ETWConsumer(SOURCE)
consumer.subscribe(["Microsoft-Windows-Kernel-Memory"])
def on_event(event):
    if event.type == "PageFault":
        print("fault", event.process_id, hex(event.virtual_address), event.fault_type)
    elif event.type == "MemAlloc":
        print("alloc", event.process_id, hex(event.base_address), event.allocation_size)
consumer.on_event = on_event
"""
GPU = """
import etwatch
consumer = etwatch.ETWConsumer(SOURCE)
consumer.add_provider("Microsoft-Windows-DxgKrnl")
begun = {}
def packet(event):
    key = event.fields["SubmitSequence"]
    if event.opcode == 1:
        begun[key] = event.timestamp
    else:
        print("gpu", event.process_id, event.packet_type, round(1000 * (event.timestamp - begun.pop(key)), 1))
consumer.on("QueuePacket*", packet)
"""
SPIKE = """
import etwatch
consumer = etwatch.ETWConsumer("CPU_SAMPLING", SOURCE)
def sampled(event):
    if event.cpu_percent > 10.0:
        print("spike", event.process_name, round(event.cpu_percent))
consumer.on("CPUSample", sampled)
"""
LIVE = """
consumer.start()
import time
end, seen, since = time.monotonic() + 30, 0, time.monotonic()
while time.monotonic() < end and (seen == 0 or time.monotonic() < since + 0.7):  # until nothing more comes
    time.sleep(0.02)
    if consumer.stats["events"] != seen:
        seen, since = consumer.stats["events"], time.monotonic()
consumer.stop()
consumer.close()
assert consumer.stats["lost"] == 0, consumer.stats
"""
FAULTS = [f"fault 5000 {hex(address)} {kind}" for i in range(5)
          for address, kind in ((0x10000000 + 4096 * i, "DemandZeroFault"), (0x20000000, "HardFault"))]
ALLOCATIONS = [f"alloc 5000 {hex(0x30000000 + 0x10000 * i)} 65536" for i in range(5)]
# name: (program, what it prints, ignoring the order)
USERS = {
    "processes": (PROCESSES, ["start 5000 4000 child.exe"]),
    "exits": (EXITS, ["start 5000 4000 child.exe", "stop 5000 3"]),
    "memory": (MEMORY, FAULTS + ALLOCATIONS),
    "gpu": (GPU, ["gpu 5000 RENDER_COMMAND_BUFFER 2.1"] * 5),
    "spike": (SPIKE, ["spike child.exe 11", "spike child.exe 12", "spike child.exe 13", "spike child.exe 14",
                      "spike child.exe 15", "spike child.exe 16", "spike child.exe 17", "spike child.exe 18",
                      "spike child.exe 19", "spike child.exe 20"]),
}
EVENTS = 84  # of the recording


def recording(folder, kind="consumers", *more):
    path = os.path.join(folder, kind + ".etl")
    make_etl(kind, path, *more)
    return path


def lines_of(program, **environment):
    result = run(["-c", program], program=sys.executable, timeout=60,
                 env={**os.environ, "PYTHONPATH": PACKAGE, **environment})
    check_eq(result.code, 0, f"exit code ({result.err})")
    return result.out.splitlines()


def emulated(path):
    library = os.path.join(BUILD, "tests", "libetwatch_emulated.so")
    return {"ETWATCH_LIBRARY": library, "ETWATCH_EMULATED": path}


# ------------------------------------------------------------------------- the users

@test
def the_users_consumers_read_a_recording():
    with temp_dir() as folder:
        path = recording(folder)
        for name, (program, want) in USERS.items():
            source = program.replace("SOURCE", f"file={path!r}") + "consumer.process()\n"
            check_eq(sorted(lines_of(source)), sorted(want), name)


@test
def the_users_consumers_run_live_against_an_emulated_windows():
    with temp_dir() as folder:
        path = recording(folder)
        for name, (program, want) in USERS.items():
            source = program.replace(", SOURCE", "").replace("SOURCE", "") + LIVE
            for buffers in ("", ",buffers"):
                check_eq(sorted(lines_of(source, **emulated(path + buffers))), sorted(want), name + buffers)


@test
def a_provider_unknown_to_etwatch_has_the_fields_that_windows_knows():
    program = """
import etwatch
consumer = etwatch.ETWConsumer(providers=[etwatch.ETWProvider("Emulated-Provider", level=4, ids=(7,))])
consumer.start(lambda event: print(event.type, event.provider, event.number, event.label, event.nothing))
""" + LIVE
    with temp_dir() as folder:
        check_eq(lines_of(program, **emulated(recording(folder))),
                 [f"Job/Start Emulated-Provider {i} job None" for i in range(5)])


@test
def nothing_is_left_behind_however_a_consumer_ends():
    program = """
import ctypes, gc, os
import etwatch
from etwatch import _abi, _native
def ours():
    found = []
    function = _native.lib.etwatch_session_list
    def note(_, info):
        found.append(info.contents.name) if info.contents.flags & _abi.ETWATCH_SESSION_OURS else None
    function(function.argtypes[0](note), None, None)
    return len(found)
def first(consumer):
    return next(iter(consumer)).type
a = etwatch.ETWConsumer("Windows Kernel"); first(a); assert ours() == 1, ours(); a.close(); a.close()
assert ours() == 0, ours()
gc.disable()  # the session ends with the last reference
b = etwatch.ETWConsumer("Windows Kernel").on("ProcessStart", print); first(b); del b
assert ours() == 0, ours()
etwatch.ETWConsumer(session="NT Kernel Logger", providers=["CPU_SAMPLING"]).start()
assert ours() == 0, ours()
e = etwatch.ETWConsumer("Windows Kernel").start(); e.stop(); list(e)
assert ours() == 0, ours()
with etwatch.ETWConsumer("Windows Kernel") as c:
    def handler(event): raise KeyError("mine")
    c.start(handler)
    try: c.wait(20); c.stop()
    except KeyError as error: print("raised", error)
assert ours() == 0, ours()
with etwatch.ETWConsumer("Windows Kernel") as d:
    try:
        for event in d: raise RuntimeError
    except RuntimeError: pass
assert ours() == 0, ours()
"""
    with temp_dir() as folder:
        check_eq(lines_of(program, **emulated(recording(folder))), ["raised 'mine'"])


# ------------------------------------------------------------------------- the class

@test
def every_form_of_reading_delivers_the_same_events():
    with temp_dir() as folder:
        path = recording(folder)

        def make():
            return etwatch.ETWConsumer(file=path)
        want = [event.as_dict() for event in make()]
        check_eq(len(want), EVENTS)
        check_eq([event.as_dict() for event in make().get_events()], want, "get_events")
        one, got = make(), []
        while (event := one.get_next_event(timeout=5)) is not None:
            got.append(event.as_dict())
        check_eq(got, want, "get_next_event")

        async def read():
            return [event.as_dict() async for event in make()]
        check_eq(asyncio.run(read()), want, "async for")
        handled = []
        consumer = make().start(lambda event: handled.append(event.as_dict()))
        check(consumer.wait(30), "the thread did not end")
        consumer.stop()
        check_eq(handled, want, "start")
        check_eq(make().open_file(path).on("*", handled.append).process(), EVENTS, "process")
        told = [json.loads(line) for line in run(["events", "--json", path]).out.splitlines()]
        check_eq([(o["t_ns"], o["event"], o["pid"], o["tid"], o["fields"]) for o in told if o["type"] == "event"],
                 [(o["t_ns"], o["event"], o["pid"], o["tid"], o["fields"]) for o in want], "events --json")


@test
def leaving_a_loop_and_mixing_ways_of_reading_lose_no_event():
    with temp_dir() as folder:
        path = recording(folder)
        want = [event.as_dict() for event in etwatch.ETWConsumer(file=path)]
        consumer, got = etwatch.ETWConsumer(file=path), []
        for event in consumer:
            got.append(event.as_dict())
            if len(got) == 10:
                break
        got += [consumer.get_next_event().as_dict() for _ in range(5)]
        got += [event.as_dict() for event, _ in zip(consumer, range(5))][:5]

        async def some(count):
            async for event in consumer:
                got.append(event.as_dict())
                if count is not None and len(got) >= count:
                    return
        asyncio.run(some(40))
        asyncio.run(some(None))
        # zip takes one more than it delivers
        check_eq(got, want[:20] + want[21:])


@test
def what_is_read_may_change_until_the_first_event():
    with temp_dir() as folder:
        path = recording(folder)
        with etwatch.ETWConsumer(file=path) as consumer:
            consumer.subscribe("Microsoft-Windows-Kernel-Thread").add_providers(["Microsoft-Windows-Kernel-Process"])
            types = {event.type for event in consumer}
        check("ThreadStart" in types and "ProcessStart" in types and "PageFault" not in types, types)
        with etwatch.ETWConsumer() as consumer:
            consumer.open_file(path)
            check_eq(sum(1 for _ in consumer), EVENTS)
            raises(etwatch.ETWSessionError, "already started", consumer.subscribe, "x")


@test
def handlers_may_be_added_after_the_start():
    with temp_dir() as folder:
        path = recording(folder)
        started, every = [], []
        consumer = etwatch.ETWConsumer(file=path).start()
        consumer.on("ThreadStart", started.append)
        check_eq(consumer.process(), EVENTS, "process waits for the thread")
        check(started and all(event.type == "ThreadStart" for event in started), repr(started))
        consumer = etwatch.ETWConsumer(file=path).start()
        consumer.on_event = every.append
        check(consumer.wait(30), "the thread did not end")
        check_eq(len(every), EVENTS)
        raises(TypeError, "on_event", setattr, consumer, "on_event", 7)


@test
def handlers_and_a_loop_do_not_share_the_events_in_silence():
    with temp_dir() as folder:
        go = threading.Event()
        consumer = etwatch.ETWConsumer(file=recording(folder)).start(lambda event: go.wait(30))
        raises(etwatch.ETWSessionError, "handlers", iter, consumer)
        raises(etwatch.ETWSessionError, "handlers", consumer.get_next_event)
        go.set()
        consumer.close()


@test
def a_consumer_that_is_closed_while_it_is_read_ends_there():
    with temp_dir() as folder:
        path = recording(folder)
        consumer = etwatch.ETWConsumer(file=path)
        for _ in consumer:
            consumer.close()
        check_eq((consumer.get_next_event(), list(consumer)), (None, []), "after the loop")
        consumer = etwatch.ETWConsumer(file=path)
        consumer.start(lambda event: consumer.close())
        check(consumer.wait(30), "the thread did not end")
        consumer.stop()  # raises what a handler raised

        async def read():
            other = etwatch.ETWConsumer(file=path)
            async for _ in other:
                other.close()
        asyncio.run(read())


@test
def an_event_has_the_figures_of_its_kind():
    class Rows(EventRows):
        """Of one event."""

        def __init__(self, event, **fields):  # pylint: disable=super-init-not-called
            self.tick_ns, self.percents, self.length = None, {}, 1
            self.event = self.event_words = [event]
            self.pid, self.tid, self.fields_of = [5], [5], lambda row: fields
    check_eq(ETWEvent(Rows("ProcessStop/Stop", ExitCode=3, CPUCycleCount=77), 0).cpu_cycles, 77)
    check_eq(ETWEvent(Rows("ThreadStop/Stop", CycleTime=88), 0).cpu_cycles, 88)
    check_eq(ETWEvent(Rows("PerfInfo/Sample"), 0).cpu_cycles, None)
    check_eq(ETWEvent(Rows("sched_process_exit", exit_code=0, exit_signal=9), 0).exit_code, -9)
    check_eq(ETWEvent(Rows("sched_process_exit", exit_code=4, exit_signal=0), 0).exit_code, 4)


@test
def filters_select_events():
    with temp_dir() as folder:
        path = recording(folder)

        def types(*arguments, **keywords):
            return sorted({event.type for event in etwatch.ETWConsumer(*arguments, file=path, **keywords)})
        check_eq(types(events="ThreadContextSwitch"), ["ThreadContextSwitch"])
        check_eq(types(events=["CSwitch", "Mem*"]), ["MemAlloc", "MemFree", "PageFault", "ThreadContextSwitch"])
        check_eq(types(events="Switch"), [], "a part of a name")
        check_eq(types("Microsoft-Windows-Kernel-Thread"),
                 ["Thread/DCStart", "ThreadContextSwitch", "ThreadStart", "ThreadStop"])
        check_eq(types("Microsoft-Windows-Kernel-Process"), ["ProcessStart"], "the provider itself, not the kernel")
        check_eq(types("Microsoft-Windows-Kernel-Network"), [], "a known provider without events")
        check_eq(types(names=["parent"]), ["Process/DCStart", "Thread/DCStart"])
        check_eq({event.process_id for event in etwatch.ETWConsumer(file=path, pids=[5000])}, {5000})
        check_eq({event.process_id for event in etwatch.ETWConsumer(file=path, pids=5000)}, {5000}, "a single pid")
        check_eq(types(names="parent"), ["Process/DCStart", "Thread/DCStart"], "a single name")
        check_eq({row["pid"] for row in etwatch.open(path, names="parent").processes}, {4000, 5000}, "of a recording")
        dxg = "Microsoft-Windows-DxgKrnl"
        ids = [event.id for event in etwatch.ETWConsumer(dxg, file=path)]
        check(len(set(ids)) > 1, repr(ids))
        some = etwatch.ETWProvider(dxg, ids=(ids[0],))
        check_eq([event.id for event in etwatch.ETWConsumer(some, file=path)], [one for one in ids if one == ids[0]])
        check_eq(list(etwatch.ETWConsumer(etwatch.ETWProvider(dxg, pids=(1,)), file=path)), [])


def columns(consumer):
    """(time, event, pid) of each row of its Arrow stream, without pyarrow."""
    table = etwatch.Table.from_stream(consumer._open_columns(False))  # pylint: disable=protected-access
    return list(zip(table["t_ns"], table["event"], table["pid"]))


@test
def columns_have_the_selected_events_as_objects_have():
    dxg, memory = "Microsoft-Windows-DxgKrnl", "Microsoft-Windows-Kernel-Memory"
    provider = etwatch.ETWProvider
    rows = [((), {}, EVENTS), (("Microsoft-Windows-Kernel-Thread",), {}, 13), (("CPU_SAMPLING",), {}, 20),
            ((), {"events": "ThreadContextSwitch"}, 10), ((), {"events": ["CSwitch", "Mem*"]}, 30), ((), {"pids": [5000]}, 76),
            ((), {"names": ["parent"]}, 2), ((provider(dxg, pids=(1,)),), {}, 0), ((provider(dxg, ids=(178,)),), {}, 5),
            ((provider(memory, pids=(5000,)),), {}, 20), ((provider(memory, pids=(4000,)),), {}, 0),
            (([dxg, "CPU_SAMPLING"],), {}, 30), (([dxg, "CPU_SAMPLING"],), {"events": "CPUSample", "pids": [5000]}, 20),
            ((provider("Windows Kernel", pids=(4000,)),), {"events": "Process/*"}, 1)]
    with temp_dir() as folder:
        path = recording(folder)
        for arguments, keywords, count in rows:
            def make(keywords=keywords, arguments=arguments):
                return etwatch.ETWConsumer(*arguments, file=path, **keywords)
            want = [(event.t_ns, event.event_name, event.pid) for event in make()]
            check_eq((arguments, keywords, len(want)), (arguments, keywords, count))
            check_eq(columns(make()), want, f"{arguments} {keywords}")


@test
def columns_of_live_events_are_selected_too():
    program = """
import etwatch
consumer = etwatch.ETWConsumer("NT Kernel Logger", events="PageFault", fields=False)
consumer.start()
import threading
threading.Timer(1.0, consumer.stop).start()
table = etwatch.Table.from_stream(consumer._open_columns(False))
print(*sorted(set(table["event"])), len(table))
"""
    with temp_dir() as folder:
        check_eq(lines_of(program, **emulated(recording(folder))),
                 ["Memory/DemandZeroFault Memory/HardFault 10"])
    need_ebpf()
    for wanted, first in (("ProcessStop", True), ("ThreadStop", False)):
        consumer = etwatch.ETWConsumer("NT Kernel Logger", events=wanted).start()
        for _ in range(3):
            subprocess.run([sys.executable, "-c", "import threading; threading.Thread(target=print).start()"], check=True,
                           stdout=subprocess.DEVNULL)
        consumer.stop()
        table = etwatch.Table.from_stream(consumer._open_columns(False))  # pylint: disable=protected-access
        check_eq(set(table["event"]), {"sched_process_exit"})
        check_eq({pid == tid for pid, tid in zip(table["pid"], table["tid"])}, {first}, wanted)


@test
def the_interval_of_cpu_samples_is_known_whatever_is_selected():
    with temp_dir() as folder:
        path = recording(folder, "consumers_2ms")
        want = [event.cpu_percent for event in etwatch.ETWConsumer(file=path) if event.type == "CPUSample"]
        check_eq(want[:3], [2.0, 4.0, 6.0], "samples every 2 ms")
        for keywords in ({"events": "CPUSample"}, {"pids": [5000]}):
            got = [event.cpu_percent for event in etwatch.ETWConsumer(file=path, **keywords) if event.type == "CPUSample"]
            check_eq(got, want, str(keywords))
        program = """
import etwatch
consumer = etwatch.ETWConsumer("NT Kernel Logger", events="CPUSample")
consumer.on_event = lambda event: print(event.cpu_percent)
""" + LIVE
        check_eq([float(line) for line in lines_of(program, **emulated(path))], want)


@test
def a_filter_that_cannot_be_applied_gives_a_warning():
    with temp_dir() as folder:
        provider = etwatch.ETWProvider("Microsoft-Windows-DxgKrnl", level=4, keywords=1, ids=(1,))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            etwatch.ETWConsumer(provider, file=recording(folder), cpu_sampling_hz=100).start()
    check_eq([" ".join(str(one.message).split(":")[:2]) for one in caught],
             ["Microsoft-Windows-DxgKrnl  level", "Microsoft-Windows-DxgKrnl  keywords",
              "cpu_sampling_hz  a rate of a live ETW session, and this is a recording"])


# Consumers of an emulated Windows: the program that makes one, the keys of its warnings, and whether it has events.
ON_WINDOWS = [
    ("events of the kernel follow the filter", "ETWConsumer('NT Kernel Logger', events='PageFault')", [], 10),
    ("and the handlers", "ETWConsumer('NT Kernel Logger').on('MemAlloc', print)", [], None),
    ("of another provider", "ETWConsumer('Microsoft-Windows-Kernel-Process').on('CPUSample', print)", ["CPUSample"], 1),
    ("a provider by its GUID", "ETWConsumer('{802ec45a-1e99-4b83-9920-87c98277ba9d}')", [], 10),
    ("a session that does not run", "ETWConsumer(session='NT Kernel Logger', events='ProcessStart')", ["session"], 1),
    ("filters of a provider, of the kernel's", "ETWConsumer(ETWProvider('CPU_SAMPLING', level=3, ids=(1,)))",
     ["CPU_SAMPLING  ids", "CPU_SAMPLING  level"], 20),
    ("handlers after the start", "ETWConsumer().start().on('PageFault', id).on('ProcessStart', id)", ["PageFault"], None),
    ("a provider that is not known", "ETWConsumer('Emulated-Provider').on('ProcessStart', print)", [], None),
]


@test
def a_session_has_the_events_that_handlers_and_filters_name_or_a_warning():
    program = """
import warnings
from etwatch import ETWConsumer, ETWProvider
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with MAKE as consumer:
        consumer._open()
        count = 0
        while not consumer._started and consumer.get_next_event(timeout=0.7) is not None:
            count += 1
print(count)
for one in caught: print(str(one.message))
"""
    with temp_dir() as folder:
        path = recording(folder)
        for remark, make, keys, count in ON_WINDOWS:
            got, *texts = lines_of(program.replace("MAKE", make), **emulated(path))
            check_eq([" ".join(text.split(":")[:2 if "Provider(" in make else 1]) for text in texts], keys, remark)
            check(count is None or int(got) == count, f"{remark}: {got} events")


@test
def a_session_of_another_program_is_read_with_the_filters_of_the_library():
    program = """
import warnings
from etwatch import ETWConsumer, ETWProvider
warnings.simplefilter("always")
with warnings.catch_warnings(record=True) as caught:
    provider = ETWProvider("Microsoft-Windows-Kernel-Thread", level=4, keywords=1, pids=(5000,))
    with ETWConsumer(provider, session="NT Kernel Logger", cpu_sampling_hz=100).on("PageFault", print) as consumer:
        found = []  # a foreign session is flushed when its owner set it
        while len(found) < 7 and (event := consumer.get_next_event(timeout=20)) is not None:
            found.append((event.event_name.split("/")[0], event.process_id))
print(*sorted(set(found)))
for one in caught: print(*str(one.message).split(":")[:2])
try: ETWConsumer(session="Nothing").start()
except Exception as error: print(type(error).__name__, error)
"""
    with temp_dir() as folder:
        lines = lines_of(program, **emulated(recording(folder) + ",logger"))
    check_eq(lines[0], "('Thread', 5000)")
    provider = "Microsoft-Windows-Kernel-Thread"
    check_eq([line.strip() for line in lines[1:5]], [
        f"{provider}  level", f"{provider}  keywords",
        "cpu_sampling_hz  a rate of a live ETW session, and a session that another program started is read as it is",
        "PageFault  no event can match"])
    # Of a provider that Windows would filter the library applies what it can, but only to a session of another program.
    consumer = etwatch.ETWConsumer(etwatch.ETWProvider("Microsoft-Windows-DxgKrnl", pids=(7,), ids=(178,)))
    check_eq([(one.provider, one.pids, one.ids) for foreign in (True, False) for one in consumer._provider_filters(foreign)],
             [("Microsoft-Windows-DxgKrnl", (7,), (178,)), ("Microsoft-Windows-DxgKrnl", (), ())])
    lines.pop(1)
    check(lines[4].startswith("ETWSessionError session 'Nothing' is not running"), lines[4])
    check_in("logman start", lines[4])


@test
def a_filter_by_type_selects_processes_or_threads():
    need_ebpf()
    for wanted in ("ProcessStart", "ThreadStart", "ProcessStop"):
        with etwatch.ETWConsumer("NT Kernel Logger", events=wanted) as consumer:
            subprocess.run([sys.executable, "-c", "import threading; threading.Thread(target=print).start()"], check=True,
                           stdout=subprocess.DEVNULL)
            check_eq(next(iter(consumer)).type, wanted)


@test
def an_unknown_provider_raises_with_near_names():
    with temp_dir() as folder:
        path = recording(folder)
        raises(etwatch.ETWProviderError, "Microsoft-Windows-DxgKrnl",
               etwatch.ETWConsumer("Microsoft-Windows-DxgKrnel", file=path).start)
        program = """
import etwatch
try: etwatch.ETWConsumer("Emulated-Provder").start()
except etwatch.ETWProviderError as error: print(error)
"""
        check_in("not registered", lines_of(program, **emulated(path))[0])
    raises(etwatch.ETWProviderError, "switches and wake-ups", etwatch.ETWConsumer("CPU_SAMPLING").start)
    raises(etwatch.ETWProviderError, "Windows only", etwatch.ETWConsumer("Microsoft-Windows-DxgKrnl").start)
    raises(etwatch.ETWProviderError, "Kernel-Process", etwatch.ETWConsumer("Microsoft-Windows-Kernel-Proces").start)
    raises(etwatch.ETWProviderError, "Windows only", etwatch.ETWConsumer(session="Other Logger").start)
    raises(etwatch.ETWProviderError, "PageFault", etwatch.ETWConsumer("Microsoft-Windows-Kernel-Memory").start)
    raises(etwatch.ETWProviderError, "no live ImageLoad", etwatch.ETWConsumer().on("ImageLoad", print).start)
    raises(etwatch.ETWProviderError, "type or name 'ProcesStart'", etwatch.ETWConsumer().on("ProcesStart", print).start)
    raises(FileNotFoundError, "no such", etwatch.ETWConsumer(file="/no such file.etl").start)


@test
def command_lines_are_withheld_unless_requested():
    with temp_dir() as folder:
        path = recording(folder)
        for shown, want in ((False, None), (True, "child.exe --fast")):
            (event,) = [e for e in etwatch.ETWConsumer(file=path, command_lines=shown)
                        if e.type == "ProcessStart" and "CommandLine" in e.fields]
            check_eq(event.command_line, want)


@test
def batches_are_arrow():
    need("pyarrow")
    program = """
import etwatch
for fields, typed, events in ((None, False, None), (True, False, None), (False, False, None), (None, True, "CSwitch")):
    rows = names = 0
    for batch in etwatch.ETWConsumer(file=PATH, fields=fields, events=events).batches(typed=typed):
        rows += batch.num_rows
        names = batch.schema.names
    print(rows, *names)
print(next(etwatch.ETWConsumer(file=PATH, fields=True).batches()).column("fields")[0].as_py()[:1])
"""
    columns = "t_ns cpu pid tid name provider event id opcode version header_pid header_tid state"
    with temp_dir() as folder:
        result = run(["-c", program.replace("PATH", repr(recording(folder)))], program=python(),
                     env={**os.environ, "PYTHONPATH": PACKAGE})
        check_eq(result.code, 0, result.err)
        lines = result.out.splitlines()
    check_eq(lines[:3], [f"{EVENTS} {columns}", f"{EVENTS} {columns} fields", f"{EVENTS} {columns}"])
    check(lines[3].startswith(f"10 {columns} NewThreadId OldThreadId"), lines[3])
    check_eq(lines[4], "{")
    if sys.platform != "win32":
        need_ebpf()
        raises(ValueError, "typed", etwatch.ETWConsumer("NT Kernel Logger")._open_columns, True)


@test
def the_kernels_events_come_live_on_linux():
    need_ebpf()
    seen = []
    with etwatch.ETWConsumer("Microsoft-Windows-Kernel-Process") as consumer:
        consumer.start(seen.append)
        child = subprocess.Popen([sys.executable, "-c", "import os; os._exit(7)"])
        child.wait()
        consumer.stop()
        events = [event for event in seen if event.process_id == child.pid]
    check_eq([event.type for event in events if event.type != "ThreadStop"],
             ["ProcessStart", "ProcessExec", "ProcessStop"])
    check_eq(events[0].parent_process_id, os.getpid())
    check_eq(events[-1].exit_code, 7)
    check(events[0].timestamp < events[-1].timestamp, "times")
    check_eq(consumer.stats["lost"], 0)
    with etwatch.ETWConsumer("Microsoft-Windows-Kernel-Thread") as consumer:
        switch = next(event for event in consumer if event.type == "ThreadContextSwitch")
        check_eq(switch.new_thread_id, switch.thread_id)
        check(switch.old_thread_id is not None and switch.old_thread_id != switch.new_thread_id, repr(switch.fields))
        check_between(consumer.get_cpu(), 0, 100, "CPU of the machine")


@test
def the_providers_select_the_events_of_a_session_on_linux_too():
    need_ebpf()
    process = "Microsoft-Windows-Kernel-Process"
    with etwatch.ETWConsumer(session="NT Kernel Logger", providers=[process]) as consumer:
        subprocess.run(["/bin/true"], check=True)
        consumer.stop()
        types = {event.type for event in consumer}
    check("ProcessStart" in types and types <= {"ProcessStart", "ProcessExec", "ProcessStop", "ThreadStart", "ThreadStop"},
          str(types))


@test
def no_event_is_missed_from_the_beginning_of_a_with_block():
    need_ebpf()
    with etwatch.ETWConsumer(["Microsoft-Windows-Kernel-Process"]) as consumer:
        child = subprocess.Popen(["sleep", "100"])
        child.kill()
        child.wait()
        seen = []
        for event in consumer:
            if event.process_id == child.pid:
                seen.append(event.type)
                if event.type == "ProcessStop":
                    break
        check_eq(event.exit_code, -9)
    check_eq((seen[0], seen[-1]), ("ProcessStart", "ProcessStop"))

    async def read():
        async with etwatch.ETWConsumer("NT Kernel Logger") as consumer:
            other = subprocess.Popen([sys.executable, "-c", "pass"])
            other.wait()
            async for event in consumer:
                if event.process_id == other.pid and event.type == "ProcessStop":
                    return event.exit_code
    check_eq(asyncio.run(asyncio.wait_for(read(), 60)), 0)


@test
def both_processes_of_a_switch_are_selected_by_pid():
    need_ebpf()
    child = start(["-c", "import time\nwhile True: time.sleep(0.001)"], program=sys.executable)
    names = set()
    with etwatch.ETWConsumer(session="NT Kernel Logger", events="ThreadContextSwitch", pids=[child.pid]) as consumer:
        deadline = time.monotonic() + 30
        while names != {True, False} and time.monotonic() < deadline:
            event = consumer.get_next_event(timeout=1)
            if event is not None:
                names.add(event.process_id == child.pid)
                check(child.pid in (event.process_id, event.old_thread_id), repr(event.fields))
    check_eq(names, {True, False}, "switches to it, and away from it")


@test
def a_handler_that_cannot_be_called_gives_a_warning():
    need_ebpf()
    consumer = etwatch.ETWConsumer().on("ProcessStart", print).on("ImageLoad", print).on("Nothing", print)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        consumer.start()
    consumer.close()
    check_eq([str(one.message).split(":")[0] for one in caught], ["ImageLoad", "Nothing"])
    check_eq({one.filename for one in caught}, {__file__})


@test
def wrong_arguments_are_refused():
    raises(TypeError, "function", etwatch.ETWConsumer().on, "ProcessStart", 7)
    raises((TypeError, ValueError), "pids", etwatch.ETWConsumer, pids=[-1])
    raises(TypeError, "pids: a set is needed", etwatch.ETWConsumer, pids="python")
    raises(TypeError, "names: a set is needed", etwatch.ETWConsumer, names=7)
    raises(ValueError, "level 0 255", etwatch.ETWProvider, "x", level=300)
    raises(TypeError, "ids: a set is needed", etwatch.ETWProvider, "x", ids=7)
    raises((TypeError, ValueError), "provider", etwatch.ETWConsumer, 7)
    with temp_dir() as folder:
        consumer = etwatch.ETWConsumer(file=recording(folder)).start()
        raises(etwatch.ETWSessionError, "already started", consumer.add_provider, "x")
        consumer.close()
        raises(etwatch.ETWSessionError, "stopped", consumer.start)
        consumer = etwatch.ETWConsumer(file=recording(folder)).start()
        consumer.stop()
        raises(etwatch.ETWSessionError, "stopped", consumer.start, print)


if __name__ == "__main__":
    main()
