"""A pair program on CPU threads: oriented lists are made once, then each range of them is held against all lists that
may have it in common."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.engine.compile import adapters, make_kernel, usable
from penstock.engine.cpu.oriented import Oriented
from penstock.engine.kernels import oriented as lists
from penstock.engine.kernels import pair as kernels
from penstock.engine.pairing import CHUNK, MOST_STREAMED, NEAR, SPILLING, has_ways, hub_count, mark_bytes
from penstock.engine.plan import SLACK, Plan, number_dtype, read_dtype
from penstock.engine.program import Pair
from penstock.engine.vectors import Slots
from penstock.errors import DoesNotFit
from penstock.observe.progress import progress

if TYPE_CHECKING:
    from penstock.engine.engine import Engine, Outcome, Until


class PairRun:
    """One run: lists, marks, totals; the ranges one after the other."""

    def __init__(self, engine: Engine, program: Pair, plan: Plan, params: dict[str, Any], slots: Slots) -> None:
        self.engine, self.program, self.plan, self.params, self.slots = engine, program, plan, params, slots
        self.telling, self.ways = program.per_vertex, has_ways(program, engine.store)
        self.called = self.telling and program.corner is not None
        make, threads, active = engine.vectors.make, engine.settings.threads, slots.active
        kind = np.dtype(program.total)
        self.totals = make(slots.count if self.telling else 1, kind, "totals")
        near = min(NEAR, active) if self.telling else 0
        self.near = make(threads * near, kind, "totals of low ranks").reshape(threads, near)
        marks = mark_bytes(program, active)
        self.marks = make(threads * marks, np.uint8, "marks").reshape(threads, marks)
        if not self.called:
            self.marks = self.marks.view(np.uint64)
        self.neighbours: np.ndarray | None = None
        if self.telling and "neighbours" in program.reads:
            self.neighbours = make(slots.count, number_dtype(engine.store), "neighbours")
        parts = self._functions()
        self._corners = make_kernel(kernels.corners, parts, program, self.ways) if self.called else None
        self._settle = make_kernel(kernels.settle, parts, program) if self.telling else None
        self.triangles = 0

    def _functions(self) -> SimpleNamespace:
        program = self.program
        found = adapters(program, flagged=False)
        found.ways, found.init = self.ways, usable(program.init)
        if program.corner is not None:
            found.corner = usable(program.corner)
        if program.update is not None:
            found.update = usable(program.update)
        return found

    def _given(self) -> tuple[Any, ...]:
        return (*self.params.values(), self.slots.vertices, 0, 0.0)

    # ---- triangles

    def count(self, held: Oriented) -> None:
        """All triangles, a range of lists at a time."""
        engine = self.engine
        ledger, size = engine.ledger, held.kind.itemsize
        if held.whole is not None:
            rows = self._rows(held, held.count, held.whole, min(held.entries * size // 2, ledger.free - SLACK))
            self._range(held, (0, held.count), held.whole, np.empty(0, held.kind), rows)
            return
        free = (ledger.free - SLACK // 2 - SPILLING) // size
        for_rows = 0 if self.called else min(held.entries // 2, free // 4)
        streamed = max(held.longest, min((free - for_rows) // 4, MOST_STREAMED // size))
        if free - for_rows - streamed < held.longest:
            for_rows, streamed = 0, held.longest
        room = min(free - for_rows - streamed, held.entries)
        if room < held.longest:
            raise DoesNotFit(
                self.program.name, needed=ledger.used + (held.longest - room) * size + SLACK, limit=ledger.limit
            )
        forced = engine.settings.state_ranges or 1
        if forced > 1:
            room = min(room, max(held.longest, -(-held.entries // forced)))
        buffer = ledger.empty(room, held.kind, "lists held")
        passing = ledger.empty(min(streamed, held.entries), held.kind, "lists that stream past")
        with progress(self.program.name, total=None, unit="ranges", settings=engine.settings) as bar:
            for lo, hi in held.ranges(room):
                mine = held.read(lo, hi, buffer)
                rows = self._rows(held, hi if lo == 0 else 0, mine, for_rows * size)
                self._range(held, (lo, hi), mine, passing, rows)
                del rows
                bar.advance(1)

    def _rows(self, held: Oriented, vertices: int, mine: np.ndarray, room: int) -> np.ndarray:
        """The bit matrix of the hubs."""
        hubs = 0 if self.called else hub_count(vertices, room)
        words = (hubs + 63) // 64
        rows = self.engine.ledger.zeros((hubs, words), np.uint64, "rows of hubs")
        if hubs:
            held.share(
                lambda _, counter, cuts: kernels.hub_rows(
                    counter, cuts, held.offsets, np.uint64(0), mine, self.telling, rows
                ),
                0,
                hubs,
            )
        return rows

    def _range(
        self, held: Oriented, span: tuple[int, int], theirs: np.ndarray, passing: np.ndarray, rows: np.ndarray
    ) -> None:
        """The triangles u > v > w of all v in a range."""
        began, (lo, hi) = time.perf_counter(), span
        base, before = held.offsets[lo], self.triangles
        if self.neighbours is not None:
            self._add_degrees(held, span, theirs)
        for first, last in [(0, held.count)] if held.whole is not None else held.ranges(max(1, len(passing)), lo):
            mine = held.read(first, last, passing)
            mine_base = held.offsets[first]

            def work(worker: int, counter: Any, cuts: Any, mine: Any = mine, mine_base: Any = mine_base) -> int:
                chunk = (counter, cuts, held.offsets, mine, mine_base, theirs, base, np.uint64(lo), np.uint64(hi))
                if self._corners is not None:
                    return int(self._corners(*chunk, self._given(), self.marks[worker], self.near[worker], self.totals))
                return int(
                    kernels.triangles(*chunk, rows, self.marks[worker], self.telling, self.near[worker], self.totals)
                )

            self.triangles += sum(held.share(work, first, last))
        self.engine.stats.iteration(
            program=self.program.name, lists=hi - lo, entries=len(theirs), hubs=len(rows),
            triangles=self.triangles - before, seconds=time.perf_counter() - began,
        )  # fmt: skip

    def _add_degrees(self, held: Oriented, span: tuple[int, int], mine: np.ndarray) -> None:
        assert self.neighbours is not None
        found = self.neighbours
        near = self.engine.vectors.make(self.near.size, np.uint64, "degrees of low ranks").reshape(self.near.shape)
        held.share(
            lambda worker, counter, cuts: lists.add_degrees(
                counter, cuts, held.offsets, held.offsets[span[0]], mine, held.shift, near[worker], found
            ),
            *span,
        )
        found[: near.shape[1]] += near.sum(axis=0).astype(found.dtype)

    # ---- vertices

    def settle(self, rank: np.ndarray) -> dict[str, np.ndarray]:
        """The state of all vertices, by their totals."""
        slots, engine = self.slots, self.engine
        self.totals[: self.near.shape[1]] += self.near.sum(axis=0)
        if len(rank):
            with engine.ledger.reserve(8 * len(rank), "totals by vertex"):
                for vector in (self.totals, self.neighbours):
                    if vector is not None:
                        vector[: len(rank)] = vector[rank]
        state = tuple(engine.vectors.make(slots.count, kind, name) for name, kind in self.program.fields().items())
        reads = tuple(self._read(name) for name in self.program.stored_reads())
        chunks = max(1, min(8 * engine.team.threads, slots.count // CHUNK))
        cuts, counter = np.linspace(0, slots.count, chunks + 1).astype(np.uint64), np.zeros(1, np.uint64)
        assert self._settle is not None
        settle, params = self._settle, self._given()
        engine.team.run(lambda _: settle(counter, cuts, state, reads, params, self.totals), alone=chunks == 1)
        return dict(zip(self.program.state, state, strict=True))

    def _read(self, name: str) -> np.ndarray:
        slots, store = self.slots, self.engine.store
        if name == "neighbours":
            assert self.neighbours is not None
            return self.neighbours
        found = self.engine.vectors.make(slots.count, read_dtype(store, name), name)
        if name == "seed":
            found[:] = slots.seed_column()
            return found
        column = store.vertex_column(name)
        column.read(0, slots.active, out=found[: slots.active])
        for slot, number in enumerate(slots.alone, slots.active):
            found[slot] = column.read(number, number + 1)[0]
        return found


def run(
    engine: Engine,
    program: Pair,
    plan: Plan,
    params: dict[str, Any],
    slots: Slots,
    vectors: dict[str, np.ndarray],
    active: np.ndarray | None,
    until: Until | None,
) -> Outcome:
    """All triangles once; `totals["triangles"]` says how many there are."""
    from penstock.engine.engine import Outcome

    held = PairRun(engine, program, plan, params, slots)
    with engine.stats.phase("orient"):
        oriented = Oriented(engine, plan, f"{program.name} of {engine.store.vertices:,} vertices", ways=held.ways)
    try:
        with engine.stats.phase("run"):
            held.count(oriented)
            rank, figures = oriented.rank, {"windows": oriented.windows, "spilled_lists": oriented.spilled}
    finally:
        oriented.close()
    state = held.settle(rank) if program.per_vertex else {}
    return Outcome(state, slots, 1, 0.0, totals={"triangles": held.triangles, **figures})
