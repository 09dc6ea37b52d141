# SPDX-License-Identifier: MIT
"""Arrow files in other tools: pyarrow, pandas, polars and duckdb read them and agree with the report."""
import collections
import json
import os

from etlkit import make_etl
from lib import cases, check, check_eq, json_lines, main, run, temp_dir, test
from toolkit import need, snippet

# Each tool reads a file and prints: rows, rows by name, the sum and the nulls of each numeric column, and the first
# and last time. Times are not summed: the sum has no meaning and overflows.
TOTALS = """
import json, sys
INSTANTS = ("t_ns", "start_ns", "exit_ns")
def plain(value):
    return None if value is None or value != value else int(value)
"""
EACH = """
print(json.dumps([look(*pair.split("=")) for pair in sys.argv[1:]]))
"""
PYARROW = TOTALS + """
import pyarrow as pa, pyarrow.compute as pc, pyarrow.ipc
def look(path, word):
    table = pa.ipc.open_file(path).read_all()
    table.validate(full=True)
    numeric = [f.name for f in table.schema if pa.types.is_integer(f.type) and f.name not in INSTANTS]
    sums = {n: plain(pc.sum(table[n].cast(pa.int64())).as_py()) for n in numeric}
    nulls = {n: table[n].null_count for n in numeric}
    names = {}
    for text in table[word].cast(pa.string()).to_pylist():
        names[text or ""] = names.get(text or "", 0) + 1
    times = pc.min_max(table["t_ns"]).as_py()
    return [table.num_rows, names, sums, nulls, times["min"], times["max"]]
""" + EACH
PANDAS = TOTALS + """
import pandas
def look(path, word):
    table = pandas.read_feather(path)
    numeric = [n for n in table.columns if pandas.api.types.is_numeric_dtype(table[n]) and table[n].dtype != bool
               and not n.endswith("_percent") and n not in INSTANTS]
    sums = {n: plain(sum(int(v) for v in table[n].dropna())) if table[n].notna().any() else None for n in numeric}
    nulls = {n: int(table[n].isna().sum()) for n in numeric}
    words = table[word].astype(object)
    names = words.where(words.notna(), "").value_counts().to_dict()
    return [len(table), names, sums, nulls, int(table["t_ns"].min()), int(table["t_ns"].max())]
""" + EACH
POLARS = TOTALS + """
import polars
def look(path, word):
    table = polars.read_ipc(path)
    numeric = [n for n, t in table.schema.items() if t.is_integer() and n not in INSTANTS]
    sums = {n: plain(table[n].cast(polars.Int64).sum() if table[n].null_count() < len(table) else None) for n in numeric}
    nulls = {n: table[n].null_count() for n in numeric}
    words = table[word].cast(polars.String).fill_null("")
    names = {w: c for w, c in words.value_counts().iter_rows()}
    return [len(table), names, sums, nulls, table["t_ns"].min(), table["t_ns"].max()]
""" + EACH
DUCKDB = TOTALS + """
import duckdb, pyarrow.ipc
def look(path, word):
    rows = pyarrow.ipc.open_file(path).read_all()
    connection = duckdb.connect()
    connection.register("rows", rows)
    types = connection.sql("describe select * from rows").fetchall()
    numeric = [t[0] for t in types if t[1].endswith(("INT", "INTEGER")) and t[0] not in INSTANTS]
    sums = {n: plain(connection.sql(f'select sum("{n}") from rows').fetchall()[0][0]) for n in numeric}
    nulls = {n: connection.sql(f'select count(*) - count("{n}") from rows').fetchall()[0][0] for n in numeric}
    names = {w or "": c for w, c in connection.sql(f'select "{word}", count(*) from rows group by 1').fetchall()}
    return [connection.sql("select count(*) from rows").fetchall()[0][0], names, sums, nulls,
            *connection.sql("select min(t_ns), max(t_ns) from rows").fetchall()[0]]
""" + EACH
TOOLS = [("pyarrow", PYARROW, "pyarrow"), ("pandas", PANDAS, "pandas", "pyarrow"), ("polars", POLARS, "polars"),
         ("duckdb", DUCKDB, "duckdb", "pyarrow")]


def wanted(objects, word):
    """The same, computed from JSON."""
    names = collections.Counter(o[word] or "" for o in objects)
    numeric = {n for o in objects for n, v in o.items() if isinstance(v, int) and not isinstance(v, bool)}
    numeric -= {"t_ns", "start_ns", "exit_ns"}
    sums = {n: sum(o[n] for o in objects if o[n] is not None) for n in numeric}
    nulls = {n: sum(o[n] is None for o in objects) for n in numeric}
    return len(objects), dict(names), sums, nulls


def check_table(found, word, objects):
    rows, names, sums, nulls, first_ns, last_ns = found
    want_rows, want_names, want_sums, want_nulls = wanted(objects, word)
    check_eq(rows, want_rows, "rows")
    check_eq(names, want_names, f"counts of each {word}")
    times = [o["t_ns"] for o in objects]
    check_eq((first_ns, last_ns), (min(times), max(times)), "first and last time")
    for name, value in want_sums.items():
        check_eq((name, sums[name], nulls[name]), (name, value, want_nulls[name]), "sum and nulls")


def export_all(folder):
    """Every table with what other commands report for it: (file, column of names, objects)."""
    path = os.path.join(folder, "mixed.etl")
    make_etl("mixed", path, "--events", 20000)
    for table, command, kind in (("processes", ["report", "--json"], "process"),
                                 ("threads", ["report", "--json", "--threads"], "thread"),
                                 ("samples", ["stat", "-q", "--json", "--hz", "1000"], "sample"),
                                 ("events", ["events", "--json"], "event")):
        out = os.path.join(folder, table + ".arrow")
        rate = ["--hz", "1000"] if table == "samples" else []
        check_eq(run(["export", "-q", path, "--table", table, "-o", out, *rate]).code, 0, f"export of {table}")
        objects = [o for o in json_lines(run([*command, path]).out) if o["type"] == kind]
        for o in objects:
            o.pop("fields", None)
            o.pop("estimated", None)
        check(len(objects) > 20, f"only {len(objects)} {table}")
        yield out, "event" if table == "events" else "name", objects


@cases(TOOLS)
def a_tool_reads_from_a_file_what_the_report_has(code, *modules):
    need(*modules)
    with temp_dir() as folder:
        tables = list(export_all(folder))
        result = snippet(code, *(f"{path}={word}" for path, word, _ in tables), options=())
        check_eq(result.code, 0, f"exit code ({result.err[-500:]})")
    for found, (path, word, objects) in zip(json.loads(result.out), tables):
        check_table(found, word, objects)


@test
def several_batches_share_one_dictionary():
    need("pyarrow", "polars")
    code = """
import json, sys
import polars, pyarrow.ipc
file = pyarrow.ipc.open_file(sys.argv[1])
table = file.read_all()
table.validate(full=True)
frame = polars.read_ipc(sys.argv[1])
print(json.dumps([file.num_record_batches, table.num_rows,
                  frame["event"].cast(polars.String).to_list() == table["event"].cast("string").to_pylist()]))
"""
    with temp_dir() as folder:
        path, out = os.path.join(folder, "b.etl"), os.path.join(folder, "b.arrow")
        make_etl("bench", path, "--events", 150000)
        check_eq(run(["export", "-q", path, "-o", out, "--timestamps"]).code, 0, "export")
        events = json_lines(run(["report", "--json", path]).out)[0]["events"]
        result = snippet(code, out, options=())
        check_eq(result.code, 0, f"exit code ({result.err[-500:]})")
        batches, rows, same = json.loads(result.out)
    check(batches > 2, f"only {batches} batches")
    check_eq((rows, same), (events, True), "rows, and the same names in both")


@test
def an_empty_table_is_a_table_too():
    need("pyarrow", "polars", "pandas")
    code = """
import pandas, polars, pyarrow.ipc, sys
table = pyarrow.ipc.open_file(sys.argv[1]).read_all()
table.validate(full=True)
print(table.num_rows, len(polars.read_ipc(sys.argv[1])), len(pandas.read_feather(sys.argv[1])), table.num_columns)
"""
    with temp_dir() as folder:
        path, out = os.path.join(folder, "s.etl"), os.path.join(folder, "s.arrow")
        make_etl("switches", path, "--events", 100)
        check_eq(run(["export", "-q", path, "-o", out, "--event", "there is no such event"]).code, 0, "export")
        result = snippet(code, out, options=())
        check_eq((result.code, result.out.strip()), (0, "0 0 0 13"), f"rows and columns ({result.err[-500:]})")


@test
def typed_fields_and_bytes_are_read_back_unchanged():
    need("pyarrow")
    code = """
import json, sys
import pyarrow.ipc
table = pyarrow.ipc.open_file(sys.argv[1]).read_all()
table.validate(full=True)
rows = table.to_pylist()
print(json.dumps([{k: v.hex() if isinstance(v, bytes) else v for k, v in row.items()} for row in rows]))
"""
    with temp_dir() as folder:
        path, out = os.path.join(folder, "t.etl"), os.path.join(folder, "t.arrow")
        make_etl("tracelogging", path)
        check_eq(run(["export", "-q", path, "-o", out, "--typed", "--payload"]).code, 0, "export")
        result = snippet(code, out, options=())
        check_eq(result.code, 0, f"exit code ({result.err[-500:]})")
        found = json.loads(result.out)
        events = json_lines(run(["events", "--json", "--payload", path]).out)
    check_eq(len(found), len(events), "rows")
    compared = 0
    for row, event in zip(found, events):
        check_eq(row.get("event_payload", row.get("payload")), event["payload"], "payload")
        for name, value in event["fields"].items():
            got = row.get("fields." + name, row.get(name)) if name != "payload" else value
            if isinstance(value, (dict, list)):
                got = json.loads(got)
            elif isinstance(got, str) and not isinstance(value, str):
                got = json.loads(got)
            if isinstance(value, float):
                check(abs(got - value) <= abs(value) * 1e-6, f"{name} is {got}, not {value}")
            else:
                check_eq(got, value, name)
            compared += 1
    check(compared > 50, f"only {compared} fields compared")


main()
