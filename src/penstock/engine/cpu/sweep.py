"""A sweep on CPU threads: in memory in rounds that need not visit every arc, from disk in one pass over the pages."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.engine.compile import params_class, state_class
from penstock.engine.cpu.parts import chunks, initialise, kernels_of, read_column
from penstock.engine.kernels import slots as each
from penstock.engine.kernels import sweep as templates
from penstock.engine.plan import Plan, arcs_of, number_dtype
from penstock.engine.program import Sweep
from penstock.engine.vectors import Slots
from penstock.memory.topology import Resident, Streamed
from penstock.observe.progress import progress

if TYPE_CHECKING:
    from penstock.engine.engine import Engine, Outcome, Until

_ALL = np.uint64(1 << 62)
"""More arcs than a vertex has."""


class SweepRun:
    """One run: the state, and the rounds over it."""

    def __init__(
        self,
        engine: Engine,
        program: Sweep,
        plan: Plan,
        params: dict[str, Any],
        slots: Slots,
        vectors: dict[str, np.ndarray],
    ) -> None:
        self.engine, self.program, self.plan, self.slots = engine, program, plan, slots
        self.store, self.team, self.params = engine.store, engine.team, dict(params)
        self.kernels = kernels_of(
            program, templates, each, constants={},
            init=program.init, arc=program.arc, vertex=program.vertex, settled=program.settled,
        )  # fmt: skip
        self.step = 0
        self.state = tuple(
            vectors[name] if name in vectors else engine.vectors.make(slots.count, kind, name)
            for name, kind in program.fields().items()
        )
        self.initialised = not set(program.state) - set(vectors)
        wanted = () if self.initialised else program.stored_reads()
        self.reads = tuple(vectors[name] if name in vectors else read_column(engine, slots, name) for name in wanted)
        self.cuts = chunks(slots.active)
        self.once = program.once and not self.store.directed

    def _given(self) -> tuple[Any, ...]:
        return (*self.params.values(), self.slots.vertices, self.step, 0.0)

    def sides(self) -> tuple[list[Resident] | list[Streamed], bool]:
        """The arcs to go over, and whether each can be met from both of its ends."""
        columns = self.program.columns
        if self.plan.tier == "disk":
            return list(self.engine.streamed(self.plan.sides, columns, "resident", once=True).values()), False
        sides = [self.engine.resident(name, columns) for name in self.plan.sides]
        if self.program.settled is None or not self.program.sampled:
            return sides, False
        if not self.store.directed:
            return sides, True
        # Loading the other direction would cost more than settled vertices save; one that is there costs nothing.
        both = replace(self.program, along="both")
        names = arcs_of(self.store, both)
        if names and self.engine._covers(both):
            return [self.engine.resident(name, columns) for name in names], True
        return sides, False

    # ---- rounds

    def initialise(self) -> None:
        """Give all slots their first state, unless it was given."""
        if not self.initialised:
            count = self.slots.count
            initialise(self.kernels, self.engine, self.slots, 0, count, self.state, self.reads, self._given())

    def in_memory(self, sides: list[Resident], either_end: bool) -> None:
        """The sampled arcs, then the rest."""
        program, seen = self.program, np.uint64(self.program.sampled)
        if program.sampled:
            for side in sides:
                self._arcs(side, np.uint64(0), seen, once=False)
            self._vertices()
            if program.between is not None:
                views = state_class(program)(*(field[: self.slots.active] for field in self.state))
                self.params |= program.between(views, params_class(program)(*self._given()))
        for side in sides:
            if either_end:
                self._unsettled_arcs(side, seen)
            else:
                self._arcs(side, seen, _ALL, once=self.once)
        self._vertices()

    def _arcs(self, side: Resident, begin: np.uint64, end: np.uint64, *, once: bool) -> None:
        params, state = self._given(), self.state
        side.visit(
            self.team,
            lambda worker, counter, cuts, first, offsets, neighbours, columns: self.kernels.arcs(
                counter, cuts, first, offsets, neighbours, columns, begin, end, once, state, params
            ),
            cuts=self.cuts if end < _ALL else None,  # a few arcs of each: the work goes by vertices
        )

    def _unsettled_arcs(self, side: Resident, begin: np.uint64) -> None:
        params, state = self._given(), self.state
        side.visit(
            self.team,
            lambda worker, counter, cuts, first, offsets, neighbours, columns: self.kernels.unsettled_arcs(
                counter, cuts, first, offsets, neighbours, columns, begin, state, params
            ),
            cuts=self.cuts,  # few vertices have any left
        )

    def _vertices(self) -> None:
        if self.program.vertex is None:
            return
        params, counter, number = self._given(), np.zeros(1, np.uint64), np.zeros(1, number_dtype(self.store))
        self.team.run(lambda worker: self.kernels.vertices(counter, self.cuts, number, self.state, params))

    def from_disk(self, sides: list[Streamed]) -> None:
        """One pass over the pages. A page of a large vertex is a block like any other."""
        params, state, none = self._given(), self.state, np.uint64(0)
        for side in sides:
            side.visit(
                np.arange(len(side.direction)),
                lambda worker, counter, cuts, first, offsets, neighbours, columns: self.kernels.arcs(
                    counter, cuts, first, offsets, neighbours, columns, none, _ALL, self.once, state, params
                ),
            )
        self._vertices()


def run(
    engine: Engine,
    program: Sweep,
    plan: Plan,
    params: dict[str, Any],
    slots: Slots,
    vectors: dict[str, np.ndarray],
    active: np.ndarray | None,
    until: Until | None,
) -> Outcome:
    """One pass over the arcs."""
    from penstock.engine.engine import Outcome

    held = SweepRun(engine, program, plan, params, slots, vectors)
    sides, either_end = held.sides()
    began = time.perf_counter()
    with engine.stats.phase("run"), progress(program.name, total=None, unit="passes", settings=engine.settings) as bar:
        held.initialise()
        if plan.tier == "memory":
            held.in_memory(sides, either_end)  # type: ignore[arg-type]
        else:
            held.from_disk(sides)  # type: ignore[arg-type]
        bar.advance(1)
    read, hits = engine.read_counts()
    figures: dict[str, Any] = {"seconds": time.perf_counter() - began}
    if plan.tier == "disk":
        figures |= {"bytes_read": read, "hits": hits}
    engine.stats.iteration(program=program.name, **figures)
    return Outcome(dict(zip(program.state, held.state, strict=True)), slots, 1, 0.0)
