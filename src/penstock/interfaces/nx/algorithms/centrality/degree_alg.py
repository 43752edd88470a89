"""Degree centrality."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.interfaces.nx.algorithms.components.weakly_connected import directed
from penstock.interfaces.nx.algorithms.degrees import arcs, loops
from penstock.interfaces.nx.function import function
from penstock.interfaces.nx.graph import NxGraph


@function(light=True)
def degree_centrality(G: NxGraph) -> dict[Any, float]:
    if G.is_directed():
        return _share(G, arcs(G, "out") + arcs(G, "in"))
    return _share(G, arcs(G, "out") + loops(G))


@function(light=True)
def in_degree_centrality(G: NxGraph) -> dict[Any, float]:
    directed(G)
    return _share(G, arcs(G, "in"))


@function(light=True)
def out_degree_centrality(G: NxGraph) -> dict[Any, float]:
    directed(G)
    return _share(G, arcs(G, "out"))


def _share(G: NxGraph, degrees: np.ndarray) -> dict[Any, float]:
    if len(G) <= 1:
        return dict.fromkeys(G, 1)
    return G.mapping(degrees * (1.0 / (len(G) - 1.0)))
