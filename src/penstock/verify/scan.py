"""The checker of SCAN: who is similar is found again by merging the sorted lists of both ends of each edge; cores,
clusters and hubs follow from that."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from penstock.errors import UsageError
from penstock.graph import Graph
from penstock.memory.device import kernel
from penstock.verify.common import Answer, Csr, arcs, checker, csr_of, wrong
from penstock.verify.components import flatten, unite
from penstock.verify.triangles import simple_edges


@checker
def check_scan(
    graph: Graph, table: pa.Table, *, epsilon: float = 0.5, mu: int = 2, similarity: str | None = None
) -> Iterator[str]:
    """Structural clustering: cores, the clusters that they make, those around them, and hubs."""
    answer = Answer(graph, table)
    cluster, core, hub = answer.vertices("cluster"), answer.numbers("core", bool), answer.numbers("hub", bool)
    if graph.vertices >= 1 << 31:
        raise UsageError(f"scan is checked in graphs of less than 2^31 vertices; this one has {graph.vertices:,}")
    low, high, _ = simple_edges(graph)
    one, other = _alike(graph, low, high, epsilon) if similarity is None else _marked(graph, similarity, epsilon)
    n, rank = graph.vertices, graph.ranks().astype(np.int64)
    similar = 1 + np.bincount(one, minlength=n) + np.bincount(other, minlength=n)
    yield from wrong(graph, core != (similar >= mu), f"does not say rightly whether it has {mu} similar vertices")
    core = similar >= mu
    # By rank, so that the root of a cluster, its smallest core, has the smallest id.
    root, both = np.arange(n, dtype=np.uint64), core[one] & core[other]
    unite(rank[one[both]].view(np.uint64), rank[other[both]].view(np.uint64), root)
    flatten(root)
    found = np.where(core, root[rank].astype(np.int64), n)
    for a, b in ((one, other), (other, one)):
        around = ~core[a] & core[b]
        np.minimum.at(found, a[around], found[b[around]])
    given = np.where(cluster < 0, n, rank[cluster])
    yield from wrong(graph, given != found, "is in another cluster")
    first, last = np.full(n, n), np.full(n, -1)
    for a, b in ((low, high), (high, low)):
        lost = (found[a] == n) & (found[b] < n)
        np.minimum.at(first, a[lost], found[b[lost]])
        np.maximum.at(last, a[lost], found[b[lost]])
    yield from wrong(graph, hub != (first < last), "does not say rightly whether it is a hub")


def _marked(graph: Graph, column: str, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """The ends of edges whose column says that they are similar, the smaller one first; parallel edges each."""
    if graph.directed:
        raise UsageError("similarity is a column of an undirected graph")
    if graph.store.direction("out").column_dtype(column).kind not in "uifb" or graph.columns[column].endswith("]"):
        raise UsageError(f"edge column {column!r} holds {graph.columns[column]}, which is no similarity")
    ends = [np.zeros((2, 0), np.int64)]
    for tail, head, values in arcs(graph, [column]):
        ends.append(np.stack([tail, head])[:, (tail < head) & (values[column] >= epsilon)])
    one, other = np.concatenate(ends, axis=1)
    return one, other


def _alike(graph: Graph, low: np.ndarray, high: np.ndarray, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """The ends of edges that have enough neighbours in common."""
    n = graph.vertices
    order = np.argsort(np.concatenate([low * n + high, high * n + low]))
    tails, heads = np.concatenate([low, high])[order], np.concatenate([high, low])[order]
    adjacency = csr_of(n, tails, heads)
    size = np.diff(adjacency.offsets.astype(np.int64)) + 1
    common = np.zeros(len(low), np.int64)
    _common(*Csr(adjacency.offsets, adjacency.neighbours), low, high, common)
    least = epsilon * np.sqrt(size[low].astype(float) * size[high].astype(float))
    alike = common + 2 >= least * (1 - 1e-12)
    return low[alike], high[alike]


@kernel()
def _common(offsets, neighbours, low, high, common):
    """How many neighbours both ends of each edge have: what their sorted lists share."""
    one = np.uint64(1)
    for k in range(low.size):
        u, v = np.uint64(low[k]), np.uint64(high[k])
        i, end, j, last = offsets[u], offsets[u + one], offsets[v], offsets[v + one]
        while i < end and j < last:
            if neighbours[i] < neighbours[j]:
                i += one
            elif neighbours[i] > neighbours[j]:
                j += one
            else:
                common[k] += 1
                i += one
                j += one


__all__ = ["check_scan"]
