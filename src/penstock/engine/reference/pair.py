"""A pair program, the obvious way: the neighbours of each vertex as a set, and every triangle once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.engine.plan import Plan, number_dtype
from penstock.engine.program import Pair
from penstock.engine.reference.arcs import stored
from penstock.engine.reference.state import State, cast, params_of
from penstock.engine.vectors import Slots

if TYPE_CHECKING:
    from penstock.engine.engine import Engine, Outcome, Until


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
    """Each triangle adds to its corners; then each vertex takes its total in."""
    from penstock.engine.engine import Outcome

    arcs = stored(engine.store.direction("out"), ())
    ways = {(u, v) for u, v in zip(arcs.near.tolist(), arcs.far.tolist(), strict=True) if u != v}
    around: list[set[int]] = [set() for _ in range(slots.count)]
    for u, v in ways:
        around[u].add(v)
        around[v].add(u)
    kind, p, found = np.dtype(program.total), params_of(program, params, slots), 0
    totals = np.zeros(slots.count, kind)
    with np.errstate(all="ignore"), engine.stats.phase("run"):
        for u in range(slots.active):
            for v in (v for v in around[u] if v < u):
                for w in (w for w in around[u] & around[v] if w < v):
                    found += 1
                    for one, other, corner in ((v, w, u), (u, w, v), (u, v, w)):
                        arcs_between = np.uint64(((one, other) in ways) + ((other, one) in ways))
                        totals[corner] += cast(program.corner(arcs_between, p) if program.corner else 1, kind)
        if not program.per_vertex:
            return Outcome({}, slots, 1, 0.0, totals={"triangles": found})
        degrees = np.array([len(near) for near in around], number_dtype(engine.store))
        state = State(engine, program, slots, {"neighbours": degrees} if "neighbours" in program.reads else {})
        state.initialise(p)
        for slot in range(slots.count):
            state.take(slot, 0, program.update(state.vertex(slot), totals[slot], p))  # type: ignore[misc]
    return Outcome(state.fields, slots, 1, 0.0, totals={"triangles": found})
