"""What an algorithm returns: one or more values per vertex, under the user's ids, and how the run went."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import DiskFull, UsageError
from penstock.store.ids import Ids

BATCH = 1 << 16


class Result:
    """Values for the active vertices, and one value that all isolated vertices share. Rows come in order of ids."""

    def __init__(
        self, ids: Ids, values: Mapping[str, np.ndarray], isolated: Mapping[str, Any], stats: Mapping[str, Any]
    ) -> None:
        self._ids, self._values, self._isolated = ids, dict(values), dict(isolated)
        self.stats = dict(stats)

    def __len__(self) -> int:
        return self._ids.count

    @property
    def schema(self) -> pa.Schema:
        fields = [("vertex", self._ids.arrow_type)]
        fields += [(name, pa.from_numpy_dtype(values.dtype)) for name, values in self._values.items()]
        return pa.schema(fields)

    def batches(self, size: int = BATCH) -> Iterator[pa.RecordBatch]:
        """The result as a stream: nothing but one batch and the ids is held."""
        users = self._ids.all()
        for at in range(0, len(self), size):
            numbers = self._ids.order.read(at, at + size)
            arrays = [users.take(pa.array(numbers)), *(self._column(name, numbers) for name in self._values)]
            yield pa.record_batch(arrays, schema=self.schema)

    def _column(self, name: str, numbers: np.ndarray) -> pa.Array:
        values = self._values[name]
        result = np.full(len(numbers), self._isolated[name], values.dtype)
        active = numbers < len(values)
        result[active] = values[numbers[active]]
        return pa.array(result)

    @property
    def table(self) -> pa.Table:
        """Everything at once."""
        return pa.Table.from_batches(self.batches(), self.schema)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        reader = pa.RecordBatchReader.from_batches(self.schema, self.batches())
        return reader.__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        return self.table.to_pandas()

    def to_dict(self) -> dict[Any, Any]:
        """vertex -> value (or a tuple of values)."""
        columns = [self.table.column(name).to_pylist() for name in self.schema.names]
        rows = columns[1] if len(columns) == 2 else list(zip(*columns[1:], strict=True))
        return dict(zip(columns[0], rows, strict=True))

    def top(self, k: int = 10, by: str | None = None) -> pa.Table:
        """The k vertices of the largest value; ties go to the smaller internal number, which has more arcs."""
        name = by or next(iter(self._values))
        if name not in self._values:
            raise UsageError(f"the result has no column {name!r}; it has {', '.join(self._values)}")
        values = self._values[name]
        count = min(k, len(values))
        best = np.argpartition(-values, count - 1)[:count] if 0 < count < len(values) else np.arange(count)
        best = best[np.lexsort((best, -values[best]))]
        rest = range(len(values), min(len(self), len(values) + k - count))
        best = np.concatenate([best, np.array(rest, dtype=best.dtype)])
        ids = pa.array([self._ids.of(int(number)) for number in best], self._ids.arrow_type)
        return pa.table([ids, *(self._column(column, best) for column in self._values)], schema=self.schema)

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write .parquet, .csv, .tsv, .txt, .json (one object per line) or .arrow, by the ending; complete or not at all."""
        target = Path(path)
        writers = {".parquet": _parquet, ".csv": _csv, ".tsv": _tsv, ".txt": _text, ".json": _json, ".arrow": _arrow}
        if target.suffix not in writers:
            raise UsageError(f"{target} does not end in one of {', '.join(writers)}")
        partial = target.with_name(f".{target.name}.tmp")
        try:
            writers[target.suffix](partial, self)
            os.replace(partial, target)
        except OSError as error:
            if error.errno == 28:
                raise DiskFull(f"no space left to write {target}") from error
            raise UsageError(f"cannot write {target}: {error.strerror or error}") from error
        finally:
            partial.unlink(missing_ok=True)
        return target


def _parquet(path: Path, result: Result) -> None:
    import pyarrow.parquet as pq

    with pq.ParquetWriter(path, result.schema) as writer:
        for batch in result.batches(1 << 18):
            writer.write_batch(batch)


def _arrow(path: Path, result: Result) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, result.schema) as writer:
        for batch in result.batches():
            writer.write_batch(batch)


def _delimited(path: Path, result: Result, delimiter: str, header: bool) -> None:
    from pyarrow import csv

    options = csv.WriteOptions(include_header=header, delimiter=delimiter, quoting_style="needed")
    with csv.CSVWriter(str(path), result.schema, write_options=options) as writer:
        for batch in result.batches():
            writer.write_batch(batch)


def _csv(path: Path, result: Result) -> None:
    _delimited(path, result, ",", True)


def _tsv(path: Path, result: Result) -> None:
    _delimited(path, result, "\t", True)


def _text(path: Path, result: Result) -> None:
    _delimited(path, result, " ", False)


def _json(path: Path, result: Result) -> None:
    with path.open("w") as file:
        for batch in result.batches():
            for row in batch.to_pylist():
                file.write(json.dumps(row) + "\n")
