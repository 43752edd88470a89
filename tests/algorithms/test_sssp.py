"""Shortest paths against the oracle, wherever they run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cases
import oracle
import penstock as pk
from penstock.errors import InputError, UsageError
from stored import Stored

PLACES: dict[str, dict[str, Any]] = {
    "memory": {"tier": "memory", "threads": 2},
    "disk": {"tier": "disk", "threads": 2},
    "ranges": {"tier": "disk", "state_ranges": 3, "threads": 2},
}


@pytest.mark.parametrize("apart", [3, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("number", range(len(cases.shapes())), ids=[shape.name for shape in cases.shapes()])
def test_every_shape(stored: Stored, number: int, place: str, apart: int) -> None:
    """To the last bit, and with widths beyond all reason. Of the cases every third, which together are all of them in
    the three places; or every one."""
    shape = cases.shapes()[number]
    for undirected in shape.ways:
        graph, g = stored.get(shape, undirected)
        more = [{"delta": 1e-6}, {"delta": 1e9}] if place != "ranges" else []
        extra = [{"source": cases.busiest(g), **each} for each in more] if len(g) else []
        turn = number + undirected + list(PLACES).index(place)
        for options in [*cases.CASES["sssp"](g)[turn % apart :: apart], *extra]:
            found = cases.found("sssp", pk.run("sssp", graph, **options, **PLACES[place]))
            cases.compare("sssp", found, cases.expected("sssp", g, options), rel=0, abs=0)


def store(path: Path, edges: list[tuple[int, int, Any]], kind: Any = np.int64, column: str = "weight") -> pk.Graph:
    source, target, weight = zip(*edges, strict=True)
    columns = {"source": np.array(source), "target": np.array(target), column: np.array(weight, kind)}
    return pk.ingest(columns, path, page_size=4096, allow_nan=True)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", ["real", "whole"])
def test_without_incoming_arcs(tmp_path: Path, kind: str, place: str) -> None:
    shape = next(s for s in cases.shapes() if s.name == ("random, real weights" if kind == "real" else "random"))
    graph = shape.build(tmp_path / "g.pen", undirected=False, incoming=False)
    g = oracle.of(graph)
    for options in cases.CASES["sssp"](g):
        if kind == "real" and "parents" in options:
            with pytest.raises(UsageError, match="incoming"):
                pk.run("sssp", graph, **options, **PLACES[place])
            continue
        found = cases.found("sssp", pk.run("sssp", graph, **options, **PLACES[place]))
        cases.compare("sssp", found, cases.expected("sssp", g, options), rel=0, abs=0)


def test_under_the_smallest_budget(tmp_path: Path) -> None:
    graph = pk.generate("kron", tmp_path / "g.pen", scale=12, seed=2, undirected=True, page_size="4KiB", weights="1:99")
    expected = pk.run("sssp", graph, source=1, tier="memory")
    smallest = expected.stats["plans"][0]["smallest"]
    found = pk.run("sssp", graph, source=1, memory_limit=smallest)
    assert found.table.equals(expected.table)
    assert found.stats["plans"][0]["tier"] == "disk"


@pytest.mark.parametrize(
    ("parents", "place"),
    [
        (False, "memory"),
        # To find the parents, the distances are found first.
        *(pytest.param(False, place, marks=pytest.mark.slow) for place in ("disk", "ranges")),
        *((True, place) for place in PLACES),
    ],
)
def test_long_integers(tmp_path: Path, parents: bool, place: str) -> None:
    """Beyond 32 bits, first as a sum of small weights that may or may not fit, then by the weights themselves."""
    for largest in (15 << 20, 1 << 24, 1 << 40):
        edges = [(v, v + 1, largest) for v in range(300)] + [(0, 9, 5), (0, 300, 299 * largest)]
        graph = store(tmp_path / f"{largest}.pen", edges)
        g = oracle.of(graph)
        found = cases.found("sssp", pk.run("sssp", graph, source=0, parents=parents, **PLACES[place]))
        cases.compare("sssp", found, oracle.sssp(g, [0], parents=parents))


def test_distances_that_no_integer_holds(tmp_path: Path) -> None:
    graph = store(tmp_path / "g.pen", [(v, v + 1, 1 << 61) for v in range(8)])
    with pytest.raises(InputError, match="exceed 63 bits"):
        pk.run("sssp", graph, source=0)


# Kernels of a type take seconds to compile: short and long, with a sign and without, and real.
OTHERS = [pytest.param(kind, marks=pytest.mark.slow) for kind in ("uint8", "uint32")]


@pytest.mark.parametrize("kind", ["int16", "uint64", "float32", *OTHERS])
def test_types_of_weights(tmp_path: Path, kind: str) -> None:
    graph = store(tmp_path / "g.pen", [(0, 1, 200), (1, 2, 100), (0, 2, 250)], kind)
    result = pk.run("sssp", graph, source=0, parents=True)
    assert result.to_dict() == {0: (0, 0), 1: (200, 0), 2: (250, 0)}
    assert str(result.table.schema.field("distance").type) == ("double" if kind == "float32" else "int64")


@pytest.mark.parametrize("place", PLACES)
def test_single_precision(tmp_path: Path, place: str) -> None:
    shape = next(s for s in cases.shapes() if s.name == "random, real weights")
    graph = shape.build(tmp_path / "g.pen", undirected=True)
    g = oracle.of(graph)
    source = cases.busiest(g)
    found = pk.run("sssp", graph, source=source, dtype="float32", parents=True, **PLACES[place]).to_dict()
    expected = oracle.sssp(g, source)
    for vertex, (distance, parent) in found.items():
        assert distance == (None if expected[vertex] is None else pytest.approx(expected[vertex], rel=1e-6))
        assert (parent is None) == (distance is None)


def test_a_column_of_any_name(tmp_path: Path) -> None:
    graph = store(tmp_path / "g.pen", [(0, 1, 3), (1, 2, 4)], column="the class")
    assert pk.run("sssp", graph, source=0, weight="the class").to_dict() == {0: 0, 1: 3, 2: 7}
    with pytest.raises(UsageError, match="no edge column 'weight': choose one with weight=: the class"):
        pk.run("sssp", graph, source=0)


def test_without_columns(tmp_path: Path) -> None:
    graph = pk.ingest({"source": np.array([0]), "target": np.array([1])}, tmp_path / "g.pen")
    with pytest.raises(UsageError, match="run bfs"):
        pk.run("sssp", graph, source=0)


def test_weights_that_are_no_lengths(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds -3: shortest paths take no negative"):
        pk.run("sssp", store(tmp_path / "a.pen", [(0, 1, 5), (7, 8, -3)]), source=0)
    graph = store(tmp_path / "d.pen", [(0, 1, 5)], "datetime64[s]")
    with pytest.raises(UsageError, match="no length"):
        pk.run("sssp", graph, source=0)


EVERYWHERE = {**PLACES, "reference": {"device": "reference"}}
WIDTHS: dict[str, dict[str, Any]] = {"as it likes": {}, "narrow": {"delta": 1e-3}, "one bucket": {"delta": 1e9}}


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        *(("float64", place) for place in EVERYWHERE),
        # Of the other type, kernels of each place are compiled that differ in no more than that.
        *(pytest.param("float32", place, marks=() if place == "memory" else pytest.mark.slow) for place in EVERYWHERE),
    ],
)
def test_nan_is_found_wherever_it_is_reached(tmp_path: Path, kind: str, place: str) -> None:
    """Whatever else is in its page, however late it is reached, and wherever it leads."""
    ways = [(v, v + 1, 1.0) for v in range(60)] + [(v, (v * 7) % 60, 300.0) for v in range(60)]
    island = [(1000 + v, 1001 + v, np.nan) for v in range(2000)]
    nowhere = store(tmp_path / "nowhere.pen", ways + island, kind)
    plain = store(tmp_path / "plain.pen", ways, kind)
    for width in WIDTHS.values():
        options = EVERYWHERE[place] | width
        found = pk.run("sssp", nowhere, source=0, **options).to_dict()
        assert {v: d for v, d in found.items() if v <= 60} == pk.run("sssp", plain, source=0, **options).to_dict()
        assert all(d is None for v, d in found.items() if v > 60)
    for turn, (source, target) in enumerate(((0, 1), (40, 41), (60, 0), (59, 59), (60, 5000))):
        graph = store(tmp_path / f"{turn}.pen", [*ways, (source, target, np.nan), *island], kind)
        for width in WIDTHS.values():
            with pytest.raises(InputError, match=r"edge column 'weight' of .* holds NaN, which is no length"):
                pk.run("sssp", graph, source=0, parents=turn == 1, **EVERYWHERE[place], **width)


@pytest.mark.parametrize("place", EVERYWHERE)
def test_nan_beside_infinity_and_zero(tmp_path: Path, place: str) -> None:
    """An infinite weight is no way; it must not hide a NaN that a way leads to."""
    options = EVERYWHERE[place]
    closed = [(0, 1, 0.0), (1, 2, np.inf), (2, 3, np.nan)]
    found = pk.run("sssp", store(tmp_path / "a.pen", closed, float), source=0, **options).to_dict()
    assert found == {0: 0.0, 1: 0.0, 2: None, 3: None}
    for turn, more in enumerate(([(1, 4, np.nan), (4, 1, np.inf)], [(1, 0, np.nan)], [(0, 2, 1.0), (3, 0, np.inf)])):
        graph = store(tmp_path / f"{turn}.pen", closed + more, float)
        with pytest.raises(InputError, match="holds NaN"):
            pk.run("sssp", graph, source=0, **options)


@pytest.mark.parametrize("place", EVERYWHERE)
@pytest.mark.parametrize("kind", ["int32", "float64"])
def test_negative_weights_beside_others(tmp_path: Path, kind: str, place: str) -> None:
    edges: list[tuple[int, int, Any]] = [(v, v + 1, 5) for v in range(3000)]
    if kind != "int32":
        edges += [(v, v + 2, np.nan) for v in range(5000, 7000)]
    graph = store(tmp_path / "g.pen", [*edges, (2000, 2001, -1)], kind)
    with pytest.raises(InputError, match=r"edge column 'weight' of .* holds -1.*no negative weights"):
        pk.run("sssp", graph, source=0, **EVERYWHERE[place])


def test_a_column_of_nothing_but_nan(tmp_path: Path) -> None:
    graph = store(tmp_path / "g.pen", [(0, 1, np.nan)], float)
    with pytest.raises(InputError, match="holds NaN"):
        pk.run("sssp", graph, source=0)
    assert pk.run("sssp", graph, source=1).to_dict() == {0: None, 1: 0.0}


@pytest.mark.parametrize("delta", [0, -1, float("nan"), float("inf")])
def test_bad_widths(tmp_path: Path, delta: float) -> None:
    with pytest.raises(UsageError, match="delta must be more than 0"):
        pk.run("sssp", store(tmp_path / "g.pen", [(0, 1, 5)]), source=0, delta=delta)
