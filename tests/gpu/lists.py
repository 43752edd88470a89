"""Lists of neighbours that kernels of a GPU, real or simulated, put in order, beside what they should be."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from penstock.engine.gpu import lists
from penstock.engine.gpu.kernels.lists import NOTHING
from penstock.memory import gpu


def check_simplify(*, ways: bool, everyone: bool, lengths: list[int], most: int) -> None:
    """Lists of so many entries out of `most`: many of an entry twice and more, and some, if they are of everyone, u
    itself."""
    rng = np.random.default_rng(len(lengths) + most)
    starts = np.r_[0, np.cumsum(lengths)].astype(np.uint64)
    entries = np.concatenate([np.sort(rng.integers(0, most, length)) for length in lengths]).astype(np.uint32)
    if ways:
        entries = entries << np.uint32(2) | rng.integers(1, 3, len(entries)).astype(np.uint32)
    want = []
    for u, (a, end) in enumerate(pairwise(starts)):
        found: dict[int, int] = {}
        for entry in entries[a:end].tolist():
            neighbour = entry >> 2 if ways else entry
            if not (everyone and neighbour == u):
                found[neighbour] = found.get(neighbour, 0) | entry
        want.append(list(found.values()))
    begin, there = gpu.upload(starts), gpu.upload(entries)
    ends = gpu.upload(np.zeros(len(lengths), np.uint64))
    lists.plain("simplify", ways=ways, everyone=everyone)(
        gpu.Stream(null=True), -(-len(lengths) // lists.BLOCK), lists.BLOCK, np.uint32(len(lengths)), gpu.view(begin),
        gpu.view(ends), gpu.view(there),
    )  # fmt: skip
    entries, stops = gpu.download(there), gpu.download(ends)
    for (a, end), stop, mine in zip(pairwise(starts), stops, want, strict=True):
        assert entries[a:stop].tolist() == mine
        assert (entries[stop:end] == NOTHING).all()


SHAPES = {
    "short": ([0, 1, 5, 0, 32, 33, 40, 64, 0], 20),
    "few twice": ([700, 3, 0, 1300, 256, 257, 513], 100_000),
    "many twice": ([700, 3, 0, 1300, 256, 257, 513], 300),
    "all alike": ([600, 256, 1, 90], 1),
}
