"""Opening a store, and plain reads of it. Streams of pages are the business of `memory`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from penstock.errors import DamagedStore
from penstock.store import encodings
from penstock.store.blob import Blob
from penstock.store.checksum import checksum
from penstock.store.columns import COLUMN_RECORD, padded, type_dtype
from penstock.store.encodings import Block
from penstock.store.ids import Ids
from penstock.store.index import RECORD, check_index
from penstock.store.manifest import read_manifest


class Store:
    """A complete store on disk. Everything that is read is checked."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.meta = read_manifest(self.path)
        meta = self.meta
        self.vertices: int = meta["vertices"]
        self.active: int = meta["active"]
        self.edges: int = meta["edges"]
        self.directed: bool = meta["directed"]
        self.page_size: int = meta["page_size"]
        self.roots = [Path(os.path.normpath(self.path / stripe)) for stripe in meta["stripes"]]
        self._directions: dict[str, Direction] = {}
        self._ids: Ids | None = None
        # Sizes are compared at once: a truncated file is better found now than after an hour.
        for name in meta["directions"]:
            self.direction(name)

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
                raise KeyError(name)
            self._directions[name] = Direction(self, name)
        return self._directions[name]

    def has_direction(self, name: str) -> bool:
        return name in self.meta["directions"] or (name == "in" and not self.directed)

    def blob(self, name: str, dtype: np.dtype | type | str) -> Blob:
        return Blob(self.path / name, dtype, self.meta["blobs"][name])

    def vertex_column(self, name: str) -> Blob:
        """One value per vertex."""
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
        self.records = store.blob(f"{name}/index", RECORD).read()
        if len(self.records) != entry["pages"]:
            raise DamagedStore(f"{store.path}/{name}/index has {len(self.records)} records for {entry['pages']} pages")
        check_index(
            self.records,
            active=store.active,
            arcs=self.arcs,
            page_size=store.page_size,
            name=f"{store.path}/{name}/index",
        )
        self.column_records = {
            column: store.blob(f"{name}/{column}.index", COLUMN_RECORD).read() for column in self.columns
        }
        self._check_sizes()

    def _check_sizes(self) -> None:
        stripes = len(self.store.roots)
        for stripe in range(stripes):
            pages = len(range(stripe, len(self.records), stripes))
            self._check_size(self.path("pages", stripe), pages * self.store.page_size)
            for column, index in self.column_records.items():
                mine = index[stripe::stripes]
                end = int(mine["offset"][-1]) + padded(int(mine["bytes"][-1])) if len(mine) else 0
                self._check_size(self.path(column, stripe), end)

    @staticmethod
    def _check_size(path: Path, expected: int) -> None:
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            raise DamagedStore(f"{path} is missing") from None
        if size != expected:
            raise DamagedStore(
                f"{path} is {'truncated' if size < expected else 'too long'}: {size} bytes, {expected} were written"
            )

    def __len__(self) -> int:
        return len(self.records)

    @property
    def home(self) -> np.ndarray:
        """First vertex of each `out` page: where physical ids point."""
        return np.ascontiguousarray(self.store.direction("out").records["first_vertex"])

    def path(self, name: str, stripe: int) -> Path:
        return self.store.roots[stripe] / self.name / f"{name}.{stripe}"

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
            path = self.path("pages", page % len(self.store.roots))
            raise DamagedStore(f"{path}: page {page} is damaged: its checksum does not match")

    def verify_column(self, column: str, page: int, data: np.ndarray) -> None:
        if checksum(data, page) != int(self.column_records[column][page]["checksum"]):
            path = self.path(column, page % len(self.store.roots))
            raise DamagedStore(f"{path}: column page {page} is damaged: its checksum does not match")

    def read_page(self, page: int) -> np.ndarray:
        """One page, checked."""
        data = _read(self.path("pages", page % len(self.store.roots)), *self.page_extent(page)[1:])
        self.verify(page, data)
        return data

    def read_column(self, column: str, page: int) -> np.ndarray:
        """The values of one page's arcs, checked."""
        data = _read(self.path(column, page % len(self.store.roots)), *self.column_extent(column, page)[1:])
        self.verify_column(column, page, data)
        return self.column_values(column, page, data)

    def column_values(self, column: str, page: int, data: np.ndarray) -> np.ndarray:
        """A column page as values."""
        return data[: int(self.column_records[column][page]["bytes"])].view(type_dtype(self.columns[column]))

    def scratch(self) -> np.ndarray:
        """Room for the decoded neighbours of any page; empty when pages are read where they lie."""
        if not len(self.records) or not encodings.needs_scratch(int(self.records["encoding"][0])):
            return np.empty(0, np.uint32)
        wide = np.uint32 if self.store.vertices <= 1 << 32 else np.uint64
        return np.empty(int(self.records["arcs"].max()), wide)

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
    with path.open("rb", buffering=0) as file:
        file.seek(offset)
        if file.readinto(data) != nbytes:  # type: ignore[attr-defined]
            raise DamagedStore(f"{path} is truncated at byte {offset}")
    return data
