"""A pair program: for each pair of neighbours, the neighbours that they have in common."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.engine.plan import Plan, number_dtype
from penstock.engine.program import Pair
from penstock.engine.reference.arcs import stored
from penstock.engine.reference.state import State, cast, params_of
from penstock.engine.vectors import Slots
from penstock.store.reader import Store

if TYPE_CHECKING:
    from penstock.engine.engine import Engine, Outcome, Until


def simple(store: Store) -> tuple[set[tuple[int, int]], dict[int, set[int]]]:
    """(the arcs, each once and without loops; the neighbours of each vertex, whichever way the arcs go)."""
    found = stored(store.direction("out"), ())
    arcs = {(u, v) for u, v in zip(found.near.tolist(), found.far.tolist(), strict=True) if u != v}
    around: dict[int, set[int]] = defaultdict(set)
    for u, v in arcs:
        around[u].add(v)
        around[v].add(u)
    return arcs, around


def triangles(around: dict[int, set[int]]) -> list[tuple[int, int, int]]:
    """Each triangle once, its corners ascending."""
    edges = sorted((u, v) for u in around for v in around[u] if u < v)
    return [(u, v, w) for u, v in edges for w in sorted(around[u] & around[v]) if w > v]


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

    with np.errstate(all="ignore"), engine.stats.phase("run"):
        began, p = time.perf_counter(), params_of(program, params, slots)
        arcs, around = simple(engine.store)
        found = triangles(around)
        engine.stats.iteration(program=program.name, triangles=len(found), seconds=time.perf_counter() - began)
        counts = {"triangles": len(found)}
        if not program.per_vertex:
            return Outcome({}, slots, 1, 0.0, totals=counts)
        kind = np.dtype(program.total)
        totals = np.zeros(slots.count, kind)
        for u, v, w in found:
            for corner, a, b in ((u, v, w), (v, w, u), (w, u, v)):
                between = np.uint64(((a, b) in arcs) + ((b, a) in arcs))
                totals[corner] += cast(program.corner(between, p) if program.corner else 1, kind)
        degrees = np.zeros(slots.count, number_dtype(engine.store))
        for vertex, others in around.items():
            degrees[vertex] = len(others)
        state = State(engine, program, slots, {**vectors, "neighbours": degrees})
        state.initialise(p)
        for slot in range(slots.count):
            state.take(slot, 0, program.update(state.vertex(slot), totals[slot], p))  # type: ignore[misc]
    return Outcome(state.fields, slots, 1, 0.0, totals=counts)
