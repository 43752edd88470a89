"""Bucketed programs: delta-stepping with bins of any size, and buckets of supersteps, against scipy's Dijkstra."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse.csgraph import dijkstra

import penstock as pk
from penstock.algorithms import sssp
from penstock.config import Settings
from penstock.engine.cpu import buckets
from penstock.engine.engine import Engine, Outcome
from penstock.engine.kernels.buckets import BLOCK, NEAR
from penstock.engine.program import iterations


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> pk.Graph:
    path = tmp_path_factory.mktemp("buckets") / "g.pen"
    return pk.generate("kron", path, scale=11, seed=3, undirected=True, page_size="4KiB", weights="1:255")


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> pk.Graph:
    """Long ways, and few vertices in each bucket."""
    rng, at = np.random.default_rng(1), np.arange(60 * 60).reshape(60, 60)
    source, target = (np.concatenate([a.ravel(), b.ravel()]) for a, b in [(at[:, 1:], at[1:]), (at[:, :-1], at[:-1])])
    columns = {"source": source, "target": target, "weight": rng.random(len(source)) * 100}
    return pk.ingest(columns, tmp_path_factory.mktemp("grid") / "g.pen", undirected=True, page_size=4096)


def answer(graph: pk.Graph, source: int) -> np.ndarray:
    """By internal number."""
    matrix = pk.to_scipy(graph, weight="weight")
    by_id = dijkstra(matrix.astype(np.float64), indices=source)
    order = graph.store.ids.order.read(0, graph.vertices)
    found = np.empty(len(order))
    found[order] = by_id
    return found


def engine(graph: pk.Graph, **options: Any) -> Engine:
    chosen: dict[str, Any] = {"memory_limit": 1 << 28, "threads": 2, **options}
    return Engine(graph.store, Settings(**chosen))


def agrees(outcome: Outcome, expected: np.ndarray) -> None:
    found = outcome.state["distance"]
    kind = found.dtype
    far = np.inf if kind.kind == "f" else np.iinfo(kind).max
    active = outcome.slots.active
    distance = np.where(found == far, np.inf, found.astype(np.float64))[:active]
    assert distance == pytest.approx(expected[:active], rel=1e-5 if kind == np.float32 else 1e-12)


# Each type takes seconds to compile; test_sssp.py has these two in all places.
OTHERS = [pytest.param(kind, marks=pytest.mark.slow) for kind in ("int64", "float32")]


@pytest.mark.parametrize("tier", ["memory", "disk"])
@pytest.mark.parametrize("kind", ["uint32", "float64", *OTHERS])
@pytest.mark.parametrize("delta", [0.01, 7, 1e7])
def test_every_type(graph: pk.Graph, kind: str, delta: float, tier: str) -> None:
    if (tier, delta) == ("disk", 0.01) and kind.startswith("float"):
        delta = 0.5
    with engine(graph, tier=tier) as runs:
        outcome = runs.run(sssp.program(kind, "weight"), seeds=[0], params={"delta": delta})
        agrees(outcome, answer(graph, graph.store.ids.of(0)))


@pytest.fixture
def scant(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool that has just enough for each vertex once, and threads that work together."""
    monkeypatch.setattr(buckets, "pool_blocks", lambda active, threads: 2 + -(-active // BLOCK) + NEAR + 1)
    monkeypatch.setattr(buckets, "_FEW", 100)


@pytest.mark.parametrize("delta", [0.1, 3, 40])
@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.usefixtures("scant")
def test_the_pool_runs_dry(graph: pk.Graph, delta: float, threads: int) -> None:
    with engine(graph, tier="memory", threads=threads) as runs:
        for _ in range(3):
            outcome = runs.run(sssp.program("float64", "weight"), seeds=[3, 900], params={"delta": delta})
            ids = graph.store.ids
            agrees(outcome, np.minimum(answer(graph, ids.of(3)), answer(graph, ids.of(900))))


@pytest.mark.parametrize("few", [0, 1 << 15])
@pytest.mark.parametrize("delta", [0.001, 10, 1000])
def test_long_ways(grid: pk.Graph, few: int, delta: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "_FEW", few)
    with engine(grid, tier="memory") as runs:
        outcome = runs.run(sssp.program("float64", "weight"), seeds=[5], params={"delta": delta})
        agrees(outcome, answer(grid, grid.store.ids.of(5)))


def test_small_buckets_run_in_one_go(grid: pk.Graph) -> None:
    with engine(grid, tier="memory") as runs:
        outcome = runs.run(sssp.program("float64", "weight"), seeds=[5], params={"delta": 10})
        assert outcome.steps > 50
        assert len(runs.stats.supersteps) < 5


def test_from_disk_only_the_pages_of_the_bucket_are_read(grid: pk.Graph) -> None:
    pages = len(grid.store.direction("out"))
    with engine(grid, tier="disk") as runs:
        outcome = runs.run(sssp.program("float64", "weight"), seeds=[5], params={"delta": 20})
        agrees(outcome, answer(grid, grid.store.ids.of(5)))
        assert np.median([step["pages"] for step in runs.stats.supersteps]) < pages


def test_stops_when_told(grid: pk.Graph) -> None:
    with engine(grid, tier="memory") as runs:
        outcome = runs.run(sssp.program("float64", "weight"), seeds=[5], params={"delta": 1e9}, until=iterations(3))
        assert outcome.steps == 3
        # A superstep is an arc: with one bucket, three of them reach 24 others on the grid.
        assert np.isfinite(outcome.state["distance"]).sum() <= 25


def test_memory_is_planned_and_counted(graph: pk.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []
    bins = buckets.DeltaStepping._bins

    def counted(self: buckets.DeltaStepping, *args: Any) -> Any:
        before = self.held.engine.ledger.used
        found = bins(self, *args)
        taken.append((sum(array.nbytes for array in found), self.held.engine.ledger.used - before))
        return found

    monkeypatch.setattr(buckets.DeltaStepping, "_bins", counted)
    with engine(graph, tier="memory") as runs:
        plan = runs.plan(sssp.program("uint32", "weight"))
        runs.run(sssp.program("uint32", "weight"), seeds=[0])
    ((needed, counted_as),) = taken
    assert needed <= plan.rows_bytes
    assert counted_as > needed * 0.9
    with engine(graph, tier="auto", memory_limit=plan.smallest) as runs:
        assert runs.plan(sssp.program("uint32", "weight")).tier == "disk"
        agrees(runs.run(sssp.program("uint32", "weight"), seeds=[0]), answer(graph, graph.store.ids.of(0)))
