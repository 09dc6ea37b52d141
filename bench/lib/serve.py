# SPDX-License-Identifier: MIT
"""serve: what serving costs, next to other exporters.

The population of the section cost. Each server runs alone with it, in turns: without a client, next to `stat -a` at the
same rate; with one scrape a second, next to node_exporter, process-exporter and netdata if they are installed; with 100
clients on the live stream. CPU time is that of all processes of a server, by their CPU clocks; what the kernel does in our
programs is the same with stat and serve and is in the section cost.
"""
import contextlib
import http.client
import os
import selectors
import signal
import socket
import subprocess
import time

from .figures import Section
from .processes import Ended, Missing, Program, cpu_ns, status_kb

BARS = {"scrape": 10, "bytes": 200, "streams": 2, "memory": 1, "idle": 1.05}
STREAMS = 100


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def family(pid):
    """A process and its descendants."""
    found = [pid]
    for parent in found:
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{parent}/task"):
                with open(f"/proc/{parent}/task/{task}/children", encoding="ascii") as file:
                    found += [int(word) for word in file.read().split()]
    return found


def cpu_of(pids):
    total = 0
    for pid in pids:
        with contextlib.suppress(Ended):
            total += cpu_ns(pid)
    return total


class Server:
    """A running exporter: its processes, and its address."""

    def __init__(self, argv, port, path="/metrics"):
        self.port, self.path = port, path
        self.program = Program(argv, pipe_in=False, out=subprocess.DEVNULL, group=True)
        self.pids = []

    def wait(self):
        for _ in range(300):
            with contextlib.suppress(OSError, http.client.HTTPException):
                if self.scrape()[0] == 200:
                    self.pids = family(self.program.pid)
                    return self
            if self.program.process.poll() is not None:
                raise Ended(self.program.errors() or "ended at once")
            time.sleep(0.1)
        raise Ended("does not answer")

    def scrape(self):
        """(status, bytes, milliseconds)."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        with contextlib.closing(connection):
            begun = time.perf_counter()
            connection.request("GET", self.path)
            answer = connection.getresponse()
            size = len(answer.read())
            return answer.status, size, (time.perf_counter() - begun) * 1000

    def percent(self, seconds, work=None):
        """CPU of all its processes in percent of one core, while `work` runs once a second."""
        begun, used = time.monotonic(), cpu_of(self.pids)
        for second in range(int(seconds)):
            if work:
                work()
            time.sleep(max(0.0, begun + second + 1 - time.monotonic()))
        return (cpu_of(self.pids) - used) / (time.monotonic() - begun) / 1e7

    def memory_mb(self):
        return sum(status_kb(pid, "VmRSS")[0] for pid in self.pids) / 1024

    def end(self):
        self.program.kill()


def start_serve(bench, *options):
    port = free_port()
    return Server([bench.etwatch(), "serve", "--listen", f"127.0.0.1:{port}", "--source", bench.source, "--hz", "10", *options],
                  port).wait()


def start_node(bench):
    port = free_port()
    return Server([bench.peer("prometheus-node-exporter"), f"--web.listen-address=127.0.0.1:{port}", "--collector.processes"],
                  port).wait()


def start_process(bench):
    port, config = free_port(), bench.file("process-exporter.yml")
    with open(config, "w", encoding="ascii") as file:
        file.write('process_names:\n- name: "{{.Comm}}"\n  cmdline: [".+"]\n')
    return Server([bench.peer("prometheus-process-exporter"), f"-web.listen-address=127.0.0.1:{port}", f"-config.path={config}"],
                  port).wait()


def start_netdata(bench):
    port, folder = free_port(), bench.file("netdata")
    for name in ("cache", "lib", "log"):
        os.makedirs(os.path.join(folder, name), exist_ok=True)
    config = os.path.join(folder, "netdata.conf")
    with open(config, "w", encoding="ascii") as file:
        file.write(f"[directories]\ncache = {folder}/cache\nlib = {folder}/lib\nlog = {folder}/log\n"
                   f"[db]\nmode = ram\n[web]\nbind to = 127.0.0.1\ndefault port = {port}\n[ml]\nenabled = no\n[health]\nenabled = no\n")
    return Server([bench.peer("netdata"), "-D", "-c", config, "-u", "root"], port, "/api/v1/allmetrics?format=prometheus").wait()


def stat_percent(bench, seconds):
    """`stat -a` at the same rate, without output."""
    program = Program([bench.etwatch(), "stat", "-a", "--hz", "10", "--threads", "--source", bench.source, "--json", "-o", "/dev/null"],
                      pipe_in=False, out=subprocess.DEVNULL)
    try:
        time.sleep(3)
        begun, used = time.monotonic(), cpu_ns(program.pid)
        time.sleep(seconds)
        return (cpu_ns(program.pid) - used) / (time.monotonic() - begun) / 1e7
    finally:
        program.end(signal.SIGTERM)


def with_streams(server, seconds):
    """CPU of the server while 100 clients read the stream."""
    selector = selectors.DefaultSelector()
    clients = []
    for _ in range(STREAMS):
        client = socket.create_connection(("127.0.0.1", server.port), timeout=10)
        client.sendall(b"GET /api/v1/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        client.setblocking(False)
        selector.register(client, selectors.EVENT_READ)
        clients.append(client)
    got = 0

    def read(until):
        nonlocal got
        while time.monotonic() < until:
            for key, _ in selector.select(0.2):
                with contextlib.suppress(BlockingIOError):
                    got += len(key.fileobj.recv(1 << 18))
    try:
        read(time.monotonic() + 2)
        got, begun, used = 0, time.monotonic(), cpu_of(server.pids)
        read(begun + seconds)
        return (cpu_of(server.pids) - used) / (time.monotonic() - begun) / 1e7, got / seconds / 1e6
    finally:
        for client in clients:
            client.close()


def growth(server, work):
    """MB that the server gained while `work` ran."""
    before = server.memory_mb()
    work()
    return server.memory_mb() - before


def scrape_many(server, count):
    """In one connection, below the limit of requests a second."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    begun = time.monotonic()
    with contextlib.closing(connection):
        for number in range(count):
            connection.request("GET", "/metrics")
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                raise Ended(f"status {answer.status} at scrape {number}")
            ahead = number / 400 - (time.monotonic() - begun)
            if ahead > 0:
                time.sleep(ahead)
    return time.monotonic() - begun


def peers(bench, section, repeat, seconds):
    rows = {"etwatch serve": (lambda: start_serve(bench)), "node_exporter": (lambda: start_node(bench)),
            "process-exporter": (lambda: start_process(bench)), "netdata": (lambda: start_netdata(bench))}
    values = {name: {"cpu": [], "memory": [], "scrape": [], "size": []} for name in rows}
    missing = {}
    for _ in range(repeat):
        for name, begin in rows.items():
            try:
                server = begin()
            except (Missing, Ended) as error:
                missing[name] = str(error)
                continue
            try:
                time.sleep(3)
                scrapes = []
                values[name]["cpu"].append(server.percent(seconds, lambda s=server, to=scrapes: to.append(s.scrape())))
                values[name]["memory"].append(server.memory_mb())
                values[name]["scrape"] += [ms for _, _, ms in scrapes]
                values[name]["size"] += [size / 1000 for _, size, _ in scrapes]
            finally:
                server.end()
    ours = {}
    for field, unit, bar in (("scrape", "ms", BARS["scrape"]), ("size", "kB", BARS["bytes"]), ("cpu", "%", None), ("memory", "MB", None)):
        for name in rows:
            row = section.add(f"{name}: {field}", unit, values[name][field], bar=bar if name == "etwatch serve" else None,
                              ratio_to=ours.get(field), note=missing.get(name, ""))
            ours.setdefault(field, row)


def run(bench):
    repeat = bench.repeat or (1 if bench.quick else 5)
    seconds = 5 if bench.quick else 10
    idle = 100 if bench.quick else 1000
    section = Section("serve", f"{idle} idle and 20 busy processes, 10 Hz, {repeat} times {seconds} s; % of one core")
    load = bench.load(idle, 20)
    try:
        stat, serve, ratio, streams, rate = [], [], [], [], []
        for _ in range(repeat):
            stat.append(stat_percent(bench, seconds))
            server = start_serve(bench)
            try:
                time.sleep(3)
                serve.append(server.percent(seconds))
                ratio.append(serve[-1] / stat[-1])
                before = server.percent(seconds)
                cpu, megabytes = with_streams(server, seconds)
                streams.append(cpu - before)
                rate.append(megabytes)
            finally:
                server.end()
        base = section.add("stat -a --json", "%", stat)
        section.add("serve, no client", "%", serve, ratio_to=base)
        section.add("serve to stat", "", ratio, bar=BARS["idle"])
        section.add(f"{STREAMS} clients on the stream", "%", streams, bar=BARS["streams"])
        section.add(f"{STREAMS} clients: sent", "MB/s", rate)
        server = start_serve(bench)
        try:
            time.sleep(3)
            count, used = 500, cpu_of(server.pids)
            took = scrape_many(server, count)
            spent = cpu_of(server.pids) - used - serve[-1] / 100 * took * 1e9
            section.add("a scrape: CPU of the server", "ms", [spent / count / 1e6], bar=BARS["scrape"])
        finally:
            server.end()
        # One process is watched: its history is small, so what grows is of the scrapes.
        server = start_serve(bench, "-p", str(os.getpid()))
        try:
            count = 500 if bench.quick else 10000
            time.sleep(3)
            scrape_many(server, 200)

            def work():
                nonlocal took
                took = scrape_many(server, count)
            scraped = growth(server, work)
            rest = growth(server, lambda: time.sleep(took))
            section.add(f"{count} scrapes: memory gained", "MB", [scraped - rest], bar=BARS["memory"],
                        note=f"{scraped:.1f} MB while scraping, {rest:.1f} MB of history in the same time without")
        finally:
            server.end()
        peers(bench, section, repeat, seconds)
    except (Missing, Ended) as error:
        section.note(str(error))
    finally:
        bench.unload(load)
    return section
