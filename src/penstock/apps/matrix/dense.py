"""Kernels of Floyd-Warshall."""

from __future__ import annotations

import numpy as np

from penstock.memory.device import kernel


@kernel()
def relax_columns(columns, through, k, out):
    """Each column of distances, by way of vertex k: `through` is column k."""
    for j in range(np.uint64(columns.shape[0])):
        step = columns[j, k]
        if step == np.inf:
            continue
        for i in range(np.uint64(columns.shape[1])):
            way = through[i] + step
            out[j, i] = min(out[j, i], way)


@kernel(fastmath={"nsz"})
def relax_block(distance, rows, columns, middle):
    """The distances of a block of rows and columns, by way of the vertices of a third range."""
    for k in range(np.uint64(middle[0]), np.uint64(middle[1])):
        for i in range(np.uint64(rows[0]), np.uint64(rows[1])):
            step = distance[i, k]
            for j in range(np.uint64(columns[0]), np.uint64(columns[1])):
                way = step + distance[k, j]
                distance[i, j] = min(distance[i, j], way)


__all__ = ["relax_block", "relax_columns"]
