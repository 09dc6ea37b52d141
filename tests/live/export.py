# SPDX-License-Identifier: MIT
"""What was recorded on the running kernel, exported: the same as the other commands say about the file."""
import collections
import json
import os

from lib import check, check_eq, check_in, json_lines, main, need_ebpf, run, temp_dir, test

WORK = "import time\nfor i in range(40):\n    time.sleep(0.005)\n    sum(range(20000))"


@test
def a_recorded_trace_is_exported_as_it_is_reported():
    need_ebpf()
    with temp_dir() as folder:
        path = os.path.join(folder, "run.pftrace")
        done = run(["record", "-q", "-o", path, "--", "python3", "-c", WORK])
        check_eq(done.code, 0, f"exit code of record ({done.err})")
        events = run(["events", "--json", path]).out
        check_eq(run(["export", "-q", path, "-f", "jsonl"]).out, events, "events")
        counts = collections.Counter(o["event"] for o in json_lines(events))
        check(counts["sched_switch"] > 40, f"switches: {counts}")
        processes = [o for o in json_lines(run(["report", "--json", path]).out) if o["type"] == "process"]
        found = json_lines(run(["export", "-q", path, "-f", "jsonl", "--table", "processes"]).out)
        check_eq([(o["pid"], o["cpu_ns"]) for o in found], [(o["pid"], o["cpu_ns"]) for o in processes], "processes")
        samples = json_lines(run(["export", "-q", path, "-f", "jsonl", "--table", "samples"]).out)
        check_eq(len(samples), counts["sample"], "samples")
        chrome = json.loads(run(["export", "-q", path, "-f", "chrome"]).out)
        slices = [e for e in chrome["traceEvents"] if e["ph"] == "X"]
        check(all(e["dur"] >= 0 for e in slices) and len(slices) > 20, f"{len(slices)} slices")
        names = {e["args"]["name"] for e in chrome["traceEvents"] if e["name"] == "process_name"}
        check(any(name.startswith("python") for name in names), f"names: {names}")
        for format_name, words in (("folded", "no profile samples"), ("perfetto", "already")):
            refused = run(["export", "-q", path, "-f", format_name])
            check_eq((refused.code, refused.out), (1, ""), f"exit code and output of {format_name}")
            check_in(words, refused.err, format_name)


main()
