"""Pairs in the host's memory that a GPU sorts, and what it did with them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from penstock.sorting.gpu import as_words


@dataclass
class SortFigures:
    """What a sort on a GPU did."""

    pairs: int = 0
    chunks: int = 1
    buckets: int = 1
    recut: int = 0
    """Buckets that were too big."""
    alone: int = 0
    """Pairs of buckets of one key, which were not sorted again."""
    pinning: float = 0.0
    seconds: float = 0.0
    """Of copies and sorts, without pinning."""
    copied: int = 0
    """Bytes over the bus, both ways."""


@dataclass
class Host:
    """The host's arrays: keys and the words of payload, with the words in a row."""

    keys: np.ndarray
    columns: list[np.ndarray]
    words: list[int]

    @property
    def parts(self) -> Iterator[tuple[np.ndarray, int]]:
        yield self.keys, 1
        yield from zip(self.columns, self.words, strict=True)

    @staticmethod
    def of(keys: np.ndarray, columns: list[np.ndarray]) -> Host:
        full = [column for column in columns if column.dtype.itemsize]
        flat = [as_words(column) for column in full]
        return Host(keys, flat, [len(words) // max(1, len(keys)) for words in flat])


__all__ = ["Host", "SortFigures"]
