"""What is right: slow, obvious definitions that every fast path is compared with."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from small import Edge, G, arcs, kept_edges, of, sampled, sort_key

__all__ = [
    "Edge",
    "G",
    "arcs",
    "betweenness",
    "bfs",
    "cdlp",
    "closeness",
    "cross_edges",
    "degree",
    "distribution",
    "egonet",
    "hits",
    "induced",
    "kcore",
    "kept_edges",
    "lcc",
    "levels",
    "neighborhood",
    "of",
    "pagerank",
    "ppr",
    "radius",
    "scan",
    "scc",
    "sort_key",
    "sssp",
    "triangles",
    "wcc",
]

# ---- ranks


def pagerank(
    g: G | Sequence[Any],
    links: Counter[tuple[Any, Any]] | None = None,
    damping: float = 0.85,
    max_iter: int = 100,
    *,
    tol: float = 1e-6,
    dangling: str = "spread",
    stop: str = "l1",
) -> dict[Any, float]:
    """Power iteration as LDBC Graphalytics defines it. Vertices and links may be given instead of a graph, which
    then makes `max_iter` steps."""
    if not isinstance(g, G):
        assert links is not None
        g, stop = G(g, list(links.elements()), columns={}), "fixed"
    even = {v: 1 / len(g) for v in g.vertices}
    return _power(g, even, damping, tol, max_iter, even if dangling == "spread" else {}, stop)


def ppr(g: G, source: Sequence[Any], damping: float = 0.85, tol: float = 1e-6, max_iter: int = 100) -> dict[Any, float]:
    """PageRank whose surfer restarts at the sources, also from sinks."""
    sources = set(source)
    home = {v: 1 / len(sources) if v in sources else 0.0 for v in g.vertices}
    return _power(g, home, damping, tol, max_iter, home, "l1")


def _power(
    g: G, start: dict[Any, float], damping: float, tol: float, max_iter: int, sink: dict[Any, float], stop: str
) -> dict[Any, float]:
    """Restart as `start` says, and share out the rank of sinks as `sink` says."""
    rank = dict(start)
    for _ in range(max_iter):
        lost = sum(rank[v] for v in g.vertices if not g.out[v])
        new = {v: (1 - damping) * start[v] + damping * lost * sink.get(v, 0.0) for v in g.vertices}
        for (u, v), count in g.links.items():
            new[v] += damping * rank[u] / len(g.out[u]) * count
        change = [abs(new[v] - rank[v]) for v in g.vertices]
        rank = new
        if _settled(change, tol, stop):
            break
    return rank


def _settled(change: list[float], tol: float, stop: str) -> bool:
    if stop == "l1":
        return sum(change) < tol
    if stop == "max":
        return max(change, default=0.0) < tol
    return stop == "vertex" and all(c <= tol for c in change)


def hits(g: G, tol: float = 1e-8, max_iter: int = 100) -> dict[Any, tuple[float, float]]:
    """Hubs and authorities by power iteration, each of sum 1."""
    hub = authority = {v: 1 / len(g) for v in g.vertices}
    for _ in range(max_iter if g.arcs else 0):
        authority = _shares({v: sum(hub[u] for u in g.into[v]) for v in g.vertices})
        new = _shares({v: sum(authority[w] for w in g.out[v]) for v in g.vertices})
        change = sum(abs(new[v] - hub[v]) for v in g.vertices)
        hub = new
        if change < tol:
            break
    return {v: (hub[v], authority[v]) for v in g.vertices}


def _shares(values: dict[Any, float]) -> dict[Any, float]:
    total = sum(values.values())
    return {v: value / total for v, value in values.items()}


# ---- paths


def levels(
    neighbours: Mapping[Any, Iterable[Any]], sources: Iterable[Any], deepest: int | None = None
) -> dict[Any, int]:
    """How many arcs each vertex that is reached lies from the nearest source."""
    level = dict.fromkeys(sources, 0)
    depth, frontier = 0, set(level)
    while frontier and depth != deepest:
        depth += 1
        frontier = {w for v in frontier for w in neighbours[v]} - level.keys()
        level.update(dict.fromkeys(frontier, depth))
    return level


def _parents(g: G, level: dict[Any, int], into: Mapping[Any, Iterable[Any]]) -> dict[Any, Any]:
    """Of the neighbours one level up, the one of smallest internal number; a source is its own parent."""
    return {
        v: min((u for u in into[v] if level.get(u) == depth - 1), key=g.numbers.__getitem__) if depth else v
        for v, depth in level.items()
    }


def bfs(g: G, source: Sequence[Any], max_depth: int | None = None) -> dict[Any, tuple[int | None, Any]]:
    """Levels and parents along arcs."""
    level = levels(g.out, source, max_depth)
    parent = _parents(g, level, g.into)
    return {v: (level.get(v), parent.get(v)) for v in g.vertices}


def sssp(g: G, source: Sequence[Any], weight: str = "weight", parents: bool = False) -> dict[Any, Any]:
    """Shortest distances by relaxing all arcs until nothing changes, and a parent on a shortest path."""
    column = 2 + list(g.columns).index(weight)
    distance = dict.fromkeys(source, g.columns[weight](0))
    changed = True
    while changed:
        changed = False
        for arc in g.arcs:
            u, v = arc[:2]
            if u in distance and (v not in distance or distance[u] + arc[column] < distance[v]):
                distance[v] = distance[u] + arc[column]
                changed = True
    if not parents:
        return {v: distance.get(v) for v in g.vertices}
    # Arcs of weight 0 may form circles, so it is the fewest tight arcs from a source that make a parent.
    tight: dict[Any, list[Any]] = {v: [] for v in g.vertices}
    tight_into: dict[Any, list[Any]] = {v: [] for v in g.vertices}
    for arc in g.arcs:
        u, v = arc[:2]
        if u in distance and distance[u] + arc[column] == distance[v]:
            tight[u].append(v)
            tight_into[v].append(u)
    parent = _parents(g, levels(tight, source), tight_into)
    return {v: (distance.get(v), parent.get(v)) for v in g.vertices}


def betweenness(
    g: G,
    samples: int | None = None,
    sources: Sequence[Any] | None = None,
    normalized: bool = True,
    seed: int = 0,
) -> dict[Any, float]:
    """What share of the shortest paths between others leads through a vertex; parallel arcs are different paths."""
    n, scale = len(g), 1.0
    chosen = sources if sources is not None else g.vertices if samples is None else sampled(g, samples, seed)
    if sources is None:
        scale = (0.5 if g.undirected else 1.0) * (n / samples if samples else 1.0)
        if normalized and n > 2:
            scale /= (n - 1) * (n - 2) / (2 if g.undirected else 1)
    total = dict.fromkeys(g.vertices, 0.0)
    for source in chosen:
        for v, share in _dependencies(g, source).items():
            total[v] += share * scale
    return total


def _dependencies(g: G, source: Any) -> dict[Any, float]:
    """Brandes 2001: dependency(u) = sum over next vertices v of paths(u) / paths(v) * (1 + dependency(v))."""
    level = levels(g.out, [source])
    order = sorted(level, key=level.__getitem__)
    paths = dict.fromkeys(order, 0)
    paths[source] = 1
    for u in order:
        for v in g.out[u]:
            if level[v] == level[u] + 1:
                paths[v] += paths[u]
    dependency = dict.fromkeys(order, 0.0)
    for u in reversed(order):
        for v in g.out[u]:
            if level[v] == level[u] + 1:
                dependency[u] += paths[u] / paths[v] * (1 + dependency[v])
    dependency.pop(source)
    return dependency


def closeness(g: G, samples: int | None = None, harmonic: bool = False, seed: int = 0) -> dict[Any, float]:
    """How near the vertices that reach a vertex are to it, by Wasserman and Faust; or the sum of 1 / distance."""
    n = len(g)
    chosen = g.vertices if samples is None else sampled(g, samples, seed)
    scale = 1.0 if samples is None else n / samples
    distances: dict[Any, list[int]] = {v: [] for v in g.vertices}
    for u in chosen:
        for v, distance in levels(g.out, [u]).items():
            if v != u:
                distances[v].append(distance)
    if harmonic:
        return {v: scale * sum(1 / d for d in found) for v, found in distances.items()}
    return {
        v: len(found) / sum(found) * (scale * len(found)) / (n - 1) if found else 0.0 for v, found in distances.items()
    }


def radius(g: G, lanes: int = 32, max_iter: int = 256, seed: int = 1) -> dict[Any, int]:
    """HADI: after how many steps the estimate of what a vertex reaches is within nine tenths of its last value."""
    bits = {v: [1 << _first_bit(seed, lane, g.numbers[v]) for lane in range(lanes)] for v in g.vertices}
    history = [bits]
    for _ in range(max_iter):
        before = history[-1]
        after = {v: [_any(before[u][lane] for u in (v, *g.out[v])) for lane in range(lanes)] for v in g.vertices}
        if after == before:
            break
        history.append(after)
    estimates = [{v: 2 ** (sum(map(_lowest_zero, b)) / lanes) / 0.77351 for v, b in step.items()} for step in history]
    last = estimates[-1]
    return {v: next(h for h, now in enumerate(estimates) if now[v] >= 0.9 * last[v]) for v in g.vertices}


def _any(words: Iterable[int]) -> int:
    found = 0
    for word in words:
        found |= word
    return found


def _lowest_zero(word: int) -> int:
    return next(i for i in range(33) if not word >> i & 1)


def _first_bit(seed: int, lane: int, number: int) -> int:
    """Bit i for half of those for which it is not a lower one: as many ones as a hash ends with."""
    word = 0
    for part in (seed, number & 0xFFFFFFFF, number >> 32, lane):
        word ^= part
        for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
            word = (word ^ word >> shift) * factor & 0xFFFFFFFF
        word ^= word >> 16
    return min(_lowest_zero(word), 31)


# ---- parts


def wcc(g: G) -> dict[Any, Any]:
    """The smallest id that is connected with a vertex, whichever way the arcs point."""
    component: dict[Any, Any] = {}
    for v in g.vertices:
        if v not in component:
            component.update(dict.fromkeys(levels(g.around, [v]), v))
    return {v: component[v] for v in g.vertices}


def scc(g: G) -> dict[Any, Any]:
    """The smallest id that a vertex reaches and is reached from."""
    component: dict[Any, Any] = {}
    for v in g.vertices:
        if v not in component:
            component.update(dict.fromkeys(levels(g.out, [v]).keys() & levels(g.into, [v]).keys(), v))
    return {v: component[v] for v in g.vertices}


def cdlp(g: G, max_iter: int = 10) -> dict[Any, Any]:
    """Everyone takes the commonest label around, all at once; of equally common ones the smallest id."""
    label = {v: v for v in g.vertices}
    for _ in range(max_iter):
        label = {v: _commonest(label[w] for w in g.around[v]) if g.around[v] else label[v] for v in g.vertices}
    return label


def _commonest(labels: Iterable[Any]) -> Any:
    counts = Counter(labels)
    most = max(counts.values())
    return min((label for label, count in counts.items() if count == most), key=sort_key)


def kcore(g: G) -> dict[Any, int]:
    """The largest k such that a vertex is in a part where all have k arcs or more, both ways and without loops."""
    around = {v: [w for w in g.around[v] if w != v] for v in g.vertices}
    degree = {v: len(around[v]) for v in g.vertices}
    core: dict[Any, int] = {}
    k = 0
    while len(core) < len(g):
        leaving = [v for v in g.vertices if v not in core and degree[v] <= k]
        for v in leaving:
            core[v] = k
            for w in around[v]:
                degree[w] -= 1
        if not leaving:
            k += 1
    return {v: core[v] for v in g.vertices}


# ---- neighbours


def degree(g: G) -> dict[Any, tuple[int, int, int]]:
    """Arcs out, arcs in, and both; the arcs of an undirected graph are the same ones."""
    return {v: (len(g.out[v]), len(g.into[v]), len(g.around[v])) for v in g.vertices}


def distribution(g: G) -> dict[int, int]:
    """How many vertices have each degree."""
    return dict(Counter(both for _, _, both in degree(g).values()))


def _sets(g: G, neighbours: Mapping[Any, Iterable[Any]]) -> dict[Any, set[Any]]:
    return {v: set(neighbours[v]) - {v} for v in g.vertices}


def triangles(g: G) -> dict[Any, int]:
    """How many triangles a vertex is a corner of, in the simple undirected graph."""
    around = _sets(g, g.around)
    return {v: sum(len(around[v] & around[w]) for w in around[v]) // 2 for v in g.vertices}


def lcc(g: G) -> dict[Any, float]:
    """What share of the arcs that could be among a vertex's neighbours are there (LDBC Graphalytics)."""
    around, out = _sets(g, g.around), _sets(g, g.out)
    return {
        v: sum(len(near & out[u]) for u in near) / (len(near) * (len(near) - 1)) if len(near) > 1 else 0.0
        for v, near in around.items()
    }


def scan(
    g: G, epsilon: float = 0.5, mu: int = 2, similarity: str | None = None
) -> dict[Any, tuple[Any | None, bool, bool]]:
    """Clusters of cores that are similar and of those around them, and hubs between them (Xu et al. 2007)."""
    around = _sets(g, g.around)
    similar = _alike(g, around, epsilon) if similarity is None else _marked(g, similarity, epsilon)
    cores = {v for v in g.vertices if 1 + len(similar[v]) >= mu}
    joined = {v: [w for w in similar[v] if w in cores] if v in cores else [] for v in g.vertices}
    cluster: dict[Any, Any] = {}
    for v in g.vertices:
        if v in cores and v not in cluster:
            cluster.update(dict.fromkeys(levels(joined, [v]), v))
    inside = dict(cluster)
    for v in g.vertices:
        near = [cluster[w] for w in similar[v] if w in cores]
        if v not in cores and near:
            inside[v] = min(near, key=sort_key)
    hubs = {v for v in g.vertices if v not in inside and len({inside[w] for w in around[v] if w in inside}) > 1}
    return {v: (inside.get(v), v in cores, v in hubs) for v in g.vertices}


def _alike(g: G, around: dict[Any, set[Any]], epsilon: float) -> dict[Any, list[Any]]:
    """Neighbours that have enough of their neighbours in common, themselves among them, up to rounding."""
    with_self = {v: around[v] | {v} for v in g.vertices}

    def are(v: Any, w: Any) -> bool:
        least = epsilon * math.sqrt(len(with_self[v]) * len(with_self[w]))
        return len(with_self[v] & with_self[w]) >= least * (1 - 1e-12)

    return {v: [w for w in around[v] if are(v, w)] for v in g.vertices}


def _marked(g: G, column: str, epsilon: float) -> dict[Any, list[Any]]:
    """The other ends of edges whose column says so."""
    at = 2 + list(g.columns).index(column)
    found: dict[Any, list[Any]] = {v: [] for v in g.vertices}
    for arc in g.arcs:
        if arc[0] != arc[1] and arc[at] >= epsilon:
            found[arc[0]].append(arc[1])
    return found


def neighborhood(g: G, source: Sequence[Any], hops: int = 1) -> dict[Any, int]:
    """The vertices within some hops of the sources, and how many it takes."""
    level = levels(g.out, source, hops)
    return {v: level[v] for v in g.vertices if v in level}


def egonet(g: G, source: Sequence[Any], hops: int = 1) -> Counter[Edge]:
    """The edges among the vertices within some hops."""
    return induced(g, list(neighborhood(g, source, hops)))


def induced(g: G, vertices: Sequence[Any]) -> Counter[Edge]:
    """The edges whose ends are both among these vertices."""
    chosen = set(vertices)
    return Counter({edge: count for edge, count in g.kept.items() if chosen.issuperset(edge[:2])})


def cross_edges(g: G, vertices: Sequence[Any], others: Sequence[Any] | None = None) -> Counter[Edge]:
    """The edges, of either direction, with one end among these vertices and the other outside, or among others."""
    chosen = set(vertices)
    rest = set(g.vertices) - chosen if others is None else set(others)
    return Counter(
        {
            edge: count
            for edge, count in g.kept.items()
            if (edge[0] in chosen and edge[1] in rest) or (edge[1] in chosen and edge[0] in rest)
        }
    )
