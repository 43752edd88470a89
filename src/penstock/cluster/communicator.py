"""Who else works on the same job: ranks that call the same operations in the same order and exchange arrays.

A single process is a communicator of one rank, so that there is one way through every operation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from penstock.errors import UsageError

Arrays = list[np.ndarray]
Op = str | Callable[[Any, Any], Any]

_OPS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.logical_and,
    "or": np.logical_or,
    "product": np.multiply,
}


class Communicator(ABC):
    """Rank `rank` of `size`. Every method is called by all ranks together."""

    rank: int
    size: int

    @abstractmethod
    def allgather(self, value: Any) -> list[Any]:
        """What each rank gave, in the order of ranks, for everybody. Small objects."""

    @abstractmethod
    def broadcast(self, value: Any, root: int = 0) -> Any:
        """What the root gave, for everybody."""

    @abstractmethod
    def all_to_all(self, parts: Sequence[Arrays]) -> list[Arrays]:
        """`parts[r]` goes to rank r; what comes back is one list of arrays from each rank."""

    def gather(self, value: Any, root: int = 0) -> list[Any] | None:
        """What each rank gave, for the root; None for the others."""
        found = self.allgather(value)
        return found if self.rank == root else None

    def allreduce(self, value: Any, op: Op = "sum") -> Any:
        """The values of all ranks made one, in the order of ranks: a number, or an array element by element."""
        combine = operation(op)
        found = self.allgather(value)
        total = found[0]
        for other in found[1:]:
            total = combine(total, other)
        return total.item() if isinstance(total, np.generic) else total

    def barrier(self) -> None:
        """Wait for all ranks."""
        self.allgather(None)


class Alone(Communicator):
    """A single process: what it sends, it has."""

    rank, size = 0, 1

    def allgather(self, value: Any) -> list[Any]:
        return [value]

    def broadcast(self, value: Any, root: int = 0) -> Any:
        check_rank(root, 1)
        return value

    def all_to_all(self, parts: Sequence[Arrays]) -> list[Arrays]:
        if len(parts) != 1:
            raise ValueError(f"{len(parts)} parts for 1 rank")
        return [parts[0]]


def operation(op: Op) -> Callable[[Any, Any], Any]:
    """The function of two values that an operation's name stands for."""
    if callable(op):
        return op
    if op not in _OPS:
        raise UsageError(f"{op!r} is none of {', '.join(_OPS)}, nor a function of two values")
    return _OPS[op]


def check_rank(rank: int, size: int) -> None:
    """Refuse a rank that is not there."""
    if not 0 <= rank < size:
        raise UsageError(f"there is no rank {rank}: there are {size}, counted from 0")


__all__ = ["Alone", "Arrays", "Communicator", "Op", "check_rank", "operation"]
