"""The pages of a store, streamed: read ahead, checked, cached, decoded, and handed to workers as blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

import numpy as np

from penstock.config import Settings
from penstock.memory.cache import PageCache, Policy
from penstock.memory.ledger import Ledger
from penstock.memory.stream import Extents, PageStream, StripedFile
from penstock.observe.events import count
from penstock.store.columns import ALIGN
from penstock.store.encodings import Block, decode
from penstock.store.reader import Direction

Work = Callable[[int, int, Block, tuple[np.ndarray, ...]], None]
"""`work(worker, page, block, column values)`; what it is given is valid until it returns."""
RawWork = Callable[[int, int, tuple[np.ndarray, ...]], None]
"""`work(worker, page, (page, column pages...))`: the bytes of each."""


def extents_of(direction: Direction, columns: Sequence[str], settings: Settings, held: ExitStack) -> list[Extents]:
    """Where pages and their columns' pages lie, in files that `held` closes."""
    stripes = range(len(direction.store.roots))
    paths = [[direction.path("pages", stripe) for stripe in stripes]]
    paths += [[direction.column_path(column, stripe) for stripe in stripes] for column in columns]
    files = [held.enter_context(StripedFile(each, direct=settings.direct_io)) for each in paths]
    parts = [Extents.pages(files[0], len(direction), direction.store.page_size)]
    for file, column in zip(files[1:], columns, strict=True):
        records = direction.column_records[column]
        sizes = -(-records["bytes"].astype(np.int64) // ALIGN) * ALIGN
        parts.append(Extents(file, records["offset"].astype(np.int64), sizes))
    return parts


def verify_parts(direction: Direction, columns: Sequence[str], page: int, parts: Sequence[np.ndarray]) -> None:
    """Whether a page and its columns' pages are what was written."""
    direction.verify(page, parts[0])
    for column, data in zip(columns, parts[1:], strict=True):
        direction.verify_column(column, page, data)


class PageFeed:
    """Streams pages of one direction, with the columns a run uses and no others."""

    def __init__(
        self,
        direction: Direction,
        ledger: Ledger,
        settings: Settings,
        *,
        columns: Sequence[str] = (),
        policy: Policy = "resident",
        cache: int | None = None,
    ) -> None:
        self.direction, self.columns = direction, tuple(columns)
        # What is closed with the feed, the last first; and at once when the feed cannot be made.
        with ExitStack() as held:
            parts = extents_of(direction, columns, settings, held)
            self._home = direction.home
            held.enter_context(ledger.reserve(settings.threads * direction.scratch_bytes, "decoded pages"))
            self._scratch = [direction.scratch() for _ in range(settings.threads)]
            smallest = PageStream.smallest(parts, settings.threads)
            # The ring's share stays free; no more is taken than there are pages to keep, in frames not quite full.
            room = ledger.free - max(smallest, min(32 * parts[0].nbytes[:1].sum(), ledger.free // 4))
            everything = sum(int(part.nbytes.sum()) for part in parts) * 9 // 8 + 8 * max(smallest, 4 << 20)
            capacity = max(0, min(int(room), everything, everything if cache is None else cache))
            if not len(direction):
                capacity = 0
            self.cache = held.enter_context(PageCache(capacity, ledger, policy)) if capacity else None
            verify = self._verify if settings.verify_checksums else None
            stream = PageStream(parts, ledger, workers=settings.threads, cache=self.cache, verify=verify)
            self._stream = held.enter_context(stream)
            self._held = held.pop_all()

    def _verify(self, page: int, parts: tuple[np.ndarray, ...]) -> None:
        verify_parts(self.direction, self.columns, page, parts)

    def run(self, pages: Sequence[int] | np.ndarray, work: Work) -> None:
        """Hand each of these pages to a worker, in any order."""
        records, home, direction = self.direction.records, self._home, self.direction

        def take(worker: int, page: int, parts: tuple[np.ndarray, ...]) -> None:
            block = decode(parts[0], records[page], home, self._scratch[worker])
            values = tuple(
                direction.column_values(column, page, data)
                for column, data in zip(self.columns, parts[1:], strict=True)
            )
            work(worker, page, block, values)

        self.run_raw(pages, take)

    def run_raw(self, pages: Sequence[int] | np.ndarray, work: RawWork) -> None:
        """Like `run`, with pages as they lie on disk: to be copied elsewhere."""
        self._stream.run(pages, work)
        if self.cache is not None:
            count(f"bytes held/cache {self.direction.name}", self.cache.bytes)

    @property
    def stats(self) -> dict[str, Any]:
        """What was read and what the cache saved."""
        beat = self._stream.heartbeat()
        return beat | {"cache": self.cache.heartbeat() if self.cache is not None else None}

    def close(self) -> None:
        """End the threads, give the memory back, close the files."""
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()
