"""Every algorithm on every shape of graph, wherever it can run: always what the oracle says."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

import cases
import oracle
import penstock as pk
from penstock.algorithms.registry import ALGORITHMS, options_of
from penstock.errors import PenstockError
from penstock.graph import Graph
from places import PLACES, at
from shapes import Shape

SHAPES = {shape.name: shape for shape in cases.shapes()}
MANY, FEW, LANED = 500, 40, ("betweenness", "closeness", "radius")
"""Of graphs of so many vertices, fewer for what has many lanes, the reference executor takes every second."""
NAMES = [name for name in ALGORITHMS if name in cases.CASES]


class Built:
    """Stores by shape and way, each built once, with what the oracle says of them."""

    def __init__(self, factory: pytest.TempPathFactory) -> None:
        self.folder = factory.mktemp("everywhere")
        self._graphs: dict[tuple[str, bool], tuple[Graph, oracle.G]] = {}
        self._answers: dict[str, Any] = {}

    def get(self, shape: Shape, undirected: bool) -> tuple[Graph, oracle.G]:
        key = shape.name, undirected
        if key not in self._graphs:
            graph = shape.build(self.folder / f"{len(self._graphs)}.pen", undirected)
            self._graphs[key] = graph, oracle.of(graph)
        return self._graphs[key]

    def answer(self, name: str, shape: Shape, undirected: bool, options: cases.Options) -> Any:
        key = repr((name, shape.name, undirected, options))
        if key not in self._answers:
            self._answers[key] = cases.expected(name, self.get(shape, undirected)[1], options)
        return self._answers[key]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Built]:
    made = Built(tmp_path_factory)
    yield made
    for graph, _ in made._graphs.values():
        graph.close()
    shutil.rmtree(made.folder, ignore_errors=True)


def chosen(name: str, g: oracle.G, place: str, turn: int) -> list[cases.Options]:
    """The cases worth their time in a place: all in memory; elsewhere every second or third, others at each turn."""
    found = cases.CASES[name](g)
    if place == "memory" or not found:
        return found
    if place != "reference":
        apart = min(len(found), 2 if place == "disk" else 3)
        return found[turn % apart :: apart]
    if len(g) > (FEW if name in LANED else MANY) and turn % 2:
        return []
    case = found[turn % len(found)]
    return [{**case, "max_iter": 3} if "max_iter" in options_of(name) else case]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", NAMES)
def test_everywhere(built: Built, name: str, place: str) -> None:
    for turn, shape in enumerate(SHAPES.values()):
        for undirected in shape.ways:
            graph, g = built.get(shape, undirected)
            for options in chosen(name, g, place, turn + undirected):
                where = f"{name} of {shape.name!r}, undirected={undirected}, {options}, in {place}"
                try:
                    result = at(place, partial(pk.run, name, graph, **options))
                except PenstockError as error:
                    raise AssertionError(where) from error
                try:
                    cases.compare(name, cases.found(name, result), built.answer(name, shape, undirected, options))
                except AssertionError as error:
                    raise AssertionError(f"{where}: {error}") from None


def test_there_are_cases_for_all() -> None:
    assert not [name for name in ALGORITHMS if name not in cases.CASES]
