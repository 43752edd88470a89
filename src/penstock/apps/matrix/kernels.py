"""Templates of kernels made around a semiring's functions: `c.add`, `c.multiply`, `c.zero`, `c.kind`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from penstock.apps.matrix.semiring import Semiring
from penstock.engine.compile import FAST, usable
from penstock.errors import ProgramError
from penstock.memory.device import CompileError, template_kernel
from penstock.memory.fingerprint import fingerprint

_ONE = np.uint64(1)
_SIDE = np.uint64(1)


def outer(c):
    """Products of one column with one row: (i * width + k, a * b) for all i of the column and k of the row, from the
    pair `first` on, as many as `keys` holds. Returns how many. With `upper` only those of i < k."""
    multiply = c.multiply

    def outer(rows, left, columns, right, width, first, upper, keys, values):
        m, k = np.uint64(columns.size), np.uint64(0)
        room, total = np.uint64(keys.size), np.uint64(rows.size) * np.uint64(columns.size)
        at = first
        while at < total and k < room:
            i, j = at // m, at % m
            row, a = np.uint64(rows[i]), left[i]
            while j < m and k < room:
                column = np.uint64(columns[j])
                if not upper or row < column:
                    keys[k] = row * width + column
                    values[k] = multiply(a, right[j])
                    k += _ONE
                j += _ONE
                at += _ONE
        return at, k

    return outer


def outers(c):
    """The same for the groups `first` to `last` of tagged elements: those of even tags are a column's, those of odd
    ones a row's; the index is the tag halved. Within a group those of the column come first."""
    multiply = c.multiply

    def outers(first, last, offsets, tags, elements, width, at, keys, values):
        for g in range(first, last):
            begin, end = np.uint64(offsets[g]), np.uint64(offsets[g + _ONE])
            middle = begin
            while middle < end and not np.uint64(tags[middle]) & _SIDE:
                middle += _ONE
            for i in range(begin, middle):
                row, a = (np.uint64(tags[i]) >> _ONE) * width, elements[i]
                for j in range(middle, end):
                    keys[at] = row + (np.uint64(tags[j]) >> _ONE)
                    values[at] = multiply(a, elements[j])
                    at += _ONE
        return at

    return outers


def sums(c):
    """The sum of each group."""
    add, zero = c.add, c.zero

    def sums(offsets, values, out):
        for g in range(np.uint64(out.size)):
            total = zero
            for a in range(np.uint64(offsets[g]), np.uint64(offsets[g + _ONE])):
                total = add(total, values[a])
            out[g] = total

    return sums


def gustavson(c):
    """Rows `first` to `last` of a product of two matrices in CSR form, each row into a dense accumulator. With no room
    in `indices` rows are only counted, into `lengths`."""
    add, multiply, zero = c.add, c.multiply, c.zero

    def gustavson(
        first,
        last,
        offsets,
        columns,
        left,
        other_offsets,
        other_columns,
        right,
        seen,
        sums,
        lengths,
        begins,
        indices,
        out,
    ):
        counting = indices.size == 0
        for i in range(first, last):
            mark, count = i + _ONE, np.uint64(0)
            begin = np.uint64(0) if counting else np.uint64(begins[i])
            for a in range(np.uint64(offsets[i]), np.uint64(offsets[i + _ONE])):
                j, x = np.uint64(columns[a]), left[a]
                for b in range(np.uint64(other_offsets[j]), np.uint64(other_offsets[j + _ONE])):
                    k = np.uint64(other_columns[b])
                    if seen[k] != mark:
                        seen[k] = mark
                        if not counting:
                            indices[begin + count] = k
                            sums[k] = add(zero, multiply(x, right[b]))
                        count += _ONE
                    elif not counting:
                        sums[k] = add(sums[k], multiply(x, right[b]))
            if counting:
                lengths[i] = count
            else:
                row = indices[begin : begin + count]
                row.sort()
                for a in range(begin, begin + count):
                    out[a] = sums[indices[a]]

    return gustavson


class _Guarded:
    """A kernel that says which semiring did not compile."""

    def __init__(self, kernel: Any, ring: Semiring) -> None:
        self.kernel, self.ring = kernel, ring

    def __call__(self, *args: Any) -> Any:
        try:
            return self.kernel(*args)
        except CompileError as error:
            reason = next((line for line in str(error).splitlines() if line and line[0] not in " \x1b"), str(error))
            raise ProgramError(f"semiring {self.ring.name} does not compile: {reason}") from error


_KEPT: dict[str, _Guarded] = {}


def ring_kernel(template: Any, ring: Semiring, kind: np.dtype) -> Any:
    """A kernel of a semiring for elements of this type; the same one for a semiring that does the same."""
    zero = ring.zero(kind)
    key = fingerprint(template.__qualname__, ring.add.combine, ring.multiply, str(kind), repr(zero))
    if key not in _KEPT:
        parts = SimpleNamespace(
            add=usable(ring.add.combine), multiply=usable(ring.multiply), zero=zero, kind=kind,
        )  # fmt: skip
        _KEPT[key] = _Guarded(template_kernel(template(parts), key, fastmath=FAST), ring)
    return _KEPT[key]


__all__ = ["gustavson", "outer", "outers", "ring_kernel", "sums"]
