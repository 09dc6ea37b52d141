# SPDX-License-Identifier: MIT
"""etwatch serve --otlp into a real OpenTelemetry Collector, which ./dev collector-test builds: what it decodes is what
was sent, and nothing is lost while it is away."""
import contextlib
import json
import os
import signal
import socket
import subprocess
import time

from etlkit import recording
from lib import ROOT, check, check_eq, end, main, run, skip, temp_dir, test
from otlpkit import Receiver, points, value
from servekit import samples, serve, wait_for

COLLECTOR = os.path.join(ROOT, "build-collector", "out", "otelcol")
AWAY_SECONDS = 30
CONFIG = """
receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:%d"}}}}
exporters:
  otlphttp:
    endpoint: %s
    encoding: json
    compression: none
    sending_queue: {enabled: false}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {metrics: {receivers: [otlp], exporters: [otlphttp]}}
"""


def need_collector():
    if not os.access(COLLECTOR, os.X_OK):
        skip("there is no collector: ./dev collector-test builds one")


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextlib.contextmanager
def collector(port, behind):
    """A running collector that passes everything on as JSON."""
    with temp_dir() as folder:
        config = os.path.join(folder, "config.yaml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(CONFIG % (port, behind))
        with subprocess.Popen([COLLECTOR, "--config", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
            try:
                wait_for("the collector", lambda: can_connect(port))
                yield child
            finally:
                child.send_signal(signal.SIGTERM)
                child.wait(timeout=30)


def can_connect(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def normal(body):
    """A request without what may differ: order, and values of etwatch itself."""
    return sorted((json.dumps(resource, sort_keys=True), exactness, name, json.dumps(given, sort_keys=True), kind,
                   metric["unit"], metric["description"], metric.get("sum", {}).get("isMonotonic", False),
                   metric.get("sum", {}).get("aggregationTemporality"), point["timeUnixNano"],
                   point.get("startTimeUnixNano"), value(point))
                  for resource, exactness, name, given, point, kind, metric in points(json.loads(body))
                  if not name.startswith("etwatch.self."))


def exported(path, url, receiver, protocol):
    server = serve("--otlp", url, path, source=None, environment={"OTEL_EXPORTER_OTLP_PROTOCOL": protocol})
    body = receiver.wait()[0]
    wait_for("the answer", lambda: samples(server.metrics())["etwatch_otlp_sent_exports_total"] == 1)
    end(server.child)
    receiver.close()
    return body


@test
def what_the_collector_decodes_is_what_was_sent():
    need_collector()
    with recording("switches") as path:
        direct = Receiver()
        sent = normal(exported(path, direct.url, direct, "http/json"))
        check(len(sent) > 20, f"{len(sent)} data points")
        for protocol in ("http/protobuf", "http/json"):
            behind, port = Receiver(), free_port()
            with collector(port, behind.url):
                check_eq(normal(exported(path, f"http://127.0.0.1:{port}", behind, protocol)), sent, protocol)


@test(seconds=240)
def nothing_is_lost_while_the_collector_is_away():
    need_collector()
    behind, port = Receiver(), free_port()
    server = serve("--otlp", f"http://127.0.0.1:{port}", "--otlp-interval", "1s", source=None)
    with collector(port, behind.url):
        behind.wait(3)
    time.sleep(AWAY_SECONDS)
    shown = samples(server.metrics())
    check(shown["etwatch_otlp_queued_exports"] >= AWAY_SECONDS / 2, "exports wait")
    check_eq(shown["etwatch_otlp_up"], 0, "up")
    with collector(port, behind.url):
        wait_for("an empty queue", lambda: samples(server.metrics())["etwatch_otlp_queued_exports"] == 0, seconds=90)
        server.child.send_signal(signal.SIGINT)
        server.child.wait(timeout=30)
    end(server.child)
    times = [int(points(json.loads(body))[0][4]["timeUnixNano"]) // 10**9 for body in behind.accepted]
    check_eq(times, sorted(set(times)), "times in order, each once")
    check_eq(times, list(range(times[0], times[-1] + 1)), "every second")
    check_eq((shown["etwatch_otlp_dropped_points_total"], shown["etwatch_otlp_rejected_points_total"]), (0, 0), "lost")


@test
def the_configuration_of_the_package_is_valid():
    need_collector()
    config = os.path.join(ROOT, "packaging", "collector", "agent.yaml")
    done = run(["validate", "--config", config], program=COLLECTOR, env={**os.environ, "BACKEND": "http://127.0.0.1:1"})
    check_eq(done.code, 0, f"{done.err}: status")


main()
