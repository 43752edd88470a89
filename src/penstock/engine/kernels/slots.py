"""Templates of what forms without a frontier do to each slot. The slots `cuts[k]` to `cuts[k + 1]` of a window that
begins at vertex `near` are taken from a counter."""

from __future__ import annotations

import numpy as np

from penstock.engine.kernels.bits import ONE
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
