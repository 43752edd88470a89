"""Connected components of undirected graphs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from networkx.utils import not_implemented_for

from penstock.interfaces.nx.algorithms.components import labels
from penstock.interfaces.nx.algorithms.search import levels
from penstock.interfaces.nx.function import function
from penstock.interfaces.nx.graph import NxGraph

FORM = "wcc"


@function(light=True)
def connected_components(G: NxGraph) -> Iterator[set[Any]]:
    undirected(G)
    return labels.components(G, FORM)


@function(light=True)
def number_connected_components(G: NxGraph) -> int:
    undirected(G)
    return labels.count(G, FORM)


@function(light=True)
def is_connected(G: NxGraph) -> bool:
    undirected(G)
    return labels.is_one(G, FORM)


@function(light=True)
def node_connected_component(G: NxGraph, n: Any) -> set[Any]:
    undirected(G)
    if n not in G:
        raise KeyError(n)
    return set(levels(G, n))


@not_implemented_for("directed")
def undirected(G: NxGraph) -> None:
    """NetworkX refuses others before it calls us; who calls us directly is told the same."""
