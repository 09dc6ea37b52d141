# SPDX-License-Identifier: MIT
"""Every form of ETWConsumer in section 3, on the recording that is the first argument."""
import asyncio
import sys
from typing import Any, List, Optional

from etwatch import ETWConsumer, ETWEvent, ETWProviderError

path = sys.argv[1]
seen: List[str] = []


def handler(event: ETWEvent) -> None:
    seen.append(event.type)


# Construction.
ETWConsumer()
ETWConsumer("Microsoft-Windows-Kernel-Process")
ETWConsumer(session="NT Kernel Logger", providers=["Microsoft-Windows-Kernel-Process"])
ETWConsumer(file=path)
ETWConsumer().open_realtime_session("NT Kernel Logger")

# Providers and handlers.
consumer = ETWConsumer()
consumer.open_file(path)
consumer.subscribe("Microsoft-Windows-Kernel-Process")
consumer.subscribe(["Microsoft-Windows-Kernel-Thread"])
consumer.add_provider("Microsoft-Windows-Kernel-Memory")
consumer.add_providers(["Microsoft-Windows-Kernel-Processor", "CPU_SAMPLING"])
consumer.on("ProcessStart", handler)
consumer.start()
consumer.wait()
consumer.stop()
print("handlers", seen.count("ProcessStart") == len(seen) > 0)

seen.clear()
consumer = ETWConsumer(file=path)
consumer.on_event = handler
consumer.process()
print("on_event", len(seen))
seen.clear()
consumer = ETWConsumer(file=path)
consumer.start(handler)
consumer.wait()
consumer.stop()
print("start", len(seen))

# Loops.
with ETWConsumer(file=path) as consumer:
    print("for", sum(1 for event in consumer))
with ETWConsumer(file=path) as consumer:
    print("get_events", len(list(consumer.get_events())))
with ETWConsumer(file=path) as consumer:
    count = 0
    event: Optional[ETWEvent] = consumer.get_next_event(timeout=5.0)
    while event is not None:
        count += 1
        event = consumer.get_next_event(timeout=5.0)
    print("get_next_event", count)


async def read() -> int:
    number = 0
    async with ETWConsumer(file=path) as asynchronous:
        async for _ in asynchronous:
            number += 1
    return number


print("async for", asyncio.run(read()))
print("get_cpu", 0.0 <= ETWConsumer().get_cpu() <= 100.0)

# The attributes of an event.
found: List[Any] = []
for one in ETWConsumer(file=path):
    assert one.provider == one.provider_name and one.timestamp > 0 and one.cpu >= 0, one
    assert isinstance(one.fields, dict) and one.event_name and one.opcode >= 0 and one.id >= 0
    assert one.a_field_that_no_event_has is None
    if one.type == "ProcessStart":
        found.append(("start", one.process_id, one.parent_process_id, one.process_name, one.exit_code, one.cpu_cycles))
    elif one.type == "PageFault":
        found.append(("fault", one.thread_id is not None, one.virtual_address is not None, one.fault_type is not None))
    elif one.type == "MemAlloc":
        found.append(("alloc", one.base_address is not None, one.allocation_size))
    elif one.type == "CPUSample":
        found.append(("sample", one.cpu_percent is not None, one.cpu_cycles))
    elif one.type == "ThreadContextSwitch":
        found.append(("switch", one.old_thread_id is not None, one.new_thread_id is not None))
for fact in sorted(set(found), key=repr):
    print(*fact)

try:
    ETWConsumer("Microsoft-Windows-Kernel-Proces", file=path).start()
except ETWProviderError as error:
    print("near", "Microsoft-Windows-Kernel-Process" in str(error))
