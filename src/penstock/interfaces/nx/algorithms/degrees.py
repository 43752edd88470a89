"""Degrees, in the order of the nodes."""

from __future__ import annotations

import numpy as np

from penstock.interfaces.nx.graph import NxGraph


def arcs(G: NxGraph, direction: str) -> np.ndarray:
    """How many arcs leave or enter each node; a loop of an undirected graph is one."""
    return G.graph.store.degree_column(direction).read()[G.numbers].astype(np.int64)


def neighbours(G: NxGraph) -> np.ndarray:
    """How many arcs each node has, in both directions, without loops."""
    from penstock.algorithms.kcore import DEGREES
    from penstock.engine.program import iterations

    with G.job("degree") as job:
        outcome = job.engine.run(DEGREES, until=iterations(1))
        return G.by_node(outcome.state["degree"], outcome.slots).astype(np.int64)


def loops(G: NxGraph) -> np.ndarray:
    """How many loops each node has."""
    if G.is_directed():
        return (arcs(G, "out") + arcs(G, "in") - neighbours(G)) // 2
    return arcs(G, "out") - neighbours(G)
