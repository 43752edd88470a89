"""The edges that jobs on graphs take: from a store, from files, from arrays, or as pairs already."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from penstock.apps.grouped import mapped
from penstock.errors import UsageError
from penstock.graph import Graph
from penstock.mapreduce.keyvalue import KeyValue
from penstock.mapreduce.session import MapReduce

VERTEX = np.dtype(np.uint64)
PACKED = 1 << 32
"""Vertices below this fit twice into a key."""
_PIECE = 1 << 20
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def edges_of(mr: MapReduce, edges: Any) -> KeyValue:
    """(source, target) of every edge, as uint64. `edges` is a graph, the path of a store or of an edge list in any
    format that `ingest` reads, a pair of arrays, or a KeyValue. Ids are whole numbers that are not negative. Ranks
    share out what lies in a store or in files; arrays and pairs are each rank's own."""
    if isinstance(edges, KeyValue):
        return edges if edges.key == VERTEX and edges.value == VERTEX else mapped(edges, _as_vertices, VERTEX, VERTEX)
    if isinstance(edges, str | os.PathLike) and Path(edges).is_dir():
        with Graph.open(edges) as graph:
            return edges_of(mr, graph)
    if isinstance(edges, Graph):
        return mr.keyvalue(_dealt(mr, _of_graph(edges)), key=VERTEX, value=VERTEX)
    if isinstance(edges, tuple) and len(edges) == 2:
        source, target = (_vertices(np.asarray(ends)) for ends in edges)
        return mr.keyvalue(source, target, key=VERTEX, value=VERTEX)
    return mr.keyvalue(_dealt(mr, _of_source(mr, edges)), key=VERTEX, value=VERTEX)


def _dealt(mr: MapReduce, pieces: Iterator[Any]) -> Iterator[Any]:
    """Every size-th piece is this rank's."""
    return islice(pieces, mr.communicator.rank, None, mr.communicator.size)


def _of_graph(graph: Graph) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    if graph.store.ids.kind == "string":
        raise UsageError(f"{graph.path} has strings for ids: this job needs whole numbers")
    labels = _vertices(graph.users().to_numpy())
    for source, target, _ in graph.edge_arrays(labels, size=_PIECE):
        yield source, target


def _of_source(mr: MapReduce, path: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    from penstock.ingest.open import open_source

    source = open_source(path)
    if source.string_ids:
        raise UsageError(f"{source.name} has strings for ids: this job needs whole numbers")
    for chunk in source.chunks(threads=mr.threads, memory=mr.work_bytes // 2):
        yield _vertices(np.asarray(chunk.source)), _vertices(np.asarray(chunk.target))


def _vertices(ids: np.ndarray) -> np.ndarray:
    if len(ids) and ids.dtype.kind not in "iu":
        raise UsageError(f"vertices are whole numbers, not {ids.dtype}")
    if ids.dtype.kind == "i" and len(ids) and int(ids.min()) < 0:
        raise UsageError(f"vertex {int(ids.min())} is negative: this job numbers vertices from 0")
    return ids.astype(VERTEX, copy=False)


def _as_vertices(keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return _vertices(keys), _vertices(values)


def upper(edges: KeyValue) -> KeyValue:
    """Each edge once, as a key with its smaller end in the upper half, without loops."""

    def pack(keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, None]:
        low, high = np.minimum(keys, values), np.maximum(keys, values)
        if len(high) and int(high.max()) >= PACKED:
            raise UsageError(f"vertex {int(high.max())} is above 2**32 - 1: number the vertices anew, from 0")
        kept = low != high
        return low[kept] << _HALF | high[kept], None

    return mapped(edges, pack, VERTEX, None, combine="count").collate().reduce("sum")


def unpacked(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both ends of packed edges, the smaller first."""
    return codes >> _HALF, codes & _LOW


__all__ = ["PACKED", "VERTEX", "edges_of", "unpacked", "upper"]
