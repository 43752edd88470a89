"""Streams and events, as CuPy has them."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable
from typing import Any

from emulator.devices import current
from emulator.memory import is_pinned, move
from emulator.scheduler import SCHEDULER, Operation, Queue


class Stream:
    """A stream, with a priority that is of no account."""

    null: Stream

    def __init__(self, priority: int = 0) -> None:
        self._made: Queue | None = SCHEDULER.queue()
        self.ptr = self._made.handle

    @property
    def queue(self) -> Queue:
        return SCHEDULER.find(self.ptr)

    def wait_event(self, event: Event) -> None:
        with SCHEDULER.lock:
            if event.operation is not None and not event.operation.done:
                self.queue.waits.append(event.operation)

    def synchronize(self) -> None:
        SCHEDULER.finish(SCHEDULER.position(self.queue))

    def __enter__(self) -> Stream:
        _CHOSEN.streams.append(self)
        return self

    def __exit__(self, *_: Any) -> None:
        _CHOSEN.streams.pop()


class _Null(Stream):
    def __init__(self) -> None:
        self._made, self.ptr = None, 0


Stream.null = _Null()


class _Chosen(threading.local):
    def __init__(self) -> None:
        self.streams = [Stream.null]


_CHOSEN = _Chosen()


def do(run: Callable[[], None], *, wait: bool = False) -> None:
    """In the current stream."""
    operation = SCHEDULER.put(_CHOSEN.streams[-1].queue, run)
    if wait:
        SCHEDULER.finish(operation)


def copy(target: int, source: int, nbytes: int, handle: int, *, to_host: bool) -> None:
    """Memory of the host that is not pinned has been written when this returns, or read; then, the device may have it
    later."""
    queue = SCHEDULER.find(handle)
    pinned = is_pinned(target if to_host else source)
    if pinned or to_host:
        operation = SCHEDULER.put(queue, lambda: move(target, source, nbytes))
        if not pinned:
            SCHEDULER.finish(operation)
    else:
        SCHEDULER.finish(SCHEDULER.position(queue))
        read = ctypes.create_string_buffer(nbytes)
        ctypes.memmove(read, source, nbytes)
        SCHEDULER.put(queue, lambda: move(target, ctypes.addressof(read), nbytes))


class Event:
    def __init__(self, block: bool = False, disable_timing: bool = False) -> None:
        self.operation: Operation | None = None
        self.timed, self._device = not disable_timing, current()
        self.ptr = id(self)
        EVENTS[self.ptr] = self

    def record(self, stream: Stream) -> None:
        assert stream.queue.device == self._device
        self.operation = SCHEDULER.position(stream.queue)

    def synchronize(self) -> None:
        if self.operation is not None:
            SCHEDULER.finish(self.operation)

    @property
    def done(self) -> bool:
        if self.operation is not None and not self.operation.done:
            SCHEDULER.go_on()
        return self.operation is None or self.operation.done


EVENTS: weakref.WeakValueDictionary[int, Event] = weakref.WeakValueDictionary()
"""By what the driver knows them by."""


def get_elapsed_time(begin: Event, end: Event) -> float:
    """Milliseconds."""
    assert begin.timed
    assert end.timed
    assert begin.operation is not None
    assert end.operation is not None
    assert begin.operation.done
    assert end.operation.done
    return (end.operation.time - begin.operation.time) * 1000


__all__ = ["EVENTS", "Event", "Stream", "copy", "do", "get_elapsed_time"]
