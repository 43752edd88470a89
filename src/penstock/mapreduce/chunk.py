"""Chunks: some pairs, or some keys with all their values, small enough to be worked on in memory. Never changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from penstock.mapreduce import columns
from penstock.mapreduce.columns import Column


@dataclass(frozen=True, eq=False)
class Chunk:
    """Pairs: the value of `keys[i]` is `values[i]`."""

    keys: Column
    values: Column

    def __post_init__(self) -> None:
        if len(self.keys) != len(self.values):
            raise ValueError(f"{len(self.keys)} keys with {len(self.values)} values")

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def nbytes(self) -> int:
        """Of both columns."""
        return int(self.keys.nbytes + self.values.nbytes)

    def slice(self, begin: int, end: int) -> Chunk:
        """Pairs `begin` to `end`, on the same memory."""
        return Chunk(columns.slice(self.keys, begin, end), columns.slice(self.values, begin, end))

    def take(self, positions: np.ndarray) -> Chunk:
        """The pairs at these positions, copied."""
        return Chunk(columns.take(self.keys, positions), columns.take(self.values, positions))

    def pieces(self, nbytes: int) -> Iterator[Chunk]:
        """It in pieces of at most so many bytes, or of one pair that is larger, on the same memory."""
        if self.nbytes <= nbytes or len(self) <= 1:
            yield self
            return
        ends = np.arange(len(self) + 1, dtype=np.int64)
        ends *= columns.width(columns.kind_of(self.keys)) + columns.width(columns.kind_of(self.values))
        for column in (self.keys, self.values):
            if isinstance(column, columns.Bytes):
                ends += column.offsets
        begin = 0
        while begin < len(self):
            end = max(begin + 1, int(np.searchsorted(ends, ends[begin] + nbytes, "right")) - 1)
            yield self.slice(begin, end)
            begin = end

    @property
    def columns(self) -> tuple[Column, ...]:
        """What it consists of, in the order in which `maker` takes it."""
        return self.keys, self.values

    @property
    def maker(self) -> Callable[..., Chunk]:
        """Makes another one like this from columns."""
        return Chunk


@dataclass(frozen=True, eq=False)
class Groups:
    """Keys with their values: those of `keys[i]` are `values[offsets[i]:offsets[i + 1]]`.

    The values of one key lie in one chunk, or, where they are more than a chunk holds, in several that follow one
    another: the first key of one that `continues` is the last key of the one before.
    """

    keys: Column
    offsets: np.ndarray
    values: Column
    continues: bool = False

    def __post_init__(self) -> None:
        if len(self.offsets) != len(self.keys) + 1:
            raise ValueError(f"{len(self.keys)} keys with {len(self.offsets)} offsets")

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def nbytes(self) -> int:
        """Of all its arrays."""
        return int(self.keys.nbytes + self.offsets.nbytes + self.values.nbytes)

    def slice(self, begin: int, end: int) -> Groups:
        """Keys `begin` to `end` with their values, which are not copied."""
        offsets = self.offsets[begin : end + 1]
        values = columns.slice(self.values, int(offsets[0]), int(offsets[-1]))
        keys = columns.slice(self.keys, begin, end)
        return Groups(keys, offsets - offsets[0], values, self.continues and begin == 0)

    def pairs(self) -> Chunk:
        """One pair for each value, the key repeated."""
        rows = np.repeat(np.arange(len(self.keys)), np.diff(self.offsets))
        return Chunk(columns.take(self.keys, rows), self.values)

    @property
    def columns(self) -> tuple[Column, ...]:
        """What it consists of, in the order in which `maker` takes it."""
        return self.keys, self.offsets, self.values

    @property
    def maker(self) -> Callable[..., Groups]:
        """Makes another one like this from columns."""
        return partial(Groups, continues=self.continues)


__all__ = ["Chunk", "Groups"]
