"""One communicator: a single process, and ranks that meet."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.cluster.communicator import Alone, operation
from penstock.errors import UsageError

from .threads import ThreadRank, on_ranks


def test_alone_has_what_it_sends() -> None:
    alone = Alone()
    assert (alone.rank, alone.size) == (0, 1)
    assert alone.allreduce(5) == 5
    assert alone.broadcast("x") == "x"
    assert alone.gather(3) == [3]
    (came,) = alone.all_to_all([[np.arange(3)]])
    assert came[0].tolist() == [0, 1, 2]
    alone.barrier()
    with pytest.raises(ValueError, match="2 parts"):
        alone.all_to_all([[], []])
    with pytest.raises(UsageError, match="no rank 1"):
        alone.broadcast("x", root=1)


def test_reductions() -> None:
    def task(rank: ThreadRank) -> list[object]:
        mine = rank.rank + 1
        array = rank.allreduce(np.array([mine, -mine]), "max")
        numbers = [rank.allreduce(mine, op) for op in ("sum", "min", "max", "product", lambda a, b: a - b)]
        return [*numbers, rank.allreduce(mine > 1, "and"), rank.allreduce(mine > 2, "or"), array.tolist()]

    assert on_ranks(3, task) == [[6, 1, 3, 6, -4, False, True, [3, -1]]] * 3


def test_only_the_root_gathers() -> None:
    assert on_ranks(3, lambda rank: rank.gather(rank.rank * 2, root=1)) == [None, [0, 2, 4], None]


def test_an_unknown_operation_is_one_sentence() -> None:
    with pytest.raises(UsageError, match="'xor' is none of sum"):
        operation("xor")
