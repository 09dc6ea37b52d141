# SPDX-License-Identifier: MIT
"""Medians, spreads, bars, and the table and JSON made of them.

A row keeps every repeat. Printed are the median and the quartiles; a bar is judged on the median. Where a bar is
within what the method can resolve, the verdict is "not resolved" instead of either side.
"""
import math
import statistics


def quartiles(values):
    """(first quartile, median, third quartile) of at least one value."""
    if len(values) == 1:
        return values[0], values[0], values[0]
    q1, q2, q3 = statistics.quantiles(values, n=4, method="inclusive")
    return q1, q2, q3


def median_interval(values):
    """About 95 % confidence interval of the median, from order statistics alone."""
    ordered = sorted(values)
    n = len(ordered)
    half = 0.98 * math.sqrt(n)
    low = max(0, math.floor((n - 1) / 2 - half))
    high = min(n - 1, math.ceil((n - 1) / 2 + half))
    return ordered[low], ordered[high]


class Row:
    """One line of a table. `values` are the repeats; None for a peer that is not installed."""

    def __init__(self, name, unit, values, *, bar=None, at_least=False, ratio_to=None, note="",
                 resolution=None, worst=False):
        self.name = name
        self.unit = unit
        self.values = list(values) if values else []
        self.bar = bar
        self.at_least = at_least  # the bar is a lower limit (10,000 of 10,000)
        self.ratio_to = ratio_to  # a Row of the same run
        self.note = note
        self.resolution = resolution  # distance from the bar that cannot be resolved
        self.blind = False  # the method could not have detected a miss here
        self.worst = worst  # judged by the worst repeat: must hold every time

    @property
    def median(self):
        return statistics.median(self.values) if self.values else None

    @property
    def ratio(self):
        """Multiple of the reference; both medians of the same run."""
        other = self.ratio_to
        if other is None or not self.values or not other.values or other.median == 0:
            return None
        return self.median / other.median

    @property
    def verdict(self):
        if self.bar is None:
            return ""
        if not self.values:
            return "not measured"
        value = self.median
        if self.worst:
            value = min(self.values) if self.at_least else max(self.values)
        if (value >= self.bar) if self.at_least else (value < self.bar):
            return "not resolved" if self.blind else "pass"
        if self.resolution is not None and abs(value - self.bar) <= self.resolution:
            return "not resolved"
        return "MISS"

    def as_json(self):
        out = {"name": self.name, "unit": self.unit, "values": self.values, "note": self.note}
        if self.values:
            q1, median, q3 = quartiles(self.values)
            low, high = median_interval(self.values)
            out.update(median=median, q1=q1, q3=q3, median_low=low, median_high=high)
        if self.ratio is not None:
            out.update(ratio=self.ratio, ratio_to=self.ratio_to.name)
        if self.bar is not None:
            out.update(bar=self.bar, bar_kind="at least" if self.at_least else "less than",
                       verdict=self.verdict)
        if self.resolution is not None:
            out["resolution"] = self.resolution
        return out


class Section:
    def __init__(self, name, title):
        self.name = name
        self.title = title
        self.rows = []
        self.notes = []
        self.picture = []  # lines at the end of the table

    def add(self, *args, **kwargs):
        row = Row(*args, **kwargs)
        self.rows.append(row)
        return row

    def note(self, text):
        if text not in self.notes:
            self.notes.append(text)

    def as_json(self):
        return {"title": self.title, "notes": self.notes, "rows": [r.as_json() for r in self.rows]}

    def table(self):
        lines = ["", f"{self.name}: {self.title}"]
        cells = [["", "median", "quartiles", "", "ratio", "bar", ""]]
        for row in self.rows:
            cells.append(row_cells(row))
        widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
        for i, line in enumerate(cells):
            text = "  ".join(cell.ljust(w) if at in (0, 3, 6) else cell.rjust(w)
                             for at, (cell, w) in enumerate(zip(line, widths)))
            lines.append("  " + text.rstrip())
            if i == 0:
                lines.append("  " + "-" * (sum(widths) + 2 * len(widths) - 2))
        lines += ["  note: " + text for text in self.notes]
        lines += ["", *("  " + text for text in self.picture)] if self.picture else []
        return "\n".join(lines)


def number(value):
    """Four significant digits, no exponent in the usual range."""
    if value is None:
        return ""
    if isinstance(value, int) or float(value).is_integer() and abs(value) >= 1000:
        return f"{int(value)}"
    magnitude = abs(value)
    if magnitude >= 1000:
        return f"{value:.0f}"
    digits = 3 - max(-4, math.floor(math.log10(magnitude))) if magnitude > 0 else 1
    return f"{value:.{max(0, min(digits, 5))}f}"


def row_cells(row):
    if not row.values:
        return [row.name, "-", "", row.unit, "", bar_text(row), row.note or "not measured"]
    q1, median, q3 = quartiles(row.values)
    spread = f"{number(q1)} to {number(q3)}" if len(row.values) > 1 else ""
    ratio = "" if row.ratio is None else f"{number(row.ratio)} x {row.ratio_to.name}"
    tail = "  ".join(part for part in (row.verdict, row.note) if part)
    return [row.name, number(median), spread, row.unit, ratio, bar_text(row), tail]


def bar_text(row):
    if row.bar is None:
        return ""
    return (">= " if row.at_least else "< ") + f"{row.bar:g}"
