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
    labels = _firsts(_weak(G) if algorithm == "wcc" else G.column(G.run(algorithm), "component")[0])
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


def _weak(G: NxGraph) -> np.ndarray:
    """A number for each node, the same for those in one weak component. Penstock's `wcc` would also look for the
    smallest id of each, which nobody asks for here."""
    from penstock.algorithms.wcc import program
    from penstock.engine.plan import number_dtype

    with G.job("wcc") as job:
        roots = job.engine.run(program(number_dtype(job.store))).state["component"]
        isolated = G.numbers >= job.store.active
        return np.where(isolated, G.numbers, roots[np.where(isolated, 0, G.numbers)])


def _firsts(labels: np.ndarray) -> np.ndarray:
    """The place of the first node with the same label, for each node."""
    count = len(labels)
    if labels.max() >= count or labels.min() < 0:
        labels = np.unique(labels, return_inverse=True)[1]
    first = np.empty(count, np.int64)
    first[labels[::-1]] = np.arange(count)[::-1]  # of those with the same label, the last one written stays
    return first[labels]


def count(G: NxGraph, algorithm: str) -> int:
    return int(G.run(algorithm).stats["components"]) if len(G) else 0


def is_one(G: NxGraph, algorithm: str) -> bool:
    if not len(G):
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    return count(G, algorithm) == 1
