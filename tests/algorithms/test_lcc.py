"""Local clustering coefficients against the oracle, everywhere a program can run."""

from __future__ import annotations

from functools import partial
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
        answer = oracle.lcc(g)
        for result in everywhere(partial(pk.run, "lcc", graph)).values():
            cases.compare("lcc", cases.found("lcc", result), answer)


@settings(max_examples=30, deadline=None)
@given(
    edges=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=70),
    undirected=st.booleans(),
    incoming=st.booleans(),
    order=st.sampled_from(["degree", "input"]),
    duplicates=st.sampled_from(["keep", "merge"]),
)
def test_small_graphs(
    tmp_path_factory: pytest.TempPathFactory,
    edges: list[Any],
    undirected: bool,
    incoming: bool,
    order: str,
    duplicates: str,
) -> None:
    graph = pk.ingest(
        {"source": np.array([e[0] for e in edges]), "target": np.array([e[1] for e in edges])},
        tmp_path_factory.mktemp("p") / "g.pen",
        vertices={"id": np.arange(11)},
        undirected=undirected,
        duplicates=duplicates,
        order=order,
        page_size=4096,
        memory_limit="64MB",
        **({} if incoming or undirected else {"incoming": False}),
    )
    g = oracle.of(graph)
    for name in ("triangles", "lcc"):
        answer = cases.expected(name, g, {})
        for place in ("memory", "ranges"):
            result = at(place, partial(pk.run, name, graph))
            cases.compare(name, cases.found(name, result), answer)


@pytest.mark.parametrize("undirected", [False, True])
def test_against_the_checker(tmp_path: Path, undirected: bool) -> None:
    graph = pk.generate("kron", tmp_path / "g.pen", scale=11, seed=3, undirected=undirected, page_size=4096)
    for place in ("memory", "disk", "ranges", "smallest"):
        result = at(place, partial(pk.run, "lcc", graph))
        assert CHECKERS["lcc"](graph, result.table) == [], place
