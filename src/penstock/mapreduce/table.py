"""Pairs as a table: named columns, one for each field of a struct, in batches that the budget has room for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from penstock.errors import InputError, UsageError
from penstock.mapreduce.columns import Bytes, Column, concat, empty, is_nothing, kind_of, take, to_arrow
from penstock.rows import Rows

if TYPE_CHECKING:
    from penstock.mapreduce.keyvalue import KeyValue


class Table(Rows):
    """The pairs of this rank. Columns of nothing are left out; a field of several numbers makes a column of each.

    `names` are the columns' names. `lookup[name][i]` stands for the number i in a column of that name. Bytes of
    strings that are no UTF-8 are shown as `\\xff`.
    """

    def __init__(
        self, pairs: KeyValue, names: Sequence[str] | None = None, lookup: Mapping[str, Any] | None = None
    ) -> None:
        self.pairs, self._lookup = pairs, dict(lookup or {})
        self.stats: dict[str, Any] = {}
        both = (empty(pairs.key), "key"), (empty(pairs.value), "value")
        found = [name for column, prefix in both for name, _ in _flat(column, prefix)]
        if names is not None and len(names) != len(found):
            raise UsageError(f"{len(found)} names are needed, for {', '.join(found)}; {len(names)} were given")
        self.names = list(names or found)
        self.group = max(1, min(self.group, pairs.mr.work_bytes // 8 // max(1, self._width)))

    @property
    def _width(self) -> int:
        """Bytes of a row, about."""
        return self.pairs.nbytes // max(1, len(self.pairs)) + 1

    @property
    def schema(self) -> pa.Schema:
        return self._batch(empty(self.pairs.key), empty(self.pairs.value)).schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        # Whoever writes files holds a group of rows, and makes another form of it.
        with self.pairs.mr.room.reserve(2 * self.group * self._width, "rows on their way out"):
            for chunk in self.pairs.chunks():
                for begin in range(0, len(chunk), self.group):
                    rows = np.arange(begin, min(begin + self.group, len(chunk)))
                    yield self._batch(take(chunk.keys, rows), take(chunk.values, rows))

    def top(self, count: int) -> pa.Table:
        """The rows of the largest values, largest first; of a struct, by its last field."""
        best: tuple[Column, Column] | None = None
        for chunk in self.pairs.chunks():
            keys, values = chunk.keys, chunk.values
            if best is not None:
                keys, values = concat([best[0], keys]), concat([best[1], values])
            weight = values
            while isinstance(weight, np.ndarray) and weight.dtype.names:
                weight = weight[weight.dtype.names[-1]]
            if not isinstance(weight, np.ndarray) or weight.ndim != 1 or is_nothing(weight.dtype):
                raise UsageError(f"values of {self.pairs.value} are neither large nor small")
            # Turned round twice, so that of equal ones the first comes first.
            order = (len(weight) - 1 - np.argsort(weight[::-1], kind="stable"))[::-1][:count]
            best = take(keys, order), take(values, order)
        if best is None:
            return pa.Table.from_batches([], self.schema)
        return pa.Table.from_batches([self._batch(*best)])

    def _batch(self, keys: Column, values: Column) -> pa.RecordBatch:
        arrays = [array for column, name in ((keys, "key"), (values, "value")) for _, array in _flat(column, name)]
        for at, name in enumerate(self.names):
            if name in self._lookup:
                listed = self._lookup[name]
                held = listed if isinstance(listed, pa.Array | pa.ChunkedArray) else pa.array(listed)
                found = held.take(arrays[at])
                arrays[at] = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
        return pa.RecordBatch.from_arrays(arrays, self.names)


def _flat(column: Column, name: str) -> Iterator[tuple[str, pa.Array]]:
    """A column as named Arrow arrays of plain types."""
    if isinstance(column, Bytes):
        yield name, _readable(column)
    elif column.dtype.names:
        for field in column.dtype.names:
            yield from _flat(np.ascontiguousarray(column[field]), field)
    elif column.ndim > 1:
        width = int(np.prod(column.shape[1:]))
        for k in range(width):
            yield f"{name}_{k}", to_arrow(np.ascontiguousarray(column.reshape(len(column), width)[:, k]))
    elif not is_nothing(kind_of(column)):
        yield name, to_arrow(column)


def _readable(column: Bytes) -> pa.Array:
    try:
        return to_arrow(column)
    except InputError:
        rows = Bytes(column.offsets, column.data).to_list()
        return pa.array([row.decode("utf-8", "backslashreplace") for row in rows], pa.large_string())


__all__ = ["Table"]
