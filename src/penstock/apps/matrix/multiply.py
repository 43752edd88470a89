"""Products over a semiring, by two MapReduce phases or by a kernel in memory.

Phase 1   the columns of A meet the rows of B: each makes an outer product, element (i, k) of it a(i, j) * b(j, k)
Phase 2   the elements of each place (i, k) add up
Direct    Gustavson: a row of the product at a time, in a dense accumulator per thread
Ref       004, section 4.1; Gustavson 1978
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from penstock.apps.grouped import arrays_of, mapped, share
from penstock.apps.matrix.kernels import gustavson, outer, outers, ring_kernel, sums
from penstock.apps.matrix.matrix import INDEX, Matrix, _check
from penstock.apps.matrix.semiring import PLUS_TIMES, Semiring, as_semiring
from penstock.errors import UsageError
from penstock.mapreduce.keyvalue import KeyValue
from penstock.mapreduce.multivalue import KeyMultiValue
from penstock.mapreduce.reduce import whole_groups
from penstock.mapreduce.session import MapReduce

METHODS = ("mapreduce", "direct")
_NAMED = ("sum", "min", "max", "or")
_ONE = np.uint64(1)


def spgemm(left: Matrix, right: Matrix, ring: Semiring | str = PLUS_TIMES, *, method: str = "mapreduce") -> Matrix:
    """The product of two sparse matrices."""
    ring = as_semiring(ring)
    if left.shape[1] != right.shape[0]:
        raise UsageError(f"a matrix of {_said(left)} cannot be multiplied with one of {_said(right)}")
    _check((left.shape[0], right.shape[1]))
    if method == "direct":
        return _direct(left, right, ring)
    if method != "mapreduce":
        raise UsageError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    kind, mr = ring.kind(left.dtype, right.dtype), left.mr
    met = _tagged(left, 0, kind).add(_tagged(right, 1, kind)).collate()
    width = right.shape[1]
    products = _products(mr, met, ring, kind, width)
    met.close()
    return Matrix(mr, (left.shape[0], width), added(mr, products, ring, kind))


def spmv(matrix: Matrix, vector: Any, ring: Semiring | str = PLUS_TIMES, *, method: str = "mapreduce") -> np.ndarray:
    """The product of a sparse matrix with a dense vector."""
    ring, values = as_semiring(ring), np.asarray(vector)
    if values.shape != (matrix.shape[1],):
        raise UsageError(f"a matrix of {_said(matrix)} needs a vector of {matrix.shape[1]} values, not {values.shape}")
    kind = ring.kind(matrix.dtype, values.dtype)
    found = np.full(matrix.shape[0], ring.zero(kind), kind)
    # All ranks have the vector, and want all of the product.
    mine = slice(matrix.mr.rank, None, matrix.mr.communicator.size)
    entries = matrix.mr.keyvalue(np.arange(len(values), dtype=INDEX)[mine], values[mine], key=INDEX, value=values.dtype)
    column = Matrix(matrix.mr, (len(values), 1), entries)
    product = spgemm(matrix, column, ring, method=method)
    parts = [(rows.copy(), elements.copy()) for rows, elements in arrays_of(product.entries)]
    for rows, elements in (part for theirs in matrix.mr.communicator.allgather(parts) for part in theirs):
        found[rows] = elements
    return found


def power(matrix: Matrix, exponent: int, ring: Semiring | str = PLUS_TIMES, *, method: str = "mapreduce") -> Matrix:
    """A matrix to a power of at least 0, by repeated squaring."""
    ring = as_semiring(ring)
    if matrix.shape[0] != matrix.shape[1]:
        raise UsageError(f"only a square matrix has powers, not one of {_said(matrix)}")
    if exponent < 0:
        raise UsageError(f"the exponent must be at least 0, not {exponent}")
    found: Matrix | None = None
    while exponent:
        if exponent & 1:
            found = matrix if found is None else spgemm(found, matrix, ring, method=method)
        exponent >>= 1
        if exponent:
            matrix = spgemm(matrix, matrix, ring, method=method)
    return found if found is not None else unit(matrix, ring)


def unit(matrix: Matrix, ring: Semiring) -> Matrix:
    """The unit matrix of this size."""
    n, kind = matrix.shape[0], ring.kind(matrix.dtype)
    mr = matrix.mr
    keys = np.arange(mr.rank, n, mr.communicator.size, dtype=INDEX) * INDEX.type(n + 1)
    return Matrix(mr, (n, n), mr.keyvalue(keys, np.full(len(keys), ring.unit(kind), kind), key=INDEX, value=kind))


def _said(matrix: Matrix) -> str:
    return f"{matrix.shape[0]} x {matrix.shape[1]}"


# ---- phase 1


def tagged_kind(kind: np.dtype) -> np.dtype:
    """An element on its way to its column or row: the other index, and whose it is in the lowest bit."""
    return np.dtype([("tag", np.uint64), ("element", kind)])


def _tagged(matrix: Matrix, side: int, kind: np.dtype) -> KeyValue:
    """The elements of A by column, or those of B by row."""
    width, made = INDEX.type(max(1, matrix.shape[1])), tagged_kind(kind)

    def tag(keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        row, column = np.divmod(keys, width)
        found = np.empty(len(keys), made)
        meet, other = (row, column) if side else (column, row)
        found["tag"] = other << _ONE | np.uint64(side)
        found["element"] = values
        return meet, found

    return mapped(matrix.entries, tag, INDEX, made)


def _products(mr: MapReduce, met: KeyMultiValue, ring: Semiring, kind: np.dtype, width: int) -> KeyValue:
    """The outer products of all columns with the rows that they meet, some groups at a time: as many products as the
    working memory has room for."""
    writer = mr.writer(INDEX, kind)
    room = products_at_once(mr, kind)
    several = ring_kernel(outers, ring, kind)
    for groups in whole_groups(met):
        offsets, tags = groups.offsets, groups.values["tag"]
        elements = groups.values["element"]
        odd = np.concatenate([[0], np.cumsum(tags & _ONE, dtype=np.int64)])
        rights = odd[offsets[1:]] - odd[offsets[:-1]]
        made = (np.diff(offsets) - rights) * rights
        for first, last in _runs(made, room):
            if last == first + 1 and made[first] > room:
                begin, end = int(offsets[first]), int(offsets[last])
                _one_by_one(writer, ring, kind, tags[begin:end], elements[begin:end], width, room)
                continue
            keys, values = np.empty(int(made[first:last].sum()), INDEX), np.empty(int(made[first:last].sum()), kind)
            several(
                np.uint64(first), np.uint64(last), offsets, tags, elements, np.uint64(width), np.uint64(0), keys, values
            )
            writer.add_chunk(keys, values)
    return writer.done()


def products_at_once(mr: MapReduce, kind: np.dtype) -> int:
    """How many products may be in flight."""
    return max(1 << 10, mr.chunk_bytes // (2 * (INDEX.itemsize + kind.itemsize)))


def _one_by_one(
    writer: Any, ring: Semiring, kind: np.dtype, tags: np.ndarray, elements: np.ndarray, width: int, room: int
) -> None:
    """One outer product that is larger than the working memory."""
    odd = (tags & _ONE).astype(bool)
    rows, columns = tags[~odd] >> _ONE, tags[odd] >> _ONE
    left, right = elements[~odd].copy(), elements[odd].copy()
    for keys, values in outer_pieces(ring, kind, rows, left, columns, right, width, room):
        writer.add_chunk(keys, values)


def outer_pieces(
    ring: Semiring, kind: np.dtype, rows: np.ndarray, left: np.ndarray, columns: np.ndarray, right: np.ndarray,
    width: int, room: int, *, upper: bool = False,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:  # fmt: skip
    """One outer product, `room` elements at a time."""
    single = ring_kernel(outer, ring, kind)
    at, total = np.uint64(0), len(rows) * len(columns)
    while at < total:
        keys, values = np.empty(min(room, total), INDEX), np.empty(min(room, total), kind)
        at, count = single(rows, left, columns, right, np.uint64(width), np.uint64(at), upper, keys, values)
        yield keys[:count], values[:count]


def _runs(sizes: np.ndarray, room: int) -> Iterator[tuple[int, int]]:
    """Runs of groups whose products together have room; one that alone has none is a run of its own."""
    first, held = 0, 0
    for k, size in enumerate(sizes.tolist()):
        if k > first and held + size > room:
            yield first, k
            first, held = k, 0
        held += size
    if first < len(sizes):
        yield first, len(sizes)


# ---- phase 2


def added(mr: MapReduce, products: KeyValue, ring: Semiring, kind: np.dtype) -> KeyValue:
    """The sum of all elements of each place."""
    name = ring.add.name
    if name in _NAMED and not (name == "sum" and kind.kind in "bc"):
        found = products.compress(name).collate().reduce(name)
        if np.dtype(found.value) != kind:
            found = mapped(found, lambda keys, values: (keys, values.astype(kind)), INDEX, kind)
        return found
    writer, add = mr.writer(INDEX, kind), ring_kernel(sums, ring, kind)
    key, last = np.empty(0, INDEX), np.empty(0, kind)
    for groups in products.collate().groups():
        if not len(groups):
            continue
        totals = np.empty(len(groups), kind)
        add(groups.offsets, groups.values, totals)
        if groups.continues and len(last):
            totals[0] = ring.add.combine(last[0], totals[0])
        else:
            writer.add_chunk(key, last)
        writer.add_chunk(groups.keys[:-1], totals[:-1])
        key, last = np.array(groups.keys[-1:]), totals[-1:]
    writer.add_chunk(key, last)
    return writer.done()


# ---- in memory


def one_rank(mr: MapReduce) -> None:
    """Refuse what is done in the memory of one process."""
    if mr.communicator.size > 1:
        raise UsageError("method='direct' works in the memory of one rank: with several use another method")


def _direct(left: Matrix, right: Matrix, ring: Semiring) -> Matrix:
    mr, kind = left.mr, ring.kind(left.dtype, right.dtype)
    one_rank(mr)
    offsets, columns, values = left.cast(kind).rows_of()
    others, other_columns, other_values = right.cast(kind).rows_of()
    rows, width = left.shape[0], right.shape[1]
    multiply = ring_kernel(gustavson, ring, kind)
    lengths, begins = np.zeros(rows, np.int64), np.zeros(rows + 1, np.int64)
    none, nothing = np.empty(0, np.int64), np.empty(0, kind)

    def every(indices: np.ndarray, out: np.ndarray) -> None:
        cuts = _even(offsets, columns, others, mr.team.threads)

        def work(k: int) -> None:
            seen, total = np.zeros(width, np.uint64), np.empty(width if len(indices) else 0, kind)
            multiply(
                np.uint64(cuts[k]), np.uint64(cuts[k + 1]), offsets, columns, values, others, other_columns,
                other_values, seen, total, lengths, begins, indices, out,
            )  # fmt: skip

        share(mr, work, len(cuts) - 1)

    every(none, nothing)
    np.cumsum(lengths, out=begins[1:])
    with mr.budget.reserve(int(begins[-1]) * (2 * INDEX.itemsize + kind.itemsize), "the product of two matrices"):
        indices, out = np.empty(int(begins[-1]), np.int64), np.empty(int(begins[-1]), kind)
        if len(out):
            every(indices, out)
        keys = np.repeat(np.arange(rows, dtype=INDEX) * INDEX.type(width), lengths) + indices.astype(INDEX)
    return Matrix(mr, (rows, width), mr.keyvalue(keys, out, key=INDEX, value=kind))


def _even(offsets: np.ndarray, columns: np.ndarray, others: np.ndarray, parts: int) -> list[int]:
    """Where to cut the rows so that each part has about as many products."""
    work = np.concatenate([[0], np.cumsum(np.diff(others)[columns])])[offsets]
    goals = np.arange(1, parts) * (int(work[-1]) // parts)
    return sorted({0, *np.searchsorted(work[:-1], goals).tolist(), len(offsets) - 1})


__all__ = ["METHODS", "power", "spgemm", "spmv", "unit"]
