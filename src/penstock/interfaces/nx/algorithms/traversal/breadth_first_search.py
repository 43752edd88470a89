"""Breadth-first search, where the order of neighbours does not matter."""

from __future__ import annotations

from typing import Any

import networkx as nx

from penstock.interfaces.nx.algorithms.search import levels
from penstock.interfaces.nx.function import function
from penstock.interfaces.nx.graph import NxGraph


@function(light=True)
def descendants_at_distance(G: NxGraph, source: Any, distance: int) -> set[Any]:
    if source not in G:
        raise nx.NetworkXError(f"The node {source} is not in the graph.")
    return {node for node, level in levels(G, source, cutoff=distance).items() if level == distance}
