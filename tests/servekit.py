# SPDX-License-Identifier: MIT
"""A running `etwatch serve` and a plain HTTP client, for the tests of the server."""
import contextlib
import http.client
import json
import os
import re
import select
import socket
import time

from lib import Failed, check, skip, start

UNDER_WINE = os.environ.get("ETWATCH_UNDER_WINE") == "1"


class Server:
    """The program, where it listens, and what it printed until then."""

    def __init__(self, child, scheme, address, port, printed=b""):
        self.child, self.scheme, self.address, self.port, self.printed = child, scheme, address, port, printed

    def stop(self):
        """Ends it as a service manager does; everything that it printed."""
        self.child.terminate()
        _, rest = self.child.communicate(timeout=30)
        return (self.printed + rest).decode(errors="replace")

    def get(self, path, method="GET", headers=None, timeout=20):
        """(status, headers, text)."""
        connection = http.client.HTTPConnection(self.address, self.port, timeout=timeout)
        with contextlib.closing(connection):
            connection.request(method, path, headers=headers or {})
            answer = connection.getresponse()
            body = answer.read()
            return answer.status, answer.headers, body

    def json(self, path):
        status, _, body = self.get(path)
        check(status == 200, f"{path}: status {status}: {body[:200]!r}")
        return json.loads(body)

    def metrics(self, accept=None):
        status, _, body = self.get("/metrics", headers={"Accept": accept} if accept else None)
        check(status == 200, f"/metrics: status {status}")
        return body.decode()

    def raw(self, data, wait_s=5):
        """Sends bytes as they are; everything that comes back until the server closes or is silent."""
        with socket.create_connection((self.address, self.port), timeout=wait_s) as connection:
            connection.settimeout(wait_s)
            got = b""
            try:
                connection.sendall(data)
                while True:
                    part = connection.recv(65536)
                    if not part:
                        break
                    got += part
            except (socket.timeout, ConnectionError):
                pass
            return got

    def serving_pid(self):
        """The process without rights."""
        return self.children()["etwatch-http"]

    def children(self):
        """{name: pid} of the processes of the server besides the collecting one."""
        with open(f"/proc/{self.child.pid}/task/{self.child.pid}/children", encoding="ascii") as file:
            pids = file.read().split()
        found = {}
        for pid in pids:
            with open(f"/proc/{pid}/comm", encoding="ascii") as file:
                found[file.read().strip()] = int(pid)
        check(len(found) == len(pids) and "etwatch-http" in found, f"children: {found}")
        return found


def need_serve():
    """Skips where the program has no server."""
    if UNDER_WINE:
        skip("windows/serve covers the server of Windows")


def serve(*options, source="poll", environment=None, listen="127.0.0.1:0", **start_options):
    """Starts the server on a free port and waits until it says where."""
    need_serve()
    arguments = ["serve", "--listen", listen, *options]
    if source:
        arguments += ["--source", source]
    return listening(start(arguments, env={**os.environ, **(environment or {})}, **start_options))


def listening(child, seconds=30):
    """The server of a program that was started, once it says where it listens."""
    text = b""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not select.select([child.stderr], [], [], 0.2)[0]:
            continue
        part = os.read(child.stderr.fileno(), 4096)
        if not part:
            break
        text += part
        found = re.search(rb"serving (https?)://\[?([0-9a-f.:]+?)\]?:(\d+)/", text)
        if found:
            address = found[2].decode()
            return Server(child, found[1].decode(), "127.0.0.1" if address == "0.0.0.0" else address, int(found[3]), text)
    if b"no HTTP server" in text:
        skip("this build has no HTTP server")
    raise Failed(f"serve does not start: {text.decode(errors='replace')}")


def wait_for(what, condition, seconds=30):
    """Until the condition gives something true, which is returned."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        result = condition()
        if result:
            return result
        time.sleep(0.2)
    raise Failed(f"{what}: not within {seconds} s")


def samples(text):
    """{series: value} of the text format."""
    found = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            check(name not in found, f"twice: {name}")
            found[name] = float(value)
    return found
