"""Templates of the combine form for several lanes: state, messages and totals are (vertices, lanes). All lanes share
each arc; a vertex is active when one of its lanes is. See `combine` for the names."""

from __future__ import annotations

import numpy as np

from penstock.engine.kernels.bits import LOW, ONE, SIX, has, masked, set_bit
from penstock.memory.device import atomic_add, atomic_or, lowest_bit


def initialise(c):
    """Give the slots `lo` to `hi` their first state; returns how many are active."""
    load, store, unpack, init, awake, frontier = c.load, c.store, c.unpack, c.init, c.awake, c.frontier
    lanes = np.uint64(c.lanes)

    def initialise(lo, hi, near, state, reads, params, front, seed):
        p = unpack(params)
        active = np.uint64(0)
        for n in range(lo, hi):
            woken = False
            for j in range(lanes):
                new = init(load(state, reads, n - near, n, j, seed), p)
                store(state, n - near, j, new)
                woken = woken or awake(new)
            if frontier and woken:
                active += np.uint64(set_bit(front, n))
        return active

    return initialise


def emit(c):
    """The messages of the slots `cuts[k]` to `cuts[k + 1]`; returns their tally."""
    load, unpack, tally, emit, numbered, tallied = c.load, c.unpack, c.tally, c.emit, c.numbered, c.tallied
    lanes = np.uint64(c.lanes)

    def emit_all(counter, cuts, near, state, reads, params, message):
        p = unpack(params)
        total = 0.0
        while True:
            k = atomic_add(counter, 0, ONE)
            if k + ONE >= np.uint64(cuts.size):
                return total
            for i in range(cuts[k], cuts[k + ONE]):
                for j in range(lanes):
                    v = load(state, reads, i, near + i, j)
                    if not numbered:
                        message[i, j] = emit(v, p)
                    if tallied:
                        total += tally(v, p)

    return emit_all


def emit_active(c):
    """The messages of the active vertices among the words `cuts[k]` to `cuts[k + 1]`."""
    load, unpack, emit = c.load, c.unpack, c.emit
    lanes = np.uint64(c.lanes)

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
                    for j in range(lanes):
                        message[n - near, j] = emit(load(state, reads, n - near, n, j), p)

    return emit_active


def pull_totals(c):
    """Gather into the totals of a block's vertices."""
    load, unpack, wants, combine, edge, arc_values = c.load, c.unpack, c.wants, c.combine, c.edge, c.arc_values
    frontier, wanted, ranged, loops, lanes = c.frontier, c.wanted, c.ranged, c.loops, np.uint64(c.lanes)
    numbered, kind = c.numbered, type(c.zero)

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
            for i in range(cuts[k], cuts[k + ONE]):
                n = first + i
                if wanted:
                    wishes = False
                    for j in range(lanes):
                        wishes = wishes or wants(load(state, reads, n - near, n, j), p)
                    if not wishes:
                        continue
                row = totals[n - near]
                hit = False
                for a in range(np.uint64(offsets[i]), np.uint64(offsets[i + ONE])):
                    u = np.uint64(neighbours[a])
                    if not loops and u == n:
                        continue
                    if ranged and u - far >= np.uint64(message.shape[0]):
                        continue
                    if frontier:
                        if not has(front, u):
                            continue
                        hit = True
                    e = arc_values(columns, a)
                    for j in range(lanes):
                        if numbered:
                            row[j] = combine(row[j], kind(edge(neighbours[a], e, p)))
                        else:
                            row[j] = combine(row[j], kind(edge(message[u - far, j], e, p)))
                if frontier and hit:
                    set_bit(touched, n)

    return pull_totals


def part(c):
    """Add one page of a large vertex to a row of totals of its own; returns whether anything arrived."""
    unpack, combine, edge, arc_values = c.unpack, c.combine, c.edge, c.arc_values
    frontier, ranged, loops, lanes = c.frontier, c.ranged, c.loops, np.uint64(c.lanes)
    numbered, kind = c.numbered, type(c.zero)

    def part(n, neighbours, columns, message, far, front, near, state, reads, params, row):
        p = unpack(params)
        hit = False
        for a in range(np.uint64(neighbours.size)):
            u = np.uint64(neighbours[a])
            if not loops and u == n:
                continue
            if ranged and u - far >= np.uint64(message.shape[0]):
                continue
            if frontier:
                if not has(front, u):
                    continue
                hit = True
            e = arc_values(columns, a)
            for j in range(lanes):
                if numbered:
                    row[j] = combine(row[j], kind(edge(neighbours[a], e, p)))
                else:
                    row[j] = combine(row[j], kind(edge(message[u - far, j], e, p)))
        return hit

    return part


def push(c):
    """Carry the messages of a block's active vertices to the other ends of their arcs."""
    unpack, edge, arc_values, into = c.unpack, c.edge, c.arc_values, c.into
    ranged, frontier, loops, lanes = c.ranged, c.frontier, c.loops, np.uint64(c.lanes)
    numbered = c.numbered

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
                    for a in range(np.uint64(offsets[n - first]), np.uint64(offsets[n - first + ONE])):
                        u = np.uint64(neighbours[a])
                        if not loops and u == n:
                            continue
                        if ranged and u - far >= np.uint64(totals.shape[0]):
                            continue
                        e = arc_values(columns, a)
                        there = totals[u - far]
                        for j in range(lanes):
                            if numbered:
                                into(there, j, edge(kind(n), e, p))
                            else:
                                into(there, j, edge(sent[n - near, j], e, p))
                        if frontier:
                            set_bit(touched, u)

    return push


def wanting(c):
    """Mark the vertices one of whose lanes wants contributions."""
    load, unpack, wants, lanes = c.load, c.unpack, c.wants, np.uint64(c.lanes)

    def wanting(counter, cuts, lo, hi, near, state, reads, params, found):
        p = unpack(params)
        while True:
            k = atomic_add(counter, 0, ONE)
            if k + ONE >= np.uint64(cuts.size):
                return
            for w in range(cuts[k], cuts[k + ONE]):
                word = np.uint64(0)
                for n in range(max(w << SIX, lo), min((w << SIX) + np.uint64(64), hi)):
                    for j in range(lanes):
                        if wants(load(state, reads, n - near, n, j), p):
                            word |= ONE << (n & LOW)
                found[w] = word

    return wanting


def absorb(c):
    """Update the touched vertices among the words `cuts[k]` to `cuts[k + 1]`; returns (change, vertices now active)."""
    load, store, unpack, update, awake = c.load, c.store, c.unpack, c.update, c.awake
    wants, wanted, change, fold, changing, zero = c.wants, c.wanted, c.change, c.fold, c.changing, c.zero
    lanes = np.uint64(c.lanes)

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
                    for j in range(lanes):
                        total = totals[n - near, j]
                        totals[n - near, j] = zero
                        old = load(state, reads, n - near, n, j)
                        if wanted and not wants(old, p):
                            continue
                        new = update(old, total, p)
                        store(state, n - near, j, new)
                        if changing:
                            moved = fold(moved, change(old, new, p))
                        if awake(new):
                            woken |= ONE << bit
                    active += (woken >> bit) & ONE
                if woken:
                    atomic_or(after, w, woken)

    return absorb


def update_all(c):
    """Update the slots `cuts[k]` to `cuts[k + 1]` of a window by their totals; returns their change."""
    load, store, unpack, update = c.load, c.store, c.unpack, c.update
    wants, wanted, change, fold, changing, zero = c.wants, c.wanted, c.change, c.fold, c.changing, c.zero
    lanes = np.uint64(c.lanes)

    def update_all(counter, cuts, near, state, reads, params, totals):
        p = unpack(params)
        moved = 0.0
        while True:
            k = atomic_add(counter, 0, ONE)
            if k + ONE >= np.uint64(cuts.size):
                return moved
            for i in range(cuts[k], cuts[k + ONE]):
                for j in range(lanes):
                    total = totals[i, j]
                    totals[i, j] = zero
                    old = load(state, reads, i, near + i, j)
                    if wanted and not wants(old, p):
                        continue
                    new = update(old, total, p)
                    store(state, i, j, new)
                    if changing:
                        moved = fold(moved, change(old, new, p))

    return update_all
