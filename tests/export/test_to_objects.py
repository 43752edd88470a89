"""Graphs as objects of other libraries."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest

import penstock
from graphs import make_graph, random_edges
from penstock.errors import UsageError

COUNT = 3000


def test_they_are_public() -> None:
    for name in ("to_scipy", "to_networkx", "to_numpy", "to_arrow"):
        assert name in penstock.__all__
        assert callable(getattr(penstock, name))


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize("weight", [None, "w", "f"])
def test_scipy(tmp_path: Path, undirected: bool, weight: str | None) -> None:
    source, target = random_edges(1, 200, COUNT)
    rng = np.random.default_rng(2)
    columns = {"w": pa.array(rng.integers(0, 9, COUNT).astype(np.int32)), "f": pa.array(rng.random(COUNT))}
    ids = np.sort(rng.choice(10**6, 210, replace=False))
    graph = make_graph(
        tmp_path, ids[source], ids[target], columns, undirected=undirected, duplicates="keep", vertices=ids.tolist()
    )
    values = np.ones(COUNT) if weight is None else np.asarray(columns[weight])
    dense = np.zeros((210, 210))
    np.add.at(dense, (source, target), values)
    if undirected:
        apart = source != target
        np.add.at(dense, (target[apart], source[apart]), values[apart])
    matrix = penstock.to_scipy(graph, weight)
    assert matrix.format == "csr"
    assert matrix.dtype == {None: np.int64, "w": np.int32, "f": np.float64}[weight]
    assert matrix.has_canonical_format
    np.testing.assert_allclose(matrix.toarray(), dense, rtol=1e-13)


def test_scipy_keeps_explicit_zeros_and_takes_no_dates(tmp_path: Path) -> None:
    columns = {"w": pa.array([0, 5]), "ok": pa.array([True, False]), "t": pa.array([1, 2], pa.timestamp("s"))}
    graph = make_graph(tmp_path, ["b", "a"], ["a", "b"], columns)
    assert penstock.to_scipy(graph, "w").nnz == 2
    assert penstock.to_scipy(graph, "ok").toarray().tolist() == [[0, 0], [1, 0]]
    with pytest.raises(UsageError, match=r"'t' is timestamp\[s\]"):
        penstock.to_scipy(graph, "t")
    with pytest.raises(UsageError, match="no edge column 'x'"):
        penstock.to_scipy(graph, "x")


@pytest.mark.parametrize("undirected", [False, True])
def test_networkx(tmp_path: Path, undirected: bool) -> None:
    graph = make_graph(
        tmp_path,
        ["b", "c", "b"],
        ["a", "c", "c"],
        {"w": pa.array([0.5, 1.5, 2.5]), "ok": pa.array([True, False, True])},
        undirected=undirected,
        vertices=["a", "b", "c", "lonely"],
        vertex_columns={"size": pa.array([1, 2, 3, 4])},
    )
    found = penstock.to_networkx(graph)
    expected = nx.Graph() if undirected else nx.DiGraph()
    expected.add_nodes_from([("a", {"size": 1}), ("b", {"size": 2}), ("c", {"size": 3}), ("lonely", {"size": 4})])
    for u, v, w, ok in [("b", "a", 0.5, True), ("c", "c", 1.5, False), ("b", "c", 2.5, True)]:
        expected.add_edge(u, v, w=w, ok=ok)
    assert type(found) is type(expected)
    assert nx.utils.graphs_equal(found, expected)
    assert list(found) == ["a", "b", "c", "lonely"]


@pytest.mark.parametrize("undirected", [False, True])
def test_networkx_multigraph(tmp_path: Path, undirected: bool) -> None:
    source, target = random_edges(3, 50, COUNT)
    marks = pa.array(range(COUNT))
    graph = make_graph(tmp_path, source, target, {"m": marks}, undirected=undirected, duplicates="keep")
    found = penstock.to_networkx(graph)
    assert type(found) is (nx.MultiGraph if undirected else nx.MultiDiGraph)

    def row(u: int, v: int, m: int) -> tuple[int, int, int]:
        return (*sorted((u, v)), m) if undirected else (u, v, m)  # type: ignore[return-value]

    expected = Counter(map(row, source.tolist(), target.tolist(), range(COUNT)))
    assert Counter(row(u, v, data["m"]) for u, v, data in found.edges(data=True)) == expected
    assert penstock.to_networkx(graph, multigraph=False).number_of_edges() == len({edge[:2] for edge in expected})


@pytest.mark.parametrize("strings", [False, True])
def test_numpy_and_arrow(tmp_path: Path, strings: bool) -> None:
    source, target = random_edges(4, 100, COUNT)
    us, vs = ([f"n{v}" for v in ends.tolist()] if strings else ends.tolist() for ends in (source, target))
    when = np.arange(COUNT).astype("M8[us]")
    columns = {
        "when": pa.array(when),
        "zoned": pa.array(range(COUNT), pa.timestamp("ns", "UTC")),
        "ok": pa.array(np.arange(COUNT) % 3 == 0),
        "f": pa.array(np.arange(COUNT) / 7, pa.float32()),
        "clock": pa.array(range(COUNT), pa.time32("s")),
    }
    graph = make_graph(tmp_path, us, vs, columns)
    found = penstock.to_numpy(graph)
    dtypes = {name: str(array.dtype) for name, array in found.items()}
    assert dtypes == {
        "source": "object" if strings else "int64",
        "target": "object" if strings else "int64",
        "when": "datetime64[us]",
        "zoned": "datetime64[ns]",
        "ok": "bool",
        "f": "float32",
        "clock": "int32",
    }
    by_time = np.argsort(found["when"])
    assert found["source"][by_time].tolist() == us
    assert found["target"][by_time].tolist() == vs
    assert (found["ok"][by_time] == (np.arange(COUNT) % 3 == 0)).all()
    table = penstock.to_arrow(graph).sort_by("when")
    assert table.schema == graph.edge_schema()
    assert table["target"].to_pylist() == vs
    assert table["clock"].combine_chunks().equals(columns["clock"])


@pytest.mark.parametrize("undirected", [False, True])
def test_empty(tmp_path: Path, undirected: bool) -> None:
    for vertices in (None, [5, 9]):
        graph = make_graph(
            tmp_path, [], [], {"w": pa.array([], pa.float64())}, undirected=undirected, vertices=vertices
        )
        count = len(vertices or [])
        assert penstock.to_scipy(graph, "w").shape == (count, count)
        assert sorted(penstock.to_networkx(graph)) == (vertices or [])
        assert {name: array.tolist() for name, array in penstock.to_numpy(graph).items()} == {
            "source": [],
            "target": [],
            "w": [],
        }
        assert penstock.to_arrow(graph).num_rows == 0


def test_a_column_called_source(tmp_path: Path) -> None:
    graph = make_graph(tmp_path, [1], [2], {"source": pa.array([5])})
    with pytest.raises(UsageError, match="called source or target"):
        penstock.to_numpy(graph)
    assert penstock.to_networkx(graph).edges[1, 2] == {"source": 5}
