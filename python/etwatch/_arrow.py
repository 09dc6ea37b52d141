# SPDX-License-Identifier: MIT
"""The Arrow C data and stream interface, as far as flat tables need it, in ctypes.

It has three parts: the C structs; reading a stream that a library exports (`Stream`); and exporting
Python columns as a stream (`export_columns`, `capsule`). Ownership follows the rule of the interface: the
holder of a struct with `release` set must call it exactly once. Exported memory stays alive in `_alive`
until its consumer releases it. Each column is kept separately, because a consumer may keep one column and
release the rest.
"""
import array
import ctypes
import itertools
import sys
from ctypes import c_char_p, c_int, c_int64, c_void_p
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

STREAM_NAME = b"arrow_array_stream"
NULLABLE = 2
_BATCH_ROWS_MAX = 2**31 - 1  # string offsets are 32-bit

if sys.byteorder != "little":  # bitmaps and buffers are written in the byte order of the machine
    raise ImportError("etwatch: tables need a little-endian machine")


class ArrowSchema(ctypes.Structure):
    pass


class ArrowArray(ctypes.Structure):
    pass


ArrowSchema._fields_ = [
    ("format", c_char_p), ("name", c_char_p), ("metadata", c_void_p), ("flags", c_int64),
    ("n_children", c_int64), ("children", ctypes.POINTER(ctypes.POINTER(ArrowSchema))),
    ("dictionary", ctypes.POINTER(ArrowSchema)), ("release", c_void_p), ("private_data", c_void_p)]

ArrowArray._fields_ = [
    ("length", c_int64), ("null_count", c_int64), ("offset", c_int64), ("n_buffers", c_int64),
    ("n_children", c_int64), ("buffers", ctypes.POINTER(c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(ArrowArray))),
    ("dictionary", ctypes.POINTER(ArrowArray)), ("release", c_void_p), ("private_data", c_void_p)]


class ArrowArrayStream(ctypes.Structure):
    _fields_ = [("get_schema", c_void_p), ("get_next", c_void_p), ("get_last_error", c_void_p),
                ("release", c_void_p), ("private_data", c_void_p)]


_Release = ctypes.CFUNCTYPE(None, c_void_p)
_GetInto = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p)
_LastError = ctypes.CFUNCTYPE(c_void_p, c_void_p)

OpenStream = Callable[[int], None]
"""Fills the ArrowArrayStream at this address, or raises."""


def _call_release(struct: Any) -> None:
    if struct.release:
        _Release(struct.release)(ctypes.addressof(struct))


# ------------------------------------------------------------------------------ reading

class Field(NamedTuple):
    name: str
    format: str
    value_format: str  # format of the dictionary's values; without a dictionary the same as format


_NUMBERS: Dict[str, Any] = {
    "c": ctypes.c_int8, "C": ctypes.c_uint8, "s": ctypes.c_int16, "S": ctypes.c_uint16,
    "i": ctypes.c_int32, "I": ctypes.c_uint32, "l": c_int64, "L": ctypes.c_uint64,
    "f": ctypes.c_float, "g": ctypes.c_double}


def number_type(format: str) -> Any:
    """The ctypes type of a fixed-width column, None for any other."""
    if format[:2] in ("ts", "tD"):  # timestamps and durations are 64-bit
        return c_int64
    return _NUMBERS.get(format)


class Batch:
    """Rows received from a stream; released with the last reference."""

    def __init__(self) -> None:
        self.array = ArrowArray()

    def __del__(self) -> None:
        _call_release(self.array)

    def __len__(self) -> int:
        return int(self.array.length)

    def column(self, i: int) -> ArrowArray:
        child: ArrowArray = self.array.children[i].contents
        return child


class Stream:
    """A stream to read: its fields, then its batches."""

    def __init__(self, open_stream: OpenStream) -> None:
        self._stream = ArrowArrayStream()
        open_stream(ctypes.addressof(self._stream))
        self.fields = self._read_fields()

    def __del__(self) -> None:
        _call_release(self._stream)

    def _get(self, function: int, into: Any) -> None:
        address = ctypes.addressof(self._stream)
        code = _GetInto(function)(address, ctypes.addressof(into))
        if code == 0:
            return
        text = _LastError(self._stream.get_last_error)(address)
        message = ctypes.string_at(text).decode("utf-8", "replace") if text else f"error {code}"
        raise OSError(code, message)

    def _read_fields(self) -> List[Field]:
        schema = ArrowSchema()
        self._get(self._stream.get_schema, schema)
        try:
            if schema.format != b"+s":
                raise TypeError("the stream is not a table: its rows are not structs")
            return [self._field(schema.children[i].contents) for i in range(schema.n_children)]
        finally:
            _call_release(schema)

    @staticmethod
    def _field(schema: ArrowSchema) -> Field:
        format = schema.format.decode()
        values = schema.dictionary.contents.format.decode() if schema.dictionary else format
        return Field((schema.name or b"").decode("utf-8", "replace"), format, values)

    def __iter__(self) -> Iterator[Batch]:
        while True:
            batch = Batch()
            self._get(self._stream.get_next, batch.array)
            if not batch.array.release:
                return
            yield batch


def valid_bits(column: ArrowArray) -> Optional[bytes]:
    """The validity bitmap, one bit per row starting at bit column.offset; None if no value is null."""
    if column.null_count == 0 or column.n_buffers == 0 or not column.buffers[0]:
        return None
    return ctypes.string_at(column.buffers[0], (column.offset + column.length + 7) // 8)


def _bits(data: bytes, start: int, count: int) -> List[bool]:
    return [bool(data[i >> 3] >> (i & 7) & 1) for i in range(start, start + count)]


def _texts(column: ArrowArray, offset_type: Any, as_text: bool) -> List[Any]:
    count, first = int(column.length), int(column.offset)
    if count == 0:
        return []
    size = ctypes.sizeof(offset_type)
    ends = (offset_type * (count + 1)).from_address(column.buffers[1] + first * size)
    begin = ends[0]
    data = ctypes.string_at(column.buffers[2] + begin, ends[count] - begin) if column.buffers[2] else b""
    pieces = [data[ends[i] - begin:ends[i + 1] - begin] for i in range(count)]
    return [piece.decode("utf-8", "replace") for piece in pieces] if as_text else pieces


def _plain_values(column: ArrowArray, format: str) -> List[Any]:
    count, first = int(column.length), int(column.offset)
    number = number_type(format)
    if number is not None:
        if count == 0:
            return []
        return list((number * count).from_address(column.buffers[1] + first * ctypes.sizeof(number)))
    if format == "b":
        return _bits(ctypes.string_at(column.buffers[1], (first + count + 7) // 8), first, count)
    if format in ("u", "U", "z", "Z"):
        return _texts(column, ctypes.c_int32 if format in "uz" else c_int64, format in "uU")
    if format == "n":
        return [None] * count
    raise TypeError(f"columns of the Arrow format {format!r} cannot be read here; use another Arrow reader")


def column_values(column: ArrowArray, field: Field) -> List[Any]:
    """The rows of one column as Python values; None for null."""
    if column.dictionary:
        words: List[Any] = _plain_values(column.dictionary.contents, field.value_format)
        values = [words[i] if 0 <= i < len(words) else None for i in _plain_values(column, field.format)]
    else:
        values = _plain_values(column, field.format)
    bits = valid_bits(column)
    if bits is not None:
        valid = _bits(bits, int(column.offset), int(column.length))
        values = [value if known else None for value, known in zip(values, valid)]
    return values


# ---------------------------------------------------------------------------- exporting

_alive: Dict[int, Any] = {}
_keys = itertools.count(1)


def _keep(struct: Any, *parts: Any) -> None:
    """Keeps the memory that the struct points to alive until its release."""
    key = next(_keys)
    _alive[key] = parts
    struct.private_data = key


def _let_go(struct: Any) -> None:
    key = struct.private_data
    struct.release = None
    _alive.pop(key, None)


def _release_children(struct: Any) -> None:
    for i in range(struct.n_children):
        child = struct.children[i].contents
        if child.release:
            _let_go(child)


def _release_schema(address: int) -> None:
    schema = ArrowSchema.from_address(address)
    _release_children(schema)
    _let_go(schema)


def _release_array(address: int) -> None:
    rows = ArrowArray.from_address(address)
    _release_children(rows)
    _let_go(rows)


def _address_of(callback: Any) -> int:
    """The address of a callback for C. It is never freed: C may call it until the interpreter exits."""
    _callbacks.append(callback)
    return int(ctypes.cast(callback, c_void_p).value or 0)


_callbacks: List[Any] = []
_RELEASE_SCHEMA = _address_of(_Release(_release_schema))
_RELEASE_ARRAY = _address_of(_Release(_release_array))


def format_of(values: Sequence[Any]) -> str:
    """The Arrow format that holds every value of a column; None fits every format."""
    kinds = {type(value) for value in values if value is not None}
    if not kinds:
        return "n"
    if kinds == {bool}:
        return "b"
    if kinds == {str}:
        return "u"
    if kinds <= {int, bool}:
        low, high = min(v for v in values if v is not None), max(v for v in values if v is not None)
        if -2**63 <= low and high < 2**63:
            return "l"
        if 0 <= low and high < 2**64:
            return "L"
        return "g"
    if kinds <= {int, bool, float}:
        return "g"
    return "u"


def _bitmap(flags: Sequence[Any]) -> bytearray:
    bits = bytearray((len(flags) + 7) // 8 or 1)
    for i, flag in enumerate(flags):
        if flag:
            bits[i >> 3] |= 1 << (i & 7)
    return bits


def _address(buffer: Any) -> int:
    return ctypes.addressof((ctypes.c_char * len(memoryview(buffer).cast("B"))).from_buffer(buffer))


def _buffers(values: Sequence[Any], format: str) -> List[Any]:
    """The buffers that follow the validity bitmap."""
    if format == "n":
        return []
    if format == "b":
        return [_bitmap(values)]
    if format == "u":
        pieces = [b"" if value is None else str(value).encode("utf-8", "surrogateescape") for value in values]
        ends = array.array("i", itertools.accumulate((len(piece) for piece in pieces), initial=0))
        return [ends, bytearray(b"".join(pieces)) or bytearray(1)]
    code = {"l": "q", "L": "Q", "g": "d"}[format]
    return [array.array(code, [0 if value is None else value for value in values]) or array.array(code, [0])]


def _child_array(values: Sequence[Any], format: str) -> ArrowArray:
    missing = sum(value is None for value in values)
    parts = _buffers(values, format)
    if format != "n":
        parts.insert(0, _bitmap([value is not None for value in values]) if missing else None)
    pointers = (c_void_p * max(1, len(parts)))(*[None if part is None else _address(part) for part in parts])
    rows = ArrowArray(length=len(values), null_count=missing, n_buffers=len(parts), buffers=pointers,
                      release=_RELEASE_ARRAY)
    _keep(rows, rows, parts, pointers)
    return rows


def _child_schema(name: str, format: str) -> ArrowSchema:
    parts = (format.encode(), name.encode("utf-8", "replace"))
    schema = ArrowSchema(format=parts[0], name=parts[1], flags=NULLABLE, release=_RELEASE_SCHEMA)
    _keep(schema, schema, parts)
    return schema


def _children(kind: Any, children: List[Any]) -> Any:
    return (ctypes.POINTER(kind) * max(1, len(children)))(*[ctypes.pointer(child) for child in children])


_STRUCT, _NO_NAME = b"+s", b""


def _fill_schema(address: int, columns: Mapping[str, Sequence[Any]], formats: Mapping[str, str]) -> None:
    children = [_child_schema(name, formats[name]) for name in columns]
    pointers = _children(ArrowSchema, children)
    schema = ArrowSchema(format=_STRUCT, name=_NO_NAME, n_children=len(children), children=pointers,
                         release=_RELEASE_SCHEMA)
    _keep(schema, children, pointers)
    ctypes.memmove(address, ctypes.byref(schema), ctypes.sizeof(schema))


def _fill_array(address: int, columns: Mapping[str, Sequence[Any]], formats: Mapping[str, str]) -> None:
    children = [_child_array(values, formats[name]) for name, values in columns.items()]
    pointers, no_bits = _children(ArrowArray, children), (c_void_p * 1)(None)
    length = len(next(iter(columns.values()))) if columns else 0
    rows = ArrowArray(length=length, n_buffers=1, buffers=no_bits, n_children=len(children),
                      children=pointers, release=_RELEASE_ARRAY)
    _keep(rows, children, pointers, no_bits)
    ctypes.memmove(address, ctypes.byref(rows), ctypes.sizeof(rows))


class _Exported:
    """The columns behind an exported stream, and whether its only batch was read."""

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        self.columns = columns
        self.formats = {name: format_of(values) for name, values in columns.items()}
        self.taken = False
        self.error = ctypes.create_string_buffer(b"", 256)


_exported: Dict[int, _Exported] = {}


def _of(address: int) -> _Exported:
    return _exported[ArrowArrayStream.from_address(address).private_data]


def _stream_schema(address: int, into: int) -> int:
    return _guarded(address, lambda self: _fill_schema(into, self.columns, self.formats))


def _stream_next(address: int, into: int) -> int:
    def fill(self: _Exported) -> None:
        if self.taken:
            ArrowArray.from_address(into).release = None
        else:
            _fill_array(into, self.columns, self.formats)
            self.taken = True
    return _guarded(address, fill)


def _guarded(address: int, work: Callable[[_Exported], None]) -> int:
    self = _of(address)
    try:
        work(self)
    except Exception as error:  # the caller is C: it gets a code and can fetch the text
        self.error.value = str(error).encode("utf-8", "replace")[:255]
        return 5
    return 0


def _stream_error(address: int) -> int:
    return ctypes.addressof(_of(address).error)


def _release_stream(address: int) -> None:
    stream = ArrowArrayStream.from_address(address)
    _exported.pop(stream.private_data, None)
    stream.release = None


_STREAM_SCHEMA = _address_of(_GetInto(_stream_schema))
_STREAM_NEXT = _address_of(_GetInto(_stream_next))
_STREAM_ERROR = _address_of(_LastError(_stream_error))
_RELEASE_STREAM = _address_of(_Release(_release_stream))


def export_columns(columns: Mapping[str, Sequence[Any]]) -> OpenStream:
    """A function that opens a stream over Python columns, with one batch."""
    lengths = {len(values) for values in columns.values()}
    if len(lengths) > 1:
        raise ValueError("columns: all must have the same length")
    if lengths and max(lengths) > _BATCH_ROWS_MAX:
        raise ValueError("columns: too many rows")

    def open_stream(address: int) -> None:
        key = next(_keys)
        _exported[key] = _Exported(columns)
        stream = ArrowArrayStream.from_address(address)
        stream.get_schema = _STREAM_SCHEMA
        stream.get_next = _STREAM_NEXT
        stream.get_last_error = _STREAM_ERROR
        stream.release = _RELEASE_STREAM
        stream.private_data = key
    return open_stream


# ------------------------------------------------------------------------------ capsule

_Destructor = ctypes.PYFUNCTYPE(None, c_void_p)


def _function(name: str, result: Any, *arguments: Any) -> Any:
    function = getattr(ctypes.pythonapi, name)
    # A private prototype: the attributes of pythonapi's functions are shared by the whole process.
    return ctypes.PYFUNCTYPE(result, *arguments)(_address_of(function))


_capsule_new = _function("PyCapsule_New", ctypes.py_object, c_void_p, c_char_p, c_void_p)
# By address: taking a reference to an object that is being freed would free it twice.
_capsule_pointer = _function("PyCapsule_GetPointer", c_void_p, c_void_p, c_char_p)
_capsules: Dict[int, Tuple[ArrowArrayStream]] = {}


def _free_capsule(address: int) -> None:
    pointer = _capsule_pointer(address, STREAM_NAME)
    kept = _capsules.pop(pointer, None)
    if kept is not None:
        _call_release(kept[0])


_FREE_CAPSULE = _address_of(_Destructor(_free_capsule))


def capsule(open_stream: OpenStream) -> Any:
    """A PyCapsule with a new stream, as __arrow_c_stream__ returns it."""
    stream = ArrowArrayStream()
    open_stream(ctypes.addressof(stream))
    address = ctypes.addressof(stream)
    _capsules[address] = (stream,)
    return _capsule_new(address, STREAM_NAME, _FREE_CAPSULE)
