"""Every algorithm on every shape of graph, on a GPU: resident, streamed and in ranges, always what the oracle says."""

from __future__ import annotations

from functools import partial

import pytest

import cases
import penstock as pk
from algorithms.test_everywhere import NAMES, SHAPES, Built, built
from penstock.errors import PenstockError
from places import GPU_PLACES, at

__all__ = ["built"]

pytestmark = pytest.mark.gpu


def chosen(found: list[cases.Options], place: str, turn: int) -> list[cases.Options]:
    """Every second case, streamed and in ranges every third, others at each turn."""
    apart = max(1, min(len(found), 2 if place == "gpu" else 3))
    return found[turn % apart :: apart]


@pytest.mark.parametrize("place", GPU_PLACES)
@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in NAMES])
def test_gpu_everywhere(built: Built, name: str, place: str) -> None:
    for turn, shape in enumerate(SHAPES.values()):
        for undirected in shape.ways:
            graph, g = built.get(shape, undirected)
            for options in chosen(cases.CASES[name](g), place, turn + undirected):
                where = f"{name} of {shape.name!r}, undirected={undirected}, {options}, in {place}"
                try:
                    result = at(place, partial(pk.run, name, graph, **options))
                except PenstockError as error:
                    raise AssertionError(where) from error
                try:
                    cases.compare(name, cases.found(name, result), built.answer(name, shape, undirected, options))
                except AssertionError as error:
                    raise AssertionError(f"{where}: {error}") from None
