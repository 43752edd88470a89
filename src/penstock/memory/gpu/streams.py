"""Streams and events: what is done in order, and what beside it."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.memory.gpu.devices import current
from penstock.memory.gpu.door import SIMULATED, cuda, cupy


class Stream:
    """Copies and kernels in order, beside those of other streams. `Stream(null=True)`: what is put there waits for all
    that was put into other streams before, and they for it; CuPy's own operations are there, too. `ahead`: its kernels
    are let in before those of other streams that wait."""

    def __init__(self, *, null: bool = False, ahead: bool = False) -> None:
        self.raw = None
        self.numba: Any = 0
        self.device = current()
        if not SIMULATED:
            self.raw = cupy.cuda.Stream.null if null else _made(ahead=ahead)
            self.numba = cuda.external_stream(self.raw.ptr) if self.raw.ptr else cuda.default_stream()

    @property
    def handle(self) -> int:
        """What the driver knows it by."""
        return 0 if self.raw is None else int(self.raw.ptr)

    def copy(self, target: Any, source: np.ndarray) -> None:
        """Begin to copy pinned host memory into an array on the device."""
        if self.raw is None:
            target[...] = source
        elif source.nbytes:
            cupy.cuda.runtime.memcpyAsync(
                target.data.ptr, source.ctypes.data, source.nbytes, cupy.cuda.runtime.memcpyHostToDevice, self.raw.ptr
            )

    def fetch(self, target: np.ndarray, source: Any) -> None:
        """Begin to copy an array on the device into pinned host memory."""
        if self.raw is None:
            target[...] = source
        elif source.nbytes:
            cupy.cuda.runtime.memcpyAsync(
                target.ctypes.data, source.data.ptr, source.nbytes, cupy.cuda.runtime.memcpyDeviceToHost, self.raw.ptr
            )

    def move(self, target: Any, source: Any) -> None:
        """Begin to copy an array on a device into another of its size, there or on another device."""
        if self.raw is None:
            target[...] = source
        elif source.nbytes:
            target.data.copy_from_device_async(source.data, source.nbytes, self.raw)

    def record(self) -> Event:
        return Event(self)

    def wait(self, event: Event) -> None:
        """What comes later on this stream waits for the event."""
        if self.raw is not None and event.raw is not None:
            self.raw.wait_event(event.raw)

    def synchronize(self) -> None:
        if self.raw is not None:
            self.raw.synchronize()


def _made(*, ahead: bool) -> Any:
    # CuPy knows of priorities from its version 14 on.
    known = "priority" in (cupy.cuda.Stream.__doc__ or "")
    return cupy.cuda.Stream(priority=-1) if ahead and known else cupy.cuda.Stream()


class Event:
    """A point in a stream."""

    def __init__(self, stream: Stream, *, timed: bool = False) -> None:
        self.raw = None
        if stream.raw is not None:
            self.raw = cupy.cuda.Event(block=not timed, disable_timing=not timed)
            self.raw.record(stream.raw)

    @property
    def handle(self) -> int:
        return 0 if self.raw is None else int(self.raw.ptr)

    def synchronize(self) -> None:
        if self.raw is not None:
            self.raw.synchronize()

    def done(self) -> bool:
        return self.raw is None or bool(self.raw.done)

    def seconds_since(self, earlier: Event) -> float:
        """Between two timed events."""
        if self.raw is None or earlier.raw is None:
            return 0.0
        return float(cupy.cuda.get_elapsed_time(earlier.raw, self.raw)) / 1000


__all__ = ["Event", "Stream"]
