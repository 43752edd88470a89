"""All-pairs similarity: which rows of a matrix are alike, by A times its transpose.

Returns   (i, j, similarity) of the pairs of rows i < j whose similarity is at least the threshold, in order.
Defined   dot(i, j) = sum_k a(i, k) a(j, k);  cosine: dot / sqrt(dot(i, i) dot(j, j));
          jaccard, of which elements are stored: dot / (dot(i, i) + dot(j, j) - dot);  or a function of the three dots.
          Pairs of rows without a column in common are not looked at, whatever the function says.
Phases    columns make outer products of themselves, of which one half is enough; the products of a pair add up;
          the threshold is applied to what comes out.
Ref       004, section 3.1, algorithm 4
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from penstock.apps.grouped import arrays_of, mapped
from penstock.apps.matrix.matrix import INDEX, Matrix
from penstock.apps.matrix.multiply import METHODS, added, outer_pieces, products_at_once, spgemm
from penstock.apps.matrix.semiring import PLUS_TIMES
from penstock.errors import UsageError
from penstock.mapreduce.reduce import whole_groups

Measure = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""Of dot(i, j), dot(i, i) and dot(j, j), as arrays."""


def _cosine(dot: np.ndarray, own: np.ndarray, other: np.ndarray) -> np.ndarray:
    return dot / np.sqrt(own * other)


def _jaccard(dot: np.ndarray, own: np.ndarray, other: np.ndarray) -> np.ndarray:
    return dot / (own + other - dot)


def _dot(dot: np.ndarray, own: np.ndarray, other: np.ndarray) -> np.ndarray:
    return dot


MEASURES: dict[str, Measure] = {"cosine": _cosine, "jaccard": _jaccard, "dot": _dot}


def similarity(
    matrix: Matrix, measure: str | Measure = "cosine", *, threshold: float = 0.0, method: str = "mapreduce"
) -> Matrix:
    """The upper half of the similarities of rows that reach the threshold."""
    if isinstance(measure, str) and measure not in MEASURES:
        raise UsageError(f"there is no measure {measure!r}; there are {', '.join(MEASURES)}, or give a function")
    if method not in METHODS:
        raise UsageError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    mr, n = matrix.mr, matrix.shape[0]
    found = MEASURES[measure] if isinstance(measure, str) else measure
    values = matrix.cast(np.float64)
    if measure == "jaccard":
        values = Matrix(mr, matrix.shape, mapped(matrix.entries, lambda k, v: (k, np.ones(len(k))), INDEX, np.float64))
    if method == "direct":
        dots = spgemm(values, values.transposed, PLUS_TIMES, method="direct").entries
    else:
        dots = _upper(values)
    own = _own(values)
    width = INDEX.type(max(1, n))

    def reach(keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        row, column = np.divmod(keys, width)
        with np.errstate(all="ignore"):
            alike = np.asarray(found(values, own[row], own[column]), np.float64)
        kept = (row < column) & (alike >= threshold)
        return keys[kept], alike[kept]

    return Matrix(mr, (n, n), mapped(dots, reach, INDEX, np.float64).sort_keys())


def _own(matrix: Matrix) -> np.ndarray:
    """dot(i, i) of each row: on every process, as it is needed there."""
    found, width = np.zeros(matrix.shape[0]), INDEX.type(max(1, matrix.shape[1]))
    for keys, values in arrays_of(matrix.entries):
        found += np.bincount(keys // width, values * values, minlength=len(found))
    return np.asarray(matrix.mr.communicator.allreduce(found, "sum"))


def _upper(matrix: Matrix) -> Any:
    """dot(i, j) of all i < j that have a column in common."""
    mr, n, width = matrix.mr, matrix.shape[0], INDEX.type(max(1, matrix.shape[1]))
    kind = np.dtype([("row", np.uint64), ("element", np.float64)])

    def by_column(keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        row, column = np.divmod(keys, width)
        entry = np.empty(len(keys), kind)
        entry["row"], entry["element"] = row, values
        return column, entry

    writer, room = mr.writer(INDEX, np.dtype(np.float64)), products_at_once(mr, np.dtype(np.float64))
    for groups in whole_groups(mapped(matrix.entries, by_column, INDEX, kind).collate()):
        for first, last in zip(groups.offsets[:-1].tolist(), groups.offsets[1:].tolist(), strict=True):
            if last - first < 2:
                continue
            rows = np.ascontiguousarray(groups.values["row"][first:last])
            elements = np.ascontiguousarray(groups.values["element"][first:last])
            for piece in outer_pieces(
                PLUS_TIMES, np.dtype(np.float64), rows, elements, rows, elements, n, room, upper=True
            ):
                writer.add_chunk(*piece)
    return added(mr, writer.done(), PLUS_TIMES, np.dtype(np.float64))


__all__ = ["MEASURES", "similarity"]
