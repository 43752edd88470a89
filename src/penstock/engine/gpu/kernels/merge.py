"""Templates that put together what several devices found. See `combine`."""

from __future__ import annotations

import numpy as np

from penstock.engine.gpu.kernels.combine import TALLY
from penstock.memory.gpu import cuda


def merge_totals(c):
    """Combine the totals of the `count` slots from `lo` on with another device's, which begin at its first."""
    of_total, set_total, combine, kind, zero = c.of_total, c.set_total, c.combine, c.kind, c.zero
    frontier, lanes = c.frontier, c.lanes

    def merge_totals(lo, count, totals, touched, theirs, their_touched):
        i = np.uint32(cuda.grid(1))
        if i >= count:
            return
        n = np.uint32(lo + i)
        if frontier:
            if their_touched[i] == 0:
                return
            touched[n] = np.uint8(1)
        for j in range(lanes):
            # Where nothing arrived its zero is left, which is not always a contribution that changes nothing.
            other = of_total(theirs, i, j)
            if other != zero:
                mine = of_total(totals, n, j)
                if mine != zero:
                    other = kind(combine(mine, other))
                set_total(totals, n, j, other)

    return merge_totals


def add_tallies(block):
    """Add up the tallies of all devices. No program is in it."""

    def add_tallies(tallies, scalars):
        if cuda.grid(1) == 0:
            total = 0.0
            for k in range(tallies.size):
                total += tallies[k]
            scalars[TALLY] = total

    return add_tallies
