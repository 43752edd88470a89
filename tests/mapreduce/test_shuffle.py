"""Splitters, parts, and what moves between ranks."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cluster.threads import ThreadRank, on_ranks
from penstock.errors import UsageError
from penstock.mapreduce.balance import imbalance
from penstock.mapreduce.columns import Bytes, codes
from penstock.mapreduce.session import MapReduce

BUDGET = {"memory_limit": "4MB", "chunk_size": 4096, "threads": 1}
FORCED = pytest.mark.parametrize("forced", [False, True])


def keys_of(kind: str, count: int = 3000) -> list[Any]:
    rng = np.random.default_rng(5)
    skewed = rng.zipf(1.5, count).clip(max=1000)
    if kind == "string":
        return [f"a common beginning {number}" for number in skewed]
    if kind == "bytes":
        return [b"\xff\0" + bytes([int(number) % 256]) * (int(number) % 5) for number in skewed]
    return [-int(number) if number % 2 else int(number) for number in skewed]


def third(keys: Any, parts: int) -> np.ndarray:
    return np.array([len(str(key)) for key in keys])


@FORCED
@pytest.mark.parametrize("kind", ["int", "string", "bytes"])
@pytest.mark.parametrize("splitter", ["range", "hash", "lpt", third])
def test_parts_hold_every_pair_once_and_every_key_whole(tmp_path: Path, forced: bool, kind: str, splitter: Any) -> None:
    keys = keys_of(kind)
    with MapReduce(temp_directory=tmp_path, force_out_of_core=forced, **BUDGET) as mr:
        kv = mr.keyvalue(keys, np.arange(len(keys)))
        parts = kv.partition(5, splitter)
        where = {}
        for number, part in enumerate(parts):
            positions = [value for _, value in part]
            assert positions == sorted(positions)
            for key, value in part:
                assert keys[value] == key
                assert where.setdefault(key, number) == number
        assert sum(map(len, parts)) == len(keys)
        if splitter == "range":
            order = sorted(set(keys))
            assert [where[key] for key in order] == sorted(where.values())
        whole = kv.aggregate(splitter, parts=5)
        assert whole.records == [len(part) for part in parts]
        assert [value for _, value in whole] == [value for part in parts for _, value in part]
        assert whole.stats(2)["parts"]["max"] == max(whole.records)
    assert not list(tmp_path.iterdir())


def test_ranges_are_even_and_lpt_is_more_even_than_a_hash() -> None:
    rng = np.random.default_rng(2)
    with MapReduce(memory_limit="16MB", threads=1) as mr:
        even = mr.keyvalue(rng.random(50_000)).aggregate("range", parts=8)
        assert even.records is not None
        assert imbalance(even.records) < 10
        kv = mr.keyvalue(rng.zipf(1.9, 50_000).clip(max=1 << 40) % 1000)
        lpt, hashed = (kv.aggregate(splitter, parts=8).records for splitter in ("lpt", "hash"))
        assert lpt is not None
        assert hashed is not None
        assert imbalance(lpt) < imbalance(hashed)


def test_one_rank_moves_nothing() -> None:
    with MapReduce(**BUDGET) as mr:
        kv = mr.keyvalue([3, 1, 2], ["c", "a", "b"])
        assert list(kv.aggregate("hash")) == list(kv.gather()) == list(kv.broadcast()) == list(kv)
        assert mr.stats()["skipped"] == {"aggregate": 1, "gather": 1, "broadcast": 1}
        with pytest.raises(UsageError, match="'modulo' is no splitter"):
            kv.aggregate("modulo")
        with pytest.raises(UsageError, match="0 parts"):
            kv.aggregate(parts=0)
        with pytest.raises(UsageError, match="one integer for each of 3 keys"):
            kv.aggregate(lambda keys: 1, parts=2)
        with pytest.raises(UsageError, match="at least 1"):
            kv.gather(0)
        with pytest.raises(UsageError, match="no rank 2"):
            kv.broadcast(2)


@FORCED
@pytest.mark.parametrize("kind", ["int", "string"])
@pytest.mark.parametrize("splitter", ["range", "hash", "lpt", third])
def test_ranks_meet(tmp_path: Path, forced: bool, kind: str, splitter: Any) -> None:
    keys = keys_of(kind)

    def task(rank: ThreadRank) -> Any:
        with MapReduce(temp_directory=tmp_path, force_out_of_core=forced, communicator=rank, **BUDGET) as mr:
            mine = range(len(keys))[rank.rank :: 2] if rank.rank < 2 else range(0)
            kv = mr.keyvalue([keys[i] for i in mine] or None, list(mine) or None)  # the last rank has nothing at all
            moved = kv.aggregate(splitter)
            again = moved.aggregate(splitter)
            assert mr.stats()["skipped"] == {"aggregate": 1}
            assert list(again) == list(moved)
            assert moved.total == len(keys)
            assert moved.partitioned is not None
            assert moved.stats(2)["ranks"]["pairs"]["mean"] == len(keys) / 3
            assert 0 < rank.largest < 3 * mr.chunk_bytes
            return list(moved), mr.stats()["bytes_sent"]

    found = on_ranks(3, task)
    pairs = [pair for part, _ in found for pair in part]
    assert sorted(value for _, value in pairs) == list(range(len(keys)))
    assert all(keys[value] == key for key, value in pairs)
    owners = Counter(key for part, _ in found for key in {key for key, _ in part})
    assert max(owners.values()) == 1
    assert found[0][1] > 0
    if splitter == "range":
        ranges = [(min(part)[0], max(part)[0]) for part, _ in found]
        assert all(below[1] < above[0] for below, above in pairwise(ranges))
    assert not list(tmp_path.iterdir())


def test_ranks_gather_broadcast_and_scrunch() -> None:
    def task(rank: ThreadRank) -> Any:
        with MapReduce(communicator=rank, **BUDGET) as mr:
            kv = mr.keyvalue([rank.rank] * 3, [f"v{rank.rank}{i}" for i in range(3)])
            two, root = list(kv.gather(2)), list(kv.broadcast(1))
            packed = [(key, list(values)) for key, values in mr.keyvalue([rank.rank]).scrunch(1, "all")]
            return two, root, packed

    found = on_ranks(3, task)
    assert [[key for key, _ in two] for two, _, _ in found] == [[0, 0, 0, 2, 2, 2], [1, 1, 1], []]
    assert [root for _, root, _ in found] == [[(1, "v10"), (1, "v11"), (1, "v12")]] * 3
    assert [packed for _, _, packed in found] == [[("all", [0, 1, 2])], [], []]


def test_ranks_that_differ_in_kind_are_told() -> None:
    def task(rank: ThreadRank) -> None:
        with MapReduce(communicator=rank, **BUDGET) as mr:
            mr.keyvalue(["a"] if rank.rank else [1]).aggregate("hash")

    with pytest.raises(UsageError, match="different kinds"):
        on_ranks(2, task)


def test_a_range_of_texts_compares_whole_keys() -> None:
    words = sorted(f"http://example.org/{i:05d}" for i in range(2000))
    assert len(set(codes(Bytes.of(words)).tolist())) == 1
    with MapReduce(**BUDGET) as mr:
        cut = mr.keyvalue(words).aggregate("range", parts=4)
        assert cut.records is not None
        assert imbalance(cut.records) < 10
        assert [key for key, _ in cut] == words
