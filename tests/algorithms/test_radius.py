"""Effective radii against the oracle, and estimates against what they estimate."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cases
import oracle
import penstock as pk
from penstock.algorithms.radius import effective_diameter
from penstock.engine.words import drawn, lowest_zero
from penstock.errors import UsageError
from penstock.verify import CHECKERS
from places import at


@pytest.mark.parametrize("undirected", [False, True])
def test_the_same_in_every_place(tmp_path: Path, undirected: bool) -> None:
    graph = pk.generate("kron", tmp_path / "g.pen", scale=8, seed=3, undirected=undirected, page_size=4096)
    answer = oracle.radius(oracle.of(graph), lanes=8, seed=5)
    for place in ("memory", "disk", "ranges", "smallest"):
        result = at(place, partial(pk.run, "radius", graph, lanes=8, seed=5))
        cases.compare("radius", result.to_dict(), answer)
        assert result.stats["max_radius"] == max(answer.values())
    assert CHECKERS["radius"](graph, result.table) == []


def test_a_path_is_as_long_as_it_is(tmp_path: Path) -> None:
    """Vertex v reaches those after it: nine tenths of 199 - v, roughly, as bits are seen or not."""
    steps = np.arange(199)
    graph = pk.ingest({"source": steps, "target": steps + 1}, tmp_path / "g.pen", page_size=4096)
    result = pk.run("radius", graph, lanes=256)
    found = np.array(list(result.to_dict().values()))
    assert found[-1] == 0
    assert np.abs(found - 0.9 * np.arange(199, -1, -1)).mean() < 20
    assert result.stats["iterations"] <= 200


def test_the_neighbourhood_function(tmp_path: Path) -> None:
    """Estimated pairs within h arcs, against all distances."""
    graph = pk.generate("kron", tmp_path / "g.pen", scale=8, seed=3, undirected=True, page_size=4096)
    g = oracle.of(graph)
    distances = [d for v in g.vertices for d in oracle.levels(g.out, [v]).values()]
    found = pk.run("radius", graph, lanes=512).stats["neighbourhood"]
    for h, pairs in enumerate(found[1:], 1):
        assert pairs == pytest.approx(sum(d <= h for d in distances), rel=0.15)


def test_effective_diameter() -> None:
    assert effective_diameter([7.0]) == 0
    assert effective_diameter([10.0, 50.0, 100.0]) == pytest.approx(1.8)
    assert effective_diameter([95.0, 100.0]) == 0


def test_few_steps_and_refusals(tmp_path: Path) -> None:
    graph = pk.generate("ring", tmp_path / "g.pen", vertices=100, page_size=4096)
    result = pk.run("radius", graph, max_iter=4)
    assert result.stats["iterations"] == 4
    assert len(result.stats["neighbourhood"]) == 5
    assert max(result.to_dict().values()) <= 4
    for options, message in (({"lanes": 0}, "lanes"), ({"max_iter": -1}, "max_iter"), ({"seed": -1}, "seed")):
        with pytest.raises(UsageError, match=message):
            pk.run("radius", graph, **options)


@given(st.integers(0, (1 << 32) - 1))
def test_lowest_zero(word: int) -> None:
    assert lowest_zero(np.uint32(word)) == next(i for i in range(33) if not word >> i & 1)


def test_bits_are_drawn_evenly() -> None:
    bits = [int(lowest_zero(drawn(1, lane, number))) for lane in range(8) for number in range(2000)]
    for bit in range(6):
        assert bits.count(bit) / len(bits) == pytest.approx(2.0 ** -(bit + 1), rel=0.1)
