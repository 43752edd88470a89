"""Every answer is checked before its time is believed, by NumPy and SciPy and by another method than the peers'.

Distances are checked against the equation that only they solve, d(v) = min over arcs (u, v) of d(u) + w(u, v) and
d(source) = 0; components, PageRank, betweenness and triangles against values computed here once for each graph and
kept beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from peers_graph import Arrays, arrays

ITERATIONS, DAMPING = 20, 0.85
FAR = np.int32(1 << 30)
_ARCS = 1 << 24


class Wrong(Exception):
    """A peer's answer is not the answer."""


def demand(holds: Any, what: str) -> None:
    if not holds:
        raise Wrong(what)


# ---- distances


def _pieces(graph: Arrays) -> Iterator[tuple[np.ndarray, slice]]:
    """Vertices with arcs, some at a time, and the arcs of each lot."""
    filled = np.flatnonzero(graph.degree)
    arcs = graph.indptr[filled]
    cuts = np.searchsorted(arcs, np.arange(0, graph.indptr[-1], _ARCS))
    for lot in np.split(filled, np.unique(cuts)):
        if len(lot):
            yield lot, slice(int(graph.indptr[lot[0]]), int(graph.indptr[lot[-1] + 1]))


def nearest(graph: Arrays, values: np.ndarray, weighted: bool = False) -> np.ndarray:
    """The least value among each vertex's neighbours, plus the arc's weight if weighted; FAR without neighbours."""
    least = np.full(graph.n, FAR, np.int32)
    for lot, arcs in _pieces(graph):
        reached = values[graph.indices[arcs]]
        if weighted:
            reached += graph.weight[arcs]
        least[lot] = np.minimum.reduceat(reached, graph.indptr[lot] - arcs.start)
    return least


def distances(graph: Arrays, source: int, found: np.ndarray, weighted: bool) -> None:
    """Unreached vertices are FAR."""
    found = np.ascontiguousarray(found, np.int32)
    demand(found[source] == 0, "the source is not at distance 0")
    demand(found.min() == 0, "a distance is negative")
    least = nearest(graph, found, weighted)
    expected = np.minimum(least if weighted else least + 1, FAR)
    expected[source] = 0
    demand(np.array_equal(found, expected), "a distance is not the least over the arcs")


def parents(graph: Arrays, source: int, parent: np.ndarray) -> None:
    """A breadth-first tree: -1 where nothing was reached; what stands at the source does not matter."""
    child = np.flatnonzero(parent >= 0)
    child = child[child != source]
    depth = np.full(graph.n, FAR, np.int32)
    depth[source] = 0
    while True:
        deeper = np.minimum(depth[parent[child]] + 1, FAR)
        if np.array_equal(deeper, depth[child]):
            break
        depth[child] = deeper
    demand((depth[child] < FAR).all(), "a parent is not reached")
    demand(_are_arcs(graph, parent[child], child), "a vertex is no neighbour of its parent")
    distances(graph, source, depth, weighted=False)


def _are_arcs(graph: Arrays, source: np.ndarray, target: np.ndarray) -> bool:
    """By bisection in all rows at once."""
    low, high = graph.indptr[source], graph.indptr[source + 1] - 1
    while (low < high).any():
        middle = (low + high) // 2
        left = graph.indices[middle] < target
        low, high = np.where(left & (low < high), middle + 1, low), np.where(left, high, np.minimum(middle, high))
    return bool((graph.indices[low] == target).all())


# ---- values computed once


def reference(folder: Path, scale: int, graph: Arrays, name: str, make: Callable[[Arrays], np.ndarray]) -> np.ndarray:
    """What `make` says of the input order, kept by id and given in the order of `graph`."""
    file = folder / f"k{scale}-{name}.npy"
    if not file.exists():
        given = arrays(folder, scale, "input")
        values = make(given)
        by_user = np.empty_like(values)
        by_user[given.users] = values
        keep(file, by_user)
    return np.load(file)[graph.users]


def keep(file: Path, values: np.ndarray) -> None:
    """Whole or not at all."""
    unfinished = file.with_suffix(".unfinished.npy")
    np.save(unfinished, values)
    unfinished.rename(file)


def _matrix(graph: Arrays, kind: Any) -> Any:
    from scipy import sparse

    indptr = np.asarray(graph.indptr, np.int32)
    return sparse.csr_array((np.ones(len(graph.indices), kind), graph.indices, indptr), shape=(graph.n, graph.n))


def pagerank(graph: Arrays) -> np.ndarray:
    matrix, degree, n = _matrix(graph, np.float64), graph.degree, graph.n
    rank = np.full(n, 1 / n)
    for _ in range(ITERATIONS):
        lost = rank[degree == 0].sum()
        rank = (1 - DAMPING + DAMPING * lost) / n + DAMPING * (matrix @ (rank / np.maximum(degree, 1)))
    return rank


def components(graph: Arrays) -> np.ndarray:
    """The least vertex of each component: take the least label around, then follow labels to their end."""
    label = np.arange(graph.n, dtype=np.int32)
    while True:
        least = np.minimum(label, nearest(graph, label))
        np.minimum.at(least, label, least.copy())  # the whole tree learns what its leaf found
        while not np.array_equal(least, least[least]):
            least = least[least]
        if np.array_equal(least, label):
            return label
        label = least


def betweenness(graph: Arrays, chosen: np.ndarray, linear_scaling: bool = False) -> np.ndarray:
    """Brandes, all sources at once, one product of the adjacency matrix with a dense one for each level. With linear
    scaling (Geisberger, Sanders, Schultes) what t adds to its parent p counts d(p) / d(t)."""
    matrix, k = _matrix(graph, np.float64), len(chosen)
    paths, depth = np.zeros((graph.n, k)), np.full((graph.n, k), -1, np.int32)
    paths[chosen, np.arange(k)] = 1
    depth[chosen, np.arange(k)] = 0
    level = 0
    while (depth == level).any():
        more = matrix @ np.where(depth == level, paths, 0)
        fresh = (depth < 0) & (more > 0)
        depth[fresh], paths[fresh] = level + 1, more[fresh]
        level += 1
    dependency = np.zeros((graph.n, k))
    for at in range(level - 1, 0, -1):
        share = np.divide(1 + dependency, paths, out=np.zeros_like(paths), where=depth == at)
        factor = (at - 1) / at if linear_scaling else 1
        dependency += np.where(depth == at - 1, factor * paths * (matrix @ share), 0)
    dependency[chosen, np.arange(k)] = 0
    return np.asarray(dependency.sum(axis=1))


def triangles(graph: Arrays) -> np.ndarray:
    """One number: the sum of (L L) .* L, the vertices ordered by degree to keep the products small."""
    from scipy import sparse

    place = np.argsort(np.argsort(-graph.degree, kind="stable"))
    source, target, _ = graph.upper()
    ends = np.sort(np.stack([place[source], place[target]]), axis=0)[::-1]
    lower = sparse.csr_array((np.ones(len(source), np.int32), tuple(ends)), shape=(graph.n, graph.n))
    lower.sort_indices()
    # Wedges of each row bound the size of its product.
    before = np.concatenate([[0], np.cumsum(np.diff(lower.indptr)[lower.indices], dtype=np.int64)])
    wedges = before[lower.indptr[1:]]
    cuts = [0, *np.unique(np.searchsorted(wedges, np.arange(1 << 27, wedges[-1], 1 << 27)) + 1), graph.n]
    total = 0
    for first, last in pairwise(cuts):
        rows = lower[first:last]
        total += int((rows @ lower).multiply(rows).sum())
    return np.array([total])


def same_partition(label: np.ndarray, expected: np.ndarray) -> None:
    _, representative, component = np.unique(expected, return_index=True, return_inverse=True)
    demand(np.array_equal(label, label[representative][component]), "a component is split")
    demand(len(np.unique(label[representative])) == len(representative), "components are joined")


def close(found: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    """Relative to each value, or to a thousandth of the mean where that is larger."""
    floor = 1e-3 * np.abs(expected).mean()
    error = float((np.abs(found - expected) / np.maximum(np.abs(expected), floor)).max())
    demand(error < tolerance, f"off by {error:.2g}")
