"""Edges out of NetworkX graphs: nodes declared, numeric attributes as columns, the graph's own direction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from numbers import Integral, Real
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import InputError, UsageError
from penstock.ingest.source import STORAGE, VertexTable, storage_dtype
from penstock.ingest.tables.arrays import arrow_array
from penstock.ingest.tables.arrow import SlicedSource
from penstock.ingest.tables.convert import as_numpy
from penstock.ingest.tables.schema import TableOptions

# No attribute can be mistaken for an end: attributes named `source` are not rare.
_SOURCE, _TARGET = "(source)", "(target)"
# Python objects on the way cost far more than the edge itself.
_EDGE_OBJECTS = 512


class NetworkSource(SlicedSource):
    """By default the edge and node attributes that are numbers everywhere become columns, and others stay behind;
    a numeric attribute that some edges lack needs `fill=`, or `columns=` without it."""

    def __init__(self, graph: Any, options: TableOptions, vertex_columns: Sequence[str] | None = None) -> None:
        name = f"networkx {type(graph).__name__}"
        self._graph, self._fill = graph, dict(options.fill)
        ids = _id_type(graph.nodes, name)
        kinds = _attributes(
            lambda: (((u, v), data) for u, v, data in graph.edges(data=True)),
            "edge",
            options.columns,
            options.fill,
            name,
        )
        self._vertex_kinds = _attributes(lambda: graph.nodes(data=True), "node", vertex_columns, options.fill, name)
        for column in options.fill:
            if column not in kinds and column not in self._vertex_kinds:
                raise UsageError(f"{name}: fill names {column!r}, which is no numeric attribute taken from this graph")
        edge_options = TableOptions(
            source=_SOURCE,
            target=_TARGET,
            columns=list(kinds),
            fill={column: value for column, value in options.fill.items() if column in kinds},
            allow_nan=options.allow_nan,
        )
        super().__init__(name, pa.schema([(_SOURCE, ids), (_TARGET, ids), *kinds.items()]), edge_options)
        self._ids, self.undirected = ids, not graph.is_directed()
        self.estimated_edges = self.size = graph.number_of_edges()

    def batches(self, rows: int) -> Iterator[pa.RecordBatch]:
        edges = iter(self._graph.edges(data=True))
        rows = max(1, min(rows, rows * self.row_bytes // _EDGE_OBJECTS))
        while block := list(islice(edges, rows)):
            ends = [_id_array([edge[end] for edge in block], self._ids) for end in (0, 1)]
            values = [_column([edge[2].get(name) for edge in block], kind) for name, kind in self.columns.items()]
            yield pa.record_batch([*ends, *values], names=[_SOURCE, _TARGET, *self.columns])

    def vertices(self) -> VertexTable:
        nodes = _id_array(list(self._graph.nodes), self._ids)
        columns = {}
        for name, kind in self._vertex_kinds.items():
            values = [data.get(name) for _, data in self._graph.nodes(data=True)]
            filled = _column([self._fill.get(name) if value is None else value for value in values], kind)
            dtype = storage_dtype(kind)
            assert dtype is not None
            columns[name] = as_numpy(filled.cast(pa.uint8()) if pa.types.is_boolean(kind) else filled, dtype)
        ids = nodes if self.string_ids else as_numpy(nodes)
        return VertexTable(ids, columns, self._vertex_kinds)

    def refuse_empty(self) -> None:
        """Nodes are declared: a graph without edges is a graph."""


def _id_type(nodes: Iterable[Any], name: str) -> pa.DataType:
    low, high, strings, numbers = 0, 0, 0, 0
    for node in nodes:
        if isinstance(node, str):
            strings += 1
        elif isinstance(node, Integral) and not isinstance(node, bool):
            numbers += 1
            low, high = min(low, int(node)), max(high, int(node))
        else:
            raise _relabel(f"node {node!r} is neither an integer nor a string", name)
    if strings and numbers:
        raise _relabel("some nodes are integers and some are strings", name)
    if strings:
        return pa.large_string()
    for kind in ("int64", "uint64"):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return pa.from_numpy_dtype(np.dtype(kind))
    raise _relabel(f"nodes from {low} to {high} do not fit in 64 bits", name)


def _id_array(nodes: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_integer(kind):
        return arrow_array(np.array(nodes, STORAGE[str(kind)]))
    return pa.array(nodes, kind)


def _relabel(reason: str, name: str) -> InputError:
    return InputError(f"{reason}: relabel, for example with networkx.convert_node_labels_to_integers", path=name)


def _attributes(
    items: Callable[[], Iterable[tuple[Any, Mapping[Any, Any]]]],
    noun: str,
    wanted: Sequence[str] | None,
    fill: Mapping[str, Any],
    name: str,
) -> dict[str, pa.DataType]:
    """The attributes that become columns, and their types."""
    chosen = None if wanted is None else [wanted] if isinstance(wanted, str) else list(wanted)
    ranks: dict[str, int] = {}
    counts: dict[str, int] = {}
    odd: dict[str, tuple[Any, Any]] = {}
    total = 0
    for item, data in items():
        total += 1
        for key, value in data.items():
            if value is None or not isinstance(key, str):
                continue
            rank = _rank(value)
            if rank is None:
                odd.setdefault(key, (item, value))
            else:
                ranks[key] = max(ranks.get(key, 0), rank)
                counts[key] = counts.get(key, 0) + 1
    for key in chosen or ():
        if key in odd:
            item, value = odd[key]
            raise InputError(f"{noun} {item!r}: {key!r} is {value!r}, not a number", path=name)
        if key not in counts and total:
            there = ", ".join(map(repr, counts)) or "none"
            raise InputError(f"no {noun} has a number {key!r}; the numeric attributes are {there}", path=name)
    columns = {}
    for key in counts if chosen is None else chosen:
        if key in odd or key not in counts:
            continue
        if counts[key] < total and key not in fill:
            if noun == "node" and chosen is None:
                continue
            without = next(item for item, data in items() if data.get(key) is None)
            raise InputError(
                f"{noun} {without!r} has no {key!r}, which others have",
                path=name,
                hint=f"pass fill={{{key!r}: value}}, or columns= without it",
            )
        rank = max(ranks[key], _rank(fill[key]) or 0) if key in fill else ranks[key]
        columns[key] = (pa.bool_(), pa.int64(), pa.float64())[rank]
    return columns


def _rank(value: Any) -> int | None:
    """0 for a bool, 1 for an integer of 64 bits, 2 for another number; None for the rest."""
    if isinstance(value, bool | np.bool_):
        return 0
    if isinstance(value, Integral):
        return 1 if -(1 << 63) <= int(value) < 1 << 63 else 2
    return 2 if isinstance(value, Real) else None


def _column(values: list[Any], kind: pa.DataType) -> pa.Array:
    make: Callable[[Any], Any] = bool if pa.types.is_boolean(kind) else int if pa.types.is_integer(kind) else float
    return pa.array([None if value is None else make(value) for value in values], kind)


__all__ = ["NetworkSource"]
