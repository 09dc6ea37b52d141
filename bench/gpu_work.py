#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""GPU work of a known amount, for bench/lib/devices.py: PyTorch alone, no compiler. Each mode prints one line of JSON.

  duty PERCENT SECONDS AT   one kernel of PERCENT of 20 ms each 20 ms, from the Unix time AT on; every kernel is timed by a
                            pair of CUDA events, and the sum is what a tracer should find
  loops SECONDS             a loop of 4096x4096 bf16 products, then one of 10 us kernels: times per kernel, block by block
  load SECONDS              products and pauses in turns of a second, so that the power changes
"""
import json
import os
import sys
import time

import torch

PERIOD = 0.02


class Timer:
    """Times kernels by CUDA events. The events are read later, so that timing waits for nothing."""

    def __init__(self):
        self.pending, self.ms, self.count = [], 0.0, 0

    def sleep(self, cycles):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        torch.cuda._sleep(cycles)  # pylint: disable=protected-access
        end.record()
        self.pending.append((begin, end))
        self.count += 1

    def read(self):
        torch.cuda.synchronize()
        got = [begin.elapsed_time(end) for begin, end in self.pending]
        self.pending = []
        self.ms += sum(got)
        return got


def cycles_per_ms(timer):
    """A kernel of _sleep spins on the clock of the GPU, which rises under load."""
    for cycles in (10_000_000, 100_000_000, 100_000_000):
        timer.sleep(int(cycles))
        got = timer.read()[0]
    return cycles / got


def duty(percent, seconds, at):
    timer = Timer()
    rate = cycles_per_ms(timer)
    late = time.time() > at
    time.sleep(max(0.0, at - time.time()))
    begin = time.monotonic()
    before, skipped = timer.ms, 0
    for i in range(int(seconds / PERIOD)):
        wait = begin + i * PERIOD - time.monotonic()
        if wait < -PERIOD:
            skipped += 1
            continue
        time.sleep(max(0.0, wait))
        timer.sleep(int(rate * PERIOD * 1000 * percent / 100))
        torch.cuda.synchronize()
    timer.read()
    return {"events_ms": timer.ms, "duty_ms": timer.ms - before, "kernels": timer.count, "skipped": skipped, "late": late,
            "wall_s": time.monotonic() - begin}


def blocks(work, each, seconds):
    """Microseconds per kernel of each block of `each` kernels."""
    found, until = [], time.monotonic() + seconds
    work()
    torch.cuda.synchronize()
    while time.monotonic() < until or len(found) < 3:
        begin = time.perf_counter()
        for _ in range(each):
            work()
        torch.cuda.synchronize()
        found.append((time.perf_counter() - begin) * 1e6 / each)
    return found


def loops(seconds):
    a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    b, c = torch.randn_like(a), torch.empty_like(a)
    timer = Timer()
    for _ in range(1000):
        torch.mm(a, b, out=c)
    product = blocks(lambda: torch.mm(a, b, out=c), 500, seconds)
    ten_us = max(1, int(cycles_per_ms(timer) * 0.01))
    small = blocks(lambda: torch.cuda._sleep(ten_us), 5000, seconds)  # pylint: disable=protected-access
    return {"product_us": product, "small_us": small}


def load(seconds):
    a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    b, c = torch.randn_like(a), torch.empty_like(a)
    begin = time.monotonic()
    while time.monotonic() - begin < seconds:
        if int(time.monotonic() - begin) % 2 == 0:
            for _ in range(50):
                torch.mm(a, b, out=c)
            torch.cuda.synchronize()
        else:
            time.sleep(0.01)
    return {}


def main():
    mode, arguments = sys.argv[1], [float(word) for word in sys.argv[2:]]
    torch.cuda.init()
    found = {"duty": duty, "loops": loops, "load": load}[mode](*arguments)
    print(json.dumps({"mode": mode, "pid": os.getpid(), **found}), flush=True)


if __name__ == "__main__":
    main()
