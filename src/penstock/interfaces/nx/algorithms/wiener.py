"""The Wiener index."""

from __future__ import annotations

import math
from typing import Any

from penstock.interfaces.nx.algorithms.components.labels import is_one
from penstock.interfaces.nx.algorithms.shortest_paths.generic import total_length
from penstock.interfaces.nx.function import function, weighted
from penstock.interfaces.nx.graph import NxGraph


@function(refuses=weighted)
def wiener_index(G: NxGraph, weight: Any = None) -> float:
    if not is_one(G, "scc" if G.is_directed() else "wcc"):
        return math.inf
    total = total_length(G)
    return total if G.is_directed() else total / 2
