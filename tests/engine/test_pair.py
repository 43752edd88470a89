"""Pair programs: a user's own, and what they take."""

from __future__ import annotations

from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oracle
import penstock as pk
from penstock.engine.cpu import pair as executor
from penstock.engine.program import Pair
from penstock.errors import DoesNotFit, ProgramError, UsageError
from places import PLACES, at


def nothing(v: Any, p: Any) -> Any:
    return 0, 0.0


def one_way(arcs: Any, p: Any) -> Any:
    return p.weight if arcs == 1 else 0.0


def taken(v: Any, total: Any, p: Any) -> Any:
    return v.neighbours + p.vertices, total + v.out_degree


def own(**changes: Any) -> Pair:
    chosen: dict[str, Any] = {
        "name": "one way",
        "state": {"size": "int64", "weight_across": "float64"},
        "reads": ("out_degree", "neighbours"),
        "params": {"weight": 1.0},
        "init": nothing,
        "corner": one_way,
        "total": "float64",
        "update": taken,
    }
    return Pair(**chosen | changes)


def expected(g: oracle.G, weight: float) -> dict[Any, tuple[int, float]]:
    """Each pair of neighbours with an arc one way only weighs."""
    out = {v: set(g.out[v]) - {v} for v in g.vertices}
    around = {v: set(g.around[v]) - {v} for v in g.vertices}
    found = {}
    for v in g.vertices:
        pairs = [(u, w) for u, w in combinations(around[v], 2) if (w in out[u]) != (u in out[w])]
        found[v] = (len(around[v]) + len(g), len(pairs) * weight + len(g.out[v]))
    return found


def random_graph(path: Path, **options: Any) -> pk.Graph:
    rng = np.random.default_rng(5)
    ends = (60 * rng.random((2, 700)) ** 2).astype(np.int64)
    return pk.ingest(
        {"source": ends[0], "target": ends[1]}, path, vertices={"id": np.arange(64)}, page_size=4096, **options
    )


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("order", ["degree", "input"])
@pytest.mark.parametrize("undirected", [False, True])
def test_own_program(tmp_path: Path, place: str, order: str, undirected: bool) -> None:
    graph = random_graph(tmp_path / "g.pen", order=order, undirected=undirected)
    result = at(place, partial(pk.run, own(), graph, weight=2.5))
    assert result.to_dict() == expected(oracle.of(graph), 2.5)


def test_ranges_are_planned_and_made(tmp_path: Path) -> None:
    graph = pk.generate("kron", tmp_path / "g.pen", scale=12, seed=1, undirected=True, page_size=4096)
    whole = pk.run("triangles", graph, tier="memory").stats
    parted = pk.run("triangles", graph, tier="disk", state_ranges=4).stats
    assert whole["plans"][0]["ranges"] == 1
    assert parted["plans"][0]["ranges"] >= 4
    assert whole["windows"] == 1
    assert parted["windows"] >= 4
    assert len(parted["supersteps"]) >= 4
    assert parted["spilled_lists"] > 0
    assert parted["triangles"] == whole["triangles"]
    assert sum(step["triangles"] for step in parted["supersteps"]) == whole["triangles"]
    assert not list(tmp_path.glob("*spill*"))


def test_one_pass_more_than_windows(tmp_path: Path) -> None:
    """Of an undirected graph in degree order each window reads its own pages only."""
    graph = pk.generate("kron", tmp_path / "g.pen", scale=12, seed=1, undirected=True, page_size=4096)
    pages = len(graph.store.direction("out")) * 4096
    assert pk.run("triangles", graph, tier="disk").stats["bytes_read"] == 2 * pages
    parted = pk.run("triangles", graph, tier="disk", state_ranges=4).stats
    assert parted["bytes_read"] <= 2 * pages + 2 * parted["windows"] * 4096


@pytest.mark.parametrize("name", ["triangles", "lcc"])
@pytest.mark.parametrize("order", ["degree", "input"])
@pytest.mark.parametrize("undirected", [False, True])
def test_budgets(tmp_path: Path, name: str, order: str, undirected: bool) -> None:
    """What is refused says what is enough; with little memory lists go to a file, and the answer is the same."""
    graph = pk.generate("kron", tmp_path / "g.pen", scale=14, undirected=undirected, order=order, page_size=4096)
    answer = pk.run(name, graph, tier="memory").table
    with pytest.raises(DoesNotFit) as refused:
        pk.run(name, graph, tier="disk", memory_limit="1MB")
    for limit in (refused.value.needed, refused.value.needed + (1 << 20), refused.value.needed * 2):
        result = pk.run(name, graph, tier="disk", memory_limit=limit)
        assert result.table.equals(answer)
        assert result.stats["ledger_peak"] <= limit


def test_hubs_have_rows(tmp_path: Path) -> None:
    """The same answer by rows of bits and by lists."""
    graph = pk.generate("kron", tmp_path / "g.pen", scale=12, seed=4, undirected=True, page_size=4096)
    stats = pk.run("triangles", graph, tier="memory").stats
    assert stats["supersteps"][0]["hubs"] > 0
    answer = pk.run("triangles", graph, tier="memory").table
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(executor, "hub_count", lambda vertices, room: 0)
        plain = pk.run("triangles", graph, tier="memory")
        only = pk.run("triangles", graph, tier="memory", per_vertex=False)
    assert plain.stats["supersteps"][0]["hubs"] == 0
    assert plain.table.equals(answer)
    assert only.stats["triangles"] == stats["triangles"]


def test_refusals() -> None:
    with pytest.raises(UsageError, match="update"):
        own(update=None)
    with pytest.raises(UsageError, match="totals"):
        own(total="bool")
    assert own(update=None, per_vertex=False).form == "pair"


def test_errors_point_at_the_line(tmp_path: Path) -> None:
    def wrong(arcs: Any, p: Any) -> Any:
        return arcs.colour

    graph = random_graph(tmp_path / "g.pen")
    with pytest.raises(ProgramError, match=r"test_pair\.py:\d+: corner"):
        pk.run(own(corner=wrong), graph, tier="memory")
