"""What happened when: slices of time on named lanes, and levels of counters, while somebody records them.

    with recording() as events:
        pagerank(graph)
    write_trace("run.json", events)

Nobody records by default, and then nothing is kept. A thread that serves several runs does not see the recorder of the
one it works for: whoever starts a run takes `current()` along and hands it to the run's tasks.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from time import perf_counter
from typing import Any, NamedTuple

LIMIT = 250_000
"""Events kept, some 100 MB, an equal share for each thread: so the few of the engine are not crowded out by the many of
the workers. What comes later is counted only, for a long run must not outgrow its memory."""


class Slice(NamedTuple):
    """What a lane was busy with, from `begin` to `end` (seconds of `perf_counter`)."""

    lane: str
    name: str
    begin: float
    end: float
    args: dict[str, Any]


class Level(NamedTuple):
    """How high a counter stood at a moment."""

    name: str
    time: float
    value: float


class _Log:
    """What one thread recorded."""

    __slots__ = ("left_out", "levels", "slices")

    def __init__(self) -> None:
        self.slices: list[Slice] = []
        self.levels: list[Level] = []
        self.left_out = 0


class Events:
    """A recording. Any thread may add to it, without waiting for another; it is read when they are done."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.began = perf_counter()
        self._limit = self._share = limit
        self._local = threading.local()
        self._lock = threading.Lock()
        self._logs: list[_Log] = []

    def record(self, lane: str, name: str, begin: float, end: float, /, **args: Any) -> None:
        """`lane` did `name` from `begin` to `end`; a slice whose args have `bytes` moved that many."""
        log = self._log()
        if len(log.slices) < self._share:
            log.slices.append(Slice(lane, name, begin, end, args))
        else:
            log.left_out += 1

    def count(self, name: str, value: float) -> None:
        """The counter `name` stands at `value` now; `group/one` and `group/other` are shown together."""
        log = self._log()
        if len(log.levels) < self._share:
            log.levels.append(Level(name, perf_counter(), value))
        else:
            log.left_out += 1

    def _log(self) -> _Log:
        try:
            log: _Log = self._local.log
        except AttributeError:
            log = self._local.log = _Log()
            with self._lock:
                self._logs.append(log)
                self._share = self._limit // len(self._logs)
        return log

    @property
    def slices(self) -> list[Slice]:
        """All of them by their beginning, the outer before the inner ones."""
        found = [each for log in self._logs for each in log.slices]
        return sorted(found, key=lambda each: (each.begin, -each.end))

    @property
    def levels(self) -> list[Level]:
        """All of them in the order of time."""
        return sorted((each for log in self._logs for each in log.levels), key=lambda each: each.time)

    @property
    def lanes(self) -> list[str]:
        """Names of the lanes: `reader 2` before `reader 10`."""
        return sorted({each.lane for log in self._logs for each in log.slices}, key=_natural)

    @property
    def left_out(self) -> int:
        """How many events came after their thread had used up its share."""
        return sum(log.left_out for log in self._logs)


def _natural(lane: str) -> list[tuple[bool, int, str]]:
    """Numbers by value, and before words."""
    return [(not word.isdecimal(), int(word) if word.isdecimal() else 0, word) for word in lane.split()]


_current: ContextVar[Events | None] = ContextVar("penstock_events", default=None)


def current() -> Events | None:
    """Who records here, if anybody does."""
    return _current.get()


@contextlib.contextmanager
def recording(limit: int = LIMIT) -> Iterator[Events]:
    """Record what runs inside the block. A recording inside another has its events to itself."""
    events = Events(limit)
    token = _current.set(events)
    try:
        yield events
    finally:
        _current.reset(token)


def record(lane: str, name: str, begin: float, end: float, /, **args: Any) -> None:
    """Record a slice if anybody wants it."""
    events = _current.get()
    if events is not None:
        events.record(lane, name, begin, end, **args)


def count(name: str, value: float) -> None:
    """Record the level of a counter if anybody wants it."""
    events = _current.get()
    if events is not None:
        events.count(name, value)


__all__ = ["Events", "Level", "Slice", "count", "current", "record", "recording"]
