"""Edges out of NumPy arrays: sliced where they lie, copied only where their layout forces it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from penstock.errors import InputError
from penstock.ingest.source import STORAGE
from penstock.ingest.tables.arrow import SlicedSource, brief
from penstock.ingest.tables.host import on_host
from penstock.ingest.tables.schema import TableOptions

Column: TypeAlias = np.ndarray | pa.Array
_PLAIN = frozenset(STORAGE.values())


class ArraysSource(SlicedSource):
    """Named columns of equal length."""

    def __init__(self, columns: Mapping[str, Column], options: TableOptions, name: str = "NumPy arrays") -> None:
        self._arrays = {column: prepared(values, column, name) for column, values in columns.items()}
        lengths = {column: len(values) for column, values in self._arrays.items()}
        if len(set(lengths.values())) > 1:
            shown = ", ".join(f"{column} has {length}" for column, length in lengths.items())
            raise InputError(f"the arrays differ in length: {shown}", path=name)
        super().__init__(name, pa.schema([(c, arrow_type(a, c, name)) for c, a in self._arrays.items()]), options)
        self.estimated_edges = self.size = next(iter(lengths.values()))

    def batches(self, rows: int) -> Iterator[pa.RecordBatch]:
        names = self.layout.names
        for start in range(0, self.size or 0, rows):
            yield pa.record_batch([arrow_array(self._arrays[c][start : start + rows]) for c in names], names=names)


def prepared(values: Any, column: str, where: str) -> Column:
    """An array Arrow understands: one dimension; Python objects become Arrow values once and for all."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.Array):
        return values
    try:
        if isinstance(values, list | tuple):
            return _from_objects(values)
        array = np.asarray(on_host(values, where))
        if array.dtype.kind == "O" and array.ndim == 1:
            return _from_objects(array.tolist())
    except OverflowError:
        raise InputError(f"column {column!r} holds a number that does not fit in 64 bits", path=where) from None
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InputError(f"column {column!r} holds values of more than one kind: {brief(error)}", path=where) from error
    if array.ndim != 1:
        raise InputError(f"column {column!r} has {array.ndim} dimensions, a column has one", path=where)
    if array.dtype == np.float16:
        return array.astype(np.float32)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _from_objects(values: Sequence[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except OverflowError:
        return pa.array(values, pa.uint64())


def arrow_type(values: Column, column: str, where: str) -> pa.DataType:
    if isinstance(values, pa.Array):
        return values.type
    if values.dtype in _PLAIN:
        return pa.from_numpy_dtype(values.dtype)
    try:
        return pa.array(values[:1]).type
    except (pa.ArrowException, TypeError, ValueError):
        raise InputError(
            f"column {column!r} is of type {values.dtype}, which Arrow does not know", path=where
        ) from None


def arrow_array(values: Column) -> pa.Array:
    """Numbers without copying, and without `pa.array`, which imports pandas where it is installed."""
    if isinstance(values, pa.Array):
        return values
    if values.dtype in _PLAIN:
        data = np.ascontiguousarray(values)
        return pa.Array.from_buffers(pa.from_numpy_dtype(data.dtype), len(data), [None, pa.py_buffer(data)])
    if values.dtype == np.bool_:
        bits = np.packbits(values, bitorder="little")
        return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(bits)])
    return pa.array(values)


__all__ = ["ArraysSource", "arrow_array", "arrow_type", "prepared"]
