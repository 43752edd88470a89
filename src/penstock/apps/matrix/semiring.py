"""Semirings: what stands for addition and multiplication of matrix elements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.engine.monoid import MAX, MIN, OR, SUM, Monoid
from penstock.errors import UsageError


@dataclass(frozen=True)
class Semiring:
    """`add` is a monoid whose identity is what elements that are not stored have; `multiply` distributes over it.

    >>> Semiring("max-plus", MAX, lambda a, b: a + b)   # doctest: +SKIP
    """

    name: str
    add: Monoid
    multiply: Callable[[Any, Any], Any]
    dtype: Any = None
    """What elements are made to; None: they keep their type."""
    one: Any = None
    """What changes nothing when multiplied with; needed for powers. A value, or a function of the dtype."""

    def kind(self, *dtypes: np.dtype) -> np.dtype:
        """The type of products of these."""
        return np.dtype(self.dtype) if self.dtype is not None else np.result_type(*dtypes)

    def zero(self, dtype: np.dtype) -> Any:
        """What is not stored."""
        return self.add.zero(dtype)

    def unit(self, dtype: np.dtype) -> Any:
        """The element on the diagonal of the unit matrix."""
        if self.one is None:
            raise UsageError(f"semiring {self.name} has no one: powers of a matrix need it")
        return dtype.type(self.one(dtype) if callable(self.one) else self.one)


def _times(a, b):
    return a * b


def _plus(a, b):
    return a + b


def _and(a, b):
    return a & b


def _min(a, b):
    return a if a < b else b


def _greatest(dtype: np.dtype) -> Any:
    return MIN.zero(dtype)


PLUS_TIMES = Semiring("plus-times", SUM, _times, one=1)
MIN_PLUS = Semiring("min-plus", MIN, _plus, dtype=np.float64, one=0)
"""Lengths of paths: floating point, so that infinity is one."""
OR_AND = Semiring("or-and", OR, _and, dtype=np.uint8, one=1)
"""Truth: 1 where an element is stored and not 0."""
MAX_MIN = Semiring("max-min", MAX, _min, one=_greatest)
"""Widths of paths."""
SEMIRINGS = {ring.name: ring for ring in (PLUS_TIMES, MIN_PLUS, OR_AND, MAX_MIN)}


def as_semiring(ring: Semiring | str) -> Semiring:
    """By name, or as it is."""
    if isinstance(ring, Semiring):
        return ring
    if ring not in SEMIRINGS:
        raise UsageError(f"there is no semiring {ring!r}; there are {', '.join(SEMIRINGS)}, or make your own Semiring")
    return SEMIRINGS[ring]


__all__ = ["MAX_MIN", "MIN_PLUS", "OR_AND", "PLUS_TIMES", "SEMIRINGS", "Semiring", "as_semiring"]
