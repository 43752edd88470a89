"""The most frequent number of a row, as threads of a GPU find it: they have no memory of their own for a table, so the
row is sorted where it lies. Importing this is what gives it to kernels.

One thread takes long for a long row. But a row function that uses its messages for nothing but `mode(messages)` and
`len(messages)` cannot tell who counted them, nor in which order: for such programs many threads count a long row before
the function is called, and it is given an array of two dimensions, whose mode is its first value. A function that looks
at the messages themselves is given them in the order of the arcs, as always, and one thread calls it.
"""

from __future__ import annotations

import dis
from collections.abc import Callable
from typing import Any

from penstock.engine import mode as plain
from penstock.engine.compile import usable
from penstock.engine.program import Row
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


_SKIPPED = {"PUSH_NULL", "PRECALL", "CACHE", "RESUME", "NOP", "COPY_FREE_VARS", "EXTENDED_ARG"}
_LOADS = {"LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_FAST_CHECK"}


def only_voted(program: Row) -> bool:
    """Whether the messages of a row are used for nothing but their mode and their number: seen in the function's code,
    where its second parameter is only ever the one argument of a call of `mode` or `len`."""
    row: Callable[..., Any] | None = program.row
    code = getattr(row, "__code__", None)
    if code is None or code.co_argcount < 2 or code.co_varnames[1] in code.co_cellvars:
        return False
    name, known, uses, modes = code.co_varnames[1], row.__globals__, 0, 0  # type: ignore[union-attr]
    found = [step for step in dis.get_instructions(code) if step.opname not in _SKIPPED]
    for before, step, after in zip([None, *found], found, [*found[1:], None], strict=False):
        of = step.argval if isinstance(step.argval, tuple) else (step.argval,)
        if not ("FAST" in step.opname and name in of):
            continue
        uses += 1
        called = before is not None and before.opname == "LOAD_GLOBAL" and after is not None and after.opname == "CALL"
        if step.opname not in _LOADS or not called or after.arg != 1:  # type: ignore[union-attr]
            return False
        function = known.get(before.argval, len if before.argval == "len" else None)  # type: ignore[union-attr]
        if function is not plain.mode and function is not len:
            return False
        modes += function is plain.mode
    return modes > 0


__all__ = ["mode", "only_voted", "winner"]
