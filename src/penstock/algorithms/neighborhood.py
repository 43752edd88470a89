"""Neighbourhood: who is within so many arcs of the sources.

Returns   level, an integer, for the vertices that are reached; the others are no rows.
Needs     what a breadth-first search needs; arcs are followed forwards.
Passes    each level reads the pages of its frontier, or of the vertices not yet reached.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from penstock.algorithms.bfs import FAR, program
from penstock.algorithms.job import Job
from penstock.engine.engine import Outcome
from penstock.engine.explain import Stage
from penstock.engine.plan import number_dtype
from penstock.engine.program import iterations
from penstock.errors import UsageError
from penstock.result import Result
from penstock.store.reader import Store


def reach(job: Job, source: Any, hops: int) -> tuple[Outcome, np.ndarray]:
    """A search of so many levels, and the internal numbers of the vertices it reached."""
    if hops < 0:
        raise UsageError(f"hops must not be negative, not {hops}")
    seeds = job.seeds(source)
    outcome = job.engine.run(program(number_dtype(job.store)), seeds=seeds, until=iterations(hops))
    slots, level = outcome.slots, outcome.state["level"]
    reached = np.flatnonzero(level[: slots.active] != FAR).astype(np.uint64)
    return outcome, np.concatenate([reached, np.array(slots.alone, np.uint64)])


def neighborhood(
    job: Job,
    *,
    source: Annotated[Any, "Whose neighbourhood: an id, or several."],
    hops: Annotated[int, "How many arcs away."] = 1,
) -> Result:
    """Who is within so many arcs of the sources."""
    outcome, reached = reach(job, source, hops)
    columns = {"level": outcome.state["level"]}
    return job.result(
        outcome, columns, nulls={"level": FAR}, types={"level": "int64"}, subset=reached, reached=len(reached)
    )


def stages(store: Store, *, hops: int = 1, **options: Any) -> list[Stage]:
    """What a run would do."""
    return [Stage(program(number_dtype(store)), note=f"{hops} at most")]
