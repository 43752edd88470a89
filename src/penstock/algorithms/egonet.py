"""Egonet: the edges among the vertices within so many arcs of the sources.

Returns   edges: source, target and the edge columns; an undirected edge once, its smaller id first.
Needs     what a breadth-first search needs.
Passes    those of the search; then the pages of the vertices that were reached.
"""

from __future__ import annotations

from typing import Annotated, Any

from penstock.algorithms.job import Job
from penstock.algorithms.neighborhood import reach
from penstock.algorithms.subgraph import bitmap, edges_between
from penstock.edges import Edges


def egonet(
    job: Job,
    *,
    source: Annotated[Any, "Around whom: an id, or several."],
    hops: Annotated[int, "How many arcs away."] = 1,
) -> Edges:
    """The edges among the vertices within so many arcs of the sources."""
    _, reached = reach(job, source, hops)
    inside = bitmap(job.store.vertices, reached)
    return edges_between(job, inside, inside, both_ways=False, reached=len(reached))
