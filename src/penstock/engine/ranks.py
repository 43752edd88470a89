"""Ranks of ids: the place of a vertex when all are sorted by id. Numbers that compare like the user's ids."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.engine.vectors import Slots
from penstock.memory.device import atomic_add, kernel

if TYPE_CHECKING:
    from penstock.engine.engine import Engine

_LEAST = 1 << 16
"""Ids that are held in any case."""
_CHUNK = 1 << 14


@kernel()
def _scatter(order, first, ranks, lo):
    """The ranks, from `first` on, of those of these vertices that lie in the window from `lo` on."""
    for k in range(np.uint64(order.size)):
        at = np.uint64(order[k]) - lo
        if at < np.uint64(ranks.size):
            ranks[at] = first + k


@kernel()
def _translate(counter, chunk, order, lo, ranks, numbers):
    """The numbers of the vertices whose ranks these are, as far as the piece of `order` from `lo` on knows them."""
    n = np.uint64(ranks.size)
    while True:
        begin = atomic_add(counter, 0, chunk)
        if begin >= n:
            return
        for i in range(begin, min(begin + chunk, n)):
            at = np.uint64(ranks[i]) - lo
            if at < np.uint64(order.size):
                numbers[i] = order[at]


def ranks(engine: Engine, dtype: Any, ranges: int = 1) -> np.ndarray:
    """The rank of each active vertex, by slot. In ranges it lies in a file and is made a window at a time."""
    count, active, order = Slots(engine.store).count, engine.store.active, engine.store.ids.order
    found = engine.vectors.make(count, dtype, "ranks", spilled=ranges > 1)
    for lo, hi in _windows(active, ranges):
        at = 0
        for numbers in order.pieces():
            _scatter(numbers, np.uint64(at), found[lo:hi], np.uint64(lo))
            at += len(numbers)
        if ranges > 1:
            engine.vectors.drop()
    return found


def from_ranks(engine: Engine, held: np.ndarray, ranges: int = 1) -> np.ndarray:
    """The numbers of the vertices that have these ranks, by slot; after the last program that reads arcs."""
    order, vector = engine.store.ids.order, held.nbytes if ranges == 1 else 0
    engine.make_room(vector + 2 * ranges * len(order) * order.dtype.itemsize)
    found = engine.vectors.make(len(held), held.dtype, "numbers", spilled=ranges > 1)
    # Ranks go anywhere: as much of the order as there is room for is held at a time.
    room = max(_LEAST, engine.ledger.free // 2 // ranges // order.dtype.itemsize)
    piece = engine.ledger.empty(min(len(order), room), order.dtype, "ids in order")
    for at in range(0, len(order), room):
        numbers, windows = order.read(at, at + room, out=piece), _windows(engine.store.active, ranges)
        for lo, hi in windows:
            counter = np.zeros(1, np.uint64)
            args = (counter, np.uint64(_CHUNK), numbers, np.uint64(at), held[lo:hi], found[lo:hi])
            engine.team.run(lambda worker, args=args: _translate(*args), alone=hi - lo <= _CHUNK)  # type: ignore[misc]
            if ranges > 1:
                engine.vectors.drop()
    return found


def _windows(count: int, ranges: int) -> Iterator[tuple[int, int]]:
    cuts = np.linspace(0, count, ranges + 1).astype(int).tolist()
    return pairwise(cuts)


__all__ = ["from_ranks", "ranks"]
