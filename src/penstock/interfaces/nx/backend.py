"""What NetworkX loads as the backend `penstock`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import networkx as nx

from penstock.graph import Graph
from penstock.interfaces.nx import algorithms  # noqa: F401  registers the functions
from penstock.interfaces.nx.convert import from_networkx, to_networkx
from penstock.interfaces.nx.function import FUNCTIONS
from penstock.interfaces.nx.graph import NxGraph
from penstock.interfaces.nx.suite import Suite


class Backend:
    """NetworkX's interface: functions are its attributes, under NetworkX's names for dispatch."""

    def __init__(self) -> None:
        self.suite = Suite()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name in FUNCTIONS:
            return FUNCTIONS[name].call
        raise AttributeError(f"Penstock's backend has no function {name!r}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *FUNCTIONS]

    @staticmethod
    def convert_from_nx(
        graph: nx.Graph,
        *,
        edge_attrs: Mapping[Any, Any] | None = None,
        node_attrs: Mapping[Any, Any] | None = None,
        preserve_edge_attrs: bool = False,
        preserve_node_attrs: bool = False,
        preserve_graph_attrs: bool = False,
        name: str | None = None,
        graph_name: str | None = None,
    ) -> NxGraph | Graph:
        """Nodes, edges, and the edges' attributes that are asked for. No function here reads a node's attributes."""
        if isinstance(graph, NxGraph | Graph):
            return graph
        if preserve_edge_attrs:
            raise NotImplementedError("Penstock's backend converts only the edge attributes that a function names")
        return from_networkx(graph, edge_attrs)

    @staticmethod
    def convert_to_nx(result: Any, *, name: str | None = None) -> Any:
        """Graphs become NetworkX's; other results are so already."""
        return to_networkx(result) if isinstance(result, NxGraph | Graph) else result

    def can_run(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
        """Whether these arguments are supported, or why not."""
        if name not in FUNCTIONS:
            return f"Penstock has no {name}"
        if (reason := FUNCTIONS[name].refusal(args, kwargs)) is not None:
            return reason
        return "this test has had its share of calls" if self.suite.exhausted() else True

    @staticmethod
    def should_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
        """Whether it is worth it, or why not."""
        graph = args[0] if args else kwargs.get("G")
        if not isinstance(graph, nx.Graph) or _is_cached(graph):
            return True
        least = int(nx.config.backends.penstock.min_edges)
        if sum(map(len, graph._adj.values())) < least * (1 if graph.is_directed() else 2):
            return f"NetworkX is as fast on a graph of fewer than {least} edges"
        if FUNCTIONS[name].light:
            return f"NetworkX takes less time for {name} than converting the graph would"
        return True

    def on_start_tests(self, items: list[Any]) -> None:
        """NetworkX's own suite begins."""
        self.suite.start(items)


def _is_cached(graph: nx.Graph) -> bool:
    """Whether the graph was converted before."""
    cache = getattr(graph, "__networkx_cache__", None) or {}
    return any(isinstance(made, NxGraph) for made in cache.get("backends", {}).get("penstock", {}).values())


backend = Backend()
