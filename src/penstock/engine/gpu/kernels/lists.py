"""Kernels that make oriented lists on a GPU, as on CPUs (see `penstock.engine.kernels.oriented`): of each vertex the
neighbours of lower rank, ascending, each once; with ways, two bits beside each rank. Or whole lists, of everyone: all
neighbours, by number. List u is `lists[starts[u]]` to `lists[ends[u]]`: what loops and parallel arcs leave over is a
gap. Templates for no program: `c` says only what to leave out.
"""

from __future__ import annotations

import numpy as np

from penstock.memory.device import inlined
from penstock.memory.gpu import cuda, inside

NOTHING = np.uint32(0xFFFFFFFF)
"""Where a list has a gap."""
ONE = np.uint64(1)


@inlined
def ranked(rank, v):
    """The rank of a vertex; without a table, its number."""
    return rank[v] if rank.size > 1 else v


@inlined
def first_from(words, base, lo, hi, least):
    """The first of the ascending `words[base + lo]` to `words[base + hi]` that is not below `least`."""
    while lo < hi:
        middle = np.uint32(lo + ((hi - lo) >> np.uint32(1)))
        if words[base + np.uint64(middle)] < least:
            lo = np.uint32(middle + np.uint32(1))
        else:
            hi = middle
    return lo


@inlined
def owner(starts, u, end, place):
    """Of the lists `u` to `end`, the one that the entry at this place is in."""
    while end - u > np.uint32(1):
        middle = np.uint32(u + ((end - u) >> np.uint32(1)))
        if starts[middle] <= place:
            u = middle
        else:
            end = middle
    return u


@inlined
def add_up(shared, tid, block):
    """Every number of a block, with those before it."""
    step = np.uint32(1)
    inside.syncthreads()
    while step < block:
        more = shared[tid - step] if tid >= step else np.uint32(0)
        inside.syncthreads()
        shared[tid] += more
        inside.syncthreads()
        step = np.uint32(step << np.uint32(1))


def lister(c):
    """Count every `step`-th arc from `a` to `end` of vertex n into the lists they are in, or write them there."""
    directed, writing, shift = c.directed, c.writing, np.uint32(2 if c.ways else 0)

    def enlist_both(n, words, base, a, end, step, rank, cursor, lists):
        while a < end:
            v = words[base + np.uint64(a)]
            a = np.uint32(a + step)
            if v == n:
                continue
            if writing:
                lists[inside.atomic.add(cursor, np.uint64(n), ONE)] = v
                lists[inside.atomic.add(cursor, np.uint64(v), ONE)] = n
            else:
                inside.atomic.add(cursor, np.uint64(n) + ONE, ONE)
                inside.atomic.add(cursor, np.uint64(v) + ONE, ONE)

    def enlist(n, words, base, a, end, step, rank, cursor, lists):
        u = ranked(rank, n)
        while a < end:
            v = ranked(rank, words[base + np.uint64(a)])
            a = np.uint32(a + step)
            if v == u or (not directed and v > u):
                continue
            upper, lower = max(u, v), min(u, v)
            if not writing:
                inside.atomic.add(cursor, np.uint64(upper) + ONE, ONE)
                continue
            entry = np.uint32(lower << shift)
            if shift:
                entry = np.uint32(entry | (np.uint32(1) if u > v else np.uint32(2)))
            lists[inside.atomic.add(cursor, np.uint64(upper), ONE)] = entry

    return inlined(enlist_both if c.everyone else enlist)


def over_tasks(c):
    """The arcs of a task's vertices: counted at `cursor[u + 1]`, or written from `cursor[u]` on, which moves."""
    enlist, block = lister(c), c.block

    def over_tasks(
        order, tasks, heaviest, words, page_words, first_of, vertices_of, frame_of, rank, cursor, lists
    ):  # fmt: skip
        tid = np.uint32(cuda.threadIdx.x)
        task = order[cuda.blockIdx.x]
        page, start, count, width = tasks[task, 0], tasks[task, 1], tasks[task, 2], tasks[task, 3]
        base = np.uint64(frame_of[page]) * page_words
        slots = base + page_words - np.uint64(vertices_of[page]) - ONE
        lane = np.uint32(tid & np.uint32(width - np.uint32(1)))
        groups = np.uint32(np.uint32(block) // width)
        r = np.uint32(tid // width)
        while r < count:
            i = np.uint32(start + r)
            r = np.uint32(r + groups)
            lo, hi = words[slots + np.uint64(i)], words[slots + np.uint64(i) + ONE]
            if hi - lo > heaviest:
                continue
            enlist(np.uint32(first_of[page] + i), words, base, np.uint32(lo + lane), hi, width, rank, cursor, lists)

    return over_tasks


def over_segments(c):
    """The same for a piece of a heavy vertex."""
    enlist, block = lister(c), c.block

    def over_segments(order, segments, heavy, words, page_words, frame_of, rank, cursor, lists):
        segment = order[cuda.blockIdx.x]
        base = np.uint64(frame_of[segments[segment, 0]]) * page_words
        a = np.uint32(segments[segment, 1] + np.uint32(cuda.threadIdx.x))
        n = heavy[segments[segment, 3]]
        enlist(n, words, base, a, segments[segment, 2], np.uint32(block), rank, cursor, lists)

    return over_segments


def sorted_tasks(c):
    """As `over_tasks`, where arcs have no direction, and numbers are ranks: lists are the begins of rows, or all of
    them where they are of everyone."""
    writing, everyone, block = c.writing, c.everyone, c.block

    def sorted_tasks(
        order, tasks, heaviest, words, page_words, first_of, vertices_of, frame_of, rank, starts, lists
    ):  # fmt: skip
        tid = np.uint32(cuda.threadIdx.x)
        task = order[cuda.blockIdx.x]
        page, start, count, width = tasks[task, 0], tasks[task, 1], tasks[task, 2], tasks[task, 3]
        base = np.uint64(frame_of[page]) * page_words
        slots = base + page_words - np.uint64(vertices_of[page]) - ONE
        if not writing:
            width = np.uint32(1)
        lane = np.uint32(tid & np.uint32(width - np.uint32(1)))
        groups = np.uint32(np.uint32(block) // width)
        r = np.uint32(tid // width)
        while r < count:
            i = np.uint32(start + r)
            r = np.uint32(r + groups)
            lo, hi = words[slots + np.uint64(i)], words[slots + np.uint64(i) + ONE]
            if hi - lo > heaviest:
                continue
            u = np.uint32(first_of[page] + i)
            if not writing:
                last = hi if everyone else first_from(words, base, lo, hi, u)
                starts[np.uint64(u) + ONE] = np.uint64(np.uint32(last - lo))
                continue
            at, a = starts[u], np.uint32(lo + lane)
            while a < hi:
                v = words[base + np.uint64(a)]
                if v >= u and not everyone:
                    break
                lists[at + np.uint64(np.uint32(a - lo))] = v
                a = np.uint32(a + width)

    return sorted_tasks


def sorted_segments(c):
    """The same for a piece of a heavy vertex, which begins `later[segment]` behind the first."""
    writing, everyone, block = c.writing, c.everyone, c.block

    def sorted_segments(order, segments, heavy, later, words, page_words, frame_of, rank, starts, lists):
        tid = np.uint32(cuda.threadIdx.x)
        segment = order[cuda.blockIdx.x]
        base = np.uint64(frame_of[segments[segment, 0]]) * page_words
        lo, hi = segments[segment, 1], segments[segment, 2]
        u = heavy[segments[segment, 3]]
        if not writing:
            if tid == np.uint32(0):
                last = hi if everyone else first_from(words, base, lo, hi, u)
                cuda.atomic.add(starts, np.uint64(u) + ONE, np.uint64(np.uint32(last - lo)))
            return
        at, a = starts[u] + np.uint64(later[segment]), np.uint32(lo + tid)
        while a < hi:
            v = words[base + np.uint64(a)]
            if v >= u and not everyone:
                return
            lists[at + np.uint64(np.uint32(a - lo))] = v
            a = np.uint32(a + np.uint32(block))

    return sorted_segments


def keys(c):
    """What sorts like the lists `lo` to `hi`: the list above, the entry below."""

    def keys(count, lo, hi, starts, lists, found):
        k = np.uint64(cuda.blockIdx.x) * np.uint64(cuda.blockDim.x) + np.uint64(cuda.threadIdx.x)
        if k >= count:
            return
        at = starts[lo] + k
        found[k] = (np.uint64(np.uint32(owner(starts, lo, hi, at) - lo)) << np.uint64(32)) | np.uint64(lists[at])

    return keys


def unkeyed(c):
    """The entries of such keys, to `lists` from `base` on."""

    def unkeyed(count, base, found, lists):
        k = np.uint64(cuda.blockIdx.x) * np.uint64(cuda.blockDim.x) + np.uint64(cuda.threadIdx.x)
        if k < count:
            lists[base + k] = np.uint32(found[k] & np.uint64(0xFFFFFFFF))

    return unkeyed


def keeper(c):
    """What becomes of the entry at `a` of list u, from `first` to before `end`: itself, with all ways of those that are
    the same; NOTHING, if one of them was before it, or it is u. Entries before it may be written meanwhile."""
    everyone, shift = c.everyone, np.uint32(2 if c.ways else 0)

    def kept(u, first, a, end, lists):
        entry = lists[a]
        if everyone and entry == u:
            return NOTHING
        if a > first and (lists[a - ONE] >> shift) == (entry >> shift):
            return NOTHING
        b = a + ONE
        while shift and b < end and (lists[b] >> shift) == (entry >> shift):
            entry = np.uint32(entry | lists[b])
            b += ONE
        return entry

    return inlined(kept)


def simplify(c):
    """Keep each neighbour once, with all its ways, and nobody as their own; what is left over becomes NOTHING. A thread
    each list; then all threads of a block one after the other of those that are long. In the order of degrees these are
    side by side, so lists side by side are of different blocks."""
    kept, block, narrow = keeper(c), c.block, np.uint64(c.narrow)

    def simplify(count, starts, ends, lists):
        long = cuda.shared.array(block, np.uint32)
        before = cuda.shared.array(block, np.uint32)
        found = cuda.shared.array(2, np.uint32)
        tid = np.uint32(cuda.threadIdx.x)
        if tid == np.uint32(0):
            found[0] = found[1] = np.uint32(0)
        cuda.syncthreads()
        u = np.uint64(tid) * np.uint64(cuda.gridDim.x) + np.uint64(cuda.blockIdx.x)
        if u < np.uint64(count):
            first, end = starts[u], starts[u + ONE]
            if end - first > narrow:
                long[cuda.atomic.add(found, 0, np.uint32(1))] = np.uint32(u)
            else:
                at = a = first
                while a < end:
                    entry = kept(np.uint32(u), first, a, end, lists)
                    if entry != NOTHING:
                        lists[at] = entry
                        at += ONE
                    a += ONE
                ends[u] = at
                while at < end:
                    lists[at] = NOTHING
                    at += ONE
        cuda.syncthreads()
        k, many, gaps = np.uint32(0), found[0], np.uint32(0)
        while k < many:
            u = np.uint64(long[k])
            first, end = starts[u], starts[u + ONE]
            at = a = first
            while a < end:
                mine, entry = a + np.uint64(tid), NOTHING
                if mine < end:
                    entry = kept(np.uint32(u), first, mine, end, lists)
                    if entry == NOTHING:
                        cuda.atomic.add(found, 1, np.uint32(1))
                cuda.syncthreads()
                now = found[1]
                if now == gaps and at == a:
                    if entry != NOTHING:
                        lists[mine] = entry
                    at = min(at + np.uint64(block), end)
                else:
                    gaps = now
                    before[tid] = np.uint32(entry != NOTHING)
                    add_up(before, tid, block)
                    if entry != NOTHING:
                        lists[at + np.uint64(before[tid]) - ONE] = entry
                    at += np.uint64(before[block - 1])
                a += np.uint64(block)
                cuda.syncthreads()
            if tid == np.uint32(0):
                ends[u] = at
            at += np.uint64(tid)
            while at < end:
                lists[at] = NOTHING
                at += np.uint64(block)
            k = np.uint32(k + np.uint32(1))

    return simplify


def lengths(c):
    """How long they are."""

    def lengths(count, starts, ends, found):
        u = np.uint32(cuda.grid(1))
        if u < count:
            found[u] = np.uint32(ends[u] - starts[u])

    return lengths


def degrees(c):
    """Add how many neighbours each vertex has: a thread each list, of a window that begins with entry `base`."""
    shift = np.uint32(2 if c.ways else 0)

    def degrees(first, last, starts, ends, lists, base, found):
        u = np.uint32(first + np.uint32(cuda.grid(1)))
        if u >= last:
            return
        a, end = starts[u] - base, ends[u] - base
        if end > a:
            cuda.atomic.add(found, u, np.uint32(end - a))
        while a < end:
            cuda.atomic.add(found, np.uint32(lists[a] >> shift), np.uint32(1))
            a += ONE

    return degrees


def pieces(c):
    """List the pieces of lists that blocks take: (u, which piece). `found` counts them; they are written only if there
    is room."""
    narrow, piece = np.uint64(c.narrow), np.uint64(c.piece)

    def pieces(count, starts, ends, found, items):
        u = np.uint32(cuda.grid(1))
        if u >= count:
            return
        length = ends[u] - starts[u]
        if length <= narrow:
            return
        many = (length + piece - ONE) // piece
        at = cuda.atomic.add(found, 0, many)
        k = np.uint64(0)
        while k < many and at + k < np.uint64(items.shape[0]):
            items[at + k, 0] = u
            items[at + k, 1] = np.uint32(k)
            k += ONE

    return pieces
