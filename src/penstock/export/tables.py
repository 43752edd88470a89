"""Parquet and Arrow IPC files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from penstock.errors import UsageError
from penstock.export.job import Job

_GROUP = 1 << 20
"""Rows of a Parquet row group: the unit in which others read in parallel."""
_PARQUET = ("zstd", "snappy", "gzip", "brotli", "lz4", "none")
_ARROW = ("none", "lz4", "zstd")


def write_parquet(job: Job, path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    import pyarrow.parquet as pq

    codec = _codec(job, _PARQUET)
    # Ids repeat (a vertex has several edges), values seldom do: a dictionary of them would only be given up halfway.
    repeated = [name for name in schema.names if name in ("source", "target")]
    with pq.ParquetWriter(path, schema, compression=codec, use_dictionary=repeated) as writer:
        for table in _gathered(batches, schema):
            writer.write_table(table, row_group_size=_GROUP)


def write_arrow(job: Job, path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    codec = _codec(job, _ARROW)
    options = pa.ipc.IpcWriteOptions(compression=None if codec == "none" else codec)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _codec(job: Job, known: tuple[str, ...]) -> str:
    codec = job.compression or known[0]
    if codec not in known:
        raise UsageError(f"{job.format} cannot be compressed by {codec!r}: choose {', '.join(known)}")
    return codec


def _gathered(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if held and rows + len(batch) > _GROUP:
            yield pa.Table.from_batches(held, schema)
            held, rows = [], 0
        held.append(batch)
        rows += len(batch)
    if held:
        yield pa.Table.from_batches(held, schema)


__all__ = ["write_arrow", "write_parquet"]
