"""A sparse matrix as key-value data: an element's key is its row times the number of columns, plus its column."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from penstock.apps.grouped import mapped
from penstock.errors import UsageError
from penstock.mapreduce.keyvalue import KeyValue
from penstock.mapreduce.session import MapReduce

INDEX = np.dtype(np.uint64)
_PIECE = 1 << 20


@dataclass(frozen=True)
class Matrix:
    """Elements that are not stored are the zero of whatever semiring is used. No element is stored twice. Of several
    ranks each has some of the elements: those it was given, or its share of a graph's."""

    mr: MapReduce
    shape: tuple[int, int]
    entries: KeyValue

    @classmethod
    def of(
        cls,
        mr: MapReduce,
        data: Any,
        shape: tuple[int, int] | None = None,
        *,
        dtype: Any = None,
        weight: str | None = None,
    ) -> Matrix:
        """From (rows, columns, values), a SciPy matrix, a dense array, or a Penstock graph: its arcs, whose elements
        are those of the edge column `weight`, of the first one if it has any, or ones."""
        from penstock.graph import Graph

        if isinstance(data, Graph):
            return cls._of_graph(mr, data, dtype, weight)
        if weight is not None:
            raise UsageError("weight is the edge column of a graph: other matrices have their elements already")
        if hasattr(data, "tocoo"):
            found = data.tocsr().tocoo()  # elements that are stored twice add up
            parts, shape = (found.row, found.col, found.data), found.shape
        elif isinstance(data, tuple):
            if len(data) != 3 or shape is None:
                raise UsageError("a matrix from arrays needs rows, columns and values, and shape=(rows, columns)")
            parts = np.asarray(data[0]), np.asarray(data[1]), np.asarray(data[2])
        else:
            dense = np.asarray(data)
            if dense.ndim != 2:
                raise UsageError(f"a matrix has two dimensions, not {dense.ndim}")
            rows, columns = np.nonzero(dense)
            parts, shape = (rows, columns, dense[rows, columns]), dense.shape
        _check(shape, *parts[:2])
        keys = parts[0].astype(INDEX) * INDEX.type(shape[1]) + parts[1].astype(INDEX)
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        if len(keys) > 1 and (keys[1:] == keys[:-1]).any():
            at = int(keys[1:][keys[1:] == keys[:-1]][0])
            raise UsageError(f"element ({at // shape[1]}, {at % shape[1]}) is given twice: add them up, or drop one")
        values = np.ascontiguousarray(parts[2])[order]
        kind = np.dtype(dtype or values.dtype)
        return cls(mr, shape, mr.keyvalue(keys, values.astype(kind, copy=False), key=INDEX, value=kind))

    @classmethod
    def _of_graph(cls, mr: MapReduce, graph: Any, dtype: Any, weight: str | None) -> Matrix:
        """By internal number; parallel edges may not be there."""
        if weight is not None and weight not in graph.columns:
            raise UsageError(f"the graph has no edge column {weight!r}, only {', '.join(graph.columns) or 'none'}")
        n, names = graph.vertices, list(graph.columns)[:1] if weight is None else [weight]
        kind = np.dtype(dtype or (graph.store.direction("out").column_dtype(names[0]) if names else np.float64))
        _check((n, n))

        def pieces() -> Iterator[tuple[np.ndarray, np.ndarray]]:
            for source, target, values in graph.edge_arrays(None, names, both_ways=True, size=_PIECE):
                element = values[names[0]].astype(kind) if names else np.ones(len(source), kind)
                yield source.astype(INDEX) * INDEX.type(n) + target.astype(INDEX), element

        mine = islice(pieces(), mr.communicator.rank, None, mr.communicator.size)
        return cls(mr, (n, n), mr.keyvalue(mine, key=INDEX, value=kind))

    @property
    def dtype(self) -> np.dtype:
        """Of the elements."""
        return np.dtype(self.entries.value)

    @property
    def stored(self) -> int:
        """How many elements are stored."""
        return len(self.entries)

    @property
    def transposed(self) -> Matrix:
        """Rows and columns exchanged."""
        width, height = INDEX.type(self.shape[1]), INDEX.type(self.shape[0])

        def turn(keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            row, column = np.divmod(keys, width)
            return column * height + row, values

        return Matrix(self.mr, self.shape[::-1], mapped(self.entries, turn, INDEX, self.dtype))

    def cast(self, dtype: Any) -> Matrix:
        """The same elements as another type."""
        kind = np.dtype(dtype)
        if kind == self.dtype:
            return self
        return Matrix(self.mr, self.shape, mapped(self.entries, lambda k, v: (k, v.astype(kind)), INDEX, kind))

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(rows, columns, values) of this rank, in order."""
        keys, values = [np.empty(0, INDEX)], [np.empty(0, self.dtype)]
        for chunk in self.entries.chunks():
            keys.append(np.array(chunk.keys))
            values.append(np.array(chunk.values))
        every = np.concatenate(keys)
        order = np.argsort(every, kind="stable")
        rows, columns = np.divmod(every[order], INDEX.type(max(1, self.shape[1])))
        return rows.astype(np.int64), columns.astype(np.int64), np.concatenate(values)[order]

    def rows_of(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(offsets, columns, values): compressed sparse rows."""
        rows, columns, values = self.arrays()
        offsets = np.zeros(self.shape[0] + 1, np.int64)
        np.cumsum(np.bincount(rows, minlength=self.shape[0]), out=offsets[1:])
        return offsets, columns, values

    def dense(self, zero: Any = 0) -> np.ndarray:
        """All elements, `zero` where none is stored."""
        found = np.full(self.shape, zero, np.result_type(self.dtype, np.asarray(zero).dtype))
        rows, columns, values = self.arrays()
        found[rows, columns] = values
        return found

    def to_scipy(self) -> Any:
        """A SciPy matrix in CSR form."""
        from scipy.sparse import csr_matrix

        offsets, columns, values = self.rows_of()
        return csr_matrix((values, columns, offsets), shape=self.shape)


def _check(shape: tuple[int, int], *indices: np.ndarray) -> None:
    if shape[0] < 0 or shape[1] < 0 or shape[0] * shape[1] >= 1 << 64:
        raise UsageError(f"a matrix of {shape[0]} x {shape[1]} has more than 2**64 places")
    for name, bound, index in zip(("row", "column"), shape, indices, strict=False):
        if len(index) and (int(index.min()) < 0 or int(index.max()) >= bound):
            wrong = int(index.min()) if int(index.min()) < 0 else int(index.max())
            raise UsageError(f"{name} {wrong} is outside of the {bound} {name}s of the matrix")


__all__ = ["INDEX", "Matrix"]
