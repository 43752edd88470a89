"""Checkers of degrees and of the cores that degrees define."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from penstock.graph import Graph
from penstock.memory.device import kernel
from penstock.verify.common import Answer, arcs, checker, csr, wrong


@checker
def check_degree(graph: Graph, table: pa.Table) -> Iterator[str]:
    """Degrees: every arc counted at both its ends."""
    answer, n = Answer(graph, table), graph.vertices
    out, into = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for tail, head, _ in arcs(graph):
        out += np.bincount(tail, minlength=n)
        into += np.bincount(head, minlength=n)
    expected = {"out_degree": out, "in_degree": into, "degree": out + into if graph.directed else out}
    for column, values in expected.items():
        yield from wrong(graph, answer.numbers(column, np.int64) != values, f"has another {column}")


@checker
def check_kcore(graph: Graph, table: pa.Table) -> Iterator[str]:
    """Cores: enough neighbours in the same or a higher core, and none higher than peeling gives."""
    core = Answer(graph, table).numbers("core", np.int64)
    if (core < 0).any():
        yield from wrong(graph, core < 0, "has a negative core")
        return
    support = np.zeros(graph.vertices, np.int64)
    for tail, head, _ in arcs(graph):
        proper = tail != head
        for here, there in ((tail, head), (head, tail)) if graph.directed else ((tail, head),):
            kept = proper & (core[there] >= core[here])
            support += np.bincount(here[kept], minlength=graph.vertices)
    yield from wrong(graph, support < core, "has fewer arcs into its core than its number")
    yield from wrong(graph, peel(*csr(graph, "both", loops=False)) != core, "has another core than peeling gives")


@kernel()
def peel(offsets, neighbours):
    """Batagelj and Zaversnik: vertices in bins by the degree that is left; the smallest goes, its neighbours move."""
    one = np.uint64(1)
    n = np.uint64(offsets.size - 1)
    left = np.empty(n, np.int64)
    most = 0
    for v in range(n):
        left[v] = np.int64(offsets[v + one] - offsets[v])
        most = max(most, left[v])
    start = np.zeros(most + 2, np.uint64)  # where each bin begins in `order`
    for v in range(n):
        start[left[v] + 1] += one
    for d in range(most + 1):
        start[d + 1] += start[d]
    order, place = np.empty(n, np.uint64), np.empty(n, np.uint64)
    free = start[:-1].copy()
    for v in range(n):
        place[v] = free[left[v]]
        order[place[v]] = v
        free[left[v]] += one
    for i in range(n):
        v = order[i]
        for a in range(offsets[v], offsets[v + one]):
            u = np.uint64(neighbours[a])
            if left[u] > left[v]:
                # Swap u with the first of its bin, then move the border past it.
                first = start[left[u]]
                other = order[first]
                order[first], order[place[u]] = u, other
                place[other], place[u] = place[u], first
                start[left[u]] += one
                left[u] -= 1
    return left


__all__ = ["check_degree", "check_kcore"]
