"""A sweep: every arc once, in the order they are stored, then every vertex. Nothing is sampled and nothing left out,
which are ways to the same result."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.engine.compile import edge_class, state_class
from penstock.engine.plan import Plan, number_dtype
from penstock.engine.program import Sweep
from penstock.engine.reference.arcs import stored
from penstock.engine.reference.state import State, params_of
from penstock.engine.vectors import Slots

if TYPE_CHECKING:
    from penstock.engine.engine import Engine, Outcome, Until


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
    """One pass over the arcs and the vertices."""
    from penstock.engine.engine import Outcome

    store, arc, made = engine.store, program.arc, edge_class(program)
    assert arc is not None
    with np.errstate(all="ignore"), engine.stats.phase("run"):
        began, p = time.perf_counter(), params_of(program, params, slots)
        held = State(engine, program, slots, vectors)
        if set(program.state) - set(vectors):
            held.initialise(p)
        state = state_class(program)(*held.fields.values())
        for name in plan.sides:
            arcs = stored(store.direction(name), program.columns)
            for a in range(len(arcs.near)):
                u, v = arcs.near[a], arcs.far[a]
                arc(u, v, made(*(column[a] for column in arcs.columns)), state, p)
        if program.vertex is not None:
            number = number_dtype(store).type
            for vertex in range(slots.active):
                program.vertex(number(vertex), state, p)
        engine.stats.iteration(program=program.name, seconds=time.perf_counter() - began)
    return Outcome(held.fields, slots, 1, 0.0)
