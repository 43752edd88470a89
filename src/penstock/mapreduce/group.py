"""Group: every key once, with all its values in the order in which they came.

Pairs that are sorted by key are grouped as they pass. Others are grouped in core where they fit, by sorting words:
the codes of the keys where these are exact, else hashes, whose ties are then compared key by key. What does not fit is
cut by hash into buckets, again and again until they do; a bucket of one key needs no more than passing by. Keys come
out ascending where numbers were grouped in core or input was sorted, and in no particular order otherwise.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from penstock.errors import DeviceFull, DoesNotFit
from penstock.mapreduce import columns
from penstock.mapreduce.chunk import Chunk
from penstock.mapreduce.columns import Bytes, Column
from penstock.mapreduce.grouped import GroupWriter
from penstock.mapreduce.permutation import counting, order_of, repeats, words
from penstock.mapreduce.room import Kept
from penstock.mapreduce.samples import compared, gathered
from penstock.memory import heap
from penstock.sorting.radix import sort_pairs

if TYPE_CHECKING:
    from penstock.mapreduce.keyvalue import KeyValue
    from penstock.mapreduce.multivalue import KeyMultiValue

_FULL = 0.6
_MOST_BITS = 8
_EACH = 34
"""Bytes of working memory for each pair that is grouped in core: word and position, twice, and where groups begin."""
_PIECE = 8 << 10
"""Smaller pieces cost more than another level of buckets."""


def convert(kv: KeyValue) -> KeyMultiValue:
    """Unique keys, offsets, values."""
    from penstock.mapreduce.multivalue import KeyMultiValue

    grouper = _Grouper(kv)
    try:
        if kv.order in ("keys", "keys descending"):
            kv.mr.skipped("sort before convert")
            grouper.pass_by(kv.kept)
            order: str | None = kv.order
        else:
            order = grouper.group(kv.kept)
        return KeyMultiValue(kv.mr, grouper.out.done(), kv.key, kv.value, partitioned=kv.partitioned, order=order)
    except BaseException:
        grouper.out.abandon()
        raise


class _Grouper:
    def __init__(self, kv: KeyValue) -> None:
        self._mr, self._kinds = kv.mr, (kv.key, kv.value)
        self._exact = columns.is_exact(kv.key)
        self._sort = kv.mr.placing.sorter("convert", "group")
        if isinstance(kv.key, str):
            kv.mr.placing.refuse("convert", f"keys of {kv.key} have no fixed width")
        self._memory = kv.mr.work_bytes - 4 * kv.mr.chunk_bytes
        self.out = GroupWriter(kv.mr)

    def _needed(self, kept: list[Kept]) -> int:
        each = 17 if self._carries() else _EACH
        if not self._exact:
            each += 8 if isinstance(self._kinds[0], str) else 8 * len(words(np.empty(0, self._kinds[0])))
        # The pairs in one piece, then the values once more in the order of their keys.
        return 2 * sum(one.nbytes for one in kept) + each * sum(one.rows for one in kept)

    def group(self, kept: list[Kept]) -> str | None:
        """All pairs; what the keys are sorted by then."""
        forced = self._mr.room.force_out_of_core and len(kept) > 1
        if self._needed(kept) <= self._memory and not forced:
            self._group_in_core(kept)
            return "keys" if self._exact else None
        self._group_by_hash(kept, 0)
        return None

    # ---- sorted already

    def pass_by(self, kept: list[Kept]) -> None:
        """Neighbours with the same key are all there are of it."""
        for chunk in self._mr.room.stream(kept):
            if not len(chunk):
                continue
            starts = np.flatnonzero(~repeats(chunk.keys, counting(len(chunk))))
            offsets = np.append(starts, len(chunk)).astype(np.int64)
            self.out.add(columns.take(chunk.keys, starts), offsets, chunk.values)

    # ---- in core

    def _group_in_core(self, kept: list[Kept]) -> None:
        rows, nbytes = sum(one.rows for one in kept), sum(one.nbytes for one in kept)
        if not rows:
            return
        with self._mr.room.reserve(min(self._needed(kept), self._memory), "grouping"):
            chunk = gathered(self._mr, kept, *self._kinds, rows, nbytes)
            keys, offsets, values = self._carried(chunk) if self._carries() else self._ranked(chunk)
            del chunk
            self.out.add(keys, offsets, values, continues=False)

    def _carries(self) -> bool:
        """Whether values move with their keys, instead of a position by which they are fetched."""
        key, value = self._kinds
        numbers = not isinstance(key, str) and key.kind in "iu" and key.itemsize == 8
        return numbers and not isinstance(value, str) and value.itemsize == 8

    def _carried(self, chunk: Chunk) -> tuple[Column, np.ndarray, Column]:
        keys, values = chunk.columns
        assert isinstance(keys, np.ndarray)
        assert isinstance(values, np.ndarray)
        flip = np.uint64(1 << 63 if keys.dtype.kind == "i" else 0)
        word, carried = keys.view(np.uint64), values.view(np.uint64)
        word ^= flip
        if (there := self._on_gpu(word, carried)) is not None:
            unique, offsets, carried = there
            return (unique ^ flip).view(keys.dtype), offsets, carried.view(values.dtype)
        word, carried, *_ = self._sort(word, carried, np.empty_like(word), np.empty_like(carried))
        starts = _starts(word[1:] != word[:-1])
        unique = word.take(starts) ^ flip
        return unique.view(keys.dtype), np.append(starts, len(word)), carried.view(values.dtype)

    def _on_gpu(self, word: np.ndarray, carried: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Grouped there, if all of it fits there; if not, the sorter may sort it there, or says why not."""
        rows, nbytes = len(word), word.nbytes + carried.nbytes
        there = self._mr.placing.offer("convert", "group", rows=rows, bytes_in=nbytes, bytes_out=nbytes)
        if there is None:
            return None
        from penstock.mapreduce.gpu.group import group_pairs

        try:
            return group_pairs(there, word, carried)
        except (DoesNotFit, DeviceFull):
            return None

    def _ranked(self, chunk: Chunk) -> tuple[Column, np.ndarray, Column]:
        keys = chunk.keys
        word = columns.codes(keys) if self._exact else columns.hash64(keys)
        positions = counting(len(chunk))
        sort = functools.partial(sort_pairs, threads=self._mr.threads) if isinstance(keys, Bytes) else self._sort
        word, positions, *_ = sort(word, positions, np.empty_like(word), np.empty_like(positions))
        differ = word[1:] != word[:-1]
        if not self._exact:
            other = ~repeats(keys, positions)[1:]
            if (other & ~differ).any():
                # Two keys with one hash, 64 bits long: rare enough to sort everything in earnest.
                positions = order_of(keys, self._mr.threads)
                other = ~repeats(keys, positions)[1:]
            differ = other
        starts = _starts(differ)
        unique = columns.take(keys, positions[starts])
        return unique, np.append(starts, len(chunk)), columns.take(chunk.values, positions)

    # ---- by hash

    def _group_by_hash(self, kept: list[Kept], shift: int) -> None:
        """`shift` bits of the hash are the same in all keys. Pieces go to disk as soon as memory is short."""
        wanted = max(2, -(-self._needed(kept) // int(self._memory * _FULL)))
        if self._mr.room.force_out_of_core and not shift:
            wanted = max(wanted, min(16, len(kept)))
        widest = max(2, self._memory // 4 // _PIECE).bit_length() - 1
        bits = min(_MOST_BITS, (wanted - 1).bit_length(), widest, 64 - shift)
        buckets: list[list[Kept]] = [[] for _ in range(1 << bits)]
        try:
            self._distribute(kept, shift, bits, buckets)
            heap.trim()  # of many small pieces
            if shift:
                for one in kept:
                    one.release()
                kept.clear()
            for bucket in buckets:
                if bucket:
                    self._group_bucket(bucket, shift + bits)
                while bucket:
                    bucket.pop().release()
        finally:
            for bucket in buckets:
                for one in bucket:
                    one.release()

    def _group_bucket(self, bucket: list[Kept], shift: int) -> None:
        if self._needed(bucket) <= self._memory:
            self._group_in_core(bucket)
        elif self._is_one_key(bucket):
            self._pass_one(bucket)
        elif shift < 64:
            self._group_by_hash(bucket, shift)
        else:
            self._part_from_first(bucket)

    def _distribute(self, kept: list[Kept], shift: int, bits: int, buckets: list[list[Kept]]) -> None:
        room, most = self._mr.room, max(1, self._memory // 4)
        waiting: list[list[Chunk]] = [[] for _ in buckets]
        held = 0

        def flush() -> None:
            nonlocal held
            for bucket, pieces in zip(buckets, waiting, strict=True):
                if pieces:
                    keys, values = zip(*(piece.columns for piece in pieces), strict=True)
                    pieces.clear()
                    joined = Chunk(columns.concat(keys), columns.concat(values))
                    bucket.extend(room.put(part) for part in joined.pieces(self._mr.chunk_bytes))
            held = 0

        with room.reserve(self._memory, "grouping"):
            for whole in room.stream(kept):
                # A hash, a position and some more for each row, which may be much shorter itself.
                rows = max(1, most // 40)
                for chunk in whole.pieces(max(1, min(most, whole.nbytes * rows // max(1, len(whole))))):
                    hashed = columns.hash64(chunk.keys)
                    part = (hashed << np.uint64(shift)) >> np.uint64(64 - bits)
                    narrow = part.astype(np.uint8)
                    positions = np.argsort(narrow, kind="stable")
                    ends = np.cumsum(np.bincount(narrow, minlength=len(buckets)))
                    begin = 0
                    for number, end in enumerate(ends.tolist()):
                        if begin < end:
                            waiting[number].append(chunk.take(positions[begin:end]))
                        begin = end
                    held += chunk.nbytes
                    if held >= most:
                        flush()
            flush()

    def _is_one_key(self, bucket: list[Kept]) -> bool:
        """Looks at the ends of a chunk first: most buckets show there that they hold several keys."""
        first: Column | None = None
        for chunk in self._mr.room.stream(bucket, ahead=False):
            ends = columns.take(chunk.keys, np.array([0, len(chunk) - 1]))
            first = columns.slice(ends, 0, 1) if first is None else first
            if compared(ends, columns.take(first, np.array([0, 0]))).any():
                return False
            if not repeats(chunk.keys, counting(len(chunk)))[1:].all():
                return False
        return True

    def _pass_one(self, bucket: list[Kept]) -> None:
        continues = False
        for chunk in self._mr.room.stream(bucket):
            offsets = np.array([0, len(chunk)], np.int64)
            self.out.add(columns.slice(chunk.keys, 0, 1), offsets, chunk.values, continues=continues)
            continues = True

    def _part_from_first(self, bucket: list[Kept]) -> None:
        """Keys that are different and have the same hash, and too many values: the first key, then the rest."""
        mine: list[Kept] = []
        rest: list[Kept] = []
        try:
            first: Column | None = None
            for chunk in self._mr.room.stream(bucket, ahead=False):
                first = columns.take(chunk.keys, np.array([0])) if first is None else first
                same = _same_as(chunk.keys, first)
                for found, rows in ((mine, np.flatnonzero(same)), (rest, np.flatnonzero(~same))):
                    if len(rows):
                        found.append(self._mr.room.put(chunk.take(rows)))
            self._pass_one(mine)
            if rest:
                self._group_bucket(rest, 64)
        finally:
            for one in (*mine, *rest):
                one.release()


def _same_as(column: Column, first: Column) -> np.ndarray:
    """Which rows are the same key as that of a column of one row."""
    if isinstance(column, Bytes):
        sought = first[0]
        return np.fromiter((row == sought for row in column), np.bool_, len(column))
    assert isinstance(first, np.ndarray)
    same = np.ones(len(column), np.bool_)
    for one, other in zip(words(column), words(first), strict=True):
        same &= one == other[0]
    return same


def _starts(differ: np.ndarray) -> np.ndarray:
    """Where groups begin, from whether each row differs from the one before it, for all but the first."""
    return np.concatenate([[0], np.flatnonzero(differ) + 1]).astype(np.int64)


__all__ = ["convert"]
