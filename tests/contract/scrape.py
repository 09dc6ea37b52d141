# SPDX-License-Identifier: MIT
"""A real Prometheus scrapes etwatch serve under load, for 15 seconds here and for a minute in ./dev collector-test."""
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request

from lib import check, check_between, check_eq, json_lines, main, skip, start, temp_dir, test
from servekit import serve, wait_for

SECONDS = int(os.environ.get("ETWATCH_SCRAPE_SECONDS", "15"))
CONFIG = """
global: {scrape_interval: 3s, scrape_timeout: 3s}
scrape_configs:
  - job_name: etwatch
    static_configs: [{targets: ["127.0.0.1:%d"]}]
"""
# Waits for a line, works for a while on the CPU, and stays.
LOAD = """
import sys, time
sys.stdin.readline()
end = time.time() + float(sys.argv[1])
while time.time() < end: pass
print(time.process_time(), flush=True)
sys.stdin.readline()
"""


class Prometheus:
    def __init__(self, port, process):
        self.port, self.process = port, process

    def query(self, expression):
        url = f"http://127.0.0.1:{self.port}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]["result"]

    def is_ready(self):
        with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=2):
            return True
        return False


@contextlib.contextmanager
def prometheus(target):
    if not shutil.which("prometheus"):
        skip("prometheus is missing (Debian: prometheus)")
    with socket.socket() as free, temp_dir() as folder:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        config = os.path.join(folder, "prometheus.yml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(CONFIG % target)
        with subprocess.Popen(["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}/data",
                               f"--web.listen-address=127.0.0.1:{port}"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as child:
            try:
                found = Prometheus(port, child)
                wait_for("Prometheus", found.is_ready)
                yield found
            finally:
                child.kill()
                child.wait()


def never_back(results):
    for series in results:
        values = [float(value) for _, value in series["values"]]
        check(all(b >= a for a, b in zip(values, values[1:])), f"{series['metric']}: goes back: {values}")


@test(seconds=SECONDS + 240)
def prometheus_sees_what_stat_sees():
    load = start(["-c", LOAD, str(SECONDS)], program=sys.executable, stdin=subprocess.PIPE)
    server = serve("-p", str(load.pid), source=None)
    stat = start(["stat", "-p", str(load.pid), "--hz", "10", "--json"])
    with prometheus(server.port) as scraper:
        wait_for("the first scrape", lambda: scraper.query("etwatch_processes"))
        wait_for("stat", lambda: scraper.query("etwatch_samples_total"))
        load.stdin.write(b"\n")
        load.stdin.flush()
        used = float(load.stdout.readline())
        ended = time.time()
        stat.send_signal(2)
        text = stat.communicate(timeout=60)[0].decode()
        counted = sum(o["cpu_ns"] or 0 for o in json_lines(text) if o["type"] == "sample") / 1e9
        total = "sum(etwatch_process_cpu_seconds_total)"

        def settled():
            """The sum of all series, once scrapes after the end of the load agree."""
            scraped = scraper.query("timestamp(etwatch_samples_total)")
            if not scraped or float(scraped[0]["value"][1]) < ended + 3:
                return None
            before = scraper.query(total)
            time.sleep(6.5)
            after = scraper.query(total)
            return before and after and before[0]["value"][1] == after[0]["value"][1] and float(after[0]["value"][1])
        seen = wait_for("the last scrape", settled, seconds=90)
        window = f"[{SECONDS + 120}s]"
        ups = scraper.query("up" + window)
        counters = scraper.query('{__name__=~"etwatch_.*_total"}' + window)
    check_eq([float(v) for _, v in ups[0]["values"]], [1.0] * len(ups[0]["values"]), "up")
    check(len(ups[0]["values"]) > SECONDS / 6, f"{len(ups[0]['values'])} scrapes in {SECONDS} s")
    check(len(counters) > 10, f"{len(counters)} counters")
    never_back(counters)
    check_between(seen, 0.99 * counted, 1.01 * counted, f"CPU seconds (stat {counted}, itself {used})")


main()
