# SPDX-License-Identifier: MIT
"""Adds the slices of a Chrome-format trace (torch.profiler, VizTracer, py-spy, ONNX Runtime) to a recording.

    python -m etwatch.chrome run.pftrace torch.json -o merged.pftrace

Both are then on one time axis in https://ui.perfetto.dev: what the profiler says that the program did, above what the
kernel says that its threads did. The recording itself is not changed, and its packets are copied as they are.
"""
import argparse
import gzip
import json
import math
import os
import shutil
import sys
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple, Union

from ._private_file import replacing

__all__ = ["Merged", "merge"]

_Path = Union[str, "os.PathLike[str]"]
_REALTIME, _BOOTTIME = 1, 6  # Perfetto's numbers of the clocks; recordings have a snapshot of both
_UNIX_US = 10**15  # times beyond are Unix times: 2001 and later
_SEQUENCE = 0x45574348  # a sequence of our own: it must not be one of the recording
_BEGIN, _END, _INSTANT = 1, 2, 3


class Merged(NamedTuple):
    """What was added."""

    slices: int
    instants: int
    skipped: int  # events of other types, or without a time


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value & (1 << 64) - 1)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode("utf-8", "replace"))


class _Tracks:
    """A track below the thread for each pair of pid and tid; one with a name where they are no numbers."""

    def __init__(self, label: str, events: Iterable[Dict[str, Any]]) -> None:
        self._label = label
        self._known: Dict[Tuple[str, str], int] = {}
        self._names: Dict[Tuple[str, str], str] = {}
        self._next = int.from_bytes(os.urandom(7), "little") | 1 << 60  # no uuid of the recording
        for event in events:
            if event.get("ph") == "M" and event.get("name") == "thread_name" and isinstance(event.get("args"), dict):
                self._names[self._key(event)] = str(event["args"].get("name", ""))

    @staticmethod
    def _key(event: Dict[str, Any]) -> Tuple[str, str]:
        return str(event.get("pid", 0)), str(event.get("tid", 0))

    def track(self, event: Dict[str, Any]) -> Tuple[int, bytes]:
        """The uuid of the track of an event, and the packets that describe it the first time."""
        key = self._key(event)
        if key in self._known:
            return self._known[key], b""
        thread, self._next = self._next, self._next + 2
        self._known[key] = thread + 1
        packets = b""
        numbers = all(word.isdigit() and int(word) < 1 << 31 for word in key)
        if numbers:
            packets += self._packet(_number(1, thread) + _bytes(4, _number(1, int(key[0])) + _number(2, int(key[1]))))
        name = self._label if numbers else f"{self._label}: {key[0]} {self._names.get(key) or key[1]}"
        packets += self._packet(_number(1, thread + 1) + _text(2, name) + (_number(5, thread) if numbers else b""))
        return thread + 1, packets

    @staticmethod
    def _packet(descriptor: bytes) -> bytes:
        return _bytes(1, _bytes(60, descriptor) + _number(10, _SEQUENCE))


def _event(clock: int, t_ns: int, track: int, kind: int, name: Optional[str] = None, category: Optional[str] = None) -> bytes:
    body = _number(9, kind) + _number(11, track)
    if name is not None:
        body += _text(23, name)
    if category:
        body += _text(22, category)
    return _bytes(1, _number(8, t_ns) + _number(58, clock) + _bytes(11, body) + _number(10, _SEQUENCE))


class _Origin(NamedTuple):
    """The time 0 of a trace, on a clock of Perfetto."""

    clock: int
    ns: int


def _load(path: _Path) -> Tuple[List[Dict[str, Any]], Optional[_Origin]]:
    """Its events, and its time 0 if it can be known."""
    opened = gzip.open if os.fspath(path).endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as file:
        try:
            content = json.load(file)
        except json.JSONDecodeError as error:
            raise ValueError(f"{os.fspath(path)}: not a trace in Chrome's format: {error}") from None
    origin = None
    if isinstance(content, dict):
        places = [content, content.get("viztracer_metadata")]
        bases = [place["baseTimeNanoseconds"] for place in places
                 if isinstance(place, dict) and isinstance(place.get("baseTimeNanoseconds"), int)]
        if bases:
            origin = _Origin(_REALTIME, bases[0])
        elif isinstance(places[1], dict):  # CLOCK_MONOTONIC, which only differs while the machine is suspended
            origin = _Origin(_BOOTTIME, 0)
        content = content.get("traceEvents")
    if not isinstance(content, list):
        raise ValueError(f"{os.fspath(path)}: not a trace in Chrome's format: it has no traceEvents")
    events = [event for event in content if isinstance(event, dict)]
    times = [event["ts"] for event in events if isinstance(event.get("ts"), (int, float))]
    if origin is None and times and min(times) > _UNIX_US:
        origin = _Origin(_REALTIME, 0)
    return events, origin


def _ns(microseconds: Any) -> int:
    if not math.isfinite(microseconds):
        raise ValueError(f"a time that is no number: {microseconds}")
    return int(microseconds * 1000)


def _convert(events: List[Dict[str, Any]], origin: _Origin, label: str, counts: List[int]) -> Iterator[bytes]:
    tracks = _Tracks(label, events)
    for event in events:
        kind, at = event.get("ph"), event.get("ts")
        if kind == "M":
            continue
        if kind not in ("X", "B", "E", "i", "I") or not isinstance(at, (int, float)):
            counts[2] += 1
            continue
        track, described = tracks.track(event)
        t_ns = origin.ns + _ns(at)
        name, category = str(event.get("name", "")), event.get("cat")
        category = category if isinstance(category, str) else None
        if kind == "X":
            length = event.get("dur", 0)
            end_ns = t_ns + _ns(length if isinstance(length, (int, float)) else 0)
            counts[0] += 1
            yield described + _event(origin.clock, t_ns, track, _BEGIN, name, category) + _event(origin.clock, end_ns, track, _END)
        elif kind == "B":
            counts[0] += 1
            yield described + _event(origin.clock, t_ns, track, _BEGIN, name, category)
        elif kind == "E":
            yield described + _event(origin.clock, t_ns, track, _END)
        else:
            counts[1] += 1
            yield described + _event(origin.clock, t_ns, track, _INSTANT, name, category)


def merge(trace: _Path, chrome: _Path, output: _Path, *, begin_ns: Optional[int] = None,
          label: Optional[str] = None) -> Merged:
    """Writes the recording `trace` (.pftrace) and the slices of `chrome` (.json, .json.gz) to `output`.

    A new file has the mode 0600; it appears when it is complete. A symbolic link of another user is refused.

    begin_ns: the Unix time in ns of the time 0 of `chrome`. It is known for files of torch.profiler and VizTracer; for
    others it is needed (ONNX Runtime: session.get_profiling_start_time_ns()). label: the name of the tracks; None: that of
    the file.

    Example:

        added = etwatch.chrome.merge("run.pftrace", "torch.json", "merged.pftrace")
        print(added.slices)
    """
    events, origin = _load(chrome)
    if begin_ns is not None:
        origin = _Origin(_REALTIME, begin_ns)
    if origin is None:
        raise ValueError(f"{os.fspath(chrome)} does not say when it began: give begin_ns, the Unix time in ns of its time 0")
    if os.path.exists(output) and os.path.samefile(trace, output):
        raise ValueError(f"{os.fspath(output)} is the recording itself: write to another file")
    counts = [0, 0, 0]
    with open(trace, "rb") as source:
        if source.read(1) != b"\x0a":
            raise ValueError(f"{os.fspath(trace)} is not a recording in Perfetto's format (.pftrace)")
        source.seek(0)
        with replacing(output) as target:
            shutil.copyfileobj(source, target, 1 << 20)
            for packets in _convert(events, origin, label or os.path.basename(os.fspath(chrome)), counts):
                target.write(packets)
    return Merged(*counts)


def main() -> int:
    """The command line; see the module."""
    parser = argparse.ArgumentParser(prog="python -m etwatch.chrome", description="Adds a Chrome-format trace to a recording.")
    parser.add_argument("trace", help="the recording (.pftrace)")
    parser.add_argument("chrome", help="the other trace (.json, .json.gz)")
    parser.add_argument("-o", "--output", required=True, help="the file to write")
    parser.add_argument("--begin-ns", type=int, help="Unix time in ns of the time 0 of the other trace")
    parser.add_argument("--label", help="name of its tracks (default: its file name)")
    options = parser.parse_args()
    try:
        added = merge(options.trace, options.chrome, options.output, begin_ns=options.begin_ns, label=options.label)
    except (OSError, ValueError) as error:
        print(f"etwatch.chrome: {error}", file=sys.stderr)
        return 1
    print(f"{options.output}: {added.slices} slices and {added.instants} instants added, {added.skipped} events skipped")
    return 0


if __name__ == "__main__":
    sys.exit(main())
