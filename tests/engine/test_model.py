"""The model: what it says of bytes is what runs read; what it says of seconds follows the rates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as pk
from penstock.algorithms import bfs, pagerank, wcc
from penstock.config import Settings, settings
from penstock.engine.model import Prediction, fetch_seconds, heat, predict
from penstock.engine.plan import Plan, make_plan
from penstock.engine.program import Program
from penstock.engine.rates import Rates
from penstock.engine.vectors import Slots
from penstock.graph import Graph

RATES = Rates.default(2)
RANK = pagerank.program("float64")


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    path = tmp_path_factory.mktemp("model") / "k.pen"
    return pk.generate("kron", path, scale=15, undirected=True, page_size="16KiB")


def planned(graph: Graph, program: Program, **chosen: Any) -> tuple[Plan, Settings]:
    made = settings(threads=2, **chosen)
    return make_plan(program, graph.store, made, Slots(graph.store).count), made


def told(graph: Graph, program: Program, passes: int, rates: Rates = RATES, **chosen: Any) -> Prediction:
    plan, made = planned(graph, program, **chosen)
    return predict(plan, program, graph.store, rates, made, passes, warm=True)


def pages(graph: Graph) -> int:
    return len(graph.store.direction("out")) * graph.store.page_size


def test_in_memory_pages_are_read_once(graph: Graph) -> None:
    found = told(graph, RANK, 10, tier="memory")
    assert found.bytes_read == pages(graph)
    assert found.phases["load"] == pytest.approx(pages(graph) / RATES.load)
    assert found.phases["run"] == pytest.approx(10 * told(graph, RANK, 1, tier="memory").phases["run"])
    assert found.seconds == pytest.approx(sum(found.phases.values()))


def test_arcs_that_are_there_are_not_loaded(graph: Graph) -> None:
    plan, made = planned(graph, RANK, tier="memory")
    found = predict(plan, RANK, graph.store, RATES, made, 5, loaded=True)
    assert (found.bytes_read, found.phases["load"]) == (0, 0.0)
    assert found.phases["start"] == RATES.start


@pytest.mark.parametrize("share", [0.05, 0.3, 0.6, 3.0])
def test_bytes_from_disk_are_those_of_the_run(graph: Graph, share: float) -> None:
    plan, _ = planned(graph, RANK, tier="disk")
    limit = plan.smallest + plan.state_bytes + int(share * plan.topology_bytes)
    found = told(graph, RANK, 6, tier="disk", memory_limit=limit)
    options = {"tier": "disk", "memory_limit": limit, "threads": 2}
    stats = pk.run("pagerank", graph, stop="fixed", max_iter=6, **options).stats
    assert found.bytes_read == pytest.approx(stats["bytes_read"], abs=5 * 0.12 * pages(graph))


def test_ranges_read_the_pages_again(graph: Graph) -> None:
    once = told(graph, RANK, 3, tier="disk", memory_limit="2MB")
    thrice = told(graph, RANK, 3, tier="disk", memory_limit="2MB", state_ranges=3)
    assert thrice.bytes_read > 2 * once.bytes_read
    assert thrice.seconds > once.seconds


def test_what_bounds(graph: Graph) -> None:
    tight = {"tier": "disk", "memory_limit": "2MB"}
    slow = replace(RATES, disk=1e6)
    assert told(graph, RANK, 5, slow, **tight).bound == "disk"
    assert told(graph, RANK, 5, slow, **tight).seconds == pytest.approx(
        told(graph, RANK, 5, slow, **tight).bytes_read / 1e6
    )
    assert told(graph, RANK, 50, tier="memory").bound == "compute"
    missing = replace(RATES, gather8=(RATES.gather8[0], *(1e-6,) * 8), sizes=tuple(k * 1024 for k in range(1, 10)))
    assert told(graph, RANK, 50, missing, tier="memory").bound == "memory"


def test_heat_counts_every_arc_and_vertex(graph: Graph) -> None:
    arcs, vertices = heat(graph.store, "out")
    assert arcs.sum() == graph.store.direction("out").arcs
    assert vertices.sum() == graph.store.active


def test_directed_heat_is_of_the_other_side(tmp_path: Path) -> None:
    # Everybody points at 0: over its in-arcs all are fetched from once, over out-arcs 0 every time.
    hub = pk.from_edges(np.arange(1, 2001), np.zeros(2000, np.int64), page_size="4KiB")
    arcs, vertices = heat(hub.store, "in")
    assert (arcs / vertices).max() == 1
    arcs, vertices = heat(hub.store, "out")
    assert (arcs / vertices).max() > 100


def test_smaller_messages_are_fetched_faster(graph: Graph) -> None:
    curve = tuple(2 * value for value in RATES.gather4)
    wide = replace(RATES, gather8=curve)
    fetch = [fetch_seconds(graph.store, pagerank.program(kind), "out", wide) for kind in ("float32", "float64")]
    assert fetch[0] < fetch[1]


@pytest.mark.parametrize("tier", ["memory", "disk"])
def test_other_forms(graph: Graph, tier: str) -> None:
    number = np.dtype(np.uint32)
    search = told(graph, bfs.program(number), 1, tier=tier)
    assert search.estimate
    assert search.seconds > 0
    components = told(graph, wcc.program(number), 1, tier=tier)
    assert not components.estimate
    assert components.bytes_read == pages(graph)
    assert 0 < components.phases["run"] < told(graph, RANK, 10, tier=tier).phases["run"]
