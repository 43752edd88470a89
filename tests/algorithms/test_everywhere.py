"""Every algorithm on every shape of graph, wherever it can run: always what the oracle says."""

from __future__ import annotations

from collections.abc import Callable
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
from stored import Stored

SHAPES = {shape.name: shape for shape in cases.shapes()}
MANY, FEW, LANED = 500, 40, ("betweenness", "closeness", "radius")
"""Of graphs of so many vertices, fewer for what has many lanes, the reference executor takes every second."""
NAMES = [name for name in ALGORITHMS if name in cases.CASES]


class Built:
    """Stores by shape and way, with what the oracle says of them."""

    def __init__(self, stored: Stored) -> None:
        self._stored = stored
        self._answers: dict[str, Any] = {}

    def get(self, shape: Shape, undirected: bool) -> tuple[Graph, oracle.G]:
        return self._stored.get(shape, undirected)

    def answer(self, name: str, shape: Shape, undirected: bool, options: cases.Options) -> Any:
        key = repr((name, shape.name, undirected, options))
        if key not in self._answers:
            self._answers[key] = cases.expected(name, self.get(shape, undirected)[1], options)
        return self._answers[key]


@pytest.fixture(scope="module")
def built(stored: Stored) -> Built:
    return Built(stored)


def chosen(name: str, g: oracle.G, place: str, turn: int) -> list[cases.Options]:
    """The cases worth their time in a place: one half in memory and the other from disk, elsewhere one; others at each
    turn. Every case meets every shape, and both meet every place."""
    found = cases.CASES[name](g)
    if place in ("memory", "disk") or not found:
        apart = min(len(found), 2) or 1
        return found[(turn + (place == "disk")) % apart :: apart]
    if place != "reference":
        return [found[(turn + (place == "smallest")) % len(found)]]
    if len(g) > (FEW if name in LANED else MANY) and turn % 2:
        return []
    case = found[turn % len(found)]
    return [{**case, "max_iter": 3} if "max_iter" in options_of(name) else case]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", NAMES)
def test_everywhere(built: Built, name: str, place: str) -> None:
    check(built, name, place, partial(chosen, name))


@pytest.mark.slow
@pytest.mark.parametrize("place", [place for place in PLACES if place != "reference"])
@pytest.mark.parametrize("name", NAMES)
def test_every_case_of_every_shape_everywhere(built: Built, name: str, place: str) -> None:
    check(built, name, place, lambda g, place, turn: cases.CASES[name](g))


def check(built: Built, name: str, place: str, choose: Callable[[oracle.G, str, int], list[cases.Options]]) -> None:
    for turn, shape in enumerate(SHAPES.values()):
        for undirected in shape.ways:
            graph, g = built.get(shape, undirected)
            for options in choose(g, place, turn + undirected):
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
