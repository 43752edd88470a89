"""Reductions by name: what kind each makes of which values, and the numbers it works with."""

from __future__ import annotations

import numpy as np

from penstock.errors import UsageError
from penstock.mapreduce.columns import Column, Kind, kind_name, kind_of

NAMES = ("sum", "min", "max", "count", "first", "last", "any", "all", "mean", "or")
READ_OFF = ("count", "first", "last")
"""Those for which no value has to be joined with another."""
_INT, _UINT, _FLOAT, _BOOL = np.dtype(np.int64), np.dtype(np.uint64), np.dtype(np.float64), np.dtype(np.bool_)
_TAKEN = {
    "sum": "biufcm",
    "mean": "biufc",
    "min": "biufmM",
    "max": "biufmM",
    "any": "biufc",
    "all": "biufc",
    "or": "biu",
}


def result_kind(name: str, value: Kind) -> Kind:
    """The kind of what `name` makes of values of this kind, or an error where it makes no sense.

    Sums are 64 bits wide, means are float64, counts int64; the others keep the kind.
    """
    if name not in NAMES:
        raise UsageError(f"there is no reduction {name!r}: use one of {', '.join(NAMES)}, or a function")
    if name == "count":
        return _INT
    if name in ("first", "last") or (name in ("min", "max") and isinstance(value, str)):
        return value
    if isinstance(value, str) or value.kind not in _TAKEN[name] or not value.itemsize:
        raise UsageError(f"the reduction {name!r} does not take values of {kind_name(value)}")
    if name in ("any", "all"):
        return _BOOL
    if value.kind == "c":
        return np.dtype(np.complex128)
    if name == "mean":
        return _FLOAT
    if name == "sum" and value.kind != "m":
        return _wide(value)
    return value


def empty_kind(name: str, value: Kind) -> Kind:
    """The same where there are no values at all, which may have been of any kind."""
    try:
        return result_kind(name, value)
    except UsageError:
        if name not in NAMES:
            raise
        return _FLOAT if name == "mean" else _BOOL if name in ("any", "all") else _INT


def _wide(value: np.dtype) -> np.dtype:
    return _FLOAT if value.kind == "f" else _UINT if value.kind == "u" else _INT


def is_wordy(name: str, value: Kind) -> bool:
    """Whether values are reduced in one word of 8 bytes each, as hash tables do."""
    if name == "count":
        return True
    return name != "mean" and not isinstance(value, str) and value.kind in "biufmM" and 0 < value.itemsize <= 8


def as_words(name: str, values: Column) -> np.ndarray:
    """Values as int64, uint64 or float64, for what is reduced in words. One zero stands for what is only counted."""
    if name == "count":
        return np.zeros(1, np.int64)
    assert isinstance(values, np.ndarray)
    if name in ("any", "all"):
        return (values != 0).astype(np.uint64)
    if values.dtype.kind in "mM":
        return values.view(np.int64)
    return values.astype(_wide(values.dtype), copy=False)


def from_words(name: str, words: np.ndarray, value: Kind) -> np.ndarray:
    """What was reduced in words, as the kind that `name` makes of `value`."""
    kind = result_kind(name, value)
    assert not isinstance(kind, str)
    return words.view(kind) if kind.kind in "mM" else words.astype(kind, copy=False)


def word_type(name: str, value: Kind) -> np.dtype:
    """The type of `as_words`."""
    if name == "count" or isinstance(value, str):
        return _INT
    return _UINT if name in ("any", "all") else _wide(value)


def reduce_segments(name: str, values: Column, offsets: np.ndarray) -> Column:
    """`name` of `values[offsets[i]:offsets[i + 1]]` for each i. No segment is empty, except for counting."""
    from penstock.mapreduce import columns
    from penstock.mapreduce.kernels import segments as kernels

    kind = result_kind(name, kind_of(values))
    if name == "count":
        return np.diff(offsets)
    begins = offsets[:-1]
    if name == "first":
        return columns.take(values, begins)
    if name == "last":
        return columns.take(values, offsets[1:] - 1)
    if isinstance(values, columns.Bytes):
        picked = np.empty(len(begins), np.int64)
        kernels.extreme_rows(values.offsets, values.data, offsets, name == "max", picked)
        return columns.take(values, picked)
    assert not isinstance(kind, str)
    if values.dtype.kind == "c":
        if name in ("any", "all"):
            return reduce_segments(name, values != 0, offsets)
        sums = np.add.reduceat(values[: offsets[-1]], begins).astype(kind) if len(begins) else np.empty(0, kind)
        return sums / np.diff(offsets) if name == "mean" else sums
    if name == "mean":
        sums = np.empty(len(begins), np.float64)
        kernels.reduce_words(
            values.astype(np.float64, copy=False), offsets, kernels.OPS["sum"], sums, sums.view(np.uint64)
        )
        return sums / np.diff(offsets)
    words = as_words(name, values)
    found = np.empty(len(begins), words.dtype)
    kernels.reduce_words(words, offsets, kernels.OPS[name], found, found.view(np.uint64))
    return from_words(name, found, values.dtype)


__all__ = [
    "NAMES",
    "READ_OFF",
    "as_words",
    "empty_kind",
    "from_words",
    "is_wordy",
    "reduce_segments",
    "result_kind",
    "word_type",
]
