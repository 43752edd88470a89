"""Nodes grouped by the label of their component."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import networkx as nx
import numpy as np

from penstock.interfaces.nx.graph import NxGraph


def components(G: NxGraph, algorithm: str) -> Iterator[set[Any]]:
    """The components, in the order of their first nodes."""
    if not len(G):
        return
    labels = _firsts(G.column(G.run(algorithm), "component")[0])
    counts = np.bincount(labels, minlength=len(labels))
    heads = np.flatnonzero(counts)
    # Most components are single nodes: only the others are sorted.
    members = np.flatnonzero(counts[labels] > 1)
    members = members[np.argsort(labels[members], kind="stable")]
    names = list(G.named(members.tolist()))
    with _uncollected():
        found, at = [], 0
        for head, size in zip(heads.tolist(), counts[heads].tolist(), strict=True):
            if size == 1:
                found.append({G.nodes[head]})
            else:
                found.append(set(names[at : at + size]))
                at += size
    yield from found


@contextmanager
def _uncollected() -> Iterator[None]:
    """Thousands of new sets would have the garbage collector walk a NetworkX graph of millions of dictionaries."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def _firsts(labels: np.ndarray) -> np.ndarray:
    """The place of the first node with the same label, for each node."""
    places = np.arange(len(labels))
    if labels.dtype.kind in "iu" and (labels <= places).all() and (labels[labels] == labels).all():
        return labels  # Penstock names a weak component by its smallest id, which is such a place
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return first[inverse]


def count(G: NxGraph, algorithm: str) -> int:
    return int(G.run(algorithm).stats["components"]) if len(G) else 0


def is_one(G: NxGraph, algorithm: str) -> bool:
    if not len(G):
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    return count(G, algorithm) == 1
