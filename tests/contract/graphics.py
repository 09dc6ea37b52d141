# SPDX-License-Identifier: MIT
"""GPU time and presents from events of DxgKrnl and DXGI: of a recording with a known answer, and live.

The live session is the emulator's (tests/windows/etwatch_emulated.c): it delivers only events of providers that the
session has enabled, as Windows does.
"""
import os

from commandkit import run, run_tool
from etlkit import make_etl
from lib import cases, check, check_eq, json_lines, main, temp_dir, test

GAME, COMPOSITOR = 5000, 6000
FRAMES, GAME_NS, COMPOSITOR_NS = 60, 60 * 6_000_000, 60 * 1_000_000
SUBMITTED_NS = 60 * 6_250_000  # from the submission to its end
WAYS = [("event by event", ""), ("whole buffers", ",buffers")]


def report_of(kind, *options):
    with temp_dir() as folder:
        path = os.path.join(folder, "made.etl")
        make_etl(kind, path, *options)
        result = run(["report", "--json", path])
    check_eq(result.code, 0, result.err)
    return {o["pid"]: o for o in json_lines(result.out) if o["type"] == "process"}


def sum_of(objects, pid, key):
    return sum(o[key] or 0 for o in objects if o["type"] == "sample" and o["pid"] == pid)


@test
def the_report_has_gpu_time_and_frames_of_each_process():
    processes = report_of("graphics")
    check_eq([processes[pid]["gpu_ns"] for pid in (GAME, COMPOSITOR)], [GAME_NS, COMPOSITOR_NS], "gpu_ns")
    check_eq([processes[pid]["presents"] for pid in (GAME, COMPOSITOR)], [FRAMES, 0], "presents")
    check("gpu_ns" not in processes[GAME]["estimated"], f"an estimate: {processes[GAME]['estimated']}")


@test
def without_packets_gpu_time_is_an_estimate_from_submissions():
    process = report_of("graphics-submissions")[GAME]
    check_eq((process["gpu_ns"], process["presents"]), (SUBMITTED_NS, FRAMES), "GPU time and frames")
    check("gpu_ns" in process["estimated"], f"not marked: {process['estimated']}")


@test
def a_recording_without_graphics_has_no_zero():
    for process in report_of("mixed", "--events", 2000).values():
        check_eq((process["gpu_ns"], process["gpu_percent"], process["presents"]), (None, None, None), "unknown")


@test
def the_parts_of_a_recording_add_up_to_the_whole():
    with temp_dir() as folder:
        path = os.path.join(folder, "made.etl")
        make_etl("graphics", path)
        for hz in (10, 1000):
            objects = json_lines(run(["stat", "--json", "-q", "--gpu", "--hz", hz, path]).out)
            check({"gpu_ns", "presents"} <= set(objects[0]["available"]), f"available: {objects[0]['available']}")
            check("gpu_ns" not in objects[0]["estimated"], "an estimate")
            check_eq(sum_of(objects, GAME, "gpu_ns"), GAME_NS, f"{hz} Hz: GPU time of the game")
            check_eq(sum_of(objects, COMPOSITOR, "gpu_ns"), COMPOSITOR_NS, f"{hz} Hz: GPU time of the compositor")
            check_eq(sum_of(objects, GAME, "presents"), FRAMES, f"{hz} Hz: frames")
            for o in objects:
                if o["type"] == "sample" and o["gpu_ns"] is not None:
                    check(o["gpu_ns"] <= o["dt_ns"], f"more than one engine can do: {o}")
        part = json_lines(run(["report", "--json", "--from", "0.5", path]).out)
        game = next(o for o in part if o["type"] == "process" and o["pid"] == GAME)
        check(0 < game["gpu_ns"] < GAME_NS and 0 < game["presents"] < FRAMES, f"a part: {game}")


def live(how, *options):
    with temp_dir() as folder:
        path = os.path.join(folder, "made.etl")
        make_etl("graphics", path)
        result = run_tool("etwatch_emulated", path + how, "stat", "-a", "--json", "-q", "--hz", "20", "--duration", "1.6",
                          *options)
    check_eq(result.code, 0, result.err)
    return json_lines(result.out)


@cases(WAYS)
def a_live_session_counts_presents_on_request(how):
    objects = live(how, "--gpu")
    check_eq(objects[0]["source"], "etw", "source")
    check_eq(sum_of(objects, GAME, "presents"), FRAMES, "frames")
    check_eq({o["gpu_ns"] for o in objects if o["type"] == "sample"}, {None}, "GPU time, without a sensor and packets")


@test
def presents_are_not_logged_without_a_request():
    objects = live("")
    check("presents" not in objects[0]["available"], f"available: {objects[0]['available']}")
    check_eq({o["presents"] for o in objects if o["type"] == "sample"} - {None}, set(), "frames")


@cases(WAYS)
def a_session_that_enables_dxgkrnl_has_gpu_time_from_packets(how):
    objects = live(how, "--gpu", "--enable-provider", "Microsoft-Windows-DxgKrnl")
    check("gpu_ns" in objects[0]["available"], f"available: {objects[0]['available']}")
    check_eq(sum_of(objects, GAME, "presents"), FRAMES, "frames")
    # Times of a live session are converted from the counter: a part in a million.
    got = sum_of(objects, GAME, "gpu_ns")
    check(abs(got - GAME_NS) < 1000, f"GPU time {got}, not {GAME_NS}")


main()
