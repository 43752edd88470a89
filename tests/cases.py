"""What is worth testing: small graphs of every shape, and for each algorithm the options that make a difference.

for shape in cases.shapes():
    for undirected in shape.ways:
        graph = shape.build(path, undirected=undirected)
        g = oracle.of(graph)
        for options in cases.CASES["bfs"](g):
            cases.compare("bfs", cases.found("bfs", pk.run("bfs", graph, **options)), cases.expected("bfs", g, options))
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest

import oracle
from shapes import Shape, shapes

__all__ = ["CASES", "EDGE_RESULTS", "Options", "Shape", "compare", "expected", "found", "shapes"]

Options = dict[str, Any]
MANY = 500
"""Vertices from which a path between all pairs takes too long to find the obvious way."""
EDGE_RESULTS = ("egonet", "induced", "cross_edges")
NO_DIFFERENCE = ("dtype", "delta")
"""Options that choose how, not what."""


# ---- sources


def busiest(g: oracle.G) -> list[Any]:
    """The vertex of most arcs."""
    return [max(g.vertices, key=lambda v: len(g.around[v]))]


def several(g: oracle.G) -> list[Any]:
    """Up to three vertices from all over the ids."""
    return list(g.vertices[:: max(1, len(g) // 3)])[:3]


def alone(g: oracle.G) -> list[Any]:
    """The last vertex without arcs out, which often has none at all; else the last one."""
    return [([v for v in g.vertices if not g.around[v]] or [v for v in g.vertices if not g.out[v]] or g.vertices)[-1]]


def with_sources(*options: Options) -> Callable[[oracle.G], list[Options]]:
    """From one source, from several, from one that leads nowhere; and once with each of the options."""

    def chosen(g: oracle.G) -> list[Options]:
        if not len(g):
            return []
        plain = [{"source": pick(g)} for pick in (busiest, several, alone)]
        return plain + [{"source": pick(g), **more} for more in options for pick in (busiest, several)]

    return chosen


# ---- options


def always(*options: Options) -> Callable[[oracle.G], list[Options]]:
    return lambda g: [dict(chosen) for chosen in options]


def pagerank(g: oracle.G) -> list[Options]:
    rules = [
        {"stop": "l1", "tol": 1e-7},
        {"stop": "max", "tol": 1e-7},
        {"stop": "vertex", "tol": 1 / (10 * max(1, len(g)))},
        {"stop": "fixed", "max_iter": 7},
    ]
    combined = [{**rule, "dangling": dangling} for rule in rules for dangling in ("spread", "drop")]
    return [{}, {"max_iter": 3}, {"damping": 0.5}, {"damping": 0, "stop": "fixed", "max_iter": 2}, *combined]


def sampling(*options: Options) -> Callable[[oracle.G], list[Options]]:
    """Exact where that is quick, and by samples."""

    def chosen(g: oracle.G) -> list[Options]:
        exact = [] if len(g) > MANY else [dict(more) for more in options]
        if not len(g):
            return exact
        few = min(5, len(g))
        return [*exact, {"samples": few}, {"samples": few, "seed": 7}, {**options[-1], "samples": 1, "seed": 2}]

    return chosen


def betweenness(g: oracle.G) -> list[Options]:
    plain = sampling({}, {"normalized": False})(g)
    return [*plain, {"sources": several(g)}, {"sources": busiest(g)}] if len(g) else plain


def scan(g: oracle.G) -> list[Options]:
    """By common neighbours, much alike and little; by a column, where edges have no direction."""
    alike = [{}, {"epsilon": 0.7}, {"epsilon": 0.3, "mu": 3}, {"epsilon": 1}, {"epsilon": 0.05, "mu": 4}]
    marked = [{"similarity": "weight", "epsilon": 3}, {"similarity": "weight", "epsilon": 2.5, "mu": 3}]
    return alike + (marked if g.undirected and "weight" in g.columns else [])


def parts(g: oracle.G) -> list[Options]:
    """Sets of vertices: some, one, none, all."""
    every_other, one, none, everything = list(g.vertices[::2]), list(g.vertices[:1]), list[Any](), list(g.vertices)
    return [{"vertices": chosen} for chosen in (every_other, one, none, everything)]


def between(g: oracle.G) -> list[Options]:
    """Sets apart, and sets that share vertices."""
    third, rest = list(g.vertices[::3]), list(g.vertices[1::3])
    return [*parts(g), {"vertices": third, "others": rest}, {"vertices": third, "others": list(g.vertices[:4])}]


CASES: dict[str, Callable[[oracle.G], list[Options]]] = {
    "pagerank": pagerank,
    "ppr": with_sources({"damping": 0.5}, {"max_iter": 3}, {"tol": 1e-10, "max_iter": 500}),
    "bfs": with_sources({"max_depth": 0}, {"max_depth": 1}, {"max_depth": 2}),
    "sssp": with_sources({"parents": True}, {"delta": 1}, {"delta": 5, "parents": True}),
    "wcc": always({}),
    "scc": always({}),
    "cdlp": always({}, {"max_iter": 1}, {"max_iter": 2}),
    "degree": always({}),
    "kcore": always({}),
    "betweenness": betweenness,
    "closeness": sampling({}, {"harmonic": True}),
    "radius": always({}, {"lanes": 3, "seed": 9}, {"lanes": 1}, {"max_iter": 2}, {"max_iter": 0}),
    "hits": always({}, {"max_iter": 3}, {"tol": 1e-4}),
    "triangles": always({}),
    "lcc": always({}),
    "scan": scan,
    "neighborhood": with_sources({"hops": 0}, {"hops": 2}),
    "egonet": with_sources({"hops": 0}, {"hops": 2}),
    "induced": parts,
    "cross_edges": between,
}


# ---- answers


def expected(name: str, g: oracle.G, options: Mapping[str, Any]) -> Any:
    """What the oracle says."""
    known = {option: value for option, value in options.items() if option not in NO_DIFFERENCE}
    return getattr(oracle, name)(g, **known)


def found(name: str, result: Any) -> Any:
    """What a run says, in the form of the oracle: rows of edges are counted, others are listed by vertex."""
    if name not in EDGE_RESULTS:
        return result.to_dict()
    return Counter(zip(*(column.to_pylist() for column in result.table.columns), strict=True))


def compare(name: str, result: Any, answer: Any, *, rel: float = 1e-9, abs: float = 1e-12) -> None:
    """Rows in order of ids; whole numbers, ids and nulls equal, and floats near."""
    if name in EDGE_RESULTS:
        assert result == answer, f"{name}: {result - answer} too many, {answer - result} missing"
        return
    assert list(result) == list(answer), f"{name}: other vertices, or in another order"
    for vertex, value in answer.items():
        if not _alike(result[vertex], value, rel, abs):
            raise AssertionError(f"{name} of {vertex!r} is {result[vertex]!r}, not {value!r}")


def _alike(value: Any, answer: Any, rel: float, abs: float) -> bool:
    if type(value) is not type(answer):
        return False
    if isinstance(answer, tuple):
        return len(value) == len(answer) and all(_alike(*pair, rel, abs) for pair in zip(value, answer, strict=True))
    return bool(value == (pytest.approx(answer, rel=rel, abs=abs) if isinstance(answer, float) else answer))
