"""NetworkX graphs out of batches: nodes and edges with the columns as attributes, values put onto nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from penstock.errors import UsageError


def network(
    edges: Iterable[pa.RecordBatch],
    vertices: Iterable[pa.RecordBatch] = (),
    *,
    directed: bool,
    multigraph: bool = False,
) -> Any:
    """A NetworkX graph of batches of edges (source, target, columns) and of vertices (id, columns)."""
    nx = _networkx()
    kinds = {(True, False): nx.DiGraph, (True, True): nx.MultiDiGraph}
    kinds |= {(False, False): nx.Graph, (False, True): nx.MultiGraph}
    made = kinds[directed, multigraph]()
    for batch in vertices:
        made.add_nodes_from(_rows(batch, 1))
    for batch in edges:
        made.add_edges_from(_rows(batch, 2))
    return made


def annotate(graph: Any, batches: Iterable[pa.RecordBatch]) -> Any:
    """Put the columns of batches (vertex, values) onto the nodes of a NetworkX graph; vertices that are none of its
    nodes are left out."""
    if not (hasattr(graph, "nodes") and hasattr(graph, "add_nodes_from")):
        raise UsageError(f"to_networkx puts values onto a NetworkX graph, not onto {type(graph).__name__}")
    nodes = graph.nodes
    for batch in batches:
        for vertex, values in _rows(batch, 1):
            if vertex in nodes:
                nodes[vertex].update(values)
    return graph


def _networkx() -> Any:
    try:
        import networkx
    except ModuleNotFoundError:
        raise UsageError("to_networkx needs NetworkX: pip install networkx") from None
    return networkx


def _rows(batch: pa.RecordBatch, ends: int) -> Iterator[Any]:
    """Tuples of the ids and a dict of the rest."""
    ids, names = [column.to_pylist() for column in batch.columns[:ends]], batch.schema.names[ends:]
    values = [column.to_pylist() for column in batch.columns[ends:]]
    rows = zip(*values, strict=True) if values else (() for _ in range(len(batch)))
    return zip(*ids, (dict(zip(names, row, strict=True)) for row in rows), strict=True)


__all__ = ["annotate", "network"]
