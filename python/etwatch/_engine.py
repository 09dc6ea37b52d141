# SPDX-License-Identifier: MIT
"""The engine of an ETWMonitor: one monitor of the library at a time, one summary over all of them, and one Python
thread, which exists only while callbacks are registered (or while there are samples of devices and of the machine).

The library's thread fills a bounded queue and the summary. collect_metrics empties the queue; with callbacks the
pump thread does so a few times a second and calls them. No lock is held while a callback runs: it may do anything,
including stopping or cleaning up its own monitor. Samples that a slow callback delays wait in two bounded queues;
samples that find no room are counted.
"""
import logging
import os
import threading
import time
import weakref
from collections import deque
from typing import Any, Callable, Deque, List, Optional, Sequence, Tuple

from . import _abi, _native
from ._batch import Batch
from ._monitor import READ_MAX, SLICE_MS, NativeMonitor
from ._slow_groups import SlowGroup
from ._summary import Summary
from .errors import ETWError, ETWSessionError, ETWSessionLostError
from .samples import MetricList, MetricSample, count_of, rows_of

logger = logging.getLogger("etwatch")

_EXTRA_MS = 20  # between two looks at what belongs to no process

SampleCallback = Callable[[MetricSample], object]
BatchCallback = Callable[[List[MetricSample]], object]


class Callbacks:
    """The registered functions. The tuple is replaced as a whole, so that calling them needs no lock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.entries: Tuple[Tuple[Any, bool], ...] = ()
        self.errors = 0
        self.calls = 0
        self.busy_s = 0.0

    def add(self, function: Any, batches: bool) -> None:
        if not callable(function):
            raise TypeError(f"callback: a function is needed, not {function!r}")
        with self._lock:
            self.entries += ((function, batches),)

    def remove(self, function: Any) -> bool:
        with self._lock:
            for index, (known, _) in enumerate(self.entries):
                if known == function:
                    self.entries = self.entries[:index] + self.entries[index + 1:]
                    return True
        return False

    def call(self, batch: Batch, mask: int) -> None:
        began = time.thread_time()
        entries = self.entries
        singles = [function for function, batches in entries if not batches]
        for function, batches in entries:
            if batches:
                self._guard(function, MetricList(batch, mask))
        if singles:
            self._call_singles(singles, batch, mask)
        self.busy_s += time.thread_time() - began

    def call_list(self, samples: List[MetricSample]) -> None:
        """Delivers samples that belong to no process."""
        for function, batches in self.entries:
            for argument in ([samples] if batches else samples):
                self._guard(function, argument)

    def _call_singles(self, singles: List[SampleCallback], batch: Batch, mask: int) -> None:
        for made in rows_of(batch, mask):
            for sample in made:
                for function in singles:
                    try:
                        function(sample)
                    except Exception:
                        self._failed(function)
            if len(singles) != sum(not batches for _, batches in self.entries):
                # A callback was unregistered meanwhile: it must not be called again.
                current = [function for function, batches in self.entries if not batches]
                singles[:] = [function for function in singles if function in current]
                if not singles:
                    return

    def _guard(self, function: Any, argument: Any) -> None:
        try:
            function(argument)
        except Exception:
            self._failed(function)

    def _failed(self, function: Any) -> None:
        """Counts every failure; logs the first, the tenth, the hundredth, …"""
        self.errors += 1
        if str(self.errors).strip("0") == "1":
            logger.exception("a callback raised (%d so far), monitoring continues: %r", self.errors, function)


class Store:
    """Rows for collect_metrics: at most `limit` MetricSamples. The oldest are dropped first, and counted in rows.

    The MetricSamples of new batches are counted only after a quarter of the limit has arrived in rows: counting many
    batches at once is cheaper.
    """

    def __init__(self, limit: int) -> None:
        self._lock = threading.Lock()
        self._batches: Deque[Tuple[Batch, int, int]] = deque()  # batch, number of its MetricSamples, mask
        self._new: List[Tuple[Batch, int]] = []  # batch, mask; not counted yet
        self._new_rows = 0
        self._total = 0
        self.limit = limit
        self._dropped = 0

    def put(self, batch: Batch, mask: int) -> None:
        with self._lock:
            self._new.append((batch, mask))
            self._new_rows += batch.rows
            if self._new_rows * 4 > self.limit:
                self._trim()

    def _trim(self) -> None:
        for batch, mask in self._new:
            count = count_of(batch, mask)
            if count:
                self._batches.append((batch, count, mask))
                self._total += count
        self._new.clear()
        self._new_rows = 0
        while self._batches and self._total - self._batches[0][1] >= self.limit:
            old, gone, _ = self._batches.popleft()
            self._total -= gone
            self._dropped += old.rows

    @property
    def dropped(self) -> int:
        with self._lock:
            self._trim()
            return self._dropped

    def take(self) -> List[MetricSample]:
        with self._lock:
            self._trim()
            batches = list(self._batches)
            self._batches.clear()
            self._total = 0
        rows = [made for batch, _, mask in batches for made in rows_of(batch, mask)]
        total = sum(map(len, rows))
        first = 0
        while total > self.limit and first < len(rows) - 1:
            total -= len(rows[first])
            first += 1
        with self._lock:
            self._dropped += first
        return [sample for made in rows[first:] for sample in made][-self.limit:]


class Pending:
    """Batches that wait for the callbacks: at most `limit` rows. The oldest are dropped first."""

    def __init__(self, limit: int) -> None:
        self._lock = threading.Lock()
        self._batches: Deque[Tuple[Batch, int]] = deque()  # batch, mask
        self._rows = 0
        self.limit = limit
        self.dropped = 0

    def put(self, batch: Batch, mask: int) -> None:
        with self._lock:
            self._batches.append((batch, mask))
            self._rows += batch.rows
            while self._rows > self.limit and len(self._batches) > 1:
                gone = self._batches.popleft()[0].rows
                self._rows -= gone
                self.dropped += gone

    def take(self) -> Optional[Tuple[Batch, int]]:
        with self._lock:
            if not self._batches:
                return None
            waiting = self._batches.popleft()
            self._rows -= waiting[0].rows
            return waiting


class Engine:
    """See the module. It can be stopped and started again; after close only close may be called."""

    def __init__(self, buffer_size: int, slow: Sequence[SlowGroup] = ()) -> None:
        self.summary = Summary()
        self.callbacks = Callbacks()
        self.store = Store(buffer_size)
        self.mask = -1  # enabled metrics, a bit for each
        self.seen = 0  # those that were ever enabled while it ran
        self.native: Optional[NativeMonitor] = None
        self.running = False
        self.last_stats: Any = None  # of the last session, after it was closed
        self.last_meta: Any = None
        self.lost: Optional[Exception] = None  # why the session ended unexpectedly
        self.slow = list(slow)  # groups of metrics with a lower rate
        self.slow_mask = sum(group.mask for group in self.slow)
        # Samples that belong to no process, such as those of devices. Each consumer gets all of them.
        self.extra: Optional[Callable[[], List[MetricSample]]] = None
        self._extra_kept: Deque[MetricSample] = deque(maxlen=buffer_size)
        self._extra_waiting: Deque[MetricSample] = deque(maxlen=buffer_size)
        self._extra_lock = threading.Lock()
        self.pending = Pending(buffer_size)
        self._state = threading.RLock()
        self._take = threading.Lock()
        self._pump: Optional[threading.Thread] = None
        _all.add(self)

    # ---------------------------------------------------------------------- life

    def start(self, config: Any) -> bool:
        """Starts a session. Returns False if one is running."""
        with self._state:
            if self.running:
                return False
            self.seen |= self.mask
            callbacks = _native.sized(_abi.Callbacks)
            self.summary.attach(callbacks)
            native = NativeMonitor(config, callbacks, self.summary)
            native.start()
            if self.native is not None:
                self.native.close()
            self.native = native
            self.lost = None
            self.running = True
            self._start_pump()
            return True

    def stop(self) -> None:
        with self._state:
            if not self.running or self.native is None:
                return
            self.running = False
            native, pump = self.native, self._pump
            self._pump = None
        code = 0
        try:
            code = native.stop()
        except ETWSessionError:
            pass  # closed meanwhile, or this is a forked child
        if code < 0 and self.lost is None:
            self.lost = ETWSessionLostError(f"the session ended unexpectedly: {native.last_error(code)}", code=code)
        if pump is not None and pump is not threading.current_thread():
            pump.join(timeout=5)  # a blocking callback must not block stop for ever
        self._take_all(native)
        with self._take:
            for group in self.slow:
                self._put(group.finish(), self.mask & group.mask)
        if pump is None or not pump.is_alive():
            self._dispatch()  # otherwise the pump does, when its current callback returns

    def close(self) -> None:
        self.stop()
        with self._state:
            native, self.native = self.native, None
            if native is None:
                return
            try:
                self.last_stats, self.last_meta = native.stats(), native.meta()
            except ETWError:
                pass
        native.close()

    def _start_pump(self) -> None:
        """Call with the lock held. The pump exists only for callbacks and for samples that the library does not take:
        otherwise no Python thread wakes up."""
        if self._pump is None and self.running and (self.callbacks.entries or self.extra is not None):
            self._pump = threading.Thread(target=_pump, args=(self, self.native), name="etwatch", daemon=True)
            self._pump.start()

    def callbacks_changed(self) -> None:
        with self._state:
            self._start_pump()

    def set_mask(self, mask: int) -> None:
        """Enables these metrics from now on; samples that have arrived keep those that were enabled then."""
        native = self.native
        if native is not None and mask != self.mask:
            self._take_all(native)
        self.mask = mask
        if self.running:
            self.seen |= mask

    # ------------------------------------------------------------------- samples

    def take(self, native: NativeMonitor, timeout_ms: int) -> int:
        """Moves the rows of one read from the library to the store and the callbacks' queue; returns their number."""
        batch = native.read(timeout_ms)
        if batch is None:
            return 0
        self._put(batch, self.mask & ~self.slow_mask)
        for group in self.slow:
            self._put(group.add(batch), self.mask & group.mask)
        return batch.rows

    def _put(self, batch: Optional[Batch], mask: int) -> None:
        if batch is None:
            return
        self.store.put(batch, mask)
        if self.callbacks.entries:
            self.pending.put(batch, mask)

    def _take_all(self, native: NativeMonitor) -> None:
        with self._take:
            try:
                while self.take(native, 0):
                    pass
            except (ETWError, ValueError, ProcessLookupError):
                pass  # closed meanwhile

    def collect(self) -> List[MetricSample]:
        native = self.native
        # If another thread holds the lock it is reading already, and moves these samples to the store.
        if native is not None and self._take.acquire(blocking=False):
            try:
                while self.take(native, 0):
                    pass
            except (ETWError, ValueError, ProcessLookupError) as error:
                self._ended(error)
            finally:
                self._take.release()
        self._take_extra()
        with self._extra_lock:
            extra = list(self._extra_kept)
            self._extra_kept.clear()
        return self.store.take() + extra

    def _take_extra(self) -> None:
        if self.extra is None:
            return
        with self._extra_lock:
            samples = self.extra()
            self._extra_kept.extend(samples)
            if self.callbacks.entries:
                self._extra_waiting.extend(samples)

    def _dispatch_extra(self) -> None:
        self._take_extra()
        with self._extra_lock:
            waiting = list(self._extra_waiting)
            self._extra_waiting.clear()
        if waiting:
            self.callbacks.call_list(waiting)

    def _ended(self, error: Exception) -> None:
        if self.running and self.lost is None:
            self.lost = error if isinstance(error, ETWSessionLostError) else ETWSessionLostError(
                f"the session ended unexpectedly: {error}", code=getattr(error, "code", 0))
            logger.error("%s", self.lost)

    def _dispatch(self) -> None:
        waiting = self.pending.take()
        while waiting is not None:
            self.callbacks.call(*waiting)
            waiting = self.pending.take()
        if self.extra is not None:
            self._dispatch_extra()

    def _retire(self) -> bool:
        """Whether the pump may end: no callback is registered."""
        with self._state:
            if self.callbacks.entries or self.extra is not None:
                return False
            self._pump = None
            return True


# All engines. In a forked child their locks may be held by threads that do not exist there.
_all: "weakref.WeakSet[Engine]" = weakref.WeakSet()


def _reset_in_child() -> None:
    for engine in list(_all):
        engine._state, engine._take = threading.RLock(), threading.Lock()
        engine.store._lock, engine.pending._lock = threading.Lock(), threading.Lock()
        engine.callbacks._lock, engine._extra_lock = threading.Lock(), threading.Lock()
        engine.running, engine.native, engine._pump = False, None, None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_in_child)


def _pump(engine: Engine, native: NativeMonitor) -> None:
    """The pump thread: reads and calls back until this session ends."""
    while engine.running and engine.native is native and engine.lost is None:
        try:
            with engine._take:
                wait_ms = SLICE_MS if engine.extra is None else _EXTRA_MS
                while engine.take(native, wait_ms) == READ_MAX:  # fewer rows: the queue is empty
                    wait_ms = 0
        except (ETWError, ValueError, ProcessLookupError) as error:
            engine._ended(error)
            return
        engine._dispatch()
        if not engine.callbacks.entries and engine._retire():
            return


def flag_bits(*, everything: bool, system: bool, fallback: bool, command_lines: bool) -> int:
    flags = _abi.ETWATCH_CONFIG_QUEUE
    if everything:
        flags |= _abi.ETWATCH_CONFIG_ALL
    if not system:
        flags |= _abi.ETWATCH_CONFIG_NO_SYSTEM
    elif everything:
        flags |= _abi.ETWATCH_CONFIG_KERNEL_THREADS
    if not fallback:
        flags |= _abi.ETWATCH_CONFIG_NO_FALLBACK
    if command_lines:
        flags |= _abi.ETWATCH_CONFIG_CMDLINE
    return flags
