# SPDX-License-Identifier: MIT
"""What serve shows on demand and from recordings: scheduling, stacks, devices, Perfetto traces."""
import json
import os
import sys

from etlkit import corpus, make_etl
from lib import BUILD, check, check_eq, check_in, json_lines, main, need_ebpf, run, skip, start, temp_dir, test
from servekit import need_serve, samples, serve, wait_for

RUN, READY = 0, 1
# Two threads that never wait, on one CPU.
RIVALS = """if True:
    import os, threading, time
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    end = time.time() + 60
    def work():
        while time.time() < end: pass
    threading.Thread(target=work).start()
    work()
"""


def schedule(server, process, query):
    """The strip, once it is there."""
    def read():
        got = server.json(f"/api/v1/processes/{process}/schedule?{query}")
        return got if got["stage"] == "unavailable" or (got["threads"] and got["stage"] in ("live", "read")) else None
    return wait_for("the scheduling of the process", read)


def of_kind(thread, kind):
    return [i for i in thread["intervals"] if i[0] == kind]


def id_of(server, pid):
    found = [p["id"] for p in server.json("/api/v1/processes?exited=1")["processes"] if p["pid"] == pid]
    return found[0] if found else None


@test
def the_scheduler_is_read_only_while_a_client_looks():
    need_ebpf()
    server = serve("--hz", "10", source=None)
    rivals = start(["-c", RIVALS], program=sys.executable)
    process = wait_for("the process", lambda: id_of(server, rivals.pid))
    helper = server.children()["etwatch-details"]

    def readers():
        with open(f"/proc/{helper}/task/{helper}/children", encoding="ascii") as file:
            return file.read().split()
    check_eq(readers(), [], "processes that read the scheduler before a client asks")
    def rivalry():
        strip = schedule(server, process, "from=-1000")
        tids = {thread["tid"] for thread in strip["threads"]}
        return strip if tids & {c["tid"] for c in strip["preempted_by"]} else None
    got = wait_for("a thread that took the CPU from the other", rivalry, seconds=60)
    check_eq(len(readers()), 1, "processes that read the scheduler")
    span_us = (got["to_ms"] - got["from_ms"]) * 1000
    tids = {thread["tid"] for thread in got["threads"]}
    check_in(rivals.pid, tids, "threads")
    ran = sum(i[2] for thread in got["threads"] for i in of_kind(thread, RUN))
    # Both are on one CPU: they cannot run longer than the time that passed.
    check(0 < ran <= span_us * 1.001, f"ran {ran} us in {span_us} us")
    check(all(0 <= i[1] and i[1] + i[2] <= span_us + 1 for thread in got["threads"] for i in thread["intervals"]),
          "an interval outside of the range")
    wait_for("the end of reading", lambda: not readers())
    rivals.kill()
    rivals.wait()


@test
def without_details_no_process_keeps_its_rights():
    server = serve("--no-details")
    check_eq(list(server.children()), ["etwatch-http"], "processes")
    check_eq(server.json("/api/v1/meta")["details"], False, "details")
    process = wait_for("a process", lambda: id_of(server, os.getpid()))
    check_eq(server.get(f"/api/v1/processes/{process}/schedule")[0], 404, "status")


@test
def the_end_of_the_process_for_details_does_not_end_serving():
    server = serve()
    os.kill(server.children()["etwatch-details"], 9)
    wait_for("the end of details", lambda: not server.json("/api/v1/meta")["details"])
    check_eq(server.get("/healthz")[0], 200, "status")


@test
def details_that_cannot_be_had_say_why():
    server = serve()  # polling
    process = wait_for("a process", lambda: id_of(server, os.getpid()))
    base = f"/api/v1/processes/{process}"
    status, _, body = server.get(base + "/stacks")
    check_eq(status, 404, "stacks of a live process: status")
    check_in("recordings", json.loads(body)["error"])
    for query in ("from=x", "from=-10&to=-20", "step=1"):
        check_eq(server.get(f"{base}/schedule?{query}")[0], 400, query)


@test
def the_strip_of_a_recording_equals_its_waits():
    need_serve()
    with temp_dir() as folder:
        path = os.path.join(folder, "x.etl")
        make_etl("switches", path)
        waits = [o for o in json_lines(run(["waits", "--json", "-q", path]).out) if o["type"] == "waits" and o["pid"]]
        server = serve(path, source=None)
        wait_for("the recording", lambda: server.json("/api/v1/meta")["ended"])
        processes = {p["pid"]: p["id"] for p in server.json("/api/v1/processes?exited=1")["processes"]}
        most = max((o for o in waits if o["pid"] in processes), key=lambda o: o["run_ns"])
        meta = server.json("/api/v1/meta")
        got = schedule(server, processes[most["pid"]],
                       f"from={int(meta['first_ms']) - 2000}&to={int(meta['now_ms']) + 2000}")
        check_eq(got["stage"], "read", "stage")
        thread = next(t for t in got["threads"] if t["tid"] == most["tid"])
        ran_us = sum(i[2] for i in of_kind(thread, RUN))
        # After its last switch the thread may run on: the recording ends there, the strip does not.
        last = thread["intervals"][-1]
        open_us = last[2] if last[0] == RUN else 0
        check(most["run_ns"] / 1000 - open_us - 1 <= ran_us <= most["run_ns"] / 1000 + open_us + 1,
              f"{ran_us} us in the strip, {most['run_ns']} ns in waits")


@test
def a_perfetto_trace_is_shown_as_it_was_recorded():
    need_serve()
    with temp_dir() as folder:
        path = os.path.join(folder, "x.pftrace")
        made = run(["record", "-o", path, "--source", "poll", "--hz", "20", "--", sys.executable, "-c",
                    "import time; end = time.process_time() + 1\nwhile time.process_time() < end: pass"])
        check_eq(made.code, 0, made.err)
        total = [o for o in json_lines(run(["report", "--json", path]).out) if o.get("cpu_ns")][0]
        server = serve(path, source=None)
        wait_for("the recording", lambda: server.json("/api/v1/meta")["ended"])
        meta = server.json("/api/v1/meta")
        check_eq((meta["recorded"], meta["source"]), (True, "poll"), "source")
        process = id_of(server, total["pid"])
        page = server.json(f"/api/v1/processes/{process}")
        check_eq(page["totals"]["cpu_ns"], total["cpu_ns"], "CPU time")
        check("cmdline" not in page, "a command line without --cmdline")
        history = server.json(f"/api/v1/processes/{process}/history?metrics=cpu_ns&from={int(meta['first_ms'])}")
        check(any((v or 0) > 0 for v in history["series"]["cpu_ns"]), "history")


@test
def alerts_of_a_perfetto_trace_are_shown_as_they_were_reported():
    need_serve()
    with temp_dir() as folder:
        path = os.path.join(folder, "x.pftrace")
        code = "import time; end = time.process_time() + 1\nwhile time.process_time() < end: pass"
        made = run(["record", "-o", path, "--source", "poll", "--hz", "20", "--alert", "cpu_percent>5 for 100ms", "--",
                    sys.executable, "-c", code])
        check_eq(made.code, 0, made.err)
        reported = [line for line in made.err.splitlines() if "alert: " in line]
        check(reported, f"an alert: {made.err}")
        server = serve(path, source=None)
        wait_for("the recording", lambda: server.json("/api/v1/meta")["ended"])
        alerts = server.json("/api/v1/alerts")["alerts"]
        check_eq(len(alerts), len(reported), f"alerts: {alerts}")
        processes = {p["id"]: p for p in server.json("/api/v1/processes?exited=1")["processes"]}
        for alert, line in zip(alerts, reported):
            check_in(alert["id"], processes, "process of the alert")
            check_eq((alert["metric"], alert["condition"]), ("cpu_percent", "cpu_percent>5 for 100ms"), "condition")
            # Threads are not in the trace.
            check_eq(alert["text"], line.split("alert: ")[1].split("; threads: ")[0], "text")
        events = [o for o in json_lines(run(["events", "--json", "-q", path]).out) if o.get("event") == "alert"]
        check_eq(len(events), len(alerts), "alerts in etwatch events")
        check(all(e["fields"]["condition"] == "cpu_percent>5 for 100ms" for e in events), f"fields: {events[0]}")


@test
def a_trace_of_another_program_is_refused():
    need_serve()
    with temp_dir() as folder:
        path = os.path.join(folder, "x.pftrace")
        with open(path, "wb") as file:
            file.write(b"\x0a\x02\x50\x01" * 4)
        result = run(["serve", "--listen", "127.0.0.1:0", path])
        check_eq(result.code, 1, "status")
        check_eq(len(result.err.strip().splitlines()[1:]), 1, f"lines: {result.err}")


@test
def the_stacks_of_a_recording_are_folded():
    need_serve()
    path = corpus("etl", "perfview-net452-x64.etl")
    server = serve(path, source=None)
    wait_for("the recording", lambda: server.json("/api/v1/meta")["ended"])
    process = id_of(server, 3988)
    read = wait_for("stacks", lambda: (lambda s: s if s["stage"] == "read" else None)(
        server.json(f"/api/v1/processes/{process}/stacks?from=0")))
    lines = read["folded"].strip().splitlines()
    check(len(lines) > 100, f"{len(lines)} stacks")
    check(all(line.startswith("PerfView.exe (3988);") for line in lines), "a stack of another process")
    export = run(["export", "-f", "folded", "-q", "-p", "3988", path]).out.strip().splitlines()
    check_eq(sum(int(line.rsplit(" ", 1)[1]) for line in lines), sum(int(line.rsplit(" ", 1)[1]) for line in export),
             "samples")


@test
def devices_are_shown_with_their_history():
    library = os.path.join(BUILD, "tests", "libfakenvml.so")
    if not os.path.exists(library):
        skip("the fake driver was not built")
    with temp_dir() as folder:
        control = os.path.join(folder, "control")
        with open(control, "w", encoding="ascii") as file:
            file.write("util 40\n")
        server = serve("--gpu", "--hz", "5", "--sys-root", folder, "--nvml-library", library,
                       environment={"FAKE_NVML": control})
        device = wait_for("a GPU", lambda: [d for d in server.json("/api/v1/devices")["devices"]
                                            if d["values"].get("util_percent") == 40])[0]
        check_eq((device["kind"], device["driver"]), ("gpu", "nvml"), "device")
        path = f"/api/v1/devices/{device['number']}/history"
        wait_for("its history", lambda: server.get(path)[0] == 200 and 40 in server.json(path)["series"]["util_percent"])
        check_eq(server.get("/api/v1/devices/63/history")[0], 404, "a device that is not there")
        labels = f'{{kind="gpu",driver="nvml",device="{device["id"]}"}}'
        wait_for("its series", lambda: samples(server.metrics()).get("etwatch_device_use_ratio" + labels) == 0.4)
        check_eq(samples(server.metrics())["etwatch_device_power_watts" + labels], 100, "power")


main()
