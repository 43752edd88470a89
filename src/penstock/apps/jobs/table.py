"""A table of words and how often they came: it keeps those that come first, which of a natural text are the frequent
ones, and lets the rest pass when it is full."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from penstock.mapreduce.columns import Bytes
from penstock.mapreduce.session import MapReduce

_LOAD = 0.65
"""Words by slots at most."""
_FIRST_SLOTS = 1 << 10
_WIDTH = 4
ENTRY = 8 + 8 * _WIDTH * _LOAD
"""Bytes for each slot."""
_BATCH = 64
"""Words looked up side by side."""


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

    def _resize(self, slots: int) -> None:
        from penstock.mapreduce.kernels.table import refill

        self._slots = self._all[:slots]
        self._slots[:] = 0
        self._limit = np.uint64(int(slots * _LOAD))
        refill(self._words, np.uint64(_WIDTH), self._state[0], self._slots)

    def add(self, text: np.ndarray) -> list[Bytes]:
        """Count the words of a text; those that there is no room for come back, each as often as it is there."""
        from penstock.apps.jobs.words import count_words

        at, full, passed = np.uint64(0), True, []
        while full:
            # A table that may still grow lets nothing pass.
            growing = len(self._slots) < self.most
            room = 0 if growing else len(text) // 4 + 1024
            offsets, data = np.zeros(room // 2 + 1, np.int64), np.empty(0 if growing else len(text), np.uint8)
            made = np.zeros(3, np.uint64)
            at, full = count_words(
                text, np.uint64(at), self._slots, self._words, self._counts, self._tail, self._state, self._limit,
                offsets, data, made, self._batch,
            )  # fmt: skip
            if made[0]:
                passed.append(Bytes(offsets[: int(made[0]) + 1].copy(), data[: int(made[1])].copy(), True))
            elif full and growing:
                self._resize(min(4 * len(self._slots), self.most))
        return passed

    def words(self, rows: int) -> Iterator[tuple[Bytes, np.ndarray]]:
        """(words, counts), so many at a time."""
        from penstock.mapreduce.kernels.table import entry_bytes, entry_lengths

        count = int(self._state[0])
        for begin in range(0, count, rows):
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
        return pairs.compress("sum")
    found = None
    for part in pairs.partition(parts, "hash"):
        with part:
            done = part.compress("sum")
        found = done if found is None else found.add(done)
    return found


__all__ = ["WordTable", "summed"]
