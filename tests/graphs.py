"""Small stores for tests of what stands on stores: edges from arrays, in 4 KiB pages, so that many and large occur."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.config import settings
from penstock.graph import Graph
from penstock.ingest.build.builder import build
from penstock.ingest.build.options import BuildOptions
from penstock.ingest.source import EdgeChunk, EdgeSource, VertexTable, storage_dtype


class ArrayEdges(EdgeSource):
    """Edges out of Arrow arrays, in one chunk."""

    def __init__(self, source: pa.Array, target: pa.Array, columns: Mapping[str, pa.Array]) -> None:
        self.columns = {name: values.type for name, values in columns.items()}
        self.string_ids = pa.types.is_large_string(source.type)
        ends = (source, target) if self.string_ids else (np.asarray(source), np.asarray(target))
        self._chunk = EdgeChunk(*ends, {name: stored(values) for name, values in columns.items()})
        self.estimated_edges = len(source)

    def chunks(self, *, threads: int, memory: int) -> Iterator[EdgeChunk]:
        if len(self._chunk):
            yield self._chunk


def stored(values: pa.Array) -> np.ndarray:
    if pa.types.is_boolean(values.type):
        return np.asarray(values.cast(pa.uint8()))
    dtype = storage_dtype(values.type)
    assert dtype is not None
    return np.frombuffer(values.buffers()[1], dtype)[: len(values)].copy()


def ids_of(values: Any) -> pa.Array:
    values = list(values)
    if values and isinstance(values[0], str):
        return pa.array(values, pa.large_string())
    return pa.array(values, pa.uint64() if values and max(values) >= 1 << 63 else pa.int64())


def make_graph(
    path: Path,
    source: Any,
    target: Any,
    columns: Mapping[str, pa.Array] | None = None,
    *,
    vertices: Any = None,
    vertex_columns: Mapping[str, pa.Array] | None = None,
    **options: Any,
) -> Graph:
    """A graph of these edges; `vertices` lists all ids, `vertex_columns` what is known of them."""
    kind = ids_of([*source, *target, *(vertices or ())]).type
    edges = ArrayEdges(pa.array(list(source), kind), pa.array(list(target), kind), columns or {})
    table = None
    if vertices is not None:
        ids = pa.array(list(vertices), kind)
        held = vertex_columns or {}
        table = VertexTable(
            ids if edges.string_ids else np.asarray(ids),
            {name: stored(values) for name, values in held.items()},
            {name: values.type for name, values in held.items()},
        )
    target_path = path / "graph.pen"
    chosen = BuildOptions.of({"page_size": 4096, "overwrite": True, **options})
    build(edges, target_path, chosen, settings(memory_limit="64MB", threads=2, progress=False), table)
    return Graph.open(target_path)


def random_edges(seed: int, vertices: int, edges: int) -> tuple[np.ndarray, np.ndarray]:
    """Ends from 0 to `vertices - 1`: a hub of many pages, loops and parallel edges among them."""
    rng = np.random.default_rng(seed)
    source, target = rng.integers(0, vertices, (2, edges))
    source[: edges // 2] = 0
    target[-5:] = source[-5:]
    source[-10:-5], target[-10:-5] = source[-15:-10], target[-15:-10]
    return source, target
