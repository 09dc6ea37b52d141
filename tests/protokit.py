# SPDX-License-Identifier: MIT
"""Parses protobuf messages and Perfetto traces without a library."""
import zlib


def fields(data):
    """(number, value) of a protobuf message: bytes, or a number."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
            continue
        size = {1: 8, 5: 4}.get(tag & 7)
        size = varint() if size is None else size
        yield tag >> 3, data[at:at + size]
        at += size


def packets(data):
    """The packets of a Perfetto trace, including compressed ones."""
    for _, packet in fields(data):
        parts = list(fields(packet))
        inner = [value for number, value in parts if number == 50]
        yield from packets(zlib.decompress(inner[0])) if inner else [parts]
