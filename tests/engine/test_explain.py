"""Explaining: the plan in words, the smallest budget of what does not fit, and what happened beside it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import penstock as pk
from penstock.algorithms.registry import ALGORITHMS
from penstock.config import parse_size
from penstock.engine import rates
from penstock.engine.program import Combine
from penstock.engine.rates import Rates
from penstock.errors import DoesNotFit, UsageError
from penstock.graph import Graph
from penstock.interfaces.cli.explain import app
from penstock.memory.topology import Resident, Streamed
from penstock.store.reader import Direction


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


OPTIONS: dict[str, dict[str, Any]] = {
    "pagerank": {"max_iter": 2},
    "ppr": {"source": 1, "max_iter": 2},
    "hits": {"max_iter": 2},
    "bfs": {"source": [1, 2]},
    "sssp": {"source": 1, "parents": True},
    "cdlp": {"max_iter": 1},
    "betweenness": {"samples": 1},
    "closeness": {"samples": 65},
    "radius": {"lanes": 4, "max_iter": 3},
    "neighborhood": {"source": 1},
    "egonet": {"source": 1},
    "induced": {"vertices": [1, 2, 3]},
    "cross_edges": {"vertices": [1, 2, 3]},
}
SLOW = ("cdlp",)
"""So slow in the least memory that only the small graph is worth it."""


class Weighted:
    """Graphs of all ways and sizes, with weights, each built once."""

    def __init__(self, folder: Path) -> None:
        small: dict[str, Any] = {"kind": "kron", "scale": 9, "page_size": "4KiB"}
        wide: dict[str, Any] = {"kind": "uniform", "vertices": 100_000, "edges": 150_000, "page_size": "64KiB"}
        self.graphs = {
            (size, undirected): pk.generate(
                target=folder / f"{size}{undirected}.pen", undirected=undirected, weights="1:9", seed=1, **options
            )
            for size, options in (("small", small), ("wide", wide))
            for undirected in (False, True)
        }


@pytest.fixture(scope="module")
def weighted(tmp_path_factory: pytest.TempPathFactory) -> Weighted:
    return Weighted(tmp_path_factory.mktemp("weighted"))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_can_be_explained(weighted: Weighted, name: str) -> None:
    for graph in weighted.graphs.values():
        for options in ({}, OPTIONS.get(name, {})):
            found = pk.explain(name, graph, threads=2, **options)
            assert found.fits
            assert found.stages
            assert 0 < found.smallest < found.memory_limit
            assert found.seconds > 0
            text = str(found)
            assert text.startswith(name)
            assert "it does not tell" not in text
            assert max(map(parse_size, re.findall(r"smallest memory_limit: (.*)", text))) >= found.smallest
            held = json.loads(json.dumps(found.as_dict()))
            assert held["smallest_memory_limit"] == found.smallest
            if any(stage["form"] != "reading" for stage in held["stages"]):
                assert "passes: " in text


def test_the_smallest_limit_of_a_gpu_is_not_rounded_down(weighted: Weighted) -> None:
    for name in ("pagerank", "wcc", "kcore", "triangles", "cdlp"):
        found = pk.explain(name, weighted.graphs["small", True], device="gpu", gpu_memory_limit="1GB", threads=2)
        assert max(map(parse_size, re.findall(r"smallest gpu_memory_limit: (.*)", str(found)))) >= found.smallest_gpu


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_can_be_analysed(weighted: Weighted, name: str) -> None:
    graph = weighted.graphs["small", False]
    found = pk.explain(name, graph, analyze=True, threads=2, **OPTIONS.get(name, {}))
    assert found.happened["algorithm"] == name
    assert "memory counted" in str(found)


class TouchedError(Exception):
    """Something was read that should not have been."""


@pytest.mark.parametrize("size", ["small", "wide"])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_smallest_budget_is_enough_and_less_is_not(
    weighted: Weighted, name: str, size: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if size == "wide" and name in SLOW:
        pytest.skip("takes minutes")

    def refuse(*args: Any, **more: Any) -> None:
        raise TouchedError

    for undirected in (False, True):
        graph = weighted.graphs[size, undirected]
        options: dict[str, Any] = {"threads": 2, **OPTIONS.get(name, {})}
        told = pk.explain(name, graph, memory_limit=1, **options)
        assert not told.fits
        assert "does not fit" in str(told)
        enough = pk.explain(name, graph, memory_limit=told.smallest, **options)
        assert enough.fits
        assert enough.smallest == told.smallest
        result = pk.run(name, graph, memory_limit=told.smallest, **options)
        assert result.stats["ledger_peak"] <= told.smallest
        with monkeypatch.context() as patched:
            for kind in (Resident, Streamed):
                patched.setattr(kind, "__init__", refuse)
            patched.setattr(Direction, "read_page", refuse)
            with pytest.raises(DoesNotFit, match="set memory_limit to at least"):
                pk.run(name, graph, memory_limit=int(told.smallest * 0.95), **options)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_what_does_not_fit_in_memory_says_what_would(weighted: Weighted, name: str) -> None:
    graph = weighted.graphs["small", True]
    options: dict[str, Any] = {"threads": 2, "tier": "memory", **OPTIONS.get(name, {})}
    told = pk.explain(name, graph, memory_limit=1, **options)
    assert pk.explain(name, graph, memory_limit=told.smallest, **options).fits
    pk.run(name, graph, memory_limit=told.smallest, **options)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_on_the_command_line(weighted: Weighted, name: str) -> None:
    runner, path = CliRunner(), str(weighted.graphs["small", False].path)
    needs = {key: "1" for key in ("source", "vertices") if key in OPTIONS.get(name, {})}
    words = [name, path, *(part for key, value in needs.items() for part in (f"--{key}", value))]
    done = runner.invoke(app, [*words, "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["stages"]
    shown = runner.invoke(app, [*words, "--analyze"])
    assert shown.exit_code == 0, shown.output
    assert "memory counted" in shown.output
    assert runner.invoke(app, [*words, "--memory-limit", "1kB"]).exit_code == 3


def test_how_often_a_search_is_run_counts(weighted: Weighted) -> None:
    graph = weighted.graphs["wide", True]

    def seconds(**options: Any) -> float:
        stage = pk.explain("betweenness", graph, threads=2, **options).stages[0]
        assert stage.prediction is not None
        return stage.prediction.phases["run"]

    assert seconds(samples=10) == pytest.approx(10 * seconds(sources=[7]))
    assert "10 traversals" in str(pk.explain("betweenness", graph, samples=10))


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
