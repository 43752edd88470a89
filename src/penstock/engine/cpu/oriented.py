"""The oriented lists of a graph: for each vertex its neighbours of a lower rank, each once; or whole lists, of all
neighbours. They are made from the outgoing arcs, a window of lists at a time, and lie in memory, or in a file of which
ranges are in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.engine.kernels import oriented as kernels
from penstock.engine.pairing import CHUNK, SPILLING, entry_dtype
from penstock.engine.plan import number_dtype, stream_bytes
from penstock.errors import DoesNotFit
from penstock.memory.spill import Spill, SpillFile
from penstock.memory.topology import Streamed

if TYPE_CHECKING:
    from penstock.engine.engine import Engine
    from penstock.engine.plan import Plan

_SOME = 1 << 16
"""Lists that are looked at together."""
_CHUNKS = 256
"""Chunks per thread: a few vertices may have most of the triangles."""


class Oriented:
    """List u is `entries[offsets[u] : offsets[u + 1]]` of `whole`, or of the file. With `everyone` it has all
    neighbours, and u is a number; else u is a rank."""

    def __init__(self, engine: Engine, plan: Plan, what: str, *, ways: bool = False, everyone: bool = False) -> None:
        self.engine, self.plan, self.what, self.everyone = engine, plan, what, everyone
        store = engine.store
        self.count, self.directed = store.active, store.directed
        self.kind = entry_dtype(store, ways)
        self.shift = kernels.WAYS if ways else np.uint64(0)
        self.rank = np.zeros(0, number_dtype(store)) if everyone else self._ranks()
        self.offsets = engine.ledger.zeros(self.count + 1, np.uint64, "offsets of lists")
        self.whole: np.ndarray | None = None
        self._spill: Spill | None = None
        self._file: SpillFile | None = None
        self.windows = 0
        try:
            self._make()
        except BaseException:
            self.close()
            raise
        self.longest = self._longest()
        self.falling = all((found[1:] <= found[:-1]).all() for found in self._lengths(beside=1))
        """Whether no list is longer than the one before."""

    # ---- how lists are made

    def _ranks(self) -> np.ndarray:
        """The vertices by falling degree; nothing where they are numbered so."""
        store, ledger = self.engine.store, self.engine.ledger
        kind = number_dtype(store)
        if store.meta["order"] == "degree":
            return np.zeros(0, kind)
        rank = ledger.empty(self.count, kind, "ranks")
        with ledger.reserve(28 * self.count, "ordering by degree"):
            degree = store.vertex_column("out_degree").read(0, self.count).astype(np.int64)
            if self.directed:
                degree += store.vertex_column("in_degree").read(0, self.count).astype(np.int64)
            np.negative(degree, out=degree)
            rank[np.argsort(degree, kind="stable")] = np.arange(self.count, dtype=kind)
        return rank

    def _make(self) -> None:
        engine, offsets = self.engine, self.offsets

        def count(worker: int, counter: Any, cuts: Any, first: Any, begins: Any, neighbours: Any, _: Any) -> None:
            kernels.count(counter, cuts, first, begins, neighbours, self.rank, self.directed, self.everyone, offsets)

        self._visit(count, None)
        np.cumsum(offsets, out=offsets)
        total, longest = int(offsets[-1]), self._longest()
        capacity = total
        if self.plan.tier == "disk":
            capacity = self._capacity(total, longest)
        buffer = engine.ledger.empty(capacity, self.kind, "lists of neighbours")
        if capacity < total:
            place = engine.settings.temp_directory or engine.store.path.absolute().parent
            self._spill = Spill(place, quota=engine.settings.max_temp_directory_size)
            self._spill.require(total * self.kind.itemsize, "the lists of neighbours")
            self._file = self._spill.create("lists")
        written = 0
        for lo, hi in self.ranges(capacity):
            written += self._window(lo, hi, buffer, written)
        offsets[self.count] = written
        if self._file is None:
            self.whole = buffer[:written]

    def _capacity(self, total: int, longest: int) -> int:
        """How many entries are made at a time."""
        engine, size = self.engine, self.kind.itemsize
        least = stream_bytes(engine.store.direction("out"), (), engine.settings.threads)
        room = (engine.ledger.free - least - SPILLING) // size
        forced = engine.settings.state_ranges or 1
        if forced > 1:
            room = min(room, max(longest, -(-total // forced)))
        elif total <= room:
            return total
        if room < longest:
            raise DoesNotFit(
                self.what, needed=engine.ledger.used + least + SPILLING + longest * size, limit=engine.ledger.limit
            )
        return min(total, room)

    def _window(self, lo: int, hi: int, buffer: np.ndarray, written: int) -> int:
        """Make the lists `lo` to `hi`, which begin at `written` in the end; how many entries they have."""
        offsets, base = self.offsets, self.offsets[lo]
        entries = int(offsets[hi]) - int(base)

        def fill(worker: int, counter: Any, cuts: Any, first: Any, begins: Any, neighbours: Any, _: Any) -> None:
            kernels.fill(
                counter, cuts, first, begins, neighbours, self.rank, self.directed, self.everyone, self.shift,
                np.uint64(lo), np.uint64(hi), base, offsets, buffer,
            )  # fmt: skip

        self._visit(fill, (lo, hi))
        ends, nothing = offsets[lo:hi], buffer.dtype.type(np.iinfo(buffer.dtype).max)
        left = self.share(
            lambda _, counter, cuts: kernels.simplify(counter, cuts, base, ends, self.shift, buffer, nothing),
            lo,
            hi,
            relative=True,
        )
        if sum(map(int, left)):
            entries = int(kernels.close_gaps(base, ends, buffer, nothing, np.uint64(written)))
        else:
            # What was dropped before this window moves its lists.
            kernels.begin_again(ends, base)
            ends -= base - np.uint64(written)
        self.windows += 1
        if self._file is not None:
            self._file.append(buffer[:entries])
        return entries

    def _visit(self, call: Callable[..., None], window: tuple[int, int] | None) -> None:
        """The call on all arcs that lists of the window may be made of."""
        engine = self.engine
        direction = engine.store.direction("out")
        if self.plan.tier == "memory":
            engine.resident("out", ()).visit(engine.team, call)
            return
        pages = np.arange(len(direction))
        if window and not self.directed and not len(self.rank):
            first = direction.records["first_vertex"]
            pages = pages[(first < window[1]) & (first + direction.records["vertices"] > window[0])]
        side = Streamed(direction, (), engine.ledger, engine.settings, "resident", cache=0)
        try:
            side.visit(pages, call)
            engine.bytes_read += side.feed.stats["bytes_read"]
        finally:
            side.close()

    # ---- how they are used

    def share(self, task: Callable[..., Any], lo: int, hi: int, *, relative: bool = False) -> list[Any]:
        """`task(worker, counter, cuts)` on all threads: chunks of the lists `lo` to `hi` of about equal length."""
        team, offsets = self.engine.team, self.offsets[lo : hi + 1]
        wished = np.linspace(int(offsets[0]), int(offsets[-1]), _CHUNKS * team.threads + 1)[1:-1].astype(np.uint64)
        inner = np.searchsorted(offsets, wished)
        cuts = np.unique(np.concatenate([[0], inner, [hi - lo]])).astype(np.uint64)
        cuts += np.uint64(0 if relative else lo)
        counter = np.zeros(1, np.uint64)
        return team.run(lambda worker: task(worker, counter, cuts), alone=int(offsets[-1] - offsets[0]) < CHUNK)

    def ranges(self, capacity: int, lo: int = 0) -> Iterator[tuple[int, int]]:
        """Ranges of lists from `lo` on of at most so many entries each."""
        while lo < self.count:
            end = self.offsets[lo] + np.uint64(capacity)
            hi = max(lo + 1, int(np.searchsorted(self.offsets, end, side="right")) - 1)
            yield lo, hi
            lo = hi

    def read(self, lo: int, hi: int, buffer: np.ndarray) -> np.ndarray:
        """The lists `lo` to `hi`."""
        return self.between(int(self.offsets[lo]), int(self.offsets[hi]), buffer)

    def between(self, begin: int, end: int, buffer: np.ndarray) -> np.ndarray:
        """These entries of all lists; those in a file are read into the buffer."""
        if self.whole is not None:
            return self.whole[begin:end]
        assert self._file is not None
        part = buffer[: end - begin]
        self._file.read_into(begin * self.kind.itemsize, part)
        return part

    @property
    def entries(self) -> int:
        return int(self.offsets[self.count])

    @property
    def spilled(self) -> int:
        """Bytes in temporary files."""
        return 0 if self._file is None else self._file.size

    def _longest(self) -> int:
        return max((int(found.max(initial=0)) for found in self._lengths()), default=0)

    def _lengths(self, beside: int = 0) -> Iterator[np.ndarray]:
        """How long the lists are, some at a time, and so many that follow."""
        for at in range(0, self.count, _SOME):
            yield np.diff(self.offsets[at : at + _SOME + beside + 1])

    def close(self) -> None:
        """Remove the file."""
        self.whole = None
        if self._spill is not None:
            self._spill.close()
            self._spill = self._file = None
