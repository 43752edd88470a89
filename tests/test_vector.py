"""Columns of results as arrays that others share, and on the nodes of NetworkX graphs."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest

import penstock as pk
from penstock.errors import UsageError
from penstock.result import Result

EDGES = [(10, 20), (20, 30), (30, 10), (30, 20)]


def test_in_the_order_of_the_rows() -> None:
    result = pk.pagerank(EDGES)
    table = result.table
    assert np.from_dlpack(result.vector("vertex")).tolist() == table["vertex"].to_pylist() == [10, 20, 30]
    assert np.from_dlpack(result.vector("rank")).tolist() == table["rank"].to_pylist()
    assert np.asarray(result.vector()).tolist() == table["rank"].to_pylist()
    vector = result.vector()
    assert (len(vector), vector.dtype, vector.shape, vector.name) == (3, np.float64, (3,), "rank")
    assert vector.__dlpack_device__() == (1, 0)
    assert "rank of 3 vertices" in repr(vector)


def test_taken_without_a_copy() -> None:
    result = pk.pagerank(EDGES)
    held = result.vector("rank", order="number")
    assert np.shares_memory(np.from_dlpack(held), np.from_dlpack(result.vector("rank", order="number")))
    vertices = result.vector("vertex", order="number").numpy()
    assert dict(zip(vertices.tolist(), held.numpy().tolist(), strict=True)) == result.to_dict()


def test_nulls_references_and_isolated_vertices() -> None:
    graph = nx.DiGraph(EDGES)
    graph.add_node(40)
    result = pk.bfs(graph, source=30, device="reference")
    with pytest.raises(UsageError, match=r"column 'level' has nulls.*fill=-1"):
        result.vector("level")
    assert result.vector("level", fill=-1).numpy().tolist() == [1, 1, 0, -1]
    assert result.vector("parent", fill=-1).numpy().tolist() == [30, 30, 30, -1]
    by_number = zip(
        result.vector("vertex", order="number"), result.vector("level", order="number", fill=-1), strict=True
    )
    assert dict(by_number) == {10: 1, 20: 1, 30: 0, 40: -1}
    ranks = pk.pagerank(graph)
    assert ranks.vector("rank").numpy() == pytest.approx([ranks.to_dict()[v] for v in (10, 20, 30, 40)])


def test_some_vertices_only() -> None:
    near = pk.neighborhood([(1, 2), (2, 3), (9, 8)], source=1, hops=1, device="reference")
    rows = near.table
    assert near.vector("vertex").numpy().tolist() == rows["vertex"].to_pylist() == [1, 2]
    name = rows.column_names[1]
    assert near.vector(name, fill=-1).numpy().tolist() == rows[name].to_pylist()


@pytest.mark.parametrize(
    ("edges", "ask", "reason"),
    [
        (EDGES, {"name": "rnak"}, "no column 'rnak', do you mean rank?"),
        (EDGES, {"order": "size"}, "order must be id or number"),
        ([("a", "b")], {"name": "vertex"}, "holds strings"),
    ],
)
def test_refused(edges: Any, ask: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        pk.pagerank(edges).vector(**ask)


def test_an_empty_result_has_an_empty_vector() -> None:
    graph = pk.from_edges([], allow_empty=True)
    assert len(pk.pagerank(graph).vector("rank")) == 0
    assert pk.pagerank(graph).to_networkx().number_of_nodes() == 0


def test_values_on_a_networkx_graph() -> None:
    graph = nx.DiGraph([("a", "b"), ("b", "c")])
    result = pk.pagerank(graph)
    graph.add_node("later", colour="red")
    assert result.to_networkx(graph) is graph
    assert {v: d.get("rank") for v, d in graph.nodes(data=True)} == {**result.to_dict(), "later": None}
    made = result.to_networkx()
    assert made.is_directed()
    assert set(made.edges) == {("a", "b"), ("b", "c")}
    assert nx.get_node_attributes(made, "rank") == result.to_dict()
    with pytest.raises(UsageError, match="not onto list"):
        result.to_networkx([])


def test_a_result_without_its_graph() -> None:
    with pk.from_edges(EDGES) as graph:
        alone = Result(graph.store.ids, {"x": np.ones(3)}, {"x": 0}, {})
        with pytest.raises(UsageError, match="holds no graph"):
            alone.to_networkx()
