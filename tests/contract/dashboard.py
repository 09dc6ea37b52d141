# SPDX-License-Identifier: MIT
"""The dashboard: its types, its size, and a real browser on it."""
import base64
import csv
import gzip
import io
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import time

from etlkit import corpus, make_etl
from lib import BUILD, ROOT, UPDATE, check, check_eq, check_in, end, json_lines, main, need_ebpf, run, skip, start, temp_dir, test
from protokit import fields, packets
from servekit import need_serve, serve, wait_for

TOOLS = os.path.join(ROOT, "build-web")
DOCS = os.path.join(ROOT, "docs")
# Works in turns until it has used this much CPU time, and says at the end how much it was.
LOAD = """if True:
    import sys, time
    while time.process_time() < float(sys.argv[1]):
        turn = time.process_time() + 0.02
        while time.process_time() < turn: pass
        time.sleep(0.02)
    print(time.process_time(), flush=True)
"""
# Different processes for a picture: name, threads, share of a CPU.
SCENE = [("inference", 4, 0.35), ("tokenizer", 2, 0.2), ("decoder", 3, 0.15), ("indexer", 1, 0.12), ("api-gateway", 2, 0.06), ("cache", 1, 0.04)]
WORK = """if True:
    import random, sys, threading, time
    random.seed(sys.argv[0] + sys.argv[1])
    def work(share):
        while True:
            burst = random.uniform(0.001, 0.02) * random.choice((0.5, 1, 1, 2))
            end = time.thread_time() + burst
            while time.thread_time() < end: pass
            time.sleep(burst * (1 - share) / share)
    count, share = int(sys.argv[1]), float(sys.argv[2])
    for i in range(count): threading.Thread(target=work, args=(share / count * random.uniform(0.6, 1.4),), daemon=True).start()
    time.sleep(1000)
"""


def tool(path):
    full = os.path.join(TOOLS, "node_modules", path)
    if not shutil.which("node") or not os.path.exists(full):
        skip(f"{path.split('/')[0]} is missing (npm; ./dev test installs it into build-web)")
    return full


def dashboard(*options, **named):
    """A server with a dashboard, and a browser that can show it."""
    tool("playwright-core/package.json")
    if not os.path.exists("/usr/bin/chromium"):
        skip("chromium is missing")
    server = serve(*options, **named)
    if server.get("/")[0] == 404:
        skip("this build has no dashboard")
    wait_for("facts", lambda: server.get("/healthz")[0] == 200)
    return server


def browse(server, mode, *arguments, on=None):
    """{name: value} that tests/web.mjs saw. on: {name: function} called when a value arrives; a line is then sent."""
    browser = start([os.path.join(ROOT, "tests", "web.mjs"), TOOLS, f"http://127.0.0.1:{server.port}/", mode,
                     *(str(a) for a in arguments)], program=shutil.which("node"), stdin=subprocess.PIPE)
    got = {}
    for line in browser.stdout:
        said = json.loads(line)
        got[said["name"]] = said["value"]
        if on and said["name"] in on:
            on[said["name"]]()
            browser.stdin.write(b"\n")
            browser.stdin.flush()
    check("errors" in got, f"the browser stopped after {list(got)}: {browser.stderr.read().decode()[-400:]}")
    check_eq(got["errors"], [], "errors of the console")
    return got


def shots(*names):
    """Where to put pictures for a person to look at: only if a folder is given."""
    folder = os.environ.get("ETWATCH_SHOTS")
    return [os.path.join(folder, f"{name}.png") for name in names] if folder else []


def busy(*arguments, code="while True: pass", name=None):
    """A process that uses CPU time; name: that of a copy of Python."""
    return start(["-c", code, *(str(a) for a in arguments)], program=name or sys.executable, stdout=subprocess.PIPE)


@test
def the_modules_pass_the_type_checker():
    tsc = tool("typescript/bin/tsc")
    modules = sorted(os.path.join(ROOT, "web", name) for name in os.listdir(os.path.join(ROOT, "web")) if name.endswith(".js"))
    result = subprocess.run(["node", tsc, "--noEmit", "--allowJs", "--checkJs", "--strict", "--target", "es2022", "--module", "es2022",
                             "--moduleResolution", "bundler", "--lib", "es2022,dom,dom.iterable", *modules],
                            capture_output=True, text=True, check=False)
    check_eq(result.returncode, 0, f"tsc: {result.stdout[:600]}: status")


@test
def the_dashboard_is_small_and_complete():
    server = serve()
    status, headers, page = server.get("/")
    if status == 404:
        skip("this build has no dashboard")
    total = len(page)
    page = gzip.decompress(page).decode()
    names = [name for name in os.listdir(os.path.join(ROOT, "web")) if name.endswith((".js", ".css", ".svg"))]
    check(len(names) > 10, f"files: {names}")
    for name in [*names, "uPlot.js", "uPlot.css", "uPlot.LICENSE.txt"]:
        status, headers, body = server.get("/" + name)
        check_eq(status, 200, name)
        check_eq(headers["Content-Encoding"], "gzip", name)
        total += len(body)
        check_eq(server.get("/" + name, headers={"If-None-Match": headers["ETag"]})[0], 304, f"{name} again")
    check(total < 250000, f"{total} bytes over the wire")
    check("http://" not in page and "https://" not in page and "style=" not in page, "nothing inline, no other host")


@test
def a_browser_shows_a_hostile_process_from_start_to_exit():
    server = dashboard("--hz", "10")
    with temp_dir() as folder:
        path = os.path.join(folder, "<script>x")
        shutil.copy(os.path.realpath("/bin/sh"), path)
        child = start(["-c", "while :; do :; done"], program=path)

        def end():
            child.kill()
            child.wait()
        got = browse(server, "life", child.pid, on={"ready": end})
        check_eq(got["name"], "<script>x", "name in the table")
        check_eq(got["title"], "<script>x", "title of the page")
        check_in(f"q={child.pid}", got["address"], "address")
        check_eq(got["csv"], "processes.csv", "export")
        check_eq(got["paused"], "Resume", "a zoomed view")
        check_in("exited", got["exited"], "state")
        check_eq(got["scripts"], 2, "scripts")


def counters_of(trace):
    """{track name: [(t_ns, value)]} of a Perfetto trace."""
    names, values = {}, {}
    for parts in packets(trace):
        packet = dict(parts)
        if 60 in packet:
            track = dict(fields(packet[60]))
            if 8 in track:
                names[track[1]] = track[2].decode()
        if 11 in packet and 44 in dict(fields(packet[11])):
            event = dict(fields(packet[11]))
            values.setdefault(event[11], []).append((packet[8], struct.unpack("<d", event[44])[0]))
    return {names[uuid]: rows for uuid, rows in values.items()}


@test
def the_exported_curve_of_a_load_is_what_it_used():
    need_ebpf()  # polling misses what happens after its last reading
    server = dashboard("--hz", "20", source=None)
    child = busy(4, code=LOAD)
    used = float(child.stdout.readline())
    child.wait()
    got = browse(server, "exports", child.pid)
    rows = list(csv.DictReader(io.StringIO(got["csv"])))
    step_s = (float(rows[1]["t_ms"]) - float(rows[0]["t_ms"])) / 1000
    shown = sum(float(row["cpu_ns"] or 0) for row in rows) * step_s / 1e9
    # Only the exit of Python is outside of what it counts.
    check(0.97 * used <= shown <= 1.03 * used, f"{shown:.3f} s in the curve, {used:.3f} s used")
    check_eq(got["png"]["magic"], "PNG", "picture")
    check(got["png"]["size"] > 5000, f"picture of {got['png']['size']} bytes")
    tracks = counters_of(base64.b64decode(got["trace"]["base64"]))
    check_in("cpu_percent", tracks, "counters of the trace")
    traced = sum(value for _, value in tracks["cpu_percent"]) * step_s / 100
    check(abs(traced - shown) < 0.01, f"{traced:.3f} s in the trace, {shown:.3f} s in the CSV")


@test
def two_processes_and_two_times_are_compared():
    server = dashboard("--hz", "10")
    first, second = busy(), start(["30"], program="sleep")
    got = browse(server, "compare", first.pid, second.pid)
    check_in(f"A: {os.path.basename(os.path.realpath(sys.executable))[:6]}", got["names"], "names")
    rows = {row["metric"]: list(row.values()) for row in csv.DictReader(io.StringIO(got["csv"]))}
    check(float(rows["cpu_ns"][1]) > 20 * float(rows["cpu_ns"][2] or 0), f"CPU time: {rows['cpu_ns']}")
    check_in(", B ", got["times"], "ranges")


@test
def the_scheduling_strip_is_shown_on_demand():
    need_ebpf()
    server = dashboard("--hz", "10", source=None)
    child = busy(code="import time\nwhile True:\n    end = time.time() + 0.01\n    while time.time() < end: pass\n    time.sleep(0.01)")
    got = browse(server, "scheduling", child.pid)
    check_in("ran ", got["spoken"], "text for screen readers")
    check_eq(got["paused"], "true", "pause")
    check_in("from=", got["shared"], "address of the view")


@test
def pages_are_accessible_and_fit_a_phone():
    server = dashboard("--hz", "10")
    tool("axe-core/axe.min.js")
    first, second = busy(), busy()
    got = browse(server, "accessible", first.pid, second.pid)
    check_in("image-alt", got["checker works"], "what axe finds in a page with a fault")
    check_eq(got["axe"], [], "serious findings of axe")
    check_eq(got["wide"], [], "pages wider than a phone")
    check_eq(got["keyboard"], True, "keyboard")


@test
def five_thousand_processes_cost_what_thirty_do():
    server = dashboard("--hz", "10")
    got = browse(server, "many")
    # Processes of the machine that start meanwhile are listed too.
    check(int(got["listed"].split()[0]) >= 5000, f"listed: {got['listed']}")
    check(5 < got["frames"]["rows"] < 80, f"{got['frames']['rows']} rows exist at a time")
    check(got["frames"]["top"] > 10000, "the table did not scroll")
    check_in("worker-4999", got["found"], "found")
    print(f"# scrolling 5,000 processes: median {got['frames']['median']:.1f} ms, 95 % within {got['frames']['p95']:.1f} ms a frame")
    # What a frame changes does not depend on how many processes there are.
    check(0 < got["frames"]["changes"] < 1000, f"{got['frames']['changes']} changes of the page a frame")


@test
def a_recording_is_shown_in_the_same_pages():
    need_serve()
    with temp_dir() as folder:
        path = os.path.join(folder, "x.pftrace")
        made = run(["record", "-o", path, "--source", "poll", "--hz", "20", "--", sys.executable, "-c",
                    "import time; end = time.process_time() + 1\nwhile time.process_time() < end: pass"])
        check_eq(made.code, 0, made.err)
        server = dashboard(path, source=None)
        wait_for("the recording", lambda: server.json("/api/v1/meta")["ended"])
        processes = server.json("/api/v1/processes?exited=1")["processes"]
        got = browse(server, "recording", processes[0]["pid"])
        check_in("1 of", got["total"], "processes found")
        check_in("no switches", got["strip"], "scheduling of a recording by polling")
        check_eq(got["frames"], 0, "frames of a flame graph")


@test
def marked_work_is_shown_with_its_causes():
    need_ebpf()
    server = dashboard("--hz", "10", "--spans", source=None)
    address = re.search(rb"ETWATCH_SPANS=(\S+)", server.printed)[1].decode()
    time.sleep(2)
    child = start([os.path.join(ROOT, "tests", "span_workload.py"), "lock"], program=sys.executable, stdout=subprocess.PIPE,
                  env={**os.environ, "ETWATCH_SPANS": address})
    child.stdout.read()
    got = browse(server, "spans", child.pid, *shots("spans", "spans-phone", "spans-all"))
    check(all(name.endswith(" work") for name in got["names"]) and got["names"], f"names: {got['names']}")
    check(all(int(count) > 0 for count in got["counts"]), f"counts: {got['counts']}")
    check_in("waiting for another thread", got["spoken"], "text of the bar")
    check_in("waiting for another thread (", got["why"], "why it was slow")
    check(any(str(child.pid) in name for name in got["all"]), f"in the overview: {got['all']}")
    check_eq(got["axe"], [], "serious findings of axe")
    check(got["wide"] <= 0, f"{got['wide']} pixels wider than a phone")


@test
def a_process_of_an_earlier_run_is_found_and_shown():
    child = busy(code="import time\nend = time.time() + 60\nwhile time.time() < end: time.sleep(0.001) if time.process_time() % 0.02 > 0.01 else None")
    with temp_dir() as folder:
        os.chmod(folder, 0o755)
        store = ("--hz", "5", "--store", os.path.join(folder, "history"))
        first = dashboard(*store)
        if not first.json("/api/v1/meta").get("store"):
            skip("this build cannot store history")

        def known():
            rows = first.json("/api/v1/store/processes")["processes"]
            return [p["id"] for p in rows if p["pid"] == child.pid]
        process = wait_for("the process on disk", known, seconds=60)[0]
        wait_for("two records", lambda: len([v for v in first.json(f"/api/v1/processes/{process}/history?from=1")["series"].get("cpu_ns", []) if v]) >= 1, seconds=60)
        end(child)
        time.sleep(11)  # the exit is written
        end(first.child)
        second = dashboard(*store)
        got = browse(second, "earlier", child.pid, *shots("earlier", "earlier-process"))
        check_in("30 d", got["spans"], "spans of the head")
        check_eq(got["axe"], [], "serious findings of axe")
        check(got["wide"] <= 0, f"{got['wide']} pixels too wide")
        rates = [float(row["cpu_ns"]) for row in csv.DictReader(io.StringIO(got["csv"])) if row["cpu_ns"]]
        check(rates and 0 < max(rates) <= 1.1e9, f"CPU of the process: {rates}")
        end(second.child)


@test
def an_alert_is_listed_and_marked():
    child = busy()
    server = dashboard("--hz", "10", "-p", str(child.pid), "--alert", "cpu_percent>5 for 300ms")
    fired = wait_for("the alert", lambda: [a for a in server.json("/api/v1/alerts")["alerts"] if a["id"].startswith(f"{child.pid}-")])[0]
    check_eq((fired["metric"], fired["condition"]), ("cpu_percent", "cpu_percent>5 for 300ms"), "alert")
    got = browse(server, "alert", child.pid)
    check_in("cpu_percent", got["text"], "in the overview")
    check_in("cpu_percent", got["marks"], "mark in a chart")


@test
def stacks_of_a_recording_are_a_flame_graph():
    server = dashboard(corpus("etl", "perfview-net452-x64.etl"), source=None)
    wait_for("the recording", lambda: server.json("/api/v1/meta")["ended"])
    got = browse(server, "stacks", 3988)
    check(got["frames"] > 20, f"{got['frames']} frames")
    check_in(" samples (100.0 %)", got["root"], "the root")
    check(int(got["state"].split()[0]) > 100, f"samples: {got['state']}")
    check_eq(got["zoomed"], True, "a click zooms")


@test
def switches_of_a_recording_are_a_strip():
    with temp_dir() as folder:
        path = os.path.join(folder, "x.etl")
        make_etl("switches", path)
        server = dashboard(path, source=None)
        wait_for("the recording", lambda: server.json("/api/v1/meta")["ended"])
        waits = [o for o in json_lines(run(["waits", "--json", "-q", path]).out) if o["type"] == "waits" and o["pid"]]
        pids = {p["pid"] for p in server.json("/api/v1/processes?exited=1")["processes"]}
        most = max((o for o in waits if o["pid"] in pids), key=lambda o: o["run_ns"])
        meta = server.json("/api/v1/meta")
        got = browse(server, "lanes", most["pid"], int(meta["first_ms"]), int(meta["now_ms"]))
        check_in(" ran ", got["spoken"], "text for screen readers")


@test
def a_click_on_a_column_sorts():
    got = browse(dashboard("--hz", "5"), "sorting")
    one, other = got["first"], got["second"]
    down = one[0] > other[0]
    check_eq((one, other), (sorted(one, reverse=down), sorted(other, reverse=not down)), "orders")
    check(one != other, "a second click turns the order")
    check_in("scending", got["spoken"], "spoken order")


@test
def a_device_has_a_tile():
    library = os.path.join(BUILD, "tests", "libfakenvml.so")
    if not os.path.exists(library):
        skip("the fake driver was not built")
    with temp_dir() as folder:
        control = os.path.join(folder, "control")
        with open(control, "w", encoding="ascii") as file:
            file.write("util 40\n")
        server = dashboard("--gpu", "--hz", "5", "--sys-root", folder, "--nvml-library", library, environment={"FAKE_NVML": control})
        check_in("40 %", browse(server, "device")["tile"], "tile")


@test
def the_readme_shows_both_pictures():
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        text = file.read()
    for name in ("overview", "process"):
        check(f"](docs/serve-{name}.png)" in text, f"README.md does not show docs/serve-{name}.png")


@test
def the_pictures_of_the_readme_show_the_pages():
    need_ebpf()
    pictures = [os.path.join(DOCS, f"serve-{name}.png") for name in ("overview", "process")]
    with temp_dir() as folder:
        server = dashboard(source=None)
        children = []
        for name, threads, share in SCENE:
            path = os.path.join(folder, name)
            os.symlink(os.path.realpath(sys.executable), path)
            children.append(busy(threads, share, code=WORK, name=path))
        time.sleep(40 if UPDATE else 5)
        new = pictures if UPDATE else [os.path.join(folder, os.path.basename(p)) for p in pictures]
        got = browse(server, "pictures", children[0].pid, *new, *([] if UPDATE else pictures))
        print(f"# first paint after {got['first paint']} ms")
        for path in new:
            check(os.path.getsize(path) > 20000, f"{path} is empty")
        # Loosely: the layout and the colors are the same, not what the machine did.
        check(all(difference < 25 for difference in got["difference"]), f"differ by {got['difference']} of 255")


main()
