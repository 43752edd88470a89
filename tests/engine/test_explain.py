"""Explaining: the plan in words, the smallest budget of what does not fit, and what happened beside it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as pk
from penstock.algorithms.registry import ALGORITHMS
from penstock.engine import rates
from penstock.engine.program import Combine
from penstock.engine.rates import Rates
from penstock.errors import UsageError
from penstock.graph import Graph


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    path = tmp_path_factory.mktemp("explain") / "k.pen"
    return pk.generate("kron", path, scale=11, undirected=True, page_size="4KiB")


def keep(graph: Graph, threads: int = 2) -> None:
    rates.save(replace(Rates.default(threads), measured=True), graph.path)


def test_words(graph: Graph) -> None:
    text = str(pk.explain("pagerank", graph, stop="fixed", max_iter=7, threads=2))
    for part in ("pagerank (combine)", "in memory", "passes: 7", "state", "run", "smallest memory_limit"):
        assert part in text
    assert "not measured here: run penstock doctor --measure" in text


def test_rates_of_this_machine_are_used(graph: Graph) -> None:
    keep(graph)
    found = pk.explain("pagerank", graph, threads=2)
    assert found.measured
    assert "doctor" not in str(found)


def test_from_disk(graph: Graph) -> None:
    text = str(pk.explain("pagerank", graph, memory_limit="1.4MB", tier="disk", threads=2))
    for part in ("from disk", "page cache", "index and ring", "stops at the tolerance"):
        assert part in text


def test_what_does_not_fit_names_the_budget_that_would(graph: Graph) -> None:
    found = pk.explain("pagerank", graph, memory_limit="100kB", threads=2)
    assert not found.fits
    assert "set memory_limit to at least" in str(found)
    enough = pk.explain("pagerank", graph, memory_limit=found.smallest, threads=2)
    assert enough.fits
    pk.run("pagerank", graph, memory_limit=found.smallest, threads=2, stop="fixed", max_iter=2)


def test_analysed(graph: Graph) -> None:
    found = pk.explain("pagerank", graph, analyze=True, stop="fixed", max_iter=3, tier="disk", threads=2)
    assert found.happened["iterations"] == 3
    text = str(found)
    for part in ("passes: 3, were 3", "was", "memory counted"):
        assert part in text
    happened = json.loads(json.dumps(found.as_dict()))["happened"]
    assert happened["bytes_read"] > 0


def test_json(graph: Graph) -> None:
    held = json.loads(json.dumps(pk.explain("bfs", graph, source=1).as_dict()))
    assert held["fits"]
    assert held["stages"][0]["prediction"]["estimate"]
    assert held["stages"][0]["plan"]["tier"] == "memory"


def test_a_program_of_ones_own(graph: Graph) -> None:
    program = Combine(
        name="mine", state={"x": np.float32}, init=lambda v, p: 0.0, message=np.float32, emit=lambda v, p: v.x,
        update=lambda v, total, p: total,
    )  # fmt: skip
    assert "passes: 20 (assumed)" in str(pk.explain(program, graph))
    assert "passes: 4" in str(pk.explain(program, graph, max_iter=4))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_can_be_explained(graph: Graph, name: str) -> None:
    needs: dict[str, Any] = {"source": 1} if name in ("bfs", "ppr", "sssp") else {}
    if name == "sssp":
        pytest.skip("the graph has no weights")
    assert name in str(pk.explain(name, graph, **needs))


def test_unknown_names_and_options(graph: Graph) -> None:
    with pytest.raises(UsageError, match="there is no algorithm"):
        pk.explain("divination", graph)
    with pytest.raises(UsageError, match="no option 'depth'"):
        pk.explain("pagerank", graph, depth=3)


def test_runs_tell_the_prediction_beside_the_plan(graph: Graph) -> None:
    options: dict[str, Any] = {"stop": "fixed", "max_iter": 3, "threads": 2}
    assert pk.run("pagerank", graph, **options).stats["prediction"] is None
    keep(graph)
    told = pk.run("pagerank", graph, **options).stats["prediction"]
    assert told["seconds"] == pytest.approx(told["phases"]["load"] + told["phases"]["run"])
    assert told["bound"] in ("disk", "memory", "compute")
    expected = pk.explain("pagerank", graph, **options).stages[0].prediction
    assert expected is not None
    assert told["phases"]["run"] == pytest.approx(expected.phases["run"])
