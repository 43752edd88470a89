"""Checkers of traversals: Graph500's rules, and which of several right parents is the one.

Levels and distances are not computed again: a labelling is right if the sources have 0, no arc could shorten it and
every label is explained by an arc from a smaller one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import UsageError
from penstock.graph import Graph
from penstock.verify.common import (
    Answer,
    arcs,
    checker,
    csr_of,
    levels_from,
    row_numbers,
    source_numbers,
    values_of,
    wrong,
)

_NONE = np.iinfo(np.int64).max


@checker
def check_bfs(graph: Graph, table: pa.Table, *, source: Any = None, max_depth: int | None = None) -> Iterator[str]:
    """Breadth-first search: sources, tree arcs, levels of the ends of every arc, what is reached, the parents."""
    sources = source_numbers(graph, source)
    answer = Answer(graph, table)
    level, parent = answer.numbers("level", np.int64, null=-1), answer.vertices("parent")
    is_source = np.zeros(graph.vertices, bool)
    is_source[sources] = True
    child = (level >= 0) & (parent >= 0) & ~is_source
    explained = np.zeros(graph.vertices, bool)  # the tree arc is an arc of the graph
    least = np.full(graph.vertices, _NONE)
    missed, steep = np.zeros(graph.vertices, bool), np.zeros(graph.vertices, bool)
    for tail, head, _ in arcs(graph):
        followed = level[tail] >= 0
        if max_depth is not None:
            followed &= level[tail] < max_depth
        missed[head[followed & (level[head] < 0)]] = True
        steep[head[followed & (level[head] > level[tail] + 1)]] = True
        explained[head[parent[head] == tail]] = True
        above = followed & (level[head] == level[tail] + 1)
        np.minimum.at(least, head[above], tail[above])
    root = (level == 0) & (parent == np.arange(graph.vertices))
    yield from wrong(graph, is_source & ~root, "is a source, whose level is 0 and whose parent is itself")
    yield from wrong(graph, (level >= 0) != (parent >= 0), "has a level without a parent, or a parent without a level")
    yield from wrong(graph, (level == 0) & ~is_source, "has level 0 but is no source")
    if max_depth is not None:
        yield from wrong(graph, level > max_depth, f"has a level above max_depth={max_depth}")
    yield from wrong(graph, child & (level != level[parent] + 1), "is not one level below its parent")
    yield from wrong(graph, child & ~explained, "has no arc from its parent")
    yield from wrong(graph, missed, "is unreached, though an arc leads to it from a reached vertex")
    yield from wrong(graph, steep, "is more than one level below a vertex with an arc to it")
    other = child & explained & (level == level[parent] + 1) & (least != parent)
    yield from wrong(graph, other, "has a right parent, but not the first in the order of the store")


@checker
def check_sssp(
    graph: Graph,
    table: pa.Table,
    *,
    source: Any = None,
    weight: str = "weight",
    parents: bool = False,
    delta: float | None = None,
) -> Iterator[str]:
    """Shortest paths: sources, every arc relaxed, every distance the length of a path; parents if there are any
    or there should be. `delta` makes no difference."""
    sources = source_numbers(graph, source)
    graph.edge_schema([weight])  # says which columns there are
    answer = Answer(graph, table)
    kind = np.float64 if graph.columns[weight] in ("float", "double") else np.int64
    distance = answer.numbers("distance", kind, null=-1)
    is_source = np.zeros(graph.vertices, bool)
    is_source[sources] = True
    missed, long = np.zeros(graph.vertices, bool), np.zeros(graph.vertices, bool)
    tight = [np.zeros((2, 0), np.int64)]
    for tail, head, columns in arcs(graph, [weight]):
        lengths = columns[weight].astype(kind)
        if not (lengths >= 0).all():
            raise UsageError(f"column {weight!r} has negative weights or NaN, for which distances are not defined")
        followed = distance[tail] >= 0
        path = distance[tail] + lengths
        missed[head[followed & (distance[head] < 0)]] = True
        long[head[followed & (distance[head] > path)]] = True
        kept = followed & (distance[head] == path)
        tight.append(np.stack([tail[kept], head[kept]]))
    tails, heads = np.concatenate(tight, axis=1)
    # Along tight arcs from the sources: two vertices that explain each other's distance explain nothing.
    steps = levels_from(csr_of(graph.vertices, tails, heads), sources)
    yield from wrong(graph, is_source & (distance != 0), "is a source, whose distance is 0")
    yield from wrong(graph, np.isnan(distance) | (distance < -1), "has a distance that is no length")
    yield from wrong(graph, missed, "is unreached, though an arc leads to it from a reached vertex")
    yield from wrong(graph, long, "has an arc to it that makes a shorter path")
    yield from wrong(graph, (distance >= 0) & (steps < 0) & ~long, "has a distance that no path from a source has")
    if parents or "parent" in table.column_names:
        yield from _parents(graph, answer.vertices("parent"), distance, steps, tails, heads, is_source)


def _parents(
    graph: Graph,
    parent: np.ndarray,
    distance: np.ndarray,
    steps: np.ndarray,
    tails: np.ndarray,
    heads: np.ndarray,
    is_source: np.ndarray,
) -> Iterator[str]:
    yield from wrong(graph, is_source & (parent != np.arange(graph.vertices)), "is a source, whose parent is itself")
    yield from wrong(graph, (distance >= 0) != (parent >= 0), "has a distance without a parent, or a parent without")
    child = (parent >= 0) & (steps > 0)
    explained = np.zeros(graph.vertices, bool)
    explained[heads[parent[heads] == tails]] = True
    yield from wrong(graph, child & ~explained, "has no arc from its parent that makes its distance")
    least = np.full(graph.vertices, _NONE)
    next_step = steps[heads] == steps[tails] + 1
    np.minimum.at(least, heads[next_step], tails[next_step])
    first = child & explained & (least != parent)
    yield from wrong(graph, first, "has a right parent, but not that of fewest arcs and first in the store")


@checker
def check_neighborhood(graph: Graph, table: pa.Table, *, source: Any = None, hops: int = 1) -> Iterator[str]:
    """Who is at most `hops` arcs away: found again, one pass over all arcs for each hop."""
    expected = np.full(graph.vertices, -1, np.int64)
    expected[source_numbers(graph, source)] = 0
    for hop in range(hops):
        for tail, head, _ in arcs(graph):
            found = head[(expected[tail] == hop) & (expected[head] < 0)]
            expected[found] = hop + 1
    rows, level = row_numbers(graph, table), values_of(table, "level", np.int64)
    given = np.full(graph.vertices, -1, np.int64)
    given[rows] = level
    yield from wrong(graph, (expected >= 0) & (given < 0), f"is within {hops} arcs and has no row")
    yield from wrong(graph, (expected < 0) & (given >= 0), f"is not within {hops} arcs and has a row")
    yield from wrong(graph, (expected >= 0) & (given >= 0) & (expected != given), "has another level")
