"""What every operation on pairs means, on plain lists: slow and obvious."""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key
from typing import Any

Pairs = list[tuple[Any, Any]]
Groups = list[tuple[Any, list[Any]]]


def order(value: Any) -> Any:
    """What values are sorted by: text by its bytes."""
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value


def mapped(pairs: Pairs, f: Callable[[Any, Any], Pairs]) -> Pairs:
    """All that f makes of each pair, in their order."""
    return [made for key, value in pairs for made in f(key, value)]


def filtered(pairs: Pairs, f: Callable[[Any, Any], bool]) -> Pairs:
    return [(key, value) for key, value in pairs if f(key, value)]


def sort_keys(pairs: Pairs, descending: bool = False) -> Pairs:
    """Equal keys stay in the order they are in, the other way round, too."""
    return sorted(pairs, key=lambda pair: order(pair[0]), reverse=descending)


def sort_values(pairs: Pairs, descending: bool = False) -> Pairs:
    return sorted(pairs, key=lambda pair: order(pair[1]), reverse=descending)


def sort_keys_by(pairs: Pairs, compare: Callable[[Any, Any], int]) -> Pairs:
    def by_key(one: tuple[Any, Any], other: tuple[Any, Any]) -> int:
        return compare(one[0], other[0])

    return sorted(pairs, key=cmp_to_key(by_key))


def convert(pairs: Pairs) -> Groups:
    """Every key once, with its values in the order in which they came. In no order: compare it sorted."""
    found: dict[Any, list[Any]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return list(found.items())


def sort_multivalues(groups: Groups, descending: bool = False) -> Groups:
    return [(key, sorted(values, key=order, reverse=descending)) for key, values in groups]


def reduced(groups: Groups, f: Callable[[list[Any]], Any]) -> Pairs:
    """One value for each key."""
    return [(key, f(values)) for key, values in groups]


def clone(pairs: Pairs) -> Groups:
    return [(key, [value]) for key, value in pairs]


def collapse(pairs: Pairs, key: Any) -> Groups:
    """One key, whose values are k1, v1, k2, v2, ...; a value of nothing is not there."""
    flat = [each for pair in pairs for each in pair if each is not None]
    return [(key, flat)] if pairs else []


def parts(pairs: Pairs, part: Callable[[Any], int], count: int) -> list[Pairs]:
    """The pairs of each part, in their order."""
    return [[pair for pair in pairs if part(pair[0]) % count == number] for number in range(count)]
