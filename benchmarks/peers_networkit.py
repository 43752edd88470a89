"""NetworKit. Its graphs have 64-bit ids, its values are float64; its BFS and Dijkstra are serial.

Its betweenness of some sources draws them itself: the seed is chosen so that all have arcs, and the draw is repeated
to know them. It takes one more than it is asked for, and weighs what t adds to its parent p by d(p) / d(t), which is
the same work; the check does too.
"""

from __future__ import annotations

from typing import Any

import networkit as nk  # type: ignore[import-not-found,import-untyped,unused-ignore]
import numpy as np
from peers_check import DAMPING, FAR, ITERATIONS
from peers_graph import Arrays

PACKAGES = ("networkit",)


class Peer:
    linear_scaling = True

    def __init__(self, graph: Arrays, task: str, degree_order: bool, threads: int) -> None:
        nk.setNumberOfThreads(threads)
        weighted = task == "sssp"
        source, target, weight = graph.upper()
        ends = (source.astype(np.uint64), target.astype(np.uint64))
        data = (weight.astype(np.float64), ends) if weighted else ends
        self.G = nk.GraphFromCoo(data, n=graph.n, weighted=weighted, directed=False)
        self.G.sortEdges()  # as the other peers have them
        if task == "triangles":
            self.G.indexEdges()
        self.degree = graph.degree

    def pagerank(self) -> Any:
        algorithm = nk.centrality.PageRank(self.G, DAMPING, tol=0.0)
        algorithm.maxIterations = ITERATIONS
        return algorithm.run()

    def bfs(self, source: int) -> Any:
        return nk.distance.BFS(self.G, source, storePaths=False).run()

    def wcc(self) -> Any:
        return nk.components.ConnectedComponents(self.G).run()

    def sssp(self, source: int) -> Any:
        return nk.distance.Dijkstra(self.G, source, storePaths=False).run()

    def sources(self, count: int) -> np.ndarray:
        self.seed = 0
        while True:
            self.seed += 1
            nk.setSeed(self.seed, False)
            drawn = np.array([nk.graphtools.randomNode(self.G) for _ in range(count)])
            if self.degree[drawn].all() and len(np.unique(drawn)) == count:
                return drawn

    def bc(self, sources: np.ndarray) -> Any:
        nk.setSeed(self.seed, False)
        return len(sources) - 1, nk.centrality.EstimateBetweenness(self.G, len(sources) - 1, False, True).run()

    def triangles(self) -> int:
        scores = nk.sparsification.TriangleEdgeScore(self.G).run().scores()
        return int(np.sum(scores)) // 3

    def values(self, task: str, answer: Any) -> Any:
        if task == "triangles":
            return answer
        if task in ("bfs", "sssp"):
            found = np.asarray(answer.getDistances(asarray=True))
            found = np.where(found < FAR, found, FAR).astype(np.int32)
            return {"depth": found} if task == "bfs" else found
        if task == "wcc":
            return np.asarray(answer.getPartition().getVector())
        if task == "bc":
            count, algorithm = answer
            return np.asarray(algorithm.scores()) * count / (2 * len(self.degree))
        ranks = np.asarray(answer.scores())
        return ranks / ranks.sum()  # it drops the rank of isolated vertices
