"""Edges out of Arrow tables in memory or in motion, and the way in for table files.

Whatever offers an Arrow stream will do: pandas, Polars, DuckDB, pyarrow. Batches are cut to the memory allowed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.errors import InputError, meant_path
from penstock.ingest.source import EdgeChunk, EdgeSource, storage_dtype
from penstock.ingest.tables.convert import to_chunk
from penstock.ingest.tables.schema import Layout, TableOptions, layout

LARGEST_CHUNK = 1 << 20
# A guess for planning; strings longer than this make chunks larger than planned, not wrong.
STRING_BYTES = 64


class TableSource(EdgeSource):
    """The columns of a table, in their roles."""

    def __init__(self, name: str, schema: pa.Schema, options: TableOptions) -> None:
        self.name, self.options = name, options
        self.layout: Layout = layout(schema, options, name)
        self.columns = self.layout.columns
        self.string_ids = self.layout.id_dtype is None
        self.position = 0

    @property
    def row_bytes(self) -> int:
        """About what one edge takes, as it arrives and as it is handed on."""
        ids = 2 * (STRING_BYTES if self.layout.id_dtype is None else 8)
        return 2 * (ids + sum(dtype.itemsize for k in self.columns.values() if (dtype := storage_dtype(k)) is not None))

    def rows_within(self, memory: int) -> int:
        return max(256, min(LARGEST_CHUNK, memory // self.row_bytes))

    def refuse_empty(self) -> None:
        if not self.options.allow_empty:
            raise InputError("holds no edges", path=self.name, hint="pass allow_empty=True if that is right")


class SlicedSource(TableSource):
    """A table that comes in batches, cut smaller where they are too large."""

    @abstractmethod
    def batches(self, rows: int) -> Iterator[pa.RecordBatch]:
        """Batches of any size, in order; `rows` is what fits at once."""

    def chunks(self, *, threads: int, memory: int) -> Iterator[EdgeChunk]:
        rows = self.rows_within(memory)
        for batch in self.batches(rows):
            for start in range(0, batch.num_rows, rows):
                piece = batch.slice(start, rows)
                chunk = to_chunk(piece, self.layout, self.name, self.position + 1)
                self.position += len(chunk)
                yield chunk
        if not self.position:
            self.refuse_empty()


class StreamSource(SlicedSource):
    """Any object with `__arrow_c_stream__`, read once."""

    def __init__(self, stream: Any, options: TableOptions, name: str | None = None) -> None:
        name = name or _called(stream)
        if isinstance(stream, pa.Table | pa.RecordBatch):
            self.estimated_edges = self.size = stream.num_rows
        elif hasattr(stream, "__len__"):
            self.estimated_edges = self.size = len(stream)
        try:
            self._reader = pa.RecordBatchReader.from_stream(stream)
        except (pa.ArrowException, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"cannot be read as an Arrow table: {brief(error)}", path=name) from error
        super().__init__(name, self._reader.schema, options)

    def batches(self, rows: int) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._reader
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"row {self.position + 1} or later: {brief(error)}", path=self.name) from error


def open_arrow(stream: Any, **options: Any) -> EdgeSource:
    """Edges of an object with `__arrow_c_stream__` or `__arrow_c_array__`, or of a pyarrow dataset."""
    name = _called(stream)
    if hasattr(stream, "scanner") and not hasattr(stream, "__arrow_c_stream__"):
        # One batch and one file ahead: the default of sixteen batches ignores every budget.
        stream = stream.scanner(batch_readahead=1, fragment_readahead=1, use_threads=False).to_reader()
    elif not hasattr(stream, "__arrow_c_stream__"):
        stream = pa.record_batch(stream)
    return StreamSource(stream, TableOptions.of(options), name)


def open_table(path: str | Path | Sequence[str | Path], **options: Any) -> EdgeSource:
    """Edges of a Parquet file, several of them, a folder of them, or an Arrow IPC (Feather) file.

    Options: `source`, `target`, `columns`, `fill`, `allow_nan`, `allow_empty`, as in `TableOptions`.
    """
    from penstock.ingest.tables.ipc import IpcSource
    from penstock.ingest.tables.parquet import ParquetSource, parquet_files

    chosen = TableOptions.of(options)
    if isinstance(path, str | Path):
        single = Path(path)
        if single.is_dir():
            return ParquetSource(parquet_files(single), chosen, name=str(single))
        magic = _magic(single)
        if magic == b"ARRO" or (
            magic != b"PAR1" and single.suffix.lower() in (".arrow", ".feather", ".ipc", ".arrows")
        ):
            return IpcSource(single, chosen)
        return ParquetSource([single], chosen)
    return ParquetSource([Path(one) for one in path], chosen)


def _magic(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(4)
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: OSError) -> InputError:
    near = meant_path(path) if isinstance(error, FileNotFoundError) else ""
    return InputError(f"cannot be read: {error.strerror or brief(error)}{near}", path=path)


def brief(error: BaseException) -> str:
    """The first sentence of a library's complaint, without its full stop."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].split(". ")[0].rstrip(".")


def _called(stream: Any) -> str:
    kind = type(stream)
    return f"{kind.__module__.split('.')[0]} {kind.__name__}"


__all__ = ["SlicedSource", "StreamSource", "TableSource", "brief", "open_arrow", "open_table", "unreadable"]
