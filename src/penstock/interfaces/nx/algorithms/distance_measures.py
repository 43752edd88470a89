"""Eccentricity, and what follows from it; all searches share the passes over the edges, 64 at a time."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

from penstock.interfaces.nx.function import function
from penstock.interfaces.nx.graph import NxGraph


def _eccentricity(sp: Any, weight: Any) -> str | None:
    if sp is not None:
        return "distances that are known already are NetworkX's business"
    return None if weight is None else "weighted distances are not supported here"


@function(refuses=_eccentricity)
def eccentricity(G: NxGraph, v: Any = None, sp: Any = None, weight: Any = None) -> Any:
    from penstock.algorithms.reach import reach

    wanted = list(G.nbunch_iter(v))
    if not wanted:
        return {}
    with G.job("reach") as job:
        shared = reach(job, along="in")
        reached = G.by_node(shared["reached"], shared.slots)
        last = G.by_node(shared["last"], shared.slots)
    places = np.array([G._adj[node] for node in wanted])
    if (reached[places] < len(G) - 1).any():
        kind = "digraph is not strongly" if G.is_directed() else "graph is not"
        raise nx.NetworkXError(f"Found infinite path length because the {kind} connected")
    found = dict(zip(wanted, last[places].tolist(), strict=True))
    return found[v] if v in G else found


def _extreme(G: Any, e: Any, usebounds: Any, weight: Any) -> str | None:
    if e is not None:
        return "eccentricities that are known already are NetworkX's business"
    if usebounds is True and not G.is_directed():
        return "bounds are not supported: all eccentricities are found"
    return None if weight is None else "weighted distances are not supported here"


@function(refuses=_extreme)
def diameter(G: NxGraph, e: Any = None, usebounds: bool = False, weight: Any = None) -> int:
    return max(eccentricity(G).values())


@function(refuses=_extreme)
def radius(G: NxGraph, e: Any = None, usebounds: bool = False, weight: Any = None) -> int:
    return min(eccentricity(G).values())


@function(refuses=_extreme)
def periphery(G: NxGraph, e: Any = None, usebounds: bool = False, weight: Any = None) -> list[Any]:
    found = eccentricity(G)
    most = max(found.values())
    return [node for node, far in found.items() if far == most]
