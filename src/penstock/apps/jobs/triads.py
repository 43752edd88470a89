"""The triangles of a graph, each once.

Returns   (a, (b, c)) with a < b < c, in order; directions, loops and parallel edges do not count
Phases    edges meet at their vertices, which are counted: degrees; each edge goes to its end of smaller degree, where
          every two edges make an open wedge; wedges meet the edge that closes them, if there is one.
Ref       Cohen 2009; Plimpton and Devine 2011
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.apps.grouped import mapped, reduced
from penstock.apps.jobs.edges import edges_of, unpacked, upper
from penstock.mapreduce.keyvalue import KeyValue
from penstock.mapreduce.reduce import whole_groups
from penstock.mapreduce.session import MapReduce

CORNERS = np.dtype([("b", np.uint64), ("c", np.uint64)])
NONE = np.uint64(0xFFFFFFFFFFFFFFFF)
"""Stands where an edge has no apex: it is the edge itself."""
_HALF = np.uint64(32)


def triangles(mr: MapReduce, edges: Any) -> KeyValue:
    """All triangles of a graph whose vertices are below 2**32."""
    once = upper(edges_of(mr, edges))
    wedges = _wedges(mr, _by_degree(once))
    sides = mapped(once, lambda keys, values: (keys, np.full(len(keys), NONE)), np.uint64, np.uint64)
    closed = sides.add(wedges).collate()
    return reduced(closed, _closing, np.uint64, CORNERS).sort_values().sort_keys()


def _closing(keys: np.ndarray, offsets: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The triangles of edges that are there."""
    sizes, is_edge = np.diff(offsets), values == NONE
    there = np.logical_or.reduceat(is_edge, offsets[:-1])
    kept = np.repeat(there, sizes) & ~is_edge
    low, high = unpacked(np.repeat(keys, sizes)[kept])
    corners = np.sort(np.stack([values[kept], low, high]), axis=0)
    made = np.empty(corners.shape[1], CORNERS)
    made["b"], made["c"] = corners[1], corners[2]
    return np.ascontiguousarray(corners[0]), made


def _by_degree(once: KeyValue) -> KeyValue:
    """(the end of smaller degree, the other one) of each edge; of equal degrees the smaller vertex."""

    def ends(keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        low, high = unpacked(keys)
        return np.concatenate([low, high]), np.concatenate([keys, keys])

    # What the edge is told at each end: the degree there. The end itself is one bit beside it.
    def told(keys: np.ndarray, offsets: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sizes = np.diff(offsets)
        low, _ = unpacked(values)
        at_high = (np.repeat(keys, sizes) != low).astype(np.uint64)
        return values, np.repeat(sizes, sizes).astype(np.uint64) << np.uint64(1) | at_high

    def directed(keys: np.ndarray, offsets: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        low, high = unpacked(keys)
        least = np.minimum.reduceat(values, offsets[:-1]) if len(keys) else values
        turned = (least & np.uint64(1)).astype(bool)  # the degree at the larger end is less
        return np.where(turned, high, low), np.where(turned, low, high)

    degrees = reduced(mapped(once, ends, np.uint64, np.uint64).collate(), told, np.uint64, np.uint64)
    return reduced(degrees.collate(), directed, np.uint64, np.uint64)


def _wedges(mr: MapReduce, directed: KeyValue) -> KeyValue:
    """(the edge that would close it, its apex) of every two edges at the same vertex."""
    from penstock.apps.jobs.kernels import wedges

    with mr.writer(np.uint64, np.uint64) as writer:
        room = max(1 << 10, mr.chunk_bytes // 16)
        for groups in whole_groups(directed.collate()):
            group, first, second = np.uint64(0), np.uint64(0), np.uint64(1)
            while group < len(groups):
                keys, apexes = np.empty(room, np.uint64), np.empty(room, np.uint64)
                at = np.uint64(group), np.uint64(first), np.uint64(second)  # a kernel gives back Python's integers
                group, first, second, count = wedges(*at, groups.keys, groups.offsets, groups.values, keys, apexes)
                writer.add_chunk(keys[:count], apexes[:count])
        return writer.done()


__all__ = ["triangles"]
