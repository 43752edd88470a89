"""Templates of the sweep form. Each makes a kernel around a program's functions, given as `c`:

    whole(state) -> named tuple of arrays     unpack(params) -> p     arc_values(columns, a) -> e
    arc(u, v, e, state, p)     vertex(u, state, p)     settled(u, state, p)

Chunks of vertices are taken from a counter, so that one kernel serves a page and, on several threads, the whole graph.
"""

from __future__ import annotations

import numpy as np

from penstock.engine.kernels.bits import ONE
from penstock.memory.device import atomic_add


def arcs(c):
    """Visit the arcs of a block's vertices, of each those from its `begin`-th to before its `end`-th; with `once` only
    those to vertices that are not larger, which come first."""
    arc, arc_values, whole, unpack = c.arc, c.arc_values, c.whole, c.unpack

    def arcs(counter, cuts, first, offsets, neighbours, columns, begin, end, once, state, params):
        s, p = whole(state), unpack(params)
        kind = neighbours.dtype.type
        while True:
            k = atomic_add(counter, 0, ONE)
            if k + ONE >= np.uint64(cuts.size):
                return
            lo = np.uint64(offsets[cuts[k]])
            for i in range(cuts[k], cuts[k + ONE]):
                hi = np.uint64(offsets[i + ONE])
                u = kind(first + i)
                for a in range(lo + begin, min(lo + end, hi)):
                    if once and neighbours[a] > u:
                        break
                    arc(u, neighbours[a], arc_values(columns, a), s, p)
                lo = hi

    return arcs


def unsettled_arcs(c):
    """Visit the arcs of a block's vertices that are not settled, of each those from its `begin`-th on."""
    arc, settled, arc_values, whole, unpack = c.arc, c.settled, c.arc_values, c.whole, c.unpack

    def unsettled_arcs(counter, cuts, first, offsets, neighbours, columns, begin, state, params):
        s, p = whole(state), unpack(params)
        kind = neighbours.dtype.type
        while True:
            k = atomic_add(counter, 0, ONE)
            if k + ONE >= np.uint64(cuts.size):
                return
            for i in range(cuts[k], cuts[k + ONE]):
                u = kind(first + i)
                if settled(u, s, p):
                    continue
                for a in range(np.uint64(offsets[i]) + begin, np.uint64(offsets[i + ONE])):
                    arc(u, neighbours[a], arc_values(columns, a), s, p)

    return unsettled_arcs


def vertices(c):
    """Visit the vertices `cuts[k]` to `cuts[k + 1]`; `number` is one of them, for its type."""
    vertex, whole, unpack = c.vertex, c.whole, c.unpack

    def vertices(counter, cuts, number, state, params):
        s, p = whole(state), unpack(params)
        kind = number.dtype.type
        while True:
            k = atomic_add(counter, 0, ONE)
            if k + ONE >= np.uint64(cuts.size):
                return
            for u in range(cuts[k], cuts[k + ONE]):
                vertex(kind(u), s, p)

    return vertices
