"""Cross edges: those that join a set of vertices with another one, or with all that is outside.

Returns   edges: source, target and the edge columns, whichever way they point; an undirected edge once, its smaller id
          first.
Needs     the outgoing arcs, and for a directed graph the incoming ones or a pass over all outgoing arcs of the others.
Passes    the pages that hold vertices of the first set, in each direction.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from penstock.algorithms.job import Job
from penstock.algorithms.subgraph import bitmap, complement, edge_stage, edges_between
from penstock.edges import Edges
from penstock.engine.explain import Stage
from penstock.store.reader import Store


def cross_edges(
    job: Job,
    *,
    vertices: Annotated[Any, "The set: ids."],
    others: Annotated[Any, "The other set; without it, all vertices outside the first."] = None,
) -> Edges:
    """The edges that join a set of vertices with another one."""
    job.require(stages(job.store))
    these = bitmap(job.store.vertices, np.array(job.numbers(vertices), np.uint64))
    if others is None:
        those = complement(these)
    else:
        those = bitmap(job.store.vertices, np.array(job.numbers(others), np.uint64))
    return edges_between(job, these, those, both_ways=True)


def stages(store: Store, **options: Any) -> list[Stage]:
    """What a run would do."""
    note = "in each direction" if store.directed else ""
    return [edge_stage(store, "cross_edges", both_ways=True, note=note)]
