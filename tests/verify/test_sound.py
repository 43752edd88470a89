"""Every checker says that right answers are right: on all shapes, with all options."""

from __future__ import annotations

from pathlib import Path

import pytest

import cases
import oracle
from penstock.verify import CHECKERS

from .answers import COLUMNS, answer

SHAPES = [(shape, undirected) for shape in cases.shapes() for undirected in shape.ways]


@pytest.mark.parametrize(
    ("shape", "undirected"), SHAPES, ids=[f"{s.name}, {'un' * undirected}directed" for s, undirected in SHAPES]
)
def test_right_answers_pass(tmp_path: Path, shape: cases.Shape, undirected: bool) -> None:
    with shape.build(tmp_path / "graph.pen", undirected) as graph:
        g = oracle.of(graph)
        for name in COLUMNS:
            for options in cases.CASES[name](g):
                found = CHECKERS[name](graph, answer(name, graph, g, options), **options)
                assert not found, (name, options)


def test_all_algorithms_have_a_checker() -> None:
    assert set(CHECKERS) == {*cases.CASES, "radius"} - set(cases.EDGE_RESULTS)
