"""When copies and kernels ran on a GPU's streams, for whoever records: by events on the streams, not by the host's
clock, which knows only when they were begun."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from time import perf_counter
from typing import Any

from penstock.memory import gpu
from penstock.observe.events import current


class Timeline:
    """Slices of lanes; nothing is done where nobody records."""

    def __init__(self, of: str = "") -> None:
        """`of` follows the name of each lane: it says of which device it is, where there are several."""
        self._of, self._events = of, current()
        self._spans: list[tuple[str, str, Any, Any, dict[str, Any]]] = []
        if self._events is not None:
            gpu.synchronize()
            self._origin, self._began = gpu.Event(gpu.Stream(null=True), timed=True), perf_counter()

    @property
    def records(self) -> bool:
        """Whether anybody does."""
        return self._events is not None

    @contextlib.contextmanager
    def span(self, stream: gpu.Stream, lane: str | int, name: str, **args: Any) -> Iterator[dict[str, Any]]:
        """What is put into the stream inside is one slice; what is found out about it may be added to its `args`. A
        lane that is a number is the stream of that number."""
        if self._events is None:
            yield args
            return
        begin = self._mark(stream)
        yield args
        named = lane if isinstance(lane, str) else f"stream {lane}"
        self._spans.append((named + self._of, name, begin, self._mark(stream), args))

    def _mark(self, stream: gpu.Stream) -> Any:
        return perf_counter() if gpu.SIMULATED else gpu.Event(stream, timed=True)

    def _time(self, mark: Any) -> float:
        return mark if gpu.SIMULATED else self._began + mark.seconds_since(self._origin)

    def settle(self) -> None:
        """Hand over what was noted; everything must have run."""
        spans, self._spans = self._spans, []
        for lane, name, begin, end, args in spans:
            assert self._events is not None
            self._events.record(lane, name, self._time(begin), self._time(end), **args)


__all__ = ["Timeline"]
