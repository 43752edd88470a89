"""Harmonic centrality."""

from __future__ import annotations

from typing import Any

from penstock.interfaces.nx.function import function
from penstock.interfaces.nx.graph import NxGraph


def _whole(nbunch: Any, distance: Any, sources: Any) -> str | None:
    if nbunch is not None or sources is not None:
        return "harmonic centrality of some nodes only, or from some, is not supported"
    return None if distance is None else "weighted distances are not supported here"


@function(refuses=_whole)
def harmonic_centrality(G: NxGraph, nbunch: Any = None, distance: Any = None, sources: Any = None) -> dict[Any, float]:
    """Sums are formed in another order than NetworkX's; the last digit may differ."""
    if not len(G):
        return {}
    found = G.mapping(G.column(G.run("closeness", harmonic=True), "closeness")[0])
    return {node: share or 0 for node, share in found.items()}
