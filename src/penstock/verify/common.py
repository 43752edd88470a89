"""What all checkers share: a result by internal number, arcs as a stream or as arrays, and how wrongs are told."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import UsageError
from penstock.graph import Graph
from penstock.memory.device import kernel
from penstock.options import whole

PIECE = 1 << 20
"""Arcs looked at together: few enough to stay in the processor's cache, many enough to hide Python."""

Checker = Callable[..., list[str]]


class Malformed(Exception):
    """The result is no answer to the question, so that no rule can be looked at."""


def checker(rules: Callable[..., Iterator[str]]) -> Checker:
    """A generator of sentences about what is wrong as a function that returns them all."""

    @functools.wraps(rules)
    def check(graph: Graph, table: pa.Table, **options: Any) -> list[str]:
        try:
            return list(rules(graph, table, **options))
        except Malformed as wrong:
            return [str(wrong)]

    return check


# ---- the result


def row_numbers(graph: Graph, table: pa.Table) -> np.ndarray:
    """The internal number of each row's vertex; every one is a vertex of the graph and has one row."""
    numbers = numbers_of(graph, table, "vertex")
    if (numbers < 0).any():
        raise Malformed(f"row {int(np.argmax(numbers < 0))} names no vertex")
    seen = np.bincount(numbers, minlength=graph.vertices)
    if (seen > 1).any():
        raise Malformed(f"vertex {name(graph, int(np.argmax(seen > 1)))} has {int(seen.max())} rows")
    return numbers


def numbers_of(graph: Graph, table: pa.Table, column: str) -> np.ndarray:
    """A column of ids as internal numbers, -1 where it is null."""
    given = column_of(table, column)
    try:
        ids = given.cast(graph.store.ids.arrow_type).combine_chunks()
    except pa.ArrowException:
        raise Malformed(
            f"column {column!r} is {given.type}, but the ids of the graph are {graph.store.ids.kind}"
        ) from None
    found = pc.index_in(ids, value_set=graph.users())
    strangers = pc.and_(pc.is_null(found), pc.is_valid(ids))
    if pc.any(strangers).as_py():
        at = pc.index(strangers, True).as_py()
        raise Malformed(f"column {column!r} names {ids[at].as_py()!r}, which is no vertex of the graph")
    return found.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)


def column_of(table: pa.Table, column: str) -> pa.ChunkedArray:
    if column not in table.column_names:
        raise Malformed(f"the result has no column {column!r}; it has {', '.join(table.column_names)}")
    return table[column]


class Answer:
    """A result with a row for every vertex; its columns by internal number."""

    def __init__(self, graph: Graph, table: pa.Table) -> None:
        self._graph, self._table = graph, table
        self._rows = row_numbers(graph, table)
        if len(self._rows) < graph.vertices:
            missing = np.ones(graph.vertices, bool)
            missing[self._rows] = False
            raise Malformed(
                f"{int(missing.sum())} vertices have no row, {name(graph, int(np.argmax(missing)))} among them"
            )

    def vertices(self, column: str) -> np.ndarray:
        """Internal numbers, -1 for null."""
        return self._by_number(numbers_of(self._graph, self._table, column))

    def numbers(self, column: str, kind: type = np.float64, null: Any = None) -> np.ndarray:
        """Values in this type; nulls become `null`, or are not allowed."""
        return self._by_number(values_of(self._table, column, kind, null))

    def is_single(self, column: str) -> bool:
        """Whether the values were computed in float32, and so are rounded early."""
        return bool(pa.types.is_float32(column_of(self._table, column).type))

    def _by_number(self, rows: np.ndarray) -> np.ndarray:
        result = np.empty_like(rows)
        result[self._rows] = rows
        return result


def values_of(table: pa.Table, column: str, kind: type, null: Any = None) -> np.ndarray:
    """A column as NumPy values of this type."""
    given = column_of(table, column)
    try:
        values = given.cast(pa.from_numpy_dtype(kind)).combine_chunks()
    except pa.ArrowException:
        raise Malformed(f"column {column!r} is {given.type}, not {np.dtype(kind)}") from None
    if values.null_count:
        if null is None:
            raise Malformed(f"column {column!r} has {values.null_count} nulls")
        values = values.fill_null(null)
    return np.array(values.to_numpy(zero_copy_only=False), kind)


def source_numbers(graph: Graph, source: Any) -> np.ndarray:
    """The internal numbers of the sources, ascending."""
    if source is None:
        raise UsageError("name the source the result was computed from with source=")
    several = isinstance(source, Sequence | np.ndarray) and not isinstance(source, str)
    return np.unique(np.array([graph.store.ids.number(one) for one in (source if several else [source])], np.int64))


def sampled(graph: Graph, samples: int, seed: int) -> np.ndarray:
    """The random vertices that algorithms start from."""
    if not 1 <= samples <= graph.vertices:
        raise UsageError(f"samples must be from 1 to {graph.vertices}, not {samples}")
    return np.random.default_rng(whole("seed", seed, 0)).choice(graph.vertices, samples, replace=False)


def name(graph: Graph, number: int) -> str:
    """The id of a vertex, for a sentence."""
    return repr(graph.store.ids.of(number))


def wrong(graph: Graph, bad: np.ndarray, what: str) -> Iterator[str]:
    """`what` of the vertices where `bad` is true, if there are any."""
    count = int(np.count_nonzero(bad))
    if count:
        some = f"vertex {name(graph, int(np.argmax(bad)))}"
        yield f"{some} {what}" if count == 1 else f"{some} and {count - 1:,} more: each {what}"


# ---- the graph


def arcs(graph: Graph, columns: Sequence[str] = ()) -> Iterator[tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]]:
    """Every arc once, by internal numbers: an undirected edge comes from both sides, a loop once."""
    for source, target, values in graph.edge_arrays(None, columns, both_ways=True, size=PIECE):
        yield source.view(np.int64), target.view(np.int64), values


class Csr(NamedTuple):
    """The neighbours of vertex v are `neighbours[offsets[v]:offsets[v + 1]]`."""

    offsets: np.ndarray
    neighbours: np.ndarray


def csr(graph: Graph, way: str = "out", *, loops: bool = True) -> Csr:
    """The whole adjacency: arcs that leave (`out`), that enter (`in`), or both one after the other (`both`). In an
    undirected graph the three are the same."""
    forwards, backwards = not graph.directed or way in ("out", "both"), graph.directed and way in ("in", "both")
    degrees = np.zeros(graph.vertices + 1, np.int64)
    for source, target, _ in _kept(graph, loops):
        if forwards:
            degrees[1:] += np.bincount(source, minlength=graph.vertices)
        if backwards:
            degrees[1:] += np.bincount(target, minlength=graph.vertices)
    offsets = np.cumsum(degrees).astype(np.uint64)
    neighbours = np.empty(int(offsets[-1]), np.uint32 if graph.vertices < 1 << 32 else np.uint64)
    free = offsets[:-1].copy()
    for source, target, _ in _kept(graph, loops):
        if forwards:
            _place(source.view(np.uint64), target.view(np.uint64), free, neighbours)
        if backwards:
            _place(target.view(np.uint64), source.view(np.uint64), free, neighbours)
    return Csr(offsets, neighbours)


def _kept(graph: Graph, loops: bool) -> Iterator[tuple[np.ndarray, np.ndarray, Any]]:
    for source, target, _ in arcs(graph):
        keep = slice(None) if loops else source != target
        yield source[keep], target[keep], _


def csr_of(vertices: int, source: np.ndarray, target: np.ndarray) -> Csr:
    """The adjacency of arcs at hand."""
    offsets = np.zeros(vertices + 1, np.uint64)
    np.cumsum(np.bincount(source, minlength=vertices), out=offsets[1:])
    neighbours = np.empty(len(target), np.uint64)
    _place(source.astype(np.uint64), target.astype(np.uint64), offsets[:-1].copy(), neighbours)
    return Csr(offsets, neighbours)


@kernel()
def _place(source, target, free, neighbours):
    for a in range(source.size):
        v = source[a]
        neighbours[free[v]] = target[a]
        free[v] += np.uint64(1)


@kernel()
def hops(offsets, neighbours, level, queue, filled):
    """Breadth first from the `filled` vertices at the front of the queue, whose level is 0; all others come with -1.
    Returns how many were reached; the queue holds them."""
    head = np.uint64(0)
    tail = np.uint64(filled)
    while head < tail:
        u = queue[head]
        head += np.uint64(1)
        for a in range(offsets[u], offsets[u + np.uint64(1)]):
            v = np.uint64(neighbours[a])
            if level[v] < 0:
                level[v] = level[u] + 1
                queue[tail] = v
                tail += np.uint64(1)
    return tail


def levels_from(adjacency: Csr, sources: np.ndarray) -> np.ndarray:
    """How many arcs each vertex is away from the nearest source, -1 if it is not reached."""
    level = np.full(len(adjacency.offsets) - 1, -1, np.int64)
    queue = np.empty(len(level), np.uint64)
    level[sources] = 0
    queue[: len(sources)] = sources
    hops(adjacency.offsets, adjacency.neighbours, level, queue, len(sources))
    return level
