"""Weakly connected components against the oracle, everywhere a program can run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cases
import oracle
import penstock as pk
from penstock.verify import CHECKERS
from places import at, everywhere
from stored import Stored


@pytest.mark.parametrize("order", ["input", pytest.param("degree", marks=pytest.mark.slow)])
@pytest.mark.parametrize("shape", cases.shapes(), ids=lambda shape: shape.name)
def test_shapes(stored: Stored, shape: cases.Shape, order: str) -> None:
    """In the order of the input; in that of degrees, these shapes are among those of test_everywhere.py."""
    for undirected in shape.ways:
        graph, g = stored.get(shape, undirected, order=order)
        answer = oracle.wcc(g)
        for result in everywhere(lambda graph=graph, **chosen: pk.run("wcc", graph, **chosen)).values():
            cases.compare("wcc", cases.found("wcc", result), answer)
            assert result.stats["components"] == len(set(answer.values()))


@settings(max_examples=30)
@given(
    edges=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=40),
    undirected=st.booleans(),
    incoming=st.booleans(),
    order=st.sampled_from(["degree", "input"]),
)
def test_small_graphs(
    tmp_path_factory: pytest.TempPathFactory, edges: list[Any], undirected: bool, incoming: bool, order: str
) -> None:
    graph = pk.ingest(
        {"source": np.array([e[0] for e in edges], int), "target": np.array([e[1] for e in edges], int)},
        tmp_path_factory.mktemp("p") / "g.pen",
        vertices={"id": np.arange(33)},
        undirected=undirected,
        order=order,
        page_size=4096,
        allow_empty=True,
        memory_limit="64MB",
        **({} if incoming or undirected else {"incoming": False}),
    )
    answer = oracle.wcc(oracle.of(graph))
    for place in ("memory", "disk"):
        cases.compare("wcc", at(place, lambda **chosen: pk.run("wcc", graph, **chosen)).to_dict(), answer)
    # With both directions at hand, arcs between settled vertices are left out of a directed graph, too.
    cases.compare("wcc", pk.run("wcc", graph.load(), threads=2).to_dict(), answer)


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize("order", ["degree", "input"])
def test_against_the_checker(tmp_path: Path, undirected: bool, order: str) -> None:
    graph = pk.generate(
        "kron", tmp_path / "g.pen", scale=12, edge_factor=2, seed=3, undirected=undirected, order=order, page_size=4096
    )
    answers = [at(place, lambda **chosen: pk.run("wcc", graph, **chosen)) for place in ("memory", "disk", "smallest")]
    answers.append(pk.run("wcc", graph.load(), threads=2))
    assert CHECKERS["wcc"](graph, answers[0].table) == []
    for answer in answers[1:]:
        assert answer.table.equals(answers[0].table)


@pytest.mark.parametrize("order", ["degree", "input"])
def test_a_long_path_in_any_order(tmp_path: Path, order: str) -> None:
    """Links that meet from both sides, all the way."""
    ids = np.random.default_rng(5).permutation(20_000)
    columns = {"source": ids[:-1], "target": ids[1:]}
    graph = pk.ingest(columns, tmp_path / "g.pen", order=order, page_size=4096)
    for threads in (1, 4):
        for tier in ("memory", "disk"):
            result = pk.run("wcc", graph, tier=tier, threads=threads)
            assert set(result.table.column("component").to_pylist()) == {0}
            assert result.stats["components"] == 1


def test_one_pass_from_disk(tmp_path: Path) -> None:
    graph = pk.generate("kron", tmp_path / "g.pen", scale=12, seed=3, page_size=4096)
    stats = pk.run("wcc", graph, tier="disk").stats
    assert stats["bytes_read"] == len(graph.store.direction("out")) * graph.store.page_size
    assert set(stats["phases"]) >= {"run", "label"}
