"""Monoids: how contributions to a vertex combine, in any order and any grouping."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Monoid:
    """An associative, commutative function of two numbers, and the number that changes nothing.

    `identity` is a value, or a function of the dtype. With `first`, the first contribution in ascending order of the
    neighbours decides, and gathering stops there.
    """

    name: str
    combine: Callable[[Any, Any], Any]
    identity: Any
    first: bool = False

    @property
    def known(self) -> str:
        """Its name if it is one of those below, which processors can do in one step; a name alone says nothing."""
        return self.name if self in (SUM, MIN, MAX, OR, ANY, FIRST, ARGMIN) else ""

    def zero(self, dtype: np.dtype) -> Any:
        """The identity as a number of this type."""
        value = self.identity(dtype) if callable(self.identity) else self.identity
        return dtype.type(value)


def _add(a, b):
    return a + b


def _min(a, b):
    return a if a < b else b


def _max(a, b):
    return a if a > b else b


def _or(a, b):
    return a | b


def _either(a, b):
    return b


def _least(dtype: np.dtype) -> Any:
    return -np.inf if dtype.kind == "f" else False if dtype.kind == "b" else np.iinfo(dtype).min


def _greatest(dtype: np.dtype) -> Any:
    return np.inf if dtype.kind == "f" else True if dtype.kind == "b" else np.iinfo(dtype).max


SUM = Monoid("sum", _add, 0)
MIN = Monoid("min", _min, _greatest)
MAX = Monoid("max", _max, _least)
OR = Monoid("or", _or, 0)
ANY = Monoid("any", _either, 0, first=True)
"""Any one contribution, where all contributions of a superstep are equal or equally good."""
FIRST = Monoid("first", _min, _greatest, first=True)
"""The lowest-numbered neighbour: for messages that are the sender's number."""
ARGMIN = Monoid("argmin", _min, _greatest)
"""The least pair, by its value and then by its number: for contributions made by `pair(value, number)`, in uint64."""


def pair(value, number):
    """A value of 32 bits that is not negative, and a vertex number below 2**32, in one word that sorts like them."""
    return (np.uint64(value) << np.uint64(32)) | np.uint64(number)


def pair_value(word):
    """The value of a pair."""
    return np.uint32(word >> np.uint64(32))


def pair_number(word):
    """The vertex number of a pair."""
    return np.uint32(word & np.uint64(0xFFFFFFFF))


__all__ = ["ANY", "ARGMIN", "FIRST", "MAX", "MIN", "OR", "SUM", "Monoid", "pair", "pair_number", "pair_value"]
