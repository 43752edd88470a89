"""One direction's arcs as the executors see them: in memory as one block, or streamed from disk page by page."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from penstock.config import Settings
from penstock.memory.cache import Policy
from penstock.memory.device import kernel
from penstock.memory.ledger import Ledger, Scope
from penstock.memory.pages import PageFeed
from penstock.memory.team import Team
from penstock.store.encodings import Block
from penstock.store.index import LARGE
from penstock.store.reader import Direction

Columns = tuple[np.ndarray, ...]
Visit = Callable[[int, np.ndarray, np.ndarray, np.uint64, np.ndarray, np.ndarray, Columns], Any]
"""`visit(worker, counter, cuts, first vertex, offsets, neighbours, columns)`: a kernel on one block."""
VisitPart = Callable[[int, int, np.uint64, np.ndarray, Columns], Any]
"""`visit(worker, page, vertex, neighbours, columns)`: one page of a large vertex."""

_CHUNKS = 64
"""Chunks per thread: enough to even out what degrees make uneven."""


@kernel()
def _fill(offsets, neighbours, first_vertex, first_arc, all_offsets, all_neighbours, large):
    """Append a page to the block of everything."""
    base = np.uint64(first_arc)
    for a in range(np.uint64(neighbours.size)):
        all_neighbours[base + a] = neighbours[a]
    if not large:
        for i in range(np.uint64(offsets.size)):
            all_offsets[np.uint64(first_vertex) + i] = base + np.uint64(offsets[i])


def balanced(offsets: np.ndarray, threads: int) -> np.ndarray:
    """Cuts of the vertices into chunks of about equal arcs and vertices."""
    n = len(offsets) - 1
    chunks = max(1, min(n, _CHUNKS * threads))
    work = int(offsets[-1]) + n
    # Vertices count, too, or the many of low degree would end up in one chunk.
    targets = np.arange(1, chunks) * (work / chunks)
    lo, hi = np.zeros(len(targets), np.int64), np.full(len(targets), n, np.int64)
    while (lo < hi).any():
        middle = (lo + hi) // 2
        less = offsets[middle].astype(np.float64) + middle < targets
        lo, hi = np.where(less, middle + 1, lo), np.where(less, hi, middle)
    return np.unique(np.concatenate([[0], lo, [n]])).astype(np.uint64)


def _offset_type(arcs: int) -> np.dtype:
    """What counts this many arcs: that of a page's offsets if it will do, so that memory and disk share kernels."""
    return np.dtype(np.uint32 if arcs < 1 << 32 else np.uint64)


class Resident:
    """All arcs of a direction in one block."""

    kind = "memory"

    def __init__(self, direction: Direction, columns: Sequence[str], scope: Scope, settings: Settings) -> None:
        self.direction, self.columns = direction, tuple(columns)
        active, arcs = direction.store.active, direction.arcs
        ids = np.uint32 if direction.store.vertices <= 1 << 32 else np.uint64
        self.offsets = scope.zeros(active + 1, _offset_type(arcs), "offsets")
        self.neighbours = scope.empty(arcs, ids, "neighbours")
        self.values = tuple(scope.empty(arcs, direction.column_dtype(name), f"column {name}") for name in columns)
        self.bytes_read = 0
        records = direction.records

        def take(worker: int, page: int, block: Block, values: Columns) -> None:
            record = records[page]
            base = int(record["first_arc"])
            _fill(
                block.offsets, block.neighbours, np.uint64(block.first_vertex), np.uint64(base),
                self.offsets, self.neighbours, record["kind"] == LARGE,
            )  # fmt: skip
            for mine, value in zip(self.values, values, strict=True):
                mine[base : base + len(value)] = value

        # No cache: each page is read once. The offset after a large vertex is where the next vertex begins.
        with PageFeed(direction, scope.ledger, settings, columns=self.columns, cache=0) as feed:
            feed.run(np.arange(len(direction)), take)
            self.bytes_read = feed.stats["bytes_read"]
        large = records["kind"] == LARGE
        self.offsets[records["first_vertex"][large & (records["part"] == 0)]] = records["first_arc"][
            large & (records["part"] == 0)
        ]
        self.offsets[active] = arcs
        self.cuts = balanced(self.offsets, settings.threads)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in (self.offsets, self.neighbours, *self.values))

    @staticmethod
    def needed(direction: Direction, columns: Sequence[str]) -> int:
        """Bytes that this takes."""
        ids = 4 if direction.store.vertices <= 1 << 32 else 8
        widths = ids + sum(direction.column_dtype(name).itemsize for name in columns)
        return (direction.store.active + 1) * _offset_type(direction.arcs).itemsize + direction.arcs * widths

    def with_columns(self, columns: Sequence[str]) -> Resident:
        """The same block with some of its columns."""
        other = copy.copy(self)
        other.columns = tuple(columns)
        other.values = tuple(self.values[self.columns.index(name)] for name in columns)
        return other

    def visit(
        self, team: Team, call: Visit, *, cuts: np.ndarray | None = None, alone: bool = False, beside: Columns = ()
    ) -> list[Any]:
        """The kernel over all chunks, on all threads or on this one. Chunks have equal arcs unless `cuts` says so.
        `beside`: more arrays in the order of the arcs, which it is given after the columns."""
        counter, chunks = np.zeros(1, np.uint64), self.cuts if cuts is None else cuts
        values = (*self.values, *beside)
        return team.run(
            lambda worker: call(worker, counter, chunks, np.uint64(0), self.offsets, self.neighbours, values),
            alone=alone,
        )


class Streamed:
    """The pages of a direction, from disk through the host cache."""

    kind = "disk"

    def __init__(
        self,
        direction: Direction,
        columns: Sequence[str],
        ledger: Ledger,
        settings: Settings,
        policy: Policy,
        cache: int | None = None,
    ) -> None:
        self.direction, self.columns = direction, tuple(columns)
        self.feed = PageFeed(direction, ledger, settings, columns=columns, policy=policy, cache=cache)
        self.large = np.flatnonzero(direction.records["kind"] == LARGE)
        self._is_large = direction.records["kind"] == LARGE
        self._counters = [np.zeros(1, np.uint64) for _ in range(settings.threads)]
        self._cuts = [np.zeros(2, np.uint64) for _ in range(settings.threads)]

    def visit(
        self,
        pages: np.ndarray,
        call: Visit,
        part: VisitPart | None = None,
        *,
        beside: Columns = (),
        using: Callable[[int, int], AbstractContextManager[None]] | None = None,
    ) -> list[Any]:
        """The kernel on each of these pages; `part` takes those of large vertices, if they need it.

        `beside`: arrays in the order of all arcs, of which it is given the page's part after the columns, inside
        `using(first arc, end)`."""
        found: list[Any] = []
        is_large = self._is_large if part is not None else np.zeros(len(self._is_large), bool)
        records = self.direction.records

        def with_beside(worker: int, page: int, block: Block, values: Columns) -> None:
            begin = int(records["first_arc"][page])
            end = begin + len(block.neighbours)
            with using(begin, end) if using is not None else nullcontext():
                work(worker, page, block, (*values, *(array[begin:end] for array in beside)))

        def work(worker: int, page: int, block: Block, values: Columns) -> None:
            first = np.uint64(block.first_vertex)
            if is_large[page]:
                assert part is not None
                part(worker, page, first, block.neighbours, values)
                return
            counter, cuts = self._counters[worker], self._cuts[worker]
            counter[0], cuts[1] = 0, len(block.offsets) - 1
            found.append(call(worker, counter, cuts, first, block.offsets, block.neighbours, values))

        self.feed.run(pages, with_beside if beside else work)
        return found

    def close(self) -> None:
        self.feed.close()
