"""Triangles: how many a vertex is a corner of.

Returns   triangles, an integer per vertex; stats["triangles"], how many there are. With per_vertex=False only that.
Needs     any graph; it is taken as a simple, undirected one: directions, loops and parallel edges are dropped.
Defined   t(v) = number of pairs u, w of neighbours of v that are neighbours themselves
Passes    two over the arcs, to make for each vertex the list of its neighbours of higher degree. Where the lists
          exceed the budget they are written to a temporary file, and read once for each range of them that is held.
Ref       Latapy 2008; Schank and Wagner 2005 (forward)
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from penstock.algorithms.job import Job
from penstock.engine.explain import Stage
from penstock.engine.program import Pair
from penstock.result import Result
from penstock.store.reader import Store


def init(v, p):
    return 0


def update(v, total, p):
    return total


def program(per_vertex: bool = True) -> Pair:
    """Each triangle counts 1 at each of its corners."""
    return Pair(name="triangles", state={"triangles": "uint64"}, init=init, update=update, per_vertex=per_vertex)


def triangles(
    job: Job,
    *,
    per_vertex: Annotated[bool, "Whether to count them at each vertex, or only all together, which is faster."] = True,
) -> Result:
    """Triangles through each vertex, and how many there are."""
    outcome = job.engine.run(program(per_vertex))
    if not per_vertex:
        empty = {"triangles": np.zeros(0, np.uint64)}
        return Result(
            job.store.ids, empty, {"triangles": 0}, job.figures(**outcome.totals), subset=np.zeros(0, np.uint64)
        )
    return job.result(outcome, outcome.state, **outcome.totals)


def stages(store: Store, *, per_vertex: bool = True) -> list[Stage]:
    """What a run would do."""
    return [Stage(program(per_vertex), 1)]
