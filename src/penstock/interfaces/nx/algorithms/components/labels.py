"""Nodes grouped by the label of their component."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from penstock.interfaces.nx.graph import NxGraph


def components(G: NxGraph, algorithm: str) -> Iterator[set[Any]]:
    """The components, in the order of their first nodes."""
    if not len(G):
        return
    labels, _ = G.column(G.run(algorithm), "component")
    _, inverse, counts = np.unique(labels, return_inverse=True, return_counts=True)
    order, ends = np.argsort(inverse, kind="stable"), np.cumsum(counts)
    begins = ends - counts
    turn = np.argsort(order[begins])
    members = order.tolist()
    for begin, end in zip(begins[turn].tolist(), ends[turn].tolist(), strict=True):
        if end == begin + 1:
            yield {G.nodes[members[begin]]}
        else:
            yield set(G.named(members[begin:end]))


def count(G: NxGraph, algorithm: str) -> int:
    return int(G.run(algorithm).stats["components"]) if len(G) else 0


def is_one(G: NxGraph, algorithm: str) -> bool:
    if not len(G):
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    return count(G, algorithm) == 1
