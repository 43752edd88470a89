"""MapReduce on a GPU: every operation that runs there, in core and out of core, makes what the CPU makes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpu import both
from penstock.errors import UsageError
from penstock.mapreduce.session import MapReduce
from penstock.observe.events import recording
from penstock.observe.gpus import missing

SIZE = both.Size(rows=150_000, chunk=1 << 18, sort_limit=6_500_000, limit=12_000_000, plenty=1 << 30, burst=100_000)


@pytest.mark.gpu
@pytest.mark.parametrize("operation", [both.sorts, both.groups, both.maps, both.reduces])
def test_what_the_cpu_makes(operation: object) -> None:
    operation(SIZE)  # type: ignore[operator]


@pytest.mark.gpu
def test_the_rest_stays_on_the_cpu() -> None:
    both.refusals(SIZE)


@pytest.mark.gpu
def test_data_that_neither_the_device_nor_the_host_holds(tmp_path: Path) -> None:
    """GPU, host, disk: buckets of a sample sort on disk are sorted on the device, piece by piece."""
    random = np.random.default_rng(5)
    keys, values = random.integers(0, 1 << 62, 1_500_000), np.arange(1_500_000)
    with MapReduce(memory_limit="16MB", temp_directory=tmp_path, device="gpu", gpu_memory_limit=6_500_000) as mr:
        found = mr.keyvalue(keys, values).sort_keys()
        order = np.argsort(keys, kind="stable")
        at = 0
        for chunk in found.chunks():
            assert np.array_equal(chunk.keys, keys[order[at : at + len(chunk)]])
            assert np.array_equal(chunk.values, order[at : at + len(chunk)])
            at += len(chunk)
        assert at == len(keys)
        stats = mr.stats()
        assert stats["spill_written"] > 0
        assert stats["gpu"]["bytes_in"] > 16 * len(keys)
        assert stats["gpu"]["why_not_gpu"] == {}
    assert not any(tmp_path.iterdir())


@pytest.mark.gpu
def test_lanes_overlap() -> None:
    pairs = np.arange(4_000_000), np.random.default_rng(6).integers(0, 12, 4_000_000)
    with MapReduce(memory_limit="2GB", device="gpu") as mr:
        kv = mr.keyvalue(*pairs)
        kv.map(both.several)
        with recording() as events:
            kv.map(both.several)
    lanes = {each.lane for each in events.slices if each.lane.startswith("stream")}
    assert lanes == {"stream 0", "stream 1", "stream 2"}
    assert {each.name for each in events.slices} >= {"copy in", "count", "kernel", "copy out"}


def test_the_rule_for_using_it() -> None:
    """The slowest of copying in, computing and copying out against the CPU: it needs enough to do."""
    pairs = 1 << 25
    with MapReduce(device="auto", threads=4, memory_limit="64MB") as mr:
        assert mr.placing._slower("sort", pairs, 16 * pairs, 16 * pairs) is None
    with MapReduce(device="auto", threads=16, memory_limit="64MB") as mr:
        slower = mr.placing._slower
        assert slower("sort", pairs, 16 * pairs, 16 * pairs) is not None  # so many cores are as fast, as was measured
        assert slower("map", pairs, 16 * pairs, 16 * pairs) is None
        assert "10,000 rows take the CPU" in str(slower("sort", 10_000, 160_000, 160_000))
        assert slower("reduce", pairs, 10 * pairs, pairs) is not None  # as much to move, and little to do


def test_two_values_at_a_time_on_the_cpu() -> None:
    with MapReduce(memory_limit="8MB", threads=2) as mr:
        groups = mr.keyvalue([1, 2, 1, 1], [4, 5, 9, 6]).convert()
        assert list(groups.reduce(both.larger)) == [(1, 9), (2, 5)]
        with pytest.raises(UsageError, match="is for reduce, not for map"):
            groups.pairs().map(both.larger)


def test_a_gpu_that_is_not_there() -> None:
    if missing() is None:
        pytest.skip("there is one")
    with pytest.raises(UsageError, match=r"device gpu: .*(installed|found)"):
        MapReduce(device="gpu")
    with MapReduce(device="auto") as mr:
        assert list(mr.keyvalue([2, 1], [3, 4]).sort_keys()) == [(1, 4), (2, 3)]
        assert "gpu" not in mr.stats()  # nobody asked for it
