"""A maximal independent set: vertices without edges between them, to which none can be added.

Returns   (vertex, the round in which it was chosen), by ascending vertex
Defined   each vertex draws a number; in each round those below all their neighbours are chosen, and they and their
          neighbours are gone. It is the set that taking vertices greedily by their numbers gives.
Ref       Luby 1986; Plimpton and Devine 2011
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.apps.grouped import mapped, reduced
from penstock.apps.jobs.edges import VERTEX, edges_of
from penstock.apps.jobs.options import Seed, seeded
from penstock.mapreduce.keyvalue import KeyValue
from penstock.mapreduce.reduce import whole_groups
from penstock.mapreduce.session import MapReduce

GONE = np.uint64(0xFFFFFFFFFFFFFFFF)
"""A neighbour that says that a vertex is gone."""


def independent_set(mr: MapReduce, edges: Any, *, seed: Seed = 1) -> KeyValue:
    """Vertices of the edges, no two of them neighbours."""
    key = np.uint64(seeded(seed))

    # A vertex is its own neighbour as well: so it is still there when its last neighbour is gone.
    def both(keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.concatenate([keys, values, keys, values]), np.concatenate([values, keys, keys, values])

    around = mapped(edges_of(mr, edges), both, VERTEX, VERTEX)
    chosen = mr.keyvalue(key=VERTEX, value=np.int64)
    step = 0
    while around.total:
        best, lost = _round(mr, around, key)
        chosen = chosen.add(
            mapped(best, lambda keys, values, step=step: (keys, np.full(len(keys), step)), VERTEX, np.int64)
        )
        marks = mapped(best.add(lost), lambda keys, values: (keys, np.full(len(keys), GONE)), VERTEX, VERTEX)
        # Once by each end: what is left is turned around in between.
        around = _without(_without(around, marks), marks)
        step += 1
    return chosen.sort_keys()


def _round(mr: MapReduce, around: KeyValue, key: np.uint64) -> tuple[KeyValue, KeyValue]:
    """The vertices chosen, and their neighbours."""
    with mr.writer(VERTEX, VERTEX) as best, mr.writer(VERTEX, VERTEX) as lost:
        for groups in whole_groups(around.collate()):
            sizes = np.diff(groups.offsets)
            own = np.repeat(groups.keys, sizes)
            mine, theirs = _drawn(own, key), _drawn(groups.values, key)
            # Of equal numbers that of the smaller vertex is less.
            beaten = (theirs < mine) | ((theirs == mine) & (groups.values < own))
            free = ~np.logical_or.reduceat(beaten, groups.offsets[:-1])
            best.add_chunk(groups.keys[free], groups.keys[free])
            near = np.repeat(free, sizes) & (groups.values != own)
            lost.add_chunk(groups.values[near], own[near])
        return best.done(), lost.done()


def _drawn(vertices: np.ndarray, key: np.uint64) -> np.ndarray:
    from penstock.apps.jobs.kernels import priorities

    out = np.empty(len(vertices), np.uint64)
    priorities(vertices, key, out)
    return out


def _without(around: KeyValue, marks: KeyValue) -> KeyValue:
    """The pairs whose key is not gone, turned around."""

    def left(keys: np.ndarray, offsets: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        gone = np.logical_or.reduceat(values == GONE, offsets[:-1])
        sizes = np.diff(offsets)
        kept = ~np.repeat(gone, sizes)
        return values[kept], np.repeat(keys, sizes)[kept]

    return reduced(around.add(marks).collate(), left, VERTEX, VERTEX)


__all__ = ["independent_set"]
