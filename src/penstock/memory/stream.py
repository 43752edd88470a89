"""Disk to workers: reader threads fill a ring of huge-page frames by direct reads, workers take them in any order.

Measured on two cores: two readers ahead of one worker per core consume 2.0 to 2.5 GB/s, workers that read for
themselves 1.2 to 1.4.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from types import TracebackType
from typing import Any

import numpy as np

from penstock.memory.buffers import PAGE, Frames, align
from penstock.memory.cache import Hit, PageCache
from penstock.memory.crew import Crew, Task
from penstock.memory.extents import Batch, Extents, StripedFile, batches, fill, frame_bytes
from penstock.memory.ledger import Ledger, Reservation
from penstock.observe.events import Events, current

Parts = tuple[np.ndarray, ...]
Work = Callable[[int, int, Parts], None]
Verify = Callable[[int, Parts], None]

_BATCH = 1 << 20
_REQUEST = 64 << 10
"""Below this a request costs its latency, not its bytes."""
_ACROSS = 4 << 20
"""Bytes one request may fetch into several frames. Frames stay smaller: an exact cache, even shares for the workers."""
_SAMPLE = 4096


@dataclass
class StreamStats:
    """What a stream did so far; seconds are summed over threads."""

    items: int = 0
    bytes_read: int = 0
    hits: int = 0
    read_seconds: float = 0.0
    wait_seconds: float = 0.0


class _Run:
    """The state of one pass, shared by its threads."""

    def __init__(self, plan: Iterator[Batch], cached: list[Hit], frames: Frames, ring: Sequence[int]) -> None:
        self.plan, self.cached, self.frames = plan, deque(cached), frames
        self.free: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self.full: queue.SimpleQueue[tuple[Batch, int] | None] = queue.SimpleQueue()
        for frame in ring:
            self.free.put(frame)
        self.lock = threading.Lock()
        self.ahead: Batch | None = None
        self.across = 1
        self.stop = False
        self.error: BaseException | None = None
        self.readers = self.reading = self.workers = self.active = 0
        self.finished = threading.Event()
        # Looked up once, by the caller's thread: those of the stream outlive a run and know nothing of who records it.
        self.events: Events | None = current()

    def next_batches(self, most: int) -> list[Batch]:
        """The next batch and those that continue it on disk."""
        with self.lock:
            found: list[Batch] = []
            while len(found) < most and not self.stop:
                batch = self.ahead or next(self.plan, None)
                self.ahead = None
                if batch is None:
                    break
                if found and not batch.continues(found[-1]):
                    self.ahead = batch
                    break
                found.append(batch)
            return found

    def fail(self, error: BaseException) -> None:
        """Keep the first error and wake everyone who waits."""
        with self.lock:
            if self.error is None:
                self.error = error
            self.stop = True
        for _ in range(self.readers):
            self.free.put(None)
        for _ in range(self.workers):
            self.full.put(None)

    def reader_done(self) -> None:
        with self.lock:
            self.reading -= 1
            last = self.reading == 0
        if last:
            for _ in range(self.workers):
                self.full.put(None)

    def leave(self) -> None:
        with self.lock:
            self.active -= 1
            last = self.active == 0
        if last:
            self.finished.set()

    def read(self, number: int, stats: StreamStats) -> None:
        held: list[int] = []
        lane = f"reader {number}"
        while not self.stop:
            # Wait for one frame only, take others if they are free: readers waiting for several could block each other.
            while len(held) < self.across:
                try:
                    frame = self.free.get_nowait() if held else self.free.get()
                except queue.Empty:
                    break
                if frame is None:
                    return
                held.append(frame)
            found = self.next_batches(len(held))
            if not found:
                for frame in held:  # the other reader may still need them
                    self.free.put(frame)
                return
            start = perf_counter()
            nbytes = fill(found, [self.frames[frame] for frame in held[: len(found)]])
            end = perf_counter()
            stats.bytes_read += nbytes
            stats.read_seconds += end - start
            if self.events is not None:
                self.events.record(lane, "read", start, end, bytes=nbytes)
            for batch, frame in zip(found, held, strict=False):
                self.full.put((batch, frame))
            del held[: len(found)]

    def consume(
        self, number: int, work: Work, verify: Verify | None, cache: PageCache | None, stats: StreamStats
    ) -> None:
        full, cached, frames, events = self.full, self.cached, self.frames, self.events
        lane, work_on_hit = f"worker {number}", work
        if events is not None:
            work, work_on_hit = _timed(work, events, lane, "read"), _timed(work, events, lane, "hit")
        reading = True
        while not self.stop:
            ready: tuple[Batch, int] | None = None
            if reading:
                try:
                    ready = full.get_nowait()
                    reading = ready is not None
                except queue.Empty:
                    # Nothing fresh: what is cached keeps us busy until the readers are ahead again.
                    if not cached:
                        start = perf_counter()
                        ready = full.get()
                        end = perf_counter()
                        stats.wait_seconds += end - start
                        if events is not None:
                            events.record(lane, "wait", start, end)
                        reading = ready is not None
            if ready is not None:
                batch, frame = ready
                memory = frames[frame]
                for item, spans in zip(batch.items, batch.spans, strict=True):
                    if self.stop:
                        return
                    parts = tuple(memory[begin:end] for begin, end in spans)
                    if verify is not None:
                        verify(item, parts)
                    work(number, item, parts)
                    stats.items += 1
                self.free.put(frame if cache is None else cache.admit(frame, batch, verify is not None))
                continue
            try:
                hit = cached.popleft()
            except IndexError:
                if reading:
                    continue
                return
            entry = hit.entry
            memory = frames[entry.frame]
            for item in hit.items:
                if self.stop:
                    return
                parts = tuple(memory[begin:end] for begin, end in entry.spans[item])
                if verify is not None and not entry.verified:
                    verify(item, parts)
                work_on_hit(number, item, parts)
                stats.items += 1
                stats.hits += 1
            entry.verified = entry.verified or (verify is not None and len(hit.items) == len(entry.spans))
            if cache is not None:
                cache.done(hit)


def _timed(work: Work, events: Events, lane: str, source: str) -> Work:
    """The same work, recorded item by item; work that nobody records is called as it is."""

    def timed(number: int, item: int, parts: Parts) -> None:
        begin = perf_counter()
        work(number, item, parts)
        events.record(lane, "page", begin, perf_counter(), item=item, source=source)

    return timed


class PageStream:
    """Hands every item of a run to a worker exactly once, from the cache or from disk.

    `ring` is the most frames it reads ahead into; it takes at most a quarter of what the ledger has free, but never
    fewer than `workers + 2`. Small items share a frame, and one request fills several frames with what lies together.
    """

    def __init__(
        self,
        parts: Sequence[Extents],
        ledger: Ledger,
        *,
        workers: int,
        readers: int = 2,
        ring: int = 32,
        cache: PageCache | None = None,
        verify: Verify | None = None,
    ) -> None:
        if len({len(part) for part in parts}) != 1:
            raise ValueError("all parts of a stream must describe the same items")
        self._parts, self._cache, self._verify = list(parts), cache, verify
        self.workers, self.readers = workers, readers
        largest = frame_bytes(parts)
        smallest = self._smallest_ring(workers)
        share = (ledger.free - (cache.unreserved if cache is not None else 0)) // 4
        # Small items share frames, unless the budget is too small for that. Not under LRU, where a frame would be
        # kept for the sake of one item in it.
        shared = 0 if cache is not None and cache.policy == "lru" else min(_BATCH, share // smallest // PAGE * PAGE)
        self.frame_bytes = max(largest, shared)
        self.ring = max(smallest, min(ring, share // self.frame_bytes))
        self.stats = StreamStats()
        self._busy = threading.Lock()
        self._reservation: Reservation | None = None
        if cache is None:
            self._reservation = ledger.reserve(self.ring * self.frame_bytes, "page stream")
            try:
                self._frames: Frames | None = Frames(self.ring, self.frame_bytes)
            except BaseException:
                self._reservation.release()
                raise
            self._ring = set(range(self.ring))
        else:
            self._frames, self._ring = cache.attach(
                parts, frame_bytes=self.frame_bytes, ring=self.ring, largest=largest, smallest=smallest
            )
            self.ring, self.frame_bytes = len(self._ring), self._frames.frame_bytes
        self._crew = Crew(readers + workers, "penstock-stream")

    @staticmethod
    def _smallest_ring(workers: int) -> int:
        return workers + 2

    @classmethod
    def smallest(cls, parts: Sequence[Extents], workers: int) -> int:
        """The fewest bytes a stream of these parts can do with."""
        return cls._smallest_ring(workers) * frame_bytes(parts)

    def run(self, items: Sequence[int] | np.ndarray, work: Work) -> None:
        """Call `work(worker, item, parts)` once per item, in any order, from the worker threads.

        The first error stops the run and is raised here once all threads are idle again; so does an interrupt.
        """
        if self._frames is None:
            raise ValueError("the stream is closed")
        if not self._busy.acquire(blocking=False):
            raise RuntimeError("the stream is already in a run")
        try:
            self._run(np.asarray(items, dtype=np.int64), work)
        finally:
            if self._cache is not None:
                self._cache.settle()
            self._busy.release()

    def _run(self, items: np.ndarray, work: Work) -> None:
        assert self._frames is not None
        if not len(items):
            return
        hits: list[Hit] = []
        if self._cache is not None:
            hits, items = self._cache.take(items)
        limit, across = self._shape(items)
        run = _Run(batches(self._parts, items, limit), hits, self._frames, sorted(self._ring))
        run.across = across
        run.readers = run.reading = self.readers
        run.workers = self.workers
        counts = [StreamStats() for _ in range(self.readers + self.workers)]
        tasks = [_reader(run, k, counts[k]) for k in range(self.readers)]
        tasks += [
            _worker(run, k, work, self._verify, self._cache, counts[self.readers + k]) for k in range(self.workers)
        ]
        run.active = len(tasks)
        started: queue.SimpleQueue[Task] = queue.SimpleQueue()
        while not run.finished.is_set():
            try:
                if started.empty():
                    self._crew.start(tasks, started)
                # With a time limit: a signal that the kernel hands to another thread does not wake this one.
                run.finished.wait(0.1)
            except BaseException as error:  # an interrupt: stop the threads, then go on waiting for them
                run.fail(error)
        for count in counts:
            for name, value in vars(count).items():
                setattr(self.stats, name, getattr(self.stats, name) + value)
        if run.error is not None:
            raise run.error

    def _shape(self, items: np.ndarray) -> tuple[int, int]:
        """Bytes in a batch and frames in a request: less in short runs, where some worker would wait for its share."""
        if not len(items):
            return self.frame_bytes, 1
        average = sum(int(part.nbytes[items[:_SAMPLE]].sum()) for part in self._parts) / min(len(items), _SAMPLE)
        total = int(average * len(items))
        limit = min(self.frame_bytes, max(_REQUEST, align(total // (4 * self.workers))))
        across = min(_ACROSS // self.frame_bytes, self.ring // 8, total // (16 * self.frame_bytes))
        return limit, max(1, across)

    def heartbeat(self) -> dict[str, Any]:
        """The ring and what went through it."""
        used = self.ring * self.frame_bytes if self._frames is not None else 0
        return {"used": used, "ring": self.ring, **vars(self.stats)}

    def close(self) -> None:
        """End the threads and give the ring back, to the cache if there is one."""
        if self._frames is None:
            return
        self._frames = None
        self._crew.close()
        if self._reservation is not None:
            self._reservation.release()
        if self._cache is not None:
            self._cache.detach()

    def __enter__(self) -> PageStream:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def _reader(run: _Run, number: int, stats: StreamStats) -> Task:
    def task() -> None:
        try:
            run.read(number, stats)
        except BaseException as error:
            run.fail(error)
        run.reader_done()
        run.leave()

    return task


def _worker(
    run: _Run, number: int, work: Work, verify: Verify | None, cache: PageCache | None, stats: StreamStats
) -> Task:
    def task() -> None:
        try:
            run.consume(number, work, verify, cache, stats)
        except BaseException as error:
            run.fail(error)
        run.leave()

    return task


__all__ = ["Extents", "PageStream", "StreamStats", "StripedFile"]
