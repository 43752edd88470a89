"""Every algorithm on every shape of graph, on a GPU: resident, streamed and in ranges, always what the oracle says."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

import cases
import penstock as pk
from algorithms.test_everywhere import NAMES, SHAPES, Built, built
from penstock.errors import PenstockError
from places import GPU_PLACES, at
from shapes import Shape

__all__ = ["built"]

LARGE = ("star", "star inwards", "hub of parallel arcs", "random")
"""Of several pages, or of vertices that blocks share: these go everywhere, and both ways."""


def chosen(name: str, place: str) -> Iterator[tuple[Shape, bool]]:
    """Shapes and ways worth their time: the large ones, and of the others a third in each place, every second way. Each
    algorithm meets all of them somewhere, and no two neighbours meet them alike."""
    turn, third = NAMES.index(name), list(GPU_PLACES).index(place)
    for number, shape in enumerate(SHAPES.values(), turn):
        if shape.name in LARGE:
            yield from ((shape, undirected) for undirected in shape.ways)
        elif number % 3 == third:
            yield shape, shape.ways[number % len(shape.ways)]


@pytest.mark.gpu
@pytest.mark.parametrize("place", GPU_PLACES)
@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in NAMES])
def test_gpu_everywhere(built: Built, name: str, place: str) -> None:
    for turn, (shape, undirected) in enumerate(chosen(name, place), list(GPU_PLACES).index(place)):
        graph, g = built.get(shape, undirected)
        found = cases.CASES[name](g)
        if not found:
            continue
        options = found[turn % len(found)]
        where = f"{name} of {shape.name!r}, undirected={undirected}, {options}, in {place}"
        try:
            result = at(place, partial(pk.run, name, graph, **options))
        except PenstockError as error:
            raise AssertionError(where) from error
        assert bool(result.stats.get("why_not_gpu")) == (not result.stats["plans"]), where
        try:
            cases.compare(name, cases.found(name, result), built.answer(name, shape, undirected, options))
        except AssertionError as error:
            raise AssertionError(f"{where}: {error}") from None


@pytest.mark.parametrize("name", NAMES)
def test_all_shapes_are_met(name: str) -> None:
    met = {place: list(chosen(name, place)) for place in GPU_PLACES}
    assert {shape.name for pairs in met.values() for shape, _ in pairs} == set(SHAPES)
    for pairs in met.values():
        assert {undirected for _, undirected in pairs} == {False, True}
        assert {shape.name for shape, _ in pairs} >= set(LARGE)


def test_all_ways_are_met() -> None:
    met = {
        (shape.name, undirected) for name in NAMES for place in GPU_PLACES for shape, undirected in chosen(name, place)
    }
    assert met == {(shape.name, undirected) for shape in SHAPES.values() for undirected in shape.ways}
