"""Common programs on a GPU: all lists there, or ranges of them while the others pass."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

import oracle
import penstock as pk
from engine.test_common import expected, own, random_graph
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
def test_pages_of_a_loaded_graph_stay(tmp_path: Path) -> None:
    with pk.generate("kron", tmp_path / "g.pen", scale=10, seed=1, undirected=True, page_size=4096) as graph:
        graph.load(device="gpu")
        pk.run("pagerank", graph, max_iter=2, stop="fixed")
        assert pk.run(own(), graph, enough=2).stats["device"] == "gpu"
        assert pk.run("pagerank", graph, max_iter=2, stop="fixed").stats["gpu"]["bytes_copied"] < graph.arcs


@pytest.mark.gpu
def test_lists_that_are_there_are_copied_once(tmp_path: Path) -> None:
    graph = pk.generate("kron", tmp_path / "g.pen", scale=10, seed=1, undirected=True, page_size=4096)
    answer = pk.run(own(), graph, device="cpu", enough=2, max_iter=3).table
    there = pk.run(own(), graph, device="gpu", enough=2, max_iter=3)
    assert there.table.equals(answer)
    lists = graph.arcs * 4
    assert there.stats["gpu"]["source"] == "device"
    assert there.stats["gpu"]["bytes_copied"] <= 1.1 * lists
    limit = there.stats["gpu"]["plans"][0]["smallest"] + lists // 3
    passing = pk.run(own(), graph, device="gpu", gpu_memory_limit=limit, enough=2, max_iter=3)
    assert passing.table.equals(answer)
    assert passing.stats["gpu"]["source"] == "host"
    assert passing.stats["gpu"]["plans"][0]["ranges"] > 1
    assert passing.stats["gpu"]["bytes_copied"] > 3 * lists
    for result in (there, passing):
        assert result.stats["gpu"]["ledger_peak"] <= result.stats["gpu"]["memory_limit"]
