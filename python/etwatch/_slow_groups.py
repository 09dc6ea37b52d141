# SPDX-License-Identifier: MIT
"""Groups of metrics with a rate of their own, below that of the stream.

The samples of a process within one interval of the group become one row: counters are added up, a gauge is the latest that was known. As in
the library, what a long run counted is part of one of its samples and unknown in the others: a counter is unknown in the row
if it was unknown in all of them. The rows have the layout of the library, so that everything
downstream takes them like any other, and each group has a summary of its own: percentiles are over its intervals. The
memory gauges need none of this: the library reads them less often.
"""
import ctypes
from typing import Dict, Iterable, List, Optional, Tuple, Union

from . import _abi, _native
from ._batch import FLAGS, HALVES, HAS, METRIC_NAMES, START_NS, T_NS, TEXT_NAMES, TYPE, WORDS, Batch, word_of
from ._summary import Summary

_DT_NS = word_of("dt_ns")
_SIZE = _native.SAMPLE_SIZE
_KINDS = {name: (kind, what) for name, kind, what in _abi.METRICS}
_TEXTS = tuple(word_of(name) for name in TEXT_NAMES)
_PID = int(_abi.Sample.pid.offset) // 4
_HAS_WORDS = (len(METRIC_NAMES) + 63) // 64
# Of these an interval is unknown if the device was read after it was delivered, so a sum with gaps is not the whole.
_OF_DEVICES = {METRIC_NAMES.index(name) for name in ("gpu_ns", "npu_ns", "energy_uj", "gpu_encoder_ns",
                                                          "gpu_decoder_ns")}
# What is derived from a counter: per cent of the interval.
_PERCENTS = [(METRIC_NAMES.index(f"{name}_percent"), METRIC_NAMES.index(f"{name}_ns")) for name in ("cpu", "gpu", "npu")]

Key = Tuple[int, int]  # pid, start time
Texts = Dict[int, Optional[str]]
Rows = List[Tuple[bytes, Texts]]


class _Open:
    """The row of a process in the open interval."""

    __slots__ = ("row", "texts", "known", "sums", "complete", "sampled_ns", "known_ns")

    def __init__(self, row: bytes, texts: Texts, known: int, counters: int) -> None:
        self.row = row  # the latest: identity and gauges
        self.texts = texts
        self.known = known
        self.sums = [0] * counters
        self.sampled_ns = 0  # of all samples
        self.known_ns: Dict[int, int] = {}  # of the samples in which a counter of a device was known, by its bit
        self.complete = memoryview(row).cast("I")[FLAGS] & _abi.ETWATCH_SAMPLE_COMPLETE


class SlowGroup:
    """One group. `add` takes the batches of the stream in order and returns the rows that are complete."""

    def __init__(self, names: Iterable[str], hz: float) -> None:
        self.mask = 0
        self._counters: List[Tuple[int, int]] = []  # bit, place in a row
        self._gauges: List[Tuple[int, int]] = []
        for name in names:
            bit = METRIC_NAMES.index(name)
            self.mask |= 1 << bit
            (self._counters if _KINDS[name][1] == "counter" else self._gauges).append((bit, word_of(name)))
        self._device_bits = [bit for bit, _ in self._counters if bit in _OF_DEVICES]
        self._gauge_bits = sum(1 << bit for bit, _ in self._gauges)
        self._period_ns = round(1e9 / hz)
        self._begin_ns = 0  # of the open interval; 0: none
        self._last_ns = 0
        self._open: Dict[Key, _Open] = {}
        self.summary = Summary()

    def add(self, batch: Batch) -> Optional[Batch]:
        """Takes a batch; returns the rows of the intervals that it ended, if any."""
        done: Rows = []
        words, masks = batch.words, batch.masks()
        for index, kind in enumerate(batch.types()):
            at = index * WORDS
            if kind == _abi.ETWATCH_TYPE_SAMPLE:
                self._sample(batch, index, masks[index], done)
            elif kind == _abi.ETWATCH_TYPE_EXIT:
                key = (batch.halves[index * HALVES + _PID], words[at + START_NS])
                opened = self._open.pop(key, None)
                if opened is not None:
                    done.append((self._close(opened, max(words[at + T_NS], self._last_ns)), opened.texts))
                done.append((_with_known(batch.raw[index * _SIZE:(index + 1) * _SIZE], 0), batch.texts))
        return self._made(done)

    def finish(self) -> Optional[Batch]:
        """The rows of the open interval, up to the last sample."""
        done: Rows = []
        if self._begin_ns and self._last_ns > self._begin_ns:
            self._cut(self._last_ns, done)
        self._begin_ns = 0
        return self._made(done)

    def _sample(self, batch: Batch, index: int, mask: int,
                done: Rows) -> None:
        at, words = index * WORDS, batch.words
        t_ns = words[at + T_NS]
        if not self._begin_ns:
            self._begin_ns = t_ns - words[at + _DT_NS]
        end_ns = self._begin_ns + self._period_ns
        if t_ns > end_ns + self._period_ns // 1000:  # intervals of the stream may be some ns longer
            self._cut(end_ns, done)
            self._begin_ns = end_ns + (t_ns - 1 - end_ns) // self._period_ns * self._period_ns
        self._last_ns = max(self._last_ns, t_ns)
        key = (batch.halves[index * HALVES + _PID], words[at + START_NS])
        opened = self._open.get(key)
        row = batch.raw[index * _SIZE:(index + 1) * _SIZE]
        if opened is None:
            opened = self._open[key] = _Open(row, batch.texts, mask, len(self._counters))
        else:
            opened.complete &= batch.halves[index * HALVES + FLAGS]
            kept = opened.known & self._gauge_bits & ~mask
            opened.row, opened.texts = self._with_gauges(row, opened.row, kept) if kept else row, batch.texts
            opened.known |= mask
        opened.sampled_ns += words[at + _DT_NS]
        for bit in self._device_bits:
            if mask >> bit & 1:
                opened.known_ns[bit] = opened.known_ns.get(bit, 0) + words[at + _DT_NS]
        opened.sums = [total + words[at + place] if mask >> bit & 1 else total
                       for total, (bit, place) in zip(opened.sums, self._counters)]

    def _with_gauges(self, row: bytes, old: bytes, kept: int) -> bytes:
        """The row with the gauges that only the old one knows."""
        made, before = bytearray(row), memoryview(old).cast("Q")
        words = memoryview(made).cast("Q")
        for bit, place in self._gauges:
            if kept >> bit & 1:
                words[place] = before[place]
        return bytes(made)

    def _cut(self, end_ns: int, done: Rows) -> None:
        for opened in self._open.values():
            done.append((self._close(opened, end_ns), opened.texts))
        self._open.clear()

    def _close(self, opened: _Open, end_ns: int) -> bytes:
        row = bytearray(opened.row)
        words = memoryview(row).cast("Q")
        dt_ns = end_ns - self._begin_ns
        words[T_NS], words[_DT_NS] = end_ns, dt_ns
        known = opened.known & self.mask
        for (_, place), total in zip(self._counters, opened.sums):
            words[place] = total
        reals = memoryview(row).cast("d")
        for percent, counted in _PERCENTS:
            if self.mask >> percent & 1:
                known &= ~(1 << percent)
                over_ns = opened.known_ns.get(counted, 0) if counted in _OF_DEVICES else dt_ns
                if known >> counted & 1 and over_ns > 0:
                    known |= 1 << percent
                    reals[word_of(METRIC_NAMES[percent])] = 100.0 * words[word_of(METRIC_NAMES[counted])] / over_ns
        for bit in self._device_bits:
            if opened.known_ns.get(bit, 0) < opened.sampled_ns:
                known &= ~(1 << bit)
        if not opened.complete:
            memoryview(row).cast("I")[FLAGS] &= ~_abi.ETWATCH_SAMPLE_COMPLETE
        return _with_known(row, known)

    def _made(self, done: Rows) -> Optional[Batch]:
        """Adds the rows to the summary; makes one batch of those that are samples."""
        if not done:
            return None
        self._summarize([row for row, _ in done])
        samples = [(row, texts) for row, texts in done
                   if memoryview(row).cast("I")[TYPE] == _abi.ETWATCH_TYPE_SAMPLE]
        if not samples:
            return None
        raw = bytearray(b"".join(row for row, _ in samples))
        words = memoryview(raw).cast("Q")
        numbers: Dict[Optional[str], int] = {None: 0}  # in place of pointers, which differ between batches
        for index, (_, texts) in enumerate(samples):
            for place in _TEXTS:
                at = index * WORDS + place
                words[at] = numbers.setdefault(texts[words[at]], len(numbers))
        return Batch(bytes(raw), {number: text for text, number in numbers.items()})

    def _summarize(self, done: List[bytes]) -> None:
        raw = bytearray(b"".join(done))
        words = memoryview(raw).cast("Q")
        for index in range(len(done)):
            for place in _TEXTS:
                words[index * WORDS + place] = 0  # no names: the pointers are not valid any more
        words.release()
        rows = (_abi.Sample * len(done)).from_buffer(raw)
        batch = _native.sized(_abi.Samples)
        batch.stride, batch.count = _SIZE, len(done)
        batch.items = ctypes.cast(rows, ctypes.POINTER(_abi.Sample))
        _native.lib.etwatch_summary_add(self.summary.pointer, ctypes.byref(batch))


def _with_known(row: Union[bytes, bytearray], known: int) -> bytes:
    """The row with only these metrics known."""
    changed = bytearray(row)
    words = memoryview(changed).cast("Q")
    for word in range(_HAS_WORDS):
        words[HAS + word] = known >> 64 * word & 0xFFFFFFFFFFFFFFFF
    return bytes(changed)
