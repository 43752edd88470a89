"""Columns: what keys and values are made of, and what every operation asks of them.

A column is a NumPy array of one dimension (any scalar, or a small struct), or `Bytes` for values of any length. A
column of nothing has the dtype `NOTHING` and only a length. Columns are never changed once they are in a chunk. Two
numbers are the same key when they compare equal; all that is not a number is one key, the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.mapreduce.convert import as_column, cast, from_arrow, to_arrow
from penstock.mapreduce.kinds import (
    NOTHING,
    Column,
    Kind,
    as_kind,
    is_exact,
    is_nothing,
    is_varying,
    kind_name,
    kind_of,
    width,
)
from penstock.mapreduce.varying import Bytes


def empty(kind: Kind, count: int = 0) -> Column:
    """A column of so many values: not set where they are fixed, no bytes where they vary."""
    if isinstance(kind, str):
        return Bytes.empty(kind == "string", count)
    return np.empty(count, kind)


def concat(columns: Sequence[Column], kind: Kind | None = None) -> Column:
    """One after the other; `kind` is needed for none at all."""
    if not columns:
        if kind is None:
            raise ValueError("no columns, and no kind")
        return empty(kind)
    first = columns[0]
    if len(columns) == 1:
        return first
    if isinstance(first, Bytes):
        offsets = np.zeros(sum(map(len, columns)) + 1, np.int64)
        at = np.int64(0)
        row = 0
        for column in columns:
            assert isinstance(column, Bytes)
            np.add(column.offsets, at, out=offsets[row : row + len(column) + 1])
            at, row = at + column.offsets[-1], row + len(column)
        return Bytes(offsets, np.concatenate([column.data for column in columns]), first.text)
    if first.dtype.itemsize == 0:
        return np.empty(sum(map(len, columns)), NOTHING)
    return np.concatenate(columns)  # type: ignore[arg-type]


def take(column: Column, positions: np.ndarray) -> Column:
    """The values at these positions (integers of any width), copied."""
    if isinstance(column, Bytes):
        return column.take(positions)
    return column.take(positions) if column.dtype.itemsize else np.empty(len(positions), NOTHING)


def slice(column: Column, begin: int, end: int) -> Column:
    """Values `begin` to `end`, on the same memory."""
    return column.slice(begin, end) if isinstance(column, Bytes) else column[begin:end]


def nbytes(column: Column) -> int:
    """Bytes of memory."""
    return int(column.nbytes)


def arrays_of(column: Column) -> list[np.ndarray]:
    """The arrays that hold it: what is written when it is spilled."""
    return [column.offsets, column.data] if isinstance(column, Bytes) else [column]


def to_list(column: Column) -> list[Any]:
    """Python's own values; None for nothing."""
    if isinstance(column, Bytes):
        return column.to_list()
    return column.tolist() if column.dtype.itemsize else [None] * len(column)


def equal(one: Column, other: Column) -> bool:
    """Whether they hold the same values of the same kind in the same order."""
    if kind_of(one) != kind_of(other) or len(one) != len(other):
        return False
    if isinstance(one, Bytes) and isinstance(other, Bytes):
        return np.array_equal(one.offsets, other.offsets) and np.array_equal(one.data, other.data)
    if is_nothing(kind_of(one)):
        return True
    return bool(np.array_equal(one, other, equal_nan=one.dtype.kind in "fcmM"))  # type: ignore[arg-type, union-attr]


def codes(column: Column, out: np.ndarray | None = None) -> np.ndarray:
    """A uint64 for each value that never falls where the values rise; a new array, or `out`.

    Where `is_exact(kind)`, equal codes mean equal values. Else it is the code of the first 8 bytes, of the first field,
    or of the nearest double, and ties are for the caller to settle.
    """
    out = np.empty(len(column), np.uint64) if out is None else out
    if isinstance(column, Bytes):
        from penstock.mapreduce.kernels.columns import prefixes

        prefixes(column.offsets, column.data, np.uint64(0), out)
        return out
    kind = column.dtype
    if kind.itemsize == 0:
        out[:] = 0
    elif kind.fields is not None:
        field = column[kind.names[0]]  # type: ignore[index]
        return codes(np.ascontiguousarray(field.reshape(len(field), -1)[:, 0]), out)
    elif kind.kind in "bu":
        out[:] = column
    elif kind.kind in "imM":
        # Missing times are the smallest number, so they come first here as an integer would.
        out.view(np.int64)[:] = column if kind.kind == "i" else column.view(np.int64)
        out ^= np.uint64(1 << 63)
    elif kind.kind in "fc":
        from penstock.mapreduce.kernels.columns import float_codes

        with np.errstate(invalid="ignore"):  # of what is no number, some forms are errors to a processor
            numbers = np.ascontiguousarray(column.real, np.float64)
        float_codes(numbers.view(np.uint64), out)
    else:
        raw = np.zeros((len(column), 8), np.uint8)
        some = min(8, kind.itemsize)
        raw[:, :some] = column.view(np.uint8).reshape(len(column), -1)[:, :some]
        out[:] = raw.view(">u8").reshape(-1)
    return out


def hash64(column: Column) -> np.ndarray:
    """A uint64 for each value, the same for values that are equal: 7 in an int32 and in a uint64, "a" and b"a", too."""
    from penstock.mapreduce.kernels import columns as kernels

    found = np.empty(len(column), np.uint64)
    if isinstance(column, Bytes):
        kernels.hash_rows(column.offsets, column.data, found)
        return found
    kind = column.dtype
    if kind.itemsize == 0:
        found[:] = 0
    elif kind.fields is not None:
        found[:] = 0
        for name in kind.names or ():
            field = column[name].reshape(len(column), -1)
            for k in range(field.shape[1]):
                kernels.join_hashes(found, hash64(np.ascontiguousarray(field[:, k])))
    elif kind.kind in "bu":
        found[:] = column
        kernels.mix(found)
    elif kind.kind in "imM":
        found.view(np.int64)[:] = column if kind.kind == "i" else column.view(np.int64)
        kernels.mix(found)
    elif kind.kind == "c":
        found = hash64(np.ascontiguousarray(column.real))
        kernels.join_hashes(found, hash64(np.ascontiguousarray(column.imag)))
    elif kind.kind == "f":
        kernels.mix(codes(column, found))
    else:
        size = kind.itemsize
        offsets = np.arange(0, size * (len(column) + 1), size, dtype=np.int64)
        kernels.hash_rows(offsets, column.view(np.uint8).reshape(-1), found)
    return found


__all__ = [
    "NOTHING", "Bytes", "Column", "Kind", "arrays_of", "as_column", "as_kind", "cast", "codes", "concat", "empty",
    "equal", "from_arrow", "hash64", "is_exact", "is_nothing", "is_varying", "kind_name", "kind_of", "nbytes", "slice",
    "take", "to_arrow", "to_list", "width",
]  # fmt: skip
