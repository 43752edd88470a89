"""Are there duplicate edges? A sample tells before the work, and costs nothing next to sorting all of them."""

from __future__ import annotations

import numpy as np

from penstock.memory.device import kernel

PIECE = 1 << 16
RATE = 6
"""One edge in 2**6 at first; fewer when there are many."""


@kernel()
def _choose(source, target, symmetric, rate, out):
    """The keys whose hash begins with `rate` zero bits: all copies of an edge are chosen, or none."""
    count = 0
    for i in range(np.uint64(source.size)):
        u, v = np.uint64(source[i]), np.uint64(target[i])
        if symmetric and v < u:
            u, v = v, u
        key = u << np.uint64(32) | v
        if (key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - rate) == np.uint64(0):
            out[count] = key
            count += 1
    return count


class RepeatSample:
    """Collects the sampled edges. Few duplicates may slip through: the caller must notice them later."""

    def __init__(self, symmetric: bool, memory: int) -> None:
        self._symmetric, self._rate = symmetric, RATE
        self._most = max(1 << 14, min(1 << 20, memory // 32))  # keys, with two copies of them while they are thinned
        self._keys: list[np.ndarray] = []
        self._count = 0
        self._found = False

    def add(self, source: np.ndarray, target: np.ndarray) -> None:
        """Look at edges."""
        for at in range(0, 0 if self._found else len(source), PIECE):
            part = slice(at, at + PIECE)
            out = np.empty(len(source[part]), np.uint64)
            count = _choose(source[part], target[part], self._symmetric, self._rate, out)
            self._keys.append(out[:count].copy())
            self._count += count
            while self._count > self._most:
                self._thin()

    def _thin(self) -> None:
        if self.found():  # thinning never separates the copies of one edge
            self._keys, self._count, self._found = [], 0, True
            return
        self._rate += 1
        keys = np.concatenate(self._keys)
        hashed = (keys * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - self._rate)
        self._keys = [keys[hashed == 0]]
        self._count = len(self._keys[0])

    def found(self) -> bool:
        """Whether two of the sampled edges are the same."""
        keys = np.sort(np.concatenate([np.zeros(0, np.uint64), *self._keys]))
        return self._found or bool((keys[1:] == keys[:-1]).any())
