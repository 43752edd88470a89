"""Penstock: the calls a user makes, on a graph that was loaded into memory before. Ids are 32 bits wide."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from peers_check import DAMPING, FAR, ITERATIONS
from peers_graph import Arrays

import penstock as pk

PACKAGES = ("penstock", "numba")


class Peer:
    def __init__(self, graph: Arrays, task: str, degree_order: bool, threads: int, path: Path) -> None:
        self.users = np.asarray(graph.users)
        self.graph = pk.open(path)
        self.graph.load(columns=("weight",) if task == "sssp" else ())
        self.options: dict[str, Any] = {"threads": threads, "progress": False}

    def _id(self, number: int) -> int:
        return int(self.users[number])

    def pagerank(self) -> Any:
        return pk.run(
            "pagerank", self.graph, damping=DAMPING, dtype="float32", stop="fixed", max_iter=ITERATIONS, **self.options
        )

    def bfs(self, source: int) -> Any:
        return pk.run("bfs", self.graph, source=self._id(source), **self.options)

    def wcc(self) -> Any:
        return pk.run("wcc", self.graph, **self.options)

    def sssp(self, source: int) -> Any:
        return pk.run("sssp", self.graph, source=self._id(source), **self.options)

    def bc(self, sources: np.ndarray) -> Any:
        return pk.run("betweenness", self.graph, sources=[self._id(k) for k in sources], **self.options)

    def triangles(self) -> Any:
        return pk.run("triangles", self.graph, per_vertex=False, **self.options)

    def values(self, task: str, answer: Any) -> Any:
        if task == "triangles":
            return answer.stats["triangles"]
        # Rows come by id; the checks want them by number.
        rows = np.empty(len(self.users), np.int64)
        rows[np.argsort(self.users)] = np.arange(len(self.users))
        table = answer.table
        if task == "bfs":
            parent = table.column("parent").combine_chunks().fill_null(-1).to_numpy(zero_copy_only=False)[rows]
            number = np.full(int(self.users.max()) + 2, -1, np.int64)
            number[self.users] = np.arange(len(self.users))
            return {"parent": np.where(parent < 0, -1, number[parent])}
        column = table.column(1).combine_chunks()
        if task == "sssp":
            return column.fill_null(int(FAR)).to_numpy(zero_copy_only=False)[rows].astype(np.int32)
        return column.to_numpy(zero_copy_only=False)[rows]
