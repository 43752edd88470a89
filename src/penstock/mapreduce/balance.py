"""Who takes what: items of known weight dealt out to equal processors, and how uneven that came out.

Longest processing time first (Graham 1969): the largest item goes to whoever has least. It takes O(n log n), and the
largest load is at most 4/3 - 1/(3 parts) of the best possible one. Round robin is what it is compared with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.errors import UsageError


@dataclass(frozen=True)
class Dealt:
    """`part[i]`: who has item i. `loads[p]`: the weight of all that p has."""

    part: np.ndarray
    loads: np.ndarray

    @property
    def imbalance(self) -> float:
        """By how many per cent the largest load is above the mean."""
        return imbalance(self.loads)


def imbalance(loads: Any) -> float:
    """(max - mean) / mean, in per cent; 0 where there is no load at all."""
    numbers = np.asarray(loads, np.float64)
    mean = numbers.mean() if len(numbers) else 0.0
    return float((numbers.max() - mean) / mean * 100) if mean else 0.0


def _checked(weights: Any, parts: int) -> np.ndarray:
    if parts < 1:
        raise UsageError(f"work cannot be dealt out to {parts} parts: give at least 1")
    numbers = np.ascontiguousarray(weights, np.float64)
    if numbers.ndim != 1 or not np.isfinite(numbers).all() or (numbers < 0).any():
        raise UsageError("weights are a list of numbers of at least 0")
    return numbers


def lpt(weights: Any, parts: int) -> Dealt:
    """Longest processing time first: 8, 5, 4, 3, 1 on three processors is 8 | 5, 1 | 4, 3."""
    from penstock.mapreduce.kernels.balance import assign_longest

    numbers = _checked(weights, parts)
    part, loads = np.empty(len(numbers), np.int64), np.zeros(parts)
    assign_longest(numbers, np.argsort(-numbers, kind="stable"), parts, part, loads)
    return Dealt(part, loads)


def round_robin(weights: Any, parts: int) -> Dealt:
    """Item i to part i mod parts."""
    numbers = _checked(weights, parts)
    part = np.arange(len(numbers)) % parts
    return Dealt(part, np.bincount(part, numbers, minlength=parts))


def compare(weights: Any, parts: int) -> dict[str, float]:
    """The imbalance of both, in per cent: of a graph's degrees, how evenly its arcs would lie on so many nodes."""
    return {"lpt": lpt(weights, parts).imbalance, "round robin": round_robin(weights, parts).imbalance}


__all__ = ["Dealt", "compare", "imbalance", "lpt", "round_robin"]
