"""Sort: pairs by their keys or by their values, and the values of each key. Equal ones stay in the order they are in.

What is sorted the other way round is turned round instead. The rest is for the sorter of chunks, in core or by samples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import UsageError
from penstock.mapreduce import columns
from penstock.mapreduce.chunk import Chunk, Groups
from penstock.mapreduce.columns import NOTHING, Column
from penstock.mapreduce.grouped import GroupWriter
from penstock.mapreduce.permutation import Compare, counting, order_of, repeats
from penstock.mapreduce.room import Kept
from penstock.mapreduce.samples import Collected, Sorter, compared

if TYPE_CHECKING:
    from penstock.mapreduce.keyvalue import KeyValue
    from penstock.mapreduce.multivalue import KeyMultiValue
    from penstock.mapreduce.session import MapReduce


def sort_keys(kv: KeyValue, descending: bool = False, compare: Any = None) -> KeyValue:
    """Pairs by their keys; `compare(a, b)` below, at or above 0 says which of two keys comes first."""
    return _sort(kv, 0, descending, compare)


def sort_values(kv: KeyValue, descending: bool = False, compare: Any = None) -> KeyValue:
    """Pairs by their values."""
    return _sort(kv, 1, descending, compare)


def _sort(kv: KeyValue, by: int, descending: bool, compare: Any) -> KeyValue:
    from penstock.mapreduce.keyvalue import KeyValue

    _check(compare)
    mr, name = kv.mr, ("keys", "values")[by]
    order = f"{name} descending" if descending else name
    if compare is None and kv.order == order:
        mr.skipped(f"sort_{name}")
        return kv.copy()
    if compare is None and kv.order == (name if descending else f"{name} descending"):
        mr.skipped(f"sort_{name}")
        kept = _turned(kv, by)
    elif compare is None and columns.is_nothing((kv.key, kv.value)[by]):
        mr.skipped(f"sort_{name}")
        return _marked(kv.copy(), order)
    else:
        kept = Sorter(mr, kv.key, kv.value, by=by, descending=descending, compare=compare).sort(kv.kept)
    made = KeyValue(mr, kept, kv.key, kv.value, partitioned=kv.partitioned)
    return _marked(made, None if compare is not None else order)


def _marked(kv: KeyValue, order: str | None) -> KeyValue:
    kv.order = order
    return kv


def _check(compare: Any) -> None:
    if compare is not None and not callable(compare):
        raise UsageError(f"compare is a function of two keys or values, not {compare!r}")


def _turned(kv: KeyValue, by: int) -> list[Kept]:
    """Sorted pairs the other way round: runs of equal keys trade places, inside them nothing does."""
    mr = kv.mr
    out = Collected(mr)
    waiting: list[Kept] = []
    """Chunks with the key that the next one on the way to the front may have, too."""
    try:
        for one in reversed(kv.kept):
            with one.read() as chunk:
                if not len(chunk):
                    continue
                column = chunk.columns[by]
                starts = np.flatnonzero(~repeats(column, counting(len(chunk))))
                ends = np.append(starts[1:], len(chunk))
                if waiting and not _goes_on(column, waiting[0], by):
                    _pour(waiting, out)
                if waiting:
                    # The last run here goes right before what waits.
                    waiting.insert(0, mr.room.put(_piece(chunk, int(starts[-1]), len(chunk))))
                    starts, ends = starts[:-1], ends[:-1]
                    if len(starts):
                        _pour(waiting, out)
                if len(starts):
                    counts, firsts = (ends - starts)[1:][::-1], starts[1:][::-1]
                    rows = np.repeat(firsts - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
                    if len(rows):
                        out.add(chunk.take(rows))
                    waiting.insert(0, mr.room.put(_piece(chunk, 0, int(ends[0]))))
        _pour(waiting, out)
        out.flush()
    except BaseException:
        out.abandon()
        raise
    finally:
        for one in waiting:
            one.release()
    return out.kept


def _piece(chunk: Chunk, begin: int, end: int) -> Chunk:
    return chunk.take(np.arange(begin, end))


def _goes_on(column: Column, following: Kept, by: int) -> bool:
    """Whether the last row of a column is the same as the first of a chunk that follows it."""
    with following.read() as chunk:
        last = columns.slice(column, len(column) - 1, len(column))
        return not compared(last, columns.slice(chunk.columns[by], 0, 1)).any()


def _pour(waiting: list[Kept], out: Collected) -> None:
    while waiting:
        one = waiting.pop(0)
        out.add_kept(one)
        one.release()


def sort_multivalues(kmv: KeyMultiValue, descending: bool = False, compare: Any = None) -> KeyMultiValue:
    """The values of each key; those of a key that fills several chunks are sorted across them."""
    from penstock.mapreduce.multivalue import KeyMultiValue

    _check(compare)
    mr = kmv.mr
    out = GroupWriter(mr)
    kept = kmv.kept
    try:
        at = 0
        while at < len(kept):
            end = at + 1
            while end < len(kept) and kept[end].continues:
                end += 1
            if end == at + 1:
                with kept[at].read() as groups:
                    _sort_groups(mr, groups, out, descending, compare)
            else:
                _sort_across(kmv, kept[at:end], out, descending, compare)
            at = end
        made = out.done()
    except BaseException:
        out.abandon()
        raise
    return KeyMultiValue(mr, made, kmv.key, kmv.value, partitioned=kmv.partitioned, order=kmv.order)


def _sort_groups(mr: MapReduce, groups: Groups, out: GroupWriter, descending: bool, compare: Compare | None) -> None:
    from penstock.sorting.radix import sort_pairs

    if not len(groups):
        return
    with mr.room.reserve(groups.nbytes + 64 * len(groups.values), "sorting values"):
        positions = order_of(groups.values, mr.threads, descending=descending, compare=compare)
        owner = np.repeat(np.arange(len(groups), dtype=np.uint64), np.diff(groups.offsets)).take(positions)
        _, positions, *_ = sort_pairs(owner, positions, np.empty_like(owner), np.empty_like(positions), mr.threads)
        out.add(groups.keys, groups.offsets, columns.take(groups.values, positions), continues=False)


def _sort_across(
    kmv: KeyMultiValue, kept: list[Kept], out: GroupWriter, descending: bool, compare: Compare | None
) -> None:
    """Chunks of which each begins with the last key of the one before: they are sorted as pairs without values."""
    mr = kmv.mr
    sorter = Sorter(mr, kmv.value, NOTHING, descending=descending, compare=compare)
    parts: list[Kept] = []
    key: Column | None = None

    def close() -> None:
        if key is None:
            return
        done = sorter.sort(parts)
        for number, chunk in enumerate(mr.room.stream(done)):
            out.add(key, np.array([0, len(chunk)], np.int64), chunk.keys, continues=number > 0)
        for one in (*done, *parts):
            one.release()
        parts.clear()

    try:
        for one in kept:
            with one.read() as groups:
                last = len(groups) - 1
                begin = 0
                if groups.continues:
                    parts.append(mr.room.put(_alone(groups, 0)))
                    begin = 1
                if begin <= last:
                    close()
                    _sort_groups(mr, groups.slice(begin, last), out, descending, compare)
                    key = columns.take(groups.keys, np.array([last]))
                    parts.append(mr.room.put(_alone(groups, last)))
        close()
    finally:
        for one in parts:
            one.release()


def _alone(groups: Groups, row: int) -> Chunk:
    """The values of one key as keys without values."""
    values = columns.slice(groups.values, int(groups.offsets[row]), int(groups.offsets[row + 1]))
    return Chunk(values, np.empty(len(values), NOTHING))


__all__ = ["sort_keys", "sort_multivalues", "sort_values"]
