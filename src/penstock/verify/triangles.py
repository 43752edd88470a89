"""Checkers of triangles and clustering: every triangle of the simple graph is found once, by merging sorted lists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from penstock.errors import UsageError
from penstock.graph import Graph
from penstock.memory.device import kernel
from penstock.verify.common import Answer, arcs, checker, wrong


class Triangles(NamedTuple):
    """By internal number: neighbours, triangles, and arcs between two neighbours."""

    degree: np.ndarray
    through: np.ndarray
    between: np.ndarray


@checker
def check_triangles(graph: Graph, table: pa.Table) -> Iterator[str]:
    """Triangles through each vertex."""
    given = Answer(graph, table).numbers("triangles", np.int64)
    yield from wrong(graph, given != count_triangles(graph).through, "is in another number of triangles")


@checker
def check_lcc(graph: Graph, table: pa.Table, *, tol: float = 1e-9) -> Iterator[str]:
    """Local clustering as LDBC defines it: arcs between neighbours, divided by how many there could be."""
    answer = Answer(graph, table)
    given, found = answer.numbers("lcc"), count_triangles(graph)
    pairs = (found.degree * (found.degree - 1)).astype(float)
    expected = np.divide(found.between, pairs, out=np.zeros(len(pairs)), where=pairs > 0)
    tol = max(tol, 1e-5) if answer.is_single("lcc") else tol
    yield from wrong(graph, ~(np.abs(given - expected) <= tol), "has another clustering coefficient")


def count_triangles(graph: Graph) -> Triangles:
    """Each triangle is seen from its vertex of least degree, so that hubs have short lists."""
    n = graph.vertices
    if n >= 1 << 31:
        raise UsageError(f"triangles are checked in graphs of less than 2^31 vertices; this one has {n:,}")
    low, high, both = simple_edges(graph)
    degree = np.bincount(low, minlength=n) + np.bincount(high, minlength=n)
    place = np.empty(n, np.uint64)
    place[np.argsort(degree, kind="stable")] = np.arange(n, dtype=np.uint64)
    swapped = place[low] > place[high]
    keys = np.where(swapped, place[high], place[low]) * np.uint64(n) + np.where(swapped, place[low], place[high])
    order = np.argsort(keys)
    keys, both = keys[order], both[order]
    tails, heads = (keys // np.uint64(max(n, 1))).astype(np.int64), (keys % np.uint64(max(n, 1))).astype(np.uint32)
    offsets = np.zeros(n + 1, np.uint64)
    np.cumsum(np.bincount(tails, minlength=n), out=offsets[1:])
    through, between = np.zeros(n, np.int64), np.zeros(n, np.int64)
    _merge(offsets, heads, both, through, between)
    return Triangles(degree, through[place], between[place])


def simple_edges(graph: Graph) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Smaller and larger end of each pair of neighbours, and the arcs between them, 1 or 2, parallel ones as one."""
    n = np.uint64(max(graph.vertices, 1))
    pieces = [np.zeros(0, np.uint64)]
    for tail, head, _ in arcs(graph):
        backwards = tail > head
        # An undirected edge comes from both sides: once is enough.
        kept = tail < head if not graph.directed else tail != head
        low, high = np.minimum(tail, head).view(np.uint64), np.maximum(tail, head).view(np.uint64)
        pieces.append(((low * n + high) * np.uint64(2) + backwards.astype(np.uint64))[kept])
    ways = np.unique(np.concatenate(pieces)) >> np.uint64(1)
    pairs, counts = np.unique(ways, return_counts=True)
    both = counts if graph.directed else np.full(len(pairs), 2)
    return (pairs // n).astype(np.int64), (pairs % n).astype(np.int64), both.astype(np.uint8)


@kernel()
def _merge(offsets, heads, both, through, between):
    """For each arc v -> u, what the lists of v and u have in common."""
    one = np.uint64(1)
    for v in range(np.uint64(offsets.size - 1)):
        end_v = offsets[v + one]
        for a in range(offsets[v], end_v):
            u = np.uint64(heads[a])
            # The third vertex comes after u in v's list: each triangle is found from its first two vertices.
            i, j, end_u = a + one, offsets[u], offsets[u + one]
            while i < end_v and j < end_u:
                if heads[i] < heads[j]:
                    i += one
                elif heads[i] > heads[j]:
                    j += one
                else:
                    w = np.uint64(heads[i])
                    through[v] += 1
                    through[u] += 1
                    through[w] += 1
                    between[v] += np.int64(both[j])
                    between[u] += np.int64(both[i])
                    between[w] += np.int64(both[a])
                    i += one
                    j += one


__all__ = ["check_lcc", "check_triangles", "simple_edges"]
