"""Checks of results on graphs too big for `penstock.verify`: the same rules over flat arrays, on all cores.

All graphs here are symmetrised, so what enters a vertex also leaves it. Each check returns how many vertices break
which rule, and nothing if none does.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from penstock.config import available_threads
from penstock.graph import Graph
from penstock.memory.device import kernel
from penstock.memory.topology import Resident

FAR = np.uint32(0xFFFFFFFF)
_LIGHT = 1e-3
"""How far all ranks of float32 together may be from those of float64; see `penstock.verify.ranking`."""


def _over(arcs: Resident, work: Any, *args: Any) -> np.ndarray:
    """A kernel over chunks of vertices of about equal arcs; what it counts, added up."""
    cuts = arcs.cuts
    with ThreadPoolExecutor(available_threads()) as team:
        found = team.map(
            lambda k: work(cuts[k], cuts[k + 1], arcs.offsets, arcs.neighbours, *args), range(len(cuts) - 1)
        )
        return np.sum(list(found), axis=0)


def _named(counts: np.ndarray, *names: str) -> dict[str, int]:
    return {name: int(count) for name, count in zip(names, counts, strict=True) if count}


# ---- breadth-first search


@kernel()
def _bfs(lo, hi, offsets, neighbours, level, parent, source):
    far = np.uint32(0xFFFFFFFF)
    unreached = steep = strange = root = 0
    for v in range(lo, hi):
        mine = level[v]
        if v == source:
            root += mine != 0 or parent[v] != source
        elif mine == 0:
            root += 1
        missed = below = False
        least = far
        for a in range(offsets[v], offsets[v + np.uint64(1)]):
            u = neighbours[a]
            theirs = level[u]
            if theirs == far:
                continue
            missed |= mine == far
            below |= mine != far and mine > theirs + np.uint32(1)
            if theirs + np.uint32(1) == mine and u < least:
                least = u
        unreached += missed
        steep += below
        if v != source:
            strange += parent[v] != (least if mine != far else far)
    return np.array([root, unreached, steep, strange])


def bfs(arcs: Resident, level: np.ndarray, parent: np.ndarray, source: int) -> dict[str, int]:
    """Graph500's rules for every arc, and of the right parents the first."""
    found = _over(arcs, _bfs, level.astype(np.uint32), parent.astype(np.uint32), np.uint64(source))
    return _named(found, "level 0", "unreached beside a reached one", "level too far", "parent")


# ---- shortest paths


@kernel()
def _sssp(lo, hi, offsets, neighbours, weights, distance, parent, source):
    none = np.uint32(0xFFFFFFFF)
    long = strange = root = 0
    for v in range(lo, hi):
        mine = distance[v]
        if v == source:
            root += mine != 0 or parent[v] != source
        above = parent[v]
        shorter = explained = False
        for a in range(offsets[v], offsets[v + np.uint64(1)]):
            u = neighbours[a]
            path = distance[u] + weights[a]
            shorter |= path < mine
            explained |= u == above and path == mine and distance[u] < mine
        long += shorter
        if v != source:
            strange += (above != none) if mine == np.inf else not explained
    return np.array([root, long, strange])


def sssp(arcs: Resident, distance: np.ndarray, parent: np.ndarray, source: int) -> dict[str, int]:
    """No arc makes a path shorter, and every distance is its parent's and one arc's. All weights are positive, so
    parents come nearer and nearer to the source, and every distance is that of a path. `arcs` has the weights."""
    found = _over(arcs, _sssp, arcs.values[0], distance, parent.astype(np.uint32), np.uint64(source))
    return _named(found, "source", "an arc makes it shorter", "parent")


# ---- components


@kernel()
def _crossed(lo, hi, offsets, neighbours, component):
    crossed = 0
    for v in range(lo, hi):
        other = False
        for a in range(offsets[v], offsets[v + np.uint64(1)]):
            other |= component[neighbours[a]] != component[v]
        crossed += other
    return np.array([crossed])


@kernel()
def _find(v, root):
    while root[v] != v:
        root[v] = root[root[v]]
        v = root[v]
    return v


@kernel()
def _roots(offsets, neighbours, reached, root):
    """Sets of the vertices that were not reached, by union-find; returns how many there are."""
    n = np.uint64(root.size)
    for v in range(n):
        if not reached[v]:
            for a in range(offsets[v], offsets[v + np.uint64(1)]):
                x, y = _find(v, root), _find(np.uint64(neighbours[a]), root)
                if x < y:
                    root[y] = x
                elif y < x:
                    root[x] = y
    count = 0
    for v in range(n):
        count += not reached[v] and root[v] == v
    return count


@kernel()
def _unnamed(component, ids, smallest, reached):
    """How many are not called by the smallest id of their component; how many components nobody reached is in."""
    n = np.uint64(component.size)
    for v in range(n):
        c = component[v]
        smallest[c] = min(smallest[c], ids[v])
    bad = apart = 0
    for v in range(n):
        c = component[v]
        bad += ids[c] != smallest[c]
        apart += c == v and not reached[v]
    return bad, apart


def wcc(graph: Graph, arcs: Resident, component: np.ndarray, level: np.ndarray) -> dict[str, int]:
    """No arc between two components; each called by its smallest id; each connected. That of the source of a search
    is, if its levels are right and reach all of it; the few vertices elsewhere are united one arc after the other."""
    component, reached = component.astype(np.uint64), level.astype(np.uint32) != FAR
    ids = graph.store.ids.values.read(0, graph.store.active).astype(np.int64)
    bad, apart = _unnamed(component, ids, np.full(len(ids), np.iinfo(np.int64).max), reached)
    split = len(np.unique(component[reached])) - 1 + int(reached[component[~reached]].sum())
    sets = _roots(arcs.offsets, arcs.neighbours, reached, np.arange(len(component), dtype=np.uint64))
    found = [*_over(arcs, _crossed, component), bad, split, abs(sets - apart)]
    return _named(
        np.array(found), "an arc to another component", "not called by the smallest id", "not reached", "not connected"
    )


# ---- PageRank


@kernel()
def _gather(lo, hi, offsets, neighbours, message, total):
    for v in range(lo, hi):
        held = 0.0
        for a in range(offsets[v], offsets[v + np.uint64(1)]):
            held += message[neighbours[a]]
        total[v] = held
    return np.zeros(1, np.int64)


def pagerank(graph: Graph, arcs: Resident, rank: np.ndarray, iterations: int, damping: float = 0.85) -> dict[str, Any]:
    """As many iterations again, in float64: by how much all ranks together differ."""
    n, active = graph.vertices, graph.store.active
    degree = np.diff(arcs.offsets).astype(np.float64)
    mine, alone, total = np.full(active, 1 / n), 1 / n, np.empty(active)
    for _ in range(iterations):
        _over(arcs, _gather, mine / degree, total)
        spread = (n - active) * alone / n
        mine, alone = (1 - damping) / n + damping * (total + spread), (1 - damping) / n + damping * spread
    off = float(np.abs(mine - rank).sum())
    return {} if off < _LIGHT else {"ranks differ in all by": off}


def settled(found: dict[str, Any]) -> bool:
    """True, or an error that says what is wrong."""
    if found:
        raise AssertionError("wrong: " + ", ".join(f"{name} {count}" for name, count in found.items()))
    return True
