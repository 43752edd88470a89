"""Degrees and their distribution.

Returns   out_degree, in_degree and degree: their sum in a directed graph, and in an undirected one either of them.
Needs     nothing but the degrees that every store holds: no page is read.
Defined   parallel arcs count each; an undirected loop counts once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.algorithms.job import Job
from penstock.engine.vectors import Slots
from penstock.result import Result


def degree(job: Job) -> Result:
    """Degrees of the vertices and how they are distributed."""
    store, slots = job.store, Slots(job.store)
    columns = {}
    for name in ("out", "in"):
        column = job.engine.vectors.make(slots.count, np.uint64, f"{name}_degree")
        column[: slots.active] = store.degree_column(name).read(0, slots.active)
        columns[f"{name}_degree"] = column
    both = columns["out_degree"] + columns["in_degree"] if store.directed else columns["out_degree"]
    columns["degree"] = both
    notes: dict[str, Any] = {"distribution": distribution(both, slots)}
    if store.directed:
        notes |= {f"{name}_distribution": distribution(columns[f"{name}_degree"], slots) for name in ("out", "in")}
    return job.result(slots, columns, types=dict.fromkeys(columns, "int64"), **notes)


def distribution(degrees: np.ndarray, slots: Slots) -> dict[int, int]:
    """How many vertices have each degree that occurs."""
    values, counts = np.unique(degrees[: slots.active], return_counts=True)
    found = dict(zip(values.tolist(), counts.tolist(), strict=True))
    alone = slots.vertices - slots.active
    return dict(sorted({**found, 0: found.get(0, 0) + alone}.items())) if alone else found
