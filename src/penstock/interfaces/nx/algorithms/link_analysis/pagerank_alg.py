"""PageRank."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

from penstock.engine.vectors import Slots
from penstock.interfaces.nx.function import callable_weight, function
from penstock.interfaces.nx.graph import NxGraph


@function(refuses=callable_weight)
def pagerank(
    G: NxGraph,
    alpha: float = 0.85,
    personalization: dict[Any, float] | None = None,
    max_iter: int = 100,
    tol: float = 1.0e-6,
    nstart: dict[Any, float] | None = None,
    weight: Any = "weight",
    dangling: dict[Any, float] | None = None,
) -> dict[Any, float]:
    """In float64, as NetworkX does it; the last digit may differ."""
    n, arcs = len(G), G.weight(weight)
    if n == 0:
        return {}
    plain = arcs.column is None and personalization is None and nstart is None and dangling is None
    if plain and 0 <= alpha < 1 and max_iter >= 1 and tol >= 0:
        result = G.run("pagerank", damping=alpha, tol=n * tol, max_iter=max_iter)
        if not result.stats["converged"]:
            raise nx.PowerIterationFailedConvergence(max_iter)
        return G.mapping(G.column(result, "rank")[0])
    return surf(G, alpha, personalization, max_iter, tol, nstart, arcs.column, dangling)


def surf(
    G: NxGraph,
    alpha: float,
    personalization: dict[Any, float] | None,
    max_iter: int,
    tol: float,
    nstart: dict[Any, float] | None,
    column: str | None,
    dangling: dict[Any, float] | None,
) -> dict[Any, float]:
    """With weights, or with places to start, restart or end at."""
    from penstock.algorithms.surfer import surfer

    start = uniform(G) if nstart is None else shares(G, nstart)
    if personalization is not None and not any(personalization.get(node, 0) for node in G):
        raise ZeroDivisionError
    restart = uniform(G) if personalization is None else shares(G, personalization)
    sink = restart if dangling is None else shares(G, dangling)
    given = {"rank": start, "restart": restart, "sink": sink}
    if max_iter < 1:
        raise nx.PowerIterationFailedConvergence(max_iter)
    with G.job("pagerank") as job:
        # Nodes without edges may differ by where the surfer starts: each has a slot of its own.
        slots = Slots(job.store, range(job.store.active, job.store.vertices))
        outcome = surfer(
            job,
            slots,
            lambda name, vector: G.by_slot(given[name], slots, vector),
            weight=column,
            damping=alpha,
            tol=len(G) * tol,
            max_iter=max_iter,
        )
        if not outcome.change < len(G) * tol:
            raise nx.PowerIterationFailedConvergence(max_iter)
        return G.mapping(G.by_node(outcome.state["rank"], slots))


def uniform(G: NxGraph) -> np.ndarray:
    return np.full(len(G), 1.0 / len(G))


def shares(G: NxGraph, given: dict[Any, float]) -> np.ndarray:
    """Of sum 1, in the order of the nodes; 0 for those that are not mentioned."""
    found = np.array([given.get(node, 0) for node in G], np.float64)
    return found / found.sum()
