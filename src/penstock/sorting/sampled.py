"""Sample sort on a GPU of pairs of the host, overlapped on streams.

The steps are those of sample-based out-of-core sorting. More than a thousand keys are drawn and sorted, and d - 1 of
them become splitters. Each of d chunks is copied to the device, sorted, cut at the splitters and copied back to its
place: copies in both directions and sorts of different chunks run at the same time. What lies between two splitters in
all chunks is a bucket, a list of pieces of the host's memory: nothing is moved for that. Each bucket is copied piece by
piece to the device, sorted, and copied to its place in the result. As pieces are sorted, a bucket that is too big is
cut again where it lies; one of a single key needs no sort. Equal keys keep their order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from penstock.memory import gpu
from penstock.memory.ledger import Ledger
from penstock.memory.timeline import Timeline
from penstock.sorting.gpu import Held, Slot, Workspace, capacity
from penstock.sorting.gpu_kernels import BLOCK, blocks, cut, launcher
from penstock.sorting.host import Host, SortFigures
from penstock.sorting.mover import Mover
from penstock.sorting.partition import choose_splitters

CANDIDATES = 1024
"""Keys drawn for each bucket; buckets are meant to fill nine tenths of a buffer, and hardly ever fill more than all."""
LAST = (1 << 64) - 1

Piece = tuple[int, int]
"""Where sorted pairs lie on the host: from, to."""


@dataclass
class _Job:
    """Pairs that are on the device at a time, where they go, and whether they are to be sorted."""

    pieces: list[Piece]
    at: int
    sort: bool = True
    count: int = field(init=False)

    def __post_init__(self) -> None:
        self.count = sum(end - begin for begin, end in self.pieces)


def _cut_bytes(cuts: int, streams: int) -> int:
    """For splitters, and for where they cut a chunk on each stream."""
    return (8 * cuts + 512) * (streams + 1)


class SampleSorter:
    def __init__(
        self,
        source: Host,
        target: Host,
        device: Ledger,
        widths: list[int],
        streams: int,
        mover: Mover,
        timeline: Timeline,
        figures: SortFigures,
    ) -> None:
        self._mover = mover
        self._source, self._target, self._timeline, self._figures = source, target, timeline, figures
        self._device, count = device, len(source.keys)
        self._each = 8 + sum(widths)
        # Splitters and bounds take their share; how many there are depends on what is left.
        small = min(device.free // 4, max(device.free // 16, 1 << 16), 1 << 20)
        self._capacity = min(count, capacity(device.free - small, widths, streams))
        self._chunks = -(-count // max(1, self._capacity))
        if not self._capacity or _cut_bytes(2 * self._buckets, streams) > small:
            device.reserve(device.free + self._each * 1024, "sorting on the GPU")  # says what does not fit
        self._slots: list[Slot] = []
        self._workspace: Workspace | None = None
        self._held: Held | None = None
        try:
            self._workspace = Workspace(device, self._capacity)
            self._slots += (Slot(device, k, self._capacity, widths) for k in range(streams))
        except BaseException:
            self.close()
            raise

    @property
    def _buckets(self) -> int:
        return -(-10 * len(self._source.keys) // (9 * max(1, self._capacity)))

    def close(self) -> None:
        self._mover.stop()
        for slot in self._slots:
            slot.stream.synchronize()
            slot.close()
        for held in (self._workspace, self._held):
            if held is not None:
                held.close()

    def sort(self) -> None:
        splitters, bounds = self._sort_chunks()
        self._sort_buckets(splitters, bounds)
        self._timeline.settle()

    def _splitters(self) -> np.ndarray:
        keys = self._source.keys
        count = max(2000, CANDIDATES * self._buckets)
        random = np.random.default_rng(len(keys))
        drawn = keys if count >= len(keys) else keys[random.integers(0, len(keys), count)]
        return choose_splitters(drawn, self._buckets)

    # ---- chunks, in their places

    def _sort_chunks(self) -> tuple[np.ndarray, np.ndarray]:
        """Sort each chunk; the splitters, and where they cut the chunks, a row for each."""
        count, chunks, most = len(self._source.keys), self._chunks, 2 * self._buckets
        edges = [count * k // chunks for k in range(chunks + 1)]
        self._figures.chunks = chunks
        # As many bounds for each stream, and all come back at the end. Keys that fill buckets have two splitters each.
        self._held = Held(self._device, _cut_bytes(most, len(self._slots)), "splitters on the GPU")
        there, *of_slots = [self._held.take(most, kind) for kind in (np.uint64, *[np.int64] * len(self._slots))]
        args = [gpu.view(each) for each in (there, *of_slots)]
        pinned = gpu.pinned(8 * most * (chunks + 1))
        memory = np.empty(8 * most * (chunks + 1), np.uint8) if pinned is None else pinned
        splitters, *rows = memory.view(np.uint64).reshape(chunks + 1, most)
        jobs = [_Job([(begin, end)], begin) for begin, end in pairwise(edges)]
        cuts, ready = 0, None
        for (slot, job), row in zip(self._brought(jobs), rows, strict=True):
            if ready is None:
                # While the first chunks are on their way, of which nothing was written yet.
                drawn = self._splitters()
                cuts = len(drawn)
                splitters = splitters[:cuts]
                splitters[:] = drawn
                slot.stream.copy(there[:cuts], splitters)
                ready = slot.stream.record()
            self._order(slot, job.count)
            if cuts:
                slot.stream.wait(ready)
                launcher(cut)(
                    slot.stream, blocks(cuts), BLOCK, slot.key_arg, np.uint64(job.count), args[0],
                    np.uint64(cuts), args[1 + slot.number],
                )  # fmt: skip
                slot.stream.fetch(row[:cuts].view(np.int64), of_slots[slot.number][:cuts])
            self._fetch(slot, self._source, job)
        self._mover.settle()
        for slot in self._slots:
            slot.stream.synchronize()
        firsts = np.array(edges[:-1], np.int64)[:, None]
        ends = np.array(edges[1:], np.int64)[:, None]
        bounds = np.stack(rows)[:, :cuts].view(np.int64)
        return splitters.copy(), np.concatenate([firsts, bounds + firsts, ends], axis=1)

    # ---- buckets

    def _sort_buckets(self, splitters: np.ndarray, bounds: np.ndarray) -> None:
        limits = [0, *(int(s) for s in splitters), LAST + 1]

        def jobs() -> Iterator[_Job]:
            for bucket, (low, after) in enumerate(pairwise(limits)):
                pieces = [(int(a), int(b)) for a, b in bounds[:, bucket : bucket + 2] if a < b]
                yield from self._jobs(pieces, low, after - 1)

        at = number = 0
        for slot, job in self._brought(jobs()):
            if job.sort:
                self._order(slot, job.count)
            job.at = at
            self._fetch(slot, self._target, job)
            at += job.count
            number += 1
        self._figures.buckets = number
        self._mover.settle()
        for slot in self._slots:
            slot.stream.synchronize()

    def _jobs(self, pieces: list[Piece], low: int, high: int) -> Iterator[_Job]:
        """A bucket of keys from `low` to `high`, as much at a time as a buffer holds."""
        count = sum(end - begin for begin, end in pieces)
        if not count:
            return
        if low == high or len(pieces) == 1:
            # In order already: of one key, or of one chunk.
            self._figures.alone += count
            yield from (_Job(some, 0, sort=False) for some in self._filled(pieces))
        elif count <= self._capacity:
            yield _Job(pieces, 0)
        else:
            self._figures.recut += 1
            yield from self._cut_again(pieces, count, low, high)

    def _filled(self, pieces: list[Piece]) -> Iterator[list[Piece]]:
        some: list[Piece] = []
        left = self._capacity
        for piece_begin, end in pieces:
            begin = piece_begin
            while begin < end:
                take = min(left, end - begin)
                some.append((begin, begin + take))
                begin, left = begin + take, left - take
                if not left:
                    yield some
                    some, left = [], self._capacity
        if some:
            yield some

    def _cut_again(self, pieces: list[Piece], count: int, low: int, high: int) -> Iterator[_Job]:
        """Pieces are sorted: every so many keys of each show where to cut, and how much lies between two cuts."""
        keys = self._source.keys
        stride = max(1, self._capacity // (4 * len(pieces)))
        sample = np.concatenate([keys[begin:end:stride] for begin, end in pieces])
        splitters = choose_splitters(sample, -(-4 * count // self._capacity))
        splitters = splitters[(splitters > np.uint64(low)) & (splitters <= np.uint64(high))]
        if not len(splitters):
            splitters = np.array([(low + high) // 2 + 1], np.uint64)
        cuts = [
            [begin, *(begin + np.searchsorted(keys[begin:end], splitters, "left")).tolist(), end]
            for begin, end in pieces
        ]
        limits = [low, *(int(s) for s in splitters), high + 1]
        for bucket, (first, after) in enumerate(pairwise(limits)):
            part = [(row[bucket], row[bucket + 1]) for row in cuts if row[bucket] < row[bucket + 1]]
            yield from self._jobs(part, first, after - 1)

    # ---- what is done on a stream

    def _brought(self, jobs: Iterable[_Job]) -> Iterator[tuple[Slot, _Job]]:
        """Each job on its stream, its pairs on their way. Those of the next are, too: a sort may hold up whoever begins
        it until it is done, and copies go on meanwhile."""
        ahead: deque[tuple[Slot, _Job]] = deque()
        for number, job in enumerate(jobs):
            slot = self._slots[number % len(self._slots)]
            self._bring(slot, self._source, job)
            ahead.append((slot, job))
            if len(ahead) == max(1, len(self._slots) - 1):
                yield ahead.popleft()
        yield from ahead

    def _bring(self, slot: Slot, host: Host, job: _Job) -> None:
        self._mover.settle(slot.stream)
        with self._timeline.span(slot.stream, slot.number, "copy in", bytes=job.count * self._each):
            at = 0
            for begin, end in job.pieces:
                for (array, words), there in zip(host.parts, (slot.keys, *slot.sources), strict=True):
                    source = array[begin * words : end * words]
                    self._mover.send(slot.stream, there[at * words : at * words + len(source)], source)
                at += end - begin
        self._figures.copied += 2 * job.count * self._each

    def _order(self, slot: Slot, count: int) -> None:
        assert self._workspace is not None
        with self._timeline.span(slot.stream, slot.number, "sort", pairs=count):
            self._workspace.sort(slot.stream, slot.keys[:count])
            for source, target, words in slot.args:
                self._workspace.gather(slot.stream, source, target, count, words)
        self._workspace.done(slot.stream)

    def _fetch(self, slot: Slot, host: Host, job: _Job) -> None:
        found = slot.targets if job.sort else slot.sources
        copies = []
        for (array, words), there in zip(host.parts, (slot.keys, *found), strict=True):
            target = array[job.at * words : (job.at + job.count) * words]
            copies.append((target, there[: len(target)]))
        about = self._timeline.span(slot.stream, slot.number, "copy out", bytes=job.count * self._each)
        self._mover.receive(slot.stream, copies, about)


__all__ = ["SampleSorter"]
