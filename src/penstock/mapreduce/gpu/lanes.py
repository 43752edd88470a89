"""Three lanes over which chunks pass a GPU: while one is copied in, another is worked on and a third is copied out.

Each lane has a stream, pinned memory each way, and memory of the device. A chunk passes in three stages: it is brought
and its first kernels begin; what they counted comes back and the others begin; what they made is taken over. The next
chunk is always one stage behind, on the next lane.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Protocol

import numpy as np

from penstock.errors import DeviceFull, DoesNotFit
from penstock.mapreduce.gpu.accelerator import Accelerator
from penstock.mapreduce.placing import Unsuited
from penstock.memory import gpu
from penstock.memory.staging import copy_bytes
from penstock.memory.timeline import Timeline
from penstock.sorting.gpu import Held

LANES = 3
_ALIGNED = 512
_SPARE = 16 * _ALIGNED
"""For the gaps between arrays, which begin at multiples of 512 bytes."""


def aligned(nbytes: int) -> int:
    return -(-nbytes // _ALIGNED) * _ALIGNED


class Work(Protocol):
    """An operation, stage by stage."""

    def begin(self, lane: Lane, job: Any) -> None:
        """Bring what it needs, and begin."""

    def go_on(self, lane: Lane, job: Any) -> None:
        """Whatever depends on what came back; begin to fetch what is made."""

    def end(self, lane: Lane, job: Any) -> Any:
        """What was made of it, in memory of its own."""


class Lane:
    """A stream with its memory. Arrays taken of it are valid until it is `cleared`."""

    def __init__(self, lanes: Lanes, number: int, pinned: list[np.ndarray], sizes: tuple[int, int]) -> None:
        self._lanes, self.number, self.stream, self._pinned = lanes, number, gpu.Stream(), pinned
        self._held: list[Held] = []
        try:
            for size in sizes:
                self._held.append(Held(lanes.accelerator.ledger, size, "a chunk on the GPU"))
        except BaseException:
            self.close()
            raise
        self._at = [0, 0]
        self.notes: Any = None

    def clear(self) -> None:
        for held in self._held:
            held.reset()
        self._at = [0, 0]

    def span(self, name: str, **args: Any) -> Any:
        """A slice of the timeline."""
        return self._lanes.timeline.span(self.stream, self.number, name, **args)

    @property
    def room_in(self) -> int:
        return self._held[0].left

    def empty(self, count: int, dtype: Any) -> Any:
        """Memory of the device beside what is brought."""
        return self._held[0].take(count, dtype)

    def make(self, count: int, dtype: Any) -> Any:
        """Memory of the device for what is made."""
        return self._held[1].take(count, dtype)

    def bring(self, arrays: Sequence[np.ndarray]) -> list[Any]:
        """Begin to copy arrays of the host, which may be changed when this returns."""
        found, ready = [], []
        for array in arrays:
            here = self._pinned[0][self._at[0] : self._at[0] + array.nbytes]
            self._at[0] += aligned(array.nbytes)
            copy_bytes(here, array)
            ready.append(here.view(array.dtype))
        size = sum(array.nbytes for array in arrays)
        with self.span("copy in", bytes=size):
            for here in ready:
                there = self.empty(len(here), here.dtype)
                self.stream.copy(there, here)
                found.append(there)
        self._lanes.accelerator.count(size, 0, 0)
        return found

    def fetch(self, array: Any) -> np.ndarray:
        """Begin to copy an array of the device; what is returned is valid when the stream has come by."""
        here = self._pinned[1][self._at[1] : self._at[1] + array.nbytes].view(array.dtype)
        self._at[1] += aligned(array.nbytes)
        self.stream.fetch(here, array)
        self._lanes.accelerator.count(0, array.nbytes, 0)
        return here

    def count_out(self, nbytes: int) -> None:
        """Bytes that were copied out in another way."""
        self._lanes.accelerator.count(0, nbytes, 0)

    def close(self) -> None:
        self.stream.synchronize()
        for held in self._held:
            held.close()


class Lanes:
    """`bytes_in`, `bytes_out`: of a chunk, and of what is made of it; `beside`: what a lane has of the device more.
    `Unsuited` where the host or the device has no room for them."""

    def __init__(self, accelerator: Accelerator, bytes_in: int, bytes_out: int, beside: int = 0) -> None:
        self.accelerator, self.timeline = accelerator, Timeline()
        pinned = aligned(bytes_in) + _SPARE, aligned(bytes_out) + _SPARE
        sizes = pinned[0] + aligned(beside), pinned[1]
        self._lanes: list[Lane] = []
        try:
            memory = accelerator.lane_memory([*pinned] * LANES)
            for number in range(LANES):
                self._lanes.append(Lane(self, number, memory[2 * number : 2 * number + 2], sizes))
        except (DoesNotFit, DeviceFull) as error:
            self.close()
            raise Unsuited(str(error)) from error
        except BaseException:
            self.close()
            raise

    def run(self, jobs: Iterable[Any], work: Work) -> Iterator[tuple[Any, Any]]:
        """Each job with what was made of it, in order."""
        begun: deque[tuple[Lane, Any]] = deque()
        for number, job in enumerate(jobs):
            lane = self._lanes[number % LANES]
            lane.clear()
            work.begin(lane, job)
            self.accelerator.count(0, 0)
            begun.append((lane, job))
            if len(begun) > 1:
                work.go_on(*begun[-2])
            if len(begun) == LANES:
                yield self._ended(work, *begun.popleft())
        if begun:
            work.go_on(*begun[-1])
        while begun:
            yield self._ended(work, *begun.popleft())
        self.timeline.settle()

    def _ended(self, work: Work, lane: Lane, job: Any) -> tuple[Any, Any]:
        lane.stream.synchronize()
        return job, work.end(lane, job)

    def close(self) -> None:
        for lane in self._lanes:
            lane.close()
        self._lanes.clear()

    def __enter__(self) -> Lanes:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def most_bytes(accelerator: Accelerator, wanted: int, per_byte: float) -> int:
    """How many bytes of input a chunk may have: `wanted`, or what three lanes leave of the device's memory and of an
    eighth of the host's, where each byte takes `per_byte` in all. Of the host's as much again may be taken: pinned
    memory comes in powers of 2."""
    device = accelerator.ledger.free // LANES - 3 * _SPARE
    host = accelerator.room.ledger.limit // 16 // LANES - 2 * _SPARE
    return max(0, min(wanted, int(min(device, host) / per_byte)))


__all__ = ["LANES", "Lane", "Lanes", "Work", "aligned", "most_bytes"]
