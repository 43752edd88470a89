"""Whether a store holds parallel arcs: neighbours ascend within a vertex, so equal ones stand side by side."""

from __future__ import annotations

import numpy as np

from penstock.memory.device import kernel
from penstock.store.encodings import decode
from penstock.store.reader import Direction


@kernel()
def _repeats(offsets, neighbours):
    one = np.uint64(1)
    for v in range(np.uint64(offsets.size - 1)):
        for a in range(np.uint64(offsets[v]) + one, np.uint64(offsets[v + one])):
            if neighbours[a] == neighbours[a - one]:
                return True
    return False


def has_parallel(direction: Direction) -> bool:
    """Read the pages until two arcs have the same ends."""
    scratch, home = direction.scratch(), direction.home
    vertex, last = -1, -1
    for page in range(len(direction)):
        block = decode(direction.read_page(page), direction.records[page], home, scratch)
        if not len(block.neighbours):
            continue
        # A large vertex goes on in the next page.
        if block.first_vertex == vertex and int(block.neighbours[0]) == last:
            return True
        if _repeats(block.offsets, block.neighbours):
            return True
        vertex, last = block.first_vertex + len(block.offsets) - 2, int(block.neighbours[-1])
    return False
