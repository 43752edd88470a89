"""Sample sort out of core: records are split by splitters into buckets on disk, each bucket is sorted in memory.

Keys are uint64; a payload of fixed-width columns travels with them. Equal keys keep their input order. What fits in
memory is never written. A bucket that turns out too big is split again by a sample of its own; a bucket of one
single key is streamed, however big.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from types import TracebackType
from typing import Self

import numpy as np

from penstock.memory.buffers import PAGE, allocate
from penstock.memory.spill import Spill, SpillFile
from penstock.sorting.partition import choose_splitters, gather, partition
from penstock.sorting.radix import sort_keys, sort_pairs

Run = tuple[np.ndarray, dict[str, np.ndarray]]
"""Sorted keys and their payload; valid until the next run is asked for."""

MAX_BUCKETS = 1024
LAST = (1 << 64) - 1
SAMPLE = 1 << 16


@dataclass
class _Bucket:
    """Records on disk: segments of keys followed by payload columns."""

    file: SpillFile
    segments: list[tuple[int, int]] = field(default_factory=list)
    count: int = 0
    low: int = 0
    high: int = LAST

    @property
    def constant(self) -> bool:
        return self.low == self.high


@dataclass(frozen=True)
class _Half:
    """One of the two buffers: `parts` are the contiguous arrays behind keys and payload, what a segment is made of."""

    keys: np.ndarray
    ranks: np.ndarray
    columns: list[np.ndarray]
    parts: list[np.ndarray]


class ExternalSorter:
    """Add records in any order, then read them sorted, inside `memory` bytes.

    With `grouping` the buckets are cut by a hash: equal keys still come together, each run is sorted, but runs are
    not in order. That is enough to merge or to group, and no input can make the buckets uneven but by repeating keys.
    `interleaved` keeps each key next to its payload, a single column of 8 bytes, as files of records do: `block` is
    then where to read records into, and the columns of runs are views with gaps.
    """

    def __init__(
        self,
        spill: Spill,
        *,
        memory: int,
        threads: int,
        payload: Mapping[str, np.dtype] | None = None,
        expected: int | None = None,
        splitters: np.ndarray | None = None,
        grouping: bool = False,
        interleaved: bool = False,
        name: str = "sort",
    ) -> None:
        self._spill, self._threads, self._name = spill, threads, name
        self._types = {key: np.dtype(kind) for key, kind in (payload or {}).items()}
        self._carried = self._is_carried(self._types)
        if interleaved and not self._carried:
            raise ValueError("only a single column of 8 bytes can be interleaved with the keys")
        self._interleaved = interleaved
        self.capacity = self.capacity_for(memory, self._types)
        if expected is not None and splitters is None:
            # Twice and more: `expected` may be an estimate, and a sorter too small for its input is a slow one.
            self.capacity = min(self.capacity, max(1 << 16, 2 * expected))
        record = self.record_bytes(self._types)
        self._buffers = allocate(2 * self.capacity * record)
        self._a = self._views(0)
        self._b = self._views(self.capacity * record)
        self._filled = 0
        self._expected, self._splitters, self._grouping = expected, splitters, grouping
        self._buckets: list[_Bucket] = []
        self._files: set[SpillFile] = set()
        self.count = 0
        self._serial = 0
        self._mover = ThreadPoolExecutor(1, "penstock-spill")
        """Writes and reads for us, one thing at a time."""
        self._moving: Future[None] | None = None

    @staticmethod
    def _is_carried(payload: Mapping[str, np.dtype]) -> bool:
        """Whether the payload moves with its keys while they are sorted, instead of a rank by which it is fetched."""
        return len(payload) == 1 and all(np.dtype(kind).itemsize == 8 for kind in payload.values())

    @classmethod
    def record_bytes(cls, payload: Mapping[str, np.dtype]) -> int:
        """Memory for one record in one of the two buffers: the key, its rank while sorting, the payload."""
        ranked = bool(payload) and not cls._is_carried(payload)
        return 8 + (4 if ranked else 0) + sum(np.dtype(kind).itemsize for kind in payload.values())

    @classmethod
    def capacity_for(cls, memory: int, payload: Mapping[str, np.dtype]) -> int:
        """Records that can be sorted at once. Two bytes each hold bucket numbers while they are partitioned."""
        return max(1024, min(memory // (2 * cls.record_bytes(payload) + 2), (1 << 32) - 1))

    def _views(self, at: int) -> _Half:
        """One buffer cut into its arrays, widest first so that each is aligned."""
        # Records are read from files and written to them by whole blocks, where memory is cut into blocks, too.
        step = PAGE // 16 if self._interleaved else 8
        self.capacity = capacity = self.capacity // step * step

        def take(dtype: np.dtype, columns: int = 1) -> np.ndarray:
            nonlocal at
            size = capacity * columns * dtype.itemsize
            view = self._buffers[at : at + size].view(dtype)
            at += size
            return view

        nothing = np.empty(0, np.uint32)
        if self._interleaved:
            block = take(np.dtype(np.uint64), 2).reshape(capacity, 2)
            (kind,) = self._types.values()
            return _Half(block[:, 0], nothing, [block[:, 1].view(kind)], [block])
        keys = take(np.dtype(np.uint64))
        ranks = take(np.dtype(np.uint32)) if self._types and not self._carried else nothing
        found = {name: take(kind) for name, kind in sorted(self._types.items(), key=lambda item: -item[1].itemsize)}
        columns = [found[name] for name in self._types]
        return _Half(keys, ranks, columns, [keys, *columns])

    # ---- in

    def room(self) -> tuple[np.ndarray, list[np.ndarray]]:
        """Free space to write records into directly; call `advance` after. Never empty."""
        if self._filled == self.capacity:
            self._flush()
        return self._a.keys[self._filled :], [column[self._filled :] for column in self._a.columns]

    def block(self) -> np.ndarray:
        """Like `room`, as an array of (key, payload) rows; only where they are interleaved."""
        self.room()
        return self._a.parts[0][self._filled :]

    def rows(self, keys: np.ndarray) -> np.ndarray:
        """The (key, payload) rows of a run, from its keys; only where they are interleaved."""
        half = self._a if keys.ctypes.data == self._a.keys.ctypes.data else self._b
        return half.parts[0][: len(keys)]

    def advance(self, count: int) -> None:
        """`count` records were written into `room`."""
        self._filled += count
        self.count += count

    def add(self, keys: np.ndarray, payload: Mapping[str, np.ndarray] | None = None) -> None:
        """Append records."""
        at = 0
        while at < len(keys):
            room, columns = self.room()
            take = min(len(room), len(keys) - at)
            room[:take] = keys[at : at + take]
            for column, name in zip(columns, self._types, strict=True):
                assert payload is not None
                column[:take] = payload[name][at : at + take]
            self.advance(take)
            at += take

    def _flush(self) -> None:
        """Split what is in memory over the buckets on disk."""
        if self._grouping:
            bits = (self._bucket_count(self._expected) - 1).bit_length()
            if not self._buckets:
                everything = np.zeros(0, np.uint64)
                self._buckets = [self._new_buckets(everything, 0, LAST)[0] for _ in range(1 << bits)]
            self._distribute(self._filled, bits, self._buckets)
        else:
            if self._splitters is None:
                keys = self._a.keys[: self._filled]
                sample = keys[:: max(1, len(keys) // SAMPLE)]
                self._splitters = choose_splitters(sample, self._bucket_count(self._expected))
            if not self._buckets:
                self._buckets = self._new_buckets(self._splitters, 0, LAST)
            self._distribute(self._filled, self._splitters, self._buckets)
        self._filled = 0

    def _bucket_count(self, expected: int | None) -> int:
        if expected is None:
            return 64
        # Buckets of about 60 % of memory leave room for an uneven sample.
        return int(min(MAX_BUCKETS, max(2, -(-expected * 10 // (self.capacity * 6)))))

    def _new_buckets(self, splitters: np.ndarray, low: int, high: int) -> list[_Bucket]:
        bounds = [low, *(int(s) for s in splitters), high + 1]
        buckets = []
        for begin, end in pairwise(bounds):
            self._serial += 1
            file = self._spill.create(f"{self._name}.{self._serial}")
            self._files.add(file)
            buckets.append(_Bucket(file, low=begin, high=end - 1))
        return buckets

    def _distribute(self, count: int, splitters: np.ndarray | int, buckets: list[_Bucket]) -> None:
        full, out = self._a, self._b
        payload = [column[:count] for column in full.columns]
        self._wait()
        bounds = partition(full.keys[:count], payload, splitters, out.keys, out.columns, full.ranks, self._threads)

        def write() -> None:
            for bucket, (begin, end) in zip(buckets, pairwise(bounds.tolist()), strict=True):
                if begin < end:
                    offset = bucket.file.append(*(part[begin:end] for part in out.parts))
                    bucket.segments.append((offset, end - begin))
                    bucket.count += end - begin

        # Buffer B goes to disk while buffer A fills again.
        self._moving = self._mover.submit(write)

    def _wait(self) -> None:
        """What was being written is in the buckets, what was being read is in buffer A."""
        if self._moving is not None:
            moving, self._moving = self._moving, None
            moving.result()

    # ---- out

    def sorted(self) -> Iterator[Run]:
        """The records in order of their keys, some at a time. Ends the sorter."""
        if not self._buckets:
            yield self._sort(self._filled)
        else:
            if self._filled:
                self._flush()
            self._wait()
            stack = self._buckets[::-1]
            while stack:
                bucket = stack.pop()
                if bucket.constant:
                    for count in self._load(bucket):
                        yield self._run(count)
                elif bucket.count > self.capacity:
                    stack.extend(self._split(bucket)[::-1])
                elif bucket.count:
                    if self._moving is None:
                        self._read_ahead(bucket)
                    self._wait()
                    run = self._sort(bucket.count)
                    if stack and 0 < stack[-1].count <= self.capacity and not stack[-1].constant:
                        self._read_ahead(stack[-1])  # while the caller is busy with this run
                    yield run
                bucket.file.delete()
                self._files.discard(bucket.file)
        self.close()

    def _read_ahead(self, bucket: _Bucket) -> None:
        """Begin to read a bucket into buffer A."""

        def read() -> None:
            for _ in self._load(bucket):
                pass

        self._moving = self._mover.submit(read)

    def close(self) -> None:
        """Give memory and disk back, at the end or before it; a second call does nothing."""
        self._mover.shutdown()
        while self._files:
            self._files.pop().delete()
        empty = np.empty(0, np.uint8)
        self._buffers = empty
        self._a = self._b = _Half(empty, empty, [], [])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _load(self, bucket: _Bucket) -> Iterator[int]:
        """Read a bucket into buffer A, all of it or as much as fits; yields how many records are there."""
        parts = self._a.parts
        filled = 0
        for offset, count in bucket.segments:
            at = 0
            while at < count:
                if filled == self.capacity:
                    yield filled
                    filled = 0
                take = min(count - at, self.capacity - filled)
                where = offset
                for part in parts:
                    width = part.strides[0]
                    bucket.file.read_into(where + at * width, part[filled : filled + take])
                    where += count * width
                filled += take
                at += take
        if filled:
            yield filled

    def _split(self, bucket: _Bucket) -> list[_Bucket]:
        """A bucket that does not fit, split by a sample of its own."""
        sample = self._sample(bucket)
        splitters = choose_splitters(sample, self._bucket_count(bucket.count))
        splitters = splitters[(splitters > bucket.low) & (splitters <= bucket.high)]
        if not len(splitters):
            splitters = np.array([(bucket.low + bucket.high) // 2 + 1], np.uint64)
        parts = self._new_buckets(splitters, bucket.low, bucket.high)
        for count in self._load(bucket):
            self._distribute(count, splitters, parts)
        self._wait()
        return parts

    def _sample(self, bucket: _Bucket) -> np.ndarray:
        """Keys from all over a bucket, a short stretch of each segment."""
        stretch = max(64, SAMPLE // len(bucket.segments))
        found = []
        for offset, count in bucket.segments[:: max(1, len(bucket.segments) * 64 // SAMPLE)]:
            for k in range(8):
                piece = np.empty((max(1, min(count, stretch) // 8), 2 if self._interleaved else 1), np.uint64)
                bucket.file.read_into(offset + piece.strides[0] * ((count - len(piece)) * k // 7), piece)
                found.append(piece[:, 0])
        return np.concatenate(found)

    def _run(self, count: int) -> Run:
        half = self._a
        return half.keys[:count], {name: c[:count] for name, c in zip(self._types, half.columns, strict=True)}

    def _sort(self, count: int) -> Run:
        """Sort what is in buffer A; the result is in buffer B."""
        full, out = self._a, self._b
        keys, scratch = full.keys[:count], out.keys[:count]
        if not self._types or self._carried:
            if self._carried:
                found, *_ = sort_pairs(keys, full.columns[0][:count], scratch, out.columns[0][:count], self._threads)
            else:
                found, _ = sort_keys(keys, scratch, self._threads)
            if found is keys:
                self._a, self._b = out, full
        else:
            ranks = full.ranks[:count]
            ranks.fill(1)
            ranks[:1] = 0
            np.cumsum(ranks, out=ranks)
            found, ranks, *_ = sort_pairs(keys, ranks, scratch, out.ranks[:count], self._threads)
            for column, target in zip(full.columns, out.columns, strict=True):
                gather(column[:count], ranks, target[:count])
            if found is keys:
                scratch[:] = keys
        half = self._b
        return half.keys[:count], {name: c[:count] for name, c in zip(self._types, half.columns, strict=True)}
