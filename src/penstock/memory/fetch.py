"""Disk to GPU: threads read batches of pages straight into pinned memory, and hand each over to be copied on.

A page at a time, the host's part of it (a checksum, a copy, an event, all through one interpreter) took longer than the
disk: 1.8 of 4 GB/s. In batches it is a tenth of that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from time import perf_counter
from types import TracebackType
from typing import Self

import numpy as np

from penstock.config import Settings
from penstock.memory import gpu
from penstock.memory.extents import Batch, batches, frame_bytes
from penstock.memory.ledger import Ledger
from penstock.memory.pages import extents_of, verify_parts
from penstock.memory.pinned import Pinned
from penstock.observe.events import current
from penstock.store.reader import Direction

Take = Callable[[int, int, Batch, np.ndarray], gpu.Event]
"""`take(thread, number, batch, memory)`: begin to copy batch `number`; the memory is used again after the event."""


class Fetch:
    """Pages of one direction, with some of its columns. Each thread has a buffer: while what one read is checked and
    copied, others read."""

    def __init__(
        self,
        direction: Direction,
        columns: Sequence[str],
        host: Ledger,
        settings: Settings,
        *,
        threads: int,
        batch: int,
    ) -> None:
        """Of `batch` pages at a time, at most. Fewer threads where the host's memory is too small for all of them."""
        self.direction, self.columns, self.bytes_read = direction, tuple(columns), 0
        self._verify = settings.verify_checksums
        with ExitStack() as held:
            self._parts = extents_of(direction, columns, settings, held)
            page = frame_bytes(self._parts)
            self.threads = max(1, min(threads, host.free // (batch * page)))
            self.batch = max(1, min(batch, host.free // (self.threads * page)))
            made = Pinned(host, [(self.batch * page, np.uint8)] * self.threads, "pages from disk")
            held.callback(made.close)
            self._memory = made.arrays
            self._pending: list[gpu.Event | None] = [None] * self.threads
            held.callback(self._settle)
            self._crew = held.enter_context(ThreadPoolExecutor(self.threads, "penstock-fetch"))
            self._held = held.pop_all()

    def plan(self, pages: np.ndarray) -> Iterator[Batch]:
        """How to read these pages, `batch` at a time."""
        for a in range(0, len(pages), self.batch):
            yield from batches(self._parts, np.asarray(pages[a : a + self.batch], np.int64), 1 << 62)

    def run(self, plan: Iterable[Batch], take: Take, *, meanwhile: Callable[[], None]) -> None:
        """Read and hand over these batches, and do something else meanwhile. The first error stops it and is raised, as
        an interrupt is."""
        numbered, lock = enumerate(plan), threading.Lock()
        stop, events = threading.Event(), current()

        def following() -> tuple[int, Batch] | None:
            with lock:
                return None if stop.is_set() else next(numbered, None)

        def work(thread: int) -> int:
            done, memory = 0, self._memory[thread]
            try:
                while (found := following()) is not None:
                    if (before := self._pending[thread]) is not None:
                        before.synchronize()
                    number, batch = found
                    began = perf_counter()
                    nbytes = batch.fill(memory)
                    done += nbytes
                    if events is not None:
                        events.record(f"reader {thread}", "read", began, perf_counter(), bytes=nbytes)
                    if self._verify:
                        for page, spans in zip(batch.items, batch.spans, strict=True):
                            verify_parts(self.direction, self.columns, page, [memory[a:b] for a, b in spans])
                    self._pending[thread] = take(thread, number, batch, memory)
            except BaseException:
                stop.set()
                raise
            return done

        running = [self._crew.submit(work, thread) for thread in range(self.threads)]
        try:
            meanwhile()
            wait(running)
        finally:
            stop.set()
            wait(running)
        self.bytes_read += sum(each.result() for each in running)

    def _settle(self) -> None:
        for event in self._pending:
            if event is not None:
                event.synchronize()

    def close(self) -> None:
        """End the threads, wait for copies, give the memory back."""
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


__all__ = ["Fetch", "Take"]
