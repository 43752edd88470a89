"""k-means: points by the nearest of k centers, which are the means of their points.

Returns   (cluster, (center, size)), by cluster; `labels` has the cluster of each point
Phases    each chunk of points adds up those of each cluster (map, with its own combiner); the sums of a cluster meet
          (reduce) and make its next center; until no center moves by more than tol, or max_iter rounds.
Start     k different points, drawn by the seed; a cluster without points keeps its center
Ranks     share out a file; an array is each rank's own. Clusters are the same on every rank, labels those of its points
Ref       Lloyd 1982
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from penstock.apps.grouped import arrays_of, mapped
from penstock.apps.jobs.options import Seed, seeded
from penstock.errors import InputError, UsageError
from penstock.mapreduce.keyvalue import KeyValue
from penstock.mapreduce.session import MapReduce

_PIECE = 1 << 14


def kmeans(
    mr: MapReduce,
    points: Any,
    k: Annotated[int, "How many clusters."],
    *,
    max_iter: Annotated[int, "Rounds at most."] = 100,
    tol: Annotated[float, "Stop when no center moves by more."] = 1e-6,
    seed: Seed = 1,
) -> KeyValue:
    """The clusters of points: an array of two dimensions, or the path of one (.npy)."""
    from penstock.apps.jobs.kernels import nearest

    data, first, total = _points(mr, points)
    if not 1 <= k <= total:
        raise UsageError(f"k must be from 1 to the number of points, {total}, not {k}")
    if max_iter < 0 or not tol >= 0:
        raise UsageError(f"max_iter and tol must not be negative, not {max_iter} and {tol}")
    pairs = points_of(mr, data, first)
    drawn = np.sort(np.random.default_rng(seeded(seed)).choice(total, k, replace=False)) - first
    mine = np.array(data[drawn[(drawn >= 0) & (drawn < len(data))]], np.float64)
    centers = np.concatenate(mr.communicator.allgather(mine))
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

        sums, sizes = np.zeros_like(centers), np.zeros(k, np.int64)
        for cluster, parts in mapped(pairs, add_up, np.int64, kind).collate():
            sums[cluster], sizes[cluster] = parts["sum"].sum(axis=0), parts["count"].sum()
        sums, sizes = mr.communicator.allreduce(sums), mr.communicator.allreduce(sizes)  # a cluster is on one rank
        after = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], centers)
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

    data, first, _ = _points(mr, points)
    return mapped(points_of(mr, data, first), label, np.int64, np.int64)


def points_of(mr: MapReduce, data: np.ndarray, first: int = 0) -> KeyValue:
    """(place, point) of every point; `first` is the place of the first of them."""
    kind = np.dtype([("point", np.float64, (data.shape[1],))])

    def pieces() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for begin in range(0, len(data), _PIECE):
            some = np.array(data[begin : begin + _PIECE], np.float64)
            yield np.arange(first + begin, first + begin + len(some), dtype=np.int64), some.reshape(-1).view(kind)

    return mr.keyvalue(pieces(), key=np.int64, value=kind)


def _points(mr: MapReduce, points: Any) -> tuple[np.ndarray, int, int]:
    """This rank's points, the place of the first of them, and how many all ranks have."""
    rank, ranks = mr.communicator.rank, mr.communicator.size
    if isinstance(points, str | os.PathLike):
        try:
            whole = np.load(Path(points), mmap_mode="r")
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", path=points) from None
        except (ValueError, EOFError):
            raise InputError("this is no NumPy array", path=points, hint="save it with numpy.save") from None
        data = _checked(whole)[len(whole) * rank // ranks : len(whole) * (rank + 1) // ranks]
    else:
        data = _checked(np.asarray(points))
    counts = mr.communicator.allgather(len(data))
    return data, sum(counts[:rank]), sum(counts)


def _checked(data: np.ndarray) -> np.ndarray:
    if data.ndim != 2 or data.dtype.kind not in "iufb" or not data.shape[1]:
        raise UsageError(f"points are an array of numbers of two dimensions, not {data.dtype} of {data.ndim}")
    return data


__all__ = ["kmeans", "labels"]
