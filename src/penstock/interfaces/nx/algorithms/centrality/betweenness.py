"""Betweenness centrality."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from networkx.utils import create_py_random_state

from penstock.interfaces.nx.function import function, weighted
from penstock.interfaces.nx.graph import NxGraph


@function(refuses=weighted)
def betweenness_centrality(
    G: NxGraph,
    k: int | None = None,
    normalized: bool = True,
    weight: Any = None,
    endpoints: bool = False,
    seed: Any = None,
) -> dict[Any, float]:
    """The sources of a sample are those that NetworkX chooses; the last digit may differ."""
    n = len(G)
    # Chosen by place, as random.sample does: the same nodes for the same seed.
    places = None if k is None or k == n else create_py_random_state(seed).sample(range(n), k)
    total = _dependencies(G.simple(), range(n) if places is None else places, endpoints)
    return G.mapping(_rescaled(total, places, normalized=normalized, directed=G.is_directed(), endpoints=endpoints))


def _dependencies(G: NxGraph, places: Any, endpoints: bool) -> np.ndarray:
    """The plain sums over the sources at these places."""
    from penstock.algorithms.betweenness import DOWN, FAR, UP, dependencies
    from penstock.algorithms.shared import Shared

    with G.job("betweenness") as job:
        shared = Shared(job.engine, [DOWN, UP])
        active = shared.slots.active
        for source in G.numbers[np.fromiter(places, np.int64)].tolist():
            if source >= active:  # no path leads anywhere
                continue
            dependencies(job, shared, source)
            if endpoints:
                total, reached = shared["total"], shared["level"][:active] != FAR
                total[:active] += reached
                total[source] += np.count_nonzero(reached) - 2
        return G.by_node(shared["total"], shared.slots).astype(np.float64)


def _rescaled(
    total: np.ndarray, places: list[int] | None, *, normalized: bool, directed: bool, endpoints: bool
) -> np.ndarray:
    """NetworkX's scale: by the pairs of nodes that a path could lead between, among those that were looked at."""
    pairs = len(total) if endpoints else len(total) - 1
    if pairs < 2:
        return total
    sources = pairs if places is None else len(places)
    halved = 1 if directed else 2

    def scale(count: int) -> float:
        return 1 / (count * (pairs - 1)) if normalized else pairs / (count * halved)

    found = total * scale(sources)
    if places is not None and not endpoints:
        # A source is no end of a path through itself: it was looked at from one source fewer.
        found[places] = total[places] * (scale(sources - 1) if sources > 1 else math.nan)
    return found
