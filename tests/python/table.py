# SPDX-License-Identifier: MIT
"""Tables: values are read back unchanged, in Python and in other tools."""
from lib import cases, check, check_eq, check_in, main, test
from toolkit import need, snippet

MADE = """
import gc, sys
from etwatch import _arrow
from etwatch.table import Table
VALUES = {"pid": [1, 2, None], "name": ["a", None, "\\u00fc<b>"], "cpu_percent": [1.5, None, 3.0],
          "ok": [True, None, False], "big": [2**63, 1, None], "none": [None] * 3,
          "t_ns": [10**18, 10**18 + 1, 3], "rss_bytes": [10, 2**20, 2**30]}
table = Table(VALUES, name="made")
"""


def runs(code, **options):
    result = snippet(MADE + code, **options)
    check_eq(result.code, 0, result.out + result.err)
    return result


@test
def columns_rows_and_slices_have_the_original_values():
    runs("""
assert table.to_dict() == VALUES
assert len(table) == 3 and table.shape == (3, 8) and table.columns == list(VALUES)
assert table["name"] == VALUES["name"] and table[-1]["rss_bytes"] == 2**30
assert table[1:].to_dict() == {k: v[1:] for k, v in VALUES.items()}
assert [row["pid"] for row in table] == [1, 2, None]
assert table.head(2).shape == (2, 8)
assert not Table({}) and not Table({"a": []})
""")


@test
def a_table_read_back_through_its_stream_is_the_same():
    runs("""
again = Table.from_stream(table._open)
assert again.columns == table.columns and len(again) == 3
assert list(again.rows(2)) == list(table.rows(2)) and list(again.rows(0)) == []
assert again.to_dict() == table.to_dict()
""")


@test
def nothing_is_kept_after_the_last_reader():
    runs("""
unused = table.__arrow_c_stream__()
del unused
stream = _arrow.Stream(table._open)
for batch in stream:
    pass
del stream, batch
gc.collect()
assert not _arrow._alive and not _arrow._exported and not _arrow._capsules
""")


@cases([
    ("no mapping", "Table([1, 2])", "TypeError: columns"),
    ("uneven columns", "Table({'a': [1], 'b': []})", "ValueError: columns"),
    ("an unknown column", "table['nam']", "KeyError: \"'nam'; there are pid, name"),
    ("a row past the end", "table[3]", "IndexError: row 3 of 3"),
    ("a float as row", "table[1.0]", "TypeError: a table takes"),
    ("a negative limit", "table.rows(-1)", "ValueError: limit"),
    ("no opener", "Table.from_stream(3)", "TypeError: open_stream"),
    ("a stream that fails", """
def fail(address):
    raise PermissionError('closed')
Table.from_stream(fail).columns""", "PermissionError: closed"),
])
def misuse_is_reported(code, expected):
    result = snippet(MADE + code)
    check_eq(result.code, 1)
    check_in(expected, result.err)


@test
def html_escapes_program_names():
    result = runs("print(table._repr_html_())")
    check_in("&lt;b&gt;", result.out)
    check("<b>" not in result.out, result.out)
    check_in("1 GiB", result.out)
    check_in("2001-09-09 01:46:40.000000", result.out)
    check_in("made: 3 rows; 1 columns have no value here", result.out)


@test
def polars_accepts_a_table():
    need("polars")
    runs("frame = table.to_polars(); assert frame.to_dict(as_series=False) == VALUES, frame")


@test
def pyarrow_accepts_a_table_and_may_keep_one_column_of_it():
    need("pyarrow")
    runs("""
import pyarrow
whole = pyarrow.table(table)
whole.validate(full=True)
assert whole.to_pydict() == VALUES
name = whole.column("name")
del whole
gc.collect()
assert name.to_pylist() == VALUES["name"]
del name
gc.collect()
assert not _arrow._alive
""")


@test
def duckdb_accepts_a_table():
    need("duckdb", "pyarrow")
    runs("""
import duckdb
assert duckdb.sql("select sum(rss_bytes), count(name) from table_").fetchall() == [(10 + 2**20 + 2**30, 2)]
""".replace("import duckdb", "import duckdb; table_ = table"))


@test
def pandas_gets_exact_integers_without_pyarrow():
    need("pandas")
    runs("""
sys.modules["pyarrow"] = None
frame = table.to_pandas()
assert frame["t_ns"].tolist() == VALUES["t_ns"]
assert str(frame["pid"].dtype) == "Int64" and frame["pid"].isna().tolist() == [False, False, True]
assert frame["big"][0] == 2**63 and frame["name"].tolist() == VALUES["name"]
assert frame["cpu_percent"].isna().tolist() == [False, True, False]
""")


@test
def slices_and_dictionaries_of_other_producers_are_read():
    need("pyarrow", "pandas")
    runs("""
import pyarrow as pa
made = pa.table({"n": pa.array(["x", "y", None, "x"]).dictionary_encode(), "i": pa.array([1, None, 3, 4], pa.int32()),
                 "b": [True, False, None, True], "t": pa.array([1, 2, None, 4], pa.timestamp("ns", "UTC"))}).slice(1)
other = Table.from_stream(lambda address: made.to_reader(max_chunksize=2)._export_to_c(address))
assert other.to_dict() == {"n": ["y", None, "x"], "i": [None, 3, 4], "b": [False, None, True], "t": [2, None, 4]}
frame = other.to_pandas()
assert frame["n"].tolist() == ["y", None, "x"] and frame["i"].tolist()[1:] == [3, 4]
assert frame["t"].dt.tz is not None and frame["t"].isna().tolist() == [False, True, False]
""")


@test
def a_missing_tool_is_named():
    result = snippet(MADE + "sys.modules['polars'] = None\ntable.to_polars()")
    check_in("ImportError: this needs polars: pip install polars", result.err)


main()
