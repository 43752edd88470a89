"""What is right: slow, obvious definitions that every fast path is compared with."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

Edge = tuple[Any, ...]
"""(source, target, column values...)"""


def sort_key(vertex: Any) -> Any:
    """Ids are compared as numbers or as UTF-8 bytes."""
    return vertex.encode() if isinstance(vertex, str) else vertex


def kept_edges(
    edges: Iterable[Edge],
    *,
    undirected: bool = False,
    self_loops: str = "keep",
    duplicates: str | None = None,
    merge: str | None = None,
) -> Counter[Edge]:
    """The edges a store must hold, an undirected one with its smaller end first."""
    duplicates = duplicates or ("merge" if undirected or merge is not None else "keep")
    groups: dict[tuple[Any, Any], list[Sequence[Any]]] = defaultdict(list)
    for source, target, *values in edges:
        if self_loops == "drop" and source == target:
            continue
        ends = (source, target)
        if undirected and sort_key(target) < sort_key(source):
            ends = (target, source)
        groups[ends].append(values)
    if duplicates == "keep":
        return Counter((*ends, *values) for ends, rows in groups.items() for values in rows)
    rule = "first" if duplicates == "drop" else merge or "first"
    combine = {"first": lambda v: v[0], "sum": sum, "min": min, "max": max}[rule]
    return Counter((*ends, *(combine(column) for column in zip(*rows, strict=True))) for ends, rows in groups.items())


def arcs(edges: Counter[Edge], undirected: bool) -> Counter[tuple[Any, Any]]:
    """The arcs that edges make: an undirected edge two, a loop one."""
    found: Counter[tuple[Any, Any]] = Counter()
    for (source, target, *_), count in edges.items():
        found[source, target] += count
        if undirected and source != target:
            found[target, source] += count
    return found


def pagerank(
    vertices: Sequence[Any], links: Counter[tuple[Any, Any]], damping: float, iterations: int
) -> dict[Any, float]:
    """Power iteration as LDBC Graphalytics defines it."""
    n = len(vertices)
    out: Counter[Any] = Counter()
    for (source, _), count in links.items():
        out[source] += count
    rank = dict.fromkeys(vertices, 1 / n)
    for _ in range(iterations):
        dangling = sum(rank[v] for v in vertices if not out[v])
        new = dict.fromkeys(vertices, (1 - damping) / n + damping * dangling / n)
        for (source, target), count in links.items():
            new[target] += damping * rank[source] / out[source] * count
        rank = new
    return rank
