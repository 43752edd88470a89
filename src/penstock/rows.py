"""Rows: what comes as a stream of Arrow batches goes to a table, to a data frame or to a file in the same way."""

from __future__ import annotations

import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.errors import UsageError
from penstock.observe.events import Events
from penstock.store.whole import whole_file


class Rows(ABC):
    """Batches of one schema, made anew each time they are asked for, and how the run that made them went."""

    stats: dict[str, Any]
    group = 1 << 20
    """Rows of a Parquet row group: the unit in which others read in parallel. It is in memory while it is made."""
    graph: Any = None
    """What they were computed on, once a run has ended. Held, so that the store of one that is temporary stays."""
    events: Events | None = None
    """The recording that the run was in, if there was one."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The names and types of the columns."""

    @abstractmethod
    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as a stream."""

    @property
    def table(self) -> pa.Table:
        """Everything at once."""
        return pa.Table.from_batches(self.batches(), self.schema)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        reader = pa.RecordBatchReader.from_batches(self.schema, self.batches())
        return reader.__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """A pandas DataFrame."""
        try:
            import pandas  # noqa: F401
        except ModuleNotFoundError:
            raise UsageError("to_pandas needs pandas: pip install pandas") from None
        return self.table.to_pandas()

    def to_polars(self) -> Any:
        """A Polars DataFrame."""
        try:
            import polars
        except ModuleNotFoundError:
            raise UsageError("to_polars needs Polars: pip install polars") from None
        return polars.from_arrow(self.table)

    def _network(self) -> Any:
        """The graph behind the rows as a NetworkX graph."""
        if self.graph is None:
            raise UsageError("this result holds no graph: give to_networkx the NetworkX graph to put its values onto")
        return self.graph.to_networkx()

    def report(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write a report of the run: one HTML file that opens anywhere. It has a timeline if the run was recorded.

        >>> with penstock.recording():                                  # doctest: +SKIP
        ...     penstock.pagerank(g, memory_limit="1GB").report("run.html")
        """
        from penstock.profile.report import open_store, write_report

        store = open_store(self.graph)
        return write_report(path, self.stats, result=self, store=store, events=self.events, overwrite=overwrite)

    def write(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write .parquet, .csv, .tsv, .txt, .json (one object per line) or .arrow, by the ending; complete or not
        at all."""
        target = Path(path)
        writer = _WRITERS.get(target.suffix.lower())
        if writer is None:
            raise UsageError(f"{target} does not end in one of {', '.join(_WRITERS)}")
        with whole_file(target, overwrite=overwrite) as partial:
            writer(partial, self.schema, self.batches(), self.group)
        return target


Writer = Callable[[Path, pa.Schema, Iterable[pa.RecordBatch], int], None]


def _parquet(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch], group: int) -> None:
    import pyarrow.parquet as pq

    held: list[pa.RecordBatch] = []
    rows = 0
    with pq.ParquetWriter(path, schema) as writer:
        for batch in batches:
            held.append(batch)
            rows += len(batch)
            if rows >= group:
                writer.write_table(pa.Table.from_batches(held, schema), row_group_size=group)
                held, rows = [], 0
        if held:
            writer.write_table(pa.Table.from_batches(held, schema))


def _arrow(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch], group: int) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _delimited(delimiter: str, header: bool) -> Writer:
    def write(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch], group: int) -> None:
        from pyarrow import csv

        options = csv.WriteOptions(include_header=header, delimiter=delimiter, quoting_style="needed")
        with csv.CSVWriter(str(path), schema, write_options=options) as writer:
            for batch in batches:
                writer.write_batch(batch)

    return write


def _json(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch], group: int) -> None:
    with path.open("w", encoding="utf-8") as file:
        for batch in batches:
            columns = [map(_plain, column.to_pylist()) for column in batch.columns]
            file.writelines(
                json.dumps(dict(zip(schema.names, row, strict=True)), ensure_ascii=False) + "\n"
                for row in zip(*columns, strict=True)
            )


def _plain(value: Any) -> Any:
    """JSON knows neither NaN nor infinity nor time: they become null and strings."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


_WRITERS: dict[str, Writer] = {
    ".parquet": _parquet,
    ".csv": _delimited(",", True),
    ".tsv": _delimited("\t", True),
    ".txt": _delimited(" ", False),
    ".json": _json,
    ".arrow": _arrow,
}

__all__ = ["Rows"]
