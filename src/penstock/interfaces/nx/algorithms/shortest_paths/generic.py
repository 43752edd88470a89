"""Shortest path lengths in all their variants."""

from __future__ import annotations

from typing import Any

import networkx as nx

from penstock.interfaces.nx.algorithms.components.labels import count
from penstock.interfaces.nx.algorithms.search import level_of
from penstock.interfaces.nx.algorithms.shortest_paths import unweighted
from penstock.interfaces.nx.algorithms.shortest_paths import weighted as by_weight
from penstock.interfaces.nx.function import callable_weight, function, weighted
from penstock.interfaces.nx.graph import NxGraph


def _lengths(G: Any, source: Any, target: Any, weight: Any) -> str | None:
    if source is None and target is not None and weight is not None and G.is_directed():
        return "weighted distances to a target of a directed graph are not supported"
    return callable_weight(weight)


@function(refuses=_lengths)
def shortest_path_length(
    G: NxGraph, source: Any = None, target: Any = None, weight: Any = None, method: str = "dijkstra"
) -> Any:
    """Dictionaries have the nearest nodes first."""
    if method not in ("dijkstra", "bellman-ford"):
        raise ValueError(f"method not supported: {method}")
    if weight is None:
        return _unweighted(G, source, target)
    if reason := _lengths(G, source, target, weight):
        raise NotImplementedError(reason)
    by_dijkstra = method == "dijkstra"
    if source is None and target is None:
        if by_dijkstra:
            return by_weight.all_pairs_dijkstra_path_length(G, weight=weight)
        return by_weight.all_pairs_bellman_ford_path_length(G, weight=weight)
    if source is None or target is None:
        start = target if source is None else source
        if by_dijkstra:
            return by_weight.single_source_dijkstra_path_length(G, start, weight=weight)
        return by_weight.single_source_bellman_ford_path_length(G, start, weight=weight)
    if by_dijkstra:
        return by_weight.dijkstra_path_length(G, source, target, weight)
    return by_weight.bellman_ford_path_length(G, source, target, weight)


def _unweighted(G: NxGraph, source: Any, target: Any) -> Any:
    if source is None and target is None:
        return unweighted.all_pairs_shortest_path_length(G)
    if target is None:
        return unweighted.single_source_shortest_path_length(G, source)
    if source is None:
        if target not in G:  # in NetworkX it is the source of a search in the reversed graph
            raise nx.NodeNotFound(f"Source {target} is not in G")
        return unweighted.single_target_shortest_path_length(G, target)
    found = _between(G, source, target)
    if found is None:
        raise nx.NetworkXNoPath(f"No path between {source} and {target}.")
    return found


def _between(G: NxGraph, source: Any, target: Any) -> int | None:
    for kind, node in (("Source", source), ("Target", target)):
        if node not in G:
            raise nx.NodeNotFound(f"{kind} {node} is not in G")
    return level_of(G, source, target)


@function(light=True)
def has_path(G: NxGraph, source: Any, target: Any) -> bool:
    return _between(G, source, target) is not None


def _average(weight: Any, method: Any) -> str | None:
    if method not in (None, "unweighted", "dijkstra", "bellman-ford"):
        return f"method {method!r} is not supported"
    return None if method == "unweighted" else weighted(weight)


@function(refuses=_average)
def average_shortest_path_length(G: NxGraph, weight: Any = None, method: str | None = None) -> float:
    n = len(G)
    if n == 0:
        raise nx.NetworkXPointlessConcept("the null graph has no paths, thus there is no average shortest path length")
    if n == 1:
        return 0
    if not connected(G):
        raise nx.NetworkXError(f"Graph is not {'strongly ' if G.is_directed() else ''}connected.")
    return total_length(G) / (n * (n - 1))


def connected(G: NxGraph) -> bool:
    """Whether every node reaches every other."""
    return count(G, "scc" if G.is_directed() else "wcc") == 1


def total_length(G: NxGraph) -> int:
    """The sum of the distances of all ordered pairs that have one."""
    from penstock.algorithms.reach import reach

    with G.job("reach") as job:
        shared = reach(job)
        return int(G.by_node(shared["far"], shared.slots).sum())
