"""What an algorithm returns: one or more values per vertex, under the user's ids, and how the run went."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import UsageError
from penstock.store.arrow import plain_array
from penstock.store.ids import Ids
from penstock.store.whole import whole_file

BATCH = 1 << 16
_PIECE = 1 << 20
"""Values looked at together when the largest are wanted."""
_FEW = 256
"""Rows whose string ids are read one by one rather than with all others."""


class Result:
    """Values for the active vertices, and one value that all isolated vertices share; None: they have none. Rows come
    in order of ids."""

    def __init__(
        self, ids: Ids, values: Mapping[str, np.ndarray], isolated: Mapping[str, Any], stats: Mapping[str, Any]
    ) -> None:
        self._ids, self._values, self._isolated = ids, dict(values), dict(isolated)
        self.stats = dict(stats)

    def __len__(self) -> int:
        return self._ids.count

    def __repr__(self) -> str:
        return f"<penstock.Result: {', '.join(self._values)} of {len(self)} vertices>"

    @property
    def schema(self) -> pa.Schema:
        fields = [("vertex", self._ids.arrow_type)]
        fields += [(name, pa.from_numpy_dtype(values.dtype)) for name, values in self._values.items()]
        return pa.schema(fields)

    # ---- rows

    def batches(self, size: int = BATCH) -> Iterator[pa.RecordBatch]:
        """The result as a stream: nothing but one batch and the ids is held."""
        if size < 1:
            raise UsageError(f"a batch holds at least one row, not {size}")
        return self._batches(size)

    def _batches(self, size: int) -> Iterator[pa.RecordBatch]:
        users, schema = self._ids.all(), self.schema
        for at in range(0, len(self), size):
            numbers = self._ids.order.read(at, at + size)
            arrays = [users.take(plain_array(numbers)), *(self._column(name, numbers) for name in self._values)]
            yield pa.record_batch(arrays, schema=schema)

    def _column(self, name: str, numbers: np.ndarray) -> pa.Array:
        values, shared = self._values[name], self._isolated[name]
        result = np.zeros(len(numbers), values.dtype)
        active = numbers < len(values)
        result[active] = values[numbers[active]]
        if shared is not None:
            result[~active] = shared
        return plain_array(result, active if shared is None else None)

    @property
    def table(self) -> pa.Table:
        """Everything at once."""
        return pa.Table.from_batches(self.batches(), self.schema)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        reader = pa.RecordBatchReader.from_batches(self.schema, self.batches())
        return reader.__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """A pandas DataFrame."""
        return self.table.to_pandas()

    def to_polars(self) -> Any:
        """A Polars DataFrame."""
        try:
            import polars
        except ModuleNotFoundError:
            raise UsageError("to_polars needs Polars: pip install polars") from None
        return polars.from_arrow(self.table)

    def to_dict(self) -> dict[Any, Any]:
        """vertex -> value (or a tuple of values)."""
        table = self.table
        ids, *columns = (column.to_pylist() for column in table.columns)
        return dict(zip(ids, columns[0] if len(columns) == 1 else zip(*columns, strict=True), strict=True))

    # ---- the largest

    def top(self, k: int = 10, by: str | None = None) -> pa.Table:
        """The k vertices of the largest value; ties go to the smaller internal number, which has more arcs. NaN and
        null come last."""
        name = by or next(iter(self._values))
        if name not in self._values:
            raise UsageError(f"the result has no column {name!r}; it has {', '.join(self._values)}")
        if k < 0:
            raise UsageError(f"top takes a number of rows, not {k}")
        values, shared = self._values[name], self._isolated[name]
        best = np.zeros(0, np.uint64)
        for at in range(0, len(values), _PIECE):
            piece = np.arange(at, min(at + _PIECE, len(values)), dtype=np.uint64)
            numbers = np.concatenate([best, piece])
            best = numbers[_largest(values[numbers], k)]
        alone = np.arange(len(values), min(len(self), len(values) + k), dtype=np.uint64)
        if len(alone) and shared is not None:
            numbers = np.concatenate([best, alone])
            held = np.concatenate([values[best], np.full(len(alone), shared, values.dtype)])
            best = numbers[_largest(held, k)]
        elif len(alone):
            best = np.concatenate([best, alone])[:k]
        return pa.table([self._users(best), *(self._column(name, best) for name in self._values)], schema=self.schema)

    def _users(self, numbers: np.ndarray) -> pa.Array:
        ids = self._ids
        if ids.kind != "string":
            return plain_array(ids.values.at(numbers))
        if len(numbers) > _FEW:
            return ids.all().take(plain_array(numbers))
        return pa.array([ids.of(int(number)) for number in numbers], ids.arrow_type)

    # ---- files

    def write(self, path: str | os.PathLike[str], *, overwrite: bool = True) -> Path:
        """Write .parquet, .csv, .tsv, .txt, .json (one object per line) or .arrow, by the ending; complete or not
        at all."""
        target = Path(path)
        writer = _WRITERS.get(target.suffix.lower())
        if writer is None:
            raise UsageError(f"{target} does not end in one of {', '.join(_WRITERS)}")
        with whole_file(target, overwrite=overwrite) as partial:
            writer(partial, self)
        return target


def _largest(values: np.ndarray, k: int) -> np.ndarray:
    """Positions of the k largest values, largest first; of equal ones the first. NaN is less than everything."""
    # Negation overflows in integers and does not exist for bool; the complement turns the order of both around.
    falling = -values if values.dtype.kind == "f" else ~values
    if k < len(falling):
        if k == 0:
            return np.zeros(0, np.int64)
        bound = np.partition(falling, k - 1)[k - 1]
        if bound != bound:  # noqa: PLR0124  NaN: everything else is larger
            better, equal = ~np.isnan(falling), np.isnan(falling)
        else:
            better, equal = falling < bound, falling == bound
        sure = np.flatnonzero(better)
        chosen = np.sort(np.concatenate([sure, np.flatnonzero(equal)[: k - len(sure)]]))
    else:
        chosen = np.arange(len(falling))
    return chosen[np.argsort(falling[chosen], kind="stable")]


def _parquet(path: Path, result: Result) -> None:
    import pyarrow.parquet as pq

    with pq.ParquetWriter(path, result.schema) as writer:
        for batch in result.batches(1 << 20):
            writer.write_batch(batch)


def _arrow(path: Path, result: Result) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, result.schema) as writer:
        for batch in result.batches():
            writer.write_batch(batch)


def _delimited(delimiter: str, header: bool) -> Callable[[Path, Result], None]:
    def write(path: Path, result: Result) -> None:
        from pyarrow import csv

        options = csv.WriteOptions(include_header=header, delimiter=delimiter, quoting_style="needed")
        with csv.CSVWriter(str(path), result.schema, write_options=options) as writer:
            for batch in result.batches():
                writer.write_batch(batch)

    return write


def _json(path: Path, result: Result) -> None:
    names = result.schema.names
    with path.open("w", encoding="utf-8") as file:
        for batch in result.batches():
            columns = [map(_finite, column.to_pylist()) for column in batch.columns]
            file.writelines(
                json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) + "\n"
                for row in zip(*columns, strict=True)
            )


def _finite(value: Any) -> Any:
    """JSON knows neither NaN nor infinity: they become null and a string."""
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return None if math.isnan(value) else str(value)


_WRITERS: dict[str, Callable[[Path, Result], None]] = {
    ".parquet": _parquet,
    ".csv": _delimited(",", True),
    ".tsv": _delimited("\t", True),
    ".txt": _delimited(" ", False),
    ".json": _json,
    ".arrow": _arrow,
}
