"""Keys with their values on their way into grouped chunks: a key is cut over several only where it fills more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.mapreduce import columns
from penstock.mapreduce.chunk import Groups
from penstock.mapreduce.columns import Bytes, Column
from penstock.mapreduce.room import Kept
from penstock.mapreduce.samples import compared

if TYPE_CHECKING:
    from penstock.mapreduce.session import MapReduce


class GroupWriter:
    """Takes keys in any order with their values; the first key of a call may go on with the last of the one before.

    The last key is held back until another comes, as it may not be complete; of what it has, whole chunks are given to
    the room before that.
    """

    def __init__(self, mr: MapReduce) -> None:
        self._mr = mr
        self._key: Column | None = None
        self._held: list[Column] = []
        self._held_bytes = 0
        self._begun = False
        """Whether a part of the key that is held is in a chunk already."""
        self.kept: list[Kept] = []

    def add(self, keys: Column, offsets: np.ndarray, values: Column, *, continues: bool | None = None) -> None:
        """Groups. `continues`: the first key is the last one of the call before; None: see whether it is."""
        if not len(keys):
            return
        first = 0
        if self._key is not None:
            if continues is None:
                continues = not compared(columns.slice(keys, 0, 1), self._key).any()
            if continues:
                self._hold(columns.slice(values, int(offsets[0]), int(offsets[1])))
                first = 1
        last = len(keys) - 1
        if first > last:
            return
        begin, end = int(offsets[first]), int(offsets[last])
        middle = columns.slice(values, begin, end)
        self._emit(columns.slice(keys, first, last), offsets[first : last + 1] - begin, middle)
        self._key = _own(columns.slice(keys, last, last + 1))
        self._begun = False
        self._hold(columns.slice(values, end, int(offsets[-1])))

    def done(self) -> list[Kept]:
        """All chunks."""
        if self._key is not None:
            self._emit(columns.slice(self._key, 0, 0), np.zeros(1, np.int64), columns.slice(self._held[0], 0, 0))
        self._key = None
        kept, self.kept = self.kept, []
        return kept

    def abandon(self) -> None:
        """Give up what was made."""
        self._key, self._held = None, []
        for kept in self.kept:
            kept.release()
        self.kept = []

    def _hold(self, values: Column) -> None:
        large = columns.nbytes(values) > self._mr.chunk_bytes
        self._held.append(values if large else _own(values))
        self._held_bytes += columns.nbytes(values)
        if self._held_bytes > self._mr.chunk_bytes:
            self._spread()

    def _spread(self) -> None:
        """Full chunks of the key that is held; what is left is less than one."""
        assert self._key is not None
        whole = columns.concat(self._held)
        ends = sizes(whole)
        begin = 0
        while int(ends[-1] - ends[begin]) > self._mr.chunk_bytes and len(whole) - begin > 1:
            end = _fill(ends, begin, self._mr.chunk_bytes)
            if end >= len(whole):
                break
            self._put(self._key, np.array([0, end - begin]), columns.slice(whole, begin, end), self._begun)
            self._begun = True
            begin = end
        rest = columns.slice(whole, begin, len(whole))
        self._held = [_own(rest)]
        self._held_bytes = columns.nbytes(rest)

    def _emit(self, keys: Column, offsets: np.ndarray, values: Column) -> None:
        """The key that is held, and these, in chunks."""
        continues = False
        if self._key is not None:
            self._spread()
            if columns.nbytes(values) > self._mr.chunk_bytes:
                # Not worth copying all of these for.
                self._put(self._key, np.array([0, len(self._held[0])]), self._held[0], self._begun)
                self._key, self._held, self._held_bytes, self._begun = None, [], 0, False
        if self._key is not None:
            keys = columns.concat([self._key, keys])
            offsets = np.concatenate([[0], offsets + len(self._held[0])])
            values = columns.concat([self._held[0], values])
            continues, self._begun = self._begun, False
            self._key, self._held, self._held_bytes = None, [], 0
        value_ends, key_ends = sizes(values), sizes(keys)
        ends = value_ends[offsets] + key_ends + 8 * np.arange(len(keys) + 1)
        at = 0
        while at < len(keys):
            end = _fill(ends, at, self._mr.chunk_bytes)
            begin, stop = int(offsets[at]), int(offsets[end])
            if end == at + 1 and stop - begin > 1 and value_ends[stop] - value_ends[begin] > self._mr.chunk_bytes:
                self._key = columns.slice(keys, at, end)
                self._held = [columns.slice(values, begin, stop)]
                self._begun = continues
                self._spread()
                self._put(self._key, np.array([0, len(self._held[0])]), self._held[0], self._begun)
                self._key, self._held, self._held_bytes, self._begun = None, [], 0, False
            else:
                some = columns.slice(values, begin, stop)
                self._put(columns.slice(keys, at, end), offsets[at : end + 1] - begin, some, continues)
            continues = False
            at = end

    def _put(self, keys: Column, offsets: np.ndarray, values: Column, continues: bool) -> None:
        self.kept.append(self._mr.room.put(Groups(keys, offsets.astype(np.int64, copy=False), values, continues)))


def sizes(column: Column) -> np.ndarray:
    """Bytes of the rows before each row, and of all."""
    ends = np.arange(len(column) + 1, dtype=np.int64) * columns.width(columns.kind_of(column))
    return ends + column.offsets if isinstance(column, Bytes) else ends


def _fill(ends: np.ndarray, begin: int, nbytes: int) -> int:
    """The end of the rows from `begin` on that take so many bytes, one at least."""
    return max(begin + 1, int(np.searchsorted(ends, ends[begin] + nbytes, "right")) - 1)


def _own(column: Column) -> Column:
    """A copy, which keeps no more in memory than it shows."""
    if isinstance(column, Bytes):
        return Bytes(column.offsets.copy(), column.data.copy(), column.text)
    return column.copy()


__all__ = ["GroupWriter", "sizes"]
