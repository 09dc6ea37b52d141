# SPDX-License-Identifier: MIT
"""fleet: what a real Prometheus needs for 1000 machines that run etwatch serve.

A real server is scraped once a second for a while; a replayer on loopback answers as 1000 hosts with these texts, one
step further with each scrape of a host. A quarter of the names and all values are those of one host alone, so that neither
the index nor the compression of Prometheus profits from hosts that are alike. A Prometheus scrapes all of them every 15 s. Stated: its CPU, memory, series, samples a second, and the bytes of a scrape.
"""
import gzip
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request

from .figures import Section
from .processes import Ended, Missing, Program

HOSTS, INTERVAL_S = 1000, 15
CONFIG = """
global: {scrape_interval: %ds, scrape_timeout: 10s}
scrape_configs:
  - job_name: etwatch
    static_configs: [{targets: %s}]
    relabel_configs:
      - {source_labels: [__address__], target_label: __param_host}
      - {source_labels: [__address__], target_label: instance}
      - {target_label: __address__, replacement: "127.0.0.1:%d"}
  - job_name: prometheus
    static_configs: [{targets: ["127.0.0.1:%d"]}]
"""


def get(url, timeout=10):
    with urllib.request.urlopen(url, timeout=timeout) as answer:
        return answer.read()


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def record(bench, count):
    """The texts of a real server, a second apart."""
    port = free_port()
    server = Program([bench.etwatch(), "serve", "--listen", f"127.0.0.1:{port}", "--source", bench.source], pipe_in=False)
    texts = []
    try:
        deadline = time.monotonic() + 30 + count
        while len(texts) < count and time.monotonic() < deadline:
            time.sleep(1)
            try:
                text = get(f"http://127.0.0.1:{port}/metrics")
            except OSError:
                continue
            if text.count(b"etwatch_process_cpu_seconds_total{") >= 5:
                texts.append(text)
    finally:
        server.process.terminate()
        server.process.wait()
    if len(texts) < count:
        raise Ended(f"serve: {len(texts)} of {count} scrapes: {server.errors()}")
    return texts


# The replayer is a process of its own, so that its CPU time is not that of the bench.
REPLAYER = """
import gzip, http.server, re, sys, urllib.parse, zlib
texts = [open(path, encoding='utf-8').read().splitlines() for path in sys.argv[2:]]
step = {}
def draw(text, below):
    return zlib.crc32(text.encode()) % below
def own_name(found, host):
    name = found[1]
    return f'name="{name}-{host}"' if name != 'other' and draw(name + host, 4) == 0 else found[0]
# Counters of a host differ by a constant, so that they still only grow; gauges by a factor.
def own(lines, host):
    for line in lines:
        if line.startswith('#'):
            yield line
            continue
        series, value = line.rsplit(' ', 1)
        number = float(value)
        if '_total' in series:
            number += draw(series + host, 10**6) / 7
        elif number not in (0, 1):
            number *= 1 + draw(host, 1000) / 10000
        yield re.sub(r'\\bname="([^"]*)"', lambda found: own_name(found, host), series) + f' {number:.10g}'
def body_of(host, at):
    return gzip.compress(('\\n'.join(own(texts[at], host)) + '\\n').encode(), 1)
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        host = urllib.parse.urlsplit(self.path).query
        step[host] = step.get(host, -1) + 1
        body = body_of(host, min(step[host], len(texts) - 1))
        self.send_response(200)
        self.send_header('Content-Type', 'text/plain; version=0.0.4')
        self.send_header('Content-Encoding', 'gzip')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024
if __name__ == '__main__':
    Server(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
"""


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_mb(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:")) / 1024


def query(port, expression):
    url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
    result = json.loads(get(url, 60))["data"]["result"]
    return float(result[0]["value"][1]) if result else float("nan")


def folder_mb(path):
    return sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(path) for name in names) / 2**20


def observe(section, child, port, data, hosts, seconds):
    """After two rounds of scrapes, over the rest."""
    time.sleep(2 * INTERVAL_S + 5)
    begun, cpu = time.monotonic(), cpu_seconds(child.pid)
    time.sleep(seconds)
    spent = cpu_seconds(child.pid) - cpu
    percent = 100 * spent / (time.monotonic() - begun)
    up = query(port, 'sum(up{job="etwatch"})')
    name = f"Prometheus, {hosts} hosts every {INTERVAL_S} s"
    section.add(name, "% of a core", [percent])
    section.add(name, "MB RSS", [rss_mb(child.pid)])
    section.add(name, "series", [query(port, "prometheus_tsdb_head_series")])
    section.add(name, "series per host", [query(port, 'avg(count by (instance) ({job="etwatch"}))')])
    section.add(name, "samples a second", [query(port, "rate(prometheus_tsdb_head_samples_appended_total[1m])")])
    section.add(name, "ms per scrape", [1000 * query(port, 'avg(scrape_duration_seconds{job="etwatch"})')])
    section.add(name, "hosts that are up", [up])
    section.add(name, "MB on disk", [folder_mb(data)], note=f"after {int(seconds + 2 * INTERVAL_S + 5)} s")


def run(bench):
    if not shutil.which("prometheus"):
        raise Missing("prometheus is not installed (Debian: prometheus)")
    section = Section("fleet", "a real Prometheus and many machines")
    hosts, seconds = (50, 20) if bench.quick else (HOSTS, 90)
    texts = record(bench, 4 if bench.quick else 12)
    paths = []
    for i, text in enumerate(texts):
        paths.append(bench.file(f"fleet-{i}.txt"))
        with open(paths[-1], "wb") as file:
            file.write(text)
    section.add("a scrape", "kB", [len(texts[-1]) / 1000])
    section.add("a scrape", "kB compressed", [len(gzip.compress(texts[-1], 1)) / 1000])
    replay, port = free_port(), free_port()
    config, data = bench.file("fleet.yml"), bench.file("fleet-data")
    shutil.rmtree(data, ignore_errors=True)
    with open(config, "w", encoding="utf-8") as file:
        file.write(CONFIG % (INTERVAL_S, json.dumps([f"host{i}" for i in range(hosts)]), replay, port))
    children = [subprocess.Popen([sys.executable, "-c", REPLAYER, str(replay), *paths], stderr=subprocess.DEVNULL)]
    try:
        children.append(subprocess.Popen(["prometheus", f"--config.file={config}", f"--storage.tsdb.path={data}",
                                          f"--web.listen-address=127.0.0.1:{port}"], stdout=subprocess.DEVNULL,
                                         stderr=subprocess.DEVNULL))
        observe(section, children[1], port, data, hosts, seconds)
        section.add("the replayer", "% of a core", [100 * cpu_seconds(children[0].pid) / (seconds + 2 * INTERVAL_S + 5)])
    finally:
        for child in children:
            child.kill()
            child.wait()
    return section
