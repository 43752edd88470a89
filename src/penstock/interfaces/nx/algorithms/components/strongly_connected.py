"""Strongly connected components of directed graphs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.interfaces.nx.algorithms.components import labels
from penstock.interfaces.nx.algorithms.components.weakly_connected import directed
from penstock.interfaces.nx.function import function
from penstock.interfaces.nx.graph import NxGraph

FORM = "scc"


@function(light=True)
def strongly_connected_components(G: NxGraph) -> Iterator[set[Any]]:
    """Components come in the order of their first nodes."""
    directed(G)
    return labels.components(G, FORM)


@function(light=True)
def number_strongly_connected_components(G: NxGraph) -> int:
    directed(G)
    return labels.count(G, FORM)


@function(light=True)
def is_strongly_connected(G: NxGraph) -> bool:
    directed(G)
    return labels.is_one(G, FORM)
