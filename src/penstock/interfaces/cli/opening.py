"""What a command is given to work on: a store, or edges, which are read for this one time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import UsageError
from penstock.interfaces.cli.summary import number, tell

if TYPE_CHECKING:
    from penstock.graph import Graph


def opened(
    path: Path,
    settings: Mapping[str, Any],
    *,
    algorithm: str | None = None,
    options: Mapping[str, Any] | None = None,
    undirected: bool | None = None,
    quiet: bool = False,
) -> Graph:
    """The graph; of edges, with the columns that the algorithm reads. Closing it removes what was made for it."""
    from penstock.algorithms.registry import columns_of
    from penstock.config import settings as in_force
    from penstock.given import graph_of, is_store

    chosen = in_force(**settings)
    if is_store(path):
        graph = graph_of(path, chosen)
        if undirected is not None:
            kind = "directed" if graph.directed else "undirected"
            raise UsageError(f"--undirected is for a file of edges: {path} is a store, and {kind}")
        return graph
    columns = [] if algorithm is None else columns_of(algorithm, dict(options or {}))
    given = {"columns": columns, "undirected": undirected}
    graph = graph_of(path, chosen, {name: value for name, value in given.items() if value is not None})
    stem = path.name.split(".")[0] or "graph"
    read = f"{number(graph.vertices, 'vertex', 'vertices')}, {number(graph.edges, 'edge')}"
    tell(f"{path}: {read}, read for this time only (penstock ingest {path} -o {stem}.pen keeps them)", quiet=quiet)
    return graph


__all__ = ["opened"]
