"""Core numbers."""

from __future__ import annotations

from typing import Any

import networkx as nx
from networkx.utils import not_implemented_for

from penstock.interfaces.nx.algorithms.degrees import loops
from penstock.interfaces.nx.function import function
from penstock.interfaces.nx.graph import NxGraph


@function()
def core_number(G: NxGraph) -> dict[Any, int]:
    _simple(G)
    if loops(G).any():
        raise nx.NetworkXNotImplemented(
            "Input graph has self loops which is not permitted; "
            "Consider using G.remove_edges_from(nx.selfloop_edges(G))."
        )
    return G.mapping(G.column(G.run("kcore"), "core")[0])


@not_implemented_for("multigraph")
def _simple(G: NxGraph) -> None:
    """NetworkX refuses others before it calls us; who calls us directly is told the same."""
