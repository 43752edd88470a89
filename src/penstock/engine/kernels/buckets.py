"""Delta-stepping (Meyer and Sanders 2003): templates around a program's functions, as in `kernels.combine`.

A vertex whose value fell waits in a bin, the bin of its bucket: the value divided by the width of buckets. Each thread
has bins of its own (Beamer et al. 2015), chains of blocks from one pool. The bins hold the buckets from `base` to
`base + NEAR`; a last bin holds all that lies further. A thread that made few new entries in the current bucket takes
them at once (bucket fusion, Zhang et al. 2020), and buckets of few arcs are run one after the other by one thread.

A vertex may wait in several bins, and in a bin twice: whoever finds its value below the current bucket leaves it, as
its later entry was taken. When the pool runs dry, a vertex is noted in the bitmap `spare` instead; between buckets all
bins are then filled anew, with each vertex once, for which the pool always has room.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from penstock.engine.kernels.bits import ONE, SIX, masked, set_bit
from penstock.memory.device import atomic_add, atomic_load, atomic_swap, inlined, lowest_bit

BLOCK = 256
"""Entries of a block."""
SPAN = 64
"""Entries that a thread takes at a time: few, as the first ones may have most of the arcs."""
NEAR = 256
"""Bins by bucket; one more is for what lies further."""
ROW = -(-(NEAR + 1) // 8) * 8
"""A thread's bins, so many that those of two threads share no cache line."""
FUSE = 1024
"""A thread's own entries of the current bucket, up to so many, are not worth sharing."""
TOP = 2.0**62
"""Real values beyond so many buckets share the last one."""
NEXT, DRY, BASE, NOW, WORK = range(5)
"""What `meter` holds: the next block never used, whether the pool ran dry, the first bucket of the bins, the current
bucket, and how many blocks of it there are."""

_ZERO = np.uint64(0)
_BLOCK, _SPAN, _NEAR, _FUSE = np.uint64(BLOCK), np.uint64(SPAN), np.uint64(NEAR), np.uint64(FUSE)
_SPANS = np.uint64(BLOCK // SPAN)
_PART = np.uint64(BLOCK - 1)


class Bins(NamedTuple):
    """Arrays that kernels share."""

    entries: Any
    """The blocks: vertices, BLOCK by BLOCK. Block 0 stands for none."""
    after: Any
    """The next block of each block's chain."""
    head: Any
    """By thread and bin, the first block, which alone may be part full."""
    count: Any
    """By thread and bin, how many entries."""
    free: Any
    """By thread, a chain of blocks to use again."""
    work: Any
    """The blocks of the current bucket."""
    fill: Any
    """How many entries each of them has."""
    spare: Any
    """The vertices that found no block, a bit each."""
    meter: Any


def pool_blocks(active: int, threads: int) -> int:
    """Blocks of the pool. Once for each vertex is enough; but on Kronecker graphs each waits in 2.5 bins, nearly all at
    the same time, and filling the bins anew took a fifth of the run."""
    return 2 + -(-active * 3 // BLOCK) + (threads + 1) * (NEAR + 1)


def bins_bytes(active: int, threads: int, number: np.dtype) -> int:
    """What the bins take."""
    return pool_blocks(active, threads) * (BLOCK * number.itemsize + 12) + active // 8 + threads * 2 * 8 * (ROW + 8)


def bucketer(c):
    """`bucket(value, width)`: `width` is how far to shift an integer, or what to multiply a real value by."""
    real = c.real

    @inlined
    def bucket(value, width):
        if real:
            x = np.float64(value) * width
            if not x > 0.0:
                return np.uint64(0)
            return np.uint64(min(x, TOP))
        return np.uint64(value) >> width

    return bucket


@inlined
def open_block(k, head, free, after, meter):
    """Put an empty block before those of bin `k`; whether there was one."""
    block = free[_ZERO]
    if block != _ZERO:
        free[_ZERO] = np.uint64(after[block])
    else:
        block = np.uint64(atomic_add(meter, NEXT, ONE))
        if block >= np.uint64(after.size):
            return False
    after[block] = head[k]
    head[k] = block
    return True


@inlined
def put(v, bucket, head, count, free, bins):
    """Let a vertex wait in its bucket's bin; `head`, `count` and `free` are those of the thread."""
    meter = bins.meter
    k = min(bucket - meter[BASE], _NEAR)
    at = count[k] & _PART
    if at == _ZERO and not open_block(k, head, free, bins.after, meter):
        set_bit(bins.spare, v)
        meter[DRY] = ONE
    else:
        bins.entries[head[k] * _BLOCK + at] = v
        count[k] += ONE


def relaxer(c):
    """Relax the arcs of the vertices among the entries `lo` to `hi` whose value is not below the current bucket."""
    load, emit, edge, arc_values, bucket = c.load, c.emit, c.edge, c.arc_values, bucketer(c)

    def relax(lo, hi, width, offsets, neighbours, columns, state, reads, p, head, count, free, bins):
        field, entries, meter = state[0], bins.entries, bins.meter
        kind, now, base = field.dtype.type, meter[NOW], meter[BASE]
        for i in range(lo, hi):
            u = np.uint64(entries[i])
            if bucket(field[u], width) < now:
                continue
            message = kind(emit(load(state, reads, u, u, _ZERO), p))
            for a in range(np.uint64(offsets[u]), np.uint64(offsets[u + ONE])):
                v = np.uint64(neighbours[a])
                new = kind(edge(message, arc_values(columns, a), p))
                old = field[v]
                while new < old:
                    if not atomic_swap(field, v, old, new):
                        old = atomic_load(field, v)
                        continue
                    # As `put` does; but each array given to a function is a reference counted, by all threads in turn.
                    # A bucket that is past would be an edge function's mistake: it must not lead out of the bins.
                    k = min(max(bucket(new, width), now) - base, _NEAR)
                    at = count[k] & _PART
                    if at == _ZERO and not open_block(k, head, free, bins.after, meter):
                        set_bit(bins.spare, v)
                        meter[DRY] = ONE
                    else:
                        entries[head[k] * _BLOCK + at] = v
                        count[k] += ONE
                    break

    return inlined(relax)


def together(c):
    """All threads take spans of the current bucket, then each what it made itself, if that is little."""
    relax, unpack = relaxer(c), c.unpack

    def together(worker, counter, width, offsets, neighbours, columns, state, reads, params, bins):
        p = unpack(params)
        head, count, free, meter = bins.head[worker], bins.count[worker], bins.free[worker], bins.meter
        k = meter[NOW] - meter[BASE]
        block, at, end, chain, mine = _ZERO, _ZERO, _ZERO, _ZERO, False
        while True:
            if not mine:
                i = np.uint64(atomic_add(counter, 0, ONE))
                if i >= meter[WORK] * _SPANS:
                    mine = True
                    continue
                block = i // _SPANS
                at = i % _SPANS * _SPAN
                end = min(at + _SPAN, np.uint64(bins.fill[block]))
                first = np.uint64(bins.work[block]) * _BLOCK
                if at >= end:
                    continue
            else:
                if chain == _ZERO:
                    if count[k] == _ZERO or count[k] >= _FUSE:
                        return
                    chain, at, end = head[k], _ZERO, ((count[k] - ONE) & _PART) + ONE
                    head[k], count[k] = _ZERO, _ZERO
                first = chain * _BLOCK
            relax(
                first + at, first + end, width, offsets, neighbours, columns, state, reads, p, head, count, free, bins
            )
            if mine:
                then = np.uint64(bins.after[chain])
                bins.after[chain] = free[_ZERO]
                free[_ZERO] = chain
                chain, end = then, _BLOCK

    return together


@inlined
def give_back(bins):
    """Share the blocks of the work that is done out to the threads."""
    threads = np.uint64(bins.free.shape[0])
    for i in range(bins.meter[WORK]):
        block, t = np.uint64(bins.work[i]), np.uint64(i) % threads
        bins.after[block] = bins.free[t, _ZERO]
        bins.free[t, _ZERO] = block
    bins.meter[WORK] = _ZERO


@inlined
def take_out(k, bins):
    """Make bin `k` of all threads the work; how many entries it has."""
    n, entries = _ZERO, _ZERO
    for t in range(np.uint64(bins.head.shape[0])):
        block, count = bins.head[t, k], bins.count[t, k]
        entries += count
        fill = ((count - ONE) & _PART) + ONE
        while block != _ZERO:
            bins.work[n], bins.fill[n] = block, fill
            n += ONE
            fill, block = _BLOCK, np.uint64(bins.after[block])
        bins.head[t, k], bins.count[t, k] = _ZERO, _ZERO
    bins.meter[WORK] = n
    return entries


def refiller(c):
    """Fill the bins anew after the pool ran dry, or at the start: each waiting vertex once."""
    bucket = bucketer(c)

    def refill(field, width, bins):
        meter, spare = bins.meter, bins.spare
        for k in range(_NEAR + ONE):
            take_out(np.uint64(k), bins)
            for j in range(meter[WORK]):
                first = np.uint64(bins.work[j]) * _BLOCK
                for i in range(first, first + np.uint64(bins.fill[j])):
                    set_bit(spare, np.uint64(bins.entries[i]))
        bins.free[:] = _ZERO
        meter[NEXT], meter[DRY], meter[WORK] = ONE, _ZERO, _ZERO
        head, count, free = bins.head[0], bins.count[0], bins.free[0]
        for w in range(np.uint64(spare.size)):
            word = spare[w]
            spare[w] = _ZERO
            while word:
                v = (w << SIX) + lowest_bit(word)
                word &= word - ONE
                at = bucket(field[v], width)
                if at >= meter[NOW]:
                    put(v, at, head, count, free, bins)

    return inlined(refill)


def mover(c):
    """Move the bins on to the buckets that lie further; whether there are any."""
    bucket = bucketer(c)

    def move_on(field, width, bins):
        meter = bins.meter
        if take_out(_NEAR, bins) == _ZERO:
            return False
        further = meter[BASE] + _NEAR
        least = ~_ZERO
        for j in range(meter[WORK]):
            first = np.uint64(bins.work[j]) * _BLOCK
            for i in range(first, first + np.uint64(bins.fill[j])):
                at = bucket(field[np.uint64(bins.entries[i])], width)
                if at >= further:
                    least = min(least, at)
        if least != ~_ZERO:
            meter[BASE], meter[NOW] = least, least
            head, count, free = bins.head[0], bins.count[0], bins.free[0]
            for j in range(meter[WORK]):
                first = np.uint64(bins.work[j]) * _BLOCK
                for i in range(first, first + np.uint64(bins.fill[j])):
                    v = np.uint64(bins.entries[i])
                    at = bucket(field[v], width)
                    if at >= further:
                        put(v, at, head, count, free, bins)
        give_back(bins)
        return least != ~_ZERO

    return inlined(move_on)


def advance(c):
    """Go to the next bucket that has entries, and run it here if it has at most `few` arcs, and the one after it; stop
    at one that has more. Returns (its entries, or 0 at the end; buckets run here)."""
    relax, refill, move_on, unpack = relaxer(c), refiller(c), mover(c), c.unpack

    def advance(few, width, offsets, neighbours, columns, state, reads, params, bins):
        p, meter = unpack(params), bins.meter
        head, count, free = bins.head[0], bins.count[0], bins.free[0]
        ran = _ZERO
        while True:
            give_back(bins)
            if meter[DRY] != _ZERO:
                refill(state[0], width, bins)
            found = False
            for k in range(meter[NOW] - meter[BASE], _NEAR):
                for t in range(np.uint64(bins.count.shape[0])):
                    found = found or bins.count[t, k] > _ZERO
                if found:
                    meter[NOW] = meter[BASE] + np.uint64(k)
                    break
            if not found:
                if move_on(state[0], width, bins) or meter[DRY] != _ZERO:
                    continue
                return _ZERO, ran
            entries, arcs = take_out(meter[NOW] - meter[BASE], bins), _ZERO
            for j in range(meter[WORK]):
                first = np.uint64(bins.work[j]) * _BLOCK
                for i in range(first, first + np.uint64(bins.fill[j])):
                    u = np.uint64(bins.entries[i])
                    arcs += np.uint64(offsets[u + ONE] - offsets[u])
                if arcs > few:
                    return entries, ran
            for j in range(meter[WORK]):
                first = np.uint64(bins.work[j]) * _BLOCK
                relax(
                    first, first + np.uint64(bins.fill[j]), width, offsets, neighbours, columns, state, reads, p,
                    head, count, free, bins,
                )  # fmt: skip
            ran += ONE

    return advance


def select(c):
    """The waiting vertices among the words `cuts[k]` to `cuts[k + 1]` whose field is below the limit go from `waiting`
    to `front`. Returns (how many, the least field of those that stay)."""
    which, lanes = c.field, c.lanes

    def select(counter, cuts, waiting, lo, hi, near, state, limit, most, front):
        field = state[which]
        chosen, least = _ZERO, most
        while True:
            k = atomic_add(counter, 0, ONE)
            if k + ONE >= np.uint64(cuts.size):
                return chosen, least
            for w in range(cuts[k], cuts[k + ONE]):
                word, below = masked(waiting, w, lo, hi), _ZERO
                while word:
                    bit = lowest_bit(word)
                    word &= word - ONE
                    at = (w << SIX) + bit - near
                    value = most
                    if lanes > 1:
                        for j in range(np.uint64(lanes)):
                            value = min(value, field[at, j])
                    else:
                        value = field[at]
                    if value < limit:
                        below |= ONE << bit
                        chosen += ONE
                    else:
                        least = min(least, value)
                if below:
                    waiting[w] &= ~below
                    front[w] |= below

    return select
