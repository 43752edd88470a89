"""Weakly connected components of directed graphs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from networkx.utils import not_implemented_for

from penstock.interfaces.nx.algorithms.components import labels
from penstock.interfaces.nx.function import function
from penstock.interfaces.nx.graph import NxGraph

FORM = "wcc"


@function(light=True)
def weakly_connected_components(G: NxGraph) -> Iterator[set[Any]]:
    directed(G)
    return labels.components(G, FORM)


@function(light=True)
def number_weakly_connected_components(G: NxGraph) -> int:
    directed(G)
    return labels.count(G, FORM)


@function(light=True)
def is_weakly_connected(G: NxGraph) -> bool:
    directed(G)
    return labels.is_one(G, FORM)


@not_implemented_for("undirected")
def directed(G: NxGraph) -> None:
    """NetworkX refuses others before it calls us; who calls us directly is told the same."""
