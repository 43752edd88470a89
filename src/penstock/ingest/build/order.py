"""In which order vertices are numbered: by falling degree, or as the ids ascend."""

from __future__ import annotations

import numpy as np

from penstock.memory.device import kernel

COMMON = 1 << 16
"""Degrees below this are counted; the few vertices above are sorted."""
ABSENT = np.uint32(0xFFFFFFFF)


@kernel()
def _count(degrees, seen, counts, common):
    for c in range(np.uint64(degrees.size)):
        if seen.size == 0 or seen[c] or degrees[c] > 0:
            d = np.uint64(degrees[c])
            if d < np.uint64(common):
                counts[d] += np.uint64(1)


@kernel()
def _number_common(degrees, seen, starts, number, common):
    for c in range(np.uint64(degrees.size)):
        if seen.size > 0 and not seen[c] and degrees[c] == 0:
            number[c] = np.uint32(0xFFFFFFFF)
            continue
        d = np.uint64(degrees[c])
        if d < np.uint64(common):
            number[c] = np.uint32(starts[d])
            starts[d] += np.uint64(1)


@kernel()
def _number_input(degrees, seen, number, drop):
    at = np.uint32(0)
    for c in range(np.uint64(number.size)):
        if degrees[c] == 0 and (drop or (seen.size > 0 and not seen[c])):
            number[c] = np.uint32(0xFFFFFFFF)
        else:
            number[c] = at
            at += np.uint32(1)
    return np.int64(at)


@kernel()
def _drop_isolated(degrees, number):
    for c in range(np.uint64(degrees.size)):
        if degrees[c] == 0:
            number[c] = np.uint32(0xFFFFFFFF)


@kernel()
def _last_active(degrees, number):
    """One more than the highest number that has an arc."""
    active = np.int64(0)
    for c in range(np.uint64(degrees.size)):
        if degrees[c] > 0 and np.int64(number[c]) + 1 > active:
            active = np.int64(number[c]) + 1
    return active


@kernel()
def invert(number, code):
    """`code[number[c]] = c` for every vertex that exists."""
    for c in range(np.uint64(number.size)):
        if number[c] != np.uint32(0xFFFFFFFF):
            code[number[c]] = np.uint32(c)


@kernel()
def renumbered(values, number, out):
    """`out[number[c]] = values[c]` for numbers below the size of `out`."""
    for c in range(np.uint64(number.size)):
        if np.uint64(number[c]) < np.uint64(out.size):
            out[number[c]] = values[c]


def number_vertices(
    degrees: np.ndarray, seen: np.ndarray, number: np.ndarray, *, order: str, keep_isolated: bool
) -> tuple[int, int]:
    """Fill `number` (code -> internal number, ABSENT if there is no such vertex); returns (vertices, active).

    Codes ascend with the user's ids, so ties in degree and the input order both mean ascending ids. `seen` says
    which codes exist without an arc; empty: all of them.
    """
    if order == "input":
        vertices = _number_input(degrees, seen, number, not keep_isolated)
        return int(vertices), int(_last_active(degrees, number))
    counts = np.zeros(COMMON, np.uint64)
    _count(degrees, seen, counts, COMMON)
    giants = np.flatnonzero(degrees >= COMMON)
    giants = giants[np.argsort(-degrees[giants].astype(np.int64), kind="stable")]
    # Falling degree: the start of degree d is the number of vertices above it.
    starts = np.cumsum(counts[::-1])[::-1] - counts + np.uint64(len(giants))
    vertices = len(giants) + int(counts.sum())
    active = vertices - int(counts[0])
    _number_common(degrees, seen, starts, number, COMMON)
    number[giants] = np.arange(len(giants), dtype=np.uint32)
    if not keep_isolated:
        _drop_isolated(degrees, number)
        vertices = active
    return vertices, active
