"""A graph as an object of another library, in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import UsageError
from penstock.graph import Graph


def to_arrow(graph: Graph) -> pa.Table:
    """The edges as an Arrow table: source, target, columns. Undirected edges come once, the smaller id first."""
    return pa.Table.from_batches(graph.edge_batches(), graph.edge_schema())


def to_numpy(graph: Graph) -> dict[str, np.ndarray]:
    """The edges as arrays: `source`, `target` and one for each column. String ids are an array of objects, points in
    time are datetime64."""
    table = to_arrow(graph)
    if len(set(table.schema.names)) < len(table.schema.names):
        raise UsageError("an edge column is called source or target, like the ends: take to_arrow, which keeps both")
    return {name: _numpy(column) for name, column in zip(table.schema.names, table.columns, strict=True)}


def _numpy(column: pa.ChunkedArray) -> np.ndarray:
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.tz:
        column = column.cast(pa.timestamp(kind.unit, "UTC")).cast(pa.timestamp(kind.unit))
    elif pa.types.is_time(kind):
        column = column.cast(pa.int32() if pa.types.is_time32(kind) else pa.int64())
    return np.asarray(column.to_numpy())


def to_scipy(graph: Graph, weight: str | None = None) -> Any:
    """The adjacency matrix as a `csr_array`; row and column k are those of the k-th smallest id. Entries are the
    column `weight` or, without it, the number of edges; parallel edges add up. Undirected graphs are symmetric."""
    try:
        from scipy import sparse
    except ModuleNotFoundError:
        raise UsageError("to_scipy needs SciPy: pip install scipy") from None
    schema = graph.edge_schema([] if weight is None else [weight])
    kind: np.dtype = np.dtype(np.int64)
    if weight is not None:
        if not (pa.types.is_integer(schema.types[2]) or pa.types.is_floating(schema.types[2])):
            if not pa.types.is_boolean(schema.types[2]):
                raise UsageError(f"a matrix holds numbers, but column {weight!r} is {schema.types[2]}")
        else:
            kind = np.dtype(schema.types[2].to_pandas_dtype())
    count, narrow = graph.vertices, graph.vertices < 1 << 31
    ends = [np.empty(graph.arcs, np.int32 if narrow else np.int64) for _ in range(2)]
    data, at = np.ones(graph.arcs, kind), 0
    for source, target, values in graph.edge_arrays(graph.ranks(), schema.names[2:], both_ways=True):
        part = slice(at, at + len(source))
        ends[0][part], ends[1][part] = source, target
        if weight is not None:
            data[part] = values[weight]
        at += len(source)
    matrix = sparse.coo_array((data, (ends[0], ends[1])), shape=(count, count)).tocsr()
    matrix.sum_duplicates()
    return matrix


def to_networkx(graph: Graph, multigraph: bool | None = None) -> Any:
    """A NetworkX graph with the columns as attributes of edges and nodes. It is a multigraph if there are parallel
    edges, or as `multigraph` says; without it the last of parallel edges stays."""
    return graph.to_networkx(multigraph)


__all__ = ["to_arrow", "to_networkx", "to_numpy", "to_scipy"]
