"""Graph: an immutable handle on a store."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa

from penstock.errors import StoreError, UsageError
from penstock.store.columns import type_dtype
from penstock.store.draft import remove_store
from penstock.store.encodings import decode
from penstock.store.reader import Direction, Store


class Graph:
    """A graph on disk. It speaks the user's ids; closing it gives its descriptors and memory back."""

    def __init__(self, store: Store, *, temporary: bool = False) -> None:
        self._store: Store | None = store
        self._temporary = temporary
        self._users: pa.Array | None = None

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open a store; what is wrong with it is said at once."""
        return cls(Store(Path(path)))

    @property
    def store(self) -> Store:
        if self._store is None:
            raise StoreError("the graph is closed")
        return self._store

    @property
    def path(self) -> Path:
        return self.store.path

    @property
    def vertices(self) -> int:
        """How many vertices there are, isolated ones included."""
        return self.store.vertices

    @property
    def edges(self) -> int:
        """How many edges the user gave that were kept; an undirected edge counts once."""
        return self.store.edges

    @property
    def arcs(self) -> int:
        """How many adjacency entries are stored in one direction."""
        return self.store.direction("out").arcs

    @property
    def directed(self) -> bool:
        return self.store.directed

    @property
    def columns(self) -> dict[str, str]:
        """The edge columns and their types, as Arrow names them."""
        return dict(self.store.direction("out").columns)

    @property
    def vertex_columns(self) -> dict[str, str]:
        """The vertex columns and their types."""
        return {name: entry["type"] for name, entry in self.store.meta["vertex"].items()}

    def __len__(self) -> int:
        return self.vertices

    def __repr__(self) -> str:
        if self._store is None:
            return "<penstock.Graph, closed>"
        kind = "directed" if self.directed else "undirected"
        return f"<penstock.Graph {self.path}: {kind}, {self.vertices} vertices, {self.edges} edges>"

    # ---- one vertex

    def degree(self, vertex: Any, direction: str = "out") -> int:
        """Arcs that leave (`out`) or enter (`in`) a vertex."""
        _check_direction(direction)
        number = self.store.ids.number(vertex)
        return int(self.store.degree_column(direction).read(number, number + 1)[0])

    def neighbors(self, vertex: Any, direction: str = "out") -> list[Any]:
        """The ids at the other ends of a vertex's arcs; a duplicate edge is listed as often as it is there."""
        _check_direction(direction)
        number = self.store.ids.number(vertex)
        found = self._neighbour_numbers(number, direction)
        ids = self.store.ids
        if len(found) > 64:
            return list(self.users().take(pa.array(found)).to_pylist())
        return [ids.of(int(other)) for other in found]

    def _neighbour_numbers(self, number: int, name: str) -> np.ndarray:
        if not self.store.has_direction(name):
            raise UsageError(f"{self.path} stores no incoming arcs: build it without incoming=False")
        direction = self.store.direction(name)
        pieces = [np.zeros(0, np.uint64)]
        for page in direction.pages_of(number):
            block = direction.block(page)
            at = number - block.first_vertex
            pieces.append(block.neighbours[block.offsets[at] : block.offsets[at + 1]].astype(np.uint64))
        return np.concatenate(pieces)

    def vertex(self, vertex: Any) -> dict[str, Any]:
        """The vertex columns of one vertex."""
        number = self.store.ids.number(vertex)
        return {
            name: _typed(self.store.vertex_column(name).read(number, number + 1), kind)[0].as_py()
            for name, kind in self.vertex_columns.items()
        }

    # ---- all of it

    def users(self) -> pa.Array:
        """Every id by internal number; kept once it was asked for."""
        if self._users is None:
            self._users = self.store.ids.all()
        return self._users

    def edge_schema(self, columns: Sequence[str] | None = None) -> pa.Schema:
        """The schema of `edge_batches`."""
        kind = self.store.ids.arrow_type
        names = list(self.columns) if columns is None else list(columns)
        for name in names:
            if name not in self.columns:
                have = ", ".join(self.columns) or "none"
                raise UsageError(f"{self.path} has no edge column {name!r}; it has {have}")
        fields = [("source", kind), ("target", kind), *((name, arrow_type(self.columns[name])) for name in names)]
        return pa.schema(fields)

    def edge_batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The edges as Arrow batches, one for each page: source, target, columns. Undirected edges come once,
        the smaller id first."""
        schema = self.edge_schema(columns)
        names = schema.names[2:]
        direction = self.store.direction("out")
        users, rank = self.users(), None
        if not self.directed:
            rank = self._ranks()
        values = users.to_numpy() if self.store.ids.kind != "string" else None
        scratch, home = direction.scratch(), direction.home
        for page in range(len(direction)):
            source, target = _expand(direction, page, home, scratch)
            keep: Any = slice(None)
            if rank is not None:
                keep = rank[source] <= rank[target]
                source, target = source[keep], target[keep]
            if not len(source):
                continue
            arrays = [
                pa.array(values[ends]) if values is not None else users.take(pa.array(ends)) for ends in (source, target)
            ]
            for name in names:
                arrays.append(_typed(direction.read_column(name, page)[keep], self.columns[name]))
            yield pa.record_batch(arrays, schema=schema)

    def edge_reader(self, columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
        """`edge_batches` as an Arrow stream."""
        return pa.RecordBatchReader.from_batches(self.edge_schema(columns), self.edge_batches(columns))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The edges, for anything that takes an Arrow stream: pandas, polars, DuckDB."""
        return self.edge_reader().__arrow_c_stream__(requested_schema)

    def vertex_batches(self, columns: Sequence[str] | None = None, size: int = 1 << 16) -> Iterator[pa.RecordBatch]:
        """The vertices in order of their ids: id, vertex columns."""
        names = list(self.vertex_columns) if columns is None else list(columns)
        blobs = {name: self.store.vertex_column(name).read() for name in names}
        order, users = self.store.ids.order, self.users()
        for at in range(0, self.vertices, size):
            numbers = order.read(at, at + size)
            arrays = [users.take(pa.array(numbers))]
            arrays += [_typed(blobs[name][numbers], self.vertex_columns[name]) for name in names]
            yield pa.record_batch(arrays, names=["id", *names])

    def _ranks(self) -> np.ndarray:
        """The place of each vertex when all are sorted by id."""
        if self.store.ids.kind != "string":
            return np.asarray(self.users().to_numpy())
        order = self.store.ids.order.read()
        rank = np.empty(len(order), np.uint64)
        rank[order] = np.arange(len(order), dtype=np.uint64)
        return rank

    # ---- life

    def close(self) -> None:
        """Let go of the store; a temporary one is deleted."""
        if self._store is not None and self._temporary:
            remove_store(self._store.path)
        self._store = self._users = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def _check_direction(name: str) -> None:
    if name not in ("out", "in"):
        raise UsageError(f"direction must be 'out' or 'in', not {name!r}")


def _expand(direction: Direction, page: int, home: np.ndarray, scratch: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(source, target) numbers of a page's arcs."""
    block = decode(direction.read_page(page), direction.records[page], home, scratch)
    first = np.arange(block.first_vertex, block.first_vertex + len(block.offsets) - 1, dtype=np.uint64)
    return np.repeat(first, np.diff(block.offsets)), block.neighbours.copy()


def arrow_type(kind: str) -> pa.DataType:
    """The Arrow type of a column, from its name in the manifest."""
    if "[" in kind:
        base, unit = kind.rstrip("]").split("[")
        unit, _, zone = unit.partition(", tz=")
        if base == "timestamp":
            return pa.timestamp(unit, zone or None)
        if base == "duration":
            return pa.duration(unit)
        return {"date32": pa.date32, "date64": pa.date64}.get(base, lambda: getattr(pa, base)(unit))()
    return pa.bool_() if kind == "bool" else pa.type_for_alias(kind)


def _typed(values: np.ndarray, kind: str) -> pa.Array:
    """Storage values as an Arrow array of the column's own type."""
    wanted = arrow_type(kind)
    if pa.types.is_boolean(wanted):
        return pa.array(values.astype(bool))
    array = pa.array(np.ascontiguousarray(values, type_dtype(kind)))
    return array if array.type == wanted else array.view(wanted)
