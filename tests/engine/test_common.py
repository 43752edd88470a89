"""Common programs: a user's own, wherever they run, and what they take."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oracle
import penstock as pk
from penstock.config import settings
from penstock.engine.atomics import atomic_add
from penstock.engine.cpu import common as executor
from penstock.engine.engine import Engine
from penstock.engine.program import NEVER, Common
from penstock.errors import DoesNotFit, ProgramError, UsageError
from places import PLACES, at


def init(v: Any, p: Any) -> Any:
    return v.neighbours, v.out_degree, np.uint32(0), np.uint32(0), np.uint32(0)


def least(u: Any, v: Any, state: Any, p: Any) -> Any:
    return NEVER if state.size[v] < p.smallest else p.enough


def edge(u: Any, v: Any, state: Any, p: Any) -> None:
    atomic_add(state.strong, u, np.uint32(1))
    atomic_add(state.strong, v, np.uint32(1))
    if state.size[u] < state.size[v]:
        atomic_add(state.turned, u, np.uint32(1))


def vertex(u: Any, state: Any, p: Any) -> None:
    state.passes[u] += np.uint32(1 + p.step)


def own(**changes: Any) -> Common:
    chosen: dict[str, Any] = {
        "name": "strong",
        "state": {"size": "uint32", "out": "uint32", "strong": "uint32", "turned": "uint32", "passes": "uint32"},
        "reads": ("neighbours", "out_degree"),
        "params": {"enough": 1, "smallest": 0},
        "init": init,
        "least": least,
        "edge": edge,
        "vertex": vertex,
    }
    return Common(**chosen | changes)


def expected(g: oracle.G, passes: int = 1, enough: int = 1, smallest: int = 0) -> dict[Any, tuple[int, ...]]:
    """For each vertex its edges of so many common neighbours, in each pass."""
    around = {v: set(g.around[v]) - {v} for v in g.vertices}

    def strong(v: Any, w: Any) -> bool:
        return len(around[v] & around[w]) >= enough and min(len(around[v]), len(around[w])) >= smallest

    return {
        v: (
            len(around[v]), len(g.out[v]), passes * sum(strong(v, w) for w in around[v]), 0,
            sum(range(1, passes + 1)) if g.around[v] else 0,
        )
        for v in g.vertices
    }  # fmt: skip


def random_graph(path: Path, **options: Any) -> pk.Graph:
    """Loops and parallel arcs, too, and vertices without any."""
    rng = np.random.default_rng(5)
    ends = (60 * rng.random((2, 900)) ** 2).astype(np.int64)
    return pk.ingest(
        {"source": ends[0], "target": ends[1]}, path, vertices={"id": np.arange(64)}, page_size=4096,
        duplicates="keep", **options,
    )  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("order", ["degree", "input"])
@pytest.mark.parametrize("undirected", [False, True])
def test_own_program(tmp_path: Path, place: str, order: str, undirected: bool) -> None:
    graph = random_graph(tmp_path / "g.pen", order=order, undirected=undirected)
    g = oracle.of(graph)
    for options in ({"enough": 0}, {"enough": 3}, {"enough": 2, "smallest": 12}, {"enough": NEVER}):
        assert at(place, partial(pk.run, own(), graph, **options)).to_dict() == expected(g, **options), options
    several = at(place, partial(pk.run, own(), graph, enough=2, max_iter=3))
    assert several.to_dict() == expected(g, 3, enough=2)
    assert several.stats["iterations"] == 3


def test_outgoing_arcs_are_enough(tmp_path: Path) -> None:
    graph = random_graph(tmp_path / "g.pen", incoming=False)
    assert pk.run(own(), graph).to_dict() == expected(oracle.of(graph))


def test_a_graph_without_edges(tmp_path: Path) -> None:
    path, ends = tmp_path / "g.pen", np.zeros(0, np.int64)
    graph = pk.ingest({"source": ends, "target": ends}, path, vertices={"id": np.arange(3)}, allow_empty=True)
    for device in ("cpu", "reference"):
        assert pk.run(own(), graph, device=device).to_dict() == dict.fromkeys(range(3), (0, 0, 0, 0, 0))


def test_lists_lie_in_a_file(tmp_path: Path) -> None:
    graph = pk.generate("kron", tmp_path / "g.pen", scale=12, seed=1, undirected=True, page_size=4096)
    whole = pk.run(own(), graph, tier="memory", enough=2)
    parted = pk.run(own(), graph, tier="disk", state_ranges=4, enough=2)
    assert whole.table.equals(parted.table)
    assert whole.stats["windows"] == 1
    assert whole.stats["plans"][0]["ranges"] == 1
    assert whole.stats["spilled_lists"] == 0
    assert parted.stats["windows"] >= 4
    assert parted.stats["spilled_lists"] >= graph.arcs * 4 * 0.9
    (step,) = parted.stats["supersteps"]
    assert step["ranges"] >= 4
    assert step["enough"] == whole.stats["supersteps"][0]["enough"]
    assert not list(tmp_path.glob("*spill*"))


@pytest.mark.parametrize("order", ["degree", "input"])
@pytest.mark.parametrize("undirected", [False, True])
def test_budgets(tmp_path: Path, order: str, undirected: bool) -> None:
    """What is refused says what is enough; with little memory lists go to a file, and the answer is the same."""
    graph = pk.generate("kron", tmp_path / "g.pen", scale=13, undirected=undirected, order=order, page_size=4096)
    answer = pk.run(own(), graph, tier="memory", enough=3, max_iter=2).table
    with pytest.raises(DoesNotFit) as refused:
        pk.run(own(), graph, tier="disk", memory_limit="1MB")
    for limit in (refused.value.needed, refused.value.needed + (1 << 20), refused.value.needed * 2):
        result = pk.run(own(), graph, tier="disk", memory_limit=limit, enough=3, max_iter=2)
        assert result.table.equals(answer)
        assert result.stats["ledger_peak"] <= limit


@pytest.mark.parametrize("duplicates", ["keep", "merge"])
@pytest.mark.parametrize("order", ["degree", "input"])
def test_the_longer_list_may_be_anywhere(
    tmp_path: Path, order: str, duplicates: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With parallel arcs, who has more arcs may have fewer neighbours."""
    monkeypatch.setattr(executor, "MOST_STREAMED", 64)
    rng = np.random.default_rng(8)
    ends = (300 * rng.random((2, 9000)) ** 2).astype(np.int64)
    arcs = {"source": ends[0], "target": ends[1]}
    graph = pk.ingest(arcs, tmp_path / "g.pen", undirected=True, page_size=4096, order=order, duplicates=duplicates)
    answer = expected(oracle.of(graph), enough=4)
    for ranges in (2, 7, 40):
        result = pk.run(own(), graph, tier="disk", state_ranges=ranges, enough=4)
        assert result.to_dict() == answer
        assert result.stats["supersteps"][0]["ranges"] >= min(ranges, 20)


def test_few_are_looked_at(tmp_path: Path) -> None:
    """Where the shorter list cannot be enough, or the program says so, nothing is counted."""
    graph = pk.generate("kron", tmp_path / "g.pen", scale=10, seed=3, undirected=True, page_size=4096)

    def looked_at(**options: Any) -> int:
        return pk.run(own(), graph, **options).stats["supersteps"][0]["looked_at"]

    assert looked_at(enough=0) == graph.arcs // 2
    assert 0 < looked_at(enough=40) < looked_at(enough=10) < graph.arcs // 2
    assert looked_at(enough=NEVER) == 0


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_between_passes_vectors_may_change(tmp_path: Path, device: str) -> None:
    graph = random_graph(tmp_path / "g.pen", undirected=True)
    with Engine(graph.store, settings(device=device, threads=2)) as engine:
        vectors = {name: np.zeros(graph.store.active + 1, kind) for name, kind in own().fields().items()}
        seen = []

        def until(step: int, change: float) -> bool:
            seen.append(int(vectors["strong"].sum()))
            vectors["strong"][:] = 0
            return step == 3

        engine.run(own(), vectors=vectors, until=until)
    assert seen[0] == 0
    assert 0 < seen[1] == seen[2] == seen[3]


def test_what_is_refused(tmp_path: Path) -> None:
    for missing in ("least", "edge"):
        with pytest.raises(UsageError, match="a least function and an edge function"):
            own(**{missing: None})
    with pytest.raises(UsageError, match="whose edges have no columns"):
        own(columns=("weight",))
    graph = random_graph(tmp_path / "g.pen")
    with pytest.raises(UsageError, match="max_iter"):
        pk.run(own(), graph, tol=0.1)
    with pytest.raises(ProgramError, match=r"test_common\.py:\d+: edge of program strong does not compile"):
        pk.run(own(edge=broken), graph)


def broken(u: Any, v: Any, state: Any, p: Any) -> None:
    state.strong[u] = "many"


def test_passes_are_counted_from_none() -> None:
    graph = pk.from_edges([0, 1], [1, 2])
    with pytest.raises(UsageError, match="max_iter must be at least 0"):
        pk.run(own(), graph, max_iter=-1)
