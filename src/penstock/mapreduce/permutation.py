"""In which order the rows of a column are sorted, for every kind of column. Equal rows keep their order, always.

Fixed widths become words that order as they do, and words are sorted by radix: several of them, as of a struct, from
the last to the first, or packed into one where they vary in few enough bits. Rows of bytes are sorted by their first
8 bytes; those that tie go on with the next 8, and what still ties after some rounds is merged by comparison.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from penstock.mapreduce import columns
from penstock.mapreduce.columns import Bytes, Column
from penstock.sorting.radix import sort_pairs

Compare = Callable[[Any, Any], int]
"""Takes two keys or two values; negative: the first comes first, positive: it comes last, 0: they stay as they are."""

_ROUNDS = 4
_WORTH = 16
"""A round of radix sort is worth it for more than one row in 16; fewer are merged."""


def words(column: np.ndarray) -> list[np.ndarray]:
    """uint64 columns, the most significant first, that together order, and differ, as the values do."""
    kind = column.dtype
    if kind.itemsize == 0:
        return []
    if kind.fields is not None:
        return [word for name in kind.names or () for field in _flat(column[name]) for word in words(field)]
    if kind.kind == "c":
        return words(np.ascontiguousarray(column.real)) + words(np.ascontiguousarray(column.imag))
    if kind.kind == "f" and kind.itemsize > 8:
        # Wider than a double, but no wider than two: the nearest one, and what is missing.
        near = column.astype(np.float64)
        with np.errstate(invalid="ignore"):
            rest = np.where(np.isfinite(near), column - near, 0).astype(np.float64)
        return [columns.codes(near), columns.codes(rest)]
    if columns.is_exact(kind):
        return [columns.codes(column)]
    size = -(-kind.itemsize // 8)
    raw = np.zeros((len(column), 8 * size), np.uint8)
    raw[:, : kind.itemsize] = np.ascontiguousarray(column).view(np.uint8).reshape(len(column), kind.itemsize)
    return [np.ascontiguousarray(word, np.uint64) for word in raw.view(">u8").T]


def _flat(field: np.ndarray) -> list[np.ndarray]:
    """The columns of a field that may be an array in each row."""
    flat = field.reshape(len(field), int(np.prod(field.shape[1:])))
    return [np.ascontiguousarray(flat[:, k]) for k in range(flat.shape[1])]


def pack(parts: list[np.ndarray]) -> list[np.ndarray]:
    """Neighbouring words made one where the bits in which they vary fit: fewer sorts."""
    if len(parts) < 2:
        return parts
    packed: list[np.ndarray] = []
    room = 0
    for part in parts:
        low = part.min() if len(part) else np.uint64(0)
        bits = int(part.max() - low).bit_length() if len(part) else 0
        if packed and bits <= room:
            packed[-1] = packed[-1] << np.uint64(bits) | (part - low) if bits else packed[-1]
            room -= bits
        else:
            packed.append(part - low)
            room = 64 - bits
    return packed


def counting(count: int) -> np.ndarray:
    """0, 1, 2 and so on, as narrow as positions may be."""
    return np.arange(count, dtype=np.uint32 if count < 1 << 32 else np.uint64)


def order_of(
    column: Column, threads: int, *, descending: bool = False, compare: Compare | None = None, sort: Any = None
) -> np.ndarray:
    """Positions of the rows in sorted order; what is no number comes last, and first where it descends. `sort`: what
    sorts words of fixed width, if not the threads do; see `Placing.sorter`."""
    if compare is not None:
        rows = columns.to_list(column)
        key = functools.cmp_to_key(compare)
        found = sorted(range(len(rows)), key=lambda row: key(rows[row]), reverse=descending)
        return np.array(found, counting(0).dtype)
    if isinstance(column, Bytes):
        return _order_of_rows(column, threads, descending)
    sort = functools.partial(sort_pairs, threads=threads) if sort is None else sort
    positions = counting(len(column))
    spare = np.empty_like(positions)
    scratch = np.empty(len(column), np.uint64)
    for k, part in enumerate(reversed(pack(words(column)))):
        word = part if k == 0 else part.take(positions)
        if descending:
            np.invert(word, out=word)
        _, positions, scratch, spare = sort(word, positions, scratch, spare)
    return positions


def _order_of_rows(column: Bytes, threads: int, descending: bool) -> np.ndarray:
    from penstock.mapreduce.kernels.ordering import prefixes_at, settle

    word = columns.codes(column)
    if descending:
        np.invert(word, out=word)
    positions, scratch = counting(len(column)), np.empty_like(word)
    word, positions, *_ = sort_pairs(word, positions, scratch, np.empty_like(positions), threads)
    same = word[1:] == word[:-1]
    lengths = column.lengths
    longest = int(lengths.max()) if len(lengths) else 0
    skip = 8
    for _ in range(_ROUNDS):
        tied = _tied(same)
        if len(tied) * _WORTH < len(column) or skip >= longest:
            break
        rows = positions[tied]
        group = np.zeros(len(tied), np.uint64)
        group[1:] = np.cumsum(~same[tied[1:] - 1])
        word = np.empty(len(tied), np.uint64)
        prefixes_at(column.offsets, column.data, rows, np.uint64(skip), word)
        if descending:
            np.invert(word, out=word)
        by_word = _stable(word.copy(), counting(len(tied)), threads)
        by_group = _stable(group[by_word], by_word, threads)
        positions[tied] = rows[by_group]
        word, group = word[by_group], group[by_group]
        same[tied[1:] - 1] &= (word[1:] == word[:-1]) & (group[1:] == group[:-1])
        skip += 8
    starts, ends = _stretches(same)
    if len(starts):
        spare = np.empty_like(positions)
        settle(column.offsets, column.data, positions, spare, starts, ends, np.uint64(skip), descending)
    return positions


def _stable(word: np.ndarray, carried: np.ndarray, threads: int) -> np.ndarray:
    _, found, *_ = sort_pairs(word, carried, np.empty_like(word), np.empty_like(carried), threads)
    return found


def _stretches(same: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Begins and ends of the stretches of rows that are the same as the one before."""
    edges = np.diff(np.concatenate([[False], same, [False]]).astype(np.int8))
    return np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) + 1


def _tied(same: np.ndarray) -> np.ndarray:
    """Where rows stand that are the same as one of their neighbours."""
    tied = np.zeros(len(same) + 1, np.bool_)
    tied[1:] = same
    tied[:-1] |= same
    return np.flatnonzero(tied)


def repeats(column: Column, positions: np.ndarray) -> np.ndarray:
    """Whether each row, in the order of `positions`, is the same key as the one before it; never the first."""
    same = np.zeros(len(positions), np.bool_)
    if isinstance(column, Bytes):
        from penstock.mapreduce.kernels.ordering import rows_repeat

        rows_repeat(column.offsets, column.data, positions, same)
    elif len(positions):
        same[1:] = True
        for part in words(column):
            word = part.take(positions)
            same[1:] &= word[1:] == word[:-1]
    return same


__all__ = ["Compare", "counting", "order_of", "pack", "repeats", "words"]
