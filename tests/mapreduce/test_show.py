"""Pairs as lines."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from cluster.threads import ThreadRank, on_ranks
from penstock.errors import TargetExists, UsageError
from penstock.mapreduce.session import MapReduce

from .test_keyvalue import SMALL, many


def test_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with MapReduce(**SMALL) as mr:
        kv = mr.keyvalue(["a", "b", "c"], [1.25, 2.5, 3.0])
        assert kv.print() == 3
        assert capsys.readouterr().out == "a 1.25\nb 2.5\nc 3.0\n"
        sink = io.StringIO()
        assert kv.print(sink, stride=2, value=".2f", separator="\t") == 2
        assert sink.getvalue() == "a\t1.25\nc\t3.00\n"
        target = tmp_path / "pairs.txt"
        kv.print(target, key=str.upper, value=False)
        assert target.read_text() == "A\nB\nC\n"
        with pytest.raises(TargetExists):
            kv.print(target)
        assert kv.print(target, overwrite=True, key=False) == 3
        assert target.read_text() == "1.25\n2.5\n3.0\n"
        mr.keyvalue([b"\xff\0"]).print()
        assert capsys.readouterr().out == "\\xff\0\n"
        for wrong, match in (
            ({"stride": 0}, "stride"),
            ({"key": ".2f"}, "does not fit the key 'a'"),
            ({"key": 5}, "key: 5"),
        ):
            with pytest.raises(UsageError, match=match):
                kv.print(io.StringIO(), **wrong)


def test_keys_with_values() -> None:
    with MapReduce(**SMALL) as mr:
        sink = io.StringIO()
        assert many(mr).print(sink) == 3
        assert sink.getvalue() == "7 0 1 2 3 4\n8 \n9 5\n"
        sink = io.StringIO()
        assert many(mr).print(sink, stride=2, key=False) == 2
        assert sink.getvalue() == "0 1 2 3 4\n5\n"
        sink = io.StringIO()
        assert many(mr).print(sink, value=False) == 3
        assert sink.getvalue() == "7\n8\n9\n"


def test_each_rank_has_a_file(tmp_path: Path) -> None:
    def task(rank: ThreadRank) -> None:
        with MapReduce(communicator=rank, **SMALL) as mr:
            mr.keyvalue([rank.rank]).print(tmp_path / "out")

    on_ranks(2, task)
    assert [(tmp_path / f"out.{rank}").read_text() for rank in range(2)] == ["0\n", "1\n"]
