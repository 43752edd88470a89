"""What users hand to map, filter, scan, reduce and compress: three kinds of functions, and reductions by name.

- `chunk`: a function of columns, `f(keys, values) -> (keys, values)`; of a reduction `f(keys, offsets, values)`.
- `compiled`: a function of one pair, compiled by Numba: `f(key, value, out)` that calls `emit(out, key, value)` as
  often as it likes, or `f(key, value) -> (key, value)`. Fixed width only.
- `python`: a function of one pair that does anything: it returns None, a pair or a list of pairs, yields pairs, or
  calls the `emit` it is given as its last argument.

Which one a function is, its decorator says, or `kind=`. Where neither does, a function of `keys` and `values` is a
chunk function, one whose last parameter is called `out` is compiled, and every other one is plain Python.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from penstock.errors import ProgramError, UsageError
from penstock.mapreduce.columns import Kind, as_kind

KINDS = ("chunk", "compiled", "python")
_MARK = "__penstock__"
_UNSET: Any = object()


@dataclass(frozen=True)
class Function:
    """A user's function and all that is known of it."""

    call: Callable[..., Any]
    kind: str
    key: Kind | None = None
    value: Kind | None = None
    """What it makes, where that was declared."""
    parallel: bool = False
    """Whether several threads may call it at once. Compiled ones always may."""
    emits: bool = False
    """Whether it takes an `emit` or an `out` after its other arguments."""
    pairwise: bool = False
    """Whether it joins two values of a key to one."""

    @property
    def name(self) -> str:
        """For messages: the name, and where it stands."""
        code = getattr(self.call, "__code__", None)
        name = getattr(self.call, "__name__", type(self.call).__name__)
        return f"{name} ({code.co_filename}:{code.co_firstlineno})" if code is not None else name


@dataclass(frozen=True)
class _Declared:
    kind: str
    key: Any
    value: Any
    parallel: bool
    pairwise: bool = False


def _declare(kind: str, function: Any, key: Any, value: Any, parallel: bool = False, pairwise: bool = False) -> Any:
    def mark(function: Any) -> Any:
        target = getattr(function, "py_func", function)
        setattr(target, _MARK, _Declared(kind, key, value, parallel, pairwise))
        return target

    return mark if function is None else mark(function)


def chunk(function: Any = None, *, key: Any = _UNSET, value: Any = _UNSET, parallel: bool = False) -> Any:
    """Declare a function of columns. `parallel`: several threads may call it at once, each with a part of a chunk."""
    return _declare("chunk", function, key, value, parallel)


def compiled(function: Any = None, *, key: Any = _UNSET, value: Any = _UNSET) -> Any:
    """Declare a function to be compiled. `key`, `value`: what it makes, where what it emits first does not show it."""
    return _declare("compiled", function, key, value)


def pairwise(function: Any = None) -> Any:
    """Declare a compiled reduction `f(a, b)` of two values of a key to one of their kind. Values are joined in any
    order and by twos, so it must not matter in which: many threads of a GPU may share the values of one key."""
    return _declare("compiled", function, _UNSET, _UNSET, pairwise=True)


def python(function: Any = None, *, key: Any = _UNSET, value: Any = _UNSET) -> Any:
    """Declare a plain function. `key`, `value`: what it makes, where the first pairs do not show it."""
    return _declare("python", function, key, value)


def emit(out: Any, key: Any, value: Any) -> None:
    """One pair from a compiled function; `out` is its last argument. Uncompiled, it appends to a list."""
    out.append((key, value))


def _parameters(function: Any) -> list[str] | None:
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None  # some of those written in C do not say
    if any(each.kind is each.VAR_POSITIONAL for each in found):
        return None
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [
        each.name for each in found if each.kind in positional and (each.default is each.empty or each.name == "emit")
    ]


def _found_out(names: list[str] | None, chunk_names: Iterable[tuple[str, ...]]) -> str:
    if names is None:
        return "python"
    if tuple(names) in chunk_names:
        return "chunk"
    return "compiled" if names and names[-1] == "out" else "python"


def resolve(
    function: Any,
    kind: str = "auto",
    *,
    what: str = "map",
    arguments: int = 2,
    chunk_names: tuple[str, ...] = ("keys", "values"),
    emits: bool = True,
) -> Function:
    """Which kind of function this is. `arguments`: how many one that is not of chunks has before its `emit` or `out`;
    `chunk_names`: the parameters by which one of chunks is known; `emits`: whether it may have an `emit`."""
    if not callable(function):
        raise UsageError(f"{what} takes a function, not {function!r:.60}")
    if kind not in ("auto", *KINDS):
        raise UsageError(f"{kind!r} is no kind of function: use one of auto, {', '.join(KINDS)}")
    was_compiled = hasattr(function, "py_func")
    function = getattr(function, "py_func", function)
    declared: _Declared | None = getattr(function, _MARK, None)
    names = _parameters(function)
    if kind == "auto":
        if declared is not None:
            kind = declared.kind
        else:
            kind = "compiled" if was_compiled else _found_out(names, [chunk_names])
    wanted = len(chunk_names) if kind == "chunk" else arguments
    count = wanted if names is None else len(names)
    made = Function(
        function,
        kind,
        None if declared is None or declared.key is _UNSET else as_kind(declared.key),
        None if declared is None or declared.value is _UNSET else as_kind(declared.value),
        declared is not None and declared.parallel,
        emits and kind != "chunk" and count == wanted + 1,
        declared is not None and declared.pairwise,
    )
    if made.pairwise and what not in ("reduce", "compress"):
        raise UsageError(f"{made.name}: a function that joins two values of a key is for reduce, not for {what}")
    if count != wanted and not made.emits:
        also = (
            "" if kind == "chunk" or not emits else f", or {wanted + 1} with {'out' if kind == 'compiled' else 'emit'}"
        )
        raise UsageError(f"{made.name}: a {kind} function for {what} takes {wanted} arguments{also}, not {count}")
    return made


def pairs_of(made: Any, function: Function) -> Iterable[tuple[Any, Any]]:
    """The pairs in what a plain function returned: none, one, or many."""
    if made is None:
        return ()
    if isinstance(made, tuple) and len(made) == 2:
        return (made,)
    if isinstance(made, (str, bytes, tuple)) or not hasattr(made, "__iter__"):
        raise not_a_pair(made, function)
    return made


def not_a_pair(made: Any, function: Function) -> ProgramError:
    return ProgramError(
        f"{function.name}: {made!r:.60} is no pair: return None, (key, value) or a list of such pairs, or yield them"
    )


__all__ = ["KINDS", "Function", "chunk", "compiled", "emit", "not_a_pair", "pairs_of", "pairwise", "python", "resolve"]
