"""Ranks that are threads of one process: what MPI ranks do, without MPI."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from penstock.cluster.communicator import Arrays, Communicator


class _Table:
    def __init__(self, size: int) -> None:
        self.places: list[Any] = [None] * size
        self.barrier = threading.Barrier(size, timeout=30)


class ThreadRank(Communicator):
    """Values are laid on a table, and looked at once all have."""

    def __init__(self, rank: int, size: int, table: _Table) -> None:
        self.rank, self.size, self._table = rank, size, table
        self.largest = 0
        """Bytes received in one exchange, at most."""

    def allgather(self, value: Any) -> list[Any]:
        self._table.places[self.rank] = value
        self._table.barrier.wait()
        found = list(self._table.places)
        self._table.barrier.wait()
        return found

    def broadcast(self, value: Any, root: int = 0) -> Any:
        return self.allgather(value)[root]

    def all_to_all(self, parts: Sequence[Arrays]) -> list[Arrays]:
        assert len(parts) == self.size
        found = [sent[self.rank] for sent in self.allgather([[array.copy() for array in part] for part in parts])]
        self.largest = max(self.largest, sum(array.nbytes for part in found for array in part))
        return found


def on_ranks(size: int, task: Callable[[ThreadRank], Any]) -> list[Any]:
    """What `task` returned on each rank. The first error is raised here."""
    table = _Table(size)
    found: list[Any] = [None] * size
    errors: list[BaseException] = []

    def run(rank: int) -> None:
        try:
            found[rank] = task(ThreadRank(rank, size, table))
        except BaseException as error:
            if not isinstance(error, threading.BrokenBarrierError):
                errors.append(error)
            table.barrier.abort()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return found
