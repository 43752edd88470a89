"""Graph: an immutable handle on a store."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from penstock.config import Settings, settings
from penstock.errors import StoreError, UsageError, meant
from penstock.memory.device import kernel
from penstock.memory.ledger import Ledger, Scope
from penstock.memory.topology import Resident
from penstock.networks import network
from penstock.store.arrow import arrow_type, plain_array, typed_array
from penstock.store.draft import remove_store
from penstock.store.encodings import decode
from penstock.store.parallel import has_parallel
from penstock.store.reader import Direction, Store

if TYPE_CHECKING:
    from penstock.memory.card import Card

BATCH = 1 << 16
_FEW = 64
"""Neighbours whose string ids are read one by one rather than with all others."""


class Graph:
    """A graph on disk. It speaks the user's ids; closing it gives its descriptors and memory back.

    NetworkX's functions take it where they take a graph of their own, if Penstock has them (`interfaces/nx`)."""

    __networkx_backend__ = "penstock"

    def __init__(self, store: Store, *, temporary: bool = False) -> None:
        self._store: Store | None = store
        self._temporary = temporary
        self._users: pa.Array | None = None
        self._held: Scope | None = None
        self._parallel: bool | None = None
        self.loaded: dict[str, Resident] = {}
        """What `load` put into memory, by direction."""
        self.loaded_ids: np.ndarray | None = None
        self.card: Card | None = None
        """The GPU that `load` put pages to."""
        self.__networkx_cache__: dict[str, Any] = {}

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
    def is_open(self) -> bool:
        return self._store is not None

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

    def __iter__(self) -> Iterator[Any]:
        """The ids, ascending."""
        for batch in self.vertex_batches([]):
            yield from batch.column(0).to_pylist()

    def is_directed(self) -> bool:
        """What NetworkX calls `directed`."""
        return self.directed

    def is_multigraph(self) -> bool:
        """Whether there are parallel arcs; the first call may have to read them all."""
        if self._parallel is None:
            self._parallel = has_parallel(self.store.direction("out"))
        return self._parallel

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
        """The ids at the other ends of a vertex's arcs, ascending; duplicate edges are all listed."""
        _check_direction(direction)
        if not self.store.has_direction(direction):
            raise UsageError(f"{self.path} stores no incoming arcs: build it without incoming=False")
        found = self._neighbour_numbers(self.store.ids.number(vertex), self.store.direction(direction))
        ids = self.store.ids
        if self._users is None and ids.kind != "string":
            return sorted(ids.values.at(found).tolist())
        if self._users is None and len(found) <= _FEW:
            return sorted(ids.of(int(number)) for number in found)
        return sorted(self.users().take(plain_array(found)).to_pylist())

    @staticmethod
    def _neighbour_numbers(number: int, direction: Direction) -> np.ndarray:
        pieces = [np.zeros(0, np.uint64)]
        home, scratch = direction.home, direction.scratch()
        for page in direction.pages_of(number):
            block = decode(direction.read_page(page), direction.records[page], home, scratch)
            at = number - block.first_vertex
            pieces.append(block.neighbours[block.offsets[at] : block.offsets[at + 1]].astype(np.uint64))
        return np.concatenate(pieces)

    def vertex(self, vertex: Any) -> dict[str, Any]:
        """The vertex columns of one vertex."""
        number = self.store.ids.number(vertex)
        return {
            name: typed_array(self.store.vertex_column(name).read(number, number + 1), kind)[0].as_py()
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
        names = list(self.columns) if columns is None else _listed(columns)
        for name in names:
            if name not in self.columns:
                have, near = ", ".join(self.columns) or "none", meant(name, self.columns)
                raise UsageError(f"{self.path} has no edge column {name!r}{near or ';'} it has {have}")
            if names.count(name) > 1:
                raise UsageError(f"columns names {name!r} twice")
        fields = [("source", kind), ("target", kind), *((name, arrow_type(self.columns[name])) for name in names)]
        return pa.schema(fields)

    def edge_batches(self, columns: Sequence[str] | None = None, *, size: int = BATCH) -> Iterator[pa.RecordBatch]:
        """The edges as Arrow batches of at least `size` arcs and whole pages: source, target, columns. Undirected
        edges come once, the smaller id first."""
        schema = self.edge_schema(columns)
        check_size(size)
        return self._edge_batches(schema, size)

    def _edge_batches(self, schema: pa.Schema, size: int) -> Iterator[pa.RecordBatch]:
        users, text = self.users(), self.store.ids.kind == "string"
        labels = None if text else users.to_numpy()
        for source, target, values in self.edge_arrays(labels, schema.names[2:], size=size):
            ends = [plain_array(numbers) for numbers in (source, target)]
            if text:
                ends = [users.take(numbers) for numbers in ends]
            typed = (typed_array(column, self.columns[name]) for name, column in values.items())
            yield pa.record_batch([*ends, *typed], schema=schema)

    def edge_arrays(
        self, labels: np.ndarray | None, columns: Sequence[str] = (), *, both_ways: bool = False, size: int = BATCH
    ) -> Iterator[tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]]:
        """(source, target, columns in storage form), some pages at a time, under labels in the order of the ids:
        `labels[i]` stands for vertex number i; None gives the numbers. Undirected edges come once, the smaller id
        first, unless both arcs are asked for."""
        direction = self.store.direction("out")
        once = not self.directed and not both_ways
        keys = (self.ranks() if labels is None else labels) if once else np.empty(0, np.uint64)
        given = np.empty(0, np.uint64) if labels is None else labels
        scratch, home, arcs = direction.scratch(), direction.home, direction.records["arcs"]
        for pages in _groups(arcs, size):
            self.store  # noqa: B018  says so if the graph was closed meanwhile
            total = int(arcs[pages.start : pages.stop].sum())
            source, target = np.empty(total, given.dtype), np.empty(total, given.dtype)
            kept = np.empty(total if once else 0, np.uint64)
            count = arc = np.uint64(0)
            for page in pages:
                block = decode(direction.read_page(page), direction.records[page], home, scratch)
                count = _expand(
                    np.uint64(block.first_vertex), block.offsets, block.neighbours,
                    given, keys, source, target, kept, np.uint64(count), arc,
                )  # fmt: skip
                arc += np.uint64(len(block.neighbours))
            if not count:
                continue
            values = {name: np.concatenate([direction.read_column(name, page) for page in pages]) for name in columns}
            if once:
                values = {name: column[kept[:count]] for name, column in values.items()}
            yield source[:count], target[:count], values

    def edge_reader(self, columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
        """`edge_batches` as an Arrow stream."""
        return pa.RecordBatchReader.from_batches(self.edge_schema(columns), self.edge_batches(columns))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The edges, for anything that takes an Arrow stream: pandas, polars, DuckDB."""
        return self.edge_reader().__arrow_c_stream__(requested_schema)

    def vertex_schema(self, columns: Sequence[str] | None = None) -> pa.Schema:
        """The schema of `vertex_batches`."""
        names = list(self.vertex_columns) if columns is None else _listed(columns)
        for name in names:
            if name not in self.vertex_columns:
                raise UsageError(f"{self.path} has no vertex column {name!r}; it has {', '.join(self.vertex_columns)}")
        fields = [("id", self.store.ids.arrow_type), *((name, arrow_type(self.vertex_columns[name])) for name in names)]
        return pa.schema(fields)

    def vertex_batches(self, columns: Sequence[str] | None = None, size: int = BATCH) -> Iterator[pa.RecordBatch]:
        """The vertices in order of their ids: id, vertex columns."""
        schema = self.vertex_schema(columns)
        check_size(size)
        return self._vertex_batches(schema, size)

    def _vertex_batches(self, schema: pa.Schema, size: int) -> Iterator[pa.RecordBatch]:
        kinds = {name: self.vertex_columns[name] for name in schema.names[1:]}
        values = {name: self.store.vertex_column(name).read() for name in kinds}
        order, users = self.store.ids.order, self.users()
        for at in range(0, self.vertices, size):
            numbers = order.read(at, at + size)
            arrays = [users.take(plain_array(numbers))]
            arrays += [typed_array(values[name][numbers], kind) for name, kind in kinds.items()]
            yield pa.record_batch(arrays, schema=schema)

    def to_networkx(self, multigraph: bool | None = None) -> Any:
        """A NetworkX graph with the columns as attributes of edges and nodes. It is a multigraph if there are parallel
        edges, or as `multigraph` says; without it the last of parallel edges stays."""
        if multigraph is None:
            made = self.to_networkx(False)
            return made if made.number_of_edges() == self.edges else self.to_networkx(True)
        columns = [name for name in self.vertex_columns if name not in ("out_degree", "in_degree")]
        vertices = self.vertex_batches(columns)
        return network(self.edge_batches(), vertices, directed=self.directed, multigraph=multigraph)

    def ranks(self) -> np.ndarray:
        """The place of each vertex, by internal number, when all are sorted by id; strings sort bytewise."""
        order = self.store.ids.order
        rank, at = np.empty(len(order), order.dtype), 0
        for numbers in order.pieces():
            rank[numbers] = np.arange(at, at + len(numbers), dtype=rank.dtype)
            at += len(numbers)
        return rank

    # ---- in memory

    def load(self, *directions: str, columns: Sequence[str] = (), **limits: Any) -> Self:
        """Put the arcs of these directions (all, if none is named) into memory, for all runs until the graph is closed
        or `unload` is called; with `device="gpu"`, into the GPU's, as far as there is room."""
        chosen = settings(**limits)
        self.unload()
        try:
            self._load(directions or tuple(self.store.meta["directions"]), _listed(columns), chosen)
        except BaseException:
            self.unload()
            raise
        return self

    def _load(self, names: Sequence[str], columns: Sequence[str], chosen: Settings) -> None:
        if chosen.device.startswith("gpu"):
            from penstock.memory.card import Card

            self.card = Card(self.store, chosen, Ledger(chosen.memory_limit))
            self.card.pages(names, columns, "resident")
            self._held = self.card.host.scope("graph")
            self._load_ids(self._held)
            return
        self._held = Ledger(chosen.memory_limit).scope("graph")
        for name in names:
            direction = self.store.direction(name)
            self.loaded[direction.name] = Resident(direction, columns, self._held, chosen)
        self._load_ids(self._held)

    def _load_ids(self, scope: Scope) -> None:
        """If there is room: what names components by their smallest id would read them in every run."""
        values, active = self.store.ids.values if self.store.ids.kind != "string" else None, self.store.active
        if values is not None and scope.ledger.free >= 2 * active * values.dtype.itemsize:
            self.loaded_ids = values.read(0, active, out=scope.empty(active, values.dtype, "ids"))

    def unload(self) -> None:
        """Let go of what `load` put into memory."""
        self.loaded.clear()
        self.loaded_ids = None
        if self.card is not None:
            self.card.close()
            self.card = None
        if self._held is not None:
            self._held.close()
            self._held = None

    # ---- life

    def close(self) -> None:
        """Let go of the store; a temporary one is deleted."""
        self.unload()
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


def check_size(size: int) -> None:
    if size < 1:
        raise UsageError(f"a batch holds at least one row, not {size}")


def _listed(names: Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _groups(arcs: np.ndarray, size: int) -> Iterator[range]:
    """Runs of pages of at least `size` arcs each, but for the last."""
    begin, held = 0, 0
    for page, count in enumerate(arcs.tolist()):
        held += count
        if held >= size:
            yield range(begin, page + 1)
            begin, held = page + 1, 0
    if begin < len(arcs):
        yield range(begin, len(arcs))


@kernel()
def _expand(first, offsets, neighbours, labels, keys, source, target, kept, at, arc):
    """Append a page's arcs. With `keys`, only those from the smaller key to the larger, and `kept` says which."""
    one = np.uint64(1)
    labelled, once = labels.size > 0, keys.size > 0
    for v in range(np.uint64(offsets.size - 1)):
        u = first + v
        for a in range(np.uint64(offsets[v]), np.uint64(offsets[v + one])):
            w = np.uint64(neighbours[a])
            if once:
                if keys[u] > keys[w]:
                    continue
                kept[at] = arc + a
            if labelled:
                source[at] = labels[u]
                target[at] = labels[w]
            else:
                source[at] = u
                target[at] = w
            at += one
    return at
