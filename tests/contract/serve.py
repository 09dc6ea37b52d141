# SPDX-License-Identifier: MIT
"""etwatch serve over real connections: what it answers, what it refuses, what it may do."""
import contextlib
import gzip
import http.client
import json
import os
import re
import select
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.parse

from lib import ROOT, check, check_eq, check_in, main, run, skip, start, temp_dir, test
from servekit import UNDER_WINE, samples, serve, wait_for

TOKEN = "0123456789abcdef0123456789abcdef"


def busy(seconds=30):
    """A process that uses CPU time."""
    return start(["-c", f"import time; end = time.time() + {seconds}\nwhile time.time() < end: pass"],
                 program=sys.executable)


@test
def prometheus_finds_no_fault_with_the_metrics():
    server = serve()
    busy()
    wait_for("a group", lambda: 'cpu_seconds_total{name="python' in server.metrics())
    text = server.metrics()
    samples(text)
    if not shutil.which("promtool"):
        skip("promtool is missing (Debian: prometheus)")
    for accept in (None, "application/openmetrics-text; version=1.0.0"):
        text = server.metrics(accept)
        if accept:
            check(text.endswith("# EOF\n"), "OpenMetrics ends with # EOF")
            continue
        checked = subprocess.run(["promtool", "check", "metrics"], input=text.encode(), capture_output=True, check=False)
        check_eq(checked.returncode, 0, f"promtool: {checked.stderr.decode()}: status")


@test
def counters_only_grow_and_equal_the_cpu_clock():
    server = serve("--hz", "10", "--prom-pid-label")
    child = busy()

    def series():
        for key, value in samples(server.metrics()).items():
            if key.startswith("etwatch_process_cpu_seconds_total") and f'pid="{child.pid}"' in key:
                return key, value
        return None
    name, first = wait_for("the process", series)
    begun = time.clock_gettime(time.CLOCK_MONOTONIC)
    last = first
    for _ in range(8):
        time.sleep(0.5)
        now = samples(server.metrics())[name]
        check(now >= last, f"{now} < {last}")
        last = now
    check(last > first, "the counter does not grow")
    check(last - first <= time.clock_gettime(time.CLOCK_MONOTONIC) - begun + 2, "more CPU time than time")


@test
def the_serving_process_has_no_rights():
    server = serve(source=None)
    with open(f"/proc/{server.serving_pid()}/status", encoding="ascii") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    for key in ("CapEff", "CapPrm", "CapInh", "CapAmb"):
        check_eq(int(status[key], 16), 0, key)
    check_eq(status["NoNewPrivs"], "1", "NoNewPrivs")
    if os.getuid() == 0:
        check_eq(set(status["Uid"].split()), {"65534"}, "Uid")
        check_eq(set(status["Gid"].split()), {"65534"}, "Gid")
        check_eq(status["Groups"].strip(), "", "Groups")
    links = [os.readlink(f"/proc/{server.child.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{server.child.pid}/fd")]
    check_eq(server.get("/healthz")[0], 200, "status")
    check(links, "the collecting process has descriptors")


@test
def both_processes_end_together():
    server = serve()
    pid = server.serving_pid()
    server.child.send_signal(signal.SIGTERM)
    check_eq(server.child.wait(timeout=20), 143, "status")
    check(not os.path.exists(f"/proc/{pid}"), "the serving process is left behind")
    server = serve()
    pid = server.serving_pid()
    server.child.kill()
    server.child.wait(timeout=20)
    wait_for("the end of the serving process", lambda: not os.path.exists(f"/proc/{pid}")
             or " Z " in open(f"/proc/{pid}/stat", encoding="ascii", errors="replace").read())
    server = serve()
    os.kill(server.serving_pid(), signal.SIGKILL)
    check_eq(server.child.wait(timeout=20), 1, "status")
    check_in("the serving process has ended", server.child.stderr.read().decode())


@test
def other_names_sites_methods_and_bodies_are_refused():
    server = serve()
    check_eq(server.get("/metrics", headers={"Host": "evil.example"})[0], 421, "rebinding")
    check_eq(server.get("/api/v1/meta", headers={"Origin": "http://evil.example"})[0], 403, "origin")
    check_eq(server.get("/api/v1/meta", headers={"Sec-Fetch-Site": "cross-site"})[0], 403, "site")
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"):
        check_eq(server.get("/metrics", method=method)[0], 405, method)
    status, headers, body = server.get("/metrics", method="HEAD")
    check_eq((status, body), (200, b""), "HEAD")
    check_in("default-src 'none'", headers["Content-Security-Policy"])
    check("Access-Control-Allow-Origin" not in headers, "CORS")
    for path in ("/../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/..%2fetc/passwd", "//etc/passwd"):
        status, _, body = server.get(path)
        check(status in (400, 404), f"{path}: {status}")
        check(b"root:" not in body, path)


@test
def broken_and_smuggled_requests_do_no_harm():
    server = serve()
    host = b"Host: 127.0.0.1\r\n"
    attacks = [
        ("both lengths", b"GET /metrics HTTP/1.1\r\n" + host + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
         b"0\r\n\r\nGET /healthz HTTP/1.1\r\n" + host + b"\r\n"),
        ("two hosts", b"GET /healthz HTTP/1.1\r\n" + host + b"Host: evil.example\r\n\r\n"),
        ("no host", b"GET /healthz HTTP/1.1\r\n\r\n"),
        ("a huge header", b"GET /healthz HTTP/1.1\r\n" + host + b"X: " + b"a" * 100000 + b"\r\n\r\n"),
        ("a huge target", b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\n" + host + b"\r\n"),
        ("a body", b"GET /healthz HTTP/1.1\r\n" + host + b"Content-Length: 5\r\n\r\nhello"),
        ("no HTTP", b"\x16\x03\x01\x00\xff" * 50),
        ("bare line ends", b"\n" * 1000),
    ]
    for remark, data in attacks:
        answer = server.raw(data, wait_s=2)
        statuses = [line.split()[1] for line in answer.split(b"\r\n") if line.startswith(b"HTTP/1.")]
        check(all(status[:1] == b"4" for status in statuses), f"{remark}: {statuses}")
        check(len(statuses) <= 1, f"{remark}: several answers: {statuses}")
        check_eq(server.get("/healthz")[0], 200, f"after {remark}: status")


@test
def slow_clients_do_not_stall_others():
    server = serve()
    slow = []
    for number in range(40):
        connection = socket.create_connection((server.address, server.port), timeout=10)
        connection.sendall(b"GET /api/v1/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" if number % 2 else b"GET /met")
        slow.append(connection)
    for _ in range(20):
        check_eq(server.get("/healthz", timeout=10)[0], 200, "status")
    for connection in slow:
        connection.close()


def connect(server, text, count):
    """Connections that have each sent the same bytes."""
    made = []
    for _ in range(count):
        connection = socket.create_connection((server.address, server.port), timeout=10)
        connection.sendall(text)
        made.append(connection)
    return made


def answers(connections, enough, seconds=40):
    """The first line that each has received, or nothing, once `enough` have one."""
    first = {}
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and len(first) < enough:
        for connection in select.select([c for c in connections if c not in first], [], [], 0.5)[0]:
            try:
                first[connection] = connection.recv(4096).split(b"\r\n")[0]
            except OSError:
                first[connection] = b""
    return [first.get(connection, b"") for connection in connections]


def is_open(connection):
    """Whether the server has not closed it."""
    connection.setblocking(False)
    try:
        while connection.recv(65536):
            continue
        return False
    except BlockingIOError:
        return True
    except OSError:
        return False


@contextlib.contextmanager
def dripping(server, count):
    """Connections that send a byte of a header now and then, for as long as the server lets them."""
    made = connect(server, b"GET /healthz HTTP/1.1\r\nX: ", count)
    done = threading.Event()

    def send():
        left = list(made)
        while left and not done.wait(0.3):
            for connection in list(left):
                try:
                    connection.send(b"a")
                except OSError:
                    left.remove(connection)
    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        done.set()
        thread.join()
        for connection in made:
            connection.close()


@test
def clients_that_drip_cannot_hold_every_place():
    server = serve("--hz", "1")
    with dripping(server, 300) as slow:
        for _ in range(3):
            check_eq(server.get("/healthz", timeout=20)[0], 200, "health")
            check_eq(server.get("/metrics", timeout=20)[0], 200, "scrape")
        # The oldest were pushed out.
        check_eq(slow[0].recv(100)[:12] in (b"", b"HTTP/1.1 408"), True, "the first of them is closed")


@test
def one_address_cannot_take_every_place_of_an_open_server():
    with temp_dir() as folder:
        path = os.path.join(folder, "token")
        with open(path, "w", encoding="ascii") as file:
            file.write(TOKEN + "\n")
        server = serve("--token-file", path, "--hz", "1", listen="0.0.0.0:0")
        held = connect(server, b"GET /hea", 64)
        time.sleep(1)
        more = connect(server, b"GET /hea", 1)[0]
        more.settimeout(20)
        try:
            check_eq(more.recv(100), b"", "the connection after 64")
        except ConnectionError:
            pass
        # Another address has its own places.
        other = socket.create_connection((server.address, server.port), timeout=20, source_address=("127.0.0.2", 0))
        other.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        check_in(b"200 OK", other.recv(4096))
        for connection in [*held, more, other]:
            connection.close()


@test
def connections_streams_requests_and_silence_are_limited():
    server = serve("--hz", "1")
    get = b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    streams = connect(server, get % b"/api/v1/stream", 210)
    got = answers(streams, 210)
    check_eq(sum(line == b"HTTP/1.1 200 OK" for line in got), 200, "streams")
    check(any(b"503" in line for line in got), f"the others: {set(got)}")
    for connection in streams:
        connection.close()
    wait_for("an answer after the streams", lambda: server.get("/healthz")[0] == 200)
    many = connect(server, get % b"/healthz", 300)
    # An idle connection gives its place to a new one, so that on a slow machine all may get an answer: what is limited is how
    # many are open. Streams that the server has not yet seen closing take places too.
    answered = [c for c, line in zip(many, answers(many, 230)) if line == b"HTTP/1.1 200 OK"]
    still = sum(is_open(connection) for connection in answered)
    check(0 < len(answered) and still <= 256, f"{len(answered)} connections were answered, {still} of them are open")
    for connection in many:
        connection.close()
    # After the crowd, which pushes out those that have waited longest.
    wait_for("places", lambda: server.get("/healthz")[0] == 200)
    drip = contextlib.ExitStack()
    dripped = drip.enter_context(dripping(server, 1))[0]
    silent = socket.create_connection((server.address, server.port), timeout=60)
    silent.sendall(b"GET /hea")
    begun = time.monotonic()
    # Far more than 500 a second, whatever the speed of this machine: in one piece. /healthz has no limit.
    wait_for("an answer after the connections", lambda: server.raw(get % b"/healthz", wait_s=1).startswith(b"HTTP/1.1 200"))
    # The connection ends at the first that is refused; its 429 may be lost with the rest that was not read.
    taken = server.raw((get % b"/api/v1/alerts") * 5000, wait_s=20).count(b"HTTP/1.1 200")
    check(0 < taken < 5000, f"{taken} of 5000 requests in one piece were answered")
    wait_for("an answer after the flood", lambda: server.raw(get % b"/healthz", wait_s=1).startswith(b"HTTP/1.1 200"))
    silent.settimeout(90)
    check_eq(silent.recv(4096)[:12] in (b"", b"HTTP/1.1 408"), True, "a silent connection is closed")
    check(time.monotonic() - begun > 20, "it was closed too early")
    silent.close()
    dripped.settimeout(60)
    check_eq(dripped.recv(4096)[:12] in (b"", b"HTTP/1.1 408"), True, "a dripping connection is closed")
    drip.close()


@test
def command_lines_are_shown_only_on_request_and_never_in_metrics():
    marker = "visible-marker"
    child = start(["-c", "import time; time.sleep(60)", marker, "--password=hidden-word"], program=sys.executable)
    for options, shown in (((), False), (("--cmdline",), True)):
        server = serve("--hz", "2", *options)
        found = wait_for("the process", lambda s=server: [p for p in s.json("/api/v1/processes")["processes"] if p["pid"] == child.pid])[0]
        if shown:
            check_in(marker, found["cmdline"], "command line")
        else:
            check("cmdline" not in found, "a command line that nobody requested")  # words-ok
        everything = server.metrics() + json.dumps(server.json("/api/v1/processes")) + json.dumps(server.json("/api/v1/processes/" + found["id"]))
        check("hidden-word" not in everything, "a secret")
        check(marker not in server.metrics(), "a command line in /metrics")


@test
def other_addresses_need_a_token():
    if UNDER_WINE:
        skip("windows/serve covers the server of Windows")
    result = run(["serve", "--listen", "0.0.0.0:0", "--source", "poll"])
    check_eq(result.code, 2, "status")
    check_in("needs a token", result.err)
    with temp_dir() as folder:
        path = os.path.join(folder, "token")
        with open(path, "w", encoding="ascii") as file:
            file.write("short\n")
        check_eq(run(["serve", "--token-file", path, "--source", "poll"]).code, 2, "short token: status")
        with open(path, "w", encoding="ascii") as file:
            file.write(TOKEN + "\n")
        server = serve("--token-file", path, listen="0.0.0.0:0")
        check_eq(server.get("/metrics")[0], 401, "without")
        check_eq(server.get("/metrics", headers={"Authorization": "Bearer " + TOKEN[:-1] + "0"})[0], 401, "wrong")
        check_eq(server.get("/metrics", headers={"Authorization": "Bearer " + TOKEN})[0], 200, "right")
        check_eq(server.get("/healthz")[0], 200, "health needs none")
        status, headers, _ = server.get("/?token=" + TOKEN)
        check_eq((status, headers["Location"]), (303, "/"), "login")
        check_in("HttpOnly", headers["Set-Cookie"])
        check_in("SameSite=Strict", headers["Set-Cookie"])
        cookie = headers["Set-Cookie"].split(";")[0]
        check_eq(server.get("/api/v1/meta", headers={"Cookie": cookie})[0], 200, "cookie")


@test
def tls_is_served_with_a_certificate():
    if not shutil.which("openssl"):
        skip("openssl is missing")
    with temp_dir() as folder:
        cert, key = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
                        "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
                       check=True, capture_output=True)
        server = serve("--cert", cert, "--key", key)
        check_eq(server.scheme, "https", "scheme")
        context = ssl.create_default_context(cafile=cert)
        with socket.create_connection((server.address, server.port), timeout=10) as plain, \
                context.wrap_socket(plain, server_hostname="127.0.0.1") as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            check_in(b"200 OK", connection.recv(4096))
        check_eq(run(["serve", "--cert", cert, "--source", "poll"]).code, 2, "a certificate without a key: status")


@test
def a_hostile_name_is_text_everywhere():
    server = serve()
    with temp_dir() as folder:
        path = os.path.join(folder, '<script>"\\x')
        shutil.copy("/bin/sleep", path)
        child = start(["30"], program=path)
        found = wait_for("the process", lambda: [p for p in server.json("/api/v1/processes")["processes"]
                                                 if p["pid"] == child.pid and p["name"] != os.path.basename(sys.executable)])
        check_eq(found[0]["name"], '<script>"\\x', "name")
        check("cmdline" not in found[0], "a command line without --cmdline")
        samples(server.metrics())


@test
def a_process_has_a_page_with_history_and_threads():
    server = serve("--hz", "10")
    child = busy()

    def found():
        table = server.json("/api/v1/processes")
        if "cpu_percent" not in table["columns"]:
            return None
        column = table["columns"].index("cpu_percent")
        rows = [p for p in table["processes"] if p["pid"] == child.pid and (p["values"][column] or 0) > 5]
        return rows[0] if rows else None
    process = wait_for("CPU time of the process", found)
    base = "/api/v1/processes/" + process["id"]
    page = server.json(base)
    check_eq(page["pid"], child.pid, "pid")
    check(page["totals"]["cpu_ns"] > 0, "totals")
    wait_for("history", lambda: any((v or 0) > 0 for v in server.json(base + "/history?metrics=cpu_ns")["series"]["cpu_ns"]))
    wait_for("fine history", lambda: server.json(base + "/history?from=-3000&step=100")["resolution"] == "sample")
    machine = wait_for("the machine", lambda: server.json("/api/v1/system/history")["series"].get("memory_total_bytes"))
    check(any(v for v in machine), "memory of the machine")
    child.kill()
    child.wait()
    wait_for("the exit", lambda: [p for p in server.json("/api/v1/processes?exited=1")["processes"]
                                  if p["id"] == process["id"] and p["exit_ms"]])


@test
def the_threads_of_a_process_add_up_to_it():
    code = """if True:
        import threading, time
        def work():
            while True:
                sum(range(20000))
                time.sleep(0.002)
        [threading.Thread(target=work, daemon=True).start() for _ in range(3)]
        time.sleep(100)
    """
    child = start(["-c", code], program=sys.executable)
    server = serve("--hz", "10", "-p", str(child.pid), source=None)
    base = wait_for("the process", lambda: [f"/api/v1/processes/{p['id']}" for p in server.json("/api/v1/processes")["processes"] if p["pid"] == child.pid])[0]
    time.sleep(4)
    child.kill()
    child.wait()
    wait_for("the exit", lambda: server.json(base)["exit_ms"])
    time.sleep(2)
    span = "from=-20000&step=1000"
    whole, parts = server.json(f"{base}/history?metrics=cpu_ns&{span}"), server.json(f"{base}/threads?{span}")
    check(len(parts["threads"]) >= 3, f"{len(parts['threads'])} threads")
    for thread in parts["threads"]:
        check_eq(len(thread["cpu_ns"]), parts["count"], "values of a thread")
    used, of_threads = sum(v or 0 for v in whole["series"]["cpu_ns"]), sum(v or 0 for t in parts["threads"] for v in t["cpu_ns"])
    check(used > 0.02e9, f"{used} ns of CPU time")
    check(0.9 * used <= of_threads <= 1.02 * used, f"{of_threads} ns of its threads, {used} ns of the process")


@test
def the_stream_reports_every_second():
    server = serve()
    connection = http.client.HTTPConnection(server.address, server.port, timeout=20)
    connection.request("GET", "/api/v1/stream")
    answer = connection.getresponse()
    check_in("text/event-stream", answer.headers["Content-Type"])
    seconds = []
    while len(seconds) < 3:
        line = answer.readline()
        check(line, "the stream ended")
        if line.startswith(b"data: "):
            seconds.append(json.loads(line[6:]))
    connection.close()
    check_eq(seconds[2]["t_ms"] - seconds[1]["t_ms"], 1000, "time between two events")
    for key in ("system", "columns", "news", "active", "alerts", "self"):
        check_in(key, seconds[0], "event")


@test
def a_taken_port_is_one_line():
    server = serve()
    result = run(["serve", "--listen", f"127.0.0.1:{server.port}", "--source", "poll"])
    check_eq(result.code, 1, "status")
    check_eq(len(result.err.strip().splitlines()), 1, "lines")
    check_in("cannot listen on 127.0.0.1", result.err)


@test
def many_scrapes_leave_memory_where_it_was():
    idle = start(["120"], program="sleep")
    server = serve("--hz", "10", "-p", str(idle.pid))
    pid = server.serving_pid()

    def memory():
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))
    def scrape(count):
        """Over one connection, and no more than the server admits; each is answered."""
        connection = http.client.HTTPConnection(server.address, server.port, timeout=20)
        done = 0
        while done < count:
            connection.request("GET", "/metrics")
            answer = connection.getresponse()
            answer.read()
            done += answer.status == 200
            if answer.status == 429:
                connection.close()
                time.sleep(0.2)
            else:
                check_eq(answer.status, 200, "status")
        connection.close()
    scrape(1000)
    before = memory()
    scrape(10000)
    # One idle process is watched, so its history does not grow.
    check(memory() < before + 1000, f"{before} KB before, {memory()} KB after")


@test
def a_real_prometheus_scrapes_it():
    if not shutil.which("prometheus"):
        skip("prometheus is missing (Debian: prometheus)")
    server = serve("--hz", "10")
    busy()
    with temp_dir() as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        config = os.path.join(folder, "prometheus.yml")
        with open(config, "w", encoding="ascii") as file:
            file.write("global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n- job_name: etwatch\n"
                       f"  static_configs: [{{targets: ['127.0.0.1:{server.port}']}}]\n")
        start([f"--config.file={config}", f"--storage.tsdb.path={folder}/data", f"--web.listen-address=127.0.0.1:{port}"],
              program="prometheus", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def query(text):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            try:
                connection.request("GET", "/api/v1/query?query=" + urllib.parse.quote(text))
                return json.loads(connection.getresponse().read())["data"]["result"]
            except (OSError, KeyError, ValueError):
                return []
            finally:
                connection.close()
        grown = wait_for("a rate", lambda: [r for r in query("sum(increase(etwatch_process_cpu_seconds_total[10s]))")
                                            if float(r["value"][1]) > 0], seconds=60)
        check(grown, "CPU time")
        check_eq([r["value"][1] for r in query("up")], ["1"], "up")
        check_eq([r["value"][1] for r in query("max(resets(etwatch_process_cpu_seconds_total[1m]))")], ["0"], "resets")


@test
def the_openapi_file_names_every_path():
    server = serve()
    described = server.json("/openapi.json")["paths"]
    with open(os.path.join(ROOT, "src", "serve", "routes.c"), encoding="utf-8") as file:
        source = file.read()
    table = source[source.index("routes_table[] = {"):source.index("static void dispatch")]
    paths = set(re.findall(r'\{"(/[^"]+)"', table))
    below = source[source.index("static void answer_process("):source.index("static bool answer_login")]
    paths |= {"/api/v1/processes/{id}" + part for part in re.findall(r'rest \+ len, "(/\w+)"', below)}
    paths |= {"/api/v1/processes/{id}", "/api/v1/devices/{number}/history"}
    check(len(paths) > 15, f"{len(paths)} paths in routes.c")
    check_eq(paths, set(described), "paths")
    for path, item in described.items():
        for parameter in item["get"].get("parameters", []):
            if parameter["name"] in ("from", "to", "metrics"):
                check("pattern" in parameter["schema"], f"{path}: what {parameter['name']} may be")
    check_eq(server.get("/api/v1/system/history?from=")[0], 400, "an empty time")


@test
def long_answers_are_compressed_for_clients_that_accept_it():
    server = serve()
    wait_for("facts", lambda: server.get("/healthz")[0] == 200)
    for path in ("/metrics", "/api/v1/meta"):
        status, headers, body = server.get(path, headers={"Accept-Encoding": "gzip"})
        check_eq((status, headers["Content-Encoding"]), (200, "gzip"), path)
        check_eq(int(headers["Content-Length"]), len(body), "length")
        plain = gzip.decompress(body)
        check(len(body) < len(plain) / 3, f"{path}: {len(body)} of {len(plain)} bytes")
        check_eq(server.get(path)[1]["Content-Encoding"], None, f"{path} without gzip")


main()
