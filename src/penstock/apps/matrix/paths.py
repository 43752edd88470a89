"""All-pairs shortest paths from a matrix of edge lengths.

Returns   a matrix of distances; what cannot be reached is not stored.
Squaring  D <- D * D over min-plus, ceil(log2(n - 1)) times, or until nothing changes
Floyd     n rounds; in round k every column j takes the minimum of itself and column k, which all have, plus d(k, j)
Direct    Floyd-Warshall in memory, in blocks that stay in the cache
Ref       004, sections 3.2 and 4.2, algorithms 5 and 6
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from penstock.apps.grouped import arrays_of, mapped, share
from penstock.apps.matrix.matrix import INDEX, Matrix
from penstock.apps.matrix.multiply import added, one_rank, spgemm, unit
from penstock.apps.matrix.semiring import MIN_PLUS
from penstock.errors import UsageError
from penstock.mapreduce.keyvalue import KeyValue

METHODS = ("squaring", "floyd-warshall", "direct")
_FLOAT = np.dtype(np.float64)
_BLOCK = 64


def shortest_paths(lengths: Matrix, *, method: str = "squaring", product: str = "mapreduce") -> Matrix:
    """The length of a shortest path from each vertex to each. Lengths may be negative, circles must not be. `product`
    is how the matrices of method squaring are multiplied: mapreduce or direct."""
    if lengths.shape[0] != lengths.shape[1]:
        raise UsageError(f"a matrix of lengths is square, not {lengths.shape[0]} x {lengths.shape[1]}")
    if method not in METHODS:
        raise UsageError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    start = _with_diagonal(lengths)
    if lengths.shape[0] < 2:
        return _checked(start)
    if method == "squaring":
        return _checked(_squared(start, product))
    return _checked(_floyd(start) if method == "floyd-warshall" else _direct(start))


def _with_diagonal(lengths: Matrix) -> Matrix:
    """The lengths, and nothing from each vertex to itself."""
    mr, both = lengths.mr, lengths.cast(_FLOAT).entries.add(unit(lengths.cast(_FLOAT), MIN_PLUS).entries)
    return Matrix(mr, lengths.shape, added(mr, both, MIN_PLUS, _FLOAT))


def _checked(found: Matrix) -> Matrix:
    n = INDEX.type(found.shape[0] + 1)
    circle = any((values[keys % n == 0] < 0).any() for keys, values in arrays_of(found.entries))
    if found.mr.communicator.allreduce(int(circle), "max"):
        raise UsageError("the edges make a circle of negative length: there is no shortest path")
    return found


def _squared(distance: Matrix, product: str) -> Matrix:
    before = None
    for _ in range(math.ceil(math.log2(max(2, distance.shape[0] - 1)))):
        distance = spgemm(distance, distance, MIN_PLUS, method=product)
        seen = _digest(distance)
        if seen == before:
            break
        before = seen
    return distance


def _digest(matrix: Matrix) -> list[tuple[int, int, int]]:
    """Equal for equal matrices, and hardly for others; of each rank's part."""
    import xxhash

    keys, values = xxhash.xxh3_64(), xxhash.xxh3_64()
    ordered = matrix.entries.sort_keys()
    for chunk in ordered.chunks():
        keys.update(np.ascontiguousarray(chunk.keys))
        values.update(np.ascontiguousarray(chunk.values))
    return matrix.mr.communicator.allgather((len(ordered), keys.intdigest(), values.intdigest()))


# ---- Floyd-Warshall, a column at a time


def _floyd(start: Matrix) -> Matrix:
    from penstock.apps.matrix.dense import relax_columns

    mr, n = start.mr, start.shape[0]
    columns, replicated = _columns(start)
    ranks = mr.communicator.size
    for k in range(n):
        column = mr.communicator.broadcast(replicated, k % ranks)
        kept: list[np.ndarray] = []

        def relax(
            keys: np.ndarray, values: np.ndarray, k: int = k, column: np.ndarray = column, kept: list[np.ndarray] = kept
        ) -> tuple[np.ndarray, np.ndarray]:
            after = values.copy()
            relax_columns(values["distance"], column, np.uint64(k), after["distance"])
            if len(mine := np.flatnonzero(keys == k + 1)):  # the next one to be replicated
                kept.append(after["distance"][mine[0]].copy())
            return keys, after

        done = mapped(columns, relax, INDEX, columns.value)
        columns.close()
        columns = done
        if kept:
            replicated = kept[0]
    return Matrix(mr, (n, n), _elements(start, columns))


def _columns(start: Matrix) -> tuple[KeyValue, np.ndarray]:
    """Dense columns by their number, dealt out to the ranks, and the first of them."""
    mr, n = start.mr, start.shape[0]
    rank, ranks = mr.rank, mr.communicator.size
    kind = np.dtype([("distance", _FLOAT, (n,))])
    whose = start.transposed.entries.aggregate(lambda keys: (keys // INDEX.type(n)).astype(np.int64))
    by_column = whose.sort_keys()
    writer, at = mr.writer(INDEX, kind), 0
    held, first = np.full(n, np.inf), np.full(n, np.inf)

    def put(column: int) -> None:
        nonlocal held, first
        if column % ranks != rank:
            return
        row = np.empty(1, kind)
        row["distance"][0] = held
        writer.add_chunk(np.array([column], INDEX), row)
        if column == 0:
            first = held
        held = np.full(n, np.inf)

    for keys, values in arrays_of(by_column):
        numbers, rows = np.divmod(keys, INDEX.type(n))
        cuts = np.flatnonzero(np.diff(numbers)) + 1
        for begin, end in pairwise([0, *cuts.tolist(), len(numbers)]):
            if end > begin:
                while at < int(numbers[begin]):
                    put(at)
                    at += 1
                held[rows[begin:end]] = values[begin:end]
    while at < n:
        put(at)
        at += 1
    return writer.done(), first


def _elements(start: Matrix, columns: KeyValue) -> KeyValue:
    """Columns as the elements that are finite, by row."""
    n = start.shape[0]

    def spread(keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        which, row = np.nonzero(np.isfinite(values["distance"]))
        return row.astype(INDEX) * INDEX.type(n) + keys[which], values["distance"][which, row]

    return mapped(columns, spread, INDEX, _FLOAT).sort_keys()


# ---- in memory


def _direct(start: Matrix) -> Matrix:
    from penstock.apps.matrix.dense import relax_block

    mr, n = start.mr, start.shape[0]
    one_rank(mr)
    with mr.budget.reserve(8 * n * n, "the distances of all pairs"):
        distance = start.dense(np.inf)
        blocks = list(pairwise([*range(0, n, _BLOCK), n]))
        for k in blocks:
            others = [block for block in blocks if block != k]

            def cross(i: int, k: tuple[int, int] = k, others: list[tuple[int, int]] = others) -> None:
                relax_block(distance, k, others[i], k)
                relax_block(distance, others[i], k, k)

            def rest(i: int, k: tuple[int, int] = k, others: list[tuple[int, int]] = others) -> None:
                for j in others:
                    relax_block(distance, others[i], j, k)

            relax_block(distance, k, k, k)
            share(mr, cross, len(others))
            share(mr, rest, len(others))
        row, column = np.nonzero(np.isfinite(distance))
        keys, values = row.astype(INDEX) * INDEX.type(n) + column.astype(INDEX), distance[row, column]
    return Matrix(mr, (n, n), mr.keyvalue(keys, values, key=INDEX, value=_FLOAT))


__all__ = ["METHODS", "shortest_paths"]
