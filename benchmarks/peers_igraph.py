"""igraph: serial, 64-bit ids, float64 values. Its PageRank runs to convergence only and is left out."""

from __future__ import annotations

from typing import Any

import igraph  # type: ignore[import-not-found,import-untyped,unused-ignore]
import numpy as np
from peers_check import FAR
from peers_graph import Arrays

PACKAGES = ("igraph",)


class Peer:
    def __init__(self, graph: Arrays, task: str, degree_order: bool, threads: int) -> None:
        source, target, weight = graph.upper()
        edges = np.stack([source, target], axis=1).astype(np.int64)
        self.g = igraph.Graph(n=graph.n, edges=edges, directed=False)
        self.weight = weight.tolist() if task == "sssp" else None
        self.degree = graph.degree

    def bfs(self, source: int) -> Any:
        return self.g.distances(source=[source])

    def wcc(self) -> Any:
        return self.g.connected_components().membership

    def sssp(self, source: int) -> Any:
        return self.g.distances(source=[source], weights=self.weight, algorithm="dijkstra")

    def bc(self, sources: np.ndarray) -> Any:
        return self.g.betweenness(directed=False, sources=sources.tolist())

    def triangles(self) -> int:
        degree = self.degree.astype(object)
        wedges = int((degree * (degree - 1)).sum()) // 2
        return round(self.g.transitivity_undirected() * wedges / 3)

    def values(self, task: str, answer: Any) -> Any:
        if task in ("bfs", "sssp"):
            found = np.asarray(answer[0], np.float64)
            found = np.where(found < FAR, found, FAR).astype(np.int32)
            return {"depth": found} if task == "bfs" else found
        if task == "bc":  # halved because the graph is undirected
            return 2 * np.asarray(answer)
        return np.asarray(answer) if task == "wcc" else answer
