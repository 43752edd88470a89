"""PageRank from disk against the oracle and against scipy's power iteration."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
import penstock as pk
from penstock.errors import DamagedStore, DoesNotFit, UsageError


@settings(max_examples=40)
@given(
    edges=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=60),
    undirected=st.booleans(),
    order=st.sampled_from(["degree", "input"]),
    duplicates=st.sampled_from(["keep", "merge"]),
    iterations=st.integers(1, 6),
)
def test_small_graphs(
    tmp_path_factory: pytest.TempPathFactory,
    edges: list[Any],
    undirected: bool,
    order: str,
    duplicates: str,
    iterations: int,
) -> None:
    path = tmp_path_factory.mktemp("p") / "g.pen"
    columns = {"source": np.array([e[0] for e in edges], int), "target": np.array([e[1] for e in edges], int)}
    graph = pk.ingest(
        columns,
        path,
        vertices={"id": np.arange(13)},
        undirected=undirected,
        duplicates=duplicates,
        order=order,
        page_size=4096,
        allow_empty=True,
        memory_limit="64MB",
    )
    links = oracle.arcs(oracle.kept_edges(edges, undirected=undirected, duplicates=duplicates), undirected)
    expected = oracle.pagerank(range(13), links, 0.85, iterations)
    found = pk.pagerank(graph, tol=0, max_iter=iterations, memory_limit="64MB").to_dict()
    assert list(found) == list(range(13))
    assert found == pytest.approx(expected, abs=1e-12)
    assert sum(found.values()) == pytest.approx(1)


def power_iteration(graph: pk.Graph, iterations: int) -> np.ndarray:
    """By scipy, on what the store exports."""
    matrix = pk.to_scipy(graph).astype(np.float64)
    n = matrix.shape[0]
    out = np.asarray(matrix.sum(axis=1)).ravel()
    share = np.divide(1, out, out=np.zeros(n), where=out > 0)
    rank = np.full(n, 1 / n)
    for _ in range(iterations):
        rank = 0.15 / n + 0.85 * (matrix.T @ (rank * share) + rank[out == 0].sum() / n)
    return rank


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize(
    ("page_size", "encoding"), [("4KiB", None), ("4KiB", "physical33"), ("64KiB", "logical6"), ("1MiB", None)]
)
@pytest.mark.parametrize("limit", ["8MB", "1GB"])
def test_against_scipy(tmp_path: Path, undirected: bool, page_size: str, encoding: str | None, limit: str) -> None:
    graph = pk.generate(
        "kron", tmp_path / "g.pen", scale=12, seed=2, undirected=undirected, page_size=page_size, encoding=encoding
    )
    result = pk.pagerank(graph, tol=0, max_iter=20, memory_limit=limit)
    expected = power_iteration(graph, 20)
    found = result.table.column("rank").to_numpy()
    assert np.abs(found - expected).sum() < 1e-10
    stats = result.stats
    assert stats["iterations"] == 20
    pages = len(graph.store.direction("in")) * graph.store.page_size
    assert stats["bytes_read"] <= 20 * pages
    if limit == "1GB":  # everything fits into the cache
        assert stats["bytes_read"] == pages
    narrow = pk.pagerank(graph, tol=0, max_iter=20, dtype="float32").table.column("rank").to_numpy()
    assert narrow.dtype == np.float32
    assert np.abs(narrow - expected).sum() < 1e-4


def test_stops_when_converged(tmp_path: Path) -> None:
    graph = pk.generate("ring", tmp_path / "g.pen", vertices=50, page_size=4096)
    result = pk.pagerank(graph, tol=1e-9)
    assert result.stats["converged"]
    assert result.stats["iterations"] == 1
    assert set(np.round(result.table.column("rank").to_numpy(), 12)) == {0.02}
    result = pk.pagerank(pk.generate("star", tmp_path / "s.pen", vertices=50, page_size=4096), max_iter=3)
    assert not result.stats["converged"]
    assert result.top(1).to_pydict()["vertex"] == [0]


def test_string_ids_come_back(tmp_path: Path) -> None:
    graph = pk.ingest({"source": ["b", "c"], "target": ["a", "a"]}, tmp_path / "g.pen", page_size=4096)
    result = pk.pagerank(graph)
    assert result.table.column("vertex").to_pylist() == ["a", "b", "c"]
    assert result.top(1).to_pydict()["vertex"] == ["a"]


def test_refusals(tmp_path: Path) -> None:
    graph = pk.generate("kron", tmp_path / "g.pen", scale=10, page_size="64KiB")
    for options, message in (
        ({"damping": 1}, "damping"),
        ({"max_iter": 0}, "max_iter"),
        ({"tol": -1}, "tol"),
        ({"dtype": "int"}, "dtype"),
        ({"colour": 1}, "no option"),
    ):
        with pytest.raises(UsageError, match=message):
            pk.pagerank(graph, **options)  # type: ignore[arg-type]
    with pytest.raises(DoesNotFit) as refused:
        pk.pagerank(graph, memory_limit="10kB")
    assert pk.pagerank(graph, memory_limit=refused.value.needed, max_iter=2).stats["iterations"] == 2


def test_damage_is_found_by_the_run(tmp_path: Path) -> None:
    graph = pk.generate("kron", tmp_path / "g.pen", scale=10, page_size=4096)
    path = graph.store.direction("in").path("pages", 0)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(DamagedStore, match="page"):
        pk.pagerank(graph, max_iter=2)


def test_empty(tmp_path: Path) -> None:
    graph = pk.ingest({"source": [], "target": []}, tmp_path / "g.pen", allow_empty=True)
    assert pk.pagerank(graph).to_dict() == {}
    assert Counter(pk.pagerank(graph).top(3).to_pydict()["rank"]) == Counter()


def test_a_small_graph_takes_little_memory(tmp_path: Path) -> None:
    """However much is allowed: no cache for pages that are not there."""
    for factor in (0, 8):
        graph = pk.generate("kron", tmp_path / f"{factor}.pen", scale=8, edge_factor=factor)
        result = pk.pagerank(graph, memory_limit="4GB")
        assert sum(result.to_dict().values()) == pytest.approx(1)
        assert result.stats["ledger_peak"] < 100 << 20
