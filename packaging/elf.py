# SPDX-License-Identifier: MIT
"""The facts about an ELF file that a wheel needs: its libraries, and the glibc version it requires. Only 64-bit
little-endian files, the only kind in wheels here. struct raises an error on truncated files."""
import os
import struct
from typing import Dict, Iterator, List, NamedTuple, Tuple

DT_NULL, DT_NEEDED, DT_STRTAB, DT_VERNEED, DT_VERNEEDNUM = 0, 1, 5, 0x6FFFFFFE, 0x6FFFFFFF
PT_LOAD, PT_DYNAMIC = 1, 2
MACHINES = {62: "x86_64", 183: "aarch64"}


class Elf(NamedTuple):
    machine: str
    needed: List[str]
    glibc: Tuple[int, ...]  # the newest symbol version of glibc that it requires; () if none


def _segments(data: bytes) -> List[Tuple[int, int, int, int]]:
    """(type, offset, address, size in the file) of each segment."""
    offset, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
    found = []
    for i in range(count):
        kind, _flags, at, address, _physical, filled = struct.unpack_from("<IIQQQQ", data, offset + i * size)
        found.append((kind, at, address, filled))
    return found


def _dynamic(data: bytes, segments: List[Tuple[int, int, int, int]]) -> Iterator[Tuple[int, int]]:
    for kind, offset, _address, size in segments:
        if kind == PT_DYNAMIC:
            for at in range(offset, offset + size, 16):
                tag, value = struct.unpack_from("<qQ", data, at)
                if tag == DT_NULL:
                    return
                yield tag, value


def _text(data: bytes, at: int) -> str:
    return data[at:data.index(b"\0", at)].decode()


def read(path: str) -> Elf:
    """ValueError for a file of another kind or a damaged one."""
    try:
        return _read(path)
    except (struct.error, OverflowError, IndexError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: damaged: {error}") from error


def _read(path: str) -> Elf:
    with open(path, "rb") as file:
        data = file.read()
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError(f"{path}: not a 64-bit little-endian ELF file")
    segments = _segments(data)

    def place(address: int) -> int:
        for kind, offset, start, size in segments:
            if kind == PT_LOAD and start <= address < start + size:
                return address - start + offset
        raise ValueError(f"{path}: address {address:#x} is in no segment")

    entries = list(_dynamic(data, segments))
    single: Dict[int, int] = dict(entries)
    strings = place(single[DT_STRTAB]) if DT_STRTAB in single else 0
    needed = [_text(data, strings + value) for tag, value in entries if tag == DT_NEEDED]
    newest: Tuple[int, ...] = ()
    if DT_VERNEED in single:
        newest = max(_glibc_versions(data, place(single[DT_VERNEED]), strings, single.get(DT_VERNEEDNUM, 0)),
                     default=())
    return Elf(MACHINES.get(struct.unpack_from("<H", data, 18)[0], "unknown"), needed, newest)


def _glibc_versions(data: bytes, at: int, strings: int, count: int) -> Iterator[Tuple[int, ...]]:
    for _ in range(count):
        _version, names, _file, first, following = struct.unpack_from("<HHIII", data, at)
        name_at = at + first
        for _ in range(names):
            _hash, _flags, _other, name, step = struct.unpack_from("<IHHII", data, name_at)
            text = _text(data, strings + name)
            if text.startswith("GLIBC_") and text[6:7].isdigit():
                yield tuple(int(part) for part in text[6:].split("."))
            name_at += step
        at += following


def find_library(soname: str, machine: str) -> str:
    """The path of a library on the running system."""
    folders = [f"/usr/lib/{machine}-linux-gnu", f"/lib/{machine}-linux-gnu", "/usr/lib64", "/lib64", "/usr/lib",
               "/usr/local/lib"]
    for folder in folders:
        path = os.path.join(folder, soname)
        if os.path.exists(path):
            return os.path.realpath(path)
    raise FileNotFoundError(f"{soname} is needed but was not found in {', '.join(folders)}")
