"""What jobs share: maps and reductions of chunks whose kinds are told, and parts of a work for threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from penstock.mapreduce.functions import chunk
from penstock.mapreduce.keyvalue import KeyValue
from penstock.mapreduce.multivalue import KeyMultiValue
from penstock.mapreduce.session import MapReduce


def mapped(pairs: KeyValue, f: Callable[..., Any], key: Any, value: Any, **options: Any) -> KeyValue:
    """A map of chunks whose kinds are told, so that they are right also where there are no pairs."""

    def call(keys: Any, values: Any) -> Any:
        return f(keys, values)

    return pairs.map(chunk(call, key=key, value=value), **options)


def reduced(groups: KeyMultiValue, f: Callable[..., Any], key: Any, value: Any) -> KeyValue:
    """A reduction of chunks whose kinds are told. The groups are closed after it."""

    def call(keys: Any, offsets: Any, values: Any) -> Any:
        return f(keys, offsets, values)

    with groups:
        return groups.reduce(chunk(call, key=key, value=value))


def arrays_of(pairs: KeyValue) -> Iterator[tuple[Any, Any]]:
    """(keys, values) of each chunk of pairs of fixed width; valid until the next."""
    for some in pairs.chunks():
        yield some.keys, some.values


def share(mr: MapReduce, work: Callable[[int], Any], parts: int) -> None:
    """Parts of a work, taken by threads in turn."""
    turns = iter(range(parts))

    def take(worker: int) -> None:
        for k in turns:
            work(k)

    mr.team.run(take, alone=parts <= 1)


__all__ = ["arrays_of", "mapped", "reduced", "share"]
