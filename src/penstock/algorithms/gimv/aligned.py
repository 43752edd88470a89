"""Sequences of chunks whose keys ascend, read side by side: a join of two of them is a gather."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np


class Dense:
    """A vector: its keys are 0, 1, 2 and so on. `span` gives stretches of it that begin ever later."""

    def __init__(self, chunks: Iterable[Any], kind: np.dtype) -> None:
        self._chunks = iter(chunks)
        self.base, self.values = 0, np.empty(0, kind)

    def span(self, lo: int, hi: int) -> tuple[int, np.ndarray]:
        """(first key, values) of a stretch that holds the keys from `lo` to before `hi`."""
        while self.base + len(self.values) < hi:
            # A chunk is gone when the next one is asked for.
            kept = self.values[lo - self.base :].copy() if lo < self.base + len(self.values) else self.values[:0]
            end = self.base + len(self.values)
            chunk = next(self._chunks)
            self.values = np.concatenate([kept, chunk.values]) if len(kept) else chunk.values
            self.base = end - len(kept)
        return self.base, self.values


class Sparse:
    """Pairs by ascending key, some keys missing. `upto` takes those below a bound that are left."""

    def __init__(self, chunks: Iterable[Any], key: np.dtype, value: np.dtype) -> None:
        self._chunks = iter(chunks)
        self._keys, self._values = np.empty(0, key), np.empty(0, value)
        self._done = False

    def upto(self, bound: int) -> tuple[np.ndarray, np.ndarray]:
        """(keys, values) of the pairs whose keys are below the bound and that no call before took."""
        keys, values = [], []
        while True:
            cut = int(np.searchsorted(self._keys, bound)) if len(self._keys) else 0
            keys.append(self._keys[:cut])
            values.append(self._values[:cut])
            self._keys, self._values = self._keys[cut:], self._values[cut:]
            if len(self._keys) or self._done:
                break
            if len(keys) > 1 or len(keys[0]):
                keys, values = [np.concatenate(keys)], [np.concatenate(values)]  # copies: the chunk is gone next
            chunk = next(self._chunks, None)
            self._done = chunk is None
            if chunk is not None:
                self._keys, self._values = np.asarray(chunk.keys), np.asarray(chunk.values)
        if len(keys) == 1:
            return keys[0], values[0]
        return np.concatenate(keys), np.concatenate(values)


__all__ = ["Dense", "Sparse"]
