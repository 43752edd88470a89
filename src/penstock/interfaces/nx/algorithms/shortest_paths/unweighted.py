"""Shortest path lengths that count edges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx

from penstock.interfaces.nx.algorithms.search import all_levels, levels
from penstock.interfaces.nx.function import function
from penstock.interfaces.nx.graph import NxGraph


@function(light=True)
def single_source_shortest_path_length(G: NxGraph, source: Any, cutoff: float | None = None) -> dict[Any, int]:
    """Nodes come nearest first; those equally near in the order of the graph."""
    if source not in G:
        raise nx.NodeNotFound(f"Source {source} is not in G")
    return levels(G, source, cutoff=cutoff)


@function(light=True)
def single_target_shortest_path_length(G: NxGraph, target: Any, cutoff: float | None = None) -> dict[Any, int]:
    """Nodes come nearest first; those equally near in the order of the graph."""
    if target not in G:
        raise nx.NodeNotFound(f"Target {target} is not in G")
    return levels(G, target, reverse=True, cutoff=cutoff)


@function()
def all_pairs_shortest_path_length(G: NxGraph, cutoff: float | None = None) -> Iterator[tuple[Any, dict[Any, int]]]:
    return all_levels(G, cutoff)
