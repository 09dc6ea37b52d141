# SPDX-License-Identifier: MIT
"""Plots: they show the values of the table."""
import json

from lib import cases, check_eq, check_in, main, test
from toolkit import need, snippet

MADE = """
import matplotlib
matplotlib.use("agg")
from etwatch import plot
from etwatch.table import Table
MS = 10**6
def samples(rows, threads=False):
    names = ["t_ns", "dt_ns", "pid", "start_ns", "name", "cpu_ns", "rss_bytes", "io_read_bytes", "io_write_bytes"]
    names += ["tid", "thread_name"] if threads else []
    return Table({name: [row.get(name) for row in rows] for name in names}, name="samples")
def row(t, cpu, pid=1, **more):
    return {"t_ns": t * MS, "dt_ns": 10 * MS, "pid": pid, "start_ns": 5, "name": "p", "cpu_ns": cpu * MS, **more}
"""


# One interpreter for all snippets: importing matplotlib takes longer than all of them.
ALL = """
import json, sys, traceback
results = []
for code in json.loads(sys.argv[1]):
    try:
        exec(code, dict(globals()))
        results.append("")
    except Exception as error:
        results.append(traceback.format_exc())
print(json.dumps(results))
"""
_codes, _results = [], []


def draws(code):
    """Registers code and returns a function that gives its outcome."""
    _codes.append(code)
    number = len(_codes) - 1

    def outcome():
        need("matplotlib")
        if not _results:
            result = snippet(MADE + ALL, json.dumps(_codes), options=())
            check_eq(result.code, 0, result.out + result.err)
            _results.extend(json.loads(result.out))
        return _results[number]
    return outcome


def must_draw(sentence, code):
    outcome = draws(code)

    def one():
        check_eq(outcome(), "")
    one.__name__ = sentence
    test(one)


must_draw("cpu_is_stacked_and_gaps_are_idle", """
table = samples([row(10, 10), row(20, 5), row(50, 2), row(50, 10, pid=2)])
edges, begin = plot._grid(table)
assert begin == 0 and edges[1] - edges[0] == 10 * MS
import numpy
got = [list(plot._binned(numpy, one, edges)[:5] / MS) for one in plot._series(table, "cpu_ns")]
assert got == [[10, 5, 0, 0, 2], [0, 0, 0, 0, 10]], got
ax = table.plot()
assert ax.get_title(loc="left") == "CPU by process" and len(ax.collections) == 2
assert [t.get_text() for t in ax.get_legend().get_texts()] == ["p 1", "p 2"]
""")


must_draw("an_interval_across_bins_is_divided_by_time", """
import numpy
one = plot._Series("x", [5], [25], [20.0])
assert list(plot._binned(numpy, one, numpy.array([0, 10, 20, 30]))) == [5, 10, 5]
""")


must_draw("those_beyond_the_top_are_drawn_together", """
table = samples([row(10, i, pid=i, tid=i, thread_name=f"t{i}") for i in range(1, 8)], threads=True)
ax = table.plot("cpu", top=3)
assert [t.get_text() for t in ax.get_legend().get_texts()] == ["t7 7", "t6 6", "t5 5", "4 others"]
""")


must_draw("memory_and_io_draw_known_values_only", """
table = samples([row(10, 1, rss_bytes=2**20, io_read_bytes=2**20), row(20, 1), row(30, 1, rss_bytes=2**21)])
line, = table.plot("memory").lines
assert list(line.get_xdata()) == [0.01, 0.03] and list(line.get_ydata()) == [1, 2]
lines = table.plot("io").lines
assert len(lines) == 1 and list(lines[0].get_ydata())[:2] == [100, 0]
""")


must_draw("a_schedule_of_samples_has_a_strip_for_each_thread", """
table = samples([row(10, 10, tid=1, thread_name="a"), row(30, 5, tid=2, thread_name="b")], threads=True)
image, = table.plot("schedule").images
assert image.get_array().tolist()[0][:3] == [1, 0, 0] and image.get_array().tolist()[1][:3] == [0, 0, 0.5]
""")


must_draw("a_schedule_of_events_goes_from_switch_to_switch", """
table = Table({"t_ns": [10, 20, 25, 40], "cpu": [0, 0, 0, 0], "event": ["switch", "switch", "wakeup", "switch"],
               "tid": [0, 7, 9, 0], "next_tid": [7, 0, None, 8], "name": ["idle", "a", "b", "idle"]}, name="events")
assert plot._runs(table) == [(0, 7, 10, 20)]
ax = table.plot()
assert len(ax.collections) == 1 and [t.get_text() for t in ax.get_legend().get_texts()] == ["a 7"]
""")


must_draw("an_empty_table_is_an_empty_picture", """
for kind in plot.KINDS:
    samples([]).plot(kind)
""")


WRONG = [
    ("an unknown kind", "samples([]).plot('pie')", "ValueError: kind: one of cpu, memory, io, schedule"),
    ("no top at all", "samples([]).plot(top=0)", "ValueError: top"),
    ("no samples", "Table({'a': [1]}).plot()", "ValueError: table: neither samples nor scheduler events"),
    ("a column that is not there", "Table({'a': [1]}).plot('memory')", "ValueError: table: no column t_ns"),
]
MISUSE = {code: draws(code) for _, code, _ in WRONG}


@cases(WRONG)
def misuse_is_named(code, expected):
    check_in(expected, MISUSE[code]())


@test
def without_matplotlib_the_error_names_it():
    result = snippet(MADE.split("from etwatch import plot")[1].join(["from etwatch import plot", ""])
                     .replace("import matplotlib\n", "") + "import sys\nsys.modules['matplotlib'] = None\n"
                     "sys.modules['matplotlib.pyplot'] = None\nsamples([]).plot('cpu')")
    check_in("ImportError: this needs matplotlib: pip install matplotlib", result.err)


main()
