"""Kernels around the radix sort of a GPU: payload fetched by its order, and cuts at splitters."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from penstock.memory import gpu
from penstock.memory.fingerprint import fingerprint
from penstock.memory.gpu import cuda

BLOCK = 8 if gpu.SIMULATED else 256


def gather(source, order, target, count):
    """`target[i] = source[order[i]]`."""
    i = np.uint64(cuda.grid(1))
    if i < count:
        target[i] = source[order[i]]


def gather_wide(source, order, target, count, words):
    """The same for rows of several words, one thread for each word."""
    i = np.uint64(cuda.grid(1))
    if i < count * words:
        row = i // words
        target[i] = source[order[row] * words + (i - row * words)]


def cut(keys, count, splitters, cuts, bounds):
    """How many of the sorted keys are below each splitter."""
    k = np.uint64(cuda.grid(1))
    if k < cuts:
        wanted = splitters[k]
        low, high = np.uint64(0), np.uint64(count)
        while low < high:
            middle = (low + high) >> np.uint64(1)
            if keys[middle] < wanted:
                low = middle + np.uint64(1)
            else:
                high = middle
        bounds[k] = np.int64(low)


@functools.cache
def launcher(function: Any) -> gpu.Launcher:
    return gpu.Launcher(gpu.template_kernel(function, fingerprint("sorting", function)))


def blocks(threads: int) -> int:
    return max(1, -(-threads // BLOCK))


__all__ = ["BLOCK", "blocks", "cut", "gather", "gather_wide", "launcher"]
