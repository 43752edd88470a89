"""Reach: how many vertices each one is reached from, and how far they are, in all and at most.

Returns   reached, far (the sum of the distances) and last (the largest), by slot.
Needs     arcs in both directions to turn around; outgoing ones are enough, unweighted.
Defined   over all u that reach v: their number, sum_u d(u, v), max_u d(u, v); along="in": over all u that v reaches.
Passes    one traversal for each 64 sources: they share the arcs, a bit each.
Ref       Then et al. 2014 (MS-BFS)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from penstock.algorithms.closeness import BATCH, awaited, newcomers, traverse
from penstock.algorithms.job import Job
from penstock.algorithms.shared import Shared
from penstock.engine.monoid import OR
from penstock.engine.program import Combine
from penstock.engine.words import count_ones


def start(v, p):
    return np.uint64(0), np.uint64(0), 0.0, 0.0, np.uint32(0), False


def meet(v, arriving, p):
    """Whole numbers, exact in a float."""
    fresh = arriving & ~v.seen
    count = float(count_ones(fresh))
    last = np.uint32(p.step + 1) if count > 0 else v.last
    return v.seen | fresh, fresh, v.reached + count, v.far + count * (p.step + 1), max(last, v.last), fresh != 0


REACH = Combine(
    name="reach",
    state={"seen": "uint64", "fresh": "uint64", "reached": "float64", "far": "float64", "last": "uint32"},
    params={"sources": BATCH},
    init=start,
    message="uint64",
    emit=newcomers,
    combine=OR,
    wants=awaited,
    update=meet,
    frontier=True,
)


def reach(job: Job, *, along: Literal["out", "in"] = "out") -> Shared:
    """The vectors `reached`, `far` and `last`, over all sources."""
    search = REACH if along == "out" or not job.store.directed else replace(REACH, along="in")
    shared = Shared(job.engine, [search])
    # Sources of similar degree finish in as many levels.
    for at in range(0, job.store.active, BATCH):
        traverse(job, shared, search, np.arange(at, min(at + BATCH, job.store.active)))
    return shared
