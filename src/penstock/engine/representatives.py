"""Names for the sets of a partition: each is called by its vertex of the smallest id, whatever vertex stood for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.engine.kernels.bits import LOW, ONE, SIX, count, has, words_for
from penstock.memory.device import atomic_add, kernel

if TYPE_CHECKING:
    from penstock.engine.engine import Engine

_CHUNK = 1 << 14


@kernel()
def _elect(order, representative, elected):
    """Go through vertices in order of their ids: the first of a set takes the place of the one that stood for it,
    whose bit is set."""
    for k in range(np.uint64(order.size)):
        v = np.uint64(order[k])
        if v >= np.uint64(representative.size) or has(elected, v):
            continue
        r = np.uint64(representative[v])
        if not has(elected, r):
            representative[r] = v
            elected[r >> SIX] |= ONE << (r & LOW)


@kernel()
def _follow(counter, chunk, representative, elected):
    """Give each vertex the one that was elected in its set; those that stood for theirs have it."""
    n = np.uint64(representative.size)
    while True:
        lo = atomic_add(counter, 0, chunk)
        if lo >= n:
            return
        for v in range(lo, min(lo + chunk, n)):
            if not has(elected, v):
                representative[v] = representative[representative[v]]


class Representatives:
    """Made before a run, so that its bitmap is in the budget; used after it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.elected = engine.vectors.make(words_for(engine.store.active), np.uint64, "representatives")

    def give(self, representative: np.ndarray) -> int:
        """Change what stands for each active vertex's set, by slot, to the set's vertex of the smallest id; returns
        how many sets there are. One that stands for a set stands for itself."""
        mine = representative[: self.engine.store.active]
        self.elected[:] = 0
        for numbers in self.engine.store.ids.order.pieces():
            _elect(numbers, mine, self.elected)
        counter = np.zeros(1, np.uint64)
        self.engine.team.run(lambda worker: _follow(counter, np.uint64(_CHUNK), mine, self.elected))
        return int(count(self.elected))


__all__ = ["Representatives"]
