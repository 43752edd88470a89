"""Closeness centrality: all searches share the passes over the edges, 64 at a time."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

from penstock.interfaces.nx.algorithms.search import levels
from penstock.interfaces.nx.function import function
from penstock.interfaces.nx.graph import NxGraph


def _unweighted(distance: Any) -> str | None:
    return None if distance is None else "weighted distances are not supported here"


@function(refuses=_unweighted)
def closeness_centrality(G: NxGraph, u: Any = None, distance: Any = None, wf_improved: bool = True) -> Any:
    from penstock.algorithms.reach import reach

    if u is not None:
        if u not in G:
            raise nx.NodeNotFound(f"Source {u} is not in G")
        found = levels(G, u, reverse=True)
        return _closeness(G, np.array([len(found) - 1.0]), np.array([sum(found.values())]), wf_improved)[0].item()
    if not len(G):
        return {}
    with G.job("closeness") as job:
        shared = reach(job)
        reached, far = (G.by_node(shared[name], shared.slots) for name in ("reached", "far"))
    return G.mapping(_closeness(G, reached, far, wf_improved))


def _closeness(G: NxGraph, reached: np.ndarray, far: np.ndarray, wf_improved: bool) -> np.ndarray:
    found = np.divide(reached, far, out=np.zeros(len(far)), where=far > 0)
    return found * (reached / (len(G) - 1)) if wf_improved and len(G) > 1 else found
