"""Templates of the combine form. Each makes a kernel around a program's functions, given as `c`:

    load(state, reads, i, n, j) -> v     store(state, i, j, new)      unpack(params) -> p     awake(new) -> bool
    arc_values(columns, a) -> e          emit(v, p)   edge(message, e, p)   combine(a, b)     update(v, total, p)
    wants(v, p)   tally(v, p)   change(v, new, p)   fold(a, b)   into(totals, i, value)
    store_arc(columns, a, new) -> the contribution in what `edge` returned; keeps the rest in the arc's fields, if any

and constants `frontier`, `ranged`, `wanted`, `first`, `numbered`, `zero`, `kept` (arcs have fields). State is
addressed as `number - near`, what lies at the other end of an arc as `number - far`. Chunks of vertices or words are
taken from a counter, so that one kernel serves a page and, on several threads, the whole graph.
"""

from __future__ import annotations

import numpy as np

from penstock.engine.kernels.bits import LOW, ONE, SIX, has, masked, set_bit
from penstock.memory.device import atomic_add, atomic_or, inlined, lowest_bit


def initialise(c):
    """Give the slots `lo` to `hi` their first state; the active ones get their bit. Returns how many became active."""
    load, store, unpack, init, awake, frontier = c.load, c.store, c.unpack, c.init, c.awake, c.frontier

    def initialise(lo, hi, near, state, reads, params, front, seed):
        p = unpack(params)
        active = np.uint64(0)
        for n in range(lo, hi):
            new = init(load(state, reads, n - near, n, np.uint64(0), seed), p)
            store(state, n - near, np.uint64(0), new)
            if frontier and awake(new):
                active += np.uint64(set_bit(front, n))
        return active

    return initialise


def emit(c):
    """The messages of the slots `cuts[k]` to `cuts[k + 1]`; returns their tally."""
    load, unpack, tally, emit, numbered, tallied = c.load, c.unpack, c.tally, c.emit, c.numbered, c.tallied

    def emit_all(counter, cuts, near, state, reads, params, message):
        p = unpack(params)
        total = 0.0
        while True:
            k = atomic_add(counter, 0, ONE)
            if k + ONE >= np.uint64(cuts.size):
                return total
            for i in range(cuts[k], cuts[k + ONE]):
                v = load(state, reads, i, near + i, np.uint64(0))
                if not numbered:
                    message[i] = emit(v, p)
                if tallied:
                    total += tally(v, p)

    return emit_all


def emit_active(c):
    """The messages of the active vertices among the words `cuts[k]` to `cuts[k + 1]`."""
    load, unpack, emit = c.load, c.unpack, c.emit

    def emit_active(counter, cuts, front, lo, hi, near, state, reads, params, message):
        p = unpack(params)
        while True:
            k = atomic_add(counter, 0, ONE)
            if k + ONE >= np.uint64(cuts.size):
                return
            for w in range(cuts[k], cuts[k + ONE]):
                word = masked(front, w, lo, hi)
                while word:
                    n = (w << SIX) + lowest_bit(word)
                    word &= word - ONE
                    message[n - near] = emit(load(state, reads, n - near, n, np.uint64(0)), p)

    return emit_active


def gatherer(c):
    """(total, whether anything arrived) over the arcs `begin` to `end`."""
    combine, edge, arc_values, store_arc, zero = c.combine, c.edge, c.arc_values, c.store_arc, c.zero
    frontier, ranged, numbered, first, loops = c.frontier, c.ranged, c.numbered, c.first, c.loops
    kind = type(c.zero)  # else narrow numbers would widen as they add up, and wrap only where totals are stored

    def gather(n, neighbours, begin, end, columns, message, far, front, p):
        total, hit = zero, False
        for a in range(begin, end):
            u = np.uint64(neighbours[a])
            if not loops and u == n:
                continue
            if ranged and u - far >= np.uint64(message.size):
                continue
            if frontier and not has(front, u):
                continue
            if frontier or first:
                hit = True
            if numbered:
                new = edge(neighbours[a], arc_values(columns, a), p)
                total = kind(combine(total, kind(store_arc(columns, a, new))))
            else:
                sent = edge(message[u - far], arc_values(columns, a), p)
                total = kind(combine(total, kind(store_arc(columns, a, sent))))
            if first:
                break
        return total, hit

    return inlined(gather, fastmath=c.fast)


def pull(c):
    """Gather and update each vertex of a block; returns (change, vertices now active)."""
    gather = gatherer(c)
    load, store, unpack, update, awake = c.load, c.store, c.unpack, c.update, c.awake
    wants, change, fold = c.wants, c.change, c.fold
    frontier, wanted, changing = c.frontier, c.wanted, c.changing

    def pull(
        counter, cuts, first, offsets, neighbours, columns, message, far, front, near, state, reads, params, after
    ):
        p = unpack(params)
        moved, active = 0.0, np.uint64(0)
        while True:
            k = atomic_add(counter, 0, ONE)
            if k + ONE >= np.uint64(cuts.size):
                return moved, active
            begin = np.uint64(offsets[cuts[k]])
            # Bits of neighbouring vertices are written together; other threads may share the first and the last word.
            word, at = np.uint64(0), (first + cuts[k]) >> SIX
            for i in range(cuts[k], cuts[k + ONE]):
                end = np.uint64(offsets[i + ONE])
                n = first + i
                old = load(state, reads, n - near, n, np.uint64(0))
                if wanted and not wants(old, p):
                    begin = end
                    continue
                total, hit = gather(n, neighbours, begin, end, columns, message, far, front, p)
                begin = end
                if frontier and not hit:
                    continue
                new = update(old, total, p)
                store(state, n - near, np.uint64(0), new)
                if changing:
                    moved = fold(moved, change(old, new, p))
                if frontier and awake(new):
                    active += ONE
                    if n >> SIX != at:
                        if word:
                            atomic_or(after, at, word)
                        word, at = np.uint64(0), n >> SIX
                    word |= ONE << (n & LOW)
            if frontier and word:
                atomic_or(after, at, word)

    return pull


def pull_totals(c):
    """Gather into the totals of a block's vertices, which are updated later: when other ranges or the other direction
    have added theirs."""
    gather = gatherer(c)
    load, unpack, wants, combine = c.load, c.unpack, c.wants, c.combine
    frontier, wanted, first_counts = c.frontier, c.wanted, c.first

    def pull_totals(
        counter,
        cuts,
        first,
        offsets,
        neighbours,
        columns,
        message,
        far,
        front,
        near,
        state,
        reads,
        params,
        totals,
        touched,
    ):
        p = unpack(params)
        while True:
            k = atomic_add(counter, 0, ONE)
            if k + ONE >= np.uint64(cuts.size):
                return
            begin = np.uint64(offsets[cuts[k]])
            for i in range(cuts[k], cuts[k + ONE]):
                end = np.uint64(offsets[i + ONE])
                n = first + i
                if wanted and not wants(load(state, reads, n - near, n, np.uint64(0)), p):
                    begin = end
                    continue
                total, hit = gather(n, neighbours, begin, end, columns, message, far, front, p)
                begin = end
                if (frontier or first_counts) and not hit:
                    continue
                if frontier:
                    set_bit(touched, n)
                totals[n - near] = combine(totals[n - near], total)

    return pull_totals


def part(c):
    """The total of one page of a large vertex: (total, whether anything arrived)."""
    gather, unpack = gatherer(c), c.unpack
    load, wants, wanted, zero = c.load, c.wants, c.wanted, c.zero

    def part(n, neighbours, columns, message, far, front, near, state, reads, params):
        p = unpack(params)
        if wanted and not wants(load(state, reads, n - near, n, np.uint64(0)), p):
            return zero, False
        return gather(n, neighbours, np.uint64(0), np.uint64(neighbours.size), columns, message, far, front, p)

    return part


def push(c):
    """Carry the messages of a block's active vertices to the other ends of their arcs, into totals there. In ranges the
    state is that of the other ends."""
    load, unpack, emit, edge, arc_values, wants, into = c.load, c.unpack, c.emit, c.edge, c.arc_values, c.wants, c.into
    numbered, ranged, wanted, frontier, loops = c.numbered, c.ranged, c.wanted, c.frontier, c.loops
    store_arc, asked = c.store_arc, c.ranged and c.wanted and c.kept

    def push(
        counter,
        cuts,
        first,
        offsets,
        neighbours,
        columns,
        sent,
        front,
        near,
        state,
        reads,
        params,
        far,
        totals,
        touched,
    ):
        p = unpack(params)
        kind = neighbours.dtype.type
        while True:
            k = atomic_add(counter, 0, ONE)
            if k + ONE >= np.uint64(cuts.size):
                return
            lo, hi = first + cuts[k], first + cuts[k + ONE]
            for w in range(lo >> SIX, (hi + LOW) >> SIX):
                word = masked(front, w, lo, hi)
                while word:
                    n = (w << SIX) + lowest_bit(word)
                    word &= word - ONE
                    if numbered:
                        message = kind(n)
                    elif ranged:
                        # Other ranges of the state may have been updated already: what was sent before that counts.
                        message = sent[n - near]
                    else:
                        message = sent.dtype.type(emit(load(state, reads, n - near, n, np.uint64(0)), p))
                    for a in range(np.uint64(offsets[n - first]), np.uint64(offsets[n - first + ONE])):
                        u = np.uint64(neighbours[a])
                        if not loops and u == n:
                            continue
                        if ranged and u - far >= np.uint64(totals.size):
                            continue
                        # In ranges whoever takes the total in asks: less state is touched. What an arc keeps cannot
                        # wait for that.
                        if asked and not wants(load(state, reads, u - far, u, np.uint64(0)), p):
                            continue
                        if not ranged and wanted and not wants(load(state, reads, u - near, u, np.uint64(0)), p):
                            continue
                        into(totals, u - far, store_arc(columns, a, edge(message, arc_values(columns, a), p)))
                        if frontier:
                            set_bit(touched, u)

    return push


def wanting(c):
    """Mark the vertices that want contributions, words `cuts[k]` to `cuts[k + 1]`; bits outside [lo, hi) stay clear."""
    load, unpack, wants = c.load, c.unpack, c.wants

    def wanting(counter, cuts, lo, hi, near, state, reads, params, found):
        p = unpack(params)
        while True:
            k = atomic_add(counter, 0, ONE)
            if k + ONE >= np.uint64(cuts.size):
                return
            for w in range(cuts[k], cuts[k + ONE]):
                word = np.uint64(0)
                for n in range(max(w << SIX, lo), min((w << SIX) + np.uint64(64), hi)):
                    if wants(load(state, reads, n - near, n, np.uint64(0)), p):
                        word |= ONE << (n & LOW)
                found[w] = word

    return wanting


def absorb(c):
    """Update the touched vertices among the words `cuts[k]` to `cuts[k + 1]`, and make totals and bits ready for the
    next superstep; returns (change, vertices now active)."""
    load, store, unpack, update, awake = c.load, c.store, c.unpack, c.update, c.awake
    wants, wanted, change, fold, changing, zero = c.wants, c.wanted, c.change, c.fold, c.changing, c.zero

    def absorb(counter, cuts, touched, lo, hi, near, state, reads, params, totals, after):
        p = unpack(params)
        moved, active = 0.0, np.uint64(0)
        while True:
            k = atomic_add(counter, 0, ONE)
            if k + ONE >= np.uint64(cuts.size):
                return moved, active
            for w in range(cuts[k], cuts[k + ONE]):
                word = masked(touched, w, lo, hi)
                woken = np.uint64(0)
                while word:
                    bit = lowest_bit(word)
                    n = (w << SIX) + bit
                    word &= word - ONE
                    total = totals[n - near]
                    totals[n - near] = zero
                    old = load(state, reads, n - near, n, np.uint64(0))
                    if wanted and not wants(old, p):
                        continue
                    new = update(old, total, p)
                    store(state, n - near, np.uint64(0), new)
                    if changing:
                        moved = fold(moved, change(old, new, p))
                    if awake(new):
                        active += ONE
                        woken |= ONE << bit
                if woken:
                    atomic_or(after, w, woken)

    return absorb


def update_all(c):
    """Update the slots `cuts[k]` to `cuts[k + 1]` of a window by their totals; returns their change."""
    load, store, unpack, update = c.load, c.store, c.unpack, c.update
    wants, wanted, change, fold, changing, zero = c.wants, c.wanted, c.change, c.fold, c.changing, c.zero

    def update_all(counter, cuts, near, state, reads, params, totals):
        p = unpack(params)
        moved = 0.0
        while True:
            k = atomic_add(counter, 0, ONE)
            if k + ONE >= np.uint64(cuts.size):
                return moved
            for i in range(cuts[k], cuts[k + ONE]):
                total = totals[i]
                totals[i] = zero
                old = load(state, reads, i, near + i, np.uint64(0))
                if wanted and not wants(old, p):
                    continue
                new = update(old, total, p)
                store(state, i, np.uint64(0), new)
                if changing:
                    moved = fold(moved, change(old, new, p))

    return update_all


def atomic_into(combine, name):
    """`into(totals, i, value)`: combine a value into a total that other threads write, too."""
    from penstock.memory.device import atomic_load, atomic_swap

    if name == "sum":

        @inlined
        def add(totals, i, value):
            atomic_add(totals, i, totals.dtype.type(value))

        return add

    @inlined
    def into(totals, i, value):
        old = totals[i]
        while True:
            new = totals.dtype.type(combine(old, totals.dtype.type(value)))
            # In most cases nothing changes: no write, no contention.
            if new == old or atomic_swap(totals, i, old, new):
                return
            old = atomic_load(totals, i)

    return into
