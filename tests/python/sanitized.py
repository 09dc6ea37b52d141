# SPDX-License-Identifier: MIT
"""The boundary to C under the address sanitizer: every kind of call, once."""
import os

from etlkit import make_etl
from lib import BUILD, ROOT, check_eq, main, skip, temp_dir, test
from toolkit import sanitized, snippet


def asan_build():
    for folder in (BUILD, os.path.join(ROOT, "build-address-undefined"), os.path.join(ROOT, "build-address")):
        options = os.path.join(folder, "meson-info", "intro-buildoptions.json")
        if os.path.exists(options):
            with open(options, encoding="utf-8") as file:
                if '"b_sanitize", "value": "address' in file.read():
                    return folder
    return skip("no build with the address sanitizer: ./dev sanitize address")


def runs(code, *arguments):
    result = snippet(code, *arguments, options=("-X", "dev", "-X", "faulthandler"), timeout=110,
                     **sanitized(asan_build()))
    if "it was built from other sources than this package" in result.err:
        skip("the build with the address sanitizer is older than the package")
    check_eq(result.code, 0, result.out[-2000:] + result.err[-4000:])


@test
def a_process_is_read():
    runs("""
import etwatch, os
p = etwatch.Process()
p.as_dict(), p.threads(), p.children(True), etwatch.pids()
try:
    etwatch.Process(4194304)
except etwatch.NoSuchProcess:
    pass
""")


@test
def a_run_and_its_tables_are_clean():
    runs("""
import etwatch, gc
result = etwatch.run(["sh", "-c", "true; for i in 1 2 3; do true; done"], hz=1000)
assert result.status == 0 and len(result.processes) >= 1
kept = result.samples
kept.to_dict(), list(result.thread_samples), result._repr_html_()
capsule = kept.__arrow_c_stream__()
del result
gc.collect()
assert len(kept) >= 0
del capsule, kept
gc.collect()
""")


@test
def the_old_monitor_and_its_callbacks_are_clean():
    runs("""
import etwatch, time
monitor = etwatch.ETWMonitor(etwatch.ETWMonitorConfig(sampling_rate_hz=200))
seen = []
monitor.register_callback(seen.append)
monitor.register_batch_callback(lambda samples: seen.extend(samples))
monitor.start_monitoring()
time.sleep(0.6)
monitor.collect_metrics(), monitor.get_process_metrics(), monitor.get_process_summary(), monitor.get_statistics()
monitor.cleanup()
monitor.cleanup()
assert seen
""")


@test
def a_recording_read_to_the_end_and_abandoned_in_the_middle_is_clean():
    with temp_dir() as folder:
        path = os.path.join(folder, "t.etl")
        make_etl("switches", path, "--events", 5000)
        runs("""
import etwatch, gc, sys
trace = etwatch.open(sys.argv[1])
assert len(trace.processes) and len(trace.threads) and len(trace.samples(hz=100))
assert sum(1 for event in trace.events()) > 5000
rows = trace.event_table().rows()
next(rows)
del trace
gc.collect()
next(rows)
del rows
gc.collect()
""", path)


main()
