"""Kernels of the pair form on a GPU, over the lists of `penstock.engine.gpu.kernels.lists`.

A triangle u > v > w is found where the lists of u and v have w in common. A short list is taken by a warp, which looks
its pairs v, w up in the lists of the v. A longer one is put into a table by a block, or a piece of it is, and the lists
of all v stream past. What corners get is counted next to the processor, and told once per entry of a list. No program
is in it: a triangle counts at a corner as one between whose other corners there is one arc, or are two.

The lists of u are `mine` and those of v, from `lo` to `top`, `theirs`: two windows of the lists, of which the first
entries have the places `my_base` and `base`; or all of them, twice.
"""

from __future__ import annotations

import numpy as np

from penstock.engine.gpu.kernels.combine import together
from penstock.engine.gpu.kernels.lists import NOTHING, ONE, ranked
from penstock.memory.device import inlined
from penstock.memory.gpu import WARP, cuda

SPREAD = 1024
"""Places that triangles are counted in."""


@inlined
def lower_bound(lists, a, end, least):
    """The first of the ascending entries `a` to `end` that is not below `least`."""
    while a < end:
        middle = a + ((end - a) >> ONE)
        if lists[middle] < least:
            a = middle + ONE
        else:
            end = middle
    return a


def class_of(c):
    """0 where an entry has one way, 1 where it has both; without ways always 0."""
    ways = c.ways

    def of(entry):
        if not ways:
            return np.uint32(0)
        return np.uint32(entry & (entry >> np.uint32(1)) & np.uint32(1))

    return inlined(of)


def narrow(c):
    """The triangles of short lists: a warp each. Lane j looks for its w in the lists of all v behind it."""
    of, ways, telling, block = class_of(c), c.ways, c.telling, c.block
    shift, most = np.uint32(2 if c.ways else 0), np.uint64(c.narrow)
    warps, classes = c.block // WARP, 2 if c.ways else 1
    counted, owners = c.block * classes, warps * classes

    def narrow(first_list, last_list, starts, ends, mine, my_base, theirs, base, lo, top, told, spread):
        entries = cuda.shared.array(block, np.uint32)
        counts = cuda.shared.array(counted, np.uint32)
        own = cuda.shared.array(owners, np.uint32)
        tid = np.uint32(cuda.threadIdx.x)
        lane = np.uint32(tid & np.uint32(WARP - 1))
        warp = np.uint32(tid // np.uint32(WARP))
        u = np.uint32(first_list + np.uint32(cuda.blockIdx.x) * np.uint32(warps) + warp)
        first = np.uint32(tid - lane)
        begin, length = np.uint64(0), np.uint64(0)
        if u < last_list:
            begin, length = starts[u] - my_base, ends[u] - starts[u]
            if length > most:
                length = np.uint64(0)
        entries[tid] = mine[begin + np.uint64(lane)] if np.uint64(lane) < length else NOTHING
        for k in range(classes):
            counts[tid * np.uint32(classes) + np.uint32(k)] = np.uint32(0)
            if lane == np.uint32(0):
                own[warp * np.uint32(classes) + np.uint32(k)] = np.uint32(0)
        together()
        mark = entries[tid]
        w = np.uint32(mark >> shift)
        found = np.uint32(0)
        i = np.uint32(lane + np.uint32(1))
        while np.uint64(i) < length:
            entry = entries[first + i]
            v = np.uint32(entry >> shift)
            at, end = np.uint64(0), np.uint64(0)
            if lo <= v <= top:
                end = ends[v] - base
                at = lower_bound(theirs, starts[v] - base, end, np.uint32(w << shift))
            if at < end and np.uint32(theirs[at] >> shift) == w:
                found = np.uint32(found + np.uint32(1))
                if telling:
                    if ways:
                        cuda.atomic.add(counts, np.uint32(2) * tid + of(entry), np.uint32(1))
                        cuda.atomic.add(counts, np.uint32(2) * (first + i) + of(mark), np.uint32(1))
                        cuda.atomic.add(own, np.uint32(2) * warp + of(theirs[at]), np.uint32(1))
                    else:
                        cuda.atomic.add(counts, np.uint32(first + i), np.uint32(1))
            i = np.uint32(i + np.uint32(1))
        if found > np.uint32(0) and (not telling or not ways):
            if telling:
                cuda.atomic.add(counts, tid, found)
            cuda.atomic.add(own, np.uint32(warp * np.uint32(classes)), found)
        together()
        if telling and np.uint64(lane) < length:
            for k in range(classes):
                here = counts[tid * np.uint32(classes) + np.uint32(k)]
                if here > np.uint32(0):
                    cuda.atomic.add(told, (k, w), np.uint64(here))
        if lane == np.uint32(0):
            total = np.uint64(0)
            for k in range(classes):
                here = own[warp * np.uint32(classes) + np.uint32(k)]
                total += np.uint64(here)
                if telling and here > np.uint32(0):
                    cuda.atomic.add(told, (k, u), np.uint64(here))
            if total > np.uint64(0):
                cuda.atomic.add(spread, np.uint32(u & np.uint32(SPREAD - 1)), total)

    return narrow


def wide(c):
    """The triangles u > v > w whose w are in one piece of a list: a block. The piece is in a table, a warp each v takes
    what of its list may be there."""
    of, telling, block = class_of(c), c.telling, c.block
    shift, piece, places = np.uint32(2 if c.ways else 0), np.uint64(c.piece), c.places
    classes, down = 2 if c.ways else 1, np.uint32(32 - (c.places.bit_length() - 1))
    warps, counted = c.block // WARP, c.places * (2 if c.ways else 1) if c.telling else 1
    last_place, owners = np.uint32(c.places - 1), warps * classes

    def place_of(w):
        return np.uint32(np.uint32(np.uint64(w) * np.uint64(0x9E3779B1) & np.uint64(0xFFFFFFFF)) >> down)

    place_of = inlined(place_of)

    def wide(items, starts, ends, mine, my_base, theirs, base, lo, top, told, spread):
        table = cuda.shared.array(places, np.uint32)
        counts = cuda.shared.array(counted, np.uint32)
        across = cuda.shared.array(owners, np.uint32)
        own = cuda.shared.array(classes, np.uint64)
        tid = np.uint32(cuda.threadIdx.x)
        lane = np.uint32(tid & np.uint32(WARP - 1))
        warp = np.uint32(tid // np.uint32(WARP))
        u, part = items[cuda.blockIdx.x, 0], items[cuda.blockIdx.x, 1]
        first = starts[u] - my_base + np.uint64(part) * piece
        end = ends[u] - my_base
        stop = min(first + piece, end)
        # Of smaller v, all neighbours in their lists are below the piece.
        from_v = lower_bound(mine, first + ONE, end, np.uint32(lo << shift))
        to_v = lower_bound(mine, from_v, end, np.uint32(top << shift))
        if to_v < end and np.uint32(mine[to_v] >> shift) == top:
            to_v += ONE
        if from_v >= to_v:  # none of these v are held: so all threads of the block see it
            return
        at = tid
        while at < np.uint32(places):
            table[at] = NOTHING
            at = np.uint32(at + np.uint32(block))
        at = tid
        while telling and at < np.uint32(counted):
            counts[at] = np.uint32(0)
            at = np.uint32(at + np.uint32(block))
        if tid < np.uint32(owners):
            across[tid] = np.uint32(0)
        if tid < np.uint32(classes):
            own[tid] = np.uint64(0)
        cuda.syncthreads()
        a = first + np.uint64(tid)
        while a < stop:
            entry = mine[a]
            at = place_of(entry >> shift)
            while cuda.atomic.cas(table, at, NOTHING, entry) != NOTHING:
                at = np.uint32((at + np.uint32(1)) & last_place)
            a += np.uint64(block)
        cuda.syncthreads()
        least, most = np.uint32(mine[first] >> shift), np.uint32(mine[stop - ONE] >> shift)
        a = from_v + np.uint64(warp)
        rounds = (to_v - from_v + np.uint64(warps) - ONE) // np.uint64(warps)
        total, doubles = np.uint64(0), np.uint64(0)
        while rounds > np.uint64(0):
            rounds -= ONE
            v, entry, found, both = np.uint32(0), np.uint32(0), np.uint32(0), np.uint32(0)
            if a < to_v:
                entry = mine[a]
                v = np.uint32(entry >> shift)
                b, last = starts[v] - base, ends[v] - base
                if part > np.uint32(0):
                    b = lower_bound(theirs, b, last, np.uint32(least << shift))
                b += np.uint64(lane)
                while b < last:
                    facing = theirs[b]
                    b += np.uint64(WARP)
                    w = np.uint32(facing >> shift)
                    if w > most:
                        break
                    at = place_of(w)
                    seen = table[at]
                    while seen != NOTHING and np.uint32(seen >> shift) != w:
                        at = np.uint32((at + np.uint32(1)) & last_place)
                        seen = table[at]
                    if seen == NOTHING:
                        continue
                    found = np.uint32(found + np.uint32(1))
                    if telling:
                        # At w counts what is between u and v, at v what is between u and w, at u what v and w have.
                        cuda.atomic.add(counts, np.uint32(at * np.uint32(classes) + of(entry)), np.uint32(1))
                        both = np.uint32(both + of(seen))
                        doubles += np.uint64(of(facing))
            total += np.uint64(found)
            if telling:
                if found > both:
                    cuda.atomic.add(across, np.uint32(warp * np.uint32(classes)), np.uint32(found - both))
                if both > np.uint32(0):
                    cuda.atomic.add(across, np.uint32(warp * np.uint32(classes) + np.uint32(1)), both)
                together()
                if lane == np.uint32(0):
                    for k in range(classes):
                        here = across[warp * np.uint32(classes) + np.uint32(k)]
                        if here > np.uint32(0):
                            cuda.atomic.add(told, (k, v), np.uint64(here))
                            across[warp * np.uint32(classes) + np.uint32(k)] = np.uint32(0)
                together()
            a += np.uint64(warps)
        if total > doubles:
            cuda.atomic.add(own, 0, total - doubles)
        if doubles > np.uint64(0):
            cuda.atomic.add(own, 1, doubles)
        cuda.syncthreads()
        at = tid
        while telling and at < np.uint32(places):
            seen = table[at]
            if seen != NOTHING:
                for k in range(classes):
                    here = counts[at * np.uint32(classes) + np.uint32(k)]
                    if here > np.uint32(0):
                        cuda.atomic.add(told, (k, np.uint32(seen >> shift)), np.uint64(here))
            at = np.uint32(at + np.uint32(block))
        if tid == np.uint32(0):
            total = np.uint64(0)
            for k in range(classes):
                total += own[k]
                if telling and own[k] > np.uint64(0):
                    cuda.atomic.add(told, (k, u), own[k])
            if total > np.uint64(0):
                cuda.atomic.add(spread, np.uint32(u & np.uint32(SPREAD - 1)), total)

    return wide


# ---- vertices


def by_vertex(c):
    """Put what is known by rank to its vertex."""

    def by_vertex(count, rank, source, target):
        n = np.uint32(cuda.grid(1))
        if n < count:
            target[n] = source[rank[n]]

    return by_vertex


def settle(c):
    """Give each slot its first state, and have it take its total in. Made around a program's functions."""
    load, store, unpack, init, update, kind = c.load, c.store, c.unpack, c.init, c.update, c.kind
    total_of = c.total_of

    def settle(count, active, rank, told, state, reads, params, scalars):
        n = np.uint32(cuda.grid(1))
        if n >= count:
            return
        p = unpack(params, scalars)
        r = ranked(rank, n) if n < active else n
        store(state, n, 0, init(load(state, reads, n, n, 0), p))
        store(state, n, 0, update(load(state, reads, n, n, 0), kind(total_of(told, r, p)), p))

    return settle
