"""A graph with vertices of so many arcs that they take several pages, with weights and vertices without arcs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import penstock as pk


def hub(path: Path, undirected: bool, **options: Any) -> pk.Graph:
    random = np.random.default_rng(7)
    ends = random.integers(0, 300, (2, 900))
    source = np.concatenate([np.full(2200, 17), np.arange(400, 1700), ends[0]])
    target = np.concatenate([np.arange(2200), np.full(1300, 40), ends[1]])
    columns = {"source": source, "target": target, "weight": random.integers(1, 9, len(source))}
    chosen = {"page_size": 4096, "memory_limit": "64MB", **options}
    graph = pk.ingest(columns, path, vertices={"id": np.arange(2210)}, undirected=undirected, **chosen)
    assert (graph.store.direction("out").records["kind"] == 1).any()
    return graph
