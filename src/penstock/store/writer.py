"""Writing a store: arcs come sorted, pages leave in order."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np

from penstock.errors import DiskFull, StoreError
from penstock.store import encodings
from penstock.store.blob import write_all, write_blob
from penstock.store.checksum import checksum
from penstock.store.columns import ALIGN, COLUMN_RECORD, column_file, extremes, padded, type_dtype
from penstock.store.draft import Draft
from penstock.store.encodings import Encoding
from penstock.store.index import cut_pages
from penstock.store.manifest import serialise

BATCH = 8 << 20
"""Bytes of pages that are filled at once, by all threads, and written at once."""


class StoreWriter:
    """Fills a draft and commits it. The caller brings directions, vertex columns and ids, in any order."""

    def __init__(self, draft: Draft, *, page_size: int, encoding: Encoding, batch: int = BATCH) -> None:
        self.draft, self.page_size, self.encoding, self.batch = draft, page_size, encoding, batch
        self.blobs: dict[str, Any] = {}
        self.directions: dict[str, Any] = {}
        self.vertex: dict[str, Any] = {}
        self.home: np.ndarray | None = None

    @property
    def roots(self) -> list[Path]:
        """Where each stripe lies."""
        return self.draft.stripes or [self.draft.path]

    def direction(self, name: str, degrees: np.ndarray, columns: Mapping[str, str]) -> DirectionWriter:
        """Begin `out` or `in`; with physical ids `out` comes first, for its pages are the addresses."""
        records = cut_pages(degrees, self.encoding.id_bytes, self.page_size)
        records["encoding"] = self.encoding.code
        if self.home is None:
            if self.encoding.physical:

                def shape(id_bytes: int) -> tuple[int, int]:
                    pages = cut_pages(degrees, id_bytes, self.page_size)
                    return len(pages), int(pages["vertices"].max(initial=0))

                slots = int(records["vertices"].max(initial=0))
                encodings.check_physical(self.encoding, len(records), slots, shape)
            self.home = records
        return DirectionWriter(self, name, records, degrees, columns)

    def blob(self, name: str, pieces: np.ndarray | Iterable[np.ndarray]) -> None:
        """Write an array file."""
        with disk_errors(self.draft.path):
            self.blobs[name] = write_blob(self.draft.path / name, pieces, self.draft.create)

    def vertex_column(self, name: str, kind: str, pieces: np.ndarray | Iterable[np.ndarray]) -> None:
        """Write one value per vertex."""
        file = f"vertex/{column_file(name)}"
        self.blob(file, pieces)
        self.vertex[name] = {"type": kind, "file": file}

    def commit(self, meta: Mapping[str, Any]) -> None:
        """Write meta.json last of all, then let the store appear."""
        store = self.draft.target
        stripes = [os.path.relpath(s, store) for s in self.draft.stripes] or ["."]
        body = dict(meta) | {
            "page_size": self.page_size,
            "encoding": self.encoding.name,
            "stripes": stripes,
            "directions": self.directions,
            "vertex": self.vertex,
            "blobs": self.blobs,
        }
        with disk_errors(self.draft.path):
            self.draft.commit(serialise(body))

    @staticmethod
    def memory(batch: int, encoding: Encoding, columns: Iterable[str]) -> int:
        """Bytes a direction needs while it is written: two batches of pages, three of each column's values."""
        width = sum(type_dtype(kind).itemsize for kind in columns)
        return 2 * batch + 3 * width * batch // encoding.id_bytes


class DirectionWriter:
    """Takes the neighbours of all arcs in order, with their column values, and writes pages."""

    def __init__(
        self, store: StoreWriter, name: str, records: np.ndarray, degrees: np.ndarray, columns: Mapping[str, str]
    ) -> None:
        self.store, self.name, self.records, self.degrees = store, name, records, degrees
        self.types = dict(columns)
        self.arcs = int(records["first_arc"][-1] + records["arcs"][-1]) if len(records) else 0
        self.done = 0
        self._first = 0
        self._stripes = len(store.roots)
        count = max(1, min(store.batch // store.page_size, max(len(records), 1)))
        self._pages = aligned_zeros(count * store.page_size).reshape(count, store.page_size)
        self._other = aligned_zeros(count * store.page_size).reshape(count, store.page_size)
        # Full pages are summed and written while the next ones fill.
        self._writer = ThreadPoolExecutor(1, "penstock-pages")
        self._writing: Future[None] | None = None
        home = store.home
        assert home is not None
        self._heads = encodings.heads(home)
        self._files = self._open("pages")
        self._columns = {column: _ColumnWriter(self, column, type_dtype(kind)) for column, kind in columns.items()}
        self._flush_finished()

    def _open(self, name: str) -> list[IO[bytes]]:
        roots, create = self.store.roots, self.store.draft.create
        with disk_errors(self.store.draft.path):
            return [create(root / self.name / f"{name}.{stripe}", direct=True) for stripe, root in enumerate(roots)]

    @property
    def _last(self) -> int:
        """One past the last page of the batch being filled."""
        return min(self._first + len(self._pages), len(self.records))

    @property
    def _end(self) -> int:
        """One past the last arc of the batch being filled."""
        record = self.records[self._last - 1]
        return int(record["first_arc"] + record["arcs"])

    def append(self, neighbours: np.ndarray, columns: Mapping[str, np.ndarray]) -> None:
        """The next arcs, in order."""
        encoding, at = self.store.encoding, 0
        if self.done + len(neighbours) > self.arcs:
            raise AssertionError("more arcs than the degrees announced")
        while at < len(neighbours):
            take = min(len(neighbours) - at, self._end - self.done)
            pages = self._pages[: self._last - self._first]
            piece = neighbours[at : at + take]
            encodings.write_ids(
                pages, encoding.id_bytes, encoding.q, self.records, self._first, piece, self.done, *self._heads
            )
            for name, column in self._columns.items():
                column.append(columns[name][at : at + take])
            self.done += take
            at += take
            self._flush_finished()

    def _flush_finished(self) -> None:
        while self._first < len(self.records) and self.done == self._end:
            self._flush()

    def _flush(self) -> None:
        first, last = self._first, self._last
        pages = self._pages[: last - first]
        encodings.write_slots(pages, self.records, first, self.degrees)
        columns = [(column, column.take()) for column in self._columns.values()]

        def write() -> None:
            for i, page in enumerate(pages):
                self.records[first + i]["checksum"] = checksum(page, first + i)
            with disk_errors(self.store.draft.path):
                self._write(self._files, first, pages.reshape(-1), [self.store.page_size] * len(pages))
                for column, values in columns:
                    column.write(values, first, last)
            pages[:] = 0

        self._wait()
        self._writing = self._writer.submit(write)
        self._pages, self._other = self._other, self._pages
        self._first = last

    def _wait(self) -> None:
        if self._writing is not None:
            writing, self._writing = self._writing, None
            writing.result()

    def _write(self, files: list[IO[bytes]], first: int, data: np.ndarray, sizes: Sequence[int]) -> None:
        """Pages that lie one after the other, each to its stripe."""
        if len(files) == 1:
            write_all(files[0], data)
            return
        at = 0
        for i, size in enumerate(sizes):
            write_all(files[(first + i) % len(files)], data[at : at + size])
            at += size

    def abandon(self) -> None:
        """Remove what was written of this direction, whatever became of it."""
        self._writer.shutdown()
        for file in [*self._files, *(file for column in self._columns.values() for file in column._files)]:
            file.close()
            Path(file.name).unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self.name not in self.store.directions:
            self.abandon()

    def close(self) -> None:
        """Write the index; the direction is complete."""
        if self.done != self.arcs:
            raise AssertionError(f"{self.done} arcs came, {self.arcs} were announced")
        self._wait()
        self._writer.shutdown()
        for file in self._files:
            file.close()
        self.store.blob(f"{self.name}/index", self.records)
        for column in self._columns.values():
            column.close()
        self.store.directions[self.name] = {"pages": len(self.records), "arcs": self.arcs, "columns": self.types}


class _ColumnWriter:
    """One column of a direction: values collect until their pages are flushed."""

    def __init__(self, direction: DirectionWriter, name: str, dtype: np.dtype) -> None:
        self.direction, self.name, self.dtype = direction, name, dtype
        self.index = np.zeros(len(direction.records), COLUMN_RECORD)
        self._files = direction._open(column_file(name))
        self._tails = [0] * len(self._files)
        self._values = np.empty(0, dtype)
        self._count = 0

    def append(self, values: np.ndarray) -> None:
        need = self._count + len(values)
        if need > len(self._values):
            grown = np.empty(max(need, min(2 * len(self._values), self._most())), self.dtype)
            grown[: self._count] = self._values[: self._count]
            self._values = grown
        self._values[self._count : need] = values
        self._count = need

    def _most(self) -> int:
        return len(self.direction._pages) * self.direction.store.page_size // self.direction.store.encoding.id_bytes

    def take(self) -> np.ndarray:
        """The values collected so far; collecting begins anew."""
        values, self._values = self._values[: self._count], np.empty(0, self.dtype)
        self._count = 0
        return values

    def write(self, values: np.ndarray, first: int, last: int) -> None:
        """Pad each page's values to where the next direct read may start."""
        counts = self.direction.records["arcs"][first:last].tolist()
        sizes = [padded(count * self.dtype.itemsize) for count in counts]
        data = aligned_zeros(sum(sizes))
        begin = at = 0
        for page, count, size in zip(range(first, last), counts, sizes, strict=True):
            mine = values[begin : begin + count]
            data[at : at + mine.nbytes] = mine.view(np.uint8)
            stripe = page % len(self._files)
            low, high = extremes(mine)
            self.index[page] = (self._tails[stripe], mine.nbytes, checksum(data[at : at + size], page), low, high)
            self._tails[stripe] += size
            begin += count
            at += size
        self.direction._write(self._files, first, data, sizes)

    def close(self) -> None:
        for file in self._files:
            file.close()
        self.direction.store.blob(f"{self.direction.name}/{column_file(self.name)}.index", self.index)


def aligned_zeros(nbytes: int) -> np.ndarray:
    """Zeroed bytes that start where a direct write may start."""
    memory = np.zeros(nbytes + ALIGN, np.uint8)
    skip = -memory.ctypes.data % ALIGN
    return memory[skip : skip + nbytes]


class disk_errors:
    """Turn the kernel's refusals into the sentence a user needs."""

    def __init__(self, where: Path) -> None:
        self.where = where

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError) and not isinstance(error, DiskFull):
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise DiskFull(
                    f"no space left where {self.where} is being written: free some, or choose another disk"
                ) from error
            raise StoreError(f"cannot write {error.filename or self.where}: {error.strerror}") from error
