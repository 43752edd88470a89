"""Supersteps of a row program on CPU threads. In memory a thread collects a row and takes it at once; from disk the
rows of as many vertices as there is room for are collected from their pages, range by range of the senders, then
taken."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.engine.cpu.parts import chunks, initialise, kernels_of, read_column
from penstock.engine.defaults import same, still
from penstock.engine.kernels import row as templates
from penstock.engine.kernels import slots as each
from penstock.engine.monoid import MAX
from penstock.engine.plan import ROW_VERTEX, Plan
from penstock.engine.program import Row
from penstock.engine.vectors import Slots
from penstock.memory.topology import Streamed, balanced
from penstock.observe.progress import progress

if TYPE_CHECKING:
    from penstock.engine.engine import Engine, Outcome, Until

_PIECE = 1 << 18
"""Degrees that are read at a time."""
_NONE = np.uint64(0)
Window = tuple[int, int]


class RowRun:
    """One run: the vectors, and its supersteps."""

    def __init__(
        self,
        engine: Engine,
        program: Row,
        plan: Plan,
        params: dict[str, Any],
        slots: Slots,
        vectors: dict[str, np.ndarray],
    ) -> None:
        self.engine, self.program, self.plan, self.params, self.slots = engine, program, plan, params, slots
        self.store, self.team, self.ranged = engine.store, engine.team, plan.ranges > 1
        self.kernels = kernels_of(
            program, templates, each,
            constants={"sides": len(plan.sides), "ranged": self.ranged, "changing": program.change is not None},
            init=program.init, emit=program.emit, row=program.row, edge=program.edge or same,
            change=program.change or still, fold=program.change_by.combine,
        )  # fmt: skip
        make = engine.vectors.make
        self.state = tuple(
            vectors[name] if name in vectors else make(slots.count, kind, name, spilled=self.ranged)
            for name, kind in program.fields().items()
        )
        self.reads = tuple(
            vectors[name] if name in vectors else read_column(engine, slots, name, spilled=self.ranged)
            for name in program.stored_reads()
        )
        self.message = make(slots.count, program.message, "messages", spilled=self.ranged)
        cuts = np.unique(np.linspace(0, slots.count, plan.ranges + 1).astype(np.int64))
        self.ranges: list[Window] = list(pairwise(cuts.tolist()))
        self.step, self.change = 0, np.inf
        if set(program.state) - set(vectors):
            for lo, hi in self.ranges:
                initialise(self.kernels, engine, slots, lo, hi, *self._window(lo, hi), self._given())
                self._drop()
        self._open()

    def _open(self) -> None:
        """The arcs, after the vectors, so that caches take what is left."""
        names, columns, kind = self.plan.sides, self.program.columns, np.dtype(self.program.message)
        if self.plan.tier == "memory":
            self.blocks = [self.engine.resident(name, columns) for name in names]
            longest = sum(int(block.direction.records["largest_degree"].max(initial=0)) for block in self.blocks)
            self.scratch = [self.engine.vectors.make(longest, kind, "rows") for _ in range(self.team.threads)]
            # Where messages come both ways, no chunk is long either way.
            self.cuts = np.unique(np.concatenate([block.cuts for block in self.blocks]))
            return
        self.rows = self.engine.vectors.make(self.plan.rows_bytes, np.uint8, "rows")
        self.windows = self._windows()
        self.streams = list(self.engine.streamed(names, columns, "resident").values())

    def _given(self) -> tuple[Any, ...]:
        return (*self.params.values(), self.slots.vertices, self.step, 0.0)

    def _window(self, lo: int, hi: int) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
        return tuple(s[lo:hi] for s in self.state), tuple(r[lo:hi] for r in self.reads)

    def _emit(self) -> None:
        """The messages of all slots, a range at a time."""
        emit, params = self.kernels.emit, self._given()
        for lo, hi in self.ranges:
            counter, cuts = np.zeros(1, np.uint64), chunks(hi - lo)
            args = (counter, cuts, np.uint64(lo), *self._window(lo, hi), params, self.message[lo:hi])
            self.team.run(lambda worker, args=args: emit(*args), alone=len(cuts) == 2)  # type: ignore[misc]
            self._drop()

    def _drop(self) -> None:
        if self.ranged:
            self.engine.vectors.drop()

    # ---- one superstep

    def superstep(self) -> dict[str, Any]:
        """Emit, collect, take; returns its figures."""
        began, (read, hits) = time.perf_counter(), self.engine.read_counts()
        self._emit()
        changes = self._in_memory() if self.plan.tier == "memory" else self._from_disk()
        changes += self._isolated()
        if self.program.change:
            self.change = max(changes) if self.program.change_by == MAX else float(sum(changes))
        self.step += 1
        figures: dict[str, Any] = {"seconds": time.perf_counter() - began}
        if self.plan.tier == "disk":
            again, more = self.engine.read_counts()
            figures |= {"bytes_read": again - read, "hits": more - hits}
        return figures | ({"change": self.change} if self.program.change else {})

    def _in_memory(self) -> list[float]:
        params, counter = self._given(), np.zeros(1, np.uint64)
        first, second = self.blocks[0], self.blocks[-1]
        sides = (first.offsets, first.neighbours, first.values, second.offsets, second.neighbours, second.values)
        vectors = (self.message, self.state, self.reads, params)
        return self.team.run(
            lambda worker: self.kernels.rows(counter, self.cuts, *sides, *vectors, self.scratch[worker])
        )

    def _isolated(self) -> list[float]:
        """Seeds without arcs, and the slot that stands for all other vertices without: their rows are empty."""
        found = []
        empty = np.zeros(0, self.program.message)
        for slot in range(self.slots.active, self.slots.count):
            moved = self._take(slot, slot + 1, np.zeros(2, np.uint64), empty)
            last = slot == self.slots.body
            if not last or self.slots.rest:
                found.append(moved * (self.slots.rest if last and self.program.change_by != MAX else 1))
        return found or [0.0]

    def _take(self, lo: int, hi: int, starts: np.ndarray, rows: np.ndarray) -> float:
        (state, reads), params, counter = self._window(lo, hi), self._given(), np.zeros(1, np.uint64)
        cuts = balanced(starts, self.team.threads)
        moved = self.team.run(
            lambda worker: self.kernels.take_rows(counter, cuts, np.uint64(lo), starts, rows, state, reads, params),
            alone=len(cuts) == 2,
        )
        return max(moved) if self.program.change_by == MAX else float(sum(moved))

    # ---- from disk

    def _degrees(self, name: str, lo: int, hi: int) -> np.ndarray:
        return self.store.degree_column(name).read(lo, hi)

    def _windows(self) -> list[Window]:
        """Vertices whose rows are collected together: as many as there is room for."""
        room, item = self.plan.rows_bytes - ROW_VERTEX, np.dtype(self.program.message).itemsize
        widest, active = -(-self.slots.count // self.plan.ranges), self.slots.active
        cuts, spent = [0], 0
        for start in range(0, active, _PIECE):
            end = min(start + _PIECE, active)
            arcs = sum(self._degrees(name, start, end).astype(np.int64) for name in self.plan.sides)
            costs = np.concatenate([[0], np.cumsum(arcs * item + ROW_VERTEX)])
            at = 0
            while True:
                fit = int(np.searchsorted(costs, costs[at] + room - spent, "right")) - 1
                cut = min(fit, cuts[-1] + widest - start)
                if cut >= end - start:
                    spent += int(costs[-1] - costs[at])
                    break
                cuts.append(start + cut)
                at, spent = cut, 0
        cuts = [*cuts, active] if active > cuts[-1] else cuts
        return list(pairwise(cuts))

    def _layout(self, lo: int, hi: int) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
        """Where each row begins, where in it the messages of each side begin, and the room for all of them."""
        count, names = hi - lo, self.plan.sides
        words = self.rows[: 8 * (len(names) * count + 1)].view(np.uint64)
        starts, places = words[: count + 1], [words[:count]]
        degrees = self._degrees(names[0], lo, hi)
        starts[0] = 0
        np.cumsum(degrees, out=starts[1:])
        if len(names) == 2:
            second, later = words[count + 1 :], self._degrees(names[1], lo, hi)
            np.cumsum(later, out=second)
            starts[1:] += second
            np.add(starts[:-1], degrees, out=second)
            places.append(second)
        kind = np.dtype(self.program.message)
        rows = self.rows[words.nbytes : words.nbytes + int(starts[-1]) * kind.itemsize].view(kind)
        return starts, places, rows

    def _from_disk(self) -> list[float]:
        changes = []
        for lo, hi in self.windows:
            starts, places, rows = self._layout(lo, hi)
            for far in self.ranges:
                for side, begin in zip(self.streams, places, strict=True):
                    self._gather(side, (lo, hi), far, begin, rows)
                self._drop()
            changes.append(self._take(lo, hi, starts, rows))
            self._drop()
        return changes

    def _gather(self, side: Streamed, window: Window, far: Window, places: np.ndarray, rows: np.ndarray) -> None:
        (lo, hi), params = window, self._given()
        message, begin, near = self.message[far[0] : far[1]], np.uint64(far[0]), np.uint64(lo)
        records, gather = side.direction.records, self.kernels.gather

        def page(worker: int, counter: Any, cuts: Any, first: Any, offsets: Any, neighbours: Any, columns: Any) -> Any:
            # A page may begin before the window and end after it.
            inside = np.array([max(lo - int(first), 0), min(hi - int(first), int(cuts[1]))], np.uint64)
            gather(
                counter, inside, first, offsets, neighbours, columns, message, begin, near, places, _NONE, params, rows
            )

        def part(worker: int, page: int, first: np.uint64, neighbours: np.ndarray, columns: Any) -> None:
            later = records["first_arc"][page] - records["first_arc"][page - int(records["part"][page])]
            counter, cuts, offsets = (
                np.zeros(1, np.uint64),
                np.array([0, 1], np.uint64),
                np.array([0, len(neighbours)], np.uint32),
            )
            gather(
                counter, cuts, first, offsets, neighbours, columns, message, begin, near, places, later, params, rows
            )

        first_page = np.searchsorted(records["first_vertex"] + records["vertices"], lo, "right")
        end_page = np.searchsorted(records["first_vertex"], hi, "left")
        side.visit(np.arange(first_page, end_page), page, part)


def run(
    engine: Engine,
    program: Row,
    plan: Plan,
    params: dict[str, Any],
    slots: Slots,
    vectors: dict[str, np.ndarray],
    active: np.ndarray | None,
    until: Until | None,
) -> Outcome:
    """Supersteps until `until` says so; one without it."""
    from penstock.engine.engine import Outcome

    held = RowRun(engine, program, plan, params, slots, vectors)
    stats, saver, fields = engine.stats, engine.checkpoint, dict(zip(program.state, held.state, strict=True))
    if saver is not None and (found := saver.begin(program, params, slots.seeds)) is not None:
        scalars = saver.restore(found, fields, held._drop)
        held.step, held.change = scalars["step"], scalars["change"]
    with stats.phase("run"), progress(program.name, total=None, unit="supersteps", settings=engine.settings) as bar:
        while until is None or not until(held.step, held.change):
            stats.iteration(program=program.name, **held.superstep())
            bar.advance(1)
            if saver is not None and saver.due(held.step):
                with stats.phase("checkpoint"):
                    saver.save(fields, {"step": held.step, "change": float(held.change)}, held._drop)
            if until is None:
                break
    return Outcome(fields, slots, held.step, float(held.change))


__all__ = ["RowRun", "run"]
