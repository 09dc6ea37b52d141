# SPDX-License-Identifier: MIT
"""etwatch serve --otlp against receivers that accept, refuse, disappear and come back."""
import json
import os
import shutil
import socket
import ssl
import subprocess
import time

from etlkit import recording
from lib import check, check_eq, check_in, end, main, run, skip, temp_dir, test
from otlpkit import Receiver, as_prometheus, attributes, decode_protobuf, points, value
from servekit import need_serve, samples, serve, wait_for

JSON = {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}


def push(receiver, *options, **named):
    return serve("--otlp", receiver.url, "--otlp-interval", "1s", *options, **named)


def metric(server, name):
    return samples(server.metrics())[f"etwatch_otlp_{name}"]


@test
def an_export_equals_the_metrics_of_prometheus():
    # A recording does not change any more: what is pushed at its end is what /metrics shows.
    with recording("switches") as path:
        got = {}
        for protocol in ("http/json", "http/protobuf"):
            receiver = Receiver()
            server = serve("--otlp", receiver.url, path, source=None, environment={"OTEL_EXPORTER_OTLP_PROTOCOL": protocol})
            body = receiver.wait()[0]
            type_ = receiver.requests[0][1]["Content-Type"]
            check_eq(type_, "application/json" if protocol == "http/json" else "application/x-protobuf", "type")
            wait_for("the count", lambda server=server: metric(server, "sent_exports_total") == 1)
            shown = samples(server.metrics())
            end(server.child)
            check_eq(len(receiver.accepted), 1, "exports of a recording")
            receiver.close()
            got[protocol] = json.loads(body) if protocol == "http/json" else decode_protobuf(body)
            found, left = as_prometheus(got[protocol])
            check(len(found) > 20, f"{len(found)} series")
            for series, number in found.items():
                check(abs(shown[series] - number) <= 1e-9 * abs(number), f"{series}: {shown[series]} and {number}")
            check(all(name.startswith("etwatch.") for name in left), f"no counterpart: {sorted(left)}")
            processes = {s for s in shown if s.startswith("etwatch_process") and not s.startswith("etwatch_process_start_")}
            check_eq(processes - set(found), set(), "series that were not pushed")


@test
def points_carry_their_kind_start_exactness_and_resource():
    receiver = Receiver()
    server = push(receiver, environment={**JSON, "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=a%20b,x=1",
                                         "OTEL_SERVICE_NAME": "fleet", "OTEL_EXPORTER_OTLP_HEADERS": "x-key=s%2Ct,b=2"})
    bodies = [json.loads(body) for body in receiver.wait(3)]
    end(server.child)
    path, headers, _ = receiver.requests[0]
    check_eq((path, headers["x-key"], headers["b"]), ("/v1/metrics", "s,t", "2"), "path and headers")
    resource = attributes(bodies[0]["resourceMetrics"][0]["resource"])
    check_eq((resource["service.name"], resource["deployment.environment"], resource["x"], resource["host.name"]),
             ("fleet", "a b", "1", socket.gethostname()), "resource")
    for body in bodies:
        for _, exactness, name, _, point, kind, whole in points(body):
            if name == "etwatch.process.cpu.time":
                check_eq((exactness, kind, whole["sum"]["isMonotonic"], whole["sum"]["aggregationTemporality"]),
                         ("polled", "sum", True, 2), name)
            if name == "process.memory.usage":
                check_eq((kind, whole["sum"]["isMonotonic"], whole["unit"]), ("sum", False, "By"), name)
            if kind == "sum":
                check(int(point["startTimeUnixNano"]) <= int(point["timeUnixNano"]), f"{name}: times")


@test
def nothing_is_lost_while_the_collector_is_away():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = serve("--otlp", f"http://127.0.0.1:{port}", "--otlp-interval", "1s", environment=JSON)
    wait_for("a queue", lambda: metric(server, "queued_exports") >= 4)
    check_eq(metric(server, "up"), 0, "up")
    check(metric(server, "retries_total") > 0, "retries")
    receiver = Receiver(port=port)
    wait_for("an empty queue", lambda: metric(server, "queued_exports") == 0 and metric(server, "up") == 1, seconds=60)
    check_eq((metric(server, "dropped_points_total"), metric(server, "rejected_points_total")), (0, 0), "lost")
    end(server.child)
    times = [int(points(json.loads(body))[0][4]["timeUnixNano"]) for body in receiver.accepted]
    check_eq(times, sorted(set(times)), "times in order, each once")
    # An interval has one export; a stalled machine may close several seconds at once.
    check(all(b // 10**9 > a // 10**9 for a, b in zip(times, times[1:])), f"times {times}")
    check(metric_sum(receiver) > 0, "points")


def metric_sum(receiver):
    return sum(len(points(json.loads(body))) for body in receiver.accepted)


@test
def a_full_queue_loses_its_oldest_exports_and_says_so():
    with socket.socket() as closed:  # bound, but not listening: connections are refused
        closed.bind(("127.0.0.1", 0))
        server = serve("--otlp", f"http://127.0.0.1:{closed.getsockname()[1]}", "--otlp-interval", "1s", "--otlp-queue",
                       "64K", environment={**JSON, "OTEL_EXPORTER_OTLP_COMPRESSION": "none"})
        wait_for("a loss", lambda: metric(server, "dropped_points_total") > 0)
        check(metric(server, "queue_bytes") <= 65536, "the queue is larger than it may be")
        end(server.child)


@test
def answers_of_the_collector_decide():
    receiver = Receiver((503, {"Retry-After": "1"}, b""), (400, {}, b"no"), (429, {}, b""),
                        (200, {}, b'{"partialSuccess":{"rejectedDataPoints":"2","errorMessage":"old"}}'), (200, {}, b""))
    server = push(receiver, environment=JSON)
    receiver.wait(2)
    wait_for("an empty queue", lambda: metric(server, "queued_exports") == 0)
    shown = samples(server.metrics())
    bodies = [body for _, _, body in receiver.requests]
    end(server.child)
    check_eq(bodies[0], bodies[1], "the export after 503")
    check(bodies[2] != bodies[1], "an export that was refused for good is not repeated")
    check_eq(bodies[2], bodies[3], "the export after 429")
    check_eq(shown["etwatch_otlp_retries_total"], 2, "retries")
    refused = len(points(json.loads(bodies[1])))
    check_eq(shown["etwatch_otlp_rejected_points_total"], refused + 2, "points that were refused")
    check_eq(shown["etwatch_otlp_dropped_points_total"], 0, "points that were dropped")


@test
def deltas_add_up_to_what_prometheus_shows():
    receiver = Receiver()
    server = push(receiver, environment={**JSON, "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE": "delta"})
    receiver.wait(4)
    end(server.child)
    ends, total = {}, 0
    for body in map(json.loads, receiver.accepted):
        for _, _, name, given, point, _, whole in points(body):
            if name != "etwatch.process.cpu.time":
                continue
            check_eq(whole["sum"]["aggregationTemporality"], 1, "temporality")
            key = given["process.executable.name"]
            check(int(point["startTimeUnixNano"]) >= ends.get(key, 0), f"{key}: intervals overlap")
            ends[key] = int(point["timeUnixNano"])
            check(value(point) >= 0, "a negative delta")
            total += value(point)
    check(total > 0, "no CPU time at all")


@test
def collectors_are_verified():
    if not shutil.which("openssl"):
        skip("openssl is missing")
    with temp_dir() as folder:
        key, cert = os.path.join(folder, "key.pem"), os.path.join(folder, "cert.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
                        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert], check=True,
                       capture_output=True)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(cert, key)
        receiver = Receiver(tls=tls)
        server = push(receiver, environment={"OTEL_EXPORTER_OTLP_CERTIFICATE": cert})
        receiver.wait()
        end(server.child)
        accepted = len(receiver.accepted)
        server = push(receiver)
        wait_for("a failure", lambda: metric(server, "retries_total") > 0)
        check_eq((metric(server, "up"), len(receiver.accepted)), (0, accepted), "an unknown certificate")
        end(server.child)
        receiver.close()


@test
def only_a_server_that_pushes_may_connect():
    """The filter of system calls is there in both cases; test_confine tries what it refuses."""
    receiver = Receiver()
    for server in (serve(), push(receiver)):
        with open(f"/proc/{server.serving_pid()}/status", encoding="ascii") as file:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
        if status["Seccomp"] == "0":
            skip("this build has no filter of system calls")
        check_eq(status["Seccomp"], "2", "Seccomp")
        end(server.child)


@test
def what_cannot_work_is_an_error_before_anything_starts():
    need_serve()
    rows = [
        ("no scheme", ["--otlp", "127.0.0.1:4318"], {}, "--otlp needs an address"),
        ("password", ["--otlp", "http://a:b@127.0.0.1"], {}, "OTEL_EXPORTER_OTLP_HEADERS"),
        ("gRPC", ["--otlp", "http://127.0.0.1:4317"], {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "gRPC is not supported"),
        ("headers", [], {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_HEADERS": "secret"},
         "OTEL_EXPORTER_OTLP_HEADERS must be"),
        ("line end", ["--otlp", "http://127.0.0.1:1"], {"OTEL_EXPORTER_OTLP_HEADERS": "a=b%0d%0ac:d"}, "must be NAME=VALUE"),
        ("compression", ["--otlp", "http://127.0.0.1:1"], {"OTEL_EXPORTER_OTLP_COMPRESSION": "zip"}, "gzip or none"),
        ("timeout", ["--otlp", "http://127.0.0.1:1"], {"OTEL_EXPORTER_OTLP_TIMEOUT": "10s"}, "milliseconds"),
        ("attributes", ["--otlp", "http://127.0.0.1:1"], {"OTEL_RESOURCE_ATTRIBUTES": "a"}, "KEY=VALUE"),
        ("interval", ["--otlp", "http://127.0.0.1:1", "--otlp-interval", "2m"], {}, "1s to 60s"),
    ]
    for remark, options, environment, words in rows:
        done = run(["serve", "--listen", "127.0.0.1:0", "--source", "poll", *options], env={**os.environ, **environment})
        if "cannot push" in done.err or "no HTTP server" in done.err:
            skip("this build cannot push")
        check_eq(done.code, 2, f"{remark}: {done.err}: status")
        check_in(words, done.err, remark)
        check("secret" not in done.err, "a secret in a message")


@test
def the_variables_name_the_collector_and_switch_it_off():
    receiver = Receiver()
    server = serve(environment={**JSON, "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url + "/base/",
                                "OTEL_METRIC_EXPORT_INTERVAL": "1000"})
    receiver.wait()
    check_eq(receiver.requests[0][0], "/base/v1/metrics", "path")
    end(server.child)
    count = len(receiver.requests)
    server = serve(environment={"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "OTEL_METRICS_EXPORTER": "none"})
    wait_for("metrics", lambda: "etwatch_samples_total" in server.metrics())
    time.sleep(0.2)
    check("etwatch_otlp" not in server.metrics(), "it pushes")
    end(server.child)
    check_eq(len(receiver.requests), count, "requests")


main()
