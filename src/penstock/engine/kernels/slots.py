"""Templates of what forms without a frontier do to each slot, and what programs do that see no arcs. The slots
`cuts[k]` to `cuts[k + 1]` of a window that begins at vertex `near` are taken from a counter."""

from __future__ import annotations

import numpy as np

from penstock.engine.kernels.bits import ONE, SIX
from penstock.memory.device import atomic_add


def initialise(c):
    """Give slots their first state; `seed` is 1 + their place among the seeds, or 0."""
    load, store, unpack, init = c.load, c.store, c.unpack, c.init

    def initialise(counter, cuts, near, state, reads, params, seed):
        p = unpack(params)
        while True:
            k = atomic_add(counter, 0, ONE)
            if k + ONE >= np.uint64(cuts.size):
                return
            for i in range(cuts[k], cuts[k + ONE]):
                store(state, i, np.uint64(0), init(load(state, reads, i, near + i, np.uint64(0), seed), p))

    return initialise


def emit(c):
    """The messages of slots."""
    load, unpack, emit = c.load, c.unpack, c.emit

    def emit_all(counter, cuts, near, state, reads, params, message):
        p = unpack(params)
        while True:
            k = atomic_add(counter, 0, ONE)
            if k + ONE >= np.uint64(cuts.size):
                return
            for i in range(cuts[k], cuts[k + ONE]):
                message[i] = emit(load(state, reads, i, near + i, np.uint64(0)), p)

    return emit_all


def each(c):
    """Of the slots that are chosen: how many, what was measured, their new fields; and, where `members` has room for
    them, their bits. The cuts are those of whole words."""
    load, store, unpack, chosen, measure, update = c.load, c.store, c.unpack, c.chosen, c.measure, c.update
    fold, zero, kind, measuring, updating = c.fold, c.zero, c.kind, c.measuring, c.updating

    def each(counter, cuts, near, state, reads, params, members):
        p = unpack(params)
        total, count, marking = zero, np.uint64(0), members.size > 0
        while True:
            k = atomic_add(counter, 0, ONE)
            if k + ONE >= np.uint64(cuts.size):
                return count, total
            for i in range(cuts[k], cuts[k + ONE]):
                n = near + i
                v = load(state, reads, i, n, np.uint64(0))
                if not chosen(v, p):
                    continue
                count += ONE
                if marking:
                    members[n >> SIX] |= ONE << (n & np.uint64(63))
                if measuring:
                    total = fold(total, kind(measure(v, p)))
                if updating:
                    store(state, i, np.uint64(0), update(v, p))

    return each
