"""Opening a store, and plain reads of it. Streams of pages are the business of `memory`."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from penstock.errors import DamagedStore, StoreError, UsageError
from penstock.store import encodings
from penstock.store.blob import Blob, read_exactly
from penstock.store.checksum import checksum
from penstock.store.columns import COLUMN_RECORD, column_file, padded, type_dtype
from penstock.store.encodings import Block
from penstock.store.ids import Ids
from penstock.store.index import RECORD, check_index
from penstock.store.manifest import read_manifest


class Store:
    """A complete store on disk. Everything that is read is checked."""

    def __init__(self, path: str | Path, *, whole: bool = True) -> None:
        self.path, self.whole = Path(path), whole
        self._take(read_manifest(self.path))
        # Sizes are compared at once: a truncated file is better found now than after an hour. A checker looks for
        # all that is wrong, and opens the parts one by one.
        if whole:
            while True:
                try:
                    for name in self.meta["directions"]:
                        self.direction(name)
                    break
                except DamagedStore:
                    # Another run may have put a new store in place between the manifest and the rest.
                    meta = read_manifest(self.path)
                    if meta["uuid"] == self.meta["uuid"]:
                        raise
                    self._take(meta)

    def _take(self, meta: dict[str, Any]) -> None:
        self.meta = meta
        self.vertices: int = meta["vertices"]
        self.active: int = meta["active"]
        self.edges: int = meta["edges"]
        self.directed: bool = meta["directed"]
        self.page_size: int = meta["page_size"]
        if meta["encoding"] not in encodings.ENCODINGS:
            raise StoreError(f"{self.path} has pages in the unknown encoding {meta['encoding']!r}: upgrade Penstock")
        self.roots = [Path(os.path.normpath(self.path / stripe)) for stripe in meta["stripes"]]
        self._directions: dict[str, Direction] = {}
        self._ids: Ids | None = None

    @property
    def ids(self) -> Ids:
        if self._ids is None:
            self._ids = Ids(self.path, self.meta)
        return self._ids

    def direction(self, name: str) -> Direction:
        """`out` or `in`. A symmetric graph has one direction for both."""
        if name == "in" and "in" not in self.meta["directions"] and not self.directed:
            name = "out"
        if name not in self._directions:
            if name not in self.meta["directions"]:
                raise StoreError(f"{self.path} stores no {name} arcs: build it again without incoming=False")
            self._directions[name] = Direction(self, name)
        return self._directions[name]

    def has_direction(self, name: str) -> bool:
        return name in self.meta["directions"] or (name == "in" and not self.directed)

    def blob(self, name: str, dtype: np.dtype | type | str) -> Blob:
        return Blob(self.path / name, dtype, self.meta["blobs"][name])

    def vertex_column(self, name: str) -> Blob:
        """One value per vertex."""
        if name not in self.meta["vertex"]:
            raise StoreError(f"{self.path} has no vertex column {name!r}; it has {', '.join(self.meta['vertex'])}")
        entry = self.meta["vertex"][name]
        return self.blob(entry["file"], type_dtype(entry["type"]))

    def degree_column(self, direction: str) -> Blob:
        return self.vertex_column(f"{direction}_degree")


class Direction:
    """The pages of one direction, and the column pages beside them."""

    def __init__(self, store: Store, name: str) -> None:
        entry: dict[str, Any] = store.meta["directions"][name]
        self.store, self.name = store, name
        self.arcs: int = entry["arcs"]
        self.columns: dict[str, str] = entry["columns"]
        self.records = self._index("index", RECORD, entry["pages"])
        self.column_records: dict[str, np.ndarray] = {}
        if store.whole:
            self.check_index()
        for column in self.columns:
            try:
                self.column_records[column] = self._index(f"{column_file(column)}.index", COLUMN_RECORD, entry["pages"])
            except DamagedStore:
                if store.whole:
                    raise
        if store.whole:
            for path, size in self.sizes().items():
                self._check_size(path, size)

    def _index(self, file: str, record: np.dtype, pages: int) -> np.ndarray:
        records = self.store.blob(f"{self.name}/{file}", record).read()
        if len(records) != pages:
            raise DamagedStore(f"{self.store.path}/{self.name}/{file} has {len(records)} records for {pages} pages")
        return records

    def check_index(self) -> None:
        """Refuse an index that no writer could have written."""
        check_index(
            self.records,
            active=self.store.active,
            arcs=self.arcs,
            page_size=self.store.page_size,
            name=f"{self.store.path}/{self.name}/index",
            widths=encodings.ID_BYTES,
        )

    def sizes(self) -> dict[Path, int]:
        """The files of pages and column pages, and how long the index says they are."""
        stripes = len(self.store.roots)
        found: dict[Path, int] = {}
        for stripe in range(stripes):
            pages = len(range(stripe, len(self.records), stripes))
            found[self.path("pages", stripe)] = pages * self.store.page_size
            for column, index in self.column_records.items():
                mine = index[stripe::stripes]
                end = int(mine["offset"][-1]) + padded(int(mine["bytes"][-1])) if len(mine) else 0
                found[self.column_path(column, stripe)] = end
        return found

    @staticmethod
    def _check_size(path: Path, expected: int) -> None:
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            raise DamagedStore(f"{path} is missing") from None
        except OSError as error:
            raise DamagedStore(f"{path} cannot be read: {error.strerror}") from None
        if size != expected:
            raise DamagedStore(
                f"{path} is {'truncated' if size < expected else 'too long'}: {size} bytes, {expected} were written"
            )

    def __len__(self) -> int:
        return len(self.records)

    @cached_property
    def home(self) -> np.ndarray:
        """First vertex of each `out` page: where physical ids point."""
        return np.ascontiguousarray(self.store.direction("out").records["first_vertex"])

    def path(self, name: str, stripe: int) -> Path:
        """The file of the pages (`pages`), or of a column's pages, in one stripe."""
        file = name if name == "pages" else column_file(name)
        return self.store.roots[stripe] / self.name / f"{file}.{stripe}"

    def column_path(self, column: str, stripe: int) -> Path:
        """Like `path`, for a column that may be called `pages`, too."""
        return self.store.roots[stripe] / self.name / f"{column_file(column)}.{stripe}"

    def page_extent(self, page: int) -> tuple[int, int, int]:
        """(stripe, offset, bytes) of a page."""
        stripes, size = len(self.store.roots), self.store.page_size
        return page % stripes, page // stripes * size, size

    def column_extent(self, column: str, page: int) -> tuple[int, int, int]:
        """(stripe, offset, bytes) of a column page, padding included."""
        record = self.column_records[column][page]
        return page % len(self.store.roots), int(record["offset"]), padded(int(record["bytes"]))

    def verify(self, page: int, data: np.ndarray) -> None:
        """Refuse a page that is not the one that was written."""
        if checksum(data, page) != int(self.records[page]["checksum"]):
            raise self.damage(page)

    def verify_column(self, column: str, page: int, data: np.ndarray) -> None:
        if checksum(data, page) != int(self.column_records[column][page]["checksum"]):
            raise self.damage(page, column)

    def damage(self, page: int, column: str | None = None) -> DamagedStore:
        """The error for a page, or for its page of a column, that is not the one that was written."""
        stripe = page % len(self.store.roots)
        path = self.path("pages", stripe) if column is None else self.column_path(column, stripe)
        kind = "page" if column is None else "column page"
        return DamagedStore(f"{path}: {kind} {page} is damaged: its checksum does not match")

    def read_page(self, page: int) -> np.ndarray:
        """One page, checked."""
        data = _read(self.path("pages", page % len(self.store.roots)), *self.page_extent(page)[1:])
        self.verify(page, data)
        return data

    def read_column(self, column: str, page: int) -> np.ndarray:
        """The values of one page's arcs, checked."""
        data = _read(self.column_path(column, page % len(self.store.roots)), *self.column_extent(column, page)[1:])
        self.verify_column(column, page, data)
        return self.column_values(column, page, data)

    def column_dtype(self, column: str) -> np.dtype:
        """How a column's values are stored."""
        if column not in self.columns:
            have = ", ".join(self.columns) or "none"
            raise UsageError(f"{self.store.path} has no edge column {column!r}; it has {have}")
        return np.dtype(type_dtype(self.columns[column]))

    def column_values(self, column: str, page: int, data: np.ndarray) -> np.ndarray:
        """A column page as values."""
        return data[: int(self.column_records[column][page]["bytes"])].view(type_dtype(self.columns[column]))

    def scratch(self) -> np.ndarray:
        """Room for the decoded neighbours of any page; empty when pages are read where they lie."""
        kind = np.dtype(np.uint32 if self.store.vertices <= 1 << 32 else np.uint64)
        return np.empty(self.scratch_bytes // kind.itemsize, kind)

    @property
    def scratch_bytes(self) -> int:
        if not len(self.records) or not encodings.needs_scratch(int(self.records["encoding"][0])):
            return 0
        return int(self.records["arcs"].max()) * (4 if self.store.vertices <= 1 << 32 else 8)

    def block(self, page: int) -> Block:
        """One page, read, checked and decoded."""
        return encodings.decode(self.read_page(page), self.records[page], self.home, self.scratch())

    def pages_of(self, vertex: int) -> range:
        """The pages that hold a vertex: one, or all parts of a large one. None for an isolated vertex."""
        if vertex >= self.store.active:
            return range(0)
        first = self.records["first_vertex"]
        last = int(np.searchsorted(first, vertex, side="right"))
        begin = int(np.searchsorted(first, first[last - 1], side="left"))
        return range(begin, last)


def _read(path: Path, offset: int, nbytes: int) -> np.ndarray:
    data = np.empty(nbytes, np.uint8)
    read_exactly(path, offset, data)
    return data
