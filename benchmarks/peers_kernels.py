"""The loops of FastSV6 that LAGraph writes in C, compiled: GraphBLAS has no operation for them."""

from __future__ import annotations

import numpy as np

from penstock.memory.device import parallel_kernel, prange


@parallel_kernel()
def first_entries(indptr, indices, starts, kept):
    """The first entries of every row, as many as starts leaves room for."""
    for i in prange(starts.size - 1):
        for k in range(starts[i + 1] - starts[i]):
            kept[starts[i] + np.uint64(k)] = np.uint64(indices[indptr[i] + np.int64(k)])


@parallel_kernel()
def outside_sizes(indptr, indices, parent, key, sizes):
    """How many entries `outside_entries` keeps of each row."""
    for i in prange(sizes.size):
        size = inside = 0
        if parent[i] != key:
            for k in range(indptr[i], indptr[i + 1]):
                if parent[indices[k]] == key:
                    inside = 1
                else:
                    size += 1
        sizes[i] = size + inside


@parallel_kernel()
def outside_entries(indptr, indices, parent, key, starts, kept):
    """The rows outside component `key`; all their entries inside it become one, at the key itself."""
    for i in prange(starts.size - 1):
        if starts[i] == starts[i + 1]:
            continue
        at = starts[i]
        for k in range(indptr[i], indptr[i + 1]):
            if parent[indices[k]] != key:
                kept[at] = np.uint64(indices[k])
                at += np.uint64(1)
        if at < starts[i + 1]:
            kept[at] = np.uint64(key)
