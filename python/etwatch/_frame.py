# SPDX-License-Identifier: MIT
"""Builds a pandas.DataFrame from a stream of batches with numpy: one copy, no pyarrow."""
import ctypes
from typing import Any, List

from . import _arrow


def _numbers(numpy: Any, column: _arrow.ArrowArray, ctype: Any) -> Any:
    count, size = int(column.length), ctypes.sizeof(ctype)
    if count == 0:
        return numpy.empty(0, dtype=numpy.dtype(ctype))
    raw = (ctypes.c_char * (count * size)).from_address(column.buffers[1] + int(column.offset) * size)
    return numpy.frombuffer(raw, dtype=numpy.dtype(ctype)).copy()


def _mask(numpy: Any, column: _arrow.ArrowArray) -> Any:
    """True where the value is null."""
    count, first = int(column.length), int(column.offset)
    bits = _arrow.valid_bits(column)
    if bits is None:
        return numpy.zeros(count, dtype=bool)
    flags = numpy.unpackbits(numpy.frombuffer(bits, dtype=numpy.uint8), bitorder="little")
    return flags[first:first + count] == 0


class _Column:
    def __init__(self, field: _arrow.Field) -> None:
        self.field = field
        self.ctype = None if field.format != field.value_format else _arrow.number_type(field.format)
        self.pieces: List[Any] = []
        self.masks: List[Any] = []

    def add(self, numpy: Any, column: _arrow.ArrowArray) -> None:
        if self.ctype is not None and not column.dictionary:
            self.pieces.append(_numbers(numpy, column, self.ctype))
            self.masks.append(_mask(numpy, column))
        elif column.dictionary and self.field.value_format in ("u", "U"):
            words = _arrow.column_values(column.dictionary.contents,
                                         _arrow.Field("", self.field.value_format, self.field.value_format))
            codes = _numbers(numpy, column, _arrow.number_type(self.field.format)).astype(numpy.int64)
            codes[_mask(numpy, column)] = len(words)
            self.pieces.append(numpy.array([*words, None], dtype=object)[codes])
        else:
            self.pieces.append(_objects(numpy, _arrow.column_values(column, self.field)))

    def finish(self, pandas: Any, numpy: Any) -> Any:
        if self.ctype is None:
            return pandas.Series(numpy.concatenate(self.pieces) if self.pieces else [], dtype=self._kind())
        if not self.pieces:
            return pandas.Series(numpy.empty(0, dtype=numpy.dtype(self.ctype)))
        values, mask = numpy.concatenate(self.pieces), numpy.concatenate(self.masks)
        if self.field.format.startswith("tsn"):
            instants = values.view("datetime64[ns]")
            instants[mask] = numpy.datetime64("NaT")
            series = pandas.Series(instants)
            return series.dt.tz_localize(self.field.format[4:]) if self.field.format[4:] else series
        if values.dtype.kind == "f":
            values[mask] = numpy.nan
        elif mask.any():
            return pandas.Series(pandas.arrays.IntegerArray(values, mask))
        return pandas.Series(values)

    def _kind(self) -> Any:
        if self.field.format == "b" and not any((piece == None).any() for piece in self.pieces):  # noqa: E711
            return bool
        return object


def _objects(numpy: Any, values: List[Any]) -> Any:
    out = numpy.empty(len(values), dtype=object)
    out[:] = values
    return out


def build(pandas: Any, stream: _arrow.Stream) -> Any:
    import numpy
    columns = [_Column(field) for field in stream.fields]
    for batch in stream:
        for i, column in enumerate(columns):
            column.add(numpy, batch.column(i))
    return pandas.DataFrame({column.field.name: column.finish(pandas, numpy) for column in columns})
