# SPDX-License-Identifier: MIT
"""Tables: measured values as columns that other tools take without a copy.

A table can open any number of Arrow streams. `__arrow_c_stream__` opens a new one each time, so pandas, polars, pyarrow
and duckdb can all read the same table. Nothing is kept in Python until rows or columns are accessed here.
"""
import html
import importlib
from datetime import datetime, timezone
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Union, overload

from . import _arrow

Row = Dict[str, Any]

_SHOWN_ROWS = 20
_INSTANTS = {"t_ns", "start_ns", "exit_ns", "load_ns", "unload_ns"}


class Table:
    """Named columns of equal length; unknown values are None.

    `len(table)`, `table.columns` (the names), `table["rss_bytes"]` (one column as a list), `table[0]`
    (one row as a dict), `for row in table`, `table.head(5)`; `to_pandas()`, `to_polars()`, `to_arrow()`
    and `plot()` if those packages are installed.

    Example:

        table = etwatch.open("boot.etl").processes
        print(len(table), table.columns, table[0], max(table["cpu_ns"]))
        table.to_pandas().sort_values("cpu_ns")
    """

    def __init__(self, columns: Mapping[str, Sequence[Any]], *, name: str = "table") -> None:
        if not isinstance(columns, Mapping):
            raise TypeError("columns: a mapping of names to sequences is needed")
        kept = {str(key): list(values) for key, values in columns.items()}
        self._setup(_arrow.export_columns(kept), name)
        self._fields: Optional[List[_arrow.Field]] = [
            _arrow.Field(key, _arrow.format_of(values), _arrow.format_of(values))
            for key, values in kept.items()]
        self._values: Optional[Dict[str, List[Any]]] = kept
        self._length: Optional[int] = len(next(iter(kept.values()))) if kept else 0

    @classmethod
    def from_stream(cls, open_stream: _arrow.OpenStream, *, name: str = "table") -> "Table":
        """A table from the library: open_stream(address) fills the ArrowArrayStream at that address.

        It is called once for each read of the table, so it must be repeatable.
        """
        if not callable(open_stream):
            raise TypeError("open_stream: a function that takes an address is needed")
        table = cls.__new__(cls)
        table._setup(open_stream, name)
        table._fields = None
        table._values = None
        table._length = None
        return table

    def _setup(self, open_stream: _arrow.OpenStream, name: str) -> None:
        self.name = name
        self._open = open_stream

    # ------------------------------------------------------------------ the Arrow side

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """A PyCapsule with a new ArrowArrayStream; requested_schema is ignored."""
        return _arrow.capsule(self._open)

    # ----------------------------------------------------------------- the Python side

    def _describe(self) -> List[_arrow.Field]:
        if self._fields is None:
            self._fields = _arrow.Stream(self._open).fields
        return self._fields

    def _all(self) -> Dict[str, List[Any]]:
        """All values as Python objects; read once and kept."""
        if self._values is None:
            stream = _arrow.Stream(self._open)
            values: Dict[str, List[Any]] = {field.name: [] for field in stream.fields}
            count = 0
            for batch in stream:
                for i, field in enumerate(stream.fields):
                    values[field.name] += _arrow.column_values(batch.column(i), field)
                count += len(batch)
            self._fields, self._values, self._length = stream.fields, values, count
        return self._values

    @property
    def columns(self) -> List[str]:
        """The names of the columns, in order."""
        return [field.name for field in self._describe()]

    @property
    def shape(self) -> "tuple[int, int]":
        """(rows, columns)"""
        return len(self), len(self._describe())

    def __len__(self) -> int:
        if self._length is None:
            self._length = sum(len(batch) for batch in _arrow.Stream(self._open))
        return self._length

    def __bool__(self) -> bool:
        return len(self) > 0

    def column(self, name: str) -> List[Any]:
        """One column as a list; None for unknown values.

        Example:

            table.column("cpu_ns")
        """
        if name not in self.columns:
            raise KeyError(f"{name!r}; there are {', '.join(self.columns)}")
        return list(self._all()[name])

    @overload
    def __getitem__(self, key: str) -> List[Any]: ...
    @overload
    def __getitem__(self, key: int) -> Row: ...
    @overload
    def __getitem__(self, key: slice) -> "Table": ...

    def __getitem__(self, key: Union[str, int, slice]) -> Any:
        if isinstance(key, str):
            return self.column(key)
        values = self._all()
        if isinstance(key, slice):
            return Table({name: column[key] for name, column in values.items()}, name=self.name)
        if not isinstance(key, int):
            raise TypeError(f"a table takes a column's name, a row's number or a slice, not {type(key).__name__}")
        if not -len(self) <= key < len(self):
            raise IndexError(f"row {key} of {len(self)}")
        return {name: column[key] for name, column in values.items()}

    def rows(self, limit: Optional[int] = None) -> Iterator[Row]:
        """One dict per row. Rows after `limit` are not read.

        Example:

            for row in table.rows(limit=10):
                print(row["name"])
        """
        if limit is not None and limit < 0:
            raise ValueError("limit: 0 or more")
        if self._values is None:
            return self._stream_rows(limit)
        names, columns = list(self._values), list(self._values.values())
        count = len(self) if limit is None else min(limit, len(self))
        return (dict(zip(names, (column[i] for column in columns))) for i in range(count))

    def _stream_rows(self, limit: Optional[int]) -> Iterator[Row]:
        left = limit
        stream = _arrow.Stream(self._open)
        self._fields = stream.fields
        names = [field.name for field in stream.fields]
        if left == 0:
            return
        for batch in stream:
            values = [_arrow.column_values(batch.column(i), f) for i, f in enumerate(stream.fields)]
            for row in zip(*values):
                yield dict(zip(names, row))
                if left is not None:
                    left -= 1
                    if left == 0:
                        return

    def __iter__(self) -> Iterator[Row]:
        return self.rows()

    def head(self, count: int = 10) -> "Table":
        """The first rows, as a table of their own.

        Example:

            table.head(20)
        """
        rows = list(self.rows(count))
        return Table({name: [row[name] for row in rows] for name in self.columns}, name=self.name)

    def to_dict(self) -> Dict[str, List[Any]]:
        """Every column as a list, by name.

        Example:

            table.to_dict()["pid"]
        """
        return {name: list(column) for name, column in self._all().items()}

    # ------------------------------------------------------------------- other tools

    def to_arrow(self) -> Any:
        """A pyarrow.Table.

        Example:

            table.to_arrow().schema
        """
        return _needed("pyarrow").table(self)

    def to_polars(self) -> Any:
        """A polars.DataFrame.

        Example:

            table.to_polars().sort("cpu_ns")
        """
        return _needed("polars").DataFrame(self)

    def to_pandas(self) -> Any:
        """A pandas.DataFrame; pyarrow is not needed. Integers with unknown values become pandas' nullable integers, so
        that no nanosecond is lost to rounding.

        Example:

            table.to_pandas().describe()
        """
        from . import _frame
        return _frame.build(_needed("pandas"), _arrow.Stream(self._open))

    def plot(self, kind: Optional[str] = None, **options: Any) -> Any:
        """Draws the table with matplotlib; see etwatch.plot.

        Example:

            table.plot("cpu")
        """
        from . import plot
        return plot.plot_table(self, kind, **options)

    # --------------------------------------------------------------------- on screen

    def __repr__(self) -> str:
        size = "" if self._length is None else f"{self._length} rows x "
        return f"<etwatch.Table {self.name}: {size}{len(self._describe())} columns>"

    def _repr_html_(self) -> str:
        rows = list(self.rows(_SHOWN_ROWS + 1))
        names = [name for name in self.columns if any(row[name] is not None for row in rows)]
        hidden = len(self.columns) - len(names)
        out = ["<table><thead><tr>", *(f"<th>{html.escape(name)}</th>" for name in names), "</tr></thead><tbody>"]
        for row in rows[:_SHOWN_ROWS]:
            out += ["<tr>", *(_cell(name, row[name]) for name in names), "</tr>"]
        out.append("</tbody></table>")
        return "".join(out) + f"<p>{html.escape(self._caption(len(rows), hidden))}</p>"

    def _caption(self, seen: int, hidden: int) -> str:
        if seen <= _SHOWN_ROWS:
            count = f"{seen} rows"
        else:
            count = f"the first {_SHOWN_ROWS} of {len(self)} rows" if self._length is not None \
                else f"the first {_SHOWN_ROWS} rows"
        return f"{self.name}: {count}" + (f"; {hidden} columns have no value here" if hidden else "")


def _needed(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.split(".")[0]
        raise ImportError(f"this needs {package}: pip install {package}", name=package) from error


def _cell(name: str, value: Any) -> str:
    if isinstance(value, str):
        return f'<td style="text-align:left">{html.escape(value)}</td>'
    return f'<td style="text-align:right" title="{html.escape(str(value))}">{html.escape(shown(name, value))}</td>'


def shown(name: str, value: Any) -> str:
    """A value for display: bytes and times in fitting units, timestamps as UTC."""
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if name in _INSTANTS:
        at = datetime.fromtimestamp(value // 10**9, timezone.utc)
        return f"{at:%Y-%m-%d %H:%M:%S}.{value % 10**9 // 1000:06d}"
    if name.endswith("_bytes"):
        return _scaled(value, 1024, ("B", "KiB", "MiB", "GiB", "TiB", "PiB"))
    if name.endswith("_ns"):
        return _scaled(value, 1000, ("ns", "µs", "ms", "s"))
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _scaled(value: float, base: int, units: Sequence[str]) -> str:
    step = 0
    while abs(value) >= base and step < len(units) - 1:
        value /= base
        step += 1
    return f"{value:.4g} {units[step]}" if step else f"{value:g} {units[0]}"
