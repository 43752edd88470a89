"""Checkers of components: found again, one arc after the other, by union-find and by Tarjan's depth-first search."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from penstock.graph import Graph
from penstock.memory.device import kernel
from penstock.verify.common import Answer, arcs, checker, csr, wrong


@checker
def check_wcc(graph: Graph, table: pa.Table) -> Iterator[str]:
    """Weakly connected components: no edge between two, each called by its smallest id, and as many as there are."""
    component = Answer(graph, table).vertices("component")
    if (component < 0).any():
        yield from wrong(graph, component < 0, "has no component")
        return
    rank = graph.ranks().astype(np.uint64)
    # By rank, so that the root of a set, its smallest member, is the smallest id.
    root = np.arange(graph.vertices, dtype=np.uint64)
    crossed = np.zeros(graph.vertices, bool)
    for tail, head, _ in arcs(graph):
        crossed[tail[component[tail] != component[head]]] = True
        unite(rank[tail], rank[head], root)
    flatten(root)
    yield from wrong(graph, crossed, "has an edge to another component")
    yield from _named(graph, component, rank, root[rank])


@checker
def check_scc(graph: Graph, table: pa.Table) -> Iterator[str]:
    """Strongly connected components: those of Tarjan's search, each called by its smallest id."""
    component = Answer(graph, table).vertices("component")
    if (component < 0).any():
        yield from wrong(graph, component < 0, "has no component")
        return
    rank = graph.ranks().astype(np.uint64)
    number = tarjan(*csr(graph))
    smallest = np.full(graph.vertices, graph.vertices, np.uint64)
    np.minimum.at(smallest, number, rank)
    yield from _named(graph, component, rank, smallest[number])


def _named(graph: Graph, component: np.ndarray, rank: np.ndarray, expected: np.ndarray) -> Iterator[str]:
    """Names against the smallest rank of each vertex's component."""
    given = rank[component]
    yield from wrong(graph, given > rank, "has a smaller id than its component is called by")
    found, right = len(np.unique(given)), len(np.unique(expected))
    if found != right:
        yield f"there are {found:,} components in the result and {right:,} in the graph"
    yield from wrong(graph, given != expected, "is not called by the smallest id of its component")


@kernel()
def _find(v, root):
    while root[v] != v:
        root[v] = root[root[v]]
        v = root[v]
    return v


@kernel()
def unite(tails, heads, root):
    """Join the sets of both ends: the smaller root is that of both."""
    for a in range(tails.size):
        u, v = _find(tails[a], root), _find(heads[a], root)
        if u < v:
            root[v] = u
        elif v < u:
            root[u] = v


@kernel()
def flatten(root):
    """Give each member its root."""
    for v in range(np.uint64(root.size)):
        root[v] = _find(v, root)


@kernel()
def tarjan(offsets, neighbours):
    """The number of each vertex's strongly connected component. The call stack is an array: paths are long."""
    one = np.uint64(1)
    n = np.uint64(offsets.size - 1)
    open_index = np.zeros(n, np.uint64)  # 0: not seen
    low = np.zeros(n, np.uint64)
    component = np.full(n, -1, np.int64)
    at = offsets[:-1].copy()
    path, held = np.empty(n, np.uint64), np.empty(n, np.uint64)
    seen = np.uint64(0)
    held_count = np.uint64(0)
    components = 0
    for start in range(n):
        if open_index[start] != 0:
            continue
        depth = one
        path[0] = start
        while depth > 0:
            v = path[depth - one]
            if open_index[v] == 0:
                seen += one
                open_index[v] = seen
                low[v] = seen
                held[held_count] = v
                held_count += one
            deeper = False
            while at[v] < offsets[v + one]:
                w = np.uint64(neighbours[at[v]])
                if open_index[w] == 0:
                    path[depth] = w
                    depth += one
                    deeper = True
                    break
                if component[w] < 0:
                    low[v] = min(low[v], low[w])
                at[v] += one
            if deeper:
                continue
            if low[v] == open_index[v]:
                while True:
                    held_count -= one
                    w = held[held_count]
                    component[w] = components
                    if w == v:
                        break
                components += 1
            depth -= one
    return component


__all__ = ["check_scc", "check_wcc", "flatten", "unite"]
