"""Template of the common form: the edges whose ends have enough neighbours in common.

    whole(state) -> named tuple of arrays     unpack(params) -> p
    least(u, v, state, p)     edge(u, v, state, p)

The longer list of an edge's two is marked, once for all its edges, and the shorter is held against the marks until
enough were found, or too few are left.
"""

from __future__ import annotations

import numpy as np

from penstock.engine.kernels.bits import LOW, ONE, SIX, has
from penstock.memory.device import atomic_add, inlined

CHECKED = np.uint64(16)
"""Entries between two looks at whether those that are left can be enough."""


@inlined
def enough(least, lists, begin, end, marks):
    """Whether so many of the entries `begin` to `end` are marked."""
    found = np.uint64(0)
    while begin < end:
        if found >= least or found + (end - begin) < least:
            break
        stop = min(begin + CHECKED, end)
        while begin < stop:
            found += has(marks, np.uint64(lists[begin]))
            begin += ONE
    return found >= least


def edges(c):
    """The edges u, v of the u in chunks `cuts[k]` to `cuts[k + 1]`, whose lists are in `mine`, and of the v from `lo`
    to `hi`, whose lists are in `theirs` and no longer. `marks` are left clear. Returns how many edges were looked at,
    and how many of them had enough."""
    least, edge, whole, unpack = c.least, c.edge, c.whole, c.unpack

    def edges(counter, cuts, offsets, mine, mine_base, theirs, base, lo, hi, state, params, marks):
        s, p = whole(state), unpack(params)
        kind = mine.dtype.type
        looked, told = np.uint64(0), np.uint64(0)
        while True:
            k = atomic_add(counter, 0, ONE)
            if k + ONE >= np.uint64(cuts.size):
                return looked, told
            for u in range(cuts[k], cuts[k + ONE]):
                begin, end = offsets[u] - mine_base, offsets[u + ONE] - mine_base
                if begin == end or np.uint64(mine[end - ONE]) < lo or np.uint64(mine[begin]) >= hi:
                    continue
                marked = False
                for a in range(begin, end):
                    v = np.uint64(mine[a])
                    if v < lo:
                        continue
                    if v >= hi:
                        break
                    b, last = offsets[v] - base, offsets[v + ONE] - base
                    if last - b > end - begin or (last - b == end - begin and v < u):
                        continue  # it is v that this edge is seen from
                    needed = np.uint64(least(kind(u), kind(v), s, p))
                    if needed > last - b:
                        continue
                    looked += ONE
                    if needed and not marked:
                        for i in range(begin, end):
                            w = np.uint64(mine[i])
                            marks[w >> SIX] |= ONE << (w & LOW)
                        marked = True
                    if enough(needed, theirs, b, last, marks):
                        edge(kind(u), kind(v), s, p)
                        told += ONE
                if marked:
                    for i in range(begin, end):
                        marks[np.uint64(mine[i]) >> SIX] = 0

    return edges
