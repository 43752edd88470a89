"""Degrees and their distribution.

Returns   out_degree, in_degree and degree: their sum in a directed graph, and in an undirected one either of them.
Needs     nothing but the degrees that every store holds: no page is read.
Defined   parallel arcs count each; an undirected loop counts once.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from penstock.algorithms.job import Job
from penstock.engine.explain import Reading, Stage
from penstock.engine.plan import SLACK
from penstock.engine.vectors import Slots
from penstock.result import Result
from penstock.store.reader import Store

PIECE = 1 << 16
"""Vertices looked at together."""


def degree(job: Job) -> Result:
    """Degrees of the vertices and how they are distributed."""
    job.require(stages(job.store))
    store, slots, vectors = job.store, Slots(job.store), job.engine.vectors
    names = ["out_degree", "in_degree", *(["degree"] if store.directed else [])]
    spilled = SLACK + len(names) * 8 * slots.count > job.settings.memory_limit
    columns = {name: vectors.make(slots.count, np.uint64, name, spilled=spilled) for name in names}
    counts: dict[str, Counter[int]] = {name: Counter() for name in names}
    for lo in range(0, slots.active, PIECE):
        hi = min(lo + PIECE, slots.active)
        for name in names:
            if name == "degree":
                columns[name][lo:hi] = columns["out_degree"][lo:hi] + columns["in_degree"][lo:hi]
            else:
                columns[name][lo:hi] = store.vertex_column(name).read(lo, hi)
            values, often = np.unique(columns[name][lo:hi], return_counts=True)
            counts[name].update(dict(zip(values.tolist(), often.tolist(), strict=True)))
        vectors.drop()
    if alone := slots.vertices - slots.active:
        for found in counts.values():
            found[0] += alone
    told = {name: dict(sorted(found.items())) for name, found in counts.items()}
    notes: dict[str, Any] = {"distribution": told["degree" if store.directed else "out_degree"]}
    if store.directed:
        notes |= {f"{name}_distribution": told[f"{name}_degree"] for name in ("out", "in")}
    else:
        columns["degree"] = columns["out_degree"]
    return job.result(slots, columns, types=dict.fromkeys(columns, "int64"), **notes)


def stages(store: Store) -> list[Stage]:
    """What a run would do. What does not fit beside a piece lies in files."""
    width = [store.degree_column(name).dtype.itemsize for name in ("out", "in")]
    needed = SLACK + min(store.active, PIECE) * 8 * 8
    return [Stage(Reading("degree", "the degrees of the vertices", needed, store.active * sum(width)), 1)]
