"""Kernels of the benchmarks: in a module, so that they are compiled once and cached."""

from __future__ import annotations

import numpy as np

from penstock.memory.device import kernel


@kernel()
def touch(words):
    """Look at every word once."""
    total = np.uint64(0)
    for i in range(np.uint64(words.size)):
        total += np.uint64(words[i])
    return total
