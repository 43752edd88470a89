"""Kernels of the pair form: each triangle u > v > w is found once, as what the lists of u and v have in common.

The list of u is marked; those of its v are held against the marks. Among hubs, the vertices of lowest rank, most pairs
are neighbours, and lists are long: there the rows of a bit matrix stand for lists, and 64 neighbours are compared at
once. Totals of low ranks, which most triangles go to, are a thread's own.
"""

from __future__ import annotations

import numpy as np

from penstock.engine.kernels.bits import LOW, ONE, SIX, has
from penstock.engine.kernels.oriented import WAYS
from penstock.memory.device import atomic_add, atomic_or, count_bits, inlined, kernel

TWO = np.uint64(2)
DENSE = np.uint64(8)
"""Words of a row that are compared in the time one neighbour is looked up."""


@inlined
def tell(near, totals, v, value):
    """Add to a vertex's total."""
    if v < np.uint64(near.size):
        near[v] += value
    else:
        atomic_add(totals, v, value)


@inlined
def shared(marks, row, words):
    """How many bits two rows share."""
    found = np.uint64(0)
    for w in range(words):
        found += count_bits(marks[w] & row[w])
    return found


@kernel()
def hub_rows(counter, cuts, offsets, base, lists, both, rows):
    """Set the bits of the hubs' lists; with `both`, in the rows of the neighbours, too."""
    while True:
        k = atomic_add(counter, 0, ONE)
        if k + ONE >= np.uint64(cuts.size):
            return
        for u in range(cuts[k], cuts[k + ONE]):
            row = rows[u]
            for a in range(offsets[u] - base, offsets[u + ONE] - base):
                v = np.uint64(lists[a])
                if both:
                    atomic_or(row, v >> SIX, ONE << (v & LOW))
                    atomic_or(rows[v], u >> SIX, ONE << (u & LOW))
                else:
                    row[v >> SIX] |= ONE << (v & LOW)


@inlined
def look_up(lists, begin, end, row, telling, near, totals):
    """How many of the entries `begin` to `end` have their bit in a row; they are told, if `telling`."""
    found = np.uint64(0)
    for b in range(begin, end):
        w = np.uint64(lists[b])
        hit = has(row, w)
        found += hit
        if telling and hit:
            tell(near, totals, w, hit)
    return found


@inlined
def among_hubs(lists, begin, end, rows, marks, telling, near, totals):
    """The triangles of one vertex and two of its hubs, which are the entries `begin` to `end`."""
    top = (np.uint64(lists[end - ONE]) >> SIX) + ONE
    dense = DENSE * (end - begin) >= top
    found = np.uint64(0)
    for a in range(begin, end):
        v = np.uint64(lists[a])
        if telling:
            if dense:
                # Rows hold neighbours of either rank: each triangle is seen from both of its hubs.
                here = shared(marks, rows[v], top)
            else:
                here = look_up(lists, begin, a, rows[v], True, near, totals)
            tell(near, totals, v, here)
            found += here
        elif (a - begin) * DENSE < v >> SIX:
            found += look_up(lists, begin, a, rows[v], False, near, totals)
        else:
            found += shared(marks, rows[v], (v >> SIX) + ONE)
    return found // TWO if telling and dense else found


@kernel()
def triangles(counter, cuts, offsets, mine, mine_base, theirs, base, lo, hi, rows, marks, telling, near, totals):
    """Count the triangles u > v > w of the u in chunks `cuts[k]` to `cuts[k + 1]`, whose lists are in `mine`, and of
    the v from `lo` to `hi`, whose lists are in `theirs`; tell each corner, if `telling`. `marks` are left clear."""
    total = np.uint64(0)
    hubs = np.uint64(rows.shape[0])
    while True:
        k = atomic_add(counter, 0, ONE)
        if k + ONE >= np.uint64(cuts.size):
            return total
        for u in range(cuts[k], cuts[k + ONE]):
            begin, end = offsets[u] - mine_base, offsets[u + ONE] - mine_base
            if end - begin < TWO or np.uint64(mine[end - ONE]) < lo or np.uint64(mine[begin]) >= hi:
                continue
            for a in range(begin, end):
                v = np.uint64(mine[a])
                marks[v >> SIX] |= ONE << (v & LOW)
            found = np.uint64(0)
            first = begin
            while first < end and np.uint64(mine[first]) < hubs:
                first += ONE
            if first > begin + ONE:
                found += among_hubs(mine, begin, first, rows, marks, telling, near, totals)
            for a in range(first, end):
                v = np.uint64(mine[a])
                if v < lo:
                    continue
                if v >= hi:
                    break
                here = look_up(theirs, offsets[v] - base, offsets[v + ONE] - base, marks, telling, near, totals)
                if telling and here:
                    tell(near, totals, v, here)
                found += here
            for a in range(begin, end):
                marks[np.uint64(mine[a]) >> SIX] = 0
            if telling and found:
                atomic_add(totals, u, found)
            total += found


def corners(c):
    """Like `triangles`, with a program's own contribution to each corner. `marks` are bytes: 1 plus the ways."""
    corner, unpack, ways = c.corner, c.unpack, c.ways
    shift = WAYS if ways else np.uint64(0)

    def arcs(bits):
        if not ways:
            return TWO
        return (bits & ONE) + ((bits >> ONE) & ONE)

    arcs = inlined(arcs)

    def corners(counter, cuts, offsets, mine, mine_base, theirs, base, lo, hi, params, marks, near, totals):
        p = unpack(params)
        total = np.uint64(0)
        kind = totals.dtype.type
        while True:
            k = atomic_add(counter, 0, ONE)
            if k + ONE >= np.uint64(cuts.size):
                return total
            for u in range(cuts[k], cuts[k + ONE]):
                begin, end = offsets[u] - mine_base, offsets[u + ONE] - mine_base
                if end - begin < TWO:
                    continue
                for a in range(begin, end):
                    entry = np.uint64(mine[a])
                    marks[entry >> shift] = ONE + (entry & np.uint64(3) if ways else np.uint64(0))
                found = np.uint64(0)
                for a in range(begin, end):
                    entry = np.uint64(mine[a])
                    v = entry >> shift
                    if v < lo:
                        continue
                    if v >= hi:
                        break
                    for b in range(offsets[v] - base, offsets[v + ONE] - base):
                        across = np.uint64(theirs[b])
                        w = across >> shift
                        mark = np.uint64(marks[w])
                        if mark:
                            found += ONE
                            tell(near, totals, u, kind(corner(arcs(across), p)))
                            tell(near, totals, v, kind(corner(arcs(mark - ONE), p)))
                            tell(near, totals, w, kind(corner(arcs(entry), p)))
                for a in range(begin, end):
                    marks[np.uint64(mine[a]) >> shift] = 0
                total += found

    return corners


def settle(c):
    """Give the slots `cuts[k]` to `cuts[k + 1]` their first state, and have them take their totals in."""
    load, store, unpack, init, update = c.load, c.store, c.unpack, c.init, c.update
    zero = np.uint64(0)

    def settle(counter, cuts, state, reads, params, totals):
        p = unpack(params)
        while True:
            k = atomic_add(counter, 0, ONE)
            if k + ONE >= np.uint64(cuts.size):
                return
            for i in range(cuts[k], cuts[k + ONE]):
                store(state, i, zero, init(load(state, reads, i, i, zero), p))
                store(state, i, zero, update(load(state, reads, i, i, zero), totals[i], p))

    return settle
