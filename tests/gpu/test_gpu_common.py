"""Common programs on a GPU: all lists there, or ranges of them while the others pass."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

import oracle
import penstock as pk
from engine.test_common import expected, own, random_graph
from gpu.lists import SHAPES, check_simplify
from penstock.engine.program import NEVER
from places import GPU_PLACES, at


@pytest.mark.gpu
@pytest.mark.parametrize("place", GPU_PLACES)
@pytest.mark.parametrize("order", ["degree", "input"])
@pytest.mark.parametrize("undirected", [False, True])
def test_own_program(tmp_path: Path, place: str, order: str, undirected: bool) -> None:
    graph = random_graph(tmp_path / "g.pen", order=order, undirected=undirected)
    g = oracle.of(graph)
    for options in ({"enough": 0}, {"enough": 3}, {"enough": 2, "smallest": 12}, {"enough": NEVER}):
        result = at(place, partial(pk.run, own(), graph, **options))
        assert result.stats["device"] == "gpu"
        assert result.to_dict() == expected(g, **options), options
    assert at(place, partial(pk.run, own(), graph, enough=2, max_iter=3)).to_dict() == expected(g, 3, enough=2)


@pytest.mark.gpu
@pytest.mark.parametrize(("ways", "everyone"), [(False, False), (True, False), (False, True)])
def test_each_neighbour_once(ways: bool, everyone: bool) -> None:
    lengths, most = SHAPES["many twice"]
    for factor in (1, 40):  # one block, and two
        check_simplify(ways=ways, everyone=everyone, lengths=lengths * factor, most=most)
    for lengths, most in SHAPES.values():
        check_simplify(ways=ways, everyone=everyone, lengths=lengths, most=most)


@pytest.mark.gpu
def test_pages_of_a_loaded_graph_stay(tmp_path: Path) -> None:
    with pk.generate("kron", tmp_path / "g.pen", scale=10, seed=1, undirected=True, page_size=4096) as graph:
        graph.load(device="gpu")
        pk.run("pagerank", graph, max_iter=2, stop="fixed")
        assert pk.run(own(), graph, enough=2).stats["device"] == "gpu"
        assert pk.run("pagerank", graph, max_iter=2, stop="fixed").stats["gpu"]["bytes_copied"] < graph.arcs


@pytest.mark.gpu
@pytest.mark.parametrize("undirected", [False, True])
def test_what_is_copied(tmp_path: Path, undirected: bool) -> None:
    """Pages, of which lists are made there; lists, where there is no room to make them but for them; or these in each
    pass, as far as there is none."""
    graph = pk.generate("kron", tmp_path / "g.pen", scale=10, seed=1, undirected=undirected, page_size=4096)
    answer = pk.run(own(), graph, device="cpu", enough=2, max_iter=3).table
    lists = graph.arcs * 4 * (1 if undirected else 2)

    def run(limit: int | None) -> dict[str, Any]:
        found = pk.run(own(), graph, device="gpu", gpu_memory_limit=limit, enough=2, max_iter=3)
        assert found.table.equals(answer)
        figures = found.stats["gpu"]
        assert figures["ledger_peak"] <= figures["memory_limit"]
        return figures

    made = run(None)
    (plan,) = made["plans"]
    assert made["source"] == "device"
    assert not plan["lists_bytes"]
    assert made["bytes_copied"] <= plan["pages_bytes"]
    there = run(plan["state_bytes"] + plan["least_bytes"] - 1)
    assert there["source"] == "device"
    assert there["plans"][0]["lists_bytes"]
    assert there["bytes_copied"] <= 1.1 * lists
    passing = run(plan["smallest"] + lists // 3)
    assert passing["source"] == "host"
    assert passing["plans"][0]["ranges"] > 1
    assert passing["bytes_copied"] > 2 * lists
