"""Core numbers: how dense the densest part of the graph is that a vertex belongs to.

Returns   core, an integer per vertex.
Needs     arcs; of a directed graph both directions, as every arc counts at both of its ends.
Defined   the k-core is what is left when vertices of degree below k are removed until there are none; core(v) is the
          largest k whose core has v. Parallel arcs count each, loops do not.
Passes    one to count the degrees without loops; then each vertex's arcs are visited once, when it is removed.
Ref       Seidman 1983; Batagelj and Zaversnik 2003; Dhulipala et al. 2017
"""

from __future__ import annotations

import numpy as np

from penstock.algorithms.job import Job
from penstock.algorithms.shared import Shared, stages_of
from penstock.engine.explain import Stage
from penstock.engine.monoid import MIN, SUM
from penstock.engine.program import Combine, Each, iterations
from penstock.result import Result
from penstock.store.reader import Store

LEFT = np.uint32(0xFFFFFFFF)
"""The core of a vertex that is still there."""


def nothing(v, p):
    return np.uint32(0)


def one(v, p):
    return np.uint32(1)


def count(v, total, p):
    return total


DEGREES = Combine(
    name="kcore degrees", state={"degree": "uint32"}, along="both", init=nothing, message="uint32", emit=one,
    combine=SUM, update=count, loops=False,
)  # fmt: skip


def start(v, p):
    return np.uint32(0), LEFT, False


def stays(v, p):
    return v.core == LEFT


def lower(v, removed, p):
    degree = v.degree - min(removed, v.degree)
    if degree < p.k:
        return degree, np.uint32(p.k - 1), True
    return degree, LEFT, False


PEEL = Combine(
    name="kcore peel", state={"degree": "uint32", "core": "uint32"}, params={"k": 1}, along="both", init=start,
    message="uint32", emit=one, combine=SUM, wants=stays, update=lower, frontier=True, loops=False,
)  # fmt: skip


def degree_of(v, p):
    return v.degree


FEWEST = Each(
    name="kcore fewest", state={"degree": "uint32", "core": "uint32"}, chosen=stays, measure=degree_of, fold=MIN,
)  # fmt: skip
"""The least degree of those who are still there."""


def goes(v, p):
    return v.core == LEFT and v.degree < p.k


def go(v, p):
    return v.degree, np.uint32(p.k - 1)


REMOVE = Each(
    name="kcore remove", state={"degree": "uint32", "core": "uint32"}, params={"k": 1}, chosen=goes, update=go,
)  # fmt: skip


def kcore(job: Job) -> Result:
    """Core numbers of the vertices."""
    engine, shared = job.engine, Shared(job.engine, [DEGREES, PEEL])
    slots = shared.slots
    # A vertex may not be in a page of its own in one of the directions of `along`, but it has a slot.
    engine.run(DEGREES, vectors=shared.of(DEGREES), slots=slots, until=iterations(1))
    shared.fill("core", LEFT)
    shared.put("core", slots.body, 0)
    cascades = 0
    k = 1
    while (left := shared.each(FEWEST)).count:
        # No vertex has fewer than this: all cores between are empty.
        k = max(k, int(left.total) + 1)
        active = shared.members(REMOVE, k=k)
        outcome = engine.run(PEEL, params={"k": k}, vectors=shared.of(PEEL), active=active, slots=slots)
        cascades += outcome.steps
    largest = k - 1 if slots.active else 0
    return job.result(slots, {"core": shared["core"]}, types={"core": "int64"}, largest=largest, cascades=cascades)


def stages(store: Store) -> list[Stage]:
    """What a run would do."""
    return stages_of([Stage(DEGREES, 1), Stage(PEEL, note="in all they go over the arcs about once")])
