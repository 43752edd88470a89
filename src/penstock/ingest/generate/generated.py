"""Edges made, not read: edge number `i` is a function of `i`, so any range of edges can be made by any thread."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import UsageError
from penstock.ingest.generate.weights import Weights
from penstock.ingest.pipeline import in_flight, ordered
from penstock.ingest.source import EdgeChunk, EdgeSource, VertexTable
from penstock.options import whole

# Larger chunks leave the cache and make nothing faster.
LARGEST_CHUNK = 1 << 20


class GeneratedSource(EdgeSource):
    """A graph with `edge_count` edges over the vertices 0 .. `vertex_count` - 1."""

    def __init__(
        self,
        name: str,
        vertex_count: int,
        edge_count: int,
        *,
        seed: int = 1,
        weights: Any = None,
        undirected: bool | None = None,
    ) -> None:
        if edge_count >= 1 << 63 or vertex_count >= 1 << 63:
            raise UsageError(f"{name}: {edge_count} edges over {vertex_count} vertices are too many: stay below 2**63")
        self.name, self.undirected, self.seed = name, undirected, whole("seed", seed)
        self.vertex_count, self.edge_count = vertex_count, edge_count
        self.id_dtype = np.dtype(np.uint32 if vertex_count <= 1 << 32 else np.uint64)
        self.weights = None if weights is None else Weights.parse(weights)
        self.columns: dict[str, pa.DataType] = {} if self.weights is None else {"weight": self.weights.kind}
        self.estimated_edges = self.size = edge_count
        self.position = 0
        self.id_bounds = (0, vertex_count - 1)

    @abstractmethod
    def fill(self, first: int, source: np.ndarray, target: np.ndarray) -> None:
        """Write edges `first` .. `first + len(source) - 1`. Called by several threads at once."""

    def chunks(self, *, threads: int, memory: int) -> Iterator[EdgeChunk]:
        edge_bytes = 2 * self.id_dtype.itemsize + (0 if self.weights is None else self.weights.dtype.itemsize)
        step = max(1, min(LARGEST_CHUNK, memory // (in_flight(threads) * edge_bytes)))
        tasks = (partial(self._make, first, step) for first in range(0, self.edge_count, step))
        for chunk in ordered(tasks, threads):
            self.position += len(chunk)
            yield chunk

    def _make(self, first: int, step: int) -> Iterator[EdgeChunk]:
        count = min(step, self.edge_count - first)
        source, target = np.empty(count, self.id_dtype), np.empty(count, self.id_dtype)
        self.fill(first, source, target)
        columns = {} if self.weights is None else {"weight": self.weights.values(self.seed, first, count)}
        yield EdgeChunk(source, target, columns)

    def vertices(self) -> VertexTable:
        return VertexTable(range(self.vertex_count))


__all__ = ["GeneratedSource"]
