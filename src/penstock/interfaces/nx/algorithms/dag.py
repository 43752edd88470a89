"""Who is reached."""

from __future__ import annotations

from typing import Any

import networkx as nx

from penstock.interfaces.nx.algorithms.search import levels
from penstock.interfaces.nx.function import function
from penstock.interfaces.nx.graph import NxGraph


@function(light=True)
def descendants(G: NxGraph, source: Any) -> set[Any]:
    return _others(G, source, reverse=False)


@function(light=True)
def ancestors(G: NxGraph, source: Any) -> set[Any]:
    return _others(G, source, reverse=True)


def _others(G: NxGraph, source: Any, *, reverse: bool) -> set[Any]:
    if source not in G:
        raise nx.NetworkXError(f"The node {source} is not in the {'digraph' if G.is_directed() else 'graph'}.")
    found = set(levels(G, source, reverse=reverse))
    found.discard(source)
    return found
