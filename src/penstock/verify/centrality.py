"""Checkers of centralities by shortest paths: breadth first from one vertex after the other, as far as that is work
for a minute. Beyond it a sample is looked at, or the check is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import UsageError
from penstock.graph import Graph
from penstock.memory.device import kernel
from penstock.options import whole
from penstock.verify.common import Answer, checker, csr, hops, sampled, source_numbers, wrong

_WORK = 2_000_000_000
"""Arcs that are looked at: about a minute."""


@checker
def check_betweenness(
    graph: Graph,
    table: pa.Table,
    *,
    samples: int | None = None,
    sources: Any = None,
    normalized: bool = True,
    seed: int = 0,
    tol: float = 1e-6,
) -> Iterator[str]:
    """Betweenness: Brandes' algorithm from every vertex, from the sampled ones, or from those that are named."""
    answer, n = Answer(graph, table), graph.vertices
    given = answer.numbers("betweenness")
    scale = 1.0
    if sources is not None:
        roots = source_numbers(graph, sources)
    else:
        roots = np.arange(n) if samples is None else sampled(graph, samples, seed)
        pairs = (n - 1) * (n - 2) if normalized and n > 2 else 1
        scale = n / max(len(roots), 1) / pairs
        # Each undirected pair is seen from both ends; normalised, half as many pairs are divided by.
        scale *= 0.5 if not graph.directed and not (normalized and n > 2) else 1
    _affordable(graph, len(roots), "betweenness", "samples or sources")
    total = np.zeros(n)
    brandes(*csr(graph), roots.astype(np.uint64), total)
    expected = total * scale
    tol = max(tol, 1e-3) if answer.is_single("betweenness") else tol
    off = ~(np.abs(given - expected) <= tol * np.maximum(expected, expected.max(initial=0) * 1e-6))
    yield from wrong(graph, off, "has another betweenness than Brandes' algorithm gives")


@checker
def check_closeness(
    graph: Graph,
    table: pa.Table,
    *,
    samples: int | None = None,
    harmonic: bool = False,
    seed: int = 0,
    tol: float = 1e-6,
) -> Iterator[str]:
    """Closeness: of every vertex, backwards from it; of as many as can be looked at where the graph is large."""
    answer, n = Answer(graph, table), graph.vertices
    given = answer.numbers("closeness")
    yield from wrong(graph, ~(given >= 0), "has a negative closeness, or none")
    reached, far, near = np.zeros(n), np.zeros(n), np.zeros(n)
    looked = np.arange(n)
    if samples is None:
        enough = int(max(1, min(n, _WORK // max(graph.arcs, 1))))
        if enough < n:
            looked = np.sort(np.random.default_rng(whole("seed", seed, 0)).choice(n, enough, replace=False))
        distances_to(*csr(graph, "in"), looked.astype(np.uint64), reached, far, near)
        scale = 1.0
    else:
        roots = sampled(graph, samples, seed)
        _affordable(graph, len(roots), "closeness", "fewer samples")
        distances_from(*csr(graph), roots.astype(np.uint64), reached, far, near)
        scale = n / samples
    if harmonic:
        expected = near * scale
    else:
        part = reached * scale / max(n - 1, 1)
        expected = np.divide(reached, far, out=np.zeros(n), where=far > 0) * part
    tol = max(tol, 1e-4) if answer.is_single("closeness") else tol
    off = np.zeros(n, bool)
    off[looked] = ~(np.abs(given - expected)[looked] <= tol * np.maximum(expected[looked], 1e-12))
    yield from wrong(graph, off, "has another closeness than its distances give")


@checker
def check_radius(graph: Graph, table: pa.Table) -> Iterator[str]:
    """Radii are estimates; this only looks whether they can be distances at all."""
    radius = Answer(graph, table).numbers("radius")
    yield from wrong(graph, ~((radius >= 0) & (radius <= graph.vertices)), "has a radius below 0 or above |V|")


def _affordable(graph: Graph, roots: int, what: str, way_out: str) -> None:
    if roots * graph.arcs > _WORK:
        raise UsageError(
            f"checking {what} from {roots:,} vertices looks at {roots * graph.arcs:.1e} arcs, more than {_WORK:.0e}: "
            f"compute and check it with {way_out}"
        )


@kernel()
def brandes(offsets, neighbours, roots, total):
    """Add the dependency of each root on every vertex. Parallel arcs are different paths; a loop is on none."""
    one = np.uint64(1)
    n = offsets.size - 1
    level, queue = np.full(n, -1, np.int64), np.empty(n, np.uint64)
    paths, share = np.zeros(n), np.zeros(n)
    for r in range(roots.size):
        root = roots[r]
        level[root] = 0
        queue[0] = root
        count = hops(offsets, neighbours, level, queue, 1)
        paths[root] = 1.0
        for i in range(count):
            u = queue[i]
            for a in range(offsets[u], offsets[u + one]):
                v = np.uint64(neighbours[a])
                if level[v] == level[u] + 1:
                    paths[v] += paths[u]
        for i in range(count):
            u = queue[count - one - np.uint64(i)]
            for a in range(offsets[u], offsets[u + one]):
                v = np.uint64(neighbours[a])
                if level[v] == level[u] + 1:
                    share[u] += paths[u] / paths[v] * (1.0 + share[v])
            if u != root:
                total[u] += share[u]
        for i in range(count):
            u = queue[i]
            level[u] = -1
            paths[u] = 0.0
            share[u] = 0.0


@kernel()
def distances_to(offsets, neighbours, vertices, reached, far, near):
    """Over incoming arcs: how many reach each vertex, the sum of their distances and of 1 / distance."""
    n = offsets.size - 1
    level, queue = np.full(n, -1, np.int64), np.empty(n, np.uint64)
    for k in range(vertices.size):
        v = vertices[k]
        level[v] = 0
        queue[0] = v
        count = hops(offsets, neighbours, level, queue, 1)
        for i in range(count):
            u = queue[i]
            if level[u] > 0:
                reached[v] += 1
                far[v] += level[u]
                near[v] += 1.0 / level[u]
            level[u] = -1


@kernel()
def distances_from(offsets, neighbours, roots, reached, far, near):
    """Over outgoing arcs: the same sums at the other end, over these roots only."""
    n = offsets.size - 1
    level, queue = np.full(n, -1, np.int64), np.empty(n, np.uint64)
    for r in range(roots.size):
        level[roots[r]] = 0
        queue[0] = roots[r]
        count = hops(offsets, neighbours, level, queue, 1)
        for i in range(count):
            v = queue[i]
            if level[v] > 0:
                reached[v] += 1
                far[v] += level[v]
                near[v] += 1.0 / level[v]
            level[v] = -1


__all__ = ["check_betweenness", "check_closeness", "check_radius"]
