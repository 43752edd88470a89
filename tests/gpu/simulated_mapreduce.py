"""MapReduce on a simulated GPU. Started by test_gpu_simulated.py in a process that Numba's simulator was chosen for."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as pk
import simulator  # noqa: F401
from gpu import both
from penstock.algorithms import gimv
from penstock.errors import DeviceFull, DoesNotFit, ProgramError, UsageError
from penstock.mapreduce.functions import compiled, emit
from penstock.mapreduce.gpu.accelerator import Accelerator
from penstock.mapreduce.gpu.reduce import LONG, SHORT, assigned
from penstock.mapreduce.placing import Placing
from penstock.mapreduce.session import MapReduce
from penstock.memory import gpu
from penstock.memory.gpu import devices
from penstock.memory.ledger import Ledger
from penstock.observe.events import recording
from penstock.sorting.streamed import sort_on_gpu

SIZE = both.Size(rows=120, chunk=1024, sort_limit=17_000, limit=150_000, plenty=1 << 20, burst=500)


@pytest.mark.parametrize("operation", [both.sorts, both.groups, both.maps, both.reduces, both.refusals])
def test_what_the_cpu_makes(operation: object) -> None:
    operation(SIZE)  # type: ignore[operator]


def test_keys_that_each_fill_a_bucket() -> None:
    """They have two splitters each; and keys that all but fill one, which is cut again."""
    random = np.random.default_rng(7)
    for keys in (random.integers(0, 5, 900) * 10, np.where(random.random(900) < 0.9, random.integers(0, 3, 900), 9)):
        word, values = keys.astype(np.uint64), np.arange(900, dtype=np.uint32)
        order = np.argsort(word, kind="stable")
        sorted_word, sorted_values = np.empty_like(word), np.empty_like(values)
        right = word[order]
        done = sort_on_gpu(word, [values], sorted_word, [sorted_values], Ledger(20_000, "gpu_memory_limit"))
        assert done.chunks > 5
        assert np.array_equal(sorted_word, right)
        assert np.array_equal(sorted_values, order)


def test_keys_go_to_whom_their_values_are_worth() -> None:
    def given(*lengths: int) -> dict[str, list[int] | None]:
        found = assigned(np.cumsum([0, *lengths]), "auto")
        return {how: None if rows is None else rows.tolist() for how, rows in found.items()}

    assert given(1, SHORT, 2) == {"thread": None}
    assert given(SHORT + 1, LONG) == {"warp": None}
    assert given(LONG + 1, LONG + 2) == {"block": None}
    assert given(1, LONG + 1, SHORT + 1, 2) == {"thread": [0, 3], "warp": [2], "block": [1]}
    assert assigned(np.array([0, 5]), "block") == {"block": None}


def test_errors_are_told() -> None:
    state = [0]

    @compiled
    def fickle(key, value, out):
        state[0] += 1
        if state[0] != 5:
            emit(out, key, value)

    with both.sessions(SIZE, SIZE.plenty) as (there, _):
        kv = there.keyvalue([1, 2, 3], [4, 5, 6])
        with pytest.raises(ProgramError, match="same both times"):
            kv.map(fickle)
        groups = kv.convert()
        with pytest.raises(UsageError, match="'warp' needs a reduction by name"):
            groups.reduce(both.spread, assign="warp")
        with pytest.raises(UsageError, match="none of auto, thread"):
            groups.reduce("sum", assign="grid")
        assert list(kv.map(both.turned)) == [(4, 1), (5, 2), (6, 3)]  # nothing is left of what failed
        assert there.placing._accelerator.ledger.used == 0  # type: ignore[union-attr]


def test_where_nobody_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is worth it runs there; but a function of columns is given NumPy's arrays, as where it is not."""
    with MapReduce(memory_limit="64MB") as mr:
        assert not mr.placing.wanted  # a simulated GPU is for who asks
    monkeypatch.setattr("penstock.observe.gpus.likely", lambda: True)
    with MapReduce(memory_limit="64MB", threads=2) as mr:
        assert list(mr.keyvalue([3, 1], [1, 2]).sort_keys()) == [(1, 2), (3, 1)]
        assert "2 rows take the CPU" in mr.stats()["gpu"]["why_not_gpu"]["sort_keys"]
        monkeypatch.setattr(Placing, "_slower", lambda *_: None)
        pairs = mr.keyvalue([3, 1], [1, 2])
        assert list(pairs.sort_keys()) == [(1, 2), (3, 1)]
        assert list(pairs.map(both.columns)) == []
        figures = mr.stats()["gpu"]
        assert figures["bytes_in"] == 32
        assert figures["why_not_gpu"].keys() == {"map"}
        assert "device='gpu' asks" in figures["why_not_gpu"]["map"]


def test_streams_are_lanes_of_a_trace() -> None:
    with both.sessions(SIZE, SIZE.plenty) as (there, _), recording() as events:
        there.keyvalue(np.arange(400), np.arange(400)).map(both.columns)
        there.keyvalue([3, 1], [1, 2]).sort_keys()
    lanes = [each for each in events.slices if each.lane.startswith("stream")]
    assert {each.lane for each in lanes} == {"stream 0", "stream 1", "stream 2"}
    assert sum(each.args.get("bytes", 0) for each in lanes if each.name == "copy in") == 6400


@pytest.mark.parametrize("what", ["device", "host"])
def test_no_room_on_the_device_or_beside_it(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others have taken the device's memory; or the budget has none left for pinned memory. Then it is the CPU's."""
    refused: dict[str, Exception] = {
        "device": DeviceFull("the GPU has no 1 MB left"),
        "host": DoesNotFit("pinned memory", needed=2, limit=1),
    }

    def none_left(*_: object) -> None:
        raise refused[what]

    if what == "device":
        monkeypatch.setattr("penstock.memory.gpu.empty", none_left)
    if what == "host":
        for name in ("rings", "lane_memory"):
            monkeypatch.setattr(Accelerator, name, none_left)
    with both.sessions(SIZE, SIZE.plenty) as (there, here):
        pairs = [mr.keyvalue(*both.shapes(SIZE.rows, 8)["skewed"]) for mr in (there, here)]
        for do, operation in (
            (lambda kv: kv.sort_keys(), "sort_keys"),
            (lambda kv: kv.map(both.several), "map"),
            (lambda kv: kv.map(both.columns), "map"),
            (lambda kv: kv.convert(), "convert"),
            (lambda kv: kv.convert().reduce("sum"), "reduce"),
            (lambda kv: kv.convert().reduce(both.larger), "reduce"),
            (lambda kv: kv.convert().reduce(both.spread), "reduce"),
        ):
            there.placing.why_not.clear()
            both.compare(*map(do, pairs), operation)
            assert there.placing.why_not[operation] == str(refused[what])
        assert there.placing._accelerator.ledger.used == 0  # type: ignore[union-attr]


def test_keys_that_have_many_values_of_nothing() -> None:
    """Which take more memory there than here."""

    @compiled
    def often(key, values, out):
        emit(out, key, len(values))

    with both.sessions(SIZE, SIZE.plenty, chunk_size=1 << 18) as (there, here):
        groups = [mr.keyvalue(np.arange(12_000) % 2).convert() for mr in (there, here)]
        both.compare(*(each.reduce(often) for each in groups), "how often")
        assert there.placing.why_not == {}
        both.compare(*(each.reduce(both.larger) for each in groups), "joined")
        assert "no numbers" in there.placing.why_not["reduce"]


@pytest.mark.parametrize("kind", ["datetime64[s]", "timedelta64[ms]"])
def test_two_times_are_joined_as_on_the_cpu(kind: str) -> None:
    numbers = np.arange(60) % 7
    with both.sessions(SIZE, SIZE.plenty) as (there, here):
        for pairs in ((numbers, numbers.astype(kind)), (numbers.astype(kind), numbers)):
            both.compare(*(mr.keyvalue(*pairs).convert().reduce(both.larger) for mr in (there, here)), kind)
            assert "no numbers" in there.placing.why_not["reduce"]


def test_what_was_done_beside_is_not_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that is too long for one thread comes first, and is the CPU's; then the function proves to be none for a
    GPU."""

    def refused(*_: object) -> None:
        raise gpu.errors()[0]("no such thing on a GPU")

    monkeypatch.setattr("penstock.mapreduce.gpu.reduce.SERIAL", 100)
    keys = np.sort(np.concatenate([np.zeros(300, np.int64), np.arange(1, 400)]))
    with both.sessions(SIZE, SIZE.plenty) as (there, here):
        groups = [mr.keyvalue(keys, keys + 7).convert() for mr in (there, here)]
        monkeypatch.setattr(gpu.Launcher, "__call__", refused)
        both.compare(*(each.reduce(both.spread) for each in groups), "after a long key")
        assert "spread does not compile" in there.placing.why_not["reduce"]
        assert there.stats()["gpu"]["chunks_beside"] > 1


def test_sessions_on_several_gpus_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[int] = []

    def use(number: int) -> None:
        if threading.current_thread() is threading.main_thread():  # others copy
            used.append(number)

    monkeypatch.setattr(devices, "count", lambda: 2)
    monkeypatch.setattr(gpu, "use", use)
    with MapReduce(device="gpu:0") as one, MapReduce(device="gpu:1") as other:
        for mr in (one, other, one, other):
            mr.keyvalue([2, 1], [3, 4]).sort_keys()
    assert used == [0, 1, 0, 1]
    with pytest.raises(UsageError, match="there are only 2 GPUs"):
        MapReduce(device="gpu:2")


@pytest.mark.parametrize(
    "options",
    [{}, {"remember": False}, {"force_out_of_core": True, "chunk_size": "4KiB", "memory_limit": "4MB"}],
    ids=["in core", "collated anew", "on disk"],
)
def test_two_stages_are_sorted_and_grouped_there(options: dict[str, Any]) -> None:
    """The rest of GIM-V by MapReduce is the CPU's, which it says."""
    ends = np.random.default_rng(9).integers(0, 40, (2, 150))
    with pk.from_edges(*ends, weight=np.arange(150) % 7 + 1.0, vertices={"id": np.arange(45)}) as graph:
        for run in (
            partial(gimv.pagerank, stop="fixed", max_iter=2),
            partial(gimv.rwr, source=3, max_iter=2),
            gimv.components,
            partial(gimv.diameter, lanes=2, max_iter=3),
        ):
            there, here = (run(graph, method="mapreduce", device=device, **options) for device in ("gpu", "cpu"))
            assert there.table.equals(here.table)
            assert there.stats["mapreduce"]["gpu"]["bytes_in"] > 0
            assert "use method='fused'" in there.stats["why_not_gpu"]
            assert "why_not_gpu" not in here.stats
            assert "gpu" not in here.stats["mapreduce"]


def test_two_stages_have_what_a_loaded_graph_leaves(tmp_path: Path) -> None:
    limit = 1_000_000
    with pk.generate("ring", tmp_path / "g.pen", vertices=3000, page_size=4096) as graph:
        graph.load(device="gpu", gpu_memory_limit=limit)
        assert graph.card is not None
        options = {"method": "mapreduce", "device": "gpu", "gpu_memory_limit": limit, "stop": "fixed", "max_iter": 1}
        stats = gimv.pagerank(graph, **options).stats["mapreduce"]
        assert stats["gpu"]["memory_limit"] == limit - graph.card.ledger.used


def test_two_stages_where_nobody_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with pk.from_edges([0, 1, 2], [1, 2, 3]) as graph:
        assert "why_not_gpu" not in gimv.components(graph, method="mapreduce").stats
        monkeypatch.setattr("penstock.observe.gpus.likely", lambda: True)
        stats = gimv.components(graph, method="mapreduce").stats
        assert "bytes_in" not in stats["mapreduce"]["gpu"]
        assert "rows take the CPU" in stats["mapreduce"]["gpu"]["why_not_gpu"]["sort_keys"]
        assert "use method='fused'" in stats["why_not_gpu"]
        monkeypatch.setattr(Placing, "_slower", lambda *_: None)
        assert gimv.components(graph, method="mapreduce").stats["mapreduce"]["gpu"]["bytes_in"] > 0
