"""How degrees and values are distributed, counted in one or two passes over pieces of bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from penstock.errors import UsageError
from penstock.profile.stored import PIECE, Stored, store_of
from penstock.store.reader import Store

BINS = 64
"""Of a histogram."""
SMALL = 1 << 16
"""Whole numbers below are counted in a table, larger ones are sorted."""
DISTINCT = 512
"""Whole numbers that span no more than this are counted one by one, not in bins."""
GROUPS = 1 << 24
"""Labels whose vertices are counted together."""


class Valued(Protocol):
    """A result: columns of values, some at a time."""

    @property
    def schema(self) -> Any: ...

    @property
    def references(self) -> frozenset[str]: ...

    def pieces_of(self, name: str) -> Iterator[tuple[np.ndarray, np.ndarray]]: ...


@dataclass(frozen=True)
class Distribution:
    """How often each value occurs.

    With `edges`, `counts[i]` values lie from `edges[i]` to `edges[i + 1]` and `values` are the middles of the bins;
    without, each value is counted by itself.
    """

    name: str
    values: np.ndarray
    counts: np.ndarray
    edges: np.ndarray | None = None
    log: bool = False
    """Whether the bins are equally wide on a logarithmic axis, which is the one to draw it on."""
    zeros: int = 0
    """Values that are 0, where the axis has no place for them."""
    nulls: int = 0
    """Vertices without a value: unreached ones."""
    odd: int = 0
    """Values that are infinite or no number."""
    of: str = "values"
    """What was counted: `values`, `degrees`, or `sizes` of groups of vertices with the same label."""

    @property
    def total(self) -> int:
        return int(self.counts.sum()) + self.zeros

    def binned(self, per_decade: int = 10) -> Distribution:
        """Counts of positive whole numbers in bins that are equally wide on a logarithmic axis, for a drawing."""
        positive = self.values > 0
        values, counts = self.values[positive].astype(np.float64), self.counts[positive]
        if self.edges is not None or not len(values):
            return self
        decades = max(1e-9, np.log10(values[-1] + 1))
        cuts = np.unique(np.floor(np.logspace(0, decades, max(2, int(decades * per_decade) + 1)) + 1e-9))
        cuts[-1] = values[-1] + 1
        found = np.histogram(values, np.unique(cuts), weights=counts)[0]
        return _binned(self, np.unique(cuts), found)


# ---- degrees


def degree_distribution(graph: Stored | Store, direction: str = "out") -> Distribution:
    """How many vertices have each degree, ascending; isolated ones have 0."""
    store = store_of(graph)
    if direction not in ("out", "in"):
        raise UsageError(f"direction must be 'out' or 'in', not {direction!r}")
    column = store.degree_column(direction)
    pieces = (column.read(at, min(at + PIECE, store.active)) for at in range(0, store.active, PIECE))
    counts = _Counts()
    for piece in pieces:
        counts.add(piece)
    counts.repeat(0, store.vertices - store.active)
    values, found = counts.sorted()
    return Distribution(f"{direction}_degree", values, found, of="degrees")


class _Counts:
    """How often whole numbers occur that are not negative: most of them small, and many."""

    def __init__(self) -> None:
        self._small = np.zeros(SMALL, np.int64)
        self._large: dict[int, int] = {}

    def add(self, values: np.ndarray) -> None:
        large = values >= SMALL
        if large.any():
            for value, count in zip(*np.unique(values[large], return_counts=True), strict=True):
                self.repeat(int(value), int(count))
            values = values[~large]
        self._small += np.bincount(values.astype(np.int64, copy=False), minlength=SMALL)

    def repeat(self, value: int, count: int) -> None:
        if value < SMALL:
            self._small[value] += count
        else:
            self._large[value] = self._large.get(value, 0) + count

    def sorted(self) -> tuple[np.ndarray, np.ndarray]:
        small, large = np.flatnonzero(self._small), sorted(self._large)
        values = np.concatenate([small, np.array(large, np.int64)])
        return values, np.concatenate([self._small[small], np.array([self._large[v] for v in large], np.int64)])


# ---- values


def value_distribution(result: Valued, column: str | None = None) -> Distribution:
    """How the values of a column are distributed; of a column of labels, how large the groups are. Without a name, of
    the first column that is not itself made of vertices."""
    names = list(result.schema.names[1:])
    if column is not None and column not in names:
        raise UsageError(f"the result has no column {column!r}; it has {', '.join(names)}")
    ordered = [name for name in names if name not in result.references]
    name = column or (*ordered, *names, "")[0]
    if not name:
        return _nothing(name, _Range())
    if name in result.references:
        return group_sizes(result, name)
    seen = _Range()
    for values, valid in result.pieces_of(name):
        seen.add(values, valid)
    if not seen.finite:
        return _nothing(name, seen)
    if seen.whole and seen.high - seen.low < DISTINCT:
        return _distinct(result, name, seen)
    return _histogram(result, name, seen)


@dataclass
class _Range:
    """What must be known of values before they are counted."""

    low: Any = None
    high: Any = None
    least: Any = None
    """The smallest positive one."""
    whole: bool = True
    finite: int = 0
    zeros: int = 0
    nulls: int = 0
    odd: int = 0

    def add(self, values: np.ndarray, valid: np.ndarray) -> None:
        self.nulls += len(valid) - int(np.count_nonzero(valid))
        values = values[valid]
        if values.dtype.kind == "f":
            self.whole = False
            good = values[np.isfinite(values)]
            self.odd += len(values) - len(good)
            values = good
        if not len(values):
            return
        self.finite += len(values)
        self.zeros += int(np.count_nonzero(values == 0))
        low, high, positive = values.min().item(), values.max().item(), values[values > 0]
        self.low = low if self.low is None else min(self.low, low)
        self.high = high if self.high is None else max(self.high, high)
        if len(positive):
            least = positive.min().item()
            self.least = least if self.least is None else min(self.least, least)

    @property
    def log(self) -> bool:
        """Whether the values are of many sizes."""
        return self.least is not None and self.low >= 0 and self.high / self.least >= 100


def _finite(result: Valued, name: str) -> Iterator[np.ndarray]:
    for values, valid in result.pieces_of(name):
        known = values[valid]
        yield known[np.isfinite(known)] if known.dtype.kind == "f" else known


def _nothing(name: str, seen: _Range) -> Distribution:
    return Distribution(name, np.zeros(0), np.zeros(0, np.int64), nulls=seen.nulls, odd=seen.odd)


def _distinct(result: Valued, name: str, seen: _Range) -> Distribution:
    counts = np.zeros(int(seen.high) - int(seen.low) + 1, np.int64)
    for values in _finite(result, name):
        # Subtracted as they are: a uint64 above 2^63 is no int64.
        offset = values.astype(np.uint8) if values.dtype.kind == "b" else values
        offset = offset - offset.dtype.type(int(seen.low))
        counts += np.bincount(offset.astype(np.int64), minlength=len(counts))
    there = np.flatnonzero(counts)
    values = np.array([int(seen.low) + int(at) for at in there])
    return Distribution(name, values, counts[there], nulls=seen.nulls, odd=seen.odd)


def _histogram(result: Valued, name: str, seen: _Range) -> Distribution:
    log = seen.log
    low, high = (float(seen.least), float(seen.high)) if log else (float(seen.low), float(seen.high))
    if low == high:
        return Distribution(name, np.array([low]), np.array([seen.finite]), nulls=seen.nulls, odd=seen.odd)
    edges = np.geomspace(low, high, BINS + 1) if log else np.linspace(low, high, BINS + 1)
    edges[0], edges[-1] = low, high  # rounding must not leave the outermost values out
    if log and seen.whole:  # bins between two whole numbers would be empty
        edges = np.unique(np.concatenate([np.floor(edges), [np.floor(high) + 1]]))
    counts = np.zeros(len(edges) - 1, np.int64)
    for values in _finite(result, name):
        counts += np.histogram(values.astype(np.float64, copy=False), edges)[0]
    told = Distribution(name, edges, counts, zeros=seen.zeros if log else 0, nulls=seen.nulls, odd=seen.odd)
    return _binned(told, edges, counts, log=log)


def _binned(told: Distribution, edges: np.ndarray, counts: np.ndarray, *, log: bool = True) -> Distribution:
    middles = np.sqrt(edges[:-1] * edges[1:]) if log else (edges[:-1] + edges[1:]) / 2
    return replace(told, values=middles, counts=np.asarray(counts, np.int64), edges=edges, log=log)


def group_sizes(result: Valued, column: str) -> Distribution:
    """How many groups of each size there are, if a group is all vertices with the same label."""
    highest, nulls = -1, 0
    for labels, valid in result.pieces_of(column):
        nulls += len(valid) - int(np.count_nonzero(valid))
        highest = max(highest, int(labels[valid].max())) if valid.any() else highest
    sizes = _Counts()
    for begin in range(0, highest + 1, GROUPS):
        held = np.zeros(min(GROUPS, highest + 1 - begin), np.uint32)
        for labels, valid in result.pieces_of(column):
            known = labels[valid].astype(np.int64)
            known = known[(known >= begin) & (known < begin + len(held))] - begin
            found, counts = np.unique(known, return_counts=True)
            held[found] += counts.astype(np.uint32)
        for at in range(0, len(held), PIECE):
            part = held[at : at + PIECE]
            sizes.add(part[part > 0])
    values, counts = sizes.sorted()
    return Distribution(column, values, counts, nulls=nulls, of="sizes")


__all__ = ["Distribution", "Valued", "degree_distribution", "group_sizes", "value_distribution"]
