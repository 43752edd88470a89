"""Edges out of Arrow IPC files (Feather 2) and IPC streams on disk."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from penstock.errors import InputError
from penstock.ingest.tables.arrow import SlicedSource, brief, unreadable
from penstock.ingest.tables.schema import TableOptions

MAGIC = b"ARROW1"


class IpcSource(SlicedSource):
    """Uncompressed batches are cut where they lie, whatever their size; a compressed one must fit when unpacked."""

    def __init__(self, path: Path, options: TableOptions) -> None:
        self._path = path
        try:
            with path.open("rb") as file:
                if path.stat().st_size == 0:
                    raise InputError("the file is empty: it holds no edges, not even a schema", path=path)
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise unreadable(path, error) from error
        if self._map[:4] == b"FEA1":
            raise InputError("is a Feather file of version 1: write it again as version 2", path=path)
        if self._map[:6] == MAGIC and self._map[-6:] != MAGIC:
            raise InputError("is cut short: its Arrow footer is missing", path=path)
        try:
            super().__init__(str(path), self._open().schema, options)
        except (pa.ArrowException, OSError) as error:
            raise self._damaged(error) from error

    def _open(self, options: pa.ipc.IpcReadOptions | None = None) -> pa.RecordBatchStreamReader:
        # A file is a stream between two marks. pyarrow's file reader copies whole batches when it picks columns.
        data = pa.py_buffer(self._map)
        return pa.ipc.open_stream(data.slice(8) if self._map[:6] == MAGIC else data, options=options)

    def batches(self, rows: int) -> Iterator[pa.RecordBatch]:
        try:
            names = self._open().schema.names
            fields = sorted(names.index(name) for name in self.layout.names)
            for batch in self._open(pa.ipc.IpcReadOptions(included_fields=fields, use_threads=False)):
                yield from self._pieces(batch, rows)
        except (pa.ArrowException, OSError) as error:
            raise self._damaged(error) from error

    def _pieces(self, batch: pa.RecordBatch, rows: int) -> Iterator[pa.RecordBatch]:
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows)
            # Mapped pages count as resident until they are let go; they stay in the kernel's cache.
            self._map.madvise(mmap.MADV_DONTNEED)

    def _damaged(self, error: BaseException) -> InputError:
        return InputError(f"is no readable Arrow file, perhaps cut short: {brief(error)}", path=self._path)


__all__ = ["IpcSource"]
