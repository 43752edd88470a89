"""One direction of a store under examination: every page and column page is read once, by all threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from penstock.config import Settings
from penstock.errors import DamagedStore
from penstock.observe.progress import Progress
from penstock.store import proof
from penstock.store.blob import fill
from penstock.store.columns import column_file, extremes, from_extreme, padded, type_dtype
from penstock.store.encodings import ENCODINGS, ID_BYTES, decode
from penstock.store.index import LARGE
from penstock.store.reader import Direction, Store

_RUN = 1 << 20
"""Small pages are read together up to this."""
_HASHES = 1 << 16


class Problems(Protocol):
    """Where problems are told."""

    def add(self, sentence: str) -> None: ...


class Audit:
    """Reads all pages of a direction; `hash` or `turned`, and `loops`, are right if it is `complete`.

    `hash` is a sum over arcs (u, v, column values), `turned` the same with u and v exchanged: sums, because the
    other direction has the same arcs in another order.
    """

    def __init__(
        self,
        direction: Direction,
        degrees: np.ndarray | None,
        counts: np.ndarray,
        settings: Settings,
        problems: Problems,
    ) -> None:
        self.direction, self.degrees, self.counts, self.problems = direction, degrees, counts, problems
        self.complete = True
        self.hash = self.turned = self.loops = 0
        self._index = f"{direction.store.path}/{direction.name}/index"
        self._ends = np.zeros((len(direction), 2), np.uint64)
        self._lock = threading.Lock()
        self._stop = False
        each = self.room(direction.store, 1)
        self._threads = max(1, min(settings.threads, settings.memory_limit // 2 // each))
        # `in` turned round is compared with `out`, an undirected graph with itself.
        self._hashing = direction.name == "out"
        self._turning = direction.name == "in" or not direction.store.directed
        self._home = np.zeros(0, np.uint64)
        self._provable = self._check_index()
        self._columns = [column for column in direction.columns if self._check_column_index(column)]

    @staticmethod
    def room(store: Store, threads: int) -> int:
        """Bytes of buffers that a run needs."""
        page = max(store.page_size, _RUN)
        # All columns of a page are held at once: their values are hashed together.
        width = max(
            sum(type_dtype(kind).itemsize for kind in entry["columns"].values())
            for entry in store.meta["directions"].values()
        )
        return threads * (page + store.page_size // 4 * (8 + width) + 2 * 8 * _HASHES)

    def run(self, bar: Progress) -> None:
        """Every page once; then what only all of them together can show."""
        files = self._open()
        runs = self._runs()
        try:
            with ThreadPoolExecutor(self._threads, "penstock-check") as pool:
                work = [pool.submit(self._work, files, runs, bar) for _ in range(self._threads)]
                try:
                    for each in work:
                        each.result()
                finally:
                    self._stop = True
        finally:
            for descriptor in files.values():
                os.close(descriptor)
        if self._provable:
            self._check_large()

    # ---- before the pages

    def _check_index(self) -> bool:
        try:
            self.direction.check_index()
        except DamagedStore as error:
            self._fail(str(error))
            return False
        encoding = ENCODINGS[self.direction.store.meta["encoding"]]
        strange = self.direction.records["encoding"] != encoding.code
        if strange.any():
            self._fail(f"{self._index}: record {np.argmax(strange)} is not in the store's encoding {encoding.name}")
            return False
        if encoding.physical:
            try:
                self._home = self.direction.home
            except DamagedStore:  # reported with the direction whose index it is
                self.complete = False
                return False
        return True

    def _check_column_index(self, column: str) -> bool:
        """Whether the column pages of each stripe follow one another without a gap."""
        direction = self.direction
        records = direction.column_records.get(column)
        if records is None:
            self.complete = False
            return False
        wrong = records["bytes"] != direction.records["arcs"] * type_dtype(direction.columns[column]).itemsize
        sizes = (records["bytes"] + np.uint64(4095)) & ~np.uint64(4095)
        stripes = len(direction.store.roots)
        for stripe in range(stripes):
            mine = sizes[stripe::stripes]
            wrong[stripe::stripes] |= records["offset"][stripe::stripes] != np.cumsum(mine) - mine
        if wrong.any():
            self._fail(f"{self._column_index(column)}: record {np.argmax(wrong)} does not fit its page")
            return False
        return True

    def _open(self) -> dict[Path, int]:
        """Descriptors of the files that can be opened; what cannot was reported with the files."""
        files: dict[Path, int] = {}
        for path in self.direction.sizes():
            try:
                files[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                self.complete = False
        return files

    def _runs(self) -> Iterator[tuple[int, int, int]]:
        """(stripe, first place in it, pages)."""
        store = self.direction.store
        stripes, count = len(store.roots), max(1, _RUN // store.page_size)
        for place in range(0, -(-len(self.direction) // stripes), count):
            for stripe in range(stripes):
                pages = len(range(stripe, len(self.direction), stripes))
                if place < pages:
                    yield stripe, place, min(count, pages - place)

    # ---- the pages

    def _work(self, files: dict[Path, int], runs: Iterator[tuple[int, int, int]], bar: Progress) -> None:
        direction = self.direction
        size, stripes = direction.store.page_size, len(direction.store.roots)
        scratch = direction.scratch() if self._provable else np.empty(0, np.uint32)
        buffer = np.empty(max(size, _RUN), np.uint8)
        try:
            while not self._stop:
                with self._lock:
                    found = next(runs, None)
                if found is None:
                    return
                stripe, place, count = found
                path = direction.path("pages", stripe)
                data = self._read(files, path, place * size, buffer[: count * size], size)
                for i in range(count):
                    page = (place + i) * stripes + stripe
                    block = None
                    if i < len(data) // size:
                        block = self._page(page, data[i * size : (i + 1) * size], scratch)
                    self._column_pages(files, page, stripe, block, bar)
                bar.advance(count * size)
        except BaseException:
            self._stop = True
            raise

    def _read(self, files: dict[Path, int], path: Path, offset: int, target: np.ndarray, unit: int) -> np.ndarray:
        """As much of `target` as the file has, in whole units."""
        descriptor = files.get(path)
        if descriptor is None:
            self.complete = False
            return target[:0]
        there = max(0, min(len(target), os.fstat(descriptor).st_size - offset) // unit * unit) if unit else 0
        if there < len(target):
            self.complete = False  # its size was reported with the files
        try:
            fill(descriptor, path, offset, target[:there])
        except DamagedStore as error:
            self._fail(str(error))
            return target[:0]
        except OSError as error:
            self._fail(f"{path} cannot be read at byte {offset}: {error.strerror}")
            return target[:0]
        return target[:there]

    def _page(self, page: int, data: np.ndarray, scratch: np.ndarray) -> Any:
        """The block of a sound page; None if something is wrong with it."""
        direction = self.direction
        try:
            direction.verify(page, data)
        except DamagedStore as error:
            self._fail(str(error))
            return None
        if not self._provable:
            return None
        record = direction.records[page]
        place = f"{direction.path('pages', page % len(direction.store.roots))}: page {page}"
        block = decode(data, record, self._home, scratch)
        wrong = int(proof.prove_slots(block.offsets, record["arcs"]))
        if wrong >= 0:
            self._fail(f"{place}: slot {wrong} is wrong: slots ascend from 0 to the page's {record['arcs']} arcs")
            return None
        begin = int(record["arcs"]) * ID_BYTES[int(record["encoding"])]
        if data[begin : len(data) - 4 * len(block.offsets)].any():
            self._fail(f"{place}: there is something between its arcs and its slots")
        if record["kind"] != LARGE:
            self._check_degrees(place, page, record, block)
        bare = not self.direction.columns
        wrong, arc, here, back, loops = proof.prove_neighbours(
            block.offsets,
            block.neighbours,
            block.first_vertex,
            direction.store.active,
            self.counts,
            bare and self._hashing,
            bare and self._turning,
        )
        if wrong != proof.SOUND:
            vertex = block.first_vertex + int(np.searchsorted(block.offsets, arc, side="right")) - 1
            what = f"the neighbours of vertex {vertex} do not ascend"
            if wrong == proof.BAD_NEIGHBOUR:
                what = f"vertex {vertex} has the neighbour {block.neighbours[arc]}, which does not exist"
            self._fail(f"{place}: arc {arc}: {what}")
            return None
        if record["arcs"]:
            self._ends[page] = block.neighbours[0], block.neighbours[-1]
        self._add(here, back, loops)
        return block

    def _check_degrees(self, place: str, page: int, record: np.void, block: Any) -> None:
        first, count = block.first_vertex, len(block.offsets) - 1
        told = None if self.degrees is None else self.degrees[first : first + count]
        wrong, low, high = proof.prove_degrees(block.offsets, np.diff(block.offsets) if told is None else told)
        if wrong >= 0 and told is not None:
            degree = int(block.offsets[wrong + 1]) - int(block.offsets[wrong])
            self._fail(
                f"{place}: vertex {first + wrong} has {degree} arcs, "
                f"but its {self.direction.name}_degree is {told[wrong]}"
            )
        if low != record["smallest_degree"] or high != record["largest_degree"]:
            self._fail(f"{self._index}: record {page} has other smallest and largest degrees than its page")

    def _column_pages(self, files: dict[Path, int], page: int, stripe: int, block: Any, bar: Progress) -> None:
        """Check the column pages of a page, and take their values into the hashes of its arcs."""
        if not self._columns:
            return
        values = {column: self._column_page(files, column, page, stripe, bar) for column in self._columns}
        if block is None or len(values) < len(self.direction.columns) or any(v is None for v in values.values()):
            self.complete = False
            return
        # By name: the other direction may list its columns in another order.
        bits = [values[name].view(f"u{values[name].itemsize}") for name in sorted(values)]  # type: ignore[union-attr]
        hashes = np.empty(min(_HASHES, len(block.neighbours)), np.uint64)
        sums = {False: 0, True: 0}
        for start in range(0, len(block.neighbours), _HASHES):
            piece = hashes[: len(block.neighbours) - start]
            for turned in [False] * self._hashing + [True] * self._turning:
                proof.hash_arcs(block.offsets, block.neighbours, block.first_vertex, start, turned, piece)
                for each in bits:
                    proof.hash_values(piece, each[start : start + len(piece)])
                sums[turned] += int(piece.sum(dtype=np.uint64))
        self._add(sums[False], sums[True], 0)

    def _column_page(
        self, files: dict[Path, int], column: str, page: int, stripe: int, bar: Progress
    ) -> np.ndarray | None:
        direction = self.direction
        record = direction.column_records[column][page]
        used, nbytes = int(record["bytes"]), padded(int(record["bytes"]))
        path = direction.column_path(column, stripe)
        data = self._read(files, path, int(record["offset"]), np.empty(nbytes, np.uint8), nbytes)
        bar.advance(nbytes)
        if len(data) < nbytes:
            return None
        try:
            direction.verify_column(column, page, data)
        except DamagedStore as error:
            self._fail(str(error))
            return None
        if data[used:].any():
            self._fail(f"{path}: column page {page} has something behind its values")
        values = direction.column_values(column, page, data)
        index = self._column_index(column)
        told = [from_extreme(int(record[name]), values.dtype) for name in ("minimum", "maximum")]
        found = [from_extreme(bits, values.dtype) for bits in extremes(values)]
        if not np.array_equal(told, found, equal_nan=values.dtype.kind == "f"):
            self._fail(
                f"{index}: record {page} says {told[0]} to {told[1]}, but the values are {found[0]} to {found[1]}"
            )
        if direction.columns[column] == "bool" and found[1] > 1:
            self._fail(f"{path}: column page {page} has a value that is neither false (0) nor true (1)")
        return values

    # ---- after the pages

    def _check_large(self) -> None:
        """What concerns a vertex that is spread over several pages."""
        records = self.direction.records
        large = np.flatnonzero(records["kind"] == LARGE)
        later = large[records["part"][large] > 0]
        if self.complete:
            for page in later[self._ends[later - 1, 1] > self._ends[later, 0]].tolist():
                path = self.direction.path("pages", page % len(self.direction.store.roots))
                vertex = records["first_vertex"][page]
                self._fail(
                    f"{path}: page {page}: the neighbours of vertex {vertex} go on below those of the page before"
                )
        if self.degrees is not None:
            heads = large[records["part"][large] == 0]
            vertices, degrees = records["first_vertex"][heads], records["largest_degree"][heads]
            for k in np.flatnonzero(self.degrees[vertices] != degrees).tolist():
                self._fail(
                    f"{self._index}: vertex {vertices[k]} has {degrees[k]} arcs, "
                    f"but its {self.direction.name}_degree is {self.degrees[vertices[k]]}"
                )

    def _column_index(self, column: str) -> str:
        return f"{self.direction.store.path}/{self.direction.name}/{column_file(column)}.index"

    def _add(self, here: int, back: int, loops: int) -> None:
        with self._lock:
            self.hash = (self.hash + int(here)) & 0xFFFFFFFFFFFFFFFF
            self.turned = (self.turned + int(back)) & 0xFFFFFFFFFFFFFFFF
            self.loops += int(loops)

    def _fail(self, sentence: str) -> None:
        self.complete = False
        self.problems.add(sentence)
