# SPDX-License-Identifier: MIT
"""Polling through the program, compared with workloads that measure themselves."""
import subprocess
import sys
import time

from lib import check, check_between, check_eq, check_in, end, json_lines, main, run, start, test

# Burns CPU, then prints how much the kernel charged it.
BURN = """
import time
end = time.process_time() + 0.6
while time.process_time() < end: pass
print(int(time.process_time() * 1e9))
"""


def poll(*arguments):
    result = run(["run", "--source", "poll", "--json", "-q", *arguments])
    return result, json_lines(result.out)


def of_type(objects, kind):
    return [o for o in objects if o["type"] == kind]


@test
def cpu_time_of_the_samples_adds_up_to_that_of_the_process():
    result = run(["run", "--source", "poll", "--json", "-q", "--hz", "20", "-o", "/dev/stderr", "--",
                  sys.executable, "-c", BURN])
    check_eq(result.code, 0, "exit code")
    used_ns = int(result.out)
    objects = json_lines(result.err)
    pid = of_type(objects, "start")[0]["pid"]
    exits = [e for e in of_type(objects, "exit") if e["pid"] == pid]
    check_eq(len(exits), 1, "exits")
    # The exit total covers the whole lifetime; printing and exiting cost a little more.
    check(exits[0]["cpu_ns"] <= used_ns * 1.5 + 50e6, f"{exits[0]['cpu_ns']} for {used_ns}")
    if exits[0]["complete"]:
        check(exits[0]["cpu_ns"] >= used_ns, f"{exits[0]['cpu_ns']} for {used_ns}")
    else:
        check(exits[0]["cpu_ns"] > 0, "nothing was counted")


@test
def every_sample_is_marked_as_polled_and_estimates_are_named():
    result, objects = poll("--hz", "50", "--", "sleep", "0.3")
    check_eq(result.code, 0, "exit code")
    for o in objects:
        check_eq(o["source"], "poll", "source of " + o["type"])
    for name in ("cpu_user_ns", "cpu_kernel_ns", "switches_voluntary", "runq_wait_ns"):
        check_in(name, objects[0]["estimated"], "estimated")
    check("cpu_ns" not in objects[0]["estimated"], "the CPU clock of the own namespace is exact")


@test
def twenty_three_children_that_live_long_enough_are_all_reported():
    script = "for i in $(seq 23); do sleep 2 & done; wait"
    result, objects = poll("--hz", "20", "--", "sh", "-c", script)
    check_eq(result.code, 0, "exit code")
    sleeps = {s["pid"] for s in of_type(objects, "start") if s["name"] in ("sleep", "sh")}
    check(len(sleeps) >= 24, f"only {len(sleeps)} of 24 processes were seen")
    check_eq({e["pid"] for e in of_type(objects, "exit")} >= sleeps, True, "each has its exit")


@test
def an_idle_process_gives_no_samples_but_dense_rows():
    child = subprocess.Popen(["sleep", "60"])
    try:
        time.sleep(0.3)  # it is asleep by then
        common = ["stat", "--source", "poll", "--json", "-q", "--hz", "20", "--duration", "1", "-p", child.pid]
        sparse = json_lines(run(common).out)
        dense = json_lines(run([*common, "--dense"]).out)
    finally:
        child.kill()
        child.wait()
    check_eq(len(of_type(sparse, "start")), 1, "starts")
    check_eq(len(of_type(sparse, "sample")), 0, "samples of an idle process")
    rows = of_type(dense, "sample")
    check(len(rows) >= 3, f"{len(rows)} dense rows")
    for row in rows:
        check_eq((row["cpu_ns"], row["faults_minor"], row["cpu_percent"]), (0, 0, 0.0), "of an idle row")
        check(row["rss_bytes"] > 0, "memory is unknown")


@test
def threads_are_listed_and_do_not_count_twice():
    work = ("import threading\n"
            "def f():\n"
            "    sum(range(3000000))\n"
            "ts = [threading.Thread(target=f) for _ in range(3)]\n"
            "[t.start() for t in ts]; [t.join() for t in ts]\n"
            "import time; time.sleep(0.3)\n")
    result, objects = poll("--threads", "--hz", "50", "--", sys.executable, "-c", work)
    check_eq(result.code, 0, "exit code")
    pid = of_type(objects, "start")[0]["pid"]
    samples = [s for s in of_type(objects, "sample") if s["pid"] == pid]
    threads = [t for t in of_type(objects, "thread") if t["pid"] == pid]
    total_ns = sum(s["cpu_ns"] or 0 for s in samples)
    thread_ns = sum(t["cpu_ns"] or 0 for t in threads)
    check(len({t["tid"] for t in threads}) >= 2, "no other thread was seen")
    check_between(thread_ns, 1, total_ns * 1.2 + 20e6, "CPU time of the threads")


@test
def command_lines_are_shown_without_their_secrets():
    # In its own process group: the sleep that the shell waits for is ended with it.
    secret = start(["-c", "sleep 60; :", "sh", "--password=hunter2", "--token", "t0ken x",
                    "https://me:pa55@host/"], program="sh")
    try:
        time.sleep(0.2)
        common = ["stat", "--source", "poll", "--json", "-q", "--duration", "0.3", "-p", secret.pid]
        without = run(common)
        shown = run([*common, "--cmdline"])
    finally:
        end(secret)
    for word in ("hunter2", "t0ken", "pa55"):
        check(word not in without.out + shown.out, f"{word} leaks")
    started = of_type(json_lines(shown.out), "start")[0]
    check_eq(started["cmdline"],
             "sh -c sleep 60; : sh --password=*** --token *** https://me:***@host/", "cmdline")
    check_eq(of_type(json_lines(without.out), "start")[0].get("cmdline"), None, "cmdline unasked")


@test
def a_name_selects_its_versions_and_nothing_else():
    child = subprocess.Popen(["sleep", "60"])
    try:
        time.sleep(0.2)
        hit = json_lines(run(["stat", "--source", "poll", "--json", "-q", "--duration", "0.3", "-n", "sleep"]).out)
        miss = json_lines(run(["stat", "--source", "poll", "--json", "-q", "--duration", "0.3", "-n", "slee"]).out)
    finally:
        child.kill()
        child.wait()
    check_in(child.pid, [s["pid"] for s in of_type(hit, "start")], "processes named sleep")
    check(child.pid not in [s["pid"] for s in of_type(miss, "start")], "slee is not sleep")


main()
