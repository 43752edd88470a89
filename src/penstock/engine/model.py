"""The performance model: what a plan will take on a machine whose rates are known.

A superstep fetches a message for each arc, which costs by how hot the messages are (`GatherCurve`), and begins and
updates each vertex. In memory that is all. From disk the pages that are not cached are read as well: at best as fast
as the disk gives them, at worst as fast as the cores that also compute can take them in.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock.config import Settings
from penstock.engine.plan import Plan, number_dtype
from penstock.engine.program import Combine, Common, Pair, Program, Row, Sweep
from penstock.engine.rates import Rates
from penstock.store.reader import Store

TRAVERSAL = {"memory": 0.5, "disk": 2.0}
"""The share of the arcs that a traversal follows, about: in memory pulling stops at the first parent; from disk pages
are read when any of their vertices is wanted, most of them in two levels."""


@dataclass(frozen=True)
class Prediction:
    """Seconds and bytes of a run, before it is run."""

    seconds: float
    phases: dict[str, float]
    """Seconds by phase: start (a new process loads its kernels), load, run."""
    bytes_read: int
    bound: str
    """What takes the time: `disk`, `memory` (fetches that miss the caches) or `compute`."""
    passes: int
    """Supersteps, or passes over the arcs."""
    estimate: bool = False
    """Whether how much is visited depends on the graph in a way that only a run can tell."""
    parts: dict[str, float] = field(default_factory=dict)
    """Seconds of one pass, each part as if it were alone: reading, fetching, computing, moving state."""

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def predict(
    plan: Plan,
    program: Program,
    store: Store,
    rates: Rates,
    settings: Settings,
    passes: int,
    *,
    loaded: bool = False,
    warm: bool = False,
) -> Prediction:
    """What so many passes of the program will take. `loaded`: the arcs are in memory already. `warm`: this process
    has run the program before."""
    pages = page_bytes(store, plan, program)
    fetch = fetches(store, program, plan, rates)
    compute, estimate = _compute(plan, program, store, rates)
    if _skims(program, store, plan):
        fetch = 0.0  # the few fetches of a vertex are in its rate
    traverses = isinstance(program, Combine) and program.frontier
    share = 1.0
    if traverses:
        share, passes, estimate = TRAVERSAL[plan.tier], 1, True
        fetch, compute = fetch * min(1.0, share), compute * min(1.0, share)
    phases = {} if warm else {"start": rates.start}
    if plan.tier == "memory":
        read = 0 if loaded else pages
        phases["load"] = read / rates.load
        phases["run"] = passes * (fetch + compute)
        parts = {"fetch": fetch, "compute": compute}
    else:
        inside = fetch + compute + len_pages(store, plan) * plan.ranges * rates.page
        state = plan.state_bytes * plan.ranges * rates.part if plan.ranges > 1 else 0.0
        state += plan.edge_state_bytes * plan.ranges * rates.part
        first = int(pages * plan.ranges * share)
        # What the cache holds after the first pass is read no more.
        later = max(0, pages - plan.cache_bytes) * plan.ranges
        rest = max(0, passes - 1)
        read = first + rest * later
        phases["run"] = _pass(first, inside, rates) + rest * _pass(later, inside, rates) + passes * state
        parts = {"read": (later if rest else first) / rates.disk, "fetch": fetch, "compute": compute, "state": state}
    near = sum(store.direction(name).arcs for name in plan.sides) * rates.gather(8).nearest
    return Prediction(
        seconds=sum(phases.values()),
        phases=phases,
        bytes_read=int(read),
        bound=_bound(phases, parts, misses=max(0.0, fetch - near)),
        passes=passes,
        estimate=estimate,
        parts=parts,
    )


def _pass(read: int, inside: float, rates: Rates) -> float:
    """A pass over pages: the disk, or the cores, which reading takes a share of."""
    return max(read / rates.disk, inside + read * rates.stream)


def _compute(plan: Plan, program: Program, store: Store, rates: Rates) -> tuple[float, bool]:
    """Seconds of a pass besides fetching, and whether that is an estimate only."""
    arcs = sum(store.direction(name).arcs for name in plan.sides)
    vertices = store.active * (rates.vertex + rates.emit)
    columns = arcs * sum(store.direction("out").column_dtype(name).itemsize for name in program.columns) / rates.memory
    if isinstance(program, Sweep):
        mean = fetches(store, program, plan, rates) / max(1, arcs)
        if _skims(program, store, plan):
            return store.active * (rates.skim + rates.skim_fetches * mean), False
        return arcs * rates.sweep + store.active * rates.sweep_fetches * mean + columns, False
    if isinstance(program, Row):
        return arcs * rates.row + vertices + columns, False
    if isinstance(program, Pair):
        return _wedges(store) * rates.pair, True
    if isinstance(program, Common):
        return _shorter(store) * rates.pair, True
    # Each range visits the arcs once more, to see which of them are its own.
    again = (plan.ranges - 1) * arcs * rates.gather(8).nearest
    again += 2 * plan.edge_state_bytes / rates.memory  # read and written
    lanes = getattr(program, "lanes", 1)
    return (vertices * lanes + columns + again + arcs * (lanes - 1) * rates.gather(8).nearest / 2), lanes > 1


def fetches(store: Store, program: Program, plan: Plan, rates: Rates) -> float:
    """Seconds to fetch what lies at the other ends of all arcs of a plan."""
    return sum(fetch_seconds(store, program, name, rates) for name in plan.sides)


def _skims(program: Program, store: Store, plan: Plan) -> bool:
    """Whether a sweep leaves most arcs out: where each can be met from both ends, in memory."""
    return isinstance(program, Sweep) and plan.tier == "memory" and program.sampled > 0 and not store.directed


def fetch_seconds(store: Store, program: Program, side: str, rates: Rates) -> float:
    """Seconds to fetch what lies at the other end of every arc of a direction, once."""
    width = fetched_bytes(program, store)
    if not width:
        return store.direction(side).arcs * rates.gather(4).nearest
    arcs, vertices = heat(store, side)
    return rates.gather(int(width)).seconds(arcs, vertices * width)


def fetched_bytes(program: Program, store: Store) -> float:
    """Bytes per vertex of the vector that arcs fetch from."""
    if isinstance(program, Combine):
        if program.numbered:
            return 1 / 8 if program.frontier else 0.0  # one bit: whether it is active
        return np.dtype(program.message).itemsize * program.lanes
    if isinstance(program, Row):
        return np.dtype(program.message).itemsize
    if isinstance(program, Sweep):
        return sum(kind.itemsize for kind in program.fields().values())
    return number_dtype(store).itemsize


def heat(store: Store, side: str) -> tuple[np.ndarray, np.ndarray]:
    """How often each vertex is at the other end of an arc, by classes: (arcs, vertices) of each.

    Over the in-arcs a vertex is fetched as often as it has out-arcs, which the index of that direction knows page by
    page; in degree order the vertices of a page are alike. Where only one direction is stored, it has to do.
    """
    other = {"in": "out", "out": "in"}[side]
    name = other if store.has_direction(other) else side
    records = store.direction(name).records
    if not len(records):
        return np.zeros(0), np.zeros(0)
    first = records["first_vertex"]
    begins = np.flatnonzero(np.concatenate([[True], first[1:] != first[:-1]]))
    arcs = np.add.reduceat(records["arcs"], begins).astype(np.float64)
    return arcs, records["vertices"][begins].astype(np.float64)


def _wedges(store: Store) -> float:
    """Steps of intersecting the rows of both ends of each arc, arcs turned towards higher degrees: at most the square
    root of twice the arcs each, and on average far fewer."""
    records = store.direction("out").records
    bound = np.sqrt(2.0 * store.direction("out").arcs)
    degrees = records["arcs"] / np.maximum(records["vertices"], 1)
    return float((records["arcs"] * np.minimum(degrees, bound)).sum())


def _shorter(store: Store) -> float:
    """Entries of the shorter of the two lists of each edge, if neighbours were drawn by their degrees: the most that
    is looked at."""
    arcs, vertices = heat(store, "out")
    degrees = arcs / np.maximum(vertices, 1)
    order = np.argsort(degrees)
    arcs, degrees = arcs[order], degrees[order]
    below, above = np.cumsum(arcs * degrees), arcs.sum() - np.cumsum(arcs)
    return float((arcs * (below + degrees * above)).sum() / max(1.0, arcs.sum()) / (1 if store.directed else 2))


def page_bytes(store: Store, plan: Plan, program: Program) -> int:
    """Bytes on disk of the pages and columns that a pass reads."""
    total = 0
    for name in plan.sides:
        direction = store.direction(name)
        total += len(direction) * store.page_size
        total += sum(int(direction.column_records[column]["bytes"].sum()) for column in program.columns)
    return total


def len_pages(store: Store, plan: Plan) -> int:
    return sum(len(store.direction(name)) for name in plan.sides)


def _bound(phases: dict[str, float], parts: dict[str, float], misses: float) -> str:
    """What the most time goes to."""
    inside = parts["fetch"] + parts["compute"]
    if phases.get("load", 0.0) > phases["run"] or parts.get("read", 0.0) + parts.get("state", 0.0) > inside:
        return "disk"
    return "memory" if misses > inside / 2 else "compute"


__all__ = ["TRAVERSAL", "Prediction", "fetch_seconds", "fetched_bytes", "heat", "page_bytes", "predict"]
