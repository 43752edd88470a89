"""Strongly connected components against the oracle, the checker and SciPy."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

import cases
import oracle
import penstock as pk
from penstock.verify import CHECKERS
from places import at


@settings(max_examples=40)
@given(
    edges=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=70),
    incoming=st.booleans(),
    order=st.sampled_from(["degree", "input"]),
)
def test_small_graphs(tmp_path_factory: pytest.TempPathFactory, edges: list[Any], incoming: bool, order: str) -> None:
    graph = pk.ingest(
        {"source": np.array([e[0] for e in edges], int), "target": np.array([e[1] for e in edges], int)},
        tmp_path_factory.mktemp("p") / "g.pen",
        vertices={"id": np.arange(33)},
        order=order,
        page_size=4096,
        allow_empty=True,
        **({} if incoming else {"incoming": False}),
    )
    answer = oracle.scc(oracle.of(graph))
    for place in ("memory", "disk"):
        result = at(place, partial(pk.run, "scc", graph))
        cases.compare("scc", result.to_dict(), answer)
        assert result.stats["components"] == len(set(answer.values()))


@pytest.mark.parametrize("edge_factor", [1, 2, 8])
@pytest.mark.parametrize("order", ["degree", "input"])
def test_against_the_checker(tmp_path: Path, edge_factor: int, order: str) -> None:
    graph = pk.generate(
        "kron", tmp_path / "g.pen", scale=12, edge_factor=edge_factor, seed=3, order=order, page_size=4096
    )
    answers = [at(place, partial(pk.run, "scc", graph)) for place in ("memory", "disk", "ranges", "smallest")]
    assert CHECKERS["scc"](graph, answers[0].table) == []
    for answer in answers[1:]:
        assert answer.table.equals(answers[0].table)
    count, _ = connected_components(pk.to_scipy(graph), connection="strong")
    assert answers[0].stats["components"] == count


def test_a_chain_of_cycles(tmp_path: Path) -> None:
    """Many components in a row, each found only when those before it are gone or coloured apart."""
    ids = np.arange(300).reshape(-1, 3)
    source = np.concatenate([ids[:, 0], ids[:, 1], ids[:, 2], ids[:-1, 2]])
    target = np.concatenate([ids[:, 1], ids[:, 2], ids[:, 0], ids[1:, 0]])
    for name, (a, b) in {"up": (source, target), "down": (target, source)}.items():
        graph = pk.ingest({"source": a, "target": b}, tmp_path / f"{name}.pen", page_size=4096, order="input")
        found = pk.run("scc", graph).to_dict()
        assert found == {v: v // 3 * 3 for v in range(300)}


def test_trimming_is_enough_for_a_dag(tmp_path: Path) -> None:
    steps = np.arange(1999)
    graph = pk.ingest({"source": steps, "target": steps + 1}, tmp_path / "g.pen", page_size=4096)
    result = pk.run("scc", graph, tier="disk")
    assert result.stats["components"] == 2000
    assert result.stats["rounds"] == 0
    assert {step["program"] for step in result.stats["supersteps"]} == {"trim"}


def test_undirected_components_are_weak_ones(tmp_path: Path) -> None:
    graph = pk.generate("kron", tmp_path / "g.pen", scale=10, edge_factor=1, seed=3, undirected=True, page_size=4096)
    assert pk.run("scc", graph).table.equals(pk.run("wcc", graph).table)
