# SPDX-License-Identifier: MIT
"""Writes the icon of the program for Windows: bars of a running chart, drawn here, so that no binary is in the tree.

usage: windows_icon.py OUTPUT.ico
"""
import struct
import sys
import zlib

SIZES = (16, 32, 48, 256)
BACK, BARS = (32, 41, 56), ((96, 165, 250), (52, 211, 153), (251, 191, 36))
HEIGHTS = (0.35, 0.75, 0.5)  # of the bars, of the inner square


def pixel(x, y, size):
    """RGBA of one pixel: a rounded square with three bars."""
    radius, edge = size * 0.18, size - 1
    dx = max(radius - x, x - (edge - radius), 0)
    dy = max(radius - y, y - (edge - radius), 0)
    if dx * dx + dy * dy > radius * radius:
        return (0, 0, 0, 0)
    margin, inner = size * 0.2, size * 0.6
    column, inside = divmod((x - margin) / (inner / 3), 1) if margin <= x < size - margin else (-1, 0)
    column = int(column)
    if 0 <= column < 3 and 0.12 <= inside <= 0.88 and size - margin - inner * HEIGHTS[column] <= y < size - margin:
        return (*BARS[column], 255)
    return (*BACK, 255)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(size):
    rows = b"".join(b"\0" + b"".join(bytes(pixel(x, y, size)) for x in range(size)) for y in range(size))
    head = struct.pack(">IIBBBBB", size, size, 8, 6, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")


def bitmap(size):
    """Readers of small sizes expect bitmaps: rows from the bottom, then a mask, which the alpha channel replaces."""
    head = struct.pack("<IiiHHIIiiII", 40, size, 2 * size, 1, 32, 0, 0, 0, 0, 0, 0)
    rows = b"".join(bytes((b, g, r, a)) for y in range(size - 1, -1, -1)
                    for r, g, b, a in (pixel(x, y, size) for x in range(size)))
    return head + rows + bytes((size + 31) // 32 * 4 * size)


def main():
    images = [png(size) if size > 48 else bitmap(size) for size in SIZES]
    at = 6 + 16 * len(SIZES)
    head = struct.pack("<HHH", 0, 1, len(SIZES))
    for size, image in zip(SIZES, images):
        head += struct.pack("<BBBBHHII", size & 255, size & 255, 0, 0, 1, 32, len(image), at)
        at += len(image)
    with open(sys.argv[1], "wb") as file:
        file.write(head + b"".join(images))


main()
