"""Progress of long work: a bar on a terminal, events for a callback, or nothing.

    with progress("sorting", total=arcs, settings=settings) as bar:
        for batch in batches:
            ...
            bar.advance(len(batch))

A bar is drawn with rich, which is loaded only then.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from penstock.config import Settings

INTERVAL = 0.1
"""Seconds between two events of one stage: work may advance a million times per second, people cannot."""


@dataclass(frozen=True)
class ProgressEvent:
    """What a callback is told."""

    stage: str
    done: int
    total: int | None
    """None: nobody knows yet."""
    unit: str
    seconds: float
    """Since the stage began."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """What else the stage says of itself, such as `residual`."""
    finished: bool = False
    """True in the last event of a stage that succeeded."""


class Progress:
    """One stage of work. This base class is the silent one: it does nothing, at no cost."""

    def advance(self, n: int = 1, **fields: Any) -> None:
        """`n` more units are done. Any thread may call."""

    def update(self, *, done: int | None = None, total: int | None = None, **fields: Any) -> None:
        """Set what is known better now: how much is done, how much there is, further fields."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass


class Counted(Progress):
    """A stage that counts, and tells `show` how it stands, ten times per second at most."""

    def __init__(self, description: str, total: int | None, unit: str) -> None:
        self._stage, self._total, self._unit = description, None if total is None else int(total), unit
        self._done = 0
        self._fields: dict[str, Any] = {}
        self._began = time.perf_counter()
        self._shown = -INTERVAL
        self._over = False
        self._lock = threading.Lock()

    def show(self, event: ProgressEvent) -> None:
        """Called by one thread at a time."""
        raise NotImplementedError

    def advance(self, n: int = 1, **fields: Any) -> None:
        with self._lock:
            self._done += int(n)
            if fields:
                self._fields |= fields
            self._tell()

    def update(self, *, done: int | None = None, total: int | None = None, **fields: Any) -> None:
        with self._lock:
            if done is not None:
                self._done = int(done)
            if total is not None:
                self._total = int(total)
            self._fields |= fields
            self._tell()

    def _tell(self, finished: bool = False) -> None:
        now = time.perf_counter() - self._began
        if not self._over and (finished or now - self._shown >= INTERVAL):
            self._shown = now
            if self._total is not None and (finished or self._done > self._total):
                self._total = self._done  # the total was an estimate
            self.show(
                ProgressEvent(self._stage, self._done, self._total, self._unit, now, dict(self._fields), finished)
            )

    def __enter__(self) -> Self:
        self._began = time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._lock:
            try:
                if kind is None:
                    self._tell(finished=True)
            finally:
                self._over = True  # a worker that is late finds nobody listening


class Reported(Counted):
    """A stage that reports to the caller's function. What the function raises stops the work: a way to cancel."""

    def __init__(self, description: str, total: int | None, unit: str, callback: Callable[..., None]) -> None:
        super().__init__(description, total, unit)
        self._callback = callback

    def show(self, event: ProgressEvent) -> None:
        self._callback(event)


_SILENT = Progress()


def progress(description: str, *, total: int | None = None, unit: str = "arcs", settings: Settings) -> Progress:
    """One stage of work, shown as `settings.progress` says. Stages may follow one another or nest."""
    wanted = settings.progress
    if callable(wanted):
        return Reported(description, total, unit, wanted)
    if wanted is None:
        wanted = sys.stderr is not None and sys.stderr.isatty()
    if not wanted:
        return _SILENT
    from penstock.observe.bar import Bar

    return Bar(description, total, unit)


__all__ = ["Progress", "ProgressEvent", "progress"]
