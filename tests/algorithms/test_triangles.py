"""Triangles against the oracle, everywhere a program can run."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

import cases
import oracle
import penstock as pk
from penstock.verify import CHECKERS
from places import PLACES, at, everywhere
from stored import Stored


@pytest.mark.parametrize("order", ["input", pytest.param("degree", marks=pytest.mark.slow)])
@pytest.mark.parametrize("shape", cases.shapes(), ids=lambda shape: shape.name)
def test_shapes(stored: Stored, shape: cases.Shape, order: str) -> None:
    """In the order of the input; in that of degrees, these shapes are among those of test_everywhere.py."""
    for undirected in shape.ways:
        graph, g = stored.get(shape, undirected, order=order)
        answer = oracle.triangles(g)
        for place, result in everywhere(partial(pk.run, "triangles", graph)).items():
            cases.compare("triangles", cases.found("triangles", result), answer)
            assert result.stats["triangles"] * 3 == sum(answer.values()), place


@pytest.mark.parametrize("place", PLACES)
def test_only_the_total(stored: Stored, place: str) -> None:
    for shape in cases.shapes():
        graph, g = stored.get(shape, shape.ways[-1])
        total = sum(oracle.triangles(g).values()) // 3
        result = at(place, partial(pk.run, "triangles", graph, per_vertex=False))
        assert result.stats["triangles"] == total
        assert len(result) == 0
        assert result.to_dict() == {}


def test_columns(tmp_path: Path) -> None:
    graph = pk.ingest({"source": [1, 2, 3, 3], "target": [2, 3, 1, 4]}, tmp_path / "g.pen", page_size=4096)
    result = pk.run("triangles", graph)
    assert result.table.column("triangles").to_numpy().dtype == np.uint64
    assert result.to_dict() == {1: 1, 2: 1, 3: 1, 4: 0}


@pytest.mark.parametrize("undirected", [False, True])
def test_against_the_checker(tmp_path: Path, undirected: bool) -> None:
    graph = pk.generate("kron", tmp_path / "g.pen", scale=11, seed=3, undirected=undirected, page_size=4096)
    for place in ("memory", "disk", "ranges", "smallest"):
        result = at(place, partial(pk.run, "triangles", graph))
        assert CHECKERS["triangles"](graph, result.table) == [], place
