# SPDX-License-Identifier: MIT
"""A recording of the running kernel, exported: it agrees with what the other commands report for the file."""
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


def pids_of(path, *options):
    """The processes reported with these options: by the report, in slices, in samples, and as outgoing or incoming
    thread."""
    def objects(*arguments):
        return json_lines(run([*arguments, *options, path]).out)
    reported = {o["pid"] for o in objects("report", "--json") if o["type"] == "process"}
    chrome = json.loads(run(["export", "-q", *options, path, "-f", "chrome"]).out)
    slices = {e["pid"] for e in chrome["traceEvents"] if e["ph"] == "X"}
    samples = {o["pid"] for o in objects("export", "-q", "-f", "jsonl", "--table", "samples")}
    events = [o for o in objects("events", "--json") if o["event"] == "sched_switch"]
    return reported, slices, samples, events


@test
def a_selected_process_includes_its_threads_and_descendants():
    need_ebpf()
    script = "import subprocess, threading\nt = threading.Thread(target=sum, args=(range(300000),))\nt.start()\nt.join()\n" \
             "subprocess.run(['sh', '-c', 'true; sleep 0.05; true'])"
    with temp_dir() as folder:
        path = os.path.join(folder, "run.pftrace")
        done = run(["record", "-q", "--hz", "100", "-o", path, "--", "sh", "-c", f'python3 -c "{script}"; sleep 0.05'])
        check_eq(done.code, 0, f"exit code of record ({done.err})")
        every = {o["pid"]: o for o in json_lines(run(["report", "--json", path]).out) if o["type"] == "process"}
        python = [pid for pid, o in every.items() if o["name"].startswith("python")]
        check_eq(len(python), 1, f"processes of python in {every}")
        family = {pid for pid, o in every.items() if pid in python or o["ppid"] in python}
        family |= {pid for pid, o in every.items() if o["ppid"] in family}
        check(2 < len(family) < len(every), f"{len(family)} of {len(every)}")
        reported, slices, samples, events = pids_of(path, "-p", str(python[0]))
        check_eq((reported, slices), (family, family), "by the report and by the scheduling")
        # Processes that were not watched are known only by the names of their threads: others may have the same
        # names.
        reported, slices, _, _ = pids_of(path, "-n", "python3")
        check_eq((reported, slices & set(every)), (family, family), "by name")
        check(samples <= family and samples, f"samples: {samples}")
        tids = {e["tid"] for e in json.loads(run(["export", "-q", path, "-f", "chrome"]).out)["traceEvents"]
                if e["ph"] == "X" and e["pid"] in family}
        check_eq([o for o in events if not {o["tid"], o["fields"]["next_pid"]} & tids], [], "switches of others")
        reported, slices, _, _ = pids_of(path, "-p", str(python[0]), "--exclude-name", "python3")
        check_eq((reported, slices), (family - set(python), family - set(python)), "without itself")


main()
