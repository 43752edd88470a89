"""Breadth-first search: how many arcs away each vertex is, and over which neighbour it was reached.

Returns   level, an integer per vertex, and parent, a vertex; null where no source reaches. A source is its own parent.
Needs     arcs in both directions to turn around; one is enough. Arcs are followed forwards.
Defined   parent(v) is the vertex of the smallest internal number among the neighbours of the level before.
Passes    each level reads the pages of its frontier (push) or of the vertices not yet reached (pull).
Ref       Beamer et al. 2012; Graph500
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from penstock.algorithms.job import Job, how_many
from penstock.engine.explain import Stage
from penstock.engine.monoid import FIRST
from penstock.engine.plan import number_dtype
from penstock.engine.program import NUMBER, Combine, iterations
from penstock.options import whole
from penstock.result import Result
from penstock.store.reader import Store

FAR = np.uint32(0xFFFFFFFF)
"""The level of a vertex that was not reached."""


def init32(v, p):
    if v.seed > 0:
        return np.uint32(v.number), np.uint32(0), True
    return np.uint32(0xFFFFFFFF), FAR, False


def init64(v, p):
    if v.seed > 0:
        return np.uint64(v.number), np.uint32(0), True
    return np.uint64(0xFFFFFFFFFFFFFFFF), FAR, False


def wants(v, p):
    return v.level == FAR


def update(v, first, p):
    return first, np.uint32(p.step + 1), True


def program(number: np.dtype) -> Combine:
    """A level per superstep; the message is who sends it."""
    return Combine(
        name="bfs",
        state={"parent": number, "level": "uint32"},
        reads=("seed", "number"),
        init=init32 if number == np.uint32 else init64,
        message=NUMBER,
        combine=FIRST,
        wants=wants,
        update=update,
        frontier=True,
    )


def bfs(
    job: Job,
    *,
    source: Annotated[Any, "Where to start: an id, or several."],
    max_depth: Annotated[int | None, "Go no further than so many arcs."] = None,
) -> Result:
    """Levels and parents of a breadth-first search."""
    until = None if max_depth is None else iterations(whole("max_depth", max_depth, 0))
    outcome = job.engine.run(program(number_dtype(job.store)), seeds=job.seeds(source), until=until)
    level, parent = outcome.state["level"], outcome.state["parent"]
    return job.result(
        outcome,
        {"level": level, "parent": parent},
        nulls={"level": FAR, "parent": np.iinfo(parent.dtype).max},
        references=("parent",),
        types={"level": "int64"},
        levels=outcome.steps,
    )


def stages(store: Store, *, source: Any = None, **options: Any) -> list[Stage]:
    """What a run would do."""
    return [Stage(program(number_dtype(store)), note="in all they go over the arcs about once", seeds=how_many(source))]
