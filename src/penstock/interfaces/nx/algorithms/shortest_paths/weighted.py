"""Shortest path lengths by weights that are not negative."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import networkx as nx

from penstock.interfaces.nx.algorithms.search import Length, all_distances, distance_of, distances
from penstock.interfaces.nx.function import callable_weight, function
from penstock.interfaces.nx.graph import NxGraph


@function(refuses=callable_weight)
def single_source_dijkstra_path_length(
    G: NxGraph, source: Any, cutoff: float | None = None, weight: Any = "weight"
) -> dict[Any, Length]:
    return multi_source_dijkstra_path_length(G, {source}, cutoff=cutoff, weight=weight)


@function(refuses=callable_weight)
def multi_source_dijkstra_path_length(
    G: NxGraph, sources: Collection[Any], cutoff: float | None = None, weight: Any = "weight"
) -> dict[Any, Length]:
    if not sources:
        raise ValueError("sources must not be empty")
    for source in sources:
        if source not in G:
            raise nx.NodeNotFound(f"Node {source} not found in graph")
    return distances(G, list(sources), weight, cutoff)


@function(refuses=callable_weight)
def dijkstra_path_length(G: NxGraph, source: Any, target: Any, weight: Any = "weight") -> Length:
    if source not in G:
        raise nx.NodeNotFound(f"Node {source} not found in graph")
    return _between(G, source, target, weight, f"Node {target} not reachable from {source}")


@function(refuses=callable_weight)
def all_pairs_dijkstra_path_length(
    G: NxGraph, cutoff: float | None = None, weight: Any = "weight"
) -> Iterator[tuple[Any, dict[Any, Length]]]:
    return all_distances(G, weight, cutoff)


@function(refuses=callable_weight)
def single_source_bellman_ford_path_length(G: NxGraph, source: Any, weight: Any = "weight") -> dict[Any, Length]:
    if source not in G:
        raise nx.NodeNotFound(f"Source {source} not in G")
    return distances(G, [source], weight)


@function(refuses=callable_weight)
def bellman_ford_path_length(G: NxGraph, source: Any, target: Any, weight: Any = "weight") -> Length:
    if source not in G:
        known = f"Node {source} not found in graph" if source == target else f"Source {source} not in G"
        raise nx.NodeNotFound(known)
    return _between(G, source, target, weight, f"node {target} not reachable from {source}")


@function(refuses=callable_weight)
def all_pairs_bellman_ford_path_length(G: NxGraph, weight: Any = "weight") -> Iterator[tuple[Any, dict[Any, Length]]]:
    return all_distances(G, weight)


def _between(G: NxGraph, source: Any, target: Any, weight: Any, otherwise: str) -> Length:
    if source == target:
        return 0
    found = distance_of(G, source, target, weight) if target in G else None
    if found is None:
        raise nx.NetworkXNoPath(otherwise)
    return found
