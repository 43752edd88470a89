"""The algorithms by name. Each is a function of that name in a module of that name."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

from penstock.config import Settings
from penstock.errors import UsageError, meant
from penstock.options import taken

ALGORITHMS: dict[str, str] = {
    "pagerank": "how often a random surfer is at each vertex",
    "ppr": "how often a random surfer who starts again at the sources is at each vertex",
    "degree": "degrees of the vertices and how they are distributed",
    "kcore": "core numbers of the vertices",
    "hits": "hubs and authorities",
    "bfs": "levels and parents of a breadth-first search",
    "sssp": "shortest distances along weighted edges",
    "wcc": "weakly connected components, by the smallest vertex of each",
    "cdlp": "communities by label propagation",
    "triangles": "how many triangles a vertex is a corner of",
    "lcc": "local clustering coefficients: how many of the arcs there could be among neighbours are there",
    "scan": "clusters of vertices that share most of their neighbours, the hubs between them, and outliers",
    "betweenness": "what share of the shortest paths leads through each vertex",
    "closeness": "how near those who reach a vertex are to it",
    "radius": "within how many arcs a vertex reaches most of what it reaches",
    "scc": "which vertices reach each other",
    "neighborhood": "who is within so many arcs of the sources",
    "egonet": "the edges among the vertices around the sources",
    "induced": "the edges among a set of vertices",
    "cross_edges": "the edges that join a set of vertices with another one",
}
"""What each algorithm finds, in a line."""
ANSWERS_EDGES = frozenset({"egonet", "induced", "cross_edges"})
"""Those whose answer is edges, with all their columns."""
UNSAVED: dict[str, str] = {
    "degree": "reads the degrees once",
    "wcc": "goes over the arcs once",
    "triangles": "counts in one go",
    "lcc": "counts in one go",
    "scan": "goes over its lists three times",
    "induced": "reads its edges once",
    "cross_edges": "reads its edges once",
}
"""Those that have no supersteps to be taken up at, and why."""


def nearest(name: str) -> str:
    """What to say to a name that is none of them."""
    return f"there is no algorithm {name!r}{meant(name, ALGORITHMS) or ';'} there are {', '.join(ALGORITHMS)}"


def find(name: str) -> Callable[..., Any]:
    """The function `name(job, **options)`."""
    if name not in ALGORITHMS:
        raise UsageError(nearest(name))
    return getattr(importlib.import_module(f"penstock.algorithms.{name}"), name)


def options_of(name: str) -> dict[str, inspect.Parameter]:
    """The options of an algorithm: its keyword parameters, with their annotations."""
    return {
        key: parameter
        for key, parameter in inspect.signature(find(name), eval_str=True).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }


def known(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """The options as the algorithm takes them: np.int64(3) and 3.0 are 3. Those that it does not have are refused."""
    mine = options_of(name)
    for key in options:
        if key not in mine:
            near = meant(key, mine)
            raise UsageError(f"{name} has no option {key!r}{near or ';'} it has {', '.join(mine) or 'none'}")
    return {key: taken(mine[key], value) for key, value in options.items()}


def check(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """The same, and refuse a call without those that it needs."""
    found = known(name, options)
    for key, parameter in options_of(name).items():
        if parameter.default is inspect.Parameter.empty and key not in found:
            raise UsageError(f"{name} needs {key}")
    return found


def columns_of(name: str, options: dict[str, Any]) -> list[str] | None:
    """The edge columns that a run would read; None: all of them, in an answer of edges."""
    if name in ANSWERS_EDGES:
        return None
    mine = options_of(name)
    asked = (options.get(key) or mine[key].default for key in ("weight", "similarity") if key in mine)
    return [column for column in asked if column is not None]


def stages_of(name: str, store: Any, options: dict[str, Any]) -> list[Any]:
    """The programs that an algorithm would run, as far as its module tells: `stages(store, **options)`."""
    chosen = known(name, options)
    tell = getattr(importlib.import_module(f"penstock.algorithms.{name}"), "stages", None)
    return list(tell(store, **chosen)) if tell is not None else []


def run(name: str, graph: Any, settings: Settings, options: dict[str, Any]) -> Any:
    """Run an algorithm; what it took is given back, whatever happens."""
    from penstock.algorithms.job import Job

    function = find(name)
    options = check(name, options)
    if settings.checkpoint is not None and name in UNSAVED:
        raise UsageError(f"{name} {UNSAVED[name]}, and has no checkpoints to go on from: run it without one")
    job = Job(graph, settings, name, options)
    try:
        return function(job, **options)
    finally:
        job.close()
