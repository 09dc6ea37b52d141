# SPDX-License-Identifier: MIT
"""ETWConsumer: events as they happen, or of a recording.

    with etwatch.ETWConsumer("Microsoft-Windows-Kernel-Process") as consumer:
        for event in consumer:
            print(event.type, event.process_id, event.process_name)

The same class reads live ETW sessions on Windows, the scheduler's events on Linux (eBPF), and recordings everywhere
(`file=`). Events come in batches of Arrow columns; Python objects are made for those that are accessed.
"""
import ctypes
import difflib
import fnmatch
import os
import sys
import threading
import time
from dataclasses import dataclass
from typing import (Any, AsyncIterator, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple,
                    Union)

from . import _abi, _arrow, _native
from ._event_names import KERNEL_PROVIDER, KINDS, KNOWN, LIVE, OF_FIRST_THREAD, PROVIDERS, TYPES, Kernel
from ._events import ETWEvent, EventRows, Samples, events_of, interval_of
from ._monitor import _ids, _texts
from .config import check_name, check_names, check_pids, members, number
from .errors import ETWProviderError, ETWSessionError, warn
from .trace import Path, open_trace

__all__ = ["ETWConsumer", "ETWEvent", "ETWProvider"]

Handler = Callable[[ETWEvent], object]
_SLICE_MS = 100  # longest wait inside the library
_INTERVALS = ("PerfInfo/CollectionStart", "PerfInfo/SetInterval")
_WHOLE_KERNEL = ("windows kernel", "nt kernel logger", "sched")
_LIVE_ON_LINUX = "the live events of Linux are starts, stops, switches and wake-ups"
_NOT_OF_PROVIDERS = "none of the providers has it; add one that has, or none to select by handlers and events"
_TOO_LATE = "it was not enabled when reading began; register the handler before that"
_USE_A_RECORDING = "read a recording of Windows with file="


@dataclass(frozen=True)
class ETWProvider:
    """A provider with filters that Windows applies at the source.

    Example:

        provider = etwatch.ETWProvider("Microsoft-Windows-DxgKrnl", level=4, keywords=0x1, ids=(178, 180))
        consumer = etwatch.ETWConsumer(provider)
    """

    name: str
    level: int = 0  # 1 critical to 5 verbose; 0: 5
    keywords: int = 0  # any of them; 0: all
    pids: Tuple[int, ...] = ()
    ids: Tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_name("provider", self.name)
        number("level", self.level, 0, 255, True)
        number("keywords", self.keywords, 0, 2**64 - 1, True)
        object.__setattr__(self, "pids", tuple(check_pids("pids", self.pids)))
        object.__setattr__(self, "ids", tuple(number("ids", one, 0, 65535, True) for one in members("ids", self.ids)))


class _Filter(NamedTuple):
    """Events of a provider; of the lists any entry, none: all."""

    provider: Optional[str] = None
    events: Tuple[str, ...] = ()
    pids: Tuple[int, ...] = ()
    ids: Tuple[int, ...] = ()
    flags: int = 0


class _Selection(NamedTuple):
    """What the library selects, for objects and for columns alike."""

    filters: Tuple[_Filter, ...] = ()
    events: Tuple[str, ...] = ()
    pids: Tuple[int, ...] = ()
    names: Tuple[str, ...] = ()

    def fill(self, options: Any) -> None:
        """Writes it into the options of a table or a consumer, which keep the memory."""
        array = (_abi.EventFilter * max(1, len(self.filters)))()
        for native, one in zip(array, self.filters):
            native.size = ctypes.sizeof(_abi.EventFilter)
            native.flags = one.flags
            native.provider = None if one.provider is None else one.provider.encode()
            native.events, native.event_count = _texts(one.events), len(one.events)
            native.pids, native.pid_count = _ids(one.pids), len(one.pids)
            native.ids, native.id_count = (ctypes.c_uint16 * len(one.ids))(*one.ids), len(one.ids)
        options.filters, options.filter_count = array, len(self.filters)
        options.events, options.event_count = _texts(self.events), len(self.events)
        options.pids, options.pid_count = _ids(self.pids), len(self.pids)
        options.names, options.name_count = _texts(self.names), len(self.names)

    def __bool__(self) -> bool:
        return any(self)


class _File:
    """The events of a recording, batch by batch."""

    def __init__(self, paths: Any, selection: _Selection, fields: bool, command_lines: bool, samples: Samples) -> None:
        self.trace = open_trace(paths)
        self._selection = selection
        self._content = _abi.ETWATCH_TABLE_FIELDS if fields else 0
        self._cmdline = _abi.ETWATCH_TABLE_CMDLINE if command_lines else 0
        self._samples = samples
        self._look_for_intervals = bool(selection)
        frequency = self.trace.files[0].get("clock_frequency") if self.trace.files else 0
        self.tick_ns = 1e9 / frequency if frequency else None
        self._stream: Optional[_arrow.Stream] = None
        self._batches: Optional[Iterator[_arrow.Batch]] = None

    def columns(self, content: int) -> _arrow.OpenStream:
        """Opens streams of the events. content: 0, ETWATCH_TABLE_FIELDS or ETWATCH_TABLE_TYPED."""
        table = self.trace._table(  # pylint: disable=protected-access
            _abi.ETWATCH_TABLE_EVENTS, flags=content | self._cmdline, fill=self._selection.fill)
        return table._open  # pylint: disable=protected-access

    def before_samples(self) -> None:
        """Reads the intervals of CPU samples, once, if the events that have them may not be selected."""
        if self._look_for_intervals:
            self._look_for_intervals = False
            for event in self.trace.events(event=list(_INTERVALS)):
                interval = interval_of(event.fields)
                if interval is not None:
                    self._samples.changes.append((event.t_ns, interval))

    def read(self) -> Tuple[Optional[_arrow.Batch], List[_arrow.Field]]:
        if self._stream is None or self._batches is None:
            self._stream = _arrow.Stream(self.columns(self._content))
            self._batches = iter(self._stream)
        return next(self._batches, None), self._stream.fields

    def stop(self) -> None:
        pass

    def close(self) -> None:
        self._batches = self._stream = None
        self.trace.close()

    def stats(self) -> Dict[str, int]:
        stats = self.trace.stats
        return {name: int(stats[name]) for name in ("events", "lost", "undecoded")}


class _Live:
    """The events of a live session, batch by batch."""

    def __init__(self, options: Any, fields: bool, samples: Samples) -> None:
        self._pid = os.getpid()
        self._samples = samples
        self._content = _abi.ETWATCH_TABLE_FIELDS if fields else 0
        self._pointer = ctypes.c_void_p()
        self.tick_ns: Optional[float] = None
        info = _native.new_error()
        code = _native.lib.etwatch_consumer_open(ctypes.byref(options), ctypes.byref(self._pointer), ctypes.byref(info))
        _native.check(code, info)
        self._stream: Optional[_arrow.Stream] = None
        self._stats: Dict[str, int] = {}

    def columns(self, content: int) -> _arrow.OpenStream:
        """Opens streams of the events. content: 0 or ETWATCH_TABLE_FIELDS."""
        table = _native.sized(_abi.TableOptions)
        table.flags = content

        def open_stream(address: int) -> None:
            info = _native.new_error()
            stream = _abi.ArrowArrayStream.from_address(address)
            code = _native.lib.etwatch_consumer_stream(self._pointer, _SLICE_MS, ctypes.byref(table), ctypes.byref(stream),
                                                       ctypes.byref(info))
            _native.check(code, info)
        return open_stream

    def read(self) -> Tuple[Optional[_arrow.Batch], List[_arrow.Field]]:
        if self._stream is None:
            self._stream = _arrow.Stream(self.columns(self._content))
        try:
            return next(iter(self._stream), None), self._stream.fields
        except OSError as error:
            raise ETWSessionError(str(error.strerror or error)) from None

    def before_samples(self) -> None:
        """The interval of CPU samples, also if the event that has it is not selected."""
        stats = _native.sized(_abi.ConsumerStats)
        if self._pointer and _native.lib.etwatch_consumer_stats(self._pointer, ctypes.byref(stats)) == 0:
            self._samples.interval_ns = stats.sample_interval_ns or self._samples.interval_ns

    def stop(self) -> None:
        if self._pointer and self._pid == os.getpid():
            _native.lib.etwatch_consumer_stop(self._pointer)

    def stats(self) -> Dict[str, int]:
        if self._pointer:
            stats = _native.sized(_abi.ConsumerStats)
            _native.check(_native.lib.etwatch_consumer_stats(self._pointer, ctypes.byref(stats)))
            self._stats = {name: int(getattr(stats, name)) for name in ("events", "delivered", "undecoded", "lost")}
        return dict(self._stats)

    def close(self) -> None:
        self.stats()
        self._stream = None
        pointer, self._pointer = self._pointer, ctypes.c_void_p()
        if pointer and self._pid == os.getpid():
            _native.lib.etwatch_consumer_free(pointer)


def _has_etw() -> bool:
    """Whether the live events of this system are those of ETW."""
    if sys.platform == "win32":
        return True
    function = _native.lib.etwatch_session_list
    return bool(function(function.argtypes[0](lambda *_: None), None, None) != _abi.ETWATCH_ENOTSUP)


def _matches(pattern: str, text: str) -> bool:
    return fnmatch.fnmatchcase(text.lower(), pattern.lower())


def _event_matches(patterns: Iterable[str], event: str) -> bool:
    before, slash, after = event.partition("/")
    names = [event, before, after] if slash else [event]
    return any(_matches(pattern, name) for pattern in patterns for name in names)


class ETWConsumer:
    """Events as they happen, or of a recording (`file=`).

    provider, providers: names, or ETWProvider with filters. session: read this ETW session as it is. events: only
    events with such a name or type (globs); pids, names: only of these processes. fields: by default events have fields and
    columns (`batches`) do not; True: columns have them as JSON text too; False: neither has, which is several times
    faster. command_lines: command lines in fields, secrets masked (otherwise None).

    Example:

        with etwatch.ETWConsumer("Microsoft-Windows-Kernel-Process") as consumer:
            for event in consumer:
                print(event.timestamp, event.type, event.process_id, event.process_name)
    """

    def __init__(self, provider: Union[str, ETWProvider, Sequence[Union[str, ETWProvider]], None] = None, *, session: Optional[str] = None,
                 providers: Union[str, ETWProvider, Iterable[Union[str, ETWProvider]]] = (), file: Union[Path, Sequence[Path], None] = None,
                 events: Union[str, Iterable[str], None] = None, pids: Union[int, Iterable[int]] = (),
                 names: Union[str, Iterable[str]] = (), fields: Optional[bool] = None, command_lines: bool = False, cpu_sampling_hz: int = 0) -> None:
        self._providers: List[ETWProvider] = []
        self._session = None if session is None else check_name("session", session)
        self._file = file
        self._events = check_names("events", events or ())
        self._pids = set(check_pids("pids", pids))
        self._names = check_names("names", names)
        self._command_lines = command_lines
        self._decode = fields is None or bool(fields)
        self._columns = _abi.ETWATCH_TABLE_FIELDS if fields else 0
        number("cpu_sampling_hz", cpu_sampling_hz, 0, 8000)
        self._cpu_sampling_hz = int(cpu_sampling_hz)
        self._handlers: Dict[str, List[Handler]] = {}
        self._on_event: Optional[Handler] = None
        self._source: Union[_File, _Live, None] = None
        self._thread: Optional[threading.Thread] = None
        self._failure: Optional[BaseException] = None
        self._reading = threading.Lock()
        self._pending: Optional[Iterator[ETWEvent]] = None
        self._started = self._stopped = False
        self._inside = False  # a with block
        self._read = False  # something was taken from the source
        self._delivered = 0
        self._samples = Samples()
        # Why events of a pattern cannot come. A function of the consumer, without a reference to it: a consumer that is not
        # used any more must end at once, with its session, and not when cycles are collected.
        self._selectable: Optional[Callable[["ETWConsumer", str], Optional[str]]] = None
        self._system: Any = None
        if provider is not None:
            self.subscribe(provider)
        self.subscribe(providers)

    # ------------------------------------------------------------------ what to read

    def add_provider(self, name: Union[str, ETWProvider]) -> "ETWConsumer":
        """One more provider. Not allowed after the first event was read.

        Example:

            consumer.add_provider("Microsoft-Windows-Kernel-Process")
        """
        return self.subscribe(name)

    def add_providers(self, names: Iterable[Union[str, ETWProvider]]) -> "ETWConsumer":
        """More providers.

        Example:

            consumer.add_providers(["Microsoft-Windows-Kernel-Process", "Microsoft-Windows-Kernel-Thread"])
        """
        return self.subscribe(names)

    def subscribe(self, names: Union[str, ETWProvider, Iterable[Union[str, ETWProvider]]]) -> "ETWConsumer":
        """One provider or several.

        Example:

            consumer.subscribe("Microsoft-Windows-Kernel-Process")
        """
        if isinstance(names, (str, ETWProvider)):
            names = [names]
        elif not isinstance(names, Iterable):
            raise TypeError(f"provider: a name is needed, not {names!r}")
        more = [name if isinstance(name, ETWProvider) else ETWProvider(check_name("provider", name)) for name in names]
        if more:
            self._begin_change("add_provider")
            self._providers += more
            self._end_change()
        return self

    def open_realtime_session(self, name: str) -> "ETWConsumer":
        """Reads a running ETW session as it is, such as "NT Kernel Logger"; on Linux that name stands for the kernel's
        live events.

        Example:

            consumer.open_realtime_session("NT Kernel Logger")
        """
        self._begin_change("open_realtime_session")
        self._session = check_name("session", name)
        self._end_change()
        return self

    def open_file(self, path: Union[Path, Sequence[Path]]) -> "ETWConsumer":
        """Reads a recording instead of live events.

        Example:

            consumer.open_file("boot.etl")
        """
        self._begin_change("open_file")
        self._file = path
        self._end_change()
        return self

    def _begin_change(self, call: str) -> None:
        """What to read may change until the first event was read."""
        if self._source is None:
            return
        if self._read or self._started:
            raise ETWSessionError(f"{call}: the consumer is already started")
        with self._reading:
            source, self._source = self._source, None
            source.stop()
            source.close()
        self._selectable = None

    def _end_change(self) -> None:
        if self._inside:
            self._open()

    # ---------------------------------------------------------------------- handlers

    def on(self, event: str, handler: Handler) -> "ETWConsumer":
        """Calls handler(event) for every event of this type or name (a glob), in `process` and after `start`.

        Example:

            consumer.on("ProcessStart", lambda event: print(event.process_id, event.process_name))
        """
        if not callable(handler):
            raise TypeError(f"handler: a function is needed, not {handler!r}")
        self._handlers.setdefault(check_name("event", event), []).append(handler)
        if self._source is not None:
            self._warn_of_patterns([event])
        self._run_handlers()
        return self

    @property
    def on_event(self) -> Optional[Handler]:
        """A function that is called for every event; it may be assigned.

        Example:

            consumer.on_event = print
        """
        return self._on_event

    @on_event.setter
    def on_event(self, handler: Optional[Handler]) -> None:
        if handler is not None and not callable(handler):
            raise TypeError(f"on_event: a function is needed, not {handler!r}")
        self._on_event = handler
        self._run_handlers()

    def _run_handlers(self) -> None:
        """Starts the thread of the handlers: after `start`, with the first handler."""
        if self._started and self._thread is None and (self._on_event is not None or self._handlers):
            self._thread = threading.Thread(target=self._run, name="etwatch-consumer", daemon=True)
            self._thread.start()

    def _dispatch(self, event: ETWEvent) -> None:
        if self._on_event is not None:
            self._on_event(event)
        if not self._handlers:
            return
        kind, name = event.type, event.event_name
        for pattern, handlers in self._handlers.items():
            if pattern == kind or _matches(pattern, kind) or _event_matches([pattern], name):
                for handler in handlers:
                    handler(event)

    # ------------------------------------------------------------------------ opening

    def _kinds(self) -> List[str]:
        """The kinds of kernel events that an own session needs: for the providers, and for the handlers and filters of
        events if events of the kernel are selected."""
        found: List[str] = []
        for provider in self._providers:
            kernel = PROVIDERS.get(provider.name.lower())
            if kernel is not None and not kernel.logged:
                found += kernel.kinds
        for name in [*self._handlers, *self._events]:
            for event in _known_events(name):
                if not self._providers or any(_is_of(kernel, event) for kernel in self._kernels() if not kernel.logged):
                    found += KINDS.get(TYPES[event], ())
        return list(dict.fromkeys(["process", "thread", *found]))

    def _kernels(self) -> List[Kernel]:
        """The kernel events of the providers that have some."""
        return [PROVIDERS[one.name.lower()] for one in self._providers if one.name.lower() in PROVIDERS]

    def _warn_of_patterns(self, patterns: Iterable[str]) -> None:
        """Warns of handlers and filters that match no event of what was opened."""
        for pattern in dict.fromkeys(patterns):
            reason = self._selectable(self, pattern) if self._selectable is not None else None
            if reason is not None:
                warn(f"{pattern}: no event can match: {reason}")

    def _selected(self, filters: Iterable[_Filter]) -> _Selection:
        """The selection: these filters, and those of the user."""
        events = [*self._events, *(event for pattern in self._events for event, kind in TYPES.items()
                                   if _matches(pattern, kind) or _matches(pattern, OF_FIRST_THREAD.get(event, kind)))]
        # Some kernel events are about the start or the end of a process or of a thread.
        excluded = []
        for event, kind in OF_FIRST_THREAD.items() if self._events else ():
            named = _event_matches(self._events, event)
            first, other = (named or any(_matches(pattern, one) for pattern in self._events) for one in (kind, TYPES[event]))
            if first != other:
                thread = _abi.ETWATCH_FILTER_OTHER_THREADS if first else _abi.ETWATCH_FILTER_FIRST_THREADS
                excluded.append(_Filter(None, (event,), flags=_abi.ETWATCH_FILTER_EXCLUDE | thread))
        return _Selection((*filters, *excluded), tuple(dict.fromkeys(events)), tuple(sorted(self._pids)),
                          tuple(self._names))

    def _live(self, selection: _Selection, prepare: Callable[[Any], object] = lambda _: None) -> _Live:
        options = _native.sized(_abi.ConsumerOptions)
        selection.fill(options)
        options.flags = _abi.ETWATCH_CONSUMER_CMDLINE if self._command_lines else 0
        options.flags |= 0 if self._decode else _abi.ETWATCH_CONSUMER_NO_FIELDS
        prepare(options)
        return _Live(options, self._decode, self._samples)

    def _open_sched(self) -> _Live:
        events: List[str] = []
        for provider in self._providers:
            events += _live_events(provider.name)
        if self._session is not None and not self._providers:
            events += _live_events(self._session)
        named: List[str] = []
        reasons: Dict[str, str] = {}
        for pattern in [*self._handlers, *self._events]:
            try:
                named += _live_of(pattern)
            except LookupError as error:
                reasons[pattern] = str(error.args[0])
        if reasons and not events and not named:
            raise ETWProviderError("; ".join(reasons.values()), fix=_USE_A_RECORDING)
        if not events and self._on_event is None:
            events = named

        def selectable(consumer: "ETWConsumer", pattern: str) -> Optional[str]:
            try:
                live = _live_of(pattern)
            except LookupError as error:
                return str(error.args[0])
            if not events or not set(events).isdisjoint(live):
                return None
            return _NOT_OF_PROVIDERS if consumer._providers else _TOO_LATE
        self._selectable = selectable
        self._warn_of_patterns([*self._handlers, *self._events])
        self._warn_of_filters(("level", "keywords", "pids", "ids"), "and there is none on this system")
        return self._live(self._selected([_Filter(None, tuple(dict.fromkeys(events)))] if events else []))

    def _open_etw(self) -> _Live:
        """An own session, or the session that the user named."""
        if self._session is None:
            return self._open_own()
        try:
            live = self._live(self._selected(self._provider_filters(True)),
                              lambda options: setattr(options, "session", os.fsencode(str(self._session))))
        except ProcessLookupError as error:
            if self._session.lower() not in _WHOLE_KERNEL:
                raise ETWSessionError(f"session {self._session!r} is not running: {error}",
                                      fix=f"start it (logman start {self._session!r} -ets), or leave session= out: "
                                          "providers= then opens a session of its own") from None
            warn(f"session: {self._session!r} is not running: a session of its own has the events of the kernel instead")
            self._providers = self._providers or [ETWProvider(self._session)]
            return self._open_own()
        where = "and a session that another program started is read as it is"
        self._warn_of_filters(("level", "keywords"), where)
        if self._providers:
            self._selectable = ETWConsumer._selectable_by_provider
            self._warn_of_patterns([*self._handlers, *self._events])
        return live

    def _open_own(self) -> _Live:
        kinds = self._kinds()
        selection = self._selected(self._provider_filters(False))
        kept: List[Any] = []
        try:
            live = self._live(selection, lambda options: kept.append(self._session_options(options, kinds)))
        except ValueError as error:
            if "no provider is named" in str(error):
                name = str(error).partition("'")[2].rpartition("'")[0]
                raise _unknown(name, KNOWN, "it is not registered on this machine") from None
            raise
        for provider in self._providers:
            if provider.name.lower() in PROVIDERS and not PROVIDERS[provider.name.lower()].logged:
                self._warn_of_provider(provider, ("level", "keywords"), "and these are events of the kernel")

        def selectable(consumer: "ETWConsumer", pattern: str) -> Optional[str]:
            events = _known_events(pattern)
            logged = any(_is_of(kernel, event) for kernel in consumer._kernels() if kernel.logged for event in events)
            if not events or logged or any(not set(kinds).isdisjoint(KINDS.get(TYPES[event], ())) for event in events):
                return consumer._selectable_by_provider(pattern)
            return consumer._selectable_by_provider(pattern) or _TOO_LATE
        self._selectable = selectable
        self._warn_of_patterns([*self._handlers, *self._events])
        return live

    def _selectable_by_provider(self, pattern: str) -> Optional[str]:
        """Why no event of the kernel matches, if every provider is known."""
        kernels, events = self._kernels(), _known_events(pattern)
        if not events or len(kernels) < max(1, len(self._providers)):
            return None
        return None if any(_is_of(kernel, event) for kernel in kernels for event in events) else _NOT_OF_PROVIDERS

    def _provider_filters(self, all_of_them: bool) -> List[_Filter]:
        """The events of the providers of a live session. all_of_them: Windows does not apply their filters."""
        found = []
        for one in self._providers:
            kernel = PROVIDERS.get(one.name.lower())
            if kernel is not None and not kernel.logged:
                found.append(self._kernel_filter(one, kernel))
            elif all_of_them:
                found.append(_Filter(one.name.lstrip("*"), (), one.pids, one.ids))
            else:
                found.append(_Filter(one.name.lstrip("*")))
        return found

    def _kernel_filter(self, provider: ETWProvider, kernel: Kernel) -> _Filter:
        """The kernel events that stand for a provider."""
        self._warn_of_provider(provider, ("ids",), "and events of the kernel have none")
        return _Filter(KERNEL_PROVIDER, kernel.events, provider.pids)

    def _session_options(self, options: Any, kinds: List[str]) -> List[Any]:
        session = _native.sized(_abi.SessionOptions)
        session.kernel = ",".join(kinds).encode()
        session.profile_hz = self._cpu_sampling_hz if "profile" in kinds else 0
        real = [one for one in self._providers
                if PROVIDERS.get(one.name.lower()) is None or PROVIDERS[one.name.lower()].logged]
        array = (_abi.Provider * max(1, len(real)))()
        kept: List[Any] = [session, array]
        for native, one in zip(array, real):
            native.size = ctypes.sizeof(_abi.Provider)
            native.name = one.name.encode()
            native.level, native.keywords = one.level, one.keywords
            pids, ids = _ids(one.pids), (ctypes.c_uint16 * len(one.ids))(*one.ids)
            native.pids, native.pid_count = pids, len(one.pids)
            native.event_ids, native.event_id_count = ids, len(one.ids)
            kept += [pids, ids]
        session.providers, session.provider_count = array, len(real)
        options.session_options = ctypes.pointer(session)
        return kept

    def _open_file(self) -> _File:
        file: Any = self._file
        filters: List[_Filter] = []
        if self._providers:
            with open_trace(file) as trace:
                present = sorted({str(name) for name in trace.classes["provider"]})
            filters = [self._filter_in(provider, present) for provider in self._providers]
        self._warn_of_filters(("level", "keywords"), "and this is a recording: it has the events that were recorded")
        return _File(file, self._selected(filters), self._decode, self._command_lines, self._samples)

    def _filter_in(self, provider: ETWProvider, present: List[str]) -> _Filter:
        """The events of a recording that a provider stands for."""
        kernel = PROVIDERS.get(provider.name.lower())
        found = [name for name in present if _matches(provider.name, name)]
        if not found and _is_pattern_of_name(provider.name):
            if kernel is not None:
                return self._kernel_filter(provider, kernel)
            if provider.name.lower() not in (name.lower() for name in KNOWN):
                raise _unknown(provider.name, present, "the recording has no events of it")
        return _Filter(provider.name, (), provider.pids, provider.ids)

    def _open(self) -> Union[_File, _Live]:
        if self._source is None:
            if self._stopped:
                raise ETWSessionError("the consumer was stopped; a new one starts again")
            if self._file is not None:
                self._source = self._open_file()
            elif _has_etw():
                self._source = self._open_etw()
            elif self._session is not None and self._session.lower() not in _WHOLE_KERNEL:
                raise ETWProviderError(f"session {self._session!r}: ETW sessions exist on Windows only",
                                       fix="read a recording with file=")
            else:
                self._source = self._open_sched()
        return self._source

    # ------------------------------------------------------------------------ reading

    def _warn_of_filters(self, names: Sequence[str], where: str) -> None:
        for provider in self._providers:
            self._warn_of_provider(provider, names, where)
        if self._cpu_sampling_hz:
            warn(f"cpu_sampling_hz: a rate of a live ETW session, {where}")

    def _warn_of_provider(self, provider: ETWProvider, names: Sequence[str], where: str) -> None:
        for name in names:
            if getattr(provider, name):
                warn(f"{provider.name}: {name}: a filter of a live ETW session, {where}")

    def _advance(self) -> bool:
        """Reads the next batch, which may have no selected events; False at the end. All ways of reading share the batch,
        so that an event is delivered once, and none is lost where a loop is left."""
        with self._reading:
            if self._stopped and self._source is None and self._read:
                return False  # closed by a handler, within a loop, or by another thread
            source = self._open()
            self._read = True
            if self._stopped and isinstance(source, _File):
                return False
            batch, fields = source.read()
            if batch is None:
                return False
            rows = EventRows(batch, fields, self._samples, source.tick_ns, source.before_samples)
            self._delivered += rows.length
            self._pending = events_of(rows)
            return True

    def _check_reader(self) -> None:
        thread = self._thread
        if thread is not None and thread is not threading.current_thread() and thread.is_alive():
            raise ETWSessionError("the thread of start() reads this consumer for its handlers; use either handlers or a loop")

    def _events_left(self) -> Iterator[ETWEvent]:
        while True:
            pending = self._pending
            if pending is None:
                if not self._advance():
                    return
                continue
            yield from pending
            if self._pending is pending:
                self._pending = None

    def __iter__(self) -> Iterator[ETWEvent]:
        """Events in order of time, until the recording ends or the consumer is stopped."""
        self._check_reader()
        return self._events_left()

    def get_events(self) -> Iterator[ETWEvent]:
        """The same as iteration.

        Example:

            for event in consumer.get_events():
                print(event)
        """
        return iter(self)

    def get_next_event(self, timeout: Optional[float] = None) -> Optional[ETWEvent]:
        """The next event; None after the timeout (seconds) and at the end.

        Example:

            event = consumer.get_next_event(timeout=1.0)
            if event is not None:
                print(event.type, event.process_id)
        """
        self._check_reader()
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            pending = self._pending
            if pending is None:
                if not self._advance():
                    return None
                continue
            event = next(pending, None)
            if event is not None:
                return event
            self._pending = None
            if deadline is not None and time.monotonic() >= deadline:
                return None

    async def __aiter__(self) -> AsyncIterator[ETWEvent]:
        import asyncio  # large, and rarely needed
        self._check_reader()
        loop = asyncio.get_running_loop()
        while True:
            pending = self._pending
            if pending is None:
                if not await loop.run_in_executor(None, self._advance):
                    return
                continue
            for event in pending:
                yield event
            if self._pending is pending:
                self._pending = None

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The events as an Arrow stream, batch by batch: pyarrow.RecordBatchReader.from_stream(consumer).

        It has the events that iteration delivers, without their fields unless the consumer was made with fields=True. Live,
        a batch without rows means that nothing happened for a while.
        """
        return _arrow.capsule(self._open_columns(False))

    def _open_columns(self, typed: bool) -> _arrow.OpenStream:
        source = self._open()
        if typed and not isinstance(source, _File):
            raise ValueError("typed: the fields of live events are not known in advance; use fields=True")
        self._read = True
        return source.columns(_abi.ETWATCH_TABLE_TYPED if typed else self._columns)

    def batches(self, *, typed: bool = False) -> Iterator[Any]:
        """The events as pyarrow.RecordBatch, without empty ones. Needs pyarrow.

        typed: a column for each field, with its type. For few kinds of events (`events=`) of a recording, which is read
        once more for them. The consumer's fields=True gives one column of JSON text instead.

        Example:

            consumer = etwatch.ETWConsumer(file="boot.etl", events="ThreadContextSwitch")
            for batch in consumer.batches(typed=True):
                print(batch.num_rows, batch.schema.names)
        """
        import pyarrow  # type: ignore[import-untyped,unused-ignore]  # pylint: disable=import-error

        class Columns:  # pyarrow takes a stream from an object
            def __arrow_c_stream__(_, requested_schema: object = None) -> object:  # pylint: disable=no-self-argument
                return _arrow.capsule(self._open_columns(typed))
        for batch in pyarrow.RecordBatchReader.from_stream(Columns()):
            if batch.num_rows:
                yield batch

    # ------------------------------------------------------------------------ running

    def process(self) -> int:
        """Calls the handlers for every event until the end; returns the number of events. After `start` it waits for the
        thread that calls them.

        Example:

            print(consumer.process(), "events")
        """
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            self.wait()
            self._raise_failure()
            return self._delivered
        return self._process()

    def _process(self) -> int:
        count = 0
        for event in self._events_left():
            self._dispatch(event)
            count += 1
        return count

    def _run(self) -> None:
        try:
            self._process()
        except BaseException as error:  # pylint: disable=broad-except
            self._failure = error

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def start(self, handler: Optional[Handler] = None) -> "ETWConsumer":
        """Starts reading. With a handler (here, `on` or `on_event`) a thread calls it for each event.

        Example:

            consumer.start(lambda event: print(event.type))
        """
        if handler is not None:
            if not callable(handler):
                raise TypeError(f"handler: a function is needed, not {handler!r}")
            self._on_event = handler
        if self._stopped:
            raise ETWSessionError("the consumer was stopped; a new one starts again")
        self._open()
        self._started = True
        self._run_handlers()
        return self

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits until the thread of `start` has delivered everything; False after the timeout.

        Example:

            consumer.start(print)
            consumer.wait(timeout=10)
        """
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)
            return not thread.is_alive()
        return True

    def stop(self) -> None:
        """Ends reading. Events that had already happened are still delivered by the next reads; the session ends then, with
        `close` and with the last reference. An exception that a handler raised in the thread of `start` is raised here.

        Example:

            consumer.stop()
        """
        self._stopped = True
        source = self._source
        if source is not None:
            source.stop()
        self.wait()
        self._raise_failure()

    def close(self) -> None:
        """Stops, and frees everything. Statistics stay readable.

        Example:

            consumer.close()
        """
        try:
            self.stop()
        finally:
            with self._reading:
                source, self._source = self._source, None
                self._pending = None
                if source is not None:
                    self._last_stats = source.stats()
                    source.close()
                self._stopped = True

    _last_stats: Dict[str, int] = {"events": 0, "lost": 0, "undecoded": 0}  # nothing was taken yet

    @property
    def stats(self) -> Dict[str, int]:
        """events (taken from the session or recording), delivered, lost and undecoded.

        Example:

            print(consumer.stats["events"], consumer.stats["lost"])
        """
        source = self._source
        found = dict(self._last_stats) if source is None else source.stats()
        return {**found, "delivered": self._delivered}

    def get_cpu(self) -> float:
        """The CPU per cent of the machine since the last call.

        Example:

            print(f"{consumer.get_cpu():.0f} %")
        """
        if self._system is None:
            from .compat import SystemMonitor
            self._system = SystemMonitor()
            time.sleep(0.05)
        return float(self._system.get_cpu_usage())

    def __enter__(self) -> "ETWConsumer":
        # From here on no event is missed. Without a provider it is not known yet what to open.
        if self._providers or self._session is not None or self._file is not None:
            self._open()
        self._inside = True
        return self

    def __exit__(self, *_: object) -> None:
        self._inside = False
        self.close()

    async def __aenter__(self) -> "ETWConsumer":
        import asyncio  # large, and rarely needed
        return await asyncio.get_running_loop().run_in_executor(None, self.__enter__)

    async def __aexit__(self, *_: object) -> None:
        import asyncio
        await asyncio.get_running_loop().run_in_executor(None, self.__exit__)

    def __repr__(self) -> str:
        source = str(self._file) if self._file is not None else self._session or "live"
        names = ", ".join(provider.name for provider in self._providers)
        state = "closed" if self._stopped and self._source is None else "open" if self._source is not None else "not started"
        return f"<ETWConsumer {source}{' of ' + names if names else ''}: {state}>"

    def __del__(self) -> None:
        source = getattr(self, "_source", None)
        if source is not None:
            source.stop()
            source.close()


def _known_events(pattern: str) -> List[str]:
    """The events of the Windows kernel with a matching type or name."""
    return [event for event, kind in TYPES.items()
            if "/" in event and (_event_matches([pattern], event) or _matches(pattern, kind))]


def _is_of(kernel: Kernel, event: str) -> bool:
    """Whether the kernel events of a provider include this one."""
    return any(_matches(pattern, event) for pattern in kernel.events)


def _live_of(pattern: str) -> List[str]:
    """The live events of Linux with this type or name; LookupError has the reason if there is none."""
    live = [event for kind, events in LIVE.items() for event in events
            if _matches(pattern, kind) or _matches(pattern, event)]
    if live:
        return live
    known = pattern in TYPES.values() or any(_event_matches([pattern], event) for event in TYPES)
    raise LookupError(f"Linux has no live {pattern}: {_LIVE_ON_LINUX}" if known else
                      f"no live event has the type or name {pattern!r}: {_LIVE_ON_LINUX}")


def _types_of(kernel: Kernel) -> List[str]:
    """The types of the events that carry the facts of a provider."""
    return list(dict.fromkeys(kind for event, kind in TYPES.items()
                              if any(_matches(pattern, event) for pattern in kernel.events)))


def _live_events(name: str) -> List[str]:
    """The live events of Linux for a provider or session; raises if there are none."""
    kernel = PROVIDERS.get(name.lower())
    if name.lower() in _WHOLE_KERNEL:
        return [event for events in LIVE.values() for event in events]
    if kernel is None:
        why = f"ETW providers exist on Windows only; {_LIVE_ON_LINUX}"
        if name.lower() in (known.lower() for known in KNOWN):
            raise ETWProviderError(f"{name}: {why}", fix=_USE_A_RECORDING)
        raise _unknown(name, KNOWN, why)
    types = _types_of(kernel)
    events = [event for kind in types for event in LIVE.get(kind, ())]
    if not events:
        raise ETWProviderError(f"{name}: Linux has no live {' or '.join(types) or 'events of it'}; {_LIVE_ON_LINUX}", fix=_USE_A_RECORDING)
    if "ProcessStart" in types:
        events += LIVE["ProcessExec"]
    return events


def _is_pattern_of_name(name: str) -> bool:
    """Whether this is a name, not a GUID."""
    bare = name.strip("{}")
    return not (len(bare) == 36 and bare.count("-") == 4)


def _unknown(name: str, known: Sequence[str], why: str) -> ETWProviderError:
    lower = {one.lower(): one for one in known}
    near = [lower[match] for match in difflib.get_close_matches(name.lower(), list(lower), n=3, cutoff=0.5)]
    return ETWProviderError(f"no provider is named {name!r}: {why}",
                            fix=f"did you mean {' or '.join(near)}?" if near else "")
