"""Lists of pairs and of keys with values: sharing, adding, cloning, collapsing, and what lies underneath."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from penstock.errors import UsageError
from penstock.mapreduce.chunk import Groups
from penstock.mapreduce.columns import Bytes
from penstock.mapreduce.multivalue import KeyMultiValue
from penstock.mapreduce.session import MapReduce

SMALL = {"memory_limit": "2MB", "chunk_size": 1024, "threads": 1}
FORCED = pytest.mark.parametrize("forced", [False, True])


def many(mr: MapReduce) -> KeyMultiValue:
    """7 -> 0..4 over three chunks, 8 -> nothing, 9 -> 5."""
    cuts = [
        Groups(np.array([7]), np.array([0, 2]), np.array([0, 1])),
        Groups(np.array([7]), np.array([0, 1]), np.array([2]), continues=True),
        Groups(np.array([7, 8, 9]), np.array([0, 2, 2, 3]), np.array([3, 4, 5]), continues=True),
    ]
    return KeyMultiValue(mr, [mr.room.put(cut) for cut in cuts], np.dtype("i8"), np.dtype("i8"))


@FORCED
def test_copies_and_sums_share_their_chunks(tmp_path: Path, forced: bool) -> None:
    with MapReduce(force_out_of_core=forced, temp_directory=tmp_path, **SMALL) as mr:
        one, two = mr.keyvalue(np.arange(5000), np.ones(5000)), mr.keyvalue([-1], [2.0])
        written, used = mr.spill.written, mr.room.used
        copy, both = one.copy(), one.add(two, one)
        assert (mr.spill.written, mr.room.used) == (written, used)
        assert len(both) == 10_001
        assert both.nbytes == 2 * one.nbytes + two.nbytes
        one.close()
        assert [key for key, _ in copy] == list(range(5000))
        copy.close()
        assert [key for key, _ in both][4999:5002] == [4999, -1, 0]
        both.close()
        two.close()
        assert mr.room.used == mr.spill.used == 0
        with pytest.raises(UsageError, match="this KeyValue was closed"):
            len(one)


def test_what_cannot_be_added() -> None:
    with MapReduce(**SMALL) as mr, MapReduce(**SMALL) as other:
        kv = mr.keyvalue(["a"], [1])
        with pytest.raises(UsageError, match=r"\(string, float64\) cannot be added to pairs of \(string, int64\)"):
            kv.add(mr.keyvalue(["a"], [1.5]))
        with pytest.raises(UsageError, match="same MapReduce"):
            kv.add(other.keyvalue(["a"], [1]))
        assert list(mr.keyvalue().add(kv)) == list(kv.add(mr.keyvalue())) == [("a", 1)]


def test_what_is_known_goes_on_only_where_it_holds() -> None:
    with MapReduce(**SMALL) as mr:
        kv = mr.keyvalue([1, 2])
        kv.order, kv.partitioned = "keys", ("hash", 3)
        assert (kv.copy().order, kv.copy().partitioned) == ("keys", ("hash", 3))
        assert (kv.add(kv).order, kv.add(kv).partitioned) == (None, ("hash", 3))
        assert kv.add(mr.keyvalue([3])).partitioned is None
        assert kv.add(mr.keyvalue()).order == "keys"
        assert (kv.clone().order, kv.clone().partitioned) == ("keys", ("hash", 3))
        assert list(kv.sort_keys()) == list(kv)
        assert mr.stats()["skipped"] == {"sort_keys": 1}
        assert mr.stats()["operations"]["sort_keys"]["skipped"] == 1


@FORCED
def test_clone_and_collapse(forced: bool) -> None:
    with MapReduce(force_out_of_core=forced, **SMALL) as mr:
        kv = mr.keyvalue([5, 5, 6], [1, 2, 3])
        assert [(key, values.tolist()) for key, values in kv.clone()] == [(5, [1]), (5, [2]), (6, [3])]
        ((key, values),) = kv.collapse("all")
        assert (key, values.tolist()) == ("all", [5, 1, 5, 2, 6, 3])
        ((_, values),) = mr.keyvalue([5, 6], [0.5, 1.5]).collapse(0)
        assert values.tolist() == [(5, 0.5), (6, 1.5)]
        ((_, words),) = mr.keyvalue(["a", "b"], ["x", ""]).collapse(0)
        assert words == ["a", "x", "b", ""]
        ((_, raw),) = mr.keyvalue(["a"], np.array([258], "i4")).collapse(0)
        assert raw == [b"a", b"\2\1\0\0"]
        ((_, keys),) = mr.keyvalue(["a", "b"]).collapse(0)
        assert keys == ["a", "b"]
        assert list(mr.keyvalue().collapse("x")) == []
        ((_, values),) = mr.keyvalue(np.arange(3000), np.arange(3000)).collapse("x")  # over many chunks
        assert values.tolist() == [n for n in range(3000) for _ in range(2)]
        assert len(mr.keyvalue(np.arange(3000)).collapse("x")) == 1


@FORCED
def test_values_of_one_key_may_lie_in_several_chunks(forced: bool) -> None:
    with MapReduce(force_out_of_core=forced, **SMALL) as mr:
        kmv = many(mr)
        assert len(kmv) == 3
        assert kmv.values_count == 6
        assert [(key, values.tolist()) for key, values in kmv] == [(7, [0, 1, 2, 3, 4]), (8, []), (9, [5])]
        assert [(key, len(v), on) for key, v, on in kmv.blocks()] == [
            (7, 2, False), (7, 1, True), (7, 2, True), (8, 0, False), (9, 1, False),
        ]  # fmt: skip
        assert list(kmv.pairs()) == [(7, 0), (7, 1), (7, 2), (7, 3), (7, 4), (9, 5)]
        seen: list[int] = []
        kmv.scan(lambda key, values: seen.append(key))
        assert seen == [7, 8, 9]
        assert repr(kmv) == "<KeyMultiValue int64 -> int64, 3 keys>"
        assert len(kmv.add(kmv)) == 6


def test_batches_are_arrow() -> None:
    with MapReduce(**SMALL) as mr:
        kv = mr.keyvalue(Bytes.of(["ä", ""]), [1, 2])
        (batch,) = kv.batches()
        assert batch.to_pydict() == {"key": ["ä", ""], "value": [1, 2]}
        none = mr.keyvalue([], [], key="string", value="float32").to_arrow()
        assert (str(none.schema.field("key").type), none.num_rows) == ("large_string", 0)
