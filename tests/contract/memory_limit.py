# SPDX-License-Identifier: MIT
"""--max-memory: a recording that needs more is an error, a monitor that needs more counts what it drops."""
import os

from commandkit import linux_only
from lib import check, check_eq, check_in, json_lines, main, run, skip, temp_dir, test

PROCESSES = 2000


def make_tree(root):
    """A /proc with many idle processes."""
    if os.environ.get("ETWATCH_UNDER_WINE") == "1":
        skip("Windows has no /proc")
    with open(os.path.join(root, "stat"), "w", encoding="utf-8") as file:
        file.write("cpu 0 0 0 0\nbtime 1700000000\n")
    for pid in range(1000, 1000 + PROCESSES):
        folder = os.path.join(root, str(pid))
        os.mkdir(folder)
        with open(os.path.join(folder, "stat"), "w", encoding="utf-8") as file:
            file.write(f"{pid} (p{pid}) S 1 {pid} {pid} 0 -1 4194560 10 0 0 0 5 5 0 0 20 0 1 0 {pid} 1000000 100 "
                       "18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n")
        with open(os.path.join(folder, "status"), "w", encoding="utf-8") as file:
            file.write(f"Name:\tp{pid}\nUid:\t0\t0\t0\t0\nPPid:\t1\nThreads:\t1\n")


def watch(root, *options):
    done = run(["stat", "-a", "--source", "poll", "--proc-root", root, "--duration", "0.3", "--json", "-q", *options])
    check_eq(done.code, 0, done.err)
    found = json_lines(done.out)
    return [o for o in found if o["type"] == "start"], [o for o in found if o["type"] == "loss"], found[-1]


@test
def a_monitor_near_its_memory_limit_counts_what_it_drops():
    with temp_dir() as root:
        make_tree(root)
        starts, losses, stats = watch(root, "--max-memory", "1M")
        check(100 < len(starts) < PROCESSES, f"{len(starts)} processes")
        check_eq({o["stage"] for o in losses}, {"table"}, "stages of the loss")
        check(stats["lost"] >= PROCESSES - len(starts), f"{stats['lost']} lost")
        starts, losses, stats = watch(root)
        check_eq((len(starts), losses, stats["lost"]), (PROCESSES, [], 0), "without a limit: starts, losses, lost")


@test
def a_recording_beyond_the_limit_is_an_error_that_names_the_option():
    linux_only("there is no program true under Wine")
    with temp_dir() as folder:
        path = os.path.join(folder, "x.pftrace")
        check_eq(run(["record", "-q", "--source", "poll", "-o", path, "--", "true"]).code, 0, "record")
        for command in (["report"], ["events"], ["export", "-f", "csv"]):
            check_eq(run([*command, path]).code, 0, f"{command} without a limit")
            done = run([*command, "--max-memory", "1M", path])
            check_eq((done.code, done.out.count("\n") > 1), (1, False), f"{command}: exit code ({done.err})")
            check_in("more memory than the limit of 1 MiB; raise the limit (--max-memory", done.err)


@test
def a_limit_that_is_too_small_for_anything_is_a_usage_error():
    done = run(["report", "--max-memory", "4K", "x.etl"])
    check_eq(done.code, 2, "exit code")
    check_in("--max-memory needs a size of at least 1M", done.err)


main()
