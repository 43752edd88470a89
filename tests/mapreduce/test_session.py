"""The session: what may be given to it, what it makes, and that nothing is left of it."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.config import config
from penstock.errors import DoesNotFit, UsageError
from penstock.mapreduce.columns import NOTHING
from penstock.mapreduce.session import MapReduce
from penstock.memory.spill import BOUNCE

SMALL = {"memory_limit": "2MB", "chunk_size": 1024, "threads": 1}


@given(
    st.lists(st.tuples(st.binary(max_size=30), st.integers(-(2**63), 2**63 - 1)), max_size=200),
    st.booleans(),
    st.sampled_from([16, 300, 100_000]),
)
@settings(max_examples=30, deadline=None)
def test_pairs_come_back_as_they_went_in(pairs: list[tuple[bytes, int]], forced: bool, chunk: int) -> None:
    with MapReduce(memory_limit="2MB", threads=1, force_out_of_core=forced, chunk_size=chunk) as mr:
        keys, values = [key for key, _ in pairs], [value for _, value in pairs]
        kv = mr.keyvalue(keys, values, key="bytes", value="int64")
        assert list(kv) == pairs
        assert len(kv) == kv.total == len(pairs)
        with mr.writer("bytes", "int64") as writer:
            for key, value in pairs:
                writer.add(key, value)
            assert list(writer.done()) == pairs
        batches = ((keys[i : i + 7], values[i : i + 7]) for i in range(0, len(pairs), 7))
        assert list(mr.keyvalue(batches, key="bytes", value="int64")) == pairs
        assert kv.to_arrow().to_pydict() == {"key": keys, "value": values}
        assert mr.budget.peak <= 2_000_000


def test_the_users_arrays_stay_his() -> None:
    with MapReduce(**SMALL) as mr:
        mine = np.arange(10)
        kv = mr.keyvalue(mine, mine)
        mine[:] = -1
        assert [key for key, _ in kv] == list(range(10))


def test_what_records_may_be() -> None:
    with MapReduce(**SMALL) as mr:
        assert list(mr.keyvalue(["a", "b"])) == [("a", None), ("b", None)]
        assert mr.keyvalue(["a"]).value == NOTHING
        empty = mr.keyvalue()
        assert len(empty) == 0
        assert bool(empty)
        assert list(empty) == []
        assert mr.keyvalue([], [], key="string", value="f8").key == "string"
        assert list(mr.keyvalue(pa.array(["x"]), pa.array([1.5]))) == [("x", 1.5)]
        assert repr(mr.keyvalue(["x"], [1.5])) == "<KeyValue string -> float64, 1 pairs>"
        assert mr.keyvalue(["x"], [1.5]).to_pandas()["value"].tolist() == [1.5]
        for keys, values, match in [
            ([1, 2], [1], "does not go with"),
            (iter([1, 2]), None, r"\(keys, values\)"),
            ([1], "x", "no column"),
            (iter([([1], [1]), ([1], ["x"])]), None, "string is no column of int64"),
        ]:
            with pytest.raises(UsageError, match=match):
                mr.keyvalue(keys, values)


def test_long_values_go_through_small_chunks() -> None:
    with MapReduce(**SMALL) as mr:
        values = ["x" * 200_000, "", "y" * 900_000]
        kv = mr.keyvalue([1, 2, 3], values)
        assert [value for _, value in kv] == values


def test_a_writer_finds_out_and_then_holds_on() -> None:
    with MapReduce(**SMALL) as mr, mr.writer() as writer:
        writer.add("a", 1)
        writer.add_chunk(["b", "c"], [2, 3])
        writer.add("d", 4)
        assert list(writer.done()) == [("a", 1), ("b", 2), ("c", 3), ("d", 4)]
        with pytest.raises(UsageError, match=r"values: row 0: 1\.5 is no int64"):
            writer.add_chunk(["e"], [1.5])
    with MapReduce(**SMALL) as mr:
        writer = mr.writer()
        writer.add_chunk(np.arange(1000))
        writer.close()
        assert mr.room.used == 0


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"memory_limit": 1000}, "1 MiB"),
        ({"memory_limit": "4MB", "chunk_size": "1MB"}, "eighth"),
        ({"chunks": 0}, "chunks"),
        ({"force_out_of_core": True, "may_spill": False}, "forbids"),
        ({"memory": 1}, "no setting"),
        ({"device": "tpu"}, "device"),
    ],
)
def test_bad_settings_are_one_sentence(options: dict[str, Any], match: str) -> None:
    with pytest.raises(UsageError, match=match):
        MapReduce(**options)


def test_the_device_is_that_of_all_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    def device(**options: Any) -> str:
        with MapReduce(**SMALL, **options) as mr:
            assert list(mr.keyvalue([2, 1], [3, 4]).sort_keys()) == [(1, 4), (2, 3)]
            return mr.device

    monkeypatch.delenv("PENSTOCK_DEVICE", raising=False)
    assert device() == "auto"
    monkeypatch.setenv("PENSTOCK_DEVICE", "reference")
    assert device() == "reference"
    with config(device="cpu"):
        assert device() == "cpu"
        assert device(device="auto") == "auto"


@pytest.mark.parametrize("device", ["auto", "cpu", "reference"])
def test_nothing_is_said_of_a_gpu_that_nobody_asked_for(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.observe.gpus.missing", lambda: "cupy is not installed")
    monkeypatch.setitem(sys.modules, "penstock.memory.gpu", None)  # importing it would fail
    monkeypatch.setattr("penstock.mapreduce.placing.START", -1e9)  # it would be worth it at once
    with MapReduce(**SMALL, device=device) as mr:
        pairs = mr.keyvalue(np.arange(1000)[::-1], np.arange(1000))
        assert list(pairs.sort_keys().map(lambda key, value: (key, 1)).collate().reduce("sum"))[3] == (3, 1)
        assert "gpu" not in mr.stats()


def test_without_a_disk_it_says_what_it_needs() -> None:
    with MapReduce(memory_limit="2MB", threads=1, may_spill=False) as mr:
        with pytest.raises(DoesNotFit, match="set memory_limit to at least"):
            mr.keyvalue(np.arange(200_000))
        assert mr.spill.written == 0


def test_after_the_end_it_says_so(tmp_path: Path) -> None:
    mr = MapReduce(temp_directory=tmp_path, **SMALL)
    kv = mr.keyvalue(np.arange(300_000))
    assert mr.spill.used > 0
    with pytest.raises(ZeroDivisionError), mr:
        raise ZeroDivisionError
    assert not list(tmp_path.iterdir())
    assert mr.closed
    assert "closed" in repr(kv)
    with pytest.raises(UsageError, match="closed"):
        list(kv)
    with pytest.raises(UsageError, match="closed"):
        mr.keyvalue([1])
    mr.close()


def test_an_interrupt_leaves_nothing(tmp_path: Path) -> None:
    code = f"""
        import os, signal, numpy as np
        from penstock.mapreduce.session import MapReduce
        with MapReduce(memory_limit="2MB", threads=2, temp_directory={str(tmp_path)!r}) as mr:
            kv = mr.keyvalue(np.arange(500_000))
            assert mr.spill.used > 0
            for chunk in kv.chunks():
                os.kill(os.getpid(), signal.SIGINT)
    """
    child = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    assert "KeyboardInterrupt" in child.stderr
    assert child.returncode in (1, 130, -signal.SIGINT)
    assert not list(tmp_path.iterdir())


def test_five_times_the_budget_stays_inside_it() -> None:
    code = """
        import numpy as np
        from penstock.mapreduce.session import MapReduce
        from penstock.observe.stats import peak_rss

        def batches(count):
            for number in range(count):
                yield np.arange(100_000) * number, np.full(100_000, number)

        with MapReduce(memory_limit="16MB", threads=2) as mr:
            mr.keyvalue(batches(1)).aggregate("hash", parts=8)
            before = peak_rss()
            kv = mr.keyvalue(batches(50))
            cut = kv.aggregate("hash", parts=8)
            assert kv.nbytes == 80_000_000
            assert sum(len(chunk) for chunk in cut.chunks()) == 5_000_000
            assert mr.budget.peak <= 16_000_000
            print(peak_rss() - before)
    """
    child = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert int(child.stdout) < 16_000_000 + 4 * BOUNCE  # so small a budget does not hold the buffers of the spill


def test_a_dropped_session_cleans_up(tmp_path: Path) -> None:
    mr = MapReduce(temp_directory=tmp_path, force_out_of_core=True, **SMALL)
    kv = mr.keyvalue([1, 2, 3])
    assert list(tmp_path.iterdir())
    del mr, kv
    assert not list(tmp_path.iterdir())


def test_it_talks_when_asked_to(capsys: pytest.CaptureFixture[str]) -> None:
    with MapReduce(verbosity=1, force_out_of_core=True, **SMALL) as mr:
        mr.keyvalue([1, 2, 3]).collapse("x")
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[2] for line in lines] == ["keyvalue", "collapse"]
    assert "spilled 24 bytes" in lines[0]
