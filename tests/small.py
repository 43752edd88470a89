"""Graphs small enough to be obvious: which edges a store must hold, and the arcs they make."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from penstock.graph import Graph

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
    rules: dict[str, Callable[[Sequence[Any]], Any]] = {"first": lambda v: v[0], "sum": sum, "min": min, "max": max}
    combine = rules[rule]
    return Counter((*ends, *(combine(column) for column in zip(*rows, strict=True))) for ends, rows in groups.items())


def arcs(edges: Counter[Edge], undirected: bool) -> Counter[tuple[Any, Any]]:
    """The arcs that edges make: an undirected edge two, a loop one."""
    found: Counter[tuple[Any, Any]] = Counter()
    for (source, target, *_), count in edges.items():
        found[source, target] += count
        if undirected and source != target:
            found[target, source] += count
    return found


@dataclass(frozen=True)
class G:
    """A graph small enough to be obvious: ids, and edges as the user gave them."""

    vertices: Sequence[Any]
    """All ids; ends of edges that are missing here are added."""
    edges: Sequence[Edge]
    undirected: bool = False
    numbers: Mapping[Any, int] = field(default_factory=dict)
    """Internal numbers, which decide between equal parents and which vertices are sampled. By default the order of
    the vertices."""
    columns: Mapping[str, type] = field(default_factory=lambda: {"weight": int})
    """The names and types of the values that follow the ends of an edge."""
    duplicates: str | None = None
    """As `kept_edges` takes it."""

    def __post_init__(self) -> None:
        ids = dict.fromkeys([*self.vertices, *(end for edge in self.edges for end in edge[:2])])
        object.__setattr__(self, "vertices", sorted(ids, key=sort_key))
        object.__setattr__(self, "numbers", self.numbers or {v: i for i, v in enumerate(ids)})

    def __len__(self) -> int:
        return len(self.vertices)

    @cached_property
    def kept(self) -> Counter[Edge]:
        """The edges that are stored, an undirected one with its smaller end first."""
        return kept_edges(self.edges, undirected=self.undirected, duplicates=self.duplicates)

    @cached_property
    def arcs(self) -> list[Edge]:
        """Every arc with its columns: an undirected edge is two, a loop one."""
        found: list[Edge] = []
        for source, target, *values in self.kept.elements():
            found.append((source, target, *values))
            if self.undirected and source != target:
                found.append((target, source, *values))
        return found

    @cached_property
    def out(self) -> dict[Any, list[Any]]:
        """Where the arcs of each vertex lead; parallel arcs are all listed."""
        return self._ends(0, 1)

    @cached_property
    def into(self) -> dict[Any, list[Any]]:
        """Where the arcs into each vertex come from."""
        return self._ends(1, 0)

    def _ends(self, here: int, there: int) -> dict[Any, list[Any]]:
        found: dict[Any, list[Any]] = {v: [] for v in self.vertices}
        for arc in self.arcs:
            found[arc[here]].append(arc[there])
        return found

    @cached_property
    def around(self) -> dict[Any, list[Any]]:
        """The other ends of all edges at a vertex. A directed edge counts at both ends, so a directed loop twice."""
        return self.out if self.undirected else {v: self.out[v] + self.into[v] for v in self.vertices}

    @cached_property
    def links(self) -> Counter[tuple[Any, Any]]:
        """The arcs without their columns."""
        return arcs(self.kept, self.undirected)


def of(graph: Graph) -> G:
    """A stored graph, read back through its public interface."""
    vertices = [v for batch in graph.vertex_batches([]) for v in batch.column(0).to_pylist()]
    edges = [row for batch in graph.edge_batches() for row in zip(*(c.to_pylist() for c in batch.columns), strict=True)]
    numbers = {v: graph.store.ids.number(v) for v in vertices}
    columns = {name: python_type(kind) for name, kind in graph.columns.items()}
    return G(vertices, edges, not graph.directed, numbers, columns, "keep")


def python_type(kind: str) -> type:
    """What Python makes of an Arrow type of numbers."""
    return float if kind in ("float", "double", "halffloat") else int if kind.lstrip("u").startswith("int") else object


def sampled(g: G, samples: int, seed: int) -> list[Any]:
    """Distinct vertices, drawn by internal number."""
    by_number = {number: v for v, number in g.numbers.items()}
    return [by_number[int(i)] for i in np.random.default_rng(seed).choice(len(g), samples, replace=False)]
