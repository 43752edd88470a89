"""Disk to GPU: threads read batches of pages through small pinned buffers straight to frames of the device.

The buffers are small so that they stay in a cache, and nobody but the disk and the device touches what is in them:
pages are checked where they land, by `penstock.memory.sums`. On a machine with a disk of 4.5 GB/s, six threads with two
buffers of 1 MiB each move what the disk reads; with buffers of 8 MiB, or with a core that reads the pages for a
checksum, it is three quarters of that.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from types import TracebackType
from typing import Self

import numpy as np

from penstock.config import Settings
from penstock.memory import gpu
from penstock.memory.crew import Crew, Task
from penstock.memory.deliver import COPY, READ, delivery
from penstock.memory.extents import Batch, batches, frame_bytes
from penstock.memory.ledger import Ledger
from penstock.memory.pages import extents_of, verify_parts
from penstock.memory.pinned import Pinned
from penstock.memory.pool import Pool
from penstock.memory.share import part_of, whole_of
from penstock.observe.events import current

PIECE = 1 << 20
"""Bytes of one read: enough for a disk, few enough for a cache."""
_TURNS = 2
"""Buffers of a thread: one is filled while the other is copied; where pages are touched one is enough."""


@dataclass(frozen=True)
class Parcel:
    """A batch of pages, the frames they go to, and how: pieces, and for plain pages their reads and copies."""

    pages: np.ndarray
    frames: np.ndarray
    pieces: list[Batch]
    reads: np.ndarray
    copies: np.ndarray
    ends: np.ndarray
    """Where the reads and the copies of each piece end."""

    @property
    def nbytes(self) -> int:
        """Bytes to be read."""
        return int(self.reads["needed"].sum())


Take = Callable[[int, int, Parcel, int], None]
"""`take(thread, number, parcel, copied)`: batch `number` is on its way, in the stream of this thread."""


class Fetch:
    """Pages of one pool, read by a thread for each of some streams."""

    def __init__(
        self, pool: Pool, host: Ledger, settings: Settings, streams: Sequence[gpu.Stream], *, touched: bool = False
    ) -> None:
        """Fewer threads than streams where the host's memory is too small for all of them. `touched`: pages are
        checked on the host, as those are that are unpacked there."""
        self._pool, self.bytes_read = pool, 0
        self._touched = touched or not pool.plain
        self._whole, self._verify = whole_of(pool.direction), settings.verify_checksums
        self._gpu = gpu.current()
        # Threads that ask for it at the same time would each compile one.
        self._deliver = None if self._touched else delivery()
        with ExitStack() as held:
            self._parts = extents_of(self._whole, pool.names, settings, held)
            page = frame_bytes(self._parts)
            most = 1 if self._touched else _TURNS
            self.threads = max(1, min(len(streams), host.free // (most * page + pool.unpacking_bytes)))
            self._unpacked = pool.buffers(self.threads, host, held)
            turns = min(most, max(1, host.free // page))
            self._room = max(page, min(PIECE, host.free // (turns * self.threads) // page * page))
            made = Pinned(host, [(turns * self._room, np.uint8)] * self.threads, "pages from disk")
            held.callback(made.close)
            self._memory = made.arrays
            self._streams = list(streams[: self.threads])
            # One for each buffer, recorded again and again.
            self._events = [[gpu.Event(stream) for _ in range(turns)] for stream in self._streams]
            held.callback(self._settle)
            self._crew = Crew(self.threads, "penstock-fetch")
            held.callback(self._crew.close)
            self._held = held.pop_all()

    @staticmethod
    def wanted(pool: Pool, threads: int) -> int:
        """Bytes of the host that so many threads take where there is no lack of them."""
        turns = _TURNS if pool.plain else 1
        return threads * (turns * max(PIECE, pool.layout.nbytes) + pool.unpacking_bytes)

    def parcel(self, pages: np.ndarray, frames: np.ndarray) -> Parcel:
        """How to bring a batch of pages to frames."""
        first, _, step = part_of(self._pool.direction)
        pieces = list(batches(self._parts, first + np.asarray(pages, np.int64) * step, self._room))
        reads = [
            (file.descriptor(stripe), offset, start, needed, asked)
            for piece in pieces
            for file, stripe, offset, start, needed, asked in piece.reads
        ]
        ends = np.zeros((len(pieces), 2), np.int64)
        ends[:, 0] = np.cumsum([len(piece.reads) for piece in pieces])
        copies = np.zeros(0, COPY)
        if not self._touched:
            copies, ends[:, 1] = self._pool.routes(pages, frames, pieces)
        return Parcel(pages, frames, pieces, np.array(reads, READ), copies, ends)

    def run(
        self, count: int, parcel: Callable[[int], Parcel], take: Take, *, meanwhile: Callable[[], None] | None = None
    ) -> None:
        """Bring so many batches to the device, batch k by thread k % `threads`, and do something else meanwhile. The
        first error stops it and is raised, as an interrupt is."""
        stop, events = threading.Event(), current()
        ended = [threading.Event() for _ in range(self.threads)]
        read, errors = [0] * self.threads, []

        def work(thread: int) -> None:
            try:
                with gpu.using(self._gpu):
                    for number in range(thread, count, self.threads):
                        if stop.is_set():
                            break
                        each, began = parcel(number), perf_counter()
                        copied = self._bring(thread, each)
                        read[thread] += each.nbytes
                        if events is not None:
                            events.record(f"reader {thread}", "read", began, perf_counter(), bytes=each.nbytes)
                        if not stop.is_set():
                            take(thread, number, each, copied)
            except BaseException as error:
                stop.set()
                errors.append(error)
            finally:
                ended[thread].set()

        started: queue.SimpleQueue[Task] = queue.SimpleQueue()
        try:
            self._crew.start([partial(work, thread) for thread in range(self.threads)], started)
            if meanwhile is not None:
                meanwhile()
            for each in ended:
                each.wait()
        finally:
            stop.set()
            if not started.empty():
                _wait_out(ended)
            self.bytes_read += sum(read)
        if errors:
            try:
                raise errors[0]
            finally:
                errors.clear()  # else the error holds itself, and with it the frames of the device

    def _bring(self, thread: int, parcel: Parcel) -> int:
        """Read and begin to copy; bytes copied."""
        stream, memory, events = self._streams[thread], self._memory[thread], self._events[thread]
        if self._deliver is None:
            return self._bring_touched(thread, parcel)
        handles = np.array([event.handle for event in events], np.uint64)
        begin, filled = 0, -1
        while begin < len(parcel.pieces):
            begin, error = self._deliver(
                parcel.reads, parcel.copies, parcel.ends, begin, filled, np.uint64(memory.ctypes.data),
                np.uint64(self._room), handles, np.uint64(stream.handle),
            )  # fmt: skip
            if error:
                raise RuntimeError(f"the GPU refused a copy: CUDA error {error}")
            if begin < len(parcel.pieces):
                # Whatever went wrong goes wrong again here, where it is dealt with.
                start = begin % len(events) * self._room
                parcel.pieces[begin].fill(memory[start : start + self._room])
                filled = begin
        return int(parcel.copies["nbytes"].sum())

    def _bring_touched(self, thread: int, parcel: Parcel) -> int:
        """By way of the host: pages are checked there, and those of other encodings become plain."""
        memory, at, copied = self._memory[thread], 0, 0
        for piece in parcel.pieces:
            piece.fill(memory)
            if self._verify:
                for page, spans in zip(piece.items, piece.spans, strict=True):
                    verify_parts(self._whole, self._pool.names, page, [memory[a:b] for a, b in spans])
            some = slice(at, at + len(piece.items))
            copied += self._pool.copy_read(
                self._streams[thread], parcel.pages[some], parcel.frames[some], piece, memory, self._unpacked[thread]
            )
            at = some.stop
        return copied

    def _settle(self) -> None:
        for stream in self._streams:
            stream.synchronize()

    def close(self) -> None:
        """End the threads, wait for copies, give the memory back."""
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def _wait_out(ended: Sequence[threading.Event]) -> None:
    """However often the user asks again to stop: who is still reading writes to frames that others are given next."""
    late: KeyboardInterrupt | None = None
    while True:
        try:
            for each in ended:
                each.wait()
            break
        except KeyboardInterrupt as error:
            late = error
    if late is not None:
        raise late


__all__ = ["PIECE", "Fetch", "Parcel", "Take"]
