#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""terminal_svg.py OUT.svg PROMPT < OUTPUT: draws the output of a command as a terminal window (plain SVG).

docs/run.svg is made by

    build/etwatch run --threads -- build/examples/workload 2>&1 |
        scripts/terminal_svg.py docs/run.svg 'etwatch run --threads -- ./workload'

Long lines are wrapped at COLUMNS; the first word of the prompt line is the shell's.
"""
import re
import sys
import textwrap
from xml.sax.saxutils import escape

COLUMNS, CHARACTER, LINE, MARGIN, BAR = 142, 7.0, 16, 14, 26
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def wrapped(text):
    for line in text.expandtabs().rstrip("\n").split("\n"):
        yield from textwrap.wrap(line, COLUMNS, subsequent_indent="  ", drop_whitespace=False,
                                 break_on_hyphens=False) or [""]


def draw(prompt, output):
    lines = [("#7ee787", "$ " + prompt)]
    for line in wrapped(output):
        lines.append(("#8b949e" if line.lstrip().startswith("PID ") else "#e6edf3", line))
    columns = max(len(line) for _, line in lines)
    width = int(columns * CHARACTER + 2 * MARGIN)
    height = BAR + LINE * len(lines) + 2 * MARGIN - 6
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
           f'viewBox="0 0 {width} {height}" font-family="{FONT}" font-size="11.6">',
           f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>']
    for i, colour in enumerate(("#ff5f56", "#ffbd2e", "#27c93f")):
        out.append(f'<circle cx="{MARGIN + 6 + 18 * i}" cy="16" r="5" fill="{colour}"/>')
    for i, (colour, line) in enumerate(lines):
        # Each column is placed by itself, numbers and headings at their right end: they stay in line in any font.
        pieces = [f'<tspan x="{MARGIN + match.end() * CHARACTER:.0f}" text-anchor="end">{escape(match.group())}</tspan>'
                  if match.start() and "  " in line.strip() and not re.match(r"[a-z]|NAME$", match.group()) else
                  f'<tspan x="{MARGIN + match.start() * CHARACTER:.0f}">{escape(match.group())}</tspan>'
                  for match in re.finditer(r"\S+(?: \S+)*", line)]
        if pieces:
            out.append(f'<text y="{BAR + MARGIN + LINE * i}" fill="{colour}">{"".join(pieces)}</text>')
    return "\n".join(out + ["</svg>", ""])


def main(argv):
    if len(argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    with open(argv[1], "w", encoding="utf-8") as file:
        file.write(draw(argv[2], sys.stdin.read()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
