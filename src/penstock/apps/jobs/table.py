"""A table of words and how often they came: it keeps those that come first, which of a natural text are the frequent
ones, and lets the rest pass when it is full."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from penstock.mapreduce.columns import Bytes
from penstock.mapreduce.combiner import Combiner
from penstock.mapreduce.session import MapReduce

_LOAD = 0.65
"""Words by slots at most."""
_FIRST_SLOTS = 1 << 10
_WIDTH = 4
ENTRY = 8 + 8 * _WIDTH * _LOAD
"""Bytes for each slot."""
_BATCH = 64
"""Words looked up side by side."""
NOWHERE = np.empty((0, 0), np.uint8), np.empty(0, np.uint64), np.uint64(63)

Passed = tuple[np.ndarray, np.ndarray, np.uint64]
"""Rows for text, how full each is, and by how many bits a hash is shifted to name one."""


class WordTable:
    """Used by one thread at a time."""

    def __init__(self, mr: MapReduce, nbytes: int) -> None:
        self.most = max(_FIRST_SLOTS, int(nbytes / ENTRY))
        self._all = mr.room.empty(self.most, np.uint64, "a table of words")
        self._words = mr.room.empty(max(_FIRST_SLOTS * _WIDTH, nbytes // 8 - self.most), np.uint64, "a table of words")
        self._batch = np.empty((6, _BATCH), np.uint64)
        self._counts, self._tail = self._words.view(np.int64), self._words.view(np.uint8)
        self._state = np.zeros(2, np.uint64)
        self._resize(_FIRST_SLOTS)

    def __len__(self) -> int:
        return int(self._state[0])

    def clear(self) -> None:
        self._state[:] = 0
        self._resize(_FIRST_SLOTS)

    def _resize(self, slots: int) -> None:
        from penstock.mapreduce.kernels.table import refill

        self._slots = self._all[:slots]
        self._slots[:] = 0
        self._limit = np.uint64(int(slots * _LOAD))
        refill(self._words, np.uint64(_WIDTH), self._state[0], self._slots)

    def _grow(self) -> bool:
        """More slots, if that is what was missing."""
        if self._state[0] < self._limit or len(self._slots) == self.most:
            return False
        self._resize(min(4 * len(self._slots), self.most))
        return True

    @property
    def _self(self) -> tuple[Any, ...]:
        return self._slots, self._words, self._counts, self._tail, self._state, self._limit

    def count(self, text: np.ndarray, passed: Passed, full: Callable[[np.ndarray, int], tuple[Passed, int]]) -> None:
        """Count the words of a text. A word that finds no room, in the table or in the rows that text passes to, is
        given to `full(word, row)`, which makes some: it returns the rows, and how many bytes it has taken itself, all
        of the word's or none."""
        from penstock.apps.jobs.words import count_words

        at = 0
        while True:
            end, stopped, row, length = count_words(text, np.uint64(at), *self._self, *passed, self._batch)
            if not stopped:
                return
            at = int(end)
            if not self._grow():
                passed, taken = full(text[at : at + int(length)], int(row))
                at += taken

    def take(self, other: WordTable, order: np.ndarray, full: Callable[[int], int]) -> None:
        """Add those entries of another table whose numbers are given. One that finds no room is given to `full`, which
        makes some, or takes it and says 1."""
        from penstock.apps.jobs.words import take_entries

        at = 0
        while (at := take_entries(order, at, len(order), other._words, other._tail, *self._self)) < len(order):
            if not self._grow():
                at += full(int(order[at]))

    def parted(self, mr: MapReduce, bits: int) -> tuple[np.ndarray, np.ndarray]:
        """(where each part begins, entries): the numbers of the entries by so many upper bits of their hash."""
        from penstock.apps.jobs.words import part_entries

        bounds = np.zeros((1 << bits) + 1, np.int64)
        order = mr.room.empty(len(self), np.uint32, "the parts of a table of words")
        part_entries(self._words, self._state[0], np.uint64(64 - bits), bounds, order)
        return bounds, order

    def words(self, rows: int, first: int = 0, last: int | None = None) -> Iterator[tuple[Bytes, np.ndarray]]:
        """(words, counts) of all entries, or of some, so many at a time."""
        from penstock.mapreduce.kernels.table import entry_bytes, entry_lengths

        count = len(self) if last is None else last
        for begin in range(first, count, rows):
            end = min(begin + rows, count)
            offsets = np.empty(end - begin + 1, np.int64)
            entry_lengths(self._words, begin, end, offsets)
            data = np.empty(int(offsets[-1]), np.uint8)
            entry_bytes(self._words, self._tail, begin, end, offsets, data)
            yield Bytes(offsets, data, True), self._counts[begin * _WIDTH + _WIDTH - 1 : end * _WIDTH : _WIDTH].copy()


def summed(pairs: Any) -> Any:
    """The sum of the values of each key: pairs are cut by the hash of their keys into parts small enough for the table
    of a combiner, whatever they hold."""
    with pairs.aggregate("hash") as moved:
        return _summed(moved)


def _summed(pairs: Any) -> Any:
    mr = pairs.mr
    room = mr.work_bytes // 2
    parts = max(1, -(-(len(pairs) * 48 + pairs.nbytes) // room))
    if parts == 1:
        return _combined(pairs)
    found = None
    for part in pairs.partition(parts, "hash"):
        with part:
            done = _combined(part)
        found = done if found is None else found.add(done)
    return found


def _combined(pairs: Any) -> Any:
    """By a table; what it had to give up before the end, for long words, is sorted."""
    combiner = Combiner(pairs.mr, "sum", pairs.key, pairs.value, expected=len(pairs))
    try:
        for each in pairs.chunks():
            combiner.add_chunk(each.keys, each.values)
        found = combiner.done()
    finally:
        combiner.close()
    if not combiner.flushes:
        return found
    with found, found.collate() as groups:
        return groups.reduce("sum")


__all__ = ["NOWHERE", "Passed", "WordTable", "summed"]
