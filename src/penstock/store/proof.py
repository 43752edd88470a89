"""Kernels that prove a store: what a page says of itself, hashes of arcs, the order of ids."""

from __future__ import annotations

import numpy as np

from penstock.memory.device import atomic_add, kernel

SOUND, BAD_SLOTS, BAD_ORDER, BAD_NEIGHBOUR = 0, 1, 2, 3

_A = np.uint64(0x9E3779B97F4A7C15)
_B = np.uint64(0xBF58476D1CE4E5B9)
_C = np.uint64(0x94D049BB133111EB)


@kernel()
def _mix(x):
    x = (x ^ (x >> np.uint64(30))) * _B
    x = (x ^ (x >> np.uint64(27))) * _C
    return x ^ (x >> np.uint64(31))


@kernel()
def _arc(u, v):
    """The hash of an arc: another one for (v, u)."""
    return _mix(_mix(u + _A) + v * _A)


@kernel()
def prove_slots(offsets, arcs):
    """The first slot that is wrong: they ascend from 0 to the number of arcs. -1: none."""
    if offsets[0] != 0:
        return 0
    for i in range(np.uint64(1), np.uint64(offsets.size)):
        if offsets[i] < offsets[i - np.uint64(1)]:
            return np.int64(i)
    if np.uint64(offsets[offsets.size - 1]) != np.uint64(arcs):
        return offsets.size - 1
    return -1


@kernel()
def prove_degrees(offsets, degrees):
    """(first vertex whose degree is not `degrees`, or -1; smallest degree; largest)."""
    low, high = np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(0)
    wrong = np.int64(-1)
    for i in range(np.uint64(degrees.size)):
        d = np.uint64(offsets[i + np.uint64(1)] - offsets[i])
        low = min(low, d)
        high = max(high, d)
        if d != np.uint64(degrees[i]) and wrong < 0:
            wrong = np.int64(i)
    return wrong, low, high


@kernel()
def prove_neighbours(offsets, neighbours, first_vertex, limit, counts, hashing, turning):
    """(what is wrong, the arc where, hash of arcs, hash of arcs turned round, loops). Slots are right by now.

    Each neighbour is counted in `counts`, unless that is empty.
    """
    one = counts.dtype.type(1)
    most = np.uint64(limit)
    here, back, loops = np.uint64(0), np.uint64(0), np.int64(0)
    for i in range(np.uint64(offsets.size - 1)):
        u = np.uint64(first_vertex) + i
        last = np.uint64(0)
        for a in range(np.uint64(offsets[i]), np.uint64(offsets[i + np.uint64(1)])):
            v = np.uint64(neighbours[a])
            if v >= most:
                return BAD_NEIGHBOUR, np.int64(a), here, back, loops
            if v < last:
                return BAD_ORDER, np.int64(a), here, back, loops
            last = v
            loops += np.int64(u == v)
            if counts.size > 0:
                atomic_add(counts, v, one)
            if hashing:
                here += _arc(u, v)
            if turning:
                back += _arc(v, u)
    return SOUND, np.int64(-1), here, back, loops


@kernel()
def hash_arcs(offsets, neighbours, first_vertex, first_arc, turned, hashes):
    """The hashes of the arcs from `first_arc` on, as many as `hashes` takes."""
    begin, end = np.uint64(first_arc), np.uint64(first_arc + hashes.size)
    lo, hi = np.uint64(0), np.uint64(offsets.size - 1)
    while hi - lo > np.uint64(1):
        middle = (lo + hi) >> np.uint64(1)
        if np.uint64(offsets[middle]) <= begin:
            lo = middle
        else:
            hi = middle
    i = lo
    for a in range(begin, end):
        while np.uint64(offsets[i + np.uint64(1)]) <= a:
            i += np.uint64(1)
        u, v = np.uint64(first_vertex) + i, np.uint64(neighbours[a])
        hashes[a - begin] = _arc(v, u) if turned else _arc(u, v)


@kernel()
def hash_values(hashes, bits):
    """Take the values of a column, as unsigned integers, into the hashes of their arcs."""
    for i in range(np.uint64(hashes.size)):
        hashes[i] = _mix(hashes[i] * _A + np.uint64(bits[i]))


@kernel()
def first_difference(a, b):
    """The first place where two arrays differ, or -1."""
    for i in range(np.uint64(a.size)):
        if np.uint64(a[i]) != np.uint64(b[i]):
            return np.int64(i)
    return -1


@kernel()
def first_rise(out_degree, in_degree, active):
    """The first of the first `active` vertices whose total degree is above that of the one before it, or -1."""
    last = np.uint64(0xFFFFFFFFFFFFFFFF)
    for v in range(np.uint64(active)):
        total = np.uint64(out_degree[v]) + np.uint64(in_degree[v])
        if total > last:
            return np.int64(v)
        last = total
    return -1


@kernel()
def mark_numbers(order, seen):
    """Mark each number in a bitmap; the place of the first that is too big or marked already, or -1."""
    for k in range(np.uint64(order.size)):
        number = np.uint64(order[k])
        byte, bit = number >> np.uint64(3), np.uint8(1) << np.uint8(number & np.uint64(7))
        if byte >= np.uint64(seen.size) or seen[byte] & bit:
            return np.int64(k)
        seen[byte] |= bit
    return -1


@kernel()
def first_unsorted(order, values, last, has_last):
    """The first place in `order` whose value is not above the one before it, or -1."""
    before, known = last, has_last
    for k in range(np.uint64(order.size)):
        value = values[order[k]]
        if known and value <= before:
            return np.int64(k)
        before, known = value, True
    return -1


@kernel()
def first_unsorted_text(order, offsets, text, last):
    """The same for texts, compared byte by byte; `last` is the number before the first one, or -1."""
    before = last
    for k in range(np.uint64(order.size)):
        number = np.int64(order[k])
        if before >= 0:
            a, a_end = offsets[before], offsets[before + 1]
            b, b_end = offsets[number], offsets[number + 1]
            while a < a_end and b < b_end and text[a] == text[b]:
                a += np.uint64(1)
                b += np.uint64(1)
            if b == b_end or (a < a_end and text[a] > text[b]):
                return np.int64(k)
        before = number
    return -1
