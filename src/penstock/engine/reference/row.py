"""Supersteps of a row program: each vertex is given all that arrives at it in one array."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.engine.compile import edge_class
from penstock.engine.plan import Plan
from penstock.engine.program import Row
from penstock.engine.reference.arcs import Arcs, arriving, joined
from penstock.engine.reference.state import State, cast, fold, params_of, standing_for
from penstock.engine.vectors import Slots
from penstock.store.reader import Store

if TYPE_CHECKING:
    from penstock.engine.engine import Engine, Outcome, Until


def in_order(store: Store, program: Row) -> Arcs:
    """The arcs by receiver, those over in-arcs before those over out-arcs."""
    both = store.directed and program.along == "both"
    parts = [arriving(store, along, program.columns) for along in (("out", "in") if both else (program.along,))]
    arcs = joined(parts)
    order = np.argsort(arcs.near, kind="stable")
    return Arcs(arcs.near[order], arcs.far[order], tuple(column[order] for column in arcs.columns))


class RowRun:
    """One run: the vertices, the arcs, and supersteps."""

    def __init__(
        self, engine: Engine, program: Row, params: dict[str, Any], slots: Slots, vectors: dict[str, np.ndarray]
    ) -> None:
        self.program, self.values, self.slots = program, params, slots
        self.state = State(engine, program, slots, vectors)
        self.arcs = in_order(engine.store, program)
        self.offsets = self.arcs.offsets(slots.count)
        self.step, self.change = 0, np.inf
        if set(program.state) - set(vectors):
            self.state.initialise(self.params())

    def params(self) -> Any:
        return params_of(self.program, self.values, self.slots, self.step)

    def superstep(self) -> None:
        """Every vertex emits, then every vertex takes its row in."""
        program, slots, p = self.program, self.slots, self.params()
        emit, row, kind = program.emit, program.row, np.dtype(program.message)
        assert emit is not None
        assert row is not None
        sent = [cast(emit(self.state.vertex(slot), p), kind) for slot in range(slots.count)]
        moved = 0.0
        for slot in range(slots.count):
            old = self.state.vertex(slot)
            new = row(old, self.arrived(slot, sent, p), p)
            self.state.take(slot, 0, new)
            if program.change:
                moved = fold(program.change_by, moved, program.change(old, new, p), standing_for(slots, slot))
        self.change = moved if program.change else np.inf
        self.step += 1

    def arrived(self, slot: int, sent: list[Any], p: Any) -> np.ndarray:
        """What arrives at one vertex."""
        edge, made = self.program.edge, edge_class(self.program)
        found = np.empty(self.offsets[slot + 1] - self.offsets[slot], self.program.message)
        for place, arc in enumerate(range(self.offsets[slot], self.offsets[slot + 1])):
            message = sent[int(self.arcs.far[arc])]
            if edge is not None:
                message = edge(message, made(*(column[arc] for column in self.arcs.columns)), p)
            found[place] = cast(message, found.dtype)
        return found


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

    with np.errstate(all="ignore"), engine.stats.phase("run"):
        held = RowRun(engine, program, params, slots, vectors)
        while until is None or not until(held.step, held.change):
            began = time.perf_counter()
            held.superstep()
            changed = {"change": held.change} if program.change else {}
            engine.stats.iteration(program=program.name, seconds=time.perf_counter() - began, **changed)
            if until is None:
                break
    return Outcome(held.state.fields, slots, held.step, float(held.change))
