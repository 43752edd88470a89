"""Plans: what fits is run as planned, in as much memory as was said; what does not is refused at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as pk
from penstock.algorithms import bfs, pagerank, wcc
from penstock.config import settings
from penstock.engine.plan import Plan, make_plan, sides_of
from penstock.engine.program import Program
from penstock.engine.vectors import Slots
from penstock.errors import DoesNotFit, UsageError
from penstock.graph import Graph

PROGRAMS = [pagerank.program("float64"), bfs.program(np.dtype(np.uint32)), wcc.program(np.dtype(np.uint32))]
NAMES = [program.name for program in PROGRAMS]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    path = tmp_path_factory.mktemp("plan") / "k.pen"
    return pk.generate("kron", path, scale=15, undirected=True, page_size="16KiB")


def planned(graph: Graph, program: Program, **chosen: Any) -> Plan:
    return make_plan(program, graph.store, settings(threads=2, **chosen), Slots(graph.store).count)


def options(name: str) -> dict[str, Any]:
    known: dict[str, dict[str, Any]] = {"pagerank": {"stop": "fixed", "max_iter": 4}, "bfs": {"source": 1}}
    return known.get(name, {})


@pytest.mark.parametrize("program", PROGRAMS, ids=NAMES)
def test_the_smallest_budget_does(graph: Graph, program: Program) -> None:
    told = pk.explain(program.name, graph, threads=2, **options(program.name))
    least = told.smallest
    assert planned(graph, program, memory_limit=least).tier == "disk"
    stats = pk.run(program.name, graph, memory_limit=least, threads=2, **options(program.name)).stats
    assert stats["ledger_peak"] <= least
    with pytest.raises(DoesNotFit):
        planned(graph, program, memory_limit=least // 2)


@pytest.mark.parametrize("name", ["pagerank", "triangles"])
def test_a_refusal_says_how_many_vertices_there_are(graph: Graph, name: str) -> None:
    with pytest.raises(DoesNotFit, match=f"{name} of {graph.vertices:,} vertices needs"):
        pk.run(name, graph, tier="disk", memory_limit="1MB")


def test_more_memory_never_means_more_work(graph: Graph) -> None:
    limits = np.linspace(planned(graph, PROGRAMS[0]).smallest, 20_000_000, 40).astype(int)
    plans = [planned(graph, PROGRAMS[0], memory_limit=int(limit)) for limit in limits]
    assert [plan.ranges for plan in plans] == sorted((plan.ranges for plan in plans), reverse=True)
    tiers = [plan.tier for plan in plans]
    assert tiers == sorted(tiers)  # disk before memory
    assert {"disk", "memory"} == set(tiers)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_the_cache_is_as_large_as_it_turns_out(graph: Graph, share: float) -> None:
    program = PROGRAMS[0]
    whole = planned(graph, program, tier="disk")
    limit = whole.smallest + whole.state_bytes + int(share * whole.topology_bytes)
    plan = planned(graph, program, tier="disk", memory_limit=limit)
    stats = pk.run("pagerank", graph, stop="fixed", max_iter=4, tier="disk", memory_limit=limit, threads=2).stats
    hits = stats["supersteps"][-1]["hits"] * graph.store.page_size
    assert plan.cache_bytes == pytest.approx(hits, abs=0.12 * whole.topology_bytes)


def test_state_is_split_only_where_it_can_be(graph: Graph) -> None:
    rank, _, components = PROGRAMS
    assert planned(graph, rank, state_ranges=3).ranges == 3
    assert planned(graph, components, state_ranges=3).ranges == 1


def test_reasons(graph: Graph) -> None:
    assert planned(graph, PROGRAMS[0]).why == ("state and arcs fit into the budget",)
    assert not planned(graph, PROGRAMS[0], tier="disk").why
    assert planned(graph, PROGRAMS[0]).as_dict()["why"] == ["state and arcs fit into the budget"]


def test_memory_that_was_asked_for_but_is_not_there(graph: Graph) -> None:
    with pytest.raises(DoesNotFit, match="pagerank in memory needs"):
        planned(graph, PROGRAMS[0], tier="memory", memory_limit="2MB")


def test_sides(graph: Graph, tmp_path: Path) -> None:
    assert sides_of(graph.store, "out").pull == ("out",)
    edges = {"source": np.array([1, 2]), "target": np.array([2, 3])}
    with pk.ingest(edges, tmp_path / "d.pen") as directed:
        assert sides_of(directed.store, "out").pull == ("in",)
        assert sides_of(directed.store, "in").pull == ("out",)
        assert set(sides_of(directed.store, "both").pull) == {"out", "in"}
    with pk.ingest(edges, tmp_path / "o.pen", incoming=False) as one:
        assert sides_of(one.store, "out").pull == ()
        assert sides_of(one.store, "out").push == ("out",)
        with pytest.raises(UsageError, match="stores no incoming arcs"):
            planned(one, replace(PROGRAMS[0], along="both"))
