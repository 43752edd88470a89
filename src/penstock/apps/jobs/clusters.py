"""k-means: points by the nearest of k centers, which are the means of their points.

Returns   (cluster, (center, size)), by cluster; `labels` has the cluster of each point
Phases    each chunk of points adds up those of each cluster (map, with its own combiner); the sums of a cluster meet
          (reduce) and make its next center; until no center moves by more than tol, or max_iter rounds.
Start     k different points, drawn by the seed; a cluster without points keeps its center
Ref       Lloyd 1982
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from penstock.apps.grouped import arrays_of, mapped
from penstock.errors import InputError, UsageError
from penstock.mapreduce.keyvalue import KeyValue
from penstock.mapreduce.session import MapReduce

_PIECE = 1 << 14


def kmeans(mr: MapReduce, points: Any, k: int, *, max_iter: int = 100, tol: float = 1e-6, seed: int = 1) -> KeyValue:
    """The clusters of points: an array of two dimensions, or the path of one (.npy)."""
    from penstock.apps.jobs.kernels import nearest

    data = _points(points)
    if not 1 <= k <= len(data):
        raise UsageError(f"k must be from 1 to the number of points, {len(data)}, not {k}")
    if max_iter < 0 or not tol >= 0:
        raise UsageError(f"max_iter and tol must not be negative, not {max_iter} and {tol}")
    pairs = points_of(mr, data)
    centers = np.array(data[np.sort(np.random.default_rng(seed).choice(len(data), k, replace=False))], np.float64)
    kind = np.dtype([("sum", np.float64, (data.shape[1],)), ("count", np.int64)])
    sizes = np.zeros(k, np.int64)
    for _ in range(max_iter + 1):

        def add_up(
            keys: np.ndarray, values: np.ndarray, centers: np.ndarray = centers
        ) -> tuple[np.ndarray, np.ndarray]:
            sums, counts = np.zeros_like(centers), np.zeros(k, np.int64)
            nearest(values["point"], centers, sums, counts)
            made = np.empty(k, kind)
            made["sum"], made["count"] = sums, counts
            return np.arange(k, dtype=np.int64), made

        after, sizes = centers.copy(), np.zeros(k, np.int64)
        for cluster, parts in mapped(pairs, add_up, np.int64, kind).collate():
            sizes[cluster] = parts["count"].sum()
            if sizes[cluster]:
                after[cluster] = parts["sum"].sum(axis=0) / sizes[cluster]
        moved = float(np.abs(after - centers).max(initial=0.0))
        if moved <= tol or _ == max_iter:
            break
        centers = after
    found = np.empty(k, np.dtype([("center", np.float64, (data.shape[1],)), ("size", np.int64)]))
    found["center"], found["size"] = centers, sizes
    return mr.keyvalue(np.arange(k, dtype=np.int64), found)


def labels(mr: MapReduce, points: Any, clusters: KeyValue) -> KeyValue:
    """(point, cluster) for each point, by its place."""
    from penstock.apps.jobs.kernels import labelled

    centers = np.concatenate([np.array(values["center"]) for _, values in arrays_of(clusters)])

    def label(keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = np.empty(len(keys), np.int64)
        labelled(values["point"], centers, found)
        return keys, found

    return mapped(points_of(mr, _points(points)), label, np.int64, np.int64)


def points_of(mr: MapReduce, data: np.ndarray) -> KeyValue:
    """(place, point) of every point."""
    kind = np.dtype([("point", np.float64, (data.shape[1],))])

    def pieces() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for begin in range(0, len(data), _PIECE):
            some = np.array(data[begin : begin + _PIECE], np.float64)
            yield np.arange(begin, begin + len(some), dtype=np.int64), some.reshape(-1).view(kind)

    return mr.keyvalue(pieces(), key=np.int64, value=kind)


def _points(points: Any) -> np.ndarray:
    if isinstance(points, str | os.PathLike):
        try:
            data = np.load(Path(points), mmap_mode="r")
        except ValueError as error:
            raise InputError("this is no NumPy array", path=points, hint="save it with numpy.save") from error
    else:
        data = np.asarray(points)
    if data.ndim != 2 or data.dtype.kind not in "iufb" or not data.shape[1]:
        raise UsageError(f"points are an array of numbers of two dimensions, not {data.dtype} of {data.ndim}")
    return data


__all__ = ["kmeans", "labels"]
