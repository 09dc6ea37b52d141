# SPDX-License-Identifier: MIT
"""A spike is found with its interval and its thread at every sample rate."""
import os

from lib import BUILD, cases, check, check_between, check_eq, main, need_ebpf, skip, test
from livekit import of_type, one, truth_of, watch

RELAY = os.path.join(BUILD, "tests", "relay")

SPIKES, SPIKE_MS = 20, 5
EDGE_NS = 300_000  # a wake-up and a system call; a window is 1.25 ms, an interval of samples up to 100


def unix_minus_raw(objects):
    meta = one(objects, "meta")
    return meta["anchor_unix_ns"] - meta["anchor_raw_ns"]


def uninterrupted(output):
    """Bursts that had the CPU the whole time, by their own measurement."""
    return [t for t in truth_of(output) if t["to_ns"] - t["from_ns"] - t["cpu_ns"] < 50_000]


@cases([("--hz 10", 10), ("--hz 1000", 1000), ("--hz 3", 3)])
def every_spike_of_5_ms_is_found_with_its_interval(hz):
    need_ebpf()
    watched = watch(["spikes", SPIKES, SPIKE_MS, 17], "--hz", hz, "--budget", "off",
                    "--alert", f"cpu_percent>80 for {SPIKE_MS}ms", program=RELAY)
    spikes = uninterrupted(watched.truth)
    if len(spikes) < SPIKES // 4:
        skip(f"the machine is too busy: only {len(spikes)} of {SPIKES} bursts had a CPU of their own")
    check_eq(one(watched.objects, "stats")["lost"], 0, "lost")
    offset = unix_minus_raw(watched.objects)
    alerts = of_type(watched.objects, "alert", pid=spikes[0]["pid"])
    for spike in spikes:
        begin, end = spike["from_ns"] + offset, spike["to_ns"] + offset
        found = [a for a in alerts if a["ended"] and a["from_ns"] < end and a["to_ns"] > begin]
        check_eq(len(found), 1, f"alerts of spike {spike['spike']}")
        alert = found[0]
        # It is on the CPU slightly before and after its own clock readings: waking up and going to sleep.
        before, after = spike["before_ns"] + EDGE_NS, spike["after_ns"] + EDGE_NS
        check_between(alert["from_ns"], begin - before, begin + EDGE_NS, f"begin of spike {spike['spike']}")
        check_between(alert["to_ns"], end - EDGE_NS, end + after, f"end of spike {spike['spike']}")
        check_eq((alert["ended"], alert["exact"], alert["complete"]), (True, True, True), "flags")
        check_between(alert["peak"], 95, 105, "peak")
        check_eq([t["tid"] for t in alert["threads"]], [spike["pid"]], "threads")
        check_between(alert["threads"][0]["cpu_ns"], spike["cpu_ns"] - EDGE_NS, spike["cpu_ns"] + before + after, "CPU time")


@test
def a_spike_shorter_than_the_duration_gives_no_alert():
    need_ebpf()
    watched = watch(["spikes", 10, 3, 17], "--alert", "cpu_percent>80 for 40ms", program=RELAY)
    check_eq(of_type(watched.objects, "alert"), [], "alerts")


@test
def samples_are_the_same_with_and_without_alerts():
    """The finer windows do not change the samples: their sum is exact, their ends follow the sample rate."""
    need_ebpf()
    watched = watch(["-c", f"{RELAY} spikes 14 5 50; true"], "--hz", 10, "--alert", "cpu_percent>80 for 5ms",
                    program="sh")
    ended = one(watched.objects, "exit", pid=truth_of(watched.truth)[0]["pid"])
    samples = of_type(watched.objects, "sample", pid=ended["pid"])
    check_eq(sum(s["cpu_ns"] for s in samples), ended["cpu_ns"], "CPU time of all samples")
    check(len(samples) < 20, f"{len(samples)} samples at 10 Hz")
    check(any(s["rss_bytes"] for s in samples), "no sample has the memory")


@test
def polling_finds_alerts_at_the_resolution_of_its_rate():
    watched = watch(["spikes", 3, 600, 100], "--hz", 10, "--alert", "cpu_percent>60 for 200ms", source="poll",
                    program=RELAY)
    alerts = of_type(watched.objects, "alert", ended=True)
    check(alerts, "no alert")
    for alert in alerts:
        check_eq(alert["exact"], False, "exact")
        check(alert["window_ns"] >= 90_000_000, f"windows of {alert['window_ns']} ns")


main()
