"""The kinds of pictures, by name: what each shows, and how it is drawn of a graph or of values found on one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.errors import UsageError, meant
from penstock.plots import distribution
from penstock.plots.joint import Pieces, draw, joint
from penstock.plots.matrix import matrix
from penstock.profile import (
    PIECE,
    Distribution,
    Valued,
    degree_distribution,
    density,
    group_sizes,
    value_distribution,
)

KINDS: dict[str, str] = {
    "degree": "how many vertices have each degree",
    "rank": "how PageRank is distributed",
    "components": "how large the connected components are",
    "radius": "within how many arcs vertices reach most of what they reach",
    "correlation": "two values of each vertex against each other: degree, pagerank, radius, ...",
    "adjacency": "where in the adjacency matrix the arcs are",
    "values": "how the values of any result are distributed",
}
DIRECTIONS = ("both", "out", "in", "total")
_NEEDS = {"rank": "pagerank", "components": "wcc", "radius": "radius"}
"""The algorithm whose result a kind shows."""
_NAMES = {"rank": "PageRank", "pagerank": "PageRank", "out_degree": "out-degree", "in_degree": "in-degree"}


@dataclass(frozen=True)
class Subject:
    """What a picture is of."""

    name: str
    graph: Any = None
    result: Any = None
    """Values that are there already; of any other, `run` finds them on the graph."""
    run: Callable[[str], Valued] | None = None

    def values(self, algorithm: str) -> Valued:
        if self.result is not None:
            return self.result
        if self.run is None:
            raise UsageError(f"{self.name} holds no result of {algorithm}")
        return self.run(algorithm)

    @property
    def store(self) -> Any:
        if self.graph is None:
            raise UsageError(f"{self.name} holds values, no graph: give the store")
        return self.graph.store

    @property
    def described(self) -> str:
        if self.graph is None:
            return self.name
        kind = "directed" if self.graph.directed else "undirected"
        return f"{self.name}: {self.graph.vertices:,} vertices, {self.graph.edges:,} {kind} edges"


def picture(
    kind: str, subject: Subject, *, column: str | None = None, direction: str = "both", x: str | None = None,
    y: str | None = None, bins: int = 256,
) -> Any:  # fmt: skip
    """A figure of a kind. `direction` is for degrees, `x` and `y` are for correlations, `bins` for the matrix."""
    check(kind, direction)
    if kind == "degree":
        return _degrees(subject, direction)
    if kind == "adjacency":
        order = "by falling degree" if subject.store.meta["order"] == "degree" else "by id"
        told = density(subject.graph, bins)
        part = "" if told.sampled == 1 else f"; {100 * told.sampled:.2g} % of the pages were read"
        return matrix(told, "Adjacency matrix", subject.described + part, order)
    if kind == "correlation":
        return _correlation(subject, x or "degree", y or "pagerank")
    if kind == "components":
        return _components(subject, column)
    return _values(kind, subject, column)


def check(kind: str, direction: str = "both") -> None:
    """Refuse what is no kind, before something is run for it."""
    if kind not in KINDS:
        raise UsageError(f"there is no plot {kind!r}{meant(kind, KINDS) or ';'} there are {', '.join(KINDS)}")
    if direction not in DIRECTIONS:
        raise UsageError(f"direction must be one of {', '.join(DIRECTIONS)}, not {direction!r}")


def _degrees(subject: Subject, direction: str) -> Any:
    store = subject.store
    if not store.directed or direction == "total":
        told, names = [_total(store)], []
    elif direction == "both":
        told, names = [degree_distribution(store, side) for side in ("out", "in")], ["out-degree", "in-degree"]
    else:
        told, names = [degree_distribution(store, direction)], []
    axis = "degree" if len(told) > 1 or not store.directed or direction == "total" else f"{direction}-degree"
    return distribution.points(told, "Degree distribution", subject.described, axis, "vertices", names)


def _total(store: Any) -> Distribution:
    counts: dict[int, int] = {}
    for values, _ in _degree_pieces(store, "degree"):
        for value, count in zip(*np.unique(values, return_counts=True), strict=True):
            counts[int(value)] = counts.get(int(value), 0) + int(count)
    found = np.array(sorted(counts), np.int64)
    return Distribution("degree", found, np.array([counts[v] for v in found.tolist()], np.int64), of="degrees")


def _degree_pieces(store: Any, name: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    sides = {"out_degree": ("out",), "in_degree": ("in",)}.get(name, ("out", "in") if store.directed else ("out",))
    columns = [store.degree_column(side) for side in sides]
    for at in range(0, store.vertices, PIECE):
        parts = [column.read(at, min(at + PIECE, store.vertices)).astype(np.int64) for column in columns]
        yield np.sum(parts, axis=0), np.ones(len(parts[0]), bool)


def _components(subject: Subject, column: str | None) -> Any:
    found = subject.values("wcc")
    name = _column(found, column, labels=True)
    told = group_sizes(found, name)
    largest, vertices = int(told.values.max(initial=0)), int((told.values * told.counts).sum())
    share = f"; the largest has {100 * largest / vertices:.3g} % of the vertices" if vertices else ""
    subtitle = f"{subject.described}\n{int(told.counts.sum()):,} components{share}"
    return distribution.points([told], "Component sizes", subtitle, "vertices in a component", "components")


def _values(kind: str, subject: Subject, column: str | None) -> Any:
    if kind == "values" and subject.result is None:
        raise UsageError(f"values are those of a result: run an algorithm on {subject.name} and plot what it wrote")
    found = subject.values(_NEEDS.get(kind, ""))
    name = column or (kind if kind in found.schema.names else None)
    told = value_distribution(found, name)
    title = {"rank": "PageRank distribution", "radius": "Radius distribution"}.get(kind)
    if told.of == "sizes":
        return distribution.points([told], f"Sizes by {told.name}", subject.described, "vertices in a group", "groups")
    shown = _NAMES.get(told.name, told.name)
    return distribution.histogram(told, title or f"Distribution of {shown}", subject.described, shown)


def _column(found: Valued, column: str | None, *, labels: bool) -> str:
    names = list(found.schema.names[1:])
    if column is not None and column not in names:
        near = meant(column, names)
        raise UsageError(f"the result has no column {column!r}{near or ';'} it has {', '.join(names)}")
    chosen = [column] if column is not None else [name for name in names if (name in found.references) == labels]
    if not chosen:
        raise UsageError(f"the result has no column of labels; it has {', '.join(names)}")
    return chosen[0]


def _correlation(subject: Subject, x: str, y: str) -> Any:
    if x == y:
        raise UsageError(f"x and y are both {x}: a correlation is of two values")
    told = joint(_pieces(subject, x), _pieces(subject, y))
    shown = [_NAMES.get(name, name) for name in (x, y)]
    title = f"{shown[1][0].upper()}{shown[1][1:]} against {shown[0]}"
    return draw(told, title, subject.described, *shown)


def _pieces(subject: Subject, name: str) -> Pieces:
    if name in ("degree", "out_degree", "in_degree") and subject.graph is not None:
        store = subject.store
        return lambda: _degree_pieces(store, name)
    found = subject.values(name)
    if subject.result is not None:
        column = _column(found, "rank" if name == "pagerank" and "rank" in found.schema.names else name, labels=False)
    else:
        column = _column(found, None, labels=False)
    return lambda: found.pieces_of(column)


__all__ = ["DIRECTIONS", "KINDS", "Subject", "check", "picture"]
