"""The most frequent number of a row, as threads of a GPU find it: they have no memory of their own for a table, so the
row is sorted where it lies. Importing this is what gives it to kernels. See `penstock.engine.gpu.voting` for rows that
many threads count.
"""

from __future__ import annotations

from penstock.engine import mode as plain
from penstock.engine.compile import usable
from penstock.memory import gpu


def _sift(values, at, end):
    """Let a value sink to its place in a heap."""
    value = values[at]
    while True:
        below = 2 * at + 1
        if below >= end:
            break
        if below + 1 < end and values[below + 1] > values[below]:
            below += 1
        if values[below] <= value:
            break
        values[at] = values[below]
        at = below
    values[at] = value


def _sort(values):
    n = len(values)
    for k in range(n // 2):
        _sift(values, n // 2 - 1 - k, n)
    for k in range(n - 1):
        end = n - 1 - k
        largest = values[0]
        values[0] = values[end]
        values[end] = largest
        _sift(values, 0, end)


def mode(values):
    """What `penstock.engine.mode.mode` returns; the array is reordered."""
    n = len(values)
    if n <= plain.FEW:
        return plain.most_of_few(values, 0, n, values[0], 0)[0]
    best, most = plain.majority(values)
    if 2 * most > n:
        return best
    _sort(values)
    return plain.most_of_sorted(values, 0, n, best, most)[0]


def winner(values):
    """The mode of a row that was voted on before."""
    return values[0, 0]


gpu.compiled_as(plain.mode, dict.fromkeys((1, 2, 4, 8), usable(mode)), wide=usable(winner))


__all__ = ["mode", "winner"]
