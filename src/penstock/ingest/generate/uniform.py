"""The uniform random graph of Erdos and Renyi, G(n, m): each end of each edge is any vertex, drawn with replacement."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.errors import UsageError
from penstock.ingest.generate.generated import GeneratedSource
from penstock.options import whole

STREAM = 2


class UniformSource(GeneratedSource):
    """`edges` edges over `vertices` vertices (any number); self-loops and duplicates occur as chance has it."""

    repeats = True

    def __init__(self, *, vertices: int, edges: int, seed: int = 1, weights: Any = None) -> None:
        count, total = whole("vertices", vertices, 0), whole("edges", edges, 0)
        if count == 0 and total:
            raise UsageError("uniform: a graph without vertices has no edges: give vertices >= 1")
        super().__init__(f"uniform graph of {count} vertices", count, total, seed=seed, weights=weights)

    def fill(self, first: int, source: np.ndarray, target: np.ndarray) -> None:
        from penstock.ingest.generate.draws import uniform_ends
        from penstock.ingest.generate.random import stream_key

        key = stream_key(self.seed, STREAM)
        uniform_ends(source, target, key, np.uint64(first), np.uint64(self.vertex_count))


__all__ = ["UniformSource"]
