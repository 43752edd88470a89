"""Egonet: the edges among the vertices within so many arcs of the sources.

Returns   edges: source, target and the edge columns; an undirected edge once, its smaller id first.
Needs     what a breadth-first search needs.
Passes    those of the search; then the pages of the vertices that were reached.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from penstock.algorithms.bfs import FAR
from penstock.algorithms.job import Job
from penstock.algorithms.neighborhood import check, search
from penstock.algorithms.neighborhood import stages as search_stages
from penstock.algorithms.subgraph import SIZE, bitmap, edge_stage, edges_between
from penstock.edges import Edges
from penstock.engine.engine import Outcome
from penstock.engine.explain import Stage
from penstock.store.reader import Store


def egonet(
    job: Job,
    *,
    source: Annotated[Any, "Around whom: an id, or several."],
    hops: Annotated[int, "How many arcs away."] = 1,
) -> Edges:
    """The edges among the vertices within so many arcs of the sources."""
    check(hops)
    job.require(stages(job.store, source=source, hops=hops))
    inside, reached = within(job, search(job, source, hops))
    return edges_between(job, inside, inside, both_ways=False, reached=reached)


def within(job: Job, found: Outcome) -> tuple[np.ndarray, int]:
    """The set of the vertices that a search reached, and how many there are."""
    slots, level = found.slots, found.state["level"]
    inside, count = bitmap(job.store.vertices, np.array(slots.alone, np.uint64)), len(slots.alone)
    marks = inside.view(np.uint8)
    for lo in range(0, slots.active, SIZE):
        there = level[lo : min(lo + SIZE, slots.active)] != FAR
        packed = np.packbits(there, bitorder="little")
        marks[lo // 8 : lo // 8 + len(packed)] |= packed  # beside a seed without arcs, perhaps
        count += int(there.sum())
        job.engine.vectors.drop()
    return inside, count


def stages(store: Store, *, source: Any = None, hops: int = 1) -> list[Stage]:
    """What a run would do: a search, and the edges among those who were reached."""
    edges = edge_stage(store, "egonet edges", both_ways=False, note="as far as they were reached")
    return [*search_stages(store, source=source, hops=hops), edges]
