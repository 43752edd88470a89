"""After something went wrong on a simulated GPU (an interrupt, a damaged page, a mistake in a program) the next run on
the same graph finds all as it should be. Started by test_gpu_simulated.py in a process that Numba's simulator was
chosen for."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.memory import gpu

# A thread of the device is a thread of Python here, so there are few; set before the modules that read them.
gpu.WARP = 4
from penstock.memory import tasks  # noqa: E402

tasks.BLOCK, tasks.HEAVY, tasks.SEGMENT = 4, 60, 256

import penstock as pk  # noqa: E402
from engine.test_common import own as strong  # noqa: E402
from penstock.algorithms import pagerank  # noqa: E402
from penstock.config import settings  # noqa: E402
from penstock.engine.engine import Engine  # noqa: E402
from penstock.errors import DamagedStore, DoesNotFit  # noqa: E402
from penstock.graph import Graph  # noqa: E402
from penstock.memory import card, frames, pinned  # noqa: E402
from penstock.memory.ledger import Ledger  # noqa: E402

VERTICES = 70
FEW: dict[str, Any] = {"max_iter": 2, "stop": "fixed", "threads": 2}


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[Graph]:
    with pk.ingest(arcs(), tmp_path / "g.pen", page_size=4096, duplicates="keep") as made:
        yield made


@pytest.fixture
def undirected(tmp_path: Path) -> Iterator[Graph]:
    with pk.ingest(arcs(), tmp_path / "u.pen", page_size=4096, duplicates="keep", undirected=True) as made:
        yield made


def arcs() -> pa.Table:
    """For some pages; those of one vertex for several."""
    rng, ring = np.random.default_rng(3), np.arange(VERTICES)
    source = np.concatenate([ring, np.full(1250, 5), rng.integers(0, VERTICES, 1250)])
    target = np.concatenate([np.roll(ring, -1), rng.integers(0, VERTICES, 2500)])
    return pa.table({"source": source, "target": target})


def many_arcs() -> pa.Table:
    """For so many pages that budgets matter."""
    ends = np.random.default_rng(1).integers(0, 20_000, (2, 1_000_000))
    return pa.table({"source": ends[0], "target": ends[1]})


def once(function: Any, *, before: Any = None) -> Any:
    """The function, which is interrupted when it is first called."""
    calls = []

    def interrupted(*args: Any) -> Any:
        calls.append(args)
        if len(calls) == 1:
            if before is not None:
                before(*args)
            raise KeyboardInterrupt
        return function(*args)

    return interrupted


def test_a_column_that_was_not_read_to_its_end_is_read_again(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = pk.run("pagerank", graph, device="cpu", **FEW).to_pandas()
    graph.load(device="gpu", threads=2)
    monkeypatch.setattr(card, "_read", once(card._read, before=lambda _, target: target.fill(3)))
    with pytest.raises(KeyboardInterrupt):
        pk.run("pagerank", graph, **FEW)
    found = pk.run("pagerank", graph, **FEW).to_pandas()
    np.testing.assert_allclose(found["rank"], wanted["rank"], rtol=1e-12)


@pytest.mark.parametrize("devices", [1, 2])
def test_pages_whose_loading_was_interrupted_are_loaded_again(
    undirected: Graph, devices: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, options = undirected, {"source": 5, "threads": 2, "gpu_devices": devices, "gpu_strategy": "S"}
    wanted = pk.run("bfs", graph, device="cpu", source=5).table
    graph.load(device="gpu", threads=2, gpu_memory_limit=40_000)
    monkeypatch.setattr(frames, "span", once(frames.span))
    with pytest.raises(KeyboardInterrupt):
        pk.run("bfs", graph, **options)
    assert pk.run("bfs", graph, **options).table.equals(wanted)


def test_runs_that_fail_give_back_what_they_took(graph: Graph) -> None:
    def init(v: Any, p: Any) -> Any:
        raise ValueError("a mistake")

    graph.load(device="gpu", threads=2, gpu_memory_limit=100_000)
    assert graph.card is not None
    good = pagerank.program("float64", "spread", "l1")
    pk.run(good, graph, threads=2, max_iter=1)
    before = graph.card.ledger.used
    for _ in range(3):
        with pytest.raises(ValueError, match="a mistake"):
            pk.run(replace(good, init=init), graph, threads=2, max_iter=1)
    gc.collect()
    assert graph.card.ledger.used == before
    graph.unload()
    graph.load(device="gpu", threads=2)
    assert graph.card is not None
    before = graph.card.ledger.used
    with pytest.raises(ValueError, match="a mistake") as kept:  # who keeps the error keeps all that was on the way
        pk.run(strong(init=init), graph, threads=2)
    assert graph.card.ledger.used == before
    assert kept.value.__traceback__ is not None
    graph.unload()
    graph.load("out", device="gpu", threads=2)
    with graph.store.direction("in").path("pages", 0).open("r+b") as file:
        file.write(b"\xff\xff\xff")
    before = graph.card.ledger.used
    with pytest.raises(DamagedStore):
        pk.run("hits", graph, threads=2, max_iter=1)
    gc.collect()
    assert graph.card.ledger.used <= before


def test_a_graph_that_could_not_be_loaded_is_as_it_was(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DoesNotFit):
        graph.load(device="gpu", gpu_memory_limit=9_000, threads=2)
    assert graph.card is None
    with monkeypatch.context() as patch:
        patch.setattr(frames.DevicePages, "_fill", once(None))
        with pytest.raises(KeyboardInterrupt):
            graph.load(device="gpu", threads=2)
    assert graph.card is None
    assert pk.run("bfs", graph, source=5, threads=2).stats["device"] == "cpu"


def test_who_loads_with_the_limit_that_was_named_gets_there(graph: Graph) -> None:
    limits = [9_000]
    while graph.card is None:
        try:
            graph.load(device="gpu", gpu_memory_limit=limits[-1], threads=2)
        except DoesNotFit as refused:
            limits.append(refused.needed)
        assert len(limits) < 5
        assert limits == sorted(set(limits))
    assert len(limits) > 1


def test_a_loaded_graph_runs_where_it_was_loaded_unless_another_gpu_is_named(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph.load(device="gpu:0", threads=2)
    monkeypatch.setattr(gpu, "count", lambda: 2)
    for device, same in (("gpu", True), ("gpu:0", True), ("gpu:1", False)):
        with Engine(graph.store, settings(device=device, threads=2), card=graph.card) as engine:
            assert (engine.gpu is graph.card) == same, device


def test_what_a_loaded_graph_has_on_the_host_counts(graph: Graph) -> None:
    graph.load(device="gpu", threads=2, gpu_memory_limit=60_000)
    assert graph.card is not None
    held = graph.card.host_bytes
    assert held > 0
    with Engine(graph.store, settings(threads=2, memory_limit=4 * held), card=graph.card) as engine:
        assert engine.ledger.used >= held
        assert engine.gpu is graph.card
    with Engine(graph.store, settings(threads=2, memory_limit=held - 1), card=graph.card) as engine:
        assert engine._gpu is None
    known: dict[str, Any] = {"card": graph.card}
    with Engine(graph.store, settings(threads=2), **known), Engine(graph.store, settings(threads=2), **known) as second:
        assert second._gpu is None  # one run at a time has it


def test_pages_that_a_run_opens_on_a_loaded_graph_are_in_its_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a size for which budgets matter; so kernels are not run, which no decision about memory depends on."""
    monkeypatch.setattr(gpu.Launcher, "__call__", lambda *args: None)
    with pk.ingest(many_arcs(), tmp_path / "many.pen", page_size=4096, duplicates="keep") as many:
        many.load("out", device="gpu", memory_limit="200MB", gpu_memory_limit=2_000_000, threads=2)
        assert many.card is not None
        many.card.close_pages()
        for _ in range(2):
            stats = pk.run("bfs", many, source=5, threads=2, memory_limit=3_000_000).stats
            assert stats["device"] == "gpu"
            assert stats["gpu"]["source"] == "disk"
            assert 0 < many.card.host_bytes <= 3_000_000


def test_a_run_leaves_the_pages_of_a_loaded_graph_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one with little memory, and one on the CPU; unless it has no room at all beside them."""
    monkeypatch.setattr(gpu.Launcher, "__call__", lambda *args: None)
    with pk.ingest(many_arcs(), tmp_path / "many.pen", page_size=4096, undirected=True, duplicates="keep") as many:
        many.load(device="gpu", memory_limit="200MB", gpu_memory_limit=4_000_000, threads=2)
        pk.run("pagerank", many, **FEW)  # its state takes some of the device from the pages
        assert many.card is not None
        held = many.card.host_bytes
        assert held > 4_000_000
        for limit in (11_000_000, 14_000_000, 20_000_000, 60_000_000):
            for device in ("gpu", "cpu"):
                stats = pk.run("pagerank", many, device=device, memory_limit=limit, **FEW).stats
                assert stats["device"] == device
                assert many.card.host_bytes == held, (limit, device)
                assert device == "cpu" or stats["gpu"]["bytes_read"] == 0
        stats = pk.run("pagerank", many, device="gpu", memory_limit=held + 300_000, **FEW).stats
        assert (stats["gpu"]["source"], many.card.host_bytes < held) == ("disk", True)


def test_an_engine_that_nobody_closes_gives_the_card_back(graph: Graph) -> None:
    graph.load(device="gpu", threads=2)
    Engine(graph.store, settings(threads=2), card=graph.card)
    gc.collect()
    assert pk.run("bfs", graph, source=5, threads=2).stats["device"] == "gpu"


def test_an_interrupt_while_pages_go_leaves_none_behind(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    right = pk.bfs(graph, source=5, device="cpu", threads=2).table
    graph.load(device="gpu", threads=2, gpu_memory_limit=80_000)
    assert graph.card is not None
    close = frames.DevicePages.close
    monkeypatch.setattr(frames.DevicePages, "close", once(close, before=close))
    with pytest.raises(KeyboardInterrupt):
        graph.card.close_pages()
    monkeypatch.setattr(frames.DevicePages, "close", close)
    assert graph.card.ledger.used == 0
    assert graph.card.host_bytes == 0
    assert pk.bfs(graph, source=5, threads=2).table.equals(right)


def test_an_interrupt_while_memory_is_pinned_leaves_none_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    registered: set[int] = set()

    def pin(memory: np.ndarray) -> bool:
        registered.add(memory.ctypes.data)
        raise KeyboardInterrupt  # when the driver is done, and nobody knows yet

    monkeypatch.setattr(gpu, "pin", pin)
    monkeypatch.setattr(gpu, "unpin", lambda memory: registered.remove(memory.ctypes.data))
    ledger, memory = Ledger(64 << 20), np.zeros(1 << 20, np.uint8)
    with pytest.raises(KeyboardInterrupt):
        pinned.Pinned(ledger, [(8 << 20, np.uint8)], "pages")
    with pytest.raises(KeyboardInterrupt), pinned.pinning(memory):
        raise AssertionError("it was interrupted before")
    assert not registered
    assert ledger.used == 0


def test_an_interrupt_while_memory_is_unpinned_is_no_leak(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(64 << 20)
    held = pinned.Pinned(ledger, [(8 << 20, np.uint8)], "pages")
    monkeypatch.setattr(gpu, "unpin", once(gpu.unpin))
    with pytest.raises(KeyboardInterrupt):
        held.close()
    assert ledger.used == 0


def test_one_gpu_has_its_memory_back_after_it_stood_for_two(graph: Graph) -> None:
    graph.load(device="gpu", threads=2)
    assert graph.card is not None
    limit = graph.card.ledger.limit
    pk.run("bfs", graph, source=5, threads=2, gpu_devices=2)
    assert graph.card.ledger.limit < limit
    pk.run("bfs", graph, source=5, threads=2)
    assert graph.card.ledger.limit == limit


def test_a_graph_that_nobody_closes_is_unpinned(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    pinned: set[int] = set()

    def pin(memory: np.ndarray) -> bool:
        pinned.add(memory.ctypes.data)
        return True

    monkeypatch.setattr(gpu, "pin", pin)
    monkeypatch.setattr(gpu, "unpin", lambda memory: pinned.remove(memory.ctypes.data))
    other = pk.open(graph.path)
    other.load("out", device="gpu", threads=2, gpu_memory_limit=40_000)
    assert pinned
    del other
    gc.collect()
    assert not pinned
