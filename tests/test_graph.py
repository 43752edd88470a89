"""Graph: one vertex and all edges, under the user's ids."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from graphs import make_graph, random_edges
from penstock.errors import StoreError, UsageError, VertexNotFound
from penstock.graph import Graph, arrow_type


def names(numbers: np.ndarray) -> list[str]:
    return [f"v{number}é" for number in numbers.tolist()]


def as_ids(kind: str, numbers: np.ndarray) -> list[Any]:
    if kind == "string":
        return names(numbers)
    shift = {"int64": -700, "uint64": (1 << 63) + 5, "plain": 0}[kind]
    return [number + shift for number in numbers.tolist()]


def key(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def rows(graph: Graph, columns: list[str] | None = None, size: int = 1 << 16) -> Counter:
    return Counter(tuple(row.values()) for batch in graph.edge_batches(columns, size=size) for row in batch.to_pylist())


@pytest.mark.parametrize("kind", ["plain", "int64", "uint64", "string"])
@pytest.mark.parametrize("order", ["degree", "input"])
@pytest.mark.parametrize("encoding", ["plain", "logical6", "physical33"])
def test_directed_edges_come_back(tmp_path: Path, kind: str, order: str, encoding: str) -> None:
    source, target = random_edges(1, 400, 5000)
    weight = np.random.default_rng(2).random(5000)
    us, vs = as_ids(kind, source), as_ids(kind, target)
    graph = make_graph(tmp_path, us, vs, {"w": pa.array(weight)}, order=order, encoding=encoding)
    assert graph.store.direction("out").records["kind"].any(), "the hub should need large pages"
    for size in (1, 700, 1 << 16):
        assert rows(graph, size=size) == Counter(zip(us, vs, weight.tolist(), strict=True))


@pytest.mark.parametrize("kind", ["plain", "int64", "uint64", "string"])
def test_undirected_edges_come_once_smaller_id_first(tmp_path: Path, kind: str) -> None:
    source, target = random_edges(3, 300, 4000)
    us, vs = as_ids(kind, source), as_ids(kind, target)
    mark = np.arange(4000, dtype=np.int32)
    graph = make_graph(tmp_path, us, vs, {"mark": pa.array(mark)}, undirected=True, duplicates="keep")
    expected = Counter((*sorted((u, v), key=key), m) for u, v, m in zip(us, vs, mark.tolist(), strict=True))
    assert rows(graph) == rows(graph, size=1) == expected
    assert sum(expected.values()) == graph.edges


def test_strings_are_ordered_bytewise(tmp_path: Path) -> None:
    # UTF-16 order would put the second before the first.
    graph = make_graph(tmp_path, ["\U0001f600", "b", "B"], ["\uff5e", "B", "a"], undirected=True)
    assert set(rows(graph)) == {("\uff5e", "\U0001f600"), ("B", "b"), ("B", "a")}


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize("kind", ["plain", "string"])
def test_neighbors_and_degrees(tmp_path: Path, undirected: bool, kind: str) -> None:
    source, target = random_edges(4, 60, 3000)
    us, vs = as_ids(kind, source), as_ids(kind, target)
    graph = make_graph(tmp_path, us, vs, undirected=undirected, duplicates="keep")
    out: dict[Any, list[Any]] = {v: [] for v in {*us, *vs}}
    into: dict[Any, list[Any]] = {v: [] for v in out}
    for u, v in zip(us, vs, strict=True):
        out[u].append(v)
        into[v].append(u)
        if undirected and u != v:
            out[v].append(u)
            into[u].append(v)
    for again in range(2):  # the second time all ids are held
        for vertex, found in out.items():
            assert graph.neighbors(vertex) == sorted(found)
            assert graph.neighbors(vertex, "in") == sorted(into[vertex])
            assert (graph.degree(vertex), graph.degree(vertex, "in")) == (len(found), len(into[vertex]))
        if not again:
            graph.users()


def test_columns_keep_their_types(tmp_path: Path) -> None:
    columns = {
        "b": pa.array([True, False, True]),
        "f": pa.array([0.1, float("nan"), -0.0], pa.float32()),
        "t": pa.array([0, 1, -5], pa.timestamp("ns", "UTC")),
        "d": pa.array([0, 1, -5], pa.date32()),
        "e": pa.array([0, 86_400_000, 0], pa.date64()),
        "c": pa.array([1, 2, 3], pa.time32("ms")),
        "p": pa.array([1, 2, -3], pa.duration("us")),
        "u": pa.array([1 << 63, 0, 1], pa.uint64()),
        "s": pa.array([-1, 0, 1], pa.int8()),
    }
    graph = make_graph(tmp_path, [1, 2, 3], [2, 3, 1], columns, order="input")
    table = pa.Table.from_batches(graph.edge_batches(), graph.edge_schema())
    assert table.drop_columns("f").equals(pa.table({"source": [1, 2, 3], "target": [2, 3, 1], **columns}).drop("f"))
    wanted = np.asarray(columns["f"]).view(np.uint32)
    assert (table.column("f").to_numpy().view(np.uint32) == wanted).all()
    assert graph.edge_schema(["t", "b"]).names == ["source", "target", "t", "b"]
    assert graph.edge_schema("t").names == ["source", "target", "t"]


def test_vertices_in_order_of_ids(tmp_path: Path) -> None:
    ids = [40, -7, 12, 99, 3]
    when = pa.array([1, 2, 3, 4, 5], pa.timestamp("s"))
    graph = make_graph(
        tmp_path, [40, 40, 12], [12, 3, 40], vertices=ids, vertex_columns={"when": when, "ok": pa.array([True] * 5)}
    )
    expected = sorted(zip(ids, when.to_pylist(), strict=True))
    for size in (1, 2, 100):
        table = pa.Table.from_batches(graph.vertex_batches(["when"], size=size), graph.vertex_schema(["when"]))
        assert list(zip(*(column.to_pylist() for column in table.columns), strict=True)) == expected
    everything = pa.Table.from_batches(graph.vertex_batches()).to_pydict()
    assert everything["out_degree"] == [0, 0, 1, 2, 0]
    assert graph.vertex(12) == {"out_degree": 1, "in_degree": 1, "when": when[2].as_py(), "ok": True}
    assert graph.neighbors(-7) == [] == graph.neighbors(99, "in")
    assert graph.degree(-7) == 0
    assert (len(graph), graph.edges) == (5, 3)


def test_empty_graph(tmp_path: Path) -> None:
    for vertices in (None, [3, 1, 2]):
        graph = make_graph(tmp_path, [], [], {"w": pa.array([], pa.float64())}, vertices=vertices)
        assert list(graph.edge_batches()) == []
        assert graph.edge_reader().read_all().schema.names == ["source", "target", "w"]
        found = [v for batch in graph.vertex_batches([]) for v in batch.column("id").to_pylist()]
        assert found == sorted(vertices or [])


def test_ranks(tmp_path: Path) -> None:
    graph = make_graph(tmp_path, ["b", "c", "c"], ["a", "a", "B"])
    users = graph.users().to_pylist()
    assert sorted(users, key=str.encode) == [users[i] for i in np.argsort(graph.ranks())]


def test_arrow_stream(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    graph = make_graph(tmp_path, [1, 2], [2, 1], {"w": pa.array([0.5, 1.5])})
    assert sorted(polars.DataFrame(graph).rows()) == [(1, 2, 0.5), (2, 1, 1.5)]


def test_what_is_not_there(tmp_path: Path) -> None:
    graph = make_graph(tmp_path, [1, 2], [2, 1], {"w": pa.array([0.5, 1.5])}, incoming=False)
    with pytest.raises(VertexNotFound, match="no vertex 9"):
        graph.neighbors(9)
    with pytest.raises(UsageError, match="no edge column 'x'; it has w"):
        graph.edge_batches(["x"])
    with pytest.raises(UsageError, match="'w' twice"):
        graph.edge_batches(["w", "w"])
    with pytest.raises(UsageError, match="no vertex column 'x'; it has out_degree"):
        graph.vertex_batches(["x"])
    with pytest.raises(UsageError, match="at least one row"):
        graph.edge_batches(size=0)
    with pytest.raises(UsageError, match="at least one row"):
        graph.vertex_batches(size=0)
    with pytest.raises(UsageError, match="direction must be"):
        graph.degree(1, "both")
    with pytest.raises(UsageError, match="stores no incoming arcs"):
        graph.neighbors(1, "in")
    assert graph.degree(1, "in") == 1


def test_a_closed_graph_says_so(tmp_path: Path) -> None:
    source, target = random_edges(5, 100, 3000)
    with make_graph(tmp_path, source, target) as graph:
        batches = graph.edge_batches(size=1)
        next(batches)
    with pytest.raises(StoreError, match="the graph is closed"):
        next(batches)
    for use in (graph.users, graph.edge_batches, graph.vertex_batches, lambda: graph.degree(1), lambda: len(graph)):
        with pytest.raises(StoreError, match="the graph is closed"):
            use()
    assert "closed" in repr(graph)
    graph.close()


def test_closing_a_temporary_graph_deletes_it(tmp_path: Path) -> None:
    graph = make_graph(tmp_path, [1], [2])
    temporary = Graph(graph.store, temporary=True)
    temporary.close()
    assert not (tmp_path / "graph.pen").exists()


@pytest.mark.parametrize(
    "kind",
    [
        pa.bool_(), pa.int8(), pa.uint64(), pa.float32(), pa.float64(), pa.timestamp("s"), pa.timestamp("ns", "UTC"),
        pa.timestamp("us", "Europe/Berlin"), pa.date32(), pa.date64(), pa.time32("s"), pa.time64("ns"),
        pa.duration("ms"),
    ],
)  # fmt: skip
def test_types_by_their_names(kind: pa.DataType) -> None:
    assert arrow_type(str(kind)) == kind
