"""Edges out of python-igraph graphs: vertices declared under their names or numbers, numeric attributes as columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import InputError
from penstock.ingest.source import VertexTable, storage_dtype
from penstock.ingest.tables.arrays import ArraysSource
from penstock.ingest.tables.arrow import brief
from penstock.ingest.tables.schema import TableOptions, require

# No attribute can be mistaken for an end.
_SOURCE, _TARGET = "(source)", "(target)"


class IgraphSource(ArraysSource):
    """The edge attributes that are numbers everywhere become columns, unless `columns=` chooses. Where every vertex has
    a `name`, and no two the same, names are the ids; otherwise igraph's own numbers."""

    def __init__(self, graph: Any, options: TableOptions) -> None:
        name = f"igraph {type(graph).__name__}"
        self._ids = _ids(graph)
        ends = np.array(graph.get_edgelist(), np.int64).reshape(-1, 2)
        columns: dict[str, Any] = {
            _SOURCE: self._ids.take(pa.array(ends[:, 0])),
            _TARGET: self._ids.take(pa.array(ends[:, 1])),
        }
        attributes = {key: _attribute(graph.es[key], key, name, options) for key in _wanted(graph, options, name)}
        columns |= {key: values for key, values in attributes.items() if values is not None}
        chosen = TableOptions(
            source=_SOURCE,
            target=_TARGET,
            columns=list(columns)[2:],
            fill=options.fill,
            allow_nan=options.allow_nan,
        )
        super().__init__(columns, chosen, name)
        self.undirected = not graph.is_directed()

    def vertices(self) -> VertexTable:
        return VertexTable(self._ids if self.string_ids else self._ids.to_numpy())

    def refuse_empty(self) -> None:
        """Vertices are declared: a graph without edges is a graph."""


def _ids(graph: Any) -> pa.Array:
    if "name" in graph.vs.attributes():
        names = graph.vs["name"]
        if all(isinstance(each, str) for each in names) and len(set(names)) == len(names):
            return pa.array(names, pa.large_string())
    return pa.array(np.arange(graph.vcount()))


def _wanted(graph: Any, options: TableOptions, name: str) -> list[str]:
    there: list[str] = graph.es.attributes()
    if options.columns is None:
        return there
    wanted = [options.columns] if isinstance(options.columns, str) else list(options.columns)
    for column in wanted:
        require(column, there, name)
    return wanted


def _attribute(values: list[Any], key: str, name: str, options: TableOptions) -> pa.Array | None:
    """None: no numbers, and nobody asked for them."""
    try:
        found = pa.array(values)
    except (pa.ArrowException, OverflowError) as error:
        if options.columns is None:
            return None
        raise InputError(f"edge attribute {key!r}: {brief(error)}", path=name) from None
    usable = storage_dtype(found.type) is not None and (not found.null_count or key in options.fill)
    return found if usable or options.columns is not None else None


__all__ = ["IgraphSource"]
