"""Induced subgraph: the edges both of whose ends are in a set of vertices.

Returns   edges: source, target and the edge columns; an undirected edge once, its smaller id first.
Needs     the outgoing arcs.
Passes    the pages that hold vertices of the set, once.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from penstock.algorithms.job import Job
from penstock.algorithms.subgraph import bitmap, edge_stage, edges_between
from penstock.edges import Edges
from penstock.engine.explain import Stage
from penstock.store.reader import Store


def induced(job: Job, *, vertices: Annotated[Any, "The set: ids."]) -> Edges:
    """The edges both of whose ends are in a set of vertices."""
    job.require(stages(job.store))
    numbers = np.array(job.numbers(vertices), np.uint64)
    inside = bitmap(job.store.vertices, numbers)
    return edges_between(job, inside, inside, both_ways=False, members=len(numbers))


def stages(store: Store, **options: Any) -> list[Stage]:
    """What a run would do."""
    return [edge_stage(store, "induced", both_ways=False)]
