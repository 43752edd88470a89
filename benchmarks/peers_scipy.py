"""SciPy: serial, 32-bit ids; PageRank by its sparse product in float32, the rest by scipy.sparse.csgraph."""

from __future__ import annotations

from typing import Any

import numpy as np
from peers_check import DAMPING, FAR, ITERATIONS
from peers_graph import Arrays
from scipy import sparse
from scipy.sparse import csgraph

PACKAGES = ("scipy",)


class Peer:
    def __init__(self, graph: Arrays, task: str, degree_order: bool, threads: int) -> None:
        # csgraph works on float64 and would convert first.
        kind = np.float32 if task == "pagerank" else np.float64
        data = graph.weight.astype(kind) if task == "sssp" else np.ones(len(graph.indices), kind)
        indptr, indices = np.array(graph.indptr, np.int32), np.array(graph.indices)
        self.A, self.degree = sparse.csr_array((data, indices, indptr), shape=(graph.n, graph.n)), graph.degree
        self.A.has_canonical_format = True

    def pagerank(self) -> Any:
        n, sinks = self.A.shape[0], np.flatnonzero(self.degree == 0)
        scale = (DAMPING / np.maximum(self.degree, 1)).astype(np.float32)
        rank = np.full(n, 1 / n, np.float32)
        for _ in range(ITERATIONS):
            teleport = (1 - DAMPING + DAMPING * rank[sinks].sum(dtype=np.float64)) / n
            rank = self.A @ (rank * scale)
            rank += np.float32(teleport)
        return rank

    def bfs(self, source: int) -> Any:
        return csgraph.breadth_first_order(self.A, source, directed=True)[1]

    def wcc(self) -> Any:
        # The arcs go both ways, so strong components are the same and need no transpose.
        return csgraph.connected_components(self.A, directed=True, connection="strong")[1]

    def sssp(self, source: int) -> Any:
        return csgraph.dijkstra(self.A, directed=True, indices=source)

    def values(self, task: str, answer: Any) -> Any:
        if task == "sssp":
            return np.where(answer < FAR, answer, FAR).astype(np.int32)
        return {"parent": np.maximum(answer, -1)} if task == "bfs" else answer
