# SPDX-License-Identifier: MIT
"""A Python process that watches through the package in the usual way. Prints JSON on SIGTERM.

  bare              nothing: the cost of the interpreter itself
  batch HZ          every process, a batch callback that adds up a column
  one HZ PID...     these processes, the callback of the old interface, one sample at a time
  polars FILE [fields]   not until SIGTERM: every event of a recording as a polars table, and how long it took
"""
import json
import resource
import signal
import sys
import threading
import time

stopped = threading.Event()


def monitor(hz, pids, callback, batches):
    import etwatch
    config = etwatch.ETWMonitorConfig(sampling_rate_hz=hz, overhead_limit=100.0, buffer_size=10000)
    watched = etwatch.ETWMonitor(config)
    for pid in pids:
        watched.add_process(pid)
    (watched.register_batch_callback if batches else watched.register_callback)(callback)
    watched.start_monitoring()
    print("ready", flush=True)
    stopped.wait()
    watched.stop_monitoring()  # deliver pending samples: every interval counts
    statistics = watched.get_statistics()
    watched.cleanup()
    return statistics


def batch(hz):
    total = [0, 0]

    def add(samples):
        rows = samples.samples
        total[0] += len(rows)
        total[1] += sum(filter(None, rows.column("cpu_ns")))
    statistics = monitor(hz, (), add, True)
    return {"samples": total[0], "cpu_ns": total[1], "statistics": statistics}


def one(hz, pids):
    total = [0, 0.0]

    def add(sample):
        total[0] += 1
        if sample.metric_name == "process_cpu_percent":
            total[1] = max(total[1], sample.value)
    statistics = monitor(hz, pids, add, False)
    return {"samples": total[0], "statistics": statistics}


def polars(path, fields=""):
    import etwatch
    import polars as pl
    pl.DataFrame({"a": [1]})  # its own threads exist before
    begin = time.perf_counter()
    frame = etwatch.open(path).event_table(fields=bool(fields)).to_polars()
    took = time.perf_counter() - begin
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"events": frame.height, "seconds": took, "peak_mb": peak_mb}


def consumer(path, how):
    """Events a second as Arrow batches (without fields, with fields as JSON text, of one kind with typed fields), as objects
    with four attributes, or with their fields."""
    import etwatch
    from etwatch import _arrow
    count = 0
    begin = time.perf_counter()
    if how.startswith("arrow"):
        fields, events = (True if how == "arrow_json" else None), ("ThreadContextSwitch" if how == "arrow_typed" else None)
        source = etwatch.ETWConsumer(file=path, fields=fields, events=events)
        for batch in _arrow.Stream(source._open_columns(how == "arrow_typed")):
            count += len(batch)
    else:
        for event in etwatch.ETWConsumer(file=path):
            count += 1
            if how == "fields":
                _ = event.fields
            else:
                _ = event.type, event.timestamp, event.process_id, event.thread_id
    return {"events": count, "seconds": time.perf_counter() - begin}


def main():
    signal.signal(signal.SIGTERM, lambda _number, _frame: stopped.set())
    mode, *rest = sys.argv[1:]
    if mode == "bare":
        print("ready", flush=True)
        stopped.wait()
        out = {}
    elif mode == "batch":
        out = batch(float(rest[0]))
    elif mode == "one":
        out = one(float(rest[0]), [int(pid) for pid in rest[1:]])
    elif mode == "consumer":
        out = consumer(*rest)
    else:
        out = polars(*rest)
    print(json.dumps(out, default=str), flush=True)


if __name__ == "__main__":
    main()
