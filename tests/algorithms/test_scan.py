"""SCAN against its definition: an example, small graphs of all kinds, both measures of what is similar."""

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
from penstock.errors import UsageError
from penstock.verify import CHECKERS
from places import at, everywhere
from stored import Stored

BETWEEN = [
    (0, 1), (0, 4), (0, 5), (0, 6), (1, 2), (1, 5), (2, 3), (2, 5), (3, 4), (3, 5), (3, 6), (4, 5), (4, 6),
    (6, 10), (6, 11), (7, 8), (7, 11), (7, 12), (8, 9), (8, 12), (9, 10), (9, 12), (9, 13), (10, 11), (10, 12),
    (11, 12), (6, 7),
]  # fmt: skip
"""Two clusters, a hub between them, an outlier."""


@pytest.mark.parametrize("order", ["input", pytest.param("degree", marks=pytest.mark.slow)])
@pytest.mark.parametrize("shape", cases.shapes(), ids=lambda shape: shape.name)
def test_shapes(stored: Stored, shape: cases.Shape, order: str) -> None:
    """In the order of the input; in that of degrees, these shapes are among those of test_everywhere.py."""
    for undirected in shape.ways:
        graph, g = stored.get(shape, undirected, order=order)
        for options in cases.CASES["scan"](g)[1::2]:
            answer = oracle.scan(g, **options)
            for result in everywhere(partial(pk.run, "scan", graph, **options)).values():
                cases.compare("scan", cases.found("scan", result), answer)


def test_two_clusters_a_hub_and_an_outlier() -> None:
    ends = np.array(BETWEEN).T
    graph = pk.from_edges(ends[0], ends[1], undirected=True)
    result = pk.scan(graph, epsilon=0.7, mu=2)
    found = result.to_dict()
    assert {v for v, (cluster, _, _) in found.items() if cluster == 0} == set(range(6))
    assert {v for v, (cluster, _, _) in found.items() if cluster == 7} == {7, 8, 9, 10, 11, 12}
    assert [v for v, (_, _, hub) in found.items() if hub] == [6]
    assert found[13] == (None, False, False)
    counts = {name: result.stats[name] for name in ("clusters", "members", "hubs", "outliers")}
    assert counts == {"clusters": 2, "members": 12, "hubs": 1, "outliers": 1}
    assert result.stats["cores"] == sum(core for _, core, _ in found.values())


@settings(max_examples=40, deadline=None)
@given(
    edges=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 4)), min_size=1, max_size=60),
    undirected=st.booleans(),
    incoming=st.booleans(),
    order=st.sampled_from(["degree", "input"]),
    duplicates=st.sampled_from(["keep", "merge"]),
    epsilon=st.floats(0.01, 1),
    mu=st.integers(2, 5),
)
def test_small_graphs(
    tmp_path_factory: pytest.TempPathFactory,
    edges: list[Any],
    undirected: bool,
    incoming: bool,
    order: str,
    duplicates: str,
    epsilon: float,
    mu: int,
) -> None:
    sources, targets, weights = (np.array(column) for column in zip(*edges, strict=True))
    graph = pk.ingest(
        {"source": sources, "target": targets, "weight": weights},
        tmp_path_factory.mktemp("s") / "g.pen",
        vertices={"id": np.arange(11)},
        undirected=undirected,
        duplicates=duplicates,
        order=order,
        page_size=4096,
        memory_limit="64MB",
        **({} if incoming or undirected else {"incoming": False}),
    )
    g = oracle.of(graph)
    chosen: list[dict[str, Any]] = [{"epsilon": epsilon, "mu": mu}]
    chosen += [{"epsilon": 4 * epsilon, "mu": mu, "similarity": "weight"}] if undirected else []
    for options in chosen:
        answer = oracle.scan(g, **options)
        for place in ("memory", "ranges"):
            result = at(place, partial(pk.run, "scan", graph, **options))
            cases.compare("scan", cases.found("scan", result), answer)
        assert CHECKERS["scan"](graph, result.table, **options) == []


@pytest.mark.parametrize("undirected", [False, True])
def test_against_the_checker(tmp_path: Path, undirected: bool) -> None:
    graph = pk.generate("kron", tmp_path / "g.pen", scale=11, seed=3, undirected=undirected, page_size=4096)
    options = {"epsilon": 0.2, "mu": 3}
    for place in ("memory", "disk", "ranges", "smallest"):
        result = at(place, partial(pk.run, "scan", graph, **options))
        assert CHECKERS["scan"](graph, result.table, **options) == [], place
    assert result.stats["clusters"] > 1
    assert result.stats["hubs"] > 0


def test_ids_of_text(tmp_path: Path) -> None:
    """Clusters are named, and chosen, by the smallest id, not by the order of the store."""
    edges = [("d", "e"), ("e", "f"), ("d", "f"), ("c", "b"), ("b", "a"), ("c", "a"), ("d", "x"), ("c", "x"), ("b", "y")]
    path = tmp_path / "e.tsv"
    path.write_text("".join(f"{u}\t{v}\n" for u, v in edges))
    graph = pk.ingest(path, tmp_path / "g.pen", undirected=True)
    g = oracle.of(graph)
    for options in ({"epsilon": 0.5, "mu": 3}, {"epsilon": 0.7, "mu": 3}, {"epsilon": 0.6}):
        assert pk.scan(graph, **options).to_dict() == oracle.scan(g, **options), options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0}, "epsilon must be above 0 and at most 1, not 0"),
        ({"epsilon": 1.5}, "epsilon must be above 0 and at most 1"),
        ({"epsilon": float("nan")}, "epsilon must be"),
        ({"mu": 1}, "mu must be at least 2"),
        ({"similarity": "weight", "epsilon": float("inf")}, "epsilon must be a number"),
        ({"similarity": "weight"}, "build it with undirected=True"),
        ({"checkpoint": "x"}, "goes over its lists three times"),
    ],
)
def test_what_is_refused(options: dict[str, Any], message: str) -> None:
    graph = pk.from_edges([0, 1], [1, 2], weight=[1.0, 2.0])
    with pytest.raises(UsageError, match=message):
        pk.scan(graph, **options)


def test_a_column_that_is_not_there() -> None:
    graph = pk.from_edges([0, 1], [1, 2], undirected=True)
    result = pk.scan(graph)
    for call in (
        lambda: pk.scan(graph, similarity="alike"),
        lambda: pk.explain("scan", graph, similarity="alike"),
        lambda: pk.verify("scan", graph, result, similarity="alike"),
    ):
        with pytest.raises(UsageError, match="no edge column 'alike'"):
            call()


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_similar_is_what_the_column_shows(tmp_path: Path, kind: str) -> None:
    """0.7 is as similar as 0.7, however short the numbers are; what is no number is similar to nothing."""
    edges = {"source": [0, 1, 2], "target": [1, 2, 3], "alike": np.array([0.7, 0.9, np.nan], kind)}
    graph = pk.ingest(edges, tmp_path / "g.pen", undirected=True, allow_nan=True)
    for place in ("memory", "disk", "reference"):
        result = at(place, partial(pk.run, "scan", graph, similarity="alike", epsilon=0.7, mu=2))
        assert result.to_dict() == {
            0: (0, True, False), 1: (0, True, False), 2: (0, True, False), 3: (None, False, False)
        }  # fmt: skip
        assert pk.verify("scan", graph, result, similarity="alike", epsilon=0.7, mu=2) == []


def test_ranges_are_foreseen(tmp_path: Path) -> None:
    """As many as the run makes of its lists, or not many more; also where no index has degrees of incoming arcs."""
    for incoming in (True, False):
        path = tmp_path / f"{incoming}.pen"
        graph = pk.generate("kron", path, scale=14, seed=3, page_size=4096, incoming=incoming)
        told = pk.explain("scan", graph, tier="disk")
        stats = pk.scan(graph, tier="disk", memory_limit=told.smallest + 500_000).stats
        assert stats["spilled_lists"] > 0
        made = max(step.get("ranges", 1) for step in stats["supersteps"])
        assert made <= stats["plans"][0]["ranges"] <= 2 * made + 2, incoming
