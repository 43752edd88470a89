"""HITS: hubs point at good authorities, authorities are pointed at by good hubs.

Returns   hub and authority, floats per vertex, each of sum 1.
Needs     both directions of a directed graph.
Defined   a(v) = sum_{u->v} h(u), h(v) = sum_{v->w} a(w), each divided by its sum; from h = 1/n, until the hubs change
          by less than tol in total. A graph without arcs keeps 1/n for both.
Passes    two over the arcs per iteration.
Ref       Kleinberg 1999; networkx.hits
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from penstock.algorithms.job import Job
from penstock.algorithms.pagerank import check
from penstock.algorithms.shared import Shared, stages_of
from penstock.engine.explain import Stage
from penstock.engine.monoid import SUM
from penstock.engine.program import Combine, Each, iterations
from penstock.result import Result
from penstock.store.reader import Store

FIELDS = {"hub": "float64", "authority": "float64", "before": "float64"}


def init(v, p):
    return 1.0 / p.vertices, 1.0 / p.vertices, 0.0


def emit_hub(v, p):
    return v.hub * p.scale


def take_authority(v, total, p):
    return v.hub * p.scale, total, v.before


def authority_sum(v, new, p):
    return new[1]


def emit_authority(v, p):
    return v.authority * p.scale


def take_hub(v, total, p):
    return total, v.authority * p.scale, v.hub


def hub_sum(v, new, p):
    return new[0]


AUTHORITIES = Combine(
    name="hits authorities", state=FIELDS, params={"scale": 1.0}, init=init, message="float64", emit=emit_hub,
    combine=SUM, update=take_authority, change=authority_sum,
)  # fmt: skip
HUBS = Combine(
    name="hits hubs", state=FIELDS, params={"scale": 1.0}, along="in", init=init, message="float64",
    emit=emit_authority, combine=SUM, update=take_hub, change=hub_sum,
)  # fmt: skip


def moved(v, p):
    return abs(v.hub * p.scale - v.before)


MOVED = Each(
    name="hits moved", state={"hub": "float64", "before": "float64"}, params={"scale": 1.0}, measure=moved,
    measured="float64",
)  # fmt: skip
"""How far the hubs are from those before."""


def hits(
    job: Job,
    *,
    tol: Annotated[float, "Stop when all hubs together change by less."] = 1e-8,
    max_iter: Annotated[int, "Stop after so many iterations."] = 100,
) -> Result:
    """Hubs and authorities."""
    check(0, tol, max_iter)
    engine, shared = job.engine, Shared(job.engine, [AUTHORITIES, HUBS])
    slots, state = shared.slots, shared.of(HUBS)
    for name in ("hub", "authority"):
        shared.fill(name, 1 / max(job.store.vertices, 1))
    done, change, scale = 0, np.inf, 1.0
    while job.store.active and done < max_iter and change >= tol:
        for program in (AUTHORITIES, HUBS):
            outcome = engine.run(program, params={"scale": scale}, vectors=state, slots=slots, until=iterations(1))
            scale = 1 / outcome.change  # what was emitted last is divided by its sum when it is used next
        change = distance(shared, scale)
        done += 1
    shared.scale("hub", scale)
    columns = {name: shared[name] for name in ("hub", "authority")}
    return job.result(slots, columns, iterations=done, residual=float(change), converged=bool(change < tol))


def distance(shared: Shared, scale: float) -> float:
    """The L1 distance of the scaled hubs from those before."""
    slots, total = shared.slots, float(shared.each(MOVED, scale=scale).total)
    hub, before = (float(shared.value(name, slots.body)) for name in ("hub", "before"))
    return total + slots.rest * abs(hub * scale - before)


def stages(store: Store, *, max_iter: int = 100, tol: float = 1e-8) -> list[Stage]:
    """What a run would do: the programs take turns."""
    note = "at most, stops at the tolerance"
    return stages_of([Stage(program, max_iter, note) for program in (AUTHORITIES, HUBS)])
