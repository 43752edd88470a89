"""Label propagation against the oracle, everywhere a program can run."""

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
from penstock.errors import UsageError
from penstock.verify import CHECKERS
from places import at, everywhere
from stored import Stored


@pytest.mark.parametrize("order", ["input", pytest.param("degree", marks=pytest.mark.slow)])
@pytest.mark.parametrize("shape", cases.shapes(), ids=lambda shape: shape.name)
def test_shapes(stored: Stored, shape: cases.Shape, order: str) -> None:
    """In the order of the input; in that of degrees, these shapes are among those of test_everywhere.py."""
    for undirected in shape.ways:
        graph, g = stored.get(shape, undirected, order=order)
        for options in cases.CASES["cdlp"](g):
            answer = cases.expected("cdlp", g, options)
            for result in everywhere(
                lambda graph=graph, options=options, **chosen: pk.run("cdlp", graph, **options, **chosen)
            ).values():
                cases.compare("cdlp", cases.found("cdlp", result), answer)


@settings(max_examples=30)
@given(
    edges=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=80),
    undirected=st.booleans(),
    order=st.sampled_from(["degree", "input"]),
    duplicates=st.sampled_from(["keep", "merge"]),
    most=st.integers(1, 6),
)
def test_small_graphs(
    tmp_path_factory: pytest.TempPathFactory,
    edges: list[Any],
    undirected: bool,
    order: str,
    duplicates: str,
    most: int,
) -> None:
    graph = pk.ingest(
        {"source": np.array([e[0] for e in edges], int), "target": np.array([e[1] for e in edges], int)},
        tmp_path_factory.mktemp("p") / "g.pen",
        vertices={"id": np.arange(14)},
        undirected=undirected,
        order=order,
        duplicates=duplicates,
        page_size=4096,
        allow_empty=True,
        memory_limit="64MB",
    )
    answer = oracle.cdlp(oracle.of(graph), max_iter=most)
    for place in ("memory", "disk", "ranges"):
        result = at(place, lambda **chosen: pk.run("cdlp", graph, max_iter=most, **chosen))
        cases.compare("cdlp", result.to_dict(), answer)


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize("order", ["degree", "input"])
def test_against_the_checker(tmp_path: Path, undirected: bool, order: str) -> None:
    graph = pk.generate(
        "kron", tmp_path / "g.pen", scale=11, seed=3, undirected=undirected, order=order, page_size=4096
    )
    places = ("memory", "disk", "ranges", "smallest")
    answers = [at(place, lambda **chosen: pk.run("cdlp", graph, max_iter=4, **chosen)) for place in places]
    assert CHECKERS["cdlp"](graph, answers[0].table, max_iter=4) == []
    for answer in answers[1:]:
        assert answer.table.equals(answers[0].table)


def test_it_stops_when_nothing_changes(tmp_path: Path) -> None:
    clique = [(u, v) for u in range(6) for v in range(u)]
    columns = {"source": [u for u, _ in clique], "target": [v for _, v in clique]}
    graph = pk.ingest(columns, tmp_path / "g.pen", undirected=True, page_size=4096)
    result = pk.run("cdlp", graph, max_iter=50)
    assert result.stats["converged"]
    assert result.stats["iterations"] < 10
    assert set(result.to_dict().values()) == {0}


def test_refusals(tmp_path: Path) -> None:
    columns = {"source": [1, 2], "target": [2, 3]}
    graph = pk.ingest(columns, tmp_path / "g.pen", page_size=4096, incoming=False)
    with pytest.raises(UsageError, match="incoming"):
        pk.run("cdlp", graph)
    with pytest.raises(UsageError, match="max_iter"):
        pk.run("cdlp", graph, max_iter=0)
