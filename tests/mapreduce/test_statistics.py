"""Figures of lists and of runs."""

from __future__ import annotations

import json

import numpy as np
import pytest

from cluster.threads import ThreadRank, on_ranks
from penstock.errors import UsageError
from penstock.mapreduce.session import MapReduce
from penstock.mapreduce.statistics import spread

from .test_keyvalue import SMALL, many


def test_of_a_list() -> None:
    with MapReduce(force_out_of_core=True, **SMALL) as mr:
        kv = mr.keyvalue(np.arange(1000), np.zeros(1000, np.float32))
        found = kv.stats()
        assert found["pairs"] == 1000
        assert found["bytes"] == 12_000
        assert found["chunks"] == found["chunks_on_disk"] == len(kv.kept) > 1
        assert (found["key"], found["value"], found["order"]) == ("int64", "float32", None)
        groups = many(mr).stats(2)
        assert (groups["keys"], groups["values"]) == (3, 6)
        assert groups["values_per_key"] == {"max": 5, "powers_of_two": [1, 0, 1]}
        long = mr.keyvalue(np.arange(3000)).collapse("x").stats(2)
        assert long["values_per_key"] == {"max": 3000, "powers_of_two": [0] * 11 + [1]}
        with pytest.raises(UsageError, match="level"):
            kv.stats(3)
        json.dumps([found, groups, mr.stats(2)])


def test_of_a_run() -> None:
    with MapReduce(memory_limit="2MB", threads=1) as mr:
        kv = mr.keyvalue(np.arange(300_000))
        assert sum(len(chunk) for chunk in kv.chunks()) == 300_000
        found = mr.stats()
        assert found["memory_peak"] <= found["memory_limit"] == 2_000_000
        assert 0 < found["spill_written"] == mr.spill.written
        assert found["spill_read"] > 0
        assert found["spill_peak"] >= 2_400_000 - mr.room.share
        assert found["chunks_spilled"] > 0
        assert found["process_peak"] > 10 << 20
        assert found["operations"]["keyvalue"]["calls"] == 1
        assert found["operations"]["keyvalue"]["seconds"] > 0
        mr.stats(reset=True)
        after = mr.stats()
        assert after["operations"] == {}
        assert after["spill_written"] == after["spill_read"] == 0


def test_over_ranks() -> None:
    def task(rank: ThreadRank) -> tuple[dict[str, object], dict[str, object]]:
        with MapReduce(communicator=rank, **SMALL) as mr:
            kv = mr.keyvalue(np.arange(100 * (rank.rank + 1)))
            return kv.stats(2), mr.stats(2)

    for found, run in on_ranks(3, task):
        assert found["pairs"] == 600
        figures = found["ranks"]["pairs"]
        assert (figures["min"], figures["max"], figures["mean"], figures["imbalance"]) == (100, 300, 200, 50)
        assert sum(figures["histogram"]) == 3
        assert run["ranks"]["memory_peak"]["max"] == run["memory_peak"]


def test_the_spread_of_nothing() -> None:
    assert spread([]) == {"min": 0, "max": 0, "mean": 0.0, "imbalance": 0.0, "histogram": [0] * 10}
