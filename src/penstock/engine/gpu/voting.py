"""Row programs that only vote.

One thread takes long for a long row. But a row function that uses its messages for nothing but `mode(messages)` and
`len(messages)` cannot tell who counted them, nor in which order: for such programs many threads count a long row before
the function is called, and it is given an array of two dimensions, whose mode is its first value. A function that looks
at the messages themselves is given them in the order of the arcs, as always, and one thread calls it.
"""

from __future__ import annotations

import dis
from collections.abc import Callable
from typing import Any

from penstock.engine.mode import mode
from penstock.engine.program import Row

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
        if function is not mode and function is not len:
            return False
        modes += function is mode
    return modes > 0


__all__ = ["only_voted"]
