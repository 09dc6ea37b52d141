# SPDX-License-Identifier: MIT
"""The service under Wine's service manager: installed, started, stopped and removed, with a recording as its result.

Wine has neither the account rights nor the identities of services, so the privilege is not granted there."""
import os
import time

from lib import check, check_eq, check_in, json_lines, main, run, temp_dir, test
from winekit import windows_build, wine


def tool(name, *words):
    """A program of Wine: its output."""
    folder = os.path.join(windows_build(), "wine", "prefix", "drive_c", "windows", "system32")
    return wine(list(words), program=os.path.join(folder, name)).out


def state():
    out = tool("sc.exe", "query", "etwatch")
    return next((word for word in ("RUNNING", "STOPPED", "STOP_PENDING", "START_PENDING") if word in out), None)


def wait_for(condition, what):
    for _ in range(900):
        if condition():
            return
        time.sleep(0.1)
    check(False, what)


def processes(path):
    return {o["name"] for o in json_lines(run(["report", "--json", path]).out) if o["type"] == "process"}


def windows_path(path):
    return "Z:" + path.replace("/", "\\")


def write_config(folder, *lines):
    path = os.path.join(folder, "ring.conf")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return path


@test(seconds=300)
def a_service_keeps_a_ring_until_it_is_removed():
    with temp_dir() as folder:
        out = os.path.join(folder, "service.pftrace")
        config = write_config(folder, f"output = {windows_path(out)}", "ring = 60s", "hz = 5", "all = true",
                              "source = poll")
        installed = wine(["service", "install", windows_path(config)], timeout=110)
        try:
            check_eq(installed.code, 0, installed.err)
            check_in("runs as LocalService", installed.err)
            wait_for(lambda: state() == "RUNNING", "the service does not run")
            again = wine(["service", "install", windows_path(config)])
            check_eq(again.code, 1, again.err)
            check_in("installed already", again.err)
            time.sleep(1)
            tool("net.exe", "stop", "etwatch")
            wait_for(lambda: state() == "STOPPED", "the service does not stop")
            check_in("0  (0x0)", tool("sc.exe", "query", "etwatch").split("SERVICE_EXIT_CODE")[1], "exit code")
            stopped = processes(out)
            check("services.exe" in stopped, f"the ring has only {stopped}")
            tool("net.exe", "start", "etwatch")
            wait_for(lambda: state() == "RUNNING", "the service does not run again")
        finally:
            removed = wine(["service", "remove"])
        check_eq(removed.code, 0, removed.err)
        check_eq(state(), None, "of the removed service")
        check("services.exe" in processes(out), "the ring of the second run")
    gone = wine(["service", "remove"])
    check_eq(gone.code, 1, gone.err)
    check_in("not installed", gone.err)


@test
def a_configuration_that_cannot_run_in_a_service_is_refused():
    with temp_dir() as folder:
        for lines, part in (((), "record needs a file"), (("output = x.pftrace", "ring = 60s"), "whole path"),
                            (("output = C:\\x.pftrace",), "ring = 60s")):
            refused = wine(["service", "install", windows_path(write_config(folder, *lines))])
            check_eq(refused.code, 2, refused.err)
            check_in(part, refused.err)
    check_eq(state(), None, "state")


@test
def the_service_in_a_console_says_what_to_use_instead():
    done = wine(["service", "run", "C:\\x.conf"])
    check_eq(done.code, 2, done.err)
    check_in("etwatch record --config C:\\x.conf", done.err)


if __name__ == "__main__":
    main()
