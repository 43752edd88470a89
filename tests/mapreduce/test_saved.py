"""Saved and loaded: complete or not there, checked, and what a loop goes on from."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cluster.threads import ThreadRank, on_ranks
from penstock.errors import DamagedStore, PenstockError, StoreError, TargetExists
from penstock.mapreduce import saved
from penstock.mapreduce.keyvalue import KeyValue
from penstock.mapreduce.session import MapReduce

from .test_keyvalue import SMALL, many

PAIR = np.dtype([("a", "i4"), ("b", "f8", (2,))])


@pytest.mark.parametrize("forced", [False, True])
def test_everything_comes_back(tmp_path: Path, forced: bool) -> None:
    words = ["", "ä", "x\0y", "long" * 300] * 40
    with MapReduce(force_out_of_core=forced, **SMALL) as mr:
        lists = {
            "words": mr.keyvalue(words, np.arange(160)),
            "raw": mr.keyvalue([b"\xff", b""], np.zeros(2, PAIR)),
            "nothing": mr.keyvalue(np.array(["2020"], "M8[Y]")),
            "empty": mr.keyvalue([], [], key="string", value="f4"),
        }
        lists["words"].order = "values"
        for name, kv in lists.items():
            kv.save(tmp_path / name)
        many(mr).save(tmp_path / "groups", note={"iteration": 3})
        before = {name: list(kv) for name, kv in lists.items()}
        kinds = {name: (kv.key, kv.value) for name, kv in lists.items()}
    with MapReduce(force_out_of_core=forced, **SMALL) as mr:
        for name, pairs in before.items():
            found = mr.load(tmp_path / name)
            assert (found.key, found.value) == kinds[name]
            assert str(list(found)) == str(pairs)
        assert mr.load(tmp_path / "words").order == "values"
        groups = mr.load(tmp_path / "groups")
        assert groups.note == {"iteration": 3}
        assert [(key, values.tolist()) for key, values in groups] == [(7, [0, 1, 2, 3, 4]), (8, []), (9, [5])]
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_target_is_replaced_only_when_asked_for_and_only_if_it_is_ours(tmp_path: Path) -> None:
    with MapReduce(**SMALL) as mr:
        target = tmp_path / "kv"
        mr.keyvalue([1]).save(target)
        with pytest.raises(TargetExists, match="overwrite=True"):
            mr.keyvalue([2]).save(target)
        mr.keyvalue([2]).save(target, overwrite=True)
        assert list(mr.load(target)) == [(2, None)]
        assert len(list(target.glob("data-*"))) == 1
        other = tmp_path / "letters"
        other.mkdir()
        (other / "letter.txt").write_text("dear")
        with pytest.raises(TargetExists, match="remove it by hand"):
            mr.keyvalue([2]).save(other, overwrite=True)
        assert (other / "letter.txt").read_text() == "dear"
        with pytest.raises(StoreError, match="no folder"):
            mr.keyvalue([1]).save(tmp_path / "no" / "where")


@pytest.mark.parametrize("there", [False, True])
def test_a_save_that_fails_leaves_what_was_there(tmp_path: Path, there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    with MapReduce(**SMALL) as mr:
        target = tmp_path / "kv"
        if there:
            mr.keyvalue([1]).save(target)

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(saved, "_sync", full)
        with pytest.raises(PenstockError, match="no space left"):
            mr.keyvalue([2]).save(target, overwrite=there)
        monkeypatch.undo()
        assert target.exists() is there
        if there:
            assert list(mr.load(target)) == [(1, None)]
            assert len(list(target.glob("data-*"))) == 1
        assert not [path for path in tmp_path.iterdir() if path.name != "kv"]


def test_damage_is_found(tmp_path: Path) -> None:
    with MapReduce(**SMALL) as mr:
        target = tmp_path / "kv"
        mr.keyvalue(np.arange(1000), np.arange(1000)).save(target)
        (values,) = target.glob("data-*/values")
        raw = bytearray(values.read_bytes())
        raw[5000] ^= 1
        values.write_bytes(raw)
        with pytest.raises(DamagedStore, match="values is damaged"):
            mr.load(target)
        values.write_bytes(raw[:7000])
        with pytest.raises(DamagedStore, match=r"truncated|damaged"):
            mr.load(target)
        values.unlink()
        with pytest.raises(StoreError, match="cannot be read"):
            mr.load(target)
        manifest = json.loads((target / saved.MANIFEST).read_text())
        for change, match in (({"version": 9}, "another version"), ({"format": "x"}, "no manifest")):
            (target / saved.MANIFEST).write_text(json.dumps(manifest | change))
            with pytest.raises(StoreError, match=match):
                mr.load(target)
        (target / saved.MANIFEST).write_text(json.dumps(manifest | {"key": "complicated"}))
        with pytest.raises(PenstockError, match="kind"):
            mr.load(target)
        (target / saved.MANIFEST).write_text("{")
        with pytest.raises(StoreError, match="cannot be read"):
            mr.load(target)
        with pytest.raises(StoreError, match="holds no saved"):
            mr.load(tmp_path / "nowhere")


def test_a_loop_goes_on_where_it_stopped(tmp_path: Path) -> None:
    target = tmp_path / "loop"

    def step(mr: MapReduce, kv: KeyValue) -> KeyValue:
        with mr.writer("int64", "int64") as writer:
            for chunk in kv.chunks():
                writer.add_chunk(chunk.keys, chunk.values * 2)
            return writer.done()

    def run(stop: int) -> list[int]:
        with MapReduce(**SMALL) as mr:
            kv = mr.load(target) if target.exists() else mr.keyvalue(np.arange(5), np.ones(5, np.int64))
            for iteration in range(kv.note or 0, stop):
                assert isinstance(kv, KeyValue)
                kv = step(mr, kv)
                kv.save(target, overwrite=True, note=iteration + 1)
            return [value for _, value in kv]

    assert run(2) == [4] * 5
    assert run(5) == [32] * 5


def test_ranks_save_side_by_side_and_others_may_load(tmp_path: Path) -> None:
    def save(rank: ThreadRank) -> None:
        with MapReduce(communicator=rank, **SMALL) as mr:
            mr.keyvalue([rank.rank] * 2, ["x", "y"]).save(tmp_path / "kv")

    def load(rank: ThreadRank) -> list[object]:
        with MapReduce(communicator=rank, **SMALL) as mr:
            return list(mr.load(tmp_path / "kv"))

    on_ranks(3, save)
    pairs = [[(rank, "x"), (rank, "y")] for rank in range(3)]
    assert on_ranks(3, load) == pairs
    assert on_ranks(2, load) == [pairs[0] + pairs[2], pairs[1]]
    with MapReduce(**SMALL) as mr:
        assert list(mr.load(tmp_path / "kv")) == [pair for part in pairs for pair in part]
        mr.keyvalue([1], ["z"]).save(tmp_path / "one")
    assert on_ranks(2, lambda rank: load_one(rank, tmp_path / "one")) == [[(1, "z")], []]


def load_one(rank: ThreadRank, path: Path) -> list[object]:
    with MapReduce(communicator=rank, **SMALL) as mr:
        return list(mr.load(path))
