# SPDX-License-Identifier: MIT
"""etwatch serve --store: history that survives the program."""
import os
import signal
import sys

from lib import check, check_eq, check_in, end, main, run, skip, start, temp_dir, test
from servekit import need_serve, samples, serve, wait_for

BUSY = "import time; end = time.time() + 60\nwhile time.time() < end: pass"


def stored(folder, *options):
    return serve("--store", os.path.join(folder, "history"), *options)


def figure(server, name):
    return samples(server.metrics()).get(f"etwatch_store_{name}", 0)


@test
def a_killed_server_loses_nothing_that_was_written():
    child = start(["-c", BUSY], program=sys.executable)
    with temp_dir() as folder:
        os.chmod(folder, 0o755)
        first = stored(folder)
        # The first stretch may be short; the second is whole.
        wait_for("records", lambda: figure(first, "records_total") > 0)
        written = figure(first, "records_total")
        wait_for("more records", lambda: figure(first, "records_total") > written)
        ids = [p["id"] for p in first.json("/api/v1/store/processes")["processes"] if p["pid"] == child.pid]
        check_eq(len(ids), 1, "the busy process in the store")
        until = first.json("/api/v1/store")["oldest_ms"] + 20000
        # The process that writes is killed itself; the collecting one ends with it.
        os.kill(first.serving_pid(), signal.SIGKILL)
        check_eq(first.child.wait(timeout=20), 1, "status")
        end(first.child)
        end(child)
        # The processes of the killed one end with it; until then they hold the database.
        second = wait_for("the database", lambda: try_again(folder))
        check_eq(figure(second, "replaced_total"), 0, "databases that were replaced")
        wait_for("a second", lambda: second.get("/healthz")[0] == 200 and "etwatch_samples_total" in second.metrics())
        got = second.json(f"/api/v1/processes/{ids[0]}/history?metrics=cpu_ns")
        rates = [value for value in got["series"]["cpu_ns"] if value]
        check(rates and max(rates) <= 1.2e9, f"rates {rates}")
        machine = second.json(f"/api/v1/system/history?from={int(until - 30000)}&to={int(until)}")
        check_eq(machine["resolution"], "10s", "the machine comes from disk")
        check(any(value is not None for value in machine["series"]["memory_total_bytes"]), "the machine has values")
        check_eq(second.get("/api/v1/processes/1-1/history")[0], 404, "an unknown process")
        done = run(["serve", "--listen", "127.0.0.1:0", "--source", "poll", "--store", os.path.join(folder, "history")])
        check_eq(done.code, 1, f"a second server: {done.err}: status")
        check_in("in use by another process", done.err)
        end(second.child)


def try_again(folder):
    try:
        return stored(folder)
    except Exception as error:  # serve() fails while the folder is still held
        if "in use" in str(error):
            return None
        raise


@test
def a_folder_that_cannot_be_written_is_an_error():
    need_serve()
    done = run(["serve", "--listen", "127.0.0.1:0", "--source", "poll", "--store", "/proc/none"])
    if "cannot store history" in done.err or "no HTTP server" in done.err:
        skip("this build cannot store history")
    check_eq(done.code, 1, f"{done.err}: status")
    check_in("cannot make the folder", done.err)
    with temp_dir() as folder:
        if os.getuid() != 0:
            os.chmod(folder, 0o500)
        done = run(["serve", "--listen", "127.0.0.1:0", "--source", "poll", "--store", folder])
        check_eq(done.code, 1, f"{done.err}: status")
        check_in("must be writable for user", done.err)


@test
def without_a_store_nothing_is_stored():
    server = serve()
    check_eq(server.json("/api/v1/store")["enabled"], False, "enabled")
    status, _, body = server.get("/api/v1/store/processes")
    check_eq(status, 404, "status")
    check_in(b"--store DIR", body)


main()
