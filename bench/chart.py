#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""chart.py BENCH.json OUT.svg: the CPU of each watcher, from the cost section of a bench run.

The axis is logarithmic, because the longest bar is a thousand times the shortest. Plain SVG, no library.
"""
import json
import math
import sys
from xml.sax.saxutils import escape

ROWS = [  # name in the bench, label in the chart
    ("library 10 Hz", "etwatch, 10 Hz"),
    ("library 100 Hz", "etwatch, 100 Hz"),
    ("library 1000 Hz", "etwatch, 1000 Hz"),
    ("empty loop 10 Hz", "a loop that only wakes up, 10 Hz"),
    ("empty loop 1000 Hz", "a loop that only wakes up, 1000 Hz"),
    ("pidstat 1 Hz", "pidstat, 1 Hz"),
    ("C poller 10 Hz", "a poller in C, 10 Hz"),
    ("C poller 100 Hz", "a poller in C, 100 Hz"),
    ("top 10 Hz", "top, 10 Hz"),
    ("psutil 10 Hz", "psutil, 10 Hz requested"),
    ("psutil 100 Hz", "psutil, 100 Hz requested"),
]
LEFT, RIGHT, TOP, STEP, BAR = 250, 110, 46, 26, 16
WIDTH, LOW, HIGH = 820, 0.01, 100.0


def across(percent):
    span = WIDTH - LEFT - RIGHT
    share = math.log(max(percent, LOW) / LOW) / math.log(HIGH / LOW)
    return LEFT + span * min(share, 1.0)


def draw(figures, title):
    height = TOP + STEP * len(figures) + 34
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="12" y="24" font-size="15" font-weight="bold" fill="#222">{escape(title)}</text>',
    ]
    bottom = TOP + STEP * len(figures)
    for power in range(-2, 3):
        x = across(10.0 ** power)
        out.append(f'<line x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{bottom}" stroke="#ddd"/>')
        out.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle" fill="#666">'
                   f'{10.0 ** power:g} %</text>')
    for i, (label, percent) in enumerate(figures):
        y = TOP + STEP * i
        colour = "#1f6feb" if label.startswith("etwatch") else "#9aa4b1"
        out.append(f'<text x="{LEFT - 10}" y="{y + 13}" text-anchor="end" fill="#222">'
                   f'{escape(label)}</text>')
        out.append(f'<rect x="{LEFT}" y="{y}" width="{across(percent) - LEFT:.1f}" '
                   f'height="{BAR}" fill="{colour}"/>')
        out.append(f'<text x="{across(percent) + 6:.1f}" y="{y + 13}" fill="#222">'
                   f'{percent:.3g} %</text>')
    return "\n".join(out + ["</svg>", ""])


def main(argv):
    if len(argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    with open(argv[1], encoding="utf-8") as file:
        section = json.load(file)["sections"]["cost"]
    medians = {row["name"]: row.get("median") for row in section["rows"]}
    figures = [(label, medians[name]) for name, label in ROWS if medians.get(name) is not None]
    with open(argv[2], "w", encoding="utf-8") as file:
        file.write(draw(figures, "CPU of the watcher, percent of one core: all of 1020 processes"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
