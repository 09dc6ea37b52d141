# SPDX-License-Identifier: MIT
"""A receiver of OTLP over HTTP for the tests of the push, and independent decoders of what it got: json, and the
classes of PyPI's opentelemetry-proto in build-python."""
import gzip
import http.server
import json
import subprocess
import threading
import time

from lib import check, run
from toolkit import need, python

DECODE = """
import sys
from google.protobuf.json_format import MessageToJson
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
request = ExportMetricsServiceRequest()
request.ParseFromString(sys.stdin.buffer.read())
print(MessageToJson(request))
"""


class Receiver:
    """Answers each POST with the next of `answers` (status, headers, body), the last one for ever; keeps what came."""

    def __init__(self, *answers, port=0, tls=None):
        self.answers = list(answers) or [(200, {}, b"")]
        self.requests = []  # (path, headers, body without compression)
        self.accepted = []  # bodies that were answered with 200
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                receiver.requests.append((self.path, self.headers, body))
                status, headers, answer = receiver.answers[0]
                if len(receiver.answers) > 1:
                    receiver.answers.pop(0)
                if status == 200:
                    receiver.accepted.append(body)
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(answer))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def wait(self, count=1, seconds=30):
        """Until so many bodies were accepted."""
        deadline = time.monotonic() + seconds
        while len(self.accepted) < count and time.monotonic() < deadline:
            time.sleep(0.05)
        check(len(self.accepted) >= count, f"{len(self.accepted)} exports within {seconds} s, not {count}")
        return self.accepted


def decode_protobuf(body):
    """The request as JSON would have it, by opentelemetry-proto."""
    need("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")
    done = subprocess.run([python(), "-c", DECODE], input=body, capture_output=True, check=False)
    check(done.returncode == 0, f"opentelemetry-proto cannot read the export: {done.stderr.decode()[-300:]}")
    return json.loads(done.stdout)


def attributes(owner):
    """{key: value} of a list of attributes."""
    return {a["key"]: next(iter(a["value"].values())) for a in owner.get("attributes", [])}


def points(request):
    """[(resource, exactness, metric name, attributes, point, "sum" or "gauge", metric)] of a decoded request."""
    found = []
    for resource in request["resourceMetrics"]:
        for scope in resource["scopeMetrics"]:
            for metric in scope["metrics"]:
                kind = "sum" if "sum" in metric else "gauge"
                for point in metric[kind].get("dataPoints", []):
                    found.append((attributes(resource["resource"]), attributes(scope["scope"])["etwatch.exactness"],
                                  metric["name"], attributes(point), point, kind, metric))
    return found


def value(point):
    return int(point["asInt"]) if "asInt" in point else float(point.get("asDouble", 0))


def as_prometheus(request):
    """{series of /metrics: value} of a decoded request, by the names of `etwatch metrics`, and what has no counterpart."""
    names, found, left = {}, {}, set()
    for line in run(["metrics", "--json"]).out.splitlines():
        row = json.loads(line)
        if row.get("otlp") and row["prometheus"]:
            pair = tuple(sorted(p for p in row["otlp_attribute"].split(",") if p))
            for name in {row["otlp"], row.get("otlp_linux") or row["otlp"]}:
                names[name, pair] = row["prometheus"], row["prometheus_labels"]
    lives = {"etwatch.process.count": "etwatch_processes", "etwatch.process.starts": "etwatch_process_starts_total",
             "etwatch.process.exits": "etwatch_process_exits_total"}
    for _, _, name, given, point, _, _ in points(request):
        given = dict(given)
        group = given.pop("process.executable.name", None)
        pair = tuple(sorted(f"{k}={v}" for k, v in given.items()))
        series, labels = names.get((name, pair), (lives.get(name), ""))
        if series is None:
            left.add(name)
            continue
        both = ([f'name="{group}"'] if group is not None else []) + ([labels] if labels else [])
        series += "{" + ",".join(both) + "}" if both else ""
        check(series not in found, f"twice: {series}")
        found[series] = value(point)
    return found, left
