"""Kernels that make the lists of a graph: of each vertex the neighbours of lower rank, or all of them, ascending, each
once.

Ranks fall with the degree, so hubs have short lists of lower ones. An entry is the rank of the neighbour; with ways it
is that rank times four plus two bits: 1, there is an arc to it; 2, there is one from it. Arcs come as blocks of pages
or as one block of everything; chunks of vertices are taken from a counter.
"""

from __future__ import annotations

import numpy as np

from penstock.memory.device import atomic_add, inlined, kernel

ONE = np.uint64(1)
WAYS = np.uint64(2)
"""How far an entry with ways is shifted."""


@inlined
def ranked(rank, v):
    """The rank of a vertex; without a table, its number."""
    return np.uint64(rank[v]) if rank.size else v


@inlined
def mine_of(u, rank, whole, neighbours, begin, end):
    """How many of the neighbours are in u's list: those of lower rank, which come first where numbers are ranks; all
    others, too, if it is the `whole` list."""
    count = np.uint64(0)
    for a in range(begin, end):
        v = ranked(rank, np.uint64(neighbours[a]))
        if v < u or (whole and v != u):
            count += ONE
        elif not (whole or rank.size):
            break
    return count


@kernel()
def count(counter, cuts, first, offsets, neighbours, rank, directed, whole, found):
    """Add the entries of each list to `found[rank + 1]`, parallel arcs each."""
    while True:
        k = atomic_add(counter, 0, ONE)
        if k + ONE >= np.uint64(cuts.size):
            return
        for i in range(cuts[k], cuts[k + ONE]):
            u = ranked(rank, first + i)
            begin, end = np.uint64(offsets[i]), np.uint64(offsets[i + ONE])
            if not directed:
                # Each edge lies at both ends: an end's own arcs are enough.
                mine = mine_of(u, rank, whole, neighbours, begin, end)
                if mine:
                    atomic_add(found, u + ONE, mine)
                continue
            for a in range(begin, end):
                v = ranked(rank, np.uint64(neighbours[a]))
                if v == u:
                    continue
                atomic_add(found, max(u, v) + ONE, ONE)
                if whole:
                    atomic_add(found, min(u, v) + ONE, ONE)


@kernel()
def fill(counter, cuts, first, offsets, neighbours, rank, directed, whole, shift, lo, hi, base, cursor, lists):
    """Write the entries of the lists `lo` to `hi`, of which the first begins at `base`; `cursor[u]` moves from the
    begin of list u to its end."""
    while True:
        k = atomic_add(counter, 0, ONE)
        if k + ONE >= np.uint64(cuts.size):
            return
        for i in range(cuts[k], cuts[k + ONE]):
            u = ranked(rank, first + i)
            begin, end = np.uint64(offsets[i]), np.uint64(offsets[i + ONE])
            if not directed:
                if u < lo or u >= hi:
                    continue
                mine = mine_of(u, rank, whole, neighbours, begin, end)
                at = atomic_add(cursor, u, mine) - base
                last = at + mine
                for a in range(begin, end):
                    if at == last:
                        break
                    v = ranked(rank, np.uint64(neighbours[a]))
                    if v < u or (whole and v != u):
                        lists[at] = v
                        at += ONE
                continue
            for a in range(begin, end):
                v = ranked(rank, np.uint64(neighbours[a]))
                upper, lower = max(u, v), min(u, v)
                if v == u:
                    continue
                if lo <= upper < hi:
                    at = atomic_add(cursor, upper, ONE) - base
                    entry = lower << shift
                    if shift:
                        entry |= ONE if u > v else np.uint64(2)
                    lists[at] = entry
                if whole and lo <= lower < hi:
                    lists[atomic_add(cursor, lower, ONE) - base] = upper


@kernel()
def simplify(counter, cuts, base, ends, shift, lists, nothing):
    """Sort each list and keep each neighbour once, with all its ways; what is left over becomes `nothing`. Returns
    how much that is."""
    left = np.uint64(0)
    while True:
        k = atomic_add(counter, 0, ONE)
        if k + ONE >= np.uint64(cuts.size):
            return left
        for u in range(cuts[k], cuts[k + ONE]):
            begin = ends[u - ONE] - base if u else np.uint64(0)
            end = ends[u] - base
            for a in range(begin + ONE, end):
                if lists[a] < lists[a - ONE]:
                    lists[begin:end].sort()
                    break
            at = begin
            for a in range(begin, end):
                entry = lists[a]
                if at > begin and (entry >> shift) == (lists[at - ONE] >> shift):
                    lists[at - ONE] |= entry
                else:
                    lists[at] = entry
                    at += ONE
            left += end - at
            while at < end:
                lists[at] = nothing
                at += ONE


@kernel()
def close_gaps(base, ends, lists, nothing, begin):
    """Drop what `simplify` left over. `ends` become the begins of the lists, of which the first is `begin`; returns the
    length of all."""
    read, at = np.uint64(0), np.uint64(0)
    for u in range(np.uint64(ends.size)):
        end = ends[u] - base
        ends[u] = begin + at
        while read < end:
            if lists[read] != nothing:
                lists[at] = lists[read]
                at += ONE
            read += ONE
    return at


@kernel()
def begin_again(ends, begin):
    """Where nothing was left over: each list begins where the one before ends."""
    for u in range(np.uint64(ends.size)):
        ends[u], begin = begin, ends[u]


@kernel()
def add_degrees(counter, cuts, offsets, base, lists, shift, near, found):
    """Add how many neighbours each vertex has, by the lists of some; those of low rank into a thread's own `near`."""
    while True:
        k = atomic_add(counter, 0, ONE)
        if k + ONE >= np.uint64(cuts.size):
            return
        for u in range(cuts[k], cuts[k + ONE]):
            begin, end = offsets[u] - base, offsets[u + ONE] - base
            if end > begin:
                atomic_add(found, u, end - begin)
            for a in range(begin, end):
                v = np.uint64(lists[a]) >> shift
                if v < np.uint64(near.size):
                    near[v] += ONE
                else:
                    atomic_add(found, v, ONE)
