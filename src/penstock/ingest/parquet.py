"""Edges out of Parquet: only the columns asked for, row groups as units of work, bounded buffers.

pyarrow's defaults read whole column chunks ahead of need. Here each worker streams one row group through a small buffer
in batches; a row group larger than a worker's share is decoded by columns in parallel instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.errors import InputError
from penstock.ingest.convert import to_chunk
from penstock.ingest.pipeline import in_flight, ordered
from penstock.ingest.schema import TableOptions, require
from penstock.ingest.source import EdgeChunk
from penstock.ingest.tables import TableSource, brief, unreadable

READ_BUFFER = 1 << 18


@dataclass(frozen=True)
class _Part:
    path: Path
    groups: int
    rows: int


class ParquetSource(TableSource):
    """One graph in one or more Parquet files with the same columns."""

    def __init__(self, paths: Sequence[Path], options: TableOptions, name: str | None = None) -> None:
        if not paths:
            raise InputError("there are no Parquet files here", path=name)
        self._parts = []
        for i, path in enumerate(paths):
            with _opened(path) as file:
                if i == 0:
                    label = name or (str(path) if len(paths) == 1 else f"{path} and {len(paths) - 1} more")
                    super().__init__(label, file.schema_arrow, options)
                for column in self.layout.names:
                    require(column, file.schema_arrow.names, str(path))
                self._parts.append(_Part(path, file.metadata.num_row_groups, file.metadata.num_rows))
        self.estimated_edges = self.size = sum(part.rows for part in self._parts)
        if not self.size:
            self.refuse_empty()

    def chunks(self, *, threads: int, memory: int) -> Iterator[EdgeChunk]:
        groups = sum(part.groups for part in self._parts)
        largest = max((part.rows // max(1, part.groups) for part in self._parts), default=0)
        fitting = self.rows_within(memory // max(4, in_flight(threads)))
        # Row groups side by side pay only if each is a batch or so: the hand-over in order lets none run far ahead.
        workers = threads if groups > 1 and largest <= 4 * fitting else 1
        rows = fitting if workers == threads else self.rows_within(memory // 4)
        for chunk in ordered(self._tasks(rows, by_column=workers < threads), workers):
            self.position += len(chunk)
            yield chunk

    def _tasks(self, rows: int, by_column: bool) -> Iterator[Callable[[], Iterator[EdgeChunk]]]:
        for part in self._parts:
            with _opened(part.path) as file:
                metadata = file.metadata
            first_row = 1
            for group in range(metadata.num_row_groups):
                yield partial(self._group, part.path, metadata, group, first_row, rows, by_column)
                first_row += metadata.row_group(group).num_rows

    def _group(
        self, path: Path, metadata: pq.FileMetaData, group: int, first_row: int, rows: int, by_column: bool
    ) -> Iterator[EdgeChunk]:
        with _opened(path, metadata) as file:
            batches = file.iter_batches(rows, row_groups=[group], columns=self.layout.names, use_threads=by_column)
            for batch in _guarded(batches, path):
                chunk = to_chunk(batch, self.layout, str(path), first_row)
                first_row += len(chunk)
                del batch
                yield chunk


def parquet_files(folder: Path) -> list[Path]:
    """The Parquet files under a folder, in the order of their names; hidden files and `_metadata` are no data."""
    files = [
        path
        for path in sorted(folder.rglob("*"))
        if path.suffix.lower() in (".parquet", ".pq", ".parq")
        and not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    ]
    if not files:
        raise InputError("there are no Parquet files here (*.parquet, *.pq)", path=folder)
    return files


def _opened(path: Path, metadata: pq.FileMetaData | None = None) -> pq.ParquetFile:
    try:
        if path.stat().st_size == 0:
            raise InputError("the file is empty: it holds no edges, not even a Parquet footer", path=path)
        return pq.ParquetFile(
            path, metadata=metadata, buffer_size=READ_BUFFER, pre_buffer=False, page_checksum_verification=True
        )
    except pa.ArrowException as error:
        raise _damaged(path, error) from error
    except OSError as error:
        raise (_damaged(path, error) if error.errno is None else unreadable(path, error)) from error


def _guarded(batches: Iterator[pa.RecordBatch], path: Path) -> Iterator[pa.RecordBatch]:
    while True:
        try:
            batch = next(batches, None)
        except (pa.ArrowException, OSError) as error:
            raise _damaged(path, error) from error
        if batch is None:
            return
        yield batch
        del batch


def _damaged(path: Path, error: BaseException) -> InputError:
    return InputError(f"is no readable Parquet file, perhaps cut short: {brief(error)}", path=path)


__all__ = ["ParquetSource", "parquet_files"]
