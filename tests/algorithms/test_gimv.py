"""GIM-V by both methods: the results are those of the engine's algorithms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import penstock as pk
from penstock.algorithms.gimv import components, diameter, gimv, pagerank, rwr
from penstock.errors import UsageError
from penstock.graph import Graph

WAYS: dict[str, dict[str, Any]] = {
    "fused": {"method": "fused"},
    "two stages": {"method": "mapreduce"},
    "collated anew": {"method": "mapreduce", "remember": False},
    "on disk": {"method": "mapreduce", "force_out_of_core": True, "chunk_size": "4KiB", "memory_limit": "4MB"},
}


@pytest.fixture(scope="module", params=["directed", "undirected"])
def graph(request: pytest.FixtureRequest) -> Iterator[Graph]:
    rng = np.random.default_rng(3)
    # Vertices without arcs, sinks, loops, parallel edges, and a hub whose arcs fill more than a chunk on disk.
    source = np.concatenate([rng.integers(0, 60, 300), np.full(900, 7)])
    target = np.concatenate([rng.integers(0, 80, 300), rng.integers(0, 80, 900)])
    vertices = {"id": np.arange(100)}
    with pk.from_edges(
        source, target, weight=rng.random(1200), vertices=vertices, undirected=request.param == "undirected"
    ) as made:
        yield made


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> dict[str, Any]:
    return WAYS[request.param]


def close(found: Any, right: Any) -> None:
    for one, other in zip(found.table.columns, right.table.columns, strict=True):
        np.testing.assert_allclose(one.to_numpy(), other.to_numpy(), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize(
    "convention",
    [
        {"tol": 1e-9},
        {"dangling": "spread", "stop": "max", "tol": 1e-8},
        {"stop": "fixed", "max_iter": 5},
    ],
    ids=lambda convention: convention.get("stop", "vertex"),
)
def test_pagerank(graph: Graph, way: dict[str, Any], convention: dict[str, Any]) -> None:
    found = pagerank(graph, **convention, **way)
    right = pk.pagerank(graph, **{"dangling": "drop", "stop": "vertex", "max_iter": 1024} | convention)
    close(found, right)
    assert found.stats["iterations"] == right.stats["iterations"]


def test_pagerank_as_pegasus_stops(graph: Graph) -> None:
    n = graph.vertices
    found = pagerank(graph, method="mapreduce")
    close(found, pk.pagerank(graph, dangling="drop", stop="vertex", tol=1 / (10 * n)))
    assert found.stats["mapreduce"]["operations"]["keyvalue"]["calls"] == 1


def test_pagerank_scaled(graph: Graph) -> None:
    plain = pk.pagerank(graph, stop="max", tol=1e-10).table["rank"].to_numpy()
    for scale, by in (("max", plain.max()), ("sum", plain.sum())):
        found = pagerank(graph, method="mapreduce", dangling="spread", stop="max", tol=1e-10, scale=scale)
        np.testing.assert_allclose(found.table["rank"].to_numpy(), plain / by, rtol=1e-9)


def test_random_walk_with_restart(graph: Graph, way: dict[str, Any]) -> None:
    # 99 has no arcs.
    close(rwr(graph, [3, 99], tol=1e-9, **way), pk.ppr(graph, source=[3, 99], tol=1e-9, max_iter=1024))


def test_components(graph: Graph, way: dict[str, Any]) -> None:
    found = components(graph, **way)
    right = pk.wcc(graph)
    assert found.table.equals(right.table)
    assert found.stats["components"] == right.stats["components"]


def test_diameter(graph: Graph, way: dict[str, Any]) -> None:
    found, right = diameter(graph, **way), pk.radius(graph)
    assert found.table.equals(right.table)
    assert found.stats["effective_diameter"] == right.stats["effective_diameter"]
    np.testing.assert_allclose(found.stats["neighbourhood"], right.stats["neighbourhood"])


# ---- functions of one's own


def share(m, v, p):
    return p.c * m * v


def take(v, total, p):
    return (1 - p.c) / p.vertices + total


def even(v, p):
    return 1.0 / p.vertices


def settled(v, new, p):
    return abs(new - v.value) <= 1e-10


def test_pagerank_by_the_users_functions(graph: Graph, way: dict[str, Any]) -> None:
    found = gimv(
        graph, share, "sum", take, even, matrix="normalised", converged=settled, params={"c": 0.85}, **way
    )  # fmt: skip
    right = pk.pagerank(graph, dangling="drop", stop="vertex", tol=1e-10, max_iter=1024)
    assert found.stats["converged"]
    close(found, right)


def longer(m, v, p):
    return m + v


def nearer(v, total, p):
    return min(v.value, total)


def source_first(v, p):
    return 0.0 if v.seed else np.inf


def test_shortest_paths_along_a_column(graph: Graph, way: dict[str, Any]) -> None:
    found = gimv(graph, longer, "min", nearer, source_first, matrix="weight", monotone=True, source=7, **way)
    right = pk.sssp(graph, source=7, weight="weight").table["distance"].fill_null(np.inf)
    np.testing.assert_allclose(found.table["value"].to_numpy(), right.to_numpy())


def test_two_stages_take_the_device_that_is_asked_for(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.observe.gpus.missing", lambda: "cupy is not installed")
    with pytest.raises(UsageError, match="device gpu: cupy is not installed"):
        components(graph, method="mapreduce", device="gpu")
    for device in ("auto", "reference"):
        stats = components(graph, method="mapreduce", device=device).stats
        assert "why_not_gpu" not in stats
        assert "gpu" not in stats["mapreduce"]


def test_what_makes_no_sense(graph: Graph) -> None:
    with pytest.raises(UsageError, match="fused or mapreduce"):
        pagerank(graph, method="spark")
    with pytest.raises(UsageError, match="chunk_size is an option of method='mapreduce'"):
        pagerank(graph, chunk_size="1MB")
    with pytest.raises(UsageError, match="combine_all"):
        gimv(graph, share, "average", take, even)
    with pytest.raises(UsageError, match="no setting 'memori_limit'"):
        pagerank(graph, memori_limit="1GB")
    with pytest.raises(UsageError, match="saves no checkpoints"):
        pagerank(graph, method="mapreduce", checkpoint="/tmp/nowhere")
    with pytest.raises(UsageError, match="scale must be"):
        pagerank(graph, scale="half")
