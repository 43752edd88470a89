"""The ledger of key-value work: arrays made anywhere are counted once, from when they are known to their last view."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from penstock.memory.ledger import Ledger, Shape


def root_of(array: np.ndarray) -> np.ndarray:
    """The array that holds the memory; while any view lives, it does."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


class Account(Ledger):
    """A ledger that knows which arrays it counts, so that a chunk may be made of them or of others."""

    def __init__(self, limit: int, setting: str = "memory_limit") -> None:
        super().__init__(limit, setting)
        self._known: dict[int, weakref.ref[np.ndarray]] = {}
        self._tidy_at = 1024

    def empty(self, shape: Shape, dtype: Any, what: str) -> np.ndarray:
        array = super().empty(shape, dtype, what)
        self._know(root_of(array))
        return array

    def zeros(self, shape: Shape, dtype: Any, what: str) -> np.ndarray:
        array = super().zeros(shape, dtype, what)
        self._know(root_of(array))
        return array

    def adopt(self, array: np.ndarray, what: str) -> None:
        """Count an array made elsewhere, unless it is counted already, until its last view is gone."""
        root = root_of(array)
        if not root.nbytes or self.counts(root):
            return
        reservation = self.reserve(root.nbytes, what)
        # As in the ledger itself: the collector may run under our lock, so the bytes wait for the next caller.
        weakref.finalize(root, self._dead.append, reservation).atexit = False
        self._know(root)

    def counts(self, array: np.ndarray) -> bool:
        """Whether the memory of this array is in the account."""
        root = root_of(array)
        known = self._known.get(id(root))
        return known is not None and known() is root

    def _know(self, root: np.ndarray) -> None:
        if len(self._known) >= self._tidy_at:
            self._known = {number: ref for number, ref in self._known.copy().items() if ref() is not None}
            self._tidy_at = max(1024, 2 * len(self._known))
        self._known[id(root)] = weakref.ref(root)


__all__ = ["Account", "root_of"]
