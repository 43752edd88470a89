"""Breadth-first search and shortest distances, as dictionaries of NetworkX."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import InputError
from penstock.interfaces.nx.graph import NxGraph

if TYPE_CHECKING:
    from penstock.algorithms.job import Job

Length = int | float


def levels(G: NxGraph, source: Any, *, reverse: bool = False, cutoff: float | None = None) -> dict[Any, int]:
    """node -> how many arcs it is away, the nearest first. The source is there."""
    with G.job("bfs") as job:
        return nearest_first(G, *_levels(job, G, [source], reverse, cutoff))


def all_levels(G: NxGraph, cutoff: float | None = None) -> Iterator[tuple[Any, dict[Any, int]]]:
    """The levels from each node, by one engine."""
    with G.job("bfs") as job:
        for source in G:
            yield source, nearest_first(G, *_levels(job, G, [source], cutoff=cutoff))


def level_of(G: NxGraph, source: Any, target: Any) -> int | None:
    """How many arcs a node is away; None: it is not reached."""
    with G.job("bfs") as job:
        found, reached = _levels(job, G, [source])
    place = G._adj[target]
    return int(found[place]) if reached[place] else None


def _levels(
    job: Job, G: NxGraph, sources: Collection[Any], reverse: bool = False, cutoff: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The levels in the order of the nodes, and who is reached."""
    from penstock.algorithms.bfs import FAR, program
    from penstock.engine.plan import number_dtype
    from penstock.engine.program import iterations

    depth = None if cutoff is None or cutoff >= len(G) else max(0, math.ceil(cutoff))
    if depth == 0:
        found = np.full(len(G), FAR)
        found[[G._adj[source] for source in sources]] = 0
        return found, found != FAR
    search = program(number_dtype(job.store))
    if reverse and job.store.directed:
        search = replace(search, along="in")
    until = None if depth is None else iterations(depth)
    outcome = job.engine.run(search, seeds=[G.number(source) for source in sources], until=until)
    found = G.by_node(outcome.state["level"], outcome.slots)
    return found, found != FAR


def distances(G: NxGraph, sources: Collection[Any], weight: Any, cutoff: float | None = None) -> dict[Any, Length]:
    """node -> the least weight of a path to it from one of the sources, the nearest first. The sources are there."""
    with G.job("sssp") as job:
        return _nearest(G, sources, *_distances(job, G, sources, weight), cutoff)


def all_distances(G: NxGraph, weight: Any, cutoff: float | None = None) -> Iterator[tuple[Any, dict[Any, Length]]]:
    """The distances from each node, by one engine."""
    with G.job("sssp") as job:
        for source in G:
            yield source, _nearest(G, [source], *_distances(job, G, [source], weight), cutoff)


def _nearest(
    G: NxGraph, sources: Collection[Any], found: np.ndarray, reached: np.ndarray, cutoff: float | None
) -> dict[Any, Length]:
    if cutoff is not None:
        reached = reached & (found <= cutoff)
    # In NetworkX a source is 0 from itself, not 0.0, and never beyond a cutoff.
    own = dict.fromkeys(sources, 0)
    return own | nearest_first(G, found, reached) | own


def distance_of(G: NxGraph, source: Any, target: Any, weight: Any) -> Length | None:
    """The least weight of a path between two nodes; None: there is none."""
    with G.job("sssp") as job:
        found, reached = _distances(job, G, [source], weight)
    place = G._adj[target]
    return found[place].item() if reached[place] else None


def _distances(job: Job, G: NxGraph, sources: Collection[Any], weight: Any) -> tuple[np.ndarray, np.ndarray]:
    from penstock.algorithms.sssp import sssp

    arcs = G.weight(weight)
    if arcs.column is None:
        found, reached = _levels(job, G, sources)
        return found.astype(np.int64) * arcs.uniform, reached
    if not arcs.finite:
        raise NotImplementedError(f"edge attribute {weight!r} holds infinity or NaN, which is no length here")
    try:
        result = sssp(job, source=[G.id(source) for source in sources], weight=arcs.column)
    except InputError as error:  # negative, or no number
        raise NotImplementedError(str(error)) from error
    return G.column(result, "distance")


def nearest_first(G: NxGraph, values: np.ndarray, reached: np.ndarray) -> dict[Any, Any]:
    places = np.flatnonzero(reached)
    places = places[np.argsort(values[places], kind="stable")]
    return dict(zip(G.named(places.tolist()), values[places].tolist(), strict=True))
