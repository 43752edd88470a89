"""Edges out of Parquet: only the columns asked for, row groups as units of work, bounded buffers.

pyarrow's defaults read whole column chunks ahead of need. Here each worker streams one row group through a small buffer
in batches; a row group larger than a worker's share is decoded by columns in parallel instead.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.errors import InputError
from penstock.ingest.pipeline import in_flight, ordered
from penstock.ingest.source import EdgeChunk
from penstock.ingest.tables.arrow import TableSource, brief, unreadable
from penstock.ingest.tables.convert import to_chunk
from penstock.ingest.tables.schema import TableOptions, require

READ_BUFFER = 1 << 18
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class _Part:
    path: Path
    groups: int
    rows: int
    keys: dict[str, pa.Scalar]
    """Columns whose value is in the names of the folders, `year=2020/part-0.parquet`."""


class ParquetSource(TableSource):
    """One graph in one or more Parquet files with the same columns."""

    def __init__(self, paths: Sequence[Path], options: TableOptions, name: str | None = None) -> None:
        keys = _folder_keys(paths, None if name is None else Path(name))
        if not paths:
            raise InputError("there are no Parquet files here", path=name)
        self._parts = []
        ranges: list[tuple[int, int] | None] = []
        for i, path in enumerate(paths):
            with _opened(path) as file:
                if i == 0:
                    label = name or (str(path) if len(paths) == 1 else f"{path} and {len(paths) - 1} more")
                    schema = file.schema_arrow
                    for key, values in keys.items():
                        schema = schema if key in schema.names else schema.append(pa.field(key, values.type))
                    super().__init__(label, schema, options)
                found = file.schema_arrow.names
                wanted = set(self.layout.names).difference(found)
                added = {key: values[i] for key, values in keys.items() if key in wanted}
                for column in self.layout.names:
                    require(column, [*found, *added], str(path))
                self._parts.append(_Part(path, file.metadata.num_row_groups, file.metadata.num_rows, added))
                ranges.append(_id_range(file.metadata, {self.layout.source, self.layout.target}))
        known = [found for found in ranges if found is not None]
        if known and len(known) == len(ranges):
            self.id_bounds = min(low for low, _ in known), max(high for _, high in known)
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
                yield partial(self._group, part, metadata, group, first_row, rows, by_column)
                first_row += metadata.row_group(group).num_rows

    def _group(
        self, part: _Part, metadata: pq.FileMetaData, group: int, first_row: int, rows: int, by_column: bool
    ) -> Iterator[EdgeChunk]:
        stored = [column for column in self.layout.names if column not in part.keys]
        with _opened(part.path, metadata) as file:
            batches = file.iter_batches(rows, row_groups=[group], columns=stored, use_threads=by_column)
            for batch in _guarded(batches, part.path):
                whole = batch
                for key, value in part.keys.items():
                    whole = whole.append_column(key, pa.repeat(value, batch.num_rows))
                chunk = to_chunk(whole, self.layout, str(part.path), first_row)
                first_row += len(chunk)
                del batch, whole
                # Each thread's allocator keeps what it frees, some 20 MB that a budget would be missing.
                pa.default_memory_pool().release_unused()
                yield chunk


def _id_range(metadata: pq.FileMetaData, columns: set[str]) -> tuple[int, int] | None:
    """Smallest and largest id by the file's own statistics; None if one is missing or ids are no integers."""
    found: list[int] = []
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        mine = [row_group.column(k) for k in range(row_group.num_columns)]
        ends = [chunk for chunk in mine if chunk.path_in_schema in columns]
        if len(ends) != len(columns):
            return None
        for chunk in ends:
            statistics = chunk.statistics
            if statistics is None or not statistics.has_min_max:
                return None
            if not (isinstance(statistics.min, int) and isinstance(statistics.max, int)):
                return None
            found += [statistics.min, statistics.max]
    return (min(found), max(found)) if found else None


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


def _folder_keys(paths: Sequence[Path], root: Path | None) -> dict[str, pa.Array]:
    """The `key=value` folders between the root and every file, one value for each file, in the narrowest type."""
    if root is None:
        return {}
    folders = [
        dict(part.split("=", 1) for part in path.relative_to(root).parent.parts if "=" in part) for path in paths
    ]
    keys = {}
    for key in dict.fromkeys(key for folder in folders for key in folder):
        texts = [folder.get(key, _HIVE_NULL) for folder in folders]
        values = pa.array([None if text == _HIVE_NULL else unquote(text) for text in texts], pa.string())
        for kind in (pa.int64(), pa.date32()):
            with contextlib.suppress(pa.ArrowInvalid):
                values = values.cast(kind)
                break
        keys[key] = values
    return keys


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
