"""Where the pairs go that users' functions make: into a writer, or through a combiner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.errors import ProgramError, UsageError
from penstock.mapreduce.functions import Function, not_a_pair, pairs_of
from penstock.mapreduce.writer import Writer

if TYPE_CHECKING:
    from penstock.mapreduce.data import Data
    from penstock.mapreduce.keyvalue import KeyValue
    from penstock.mapreduce.session import MapReduce

ROWS = 8192
"""Pairs that are Python objects at a time: they take several times the memory of their columns."""
PARALLEL_FROM = 4096
"""Rows of a part from which on a thread of its own is worth it."""


def output(mr: MapReduce, function: Function | None, combine: Any = None, expected: int | None = None) -> Any:
    """A writer for what a function makes, or a combiner around one."""
    key = None if function is None else function.key
    value = None if function is None else function.value
    if combine is None:
        return Writer(mr, key, value)
    from penstock.mapreduce.combining import Combining

    return Combining(mr, combine, key, value, expected=expected)


def finished(out: Any, function: Function, source: Data | None = None) -> KeyValue:
    """All that a function made. Of nothing nothing comes, but it should be of the same kind."""
    with blamed(function):
        made: KeyValue = out.done()
    if source is not None and not made.kept:
        made.key = source.key if function.key is None else function.key
        made.value = source.value if function.value is None else function.value
    return made


def add_columns(mr: MapReduce, out: Any, made: Any, function: Function) -> None:
    """What a chunk function returned."""
    if made is None:
        return
    if not isinstance(made, tuple) or len(made) != 2:
        raise ProgramError(f"{function.name}: a chunk function returns (keys, values), not {type(made).__name__}")
    keys, values = made
    size = sum(int(getattr(each, "nbytes", 0)) for each in made)
    with mr.room.reserve(size, "what a chunk function returned"), blamed(function):
        out.add_chunk(keys, values)


class blamed:
    """Names the function in what is wrong with the pairs it made."""

    def __init__(self, function: Function) -> None:
        self.function = function

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if isinstance(error, UsageError) and not isinstance(error, ProgramError):
            raise ProgramError(f"{self.function.name}: {error}") from None


def add_pairs(out: Any, made: Any, function: Function) -> None:
    """What a plain function returned for one record."""
    if made is None:
        return
    for pair in pairs_of(made, function):
        try:
            key, value = pair
        except (TypeError, ValueError):
            raise not_a_pair(pair, function) from None
        out.add(key, value)


__all__ = ["PARALLEL_FROM", "ROWS", "add_columns", "add_pairs", "blamed", "finished", "output"]
