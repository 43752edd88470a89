"""Sorting lists of chunks: in core where they fit into the working memory, else by samples.

The steps are those of sample-based out-of-core sorting: c candidates are drawn and sorted, d - 1 of them become
splitters, batches of chunks are sorted and cut at the splitters, the cuts of all batches for one bucket are listed
together (handles of chunks: no payload is copied), and each bucket is sorted. A key that fills a bucket has one of its
own, which needs no sort; a bucket that is still too big is sampled again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.mapreduce import columns
from penstock.mapreduce.chunk import Chunk
from penstock.mapreduce.columns import Bytes, Column, Kind
from penstock.mapreduce.permutation import Compare, order_of, repeats, words
from penstock.mapreduce.room import Kept

if TYPE_CHECKING:
    from penstock.mapreduce.session import MapReduce

CANDIDATES = 4096
"""Above a thousand, buckets come out even."""
MOST_BUCKETS = 256
_PIECE = 8 << 10
_FULL = 0.6
"""How full buckets should be: the rest is for those that come out larger."""


def gathered(mr: MapReduce, kept: Iterable[Kept], key: Kind, value: Kind, rows: int, nbytes: int) -> Chunk:
    """All chunks in one, copied; `nbytes` is at least what they hold."""
    made = [_Column(kind, rows, nbytes) for kind in (key, value)]
    for chunk in mr.room.stream(kept):
        for target, column in zip(made, chunk.columns, strict=True):
            target.add(column)
    return Chunk(*(target.done() for target in made))


class _Column:
    """A column of a known number of rows, filled from its start. Memory for bytes that never come is not touched."""

    def __init__(self, kind: Kind, rows: int, nbytes: int) -> None:
        self._varying, self._text = isinstance(kind, str), kind == "string"
        self._rows = np.empty(rows + 1, np.int64) if isinstance(kind, str) else np.empty(rows, kind)
        self._data = np.empty(nbytes if self._varying else 0, np.uint8)
        self._at = self._end = 0
        if self._varying:
            self._rows[0] = 0

    def add(self, column: Column) -> None:
        if isinstance(column, Bytes):
            np.add(column.offsets[1:], self._end, out=self._rows[self._at + 1 : self._at + 1 + len(column)])
            self._data[self._end : self._end + len(column.data)] = column.data
            self._end += len(column.data)
        elif column.dtype.itemsize:
            self._rows[self._at : self._at + len(column)] = column
        self._at += len(column)

    def done(self) -> Column:
        return Bytes(self._rows, self._data[: self._end], self._text) if self._varying else self._rows


def cut_rows(chunk: Chunk, positions: np.ndarray, nbytes: int) -> Iterator[np.ndarray]:
    """Positions, in their order, cut so that the pairs there take so many bytes; never less than one pair."""
    width = sum(columns.width(columns.kind_of(column)) for column in chunk.columns)
    varying = [column for column in chunk.columns if isinstance(column, Bytes)]
    if not varying:
        step = max(1, nbytes // max(1, width))
        for begin in range(0, len(positions), step):
            yield positions[begin : begin + step]
        return
    ends = np.full(len(positions), width, np.int64)
    for column in varying:
        ends += column.lengths.take(positions)
    np.cumsum(ends, out=ends)
    begin = 0
    while begin < len(positions):
        before = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + nbytes, "right")))
        yield positions[begin:end]
        begin = end


class Collected:
    """Sorted chunks, one after the other: small ones are joined, large ones stay as they are."""

    def __init__(self, mr: MapReduce) -> None:
        self._mr = mr
        self._pending: list[Chunk] = []
        self._bytes = 0
        self.kept: list[Kept] = []

    def add(self, chunk: Chunk) -> None:
        if len(chunk):
            if self._bytes + chunk.nbytes > self._mr.chunk_bytes:
                self.flush()
            self._pending.append(chunk)
            self._bytes += chunk.nbytes

    def add_kept(self, kept: Kept) -> None:
        """A chunk that stays where it is, for one more holder."""
        if 4 * kept.nbytes >= self._mr.chunk_bytes:
            self.flush()
            self.kept.append(kept.share())
        else:
            self.add(kept.get())

    def flush(self) -> None:
        if self._pending:
            keys, values = zip(*(chunk.columns for chunk in self._pending), strict=True)
            self._pending, self._bytes = [], 0
            self.kept.append(self._mr.room.put(Chunk(columns.concat(keys), columns.concat(values))))

    def abandon(self) -> None:
        self._pending = []
        for kept in self.kept:
            kept.release()
        self.kept = []


class Sorter:
    """Sorts chunks by their keys, or by their values where `by` is 1."""

    def __init__(
        self,
        mr: MapReduce,
        key: Kind,
        value: Kind,
        *,
        by: int = 0,
        descending: bool = False,
        compare: Compare | None = None,
    ) -> None:
        self._mr, self._kinds, self._by = mr, (key, value), by
        order = functools.partial(order_of, threads=mr.threads, descending=descending, compare=compare)
        name = ("sort_keys", "sort_values")[by]
        self._sort_pairs = mr.placing.sorter(name)
        self._order_few, self._order = order, functools.partial(order, sort=self._sort_pairs)
        if compare is not None:
            mr.placing.refuse(name, "a comparator runs on the CPU")
        elif isinstance((key, value)[by], str):
            mr.placing.refuse(name, f"{name[5:]} of {(key, value)[by]} have no fixed width")
        self._descending, self._compare = descending, compare
        # The joined chunk that is on its way out, twice, is not for sorting.
        self._memory = mr.work_bytes - 2 * mr.chunk_bytes
        self.bucket_sorts = 0

    def sort(self, kept: list[Kept]) -> list[Kept]:
        """The same pairs in order; `kept` stays its owner's."""
        out = Collected(self._mr)
        try:
            self._sort(kept, out, None)
            out.flush()
        except BaseException:
            out.abandon()
            raise
        return out.kept

    def _needed(self, kept: list[Kept]) -> int:
        """Bytes to sort these in core: they in one piece, and what ordering takes for each row."""
        kind = self._kinds[self._by]
        if self._carries():
            each = 16
        elif self._compare is not None:
            each = 192
        elif isinstance(kind, str):
            each = 96
        else:
            each = 24 + 16 * len(words(np.empty(0, kind)))
        sizes = sum(one.nbytes for one in kept)
        # Python's objects of rows of any length take as much again.
        return sizes * (2 if self._compare is not None else 1) + each * sum(one.rows for one in kept)

    def _sort(self, kept: list[Kept], out: Collected, before: int | None) -> None:
        """`before`: how many pairs the bucket was cut from that these are; None of all there are."""
        forced = self._mr.room.force_out_of_core and before is None and len(kept) > 1
        if self._needed(kept) <= self._memory and not forced:
            self._sort_in_core(kept, out)
        elif len(kept) == 1 and kept[0].rows <= 1:
            out.add_kept(kept[0])
        else:
            self._sort_by_samples(kept, out, before)

    def _load(self, kept: list[Kept]) -> Chunk:
        rows, nbytes = sum(one.rows for one in kept), sum(one.nbytes for one in kept)
        return gathered(self._mr, kept, *self._kinds, rows, nbytes)

    def _sort_in_core(self, kept: list[Kept], out: Collected) -> None:
        self.bucket_sorts += 1
        with self._mr.room.reserve(min(self._needed(kept), self._memory), "sorting"):
            chunk = self._load(kept)
            if self._carries():
                chunk = self._carried(chunk)
                for piece in chunk.pieces(self._mr.chunk_bytes):
                    out.add(piece)
                    out.flush()
            else:
                positions = self._order(chunk.columns[self._by])
                for rows in cut_rows(chunk, positions, self._mr.chunk_bytes):
                    out.add(chunk.take(rows))

    def _carries(self) -> bool:
        """Whether a radix sort moves the pairs themselves: integers of 8 bytes with anything of 8 bytes."""
        kind, other = self._kinds[self._by], self._kinds[1 - self._by]
        if self._compare is not None or isinstance(kind, str) or isinstance(other, str):
            return False
        return kind.kind in "iu" and kind.itemsize == 8 == other.itemsize

    def _carried(self, chunk: Chunk) -> Chunk:
        keys, carried = chunk.columns[self._by], chunk.columns[1 - self._by]
        assert isinstance(keys, np.ndarray)
        assert isinstance(carried, np.ndarray)
        flip = np.uint64(1 << 63 if keys.dtype.kind == "i" else 0)
        if self._descending:
            flip = ~flip
        word, other = keys.view(np.uint64), carried.view(np.uint64)
        word ^= flip
        word, other, *_ = self._sort_pairs(word, other, np.empty_like(word), np.empty_like(other))
        word ^= flip
        found = [word.view(keys.dtype), other.view(carried.dtype)]
        return Chunk(*(found[::-1] if self._by else found))

    def _sort_by_samples(self, kept: list[Kept], out: Collected, before: int | None) -> None:
        needed, rows = self._needed(kept), sum(one.rows for one in kept)
        # More buckets would be cut from each batch in pieces that cost more than another level of buckets.
        widest = self._memory // 2 * sum(one.nbytes for one in kept) // needed // _PIECE
        count = int(min(MOST_BUCKETS, max(2, min(widest, -(-needed // int(self._memory * _FULL))))))
        if self._mr.room.force_out_of_core:
            count = min(MOST_BUCKETS, max(count, len(kept)))
        candidates = self._candidates(kept, count)
        # Where a cut has changed little, splitters get buckets of their own: then all others do become smaller.
        stuck = before is not None and 10 * rows > 9 * before
        splitters, alone = self._splitters(candidates, count, all_alone=stuck)
        buckets: list[list[Kept]] = [[] for _ in range(2 * len(splitters) + 1)]
        try:
            for batch, needed in self._batches(kept):
                self._distribute(batch, needed, splitters, alone, buckets)
            if before is not None:
                for one in kept:
                    one.release()
                kept.clear()
            for k, bucket in enumerate(buckets):
                if k % 2:
                    for one in bucket:
                        out.add_kept(one)
                elif bucket:
                    self._sort(bucket, out, rows)
                while bucket:
                    bucket.pop().release()
        finally:
            for bucket in buckets:
                for one in bucket:
                    one.release()

    def _candidates(self, kept: list[Kept], count: int) -> Column:
        """Keys drawn at random from all chunks, sorted; fewer where they are long."""
        rows, nbytes = sum(one.rows for one in kept), sum(one.nbytes for one in kept)
        most = min(max(CANDIDATES, 16 * count), max(4 * count, self._memory // 8 * rows // max(1, nbytes)))
        random = np.random.default_rng(rows)
        drawn: list[Column] = []
        for chunk in self._mr.room.stream(kept):
            share = -(-most * len(chunk) // rows) if rows else 0
            column = chunk.columns[self._by]
            if share < len(chunk):
                column = columns.take(column, np.sort(random.integers(0, len(chunk), share)))
            drawn.append(column)
        found = columns.concat(drawn)
        return columns.take(found, self._order_few(found))

    def _splitters(self, candidates: Column, count: int, all_alone: bool) -> tuple[Column, np.ndarray]:
        """d - 1 keys that cut the candidates evenly, and which of them are to have buckets of their own."""
        at = np.unique(np.arange(1, count) * len(candidates) // count)
        new = ~repeats(candidates, np.arange(len(candidates), dtype=np.uint64))
        run = np.cumsum(new) - 1
        begins = np.flatnonzero(new)
        copies = np.diff(np.append(begins, len(candidates)))
        runs = np.unique(run[at])
        alone = copies[runs] * count >= len(candidates)
        return columns.take(candidates, begins[runs]), alone | all_alone

    def _batches(self, kept: list[Kept]) -> Iterator[tuple[list[Kept], int]]:
        """Chunks that are sorted together, and the bytes they need; one that needs too much is alone."""
        batch: list[Kept] = []
        needed = 0
        for one in kept:
            more = self._needed([one])
            if batch and needed + more > self._memory // 2:
                yield batch, needed
                batch, needed = [], 0
            batch.append(one)
            needed += more
        if batch:
            yield batch, needed

    def _distribute(
        self, batch: list[Kept], needed: int, splitters: Column, alone: np.ndarray, buckets: list[list[Kept]]
    ) -> None:
        """Sort a batch and cut it at the splitters; even buckets lie between them, odd ones hold one key."""
        with self._mr.room.reserve(min(needed, self._memory), "sorting"):
            if needed <= self._memory:
                self._cut(self._load(batch), splitters, alone, buckets)
            else:
                for chunk in self._mr.room.stream(batch, ahead=False):
                    for piece in chunk.pieces(max(1, chunk.nbytes * self._memory // (2 * needed))):
                        self._cut(piece, splitters, alone, buckets)

    def _cut(self, chunk: Chunk, splitters: Column, alone: np.ndarray, buckets: list[list[Kept]]) -> None:
        column = chunk.columns[self._by]
        positions = self._order(column)
        ends = np.empty(2 * len(splitters) + 1, np.int64)
        ends[0:-1:2] = self._places(column, positions, splitters, right=False)
        ends[1::2] = np.where(alone, self._places(column, positions, splitters, right=True), ends[0:-1:2])
        ends[-1] = len(positions)
        begin = 0
        for bucket, end in zip(buckets, ends.tolist(), strict=True):
            for rows in cut_rows(chunk, positions[begin:end], self._mr.chunk_bytes):
                bucket.append(self._mr.room.put(chunk.take(rows)))
            begin = end

    def _places(self, column: Column, positions: np.ndarray, splitters: Column, *, right: bool) -> np.ndarray:
        """How many rows come before each splitter, or with `right` before it or with it: all searches at once."""
        low, high = np.zeros(len(splitters), np.int64), np.full(len(splitters), len(positions), np.int64)
        while (low < high).any():
            middle = np.minimum((low + high) // 2, len(positions) - 1)
            sign = compared(columns.take(column, positions[middle]), splitters, self._compare)
            sign = -sign if self._descending else sign
            before = (sign <= 0 if right else sign < 0) & (low < high)
            high = np.where(before | (low >= high), high, middle)
            low = np.where(before, middle + 1, low)
        return low


def compared(one: Column, other: Column, compare: Callable[[Any, Any], int] | None = None) -> np.ndarray:
    """Row by row -1, 0 or 1: whether the first column's row comes before, with or after the other's."""
    sign = np.zeros(len(one), np.int8)
    if compare is not None or isinstance(one, Bytes):
        rows = zip(columns.to_list(_raw(one, compare)), columns.to_list(_raw(other, compare)), strict=True)
        for k, (a, b) in enumerate(rows):
            sign[k] = np.sign(compare(a, b)) if compare is not None else (a > b) - (a < b)
        return sign
    assert isinstance(other, np.ndarray)
    for a, b in zip(words(one), words(other), strict=True):
        sign = np.where(sign != 0, sign, (a > b).astype(np.int8) - (a < b))
    return sign


def _raw(column: Column, compare: Compare | None) -> Column:
    """Text as its bytes, which order as it does; a comparator sees what the user put in."""
    return Bytes(column.offsets, column.data) if compare is None and isinstance(column, Bytes) else column


__all__ = ["Collected", "Sorter", "compared", "cut_rows", "gathered"]
