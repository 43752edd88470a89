"""Triangles and clustering of undirected graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
from networkx.utils import not_implemented_for

from penstock.interfaces.nx.algorithms.components.connected import undirected
from penstock.interfaces.nx.algorithms.degrees import neighbours
from penstock.interfaces.nx.function import function, weighted
from penstock.interfaces.nx.graph import NxGraph


def _unweighted(G: Any, weight: Any = None) -> str | None:
    if G.is_directed():
        return "clustering of directed graphs is not supported"
    return weighted(weight)


@function()
def triangles(G: NxGraph, nodes: Any = None) -> Any:
    undirected(G)
    if nodes is not None:
        _refuse_multigraph(G)
    return _chosen(G, _triangles(G), nodes)


@function(refuses=_unweighted)
def clustering(G: NxGraph, nodes: Any = None, weight: Any = None) -> Any:
    _refuse_multigraph(G)
    found = _triangles(G)
    degree = neighbours(G)
    pairs = degree * (degree - 1)
    share = np.divide(2 * found, pairs, out=np.zeros(len(found)), where=pairs > 0)
    return _chosen(G, share, nodes)


@function(refuses=_unweighted)
def average_clustering(G: NxGraph, nodes: Any = None, weight: Any = None, count_zeros: bool = True) -> float:
    found = clustering(G, nodes).values()
    chosen = found if count_zeros else [share for share in found if abs(share) > 0]
    return sum(chosen) / len(chosen)


@function(refuses=_unweighted)
def transitivity(G: NxGraph) -> float:
    _refuse_multigraph(G)
    found = int(_triangles(G).sum())
    if found == 0:
        return 0
    degree = neighbours(G)
    return 2 * found / int((degree * (degree - 1)).sum())


def _triangles(G: NxGraph) -> np.ndarray:
    return G.column(G.run("triangles"), "triangles")[0].astype(np.int64)


def _chosen(G: NxGraph, values: np.ndarray, nodes: Any) -> Any:
    """One value for a node, a dictionary for several; nodes that are not there are left out."""
    if nodes is None:
        return G.mapping(values)
    if nodes in G:
        return values[G._adj[nodes]].item()
    return {node: values[G._adj[node]].item() for node in G.nbunch_iter(nodes)}


@not_implemented_for("multigraph")
def _refuse_multigraph(G: NxGraph) -> None:
    """As NetworkX's own helpers do."""
