"""Edges out of scipy.sparse: entry (i, j) is the edge i -> j with its value as `weight`, explicit zeros included."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import InputError
from penstock.ingest.source import VertexTable
from penstock.ingest.tables.arrays import arrow_array, arrow_type, prepared
from penstock.ingest.tables.arrow import SlicedSource
from penstock.ingest.tables.schema import TableOptions


class MatrixSource(SlicedSource):
    """CSR, CSC and COO are read where they lie; other layouts are turned into COO first."""

    def __init__(self, matrix: Any, options: TableOptions) -> None:
        name = f"scipy {type(matrix).__name__}"
        if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
            shape = " x ".join(map(str, matrix.shape))
            raise InputError(f"is {shape}, and a graph needs a square matrix", path=name)
        self._matrix = matrix if matrix.format in ("csr", "csc", "coo") else matrix.tocoo()
        self._values = prepared(self._matrix.data, "weight", name)
        # An int32 index is never negative, so the same bytes are a uint32; a broken one is caught as out of range.
        self._id = np.dtype(np.uint32 if self._indices(0, 1)[0].dtype.itemsize == 4 else np.int64)
        ids = pa.from_numpy_dtype(self._id)
        if options.columns is not None and not len(options.columns):
            schema = pa.schema([("source", ids), ("target", ids)])
        else:
            kind = arrow_type(self._values, "weight", name)
            schema = pa.schema([("source", ids), ("target", ids), ("weight", kind)])
        super().__init__(name, schema, options)
        self.estimated_edges = self.size = len(self._values)

    def batches(self, rows: int) -> Iterator[pa.RecordBatch]:
        for start in range(0, len(self._values), rows):
            stop = min(start + rows, len(self._values))
            ends = [_view(end, self._id) for end in self._indices(start, stop)]
            for end in ends:
                if int(end.min()) < 0 or int(end.max()) >= self._matrix.shape[0]:
                    raise InputError(f"has an index outside 0 .. {self._matrix.shape[0] - 1}", path=self.name)
            columns = [*ends, self._values[start:stop]][: 2 + len(self.columns)]
            names = ["source", "target", "weight"][: len(columns)]
            yield pa.record_batch([arrow_array(column) for column in columns], names=names)

    def _indices(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        matrix = self._matrix
        if matrix.format == "coo":
            return matrix.row[start:stop], matrix.col[start:stop]
        minor = matrix.indices[start:stop]
        major = _major(matrix.indptr, start, start + len(minor), minor.dtype)
        return (major, minor) if matrix.format == "csr" else (minor, major)

    def vertices(self) -> VertexTable:
        return VertexTable(range(self._matrix.shape[0]))

    def refuse_empty(self) -> None:
        """The shape declares vertices: a matrix without entries is a graph without edges."""


def _major(indptr: np.ndarray, start: int, stop: int, dtype: np.dtype) -> np.ndarray:
    """The compressed axis of entries start .. stop - 1."""
    first = int(np.searchsorted(indptr, start, side="right")) - 1
    last = int(np.searchsorted(indptr, stop, side="left"))
    if last - first > 4 * (stop - start):  # mostly empty rows: do not list them
        return (np.searchsorted(indptr, np.arange(start, stop), side="right") - 1).astype(dtype)
    counts = np.diff(np.clip(indptr[first : last + 1], start, stop))
    return np.repeat(np.arange(first, last, dtype=dtype), counts)


def _view(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return np.ascontiguousarray(values).view(dtype) if values.itemsize == dtype.itemsize else values.astype(dtype)


__all__ = ["MatrixSource"]
