"""Names for the sets of a partition: each is called by its vertex of the smallest id, whatever vertex stood for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.engine.kernels.bits import LOW, ONE, SIX, count, has, words_for
from penstock.memory.buffers import allocated_size
from penstock.memory.device import atomic_add, atomic_load, atomic_swap, kernel

if TYPE_CHECKING:
    from penstock.engine.engine import Engine
    from penstock.store.reader import Store

_CHUNK = 1 << 14
_READ = 1 << 18
"""Ids that a thread reads at a time: whole blocks of their file."""


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


@kernel()
def _least_ids(counter, chunk, users, representative):
    """The same for sets that their lowest-numbered vertex stands for, by one look at each id: what stands in its own
    place, or above it, is the set's vertex of the smallest id so far. Returns how many sets begin here."""
    n, sets = np.uint64(representative.size), 0
    while True:
        lo = atomic_add(counter, 0, chunk)
        if lo >= n:
            return sets
        for v in range(lo, min(lo + chunk, n)):
            r = np.uint64(representative[v])
            if r >= v:
                sets += 1
                continue
            best = representative[r]
            while users[v] < users[best] and not atomic_swap(representative, r, best, representative.dtype.type(v)):
                best = atomic_load(representative, r)


@kernel()
def _follow_lowest(counter, chunk, representative):
    """Give each vertex what its set's lowest-numbered vertex has; that one keeps it."""
    n = np.uint64(representative.size)
    while True:
        lo = atomic_add(counter, 0, chunk)
        if lo >= n:
            return
        for v in range(lo, min(lo + chunk, n)):
            if np.uint64(representative[v]) < v:
                representative[v] = representative[representative[v]]


class Representatives:
    """Made before a run, so that its bitmap is in the budget; used after it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.elected = engine.vectors.make(words_for(engine.store.active), np.uint64, "representatives")

    @staticmethod
    def needed(store: Store) -> int:
        """Bytes that it holds during a run."""
        return allocated_size(8 * words_for(store.active))

    def give(self, representative: np.ndarray, *, lowest: bool = False) -> int:
        """Change what stands for each active vertex's set, by slot, to the set's vertex of the smallest id; returns
        how many sets there are. One that stands for a set stands for itself; `lowest`: it is its lowest-numbered."""
        active, ids = self.engine.store.active, self.engine.store.ids
        mine = representative[:active]
        if lowest and self.engine.ids is not None:
            return self._least(self.engine.ids, mine)
        if lowest and ids.kind != "string" and self.engine.ledger.free >= 2 * ids.values.dtype.itemsize * active:
            # Ids in the order of numbers are read from first to last; numbers in the order of ids jump about.
            with self.engine.ledger.scope("ids") as scope:
                users = scope.empty(active, ids.values.dtype)
                pieces = iter(range(0, active, _READ))

                def read(worker: int) -> None:
                    for lo in pieces:
                        ids.values.read(lo, min(lo + _READ, active), out=users[lo : lo + _READ])

                self.engine.team.run(read, alone=active <= _READ)
                return self._least(users, mine)
        self.elected[:] = 0
        for numbers in ids.order.pieces():
            _elect(numbers, mine, self.elected)
        counter = np.zeros(1, np.uint64)
        self.engine.team.run(lambda worker: _follow(counter, np.uint64(_CHUNK), mine, self.elected))
        return int(count(self.elected))

    def _least(self, users: np.ndarray, mine: np.ndarray) -> int:
        chunk, run = np.uint64(_CHUNK), self.engine.team.run
        begun, counter = np.zeros(1, np.uint64), np.zeros(1, np.uint64)
        sets = sum(run(lambda worker: _least_ids(begun, chunk, users, mine)))
        run(lambda worker: _follow_lowest(counter, chunk, mine))
        return int(sets)


__all__ = ["Representatives"]
