"""Neighbourhood: who is within so many arcs of the sources.

Returns   level, an integer, for the vertices that are reached; the others are no rows.
Needs     what a breadth-first search needs; arcs are followed forwards.
Passes    each level reads the pages of its frontier, or of the vertices not yet reached.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from penstock.algorithms.bfs import FAR, program
from penstock.algorithms.job import Job, how_many
from penstock.engine.engine import Outcome
from penstock.engine.explain import Stage
from penstock.engine.plan import number_dtype
from penstock.engine.program import iterations
from penstock.errors import UsageError
from penstock.result import Result
from penstock.store.reader import Store


def check(hops: int) -> None:
    """Refuse what makes no sense."""
    if hops < 0:
        raise UsageError(f"hops must not be negative, not {hops}")


def search(job: Job, source: Any, hops: int) -> Outcome:
    """A search of so many levels."""
    return job.engine.run(program(number_dtype(job.store)), seeds=job.seeds(source), until=iterations(hops))


def neighborhood(
    job: Job,
    *,
    source: Annotated[Any, "Whose neighbourhood: an id, or several."],
    hops: Annotated[int, "How many arcs away."] = 1,
) -> Result:
    """Who is within so many arcs of the sources."""
    check(hops)
    outcome = search(job, source, hops)
    slots, level = outcome.slots, outcome.state["level"]
    reached = np.flatnonzero(level[: slots.active] != FAR).astype(np.uint64)
    reached = np.concatenate([reached, np.array(slots.alone, np.uint64)])
    return job.result(
        outcome, {"level": level}, nulls={"level": FAR}, types={"level": "int64"}, subset=reached, reached=len(reached)
    )


def stages(store: Store, *, source: Any = None, hops: int = 1) -> list[Stage]:
    """What a run would do."""
    return [Stage(program(number_dtype(store)), note=f"{hops} at most", seeds=how_many(source))]
