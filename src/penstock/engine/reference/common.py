"""A common program: for each edge the neighbours that its ends have in common."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.engine.compile import state_class
from penstock.engine.plan import Plan, number_dtype
from penstock.engine.program import Common
from penstock.engine.reference.pair import simple
from penstock.engine.reference.state import State, params_of
from penstock.engine.vectors import Slots

if TYPE_CHECKING:
    from penstock.engine.engine import Engine, Outcome, Until


def run(
    engine: Engine,
    program: Common,
    plan: Plan,
    params: dict[str, Any],
    slots: Slots,
    vectors: dict[str, np.ndarray],
    active: np.ndarray | None,
    until: Until | None,
) -> Outcome:
    """Passes until `until` says so; one without it."""
    from penstock.engine.engine import Outcome

    least, edge, number = program.least, program.edge, number_dtype(engine.store).type
    assert least is not None
    assert edge is not None
    with np.errstate(all="ignore"), engine.stats.phase("run"):
        _, around = simple(engine.store)
        degrees = np.zeros(slots.count, number_dtype(engine.store))
        for vertex, others in around.items():
            degrees[vertex] = len(others)
        held = State(engine, program, slots, {"neighbours": degrees, **vectors})
        if set(program.state) - set(vectors):
            held.initialise(params_of(program, params, slots))
        state, step = state_class(program)(*held.fields.values()), 0
        edges = [(u, v) for u in around for v in around[u] if (-len(around[u]), u) < (-len(around[v]), v)]
        while until is None or not until(step, np.inf):
            began, p = time.perf_counter(), params_of(program, params, slots, step)
            for u, v in edges:
                if len(around[u] & around[v]) >= least(number(u), number(v), state, p):
                    edge(number(u), number(v), state, p)
            for vertex in range(slots.active) if program.vertex is not None else ():
                program.vertex(number(vertex), state, p)  # type: ignore[misc]
            step += 1
            engine.stats.iteration(program=program.name, seconds=time.perf_counter() - began)
            if until is None:
                break
    return Outcome(held.fields, slots, step, 0.0)
