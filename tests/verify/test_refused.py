"""Every checker refuses wrong answers, and says which rule they break."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cases
import oracle
from graphs import make_graph
from penstock.errors import UsageError, VertexNotFound
from penstock.graph import Graph
from penstock.verify import CHECKERS, centrality

from .answers import COLUMNS, answer, spoiled

OPTIONS: dict[str, dict[str, Any]] = {
    "ppr": {"source": [2, 5]},
    "bfs": {"source": [2]},
    "sssp": {"source": [2], "parents": True},
    "neighborhood": {"source": [2], "hops": 2},
}
SHAPES = {shape.name: shape for shape in cases.shapes()}


@pytest.fixture(scope="module", params=[False, True], ids=["directed", "undirected"])
def graph(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    """Parallel arcs and loops, some vertices isolated."""
    with SHAPES["random"].build(tmp_path_factory.mktemp("refused") / "graph.pen", request.param) as made:
        yield made


def right(name: str, graph: Graph) -> pa.Table:
    table = answer(name, graph, oracle.of(graph), OPTIONS.get(name, {}))
    assert CHECKERS[name](graph, table, **OPTIONS.get(name, {})) == []
    return table


def refused(name: str, graph: Graph, table: pa.Table, options: Mapping[str, Any] | None = None) -> str:
    """What the checker says, in one text."""
    found = CHECKERS[name](graph, table, **(OPTIONS.get(name, {}) if options is None else options))
    assert found
    return "\n".join(found)


def other(value: Any, column: str, vertices: list[Any]) -> Any:
    """A value that could be right, but is not."""
    if isinstance(value, bool):
        return not value
    if column in ("parent", "component", "label", "cluster"):
        return vertices[(vertices.index(value) + 1) % len(vertices)] if value is not None else vertices[0]
    return 1 if value is None else value * 1.01 + 0.001 if isinstance(value, float) else value + 1


@pytest.mark.parametrize(("name", "column"), [(name, column) for name, held in COLUMNS.items() for column in held])
def test_one_wrong_value(graph: Graph, name: str, column: str) -> None:
    table = right(name, graph)
    vertices = table["vertex"].to_pylist()
    values = dict(zip(vertices, table[column].to_pylist(), strict=True))
    for vertex in [*vertices[:4], *vertices[-4:]]:
        refused(name, graph, spoiled(table, column, {vertex: other(values[vertex], column, vertices)}))


@pytest.mark.parametrize(("name", "column"), [(name, column) for name, held in COLUMNS.items() for column in held])
def test_two_values_exchanged(graph: Graph, name: str, column: str) -> None:
    table = right(name, graph)
    values = dict(zip(table["vertex"].to_pylist(), table[column].to_pylist(), strict=True))
    first = next(iter(values))
    second = next(vertex for vertex in values if values[vertex] != values[first])
    refused(name, graph, spoiled(table, column, {first: values[second], second: values[first]}))


@pytest.mark.parametrize("name", [*COLUMNS, "radius"])
def test_what_is_no_answer(graph: Graph, name: str) -> None:
    n = graph.vertices
    radius = pa.table({"vertex": pa.array(range(n)), "radius": pa.array([1.0] * n)})
    table = radius if name == "radius" else right(name, graph)
    column = table.column_names[1]
    assert f"no column '{column}'" in refused(name, graph, table.select(["vertex"]))
    assert "no column 'vertex'" in refused(name, graph, table.drop_columns(["vertex"]))
    missing = refused(name, graph, table.slice(1))
    assert "have no row" in missing or "has no row" in missing
    assert "has 2 rows" in refused(name, graph, pa.concat_tables([table, table.slice(0, 1)]))
    ids = table["vertex"].to_pylist()
    for odd, sentence in (([*ids[:-1], 777], "777, which is no vertex"), ([*ids[:-1], None], "names no vertex")):
        assert sentence in refused(name, graph, table.set_column(0, "vertex", pa.array(odd, pa.int64())))
    words = table.set_column(1, column, pa.array(["a word"] * len(ids)))
    assert "is string" in refused(name, graph, words)
    assert CHECKERS[name](graph, table.take(np.arange(len(ids))[::-1].copy()), **OPTIONS.get(name, {})) == []


@pytest.mark.parametrize("name", ["pagerank", "ppr", "degree", "kcore", "lcc", "hits", "wcc", "cdlp", "neighborhood"])
def test_nulls_where_all_have_a_value(graph: Graph, name: str) -> None:
    table = right(name, graph)
    column = table.column_names[1]
    said = refused(name, graph, spoiled(table, column, {table["vertex"][0].as_py(): None}))
    assert "nulls" in said or "has no" in said


# ---- ranks


def test_a_ranking_of_other_options(graph: Graph) -> None:
    table = right("pagerank", graph)
    assert "one more step changes the ranks" in refused("pagerank", graph, table, {"damping": 0.8})
    few = answer("pagerank", graph, oracle.of(graph), {"max_iter": 3})
    assert "one more step" in refused("pagerank", graph, few)
    assert "one more step" in refused("pagerank", graph, few, {"tol": 1e-4, "stop": "max"})
    for stop in ("l1", "max", "vertex", "fixed"):
        assert CHECKERS["pagerank"](graph, few, max_iter=3, stop=stop) == []
        assert "than 4 iterations give" in refused("pagerank", graph, few, {"max_iter": 4, "stop": stop})
    assert "no finite number" in refused("pagerank", graph, spoiled(table, "rank", {3: float("nan")}))
    double = table.set_column(1, "rank", pa.array([2 * value for value in table["rank"].to_pylist()]))
    assert "sum to 2" in refused("pagerank", graph, double)
    half = table.set_column(1, "rank", pa.array([value / 2 for value in table["rank"].to_pylist()]))
    assert "below what jumps alone" in refused("pagerank", graph, half, {"dangling": "drop"})
    with pytest.raises(UsageError, match="dangling is spread or drop"):
        CHECKERS["pagerank"](graph, table, dangling="keep")
    with pytest.raises(UsageError, match="damping must be"):
        CHECKERS["pagerank"](graph, table, damping=1.0)


def test_ranks_of_single_precision(graph: Graph) -> None:
    table = right("pagerank", graph)
    single = table.set_column(1, "rank", table["rank"].cast(pa.float32()))
    as_text = table.set_column(1, "rank", single["rank"].cast(pa.float64()))
    tight = {"tol": 1e-12, "max_iter": 500}
    assert CHECKERS["pagerank"](graph, single, **tight) == []
    assert refused("pagerank", graph, as_text, tight)
    assert CHECKERS["pagerank"](graph, as_text, dtype="float32", **tight) == []


def test_personal_ranks_of_another_home(graph: Graph) -> None:
    assert "jumps alone" in refused("ppr", graph, right("ppr", graph), {"source": [4]})


def test_hubs_of_too_few_rounds(graph: Graph) -> None:
    few = answer("hits", graph, oracle.of(graph), {"max_iter": 2})
    assert CHECKERS["hits"](graph, few, max_iter=2) == []
    assert "end elsewhere" in refused("hits", graph, few)
    table = right("hits", graph)
    exchanged = table.rename_columns({"hub": "authority", "authority": "hub"})
    if graph.directed:
        assert "not the sums of their authorities" in refused("hits", graph, exchanged)
    zero = table.set_column(1, "hub", pa.array([0.0] * graph.vertices))
    assert "sums to 0" in refused("hits", graph, zero)


def test_hubs_without_arcs(tmp_path: Path) -> None:
    with make_graph(tmp_path, [], [], vertices=[1, 2]) as graph:
        uneven = pa.table({"vertex": [1, 2], "hub": [0.5, 0.5], "authority": [0.25, 0.75]})
        assert "should have 1/n" in refused("hits", graph, uneven)


# ---- paths


def path_graph(path: Path, **columns: Any) -> Graph:
    """1 -> 2 -> 3 -> 4 -> 2, 1 -> 5, and 6 alone."""
    held = {name: pa.array(values) for name, values in columns.items()}
    return make_graph(path, [1, 2, 3, 4, 1], [2, 3, 4, 2, 5], held, vertices=range(1, 7))


BFS = {"level": [0, 1, 2, 3, 1, None], "parent": [1, 1, 2, 3, 1, None]}


@pytest.mark.parametrize(
    ("column", "changes", "sentence"),
    [
        ("level", {1: 1}, "is a source"),
        ("parent", {1: 5}, "is a source"),
        ("level", {6: 4}, "a level without a parent"),
        ("parent", {6: 1}, "a level without a parent"),
        ("level", {5: 0}, "has level 0 but is no source"),
        ("level", {3: 3}, "not one level below its parent"),
        ("parent", {3: 5}, "has no arc from its parent"),
        ("level", {4: 5}, "more than one level below"),
    ],
)
def test_rules_of_bfs(tmp_path: Path, column: str, changes: dict[int, int], sentence: str) -> None:
    with path_graph(tmp_path) as graph:
        table = pa.table({"vertex": range(1, 7), **BFS})
        assert CHECKERS["bfs"](graph, table, source=1) == []
        assert sentence in refused("bfs", graph, spoiled(table, column, changes), {"source": 1})


def test_bfs_reaches_all_it_can(tmp_path: Path) -> None:
    with path_graph(tmp_path) as graph:
        table = pa.table({"vertex": range(1, 7), "level": [0, 1, 2, None, 1, None], "parent": [1, 1, 2, None, 1, None]})
        assert "is unreached" in refused("bfs", graph, table, {"source": 1})
        assert CHECKERS["bfs"](graph, table, source=1, max_depth=2) == []
        assert "above max_depth=1" in refused("bfs", graph, table, {"source": 1, "max_depth": 1})
        with pytest.raises(UsageError, match="name the source"):
            CHECKERS["bfs"](graph, table)
        with pytest.raises(VertexNotFound):
            CHECKERS["bfs"](graph, table, source=9)


def test_a_circle_explains_nothing(tmp_path: Path) -> None:
    # 2 and 3 claim to be reached through each other; only the way from a source shows that they are not.
    with make_graph(tmp_path, [1, 2, 3], [4, 3, 2], {"weight": pa.array([1, 0, 0])}) as graph:
        table = pa.table({"vertex": [1, 2, 3, 4], "distance": [0, 7, 7, 1], "parent": [1, 3, 2, 1]})
        assert "that no path from a source has" in refused("sssp", graph, table, {"source": 1})
        levels = pa.table({"vertex": [1, 2, 3, 4], "level": [0, 2, 1, 1], "parent": [1, 3, 2, 1]})
        assert "not one level below its parent" in refused("bfs", graph, levels, {"source": 1})


def test_the_first_of_several_parents(tmp_path: Path) -> None:
    # 2 has most arcs, so it comes before 3 in the store; both lead from 1 to 4.
    with make_graph(tmp_path, [1, 1, 2, 3, 2], [2, 3, 4, 4, 5], {"weight": pa.array([1, 1, 1, 1, 1])}) as graph:
        table = pa.table({"vertex": range(1, 6), "level": [0, 1, 1, 2, 2], "parent": [1, 1, 1, 2, 2]})
        assert CHECKERS["bfs"](graph, table, source=1) == []
        later = spoiled(table, "parent", {4: 3})
        assert "not the first in the order of the store" in refused("bfs", graph, later, {"source": 1})
        assert "first in the store" in refused(
            "sssp", graph, later.rename_columns({"level": "distance"}), {"source": 1}
        )


@pytest.mark.parametrize(
    ("column", "changes", "sentence"),
    [
        ("distance", {1: 1}, "is a source, whose distance is 0"),
        ("distance", {4: 10}, "makes a shorter path"),
        ("distance", {4: 8}, "that no path from a source has"),
        ("distance", {4: None}, "is unreached"),
        ("distance", {5: -3}, "is no length"),
        ("distance", {6: 3}, "that no path from a source has"),
        ("parent", {1: 2}, "is a source, whose parent is itself"),
        ("parent", {4: None}, "a distance without a parent"),
        ("parent", {4: 5}, "no arc from its parent that makes its distance"),
    ],
)
def test_rules_of_sssp(tmp_path: Path, column: str, changes: dict[int, Any], sentence: str) -> None:
    with path_graph(tmp_path, weight=[2, 3, 4, 1, 9]) as graph:
        table = pa.table({"vertex": range(1, 7), "distance": [0, 2, 5, 9, 9, None], "parent": BFS["parent"]})
        assert CHECKERS["sssp"](graph, table, source="1", parents=True, delta=3) == []
        assert sentence in refused("sssp", graph, spoiled(table, column, changes), {"source": 1})


def test_lengths_that_are_none(tmp_path: Path) -> None:
    table = pa.table({"vertex": range(1, 7), "distance": [0.0, 2.0, 5.0, 9.0, 9.0, None]})
    for weight in ([2.0, 3.0, 4.0, -1.0, 9.0], [2.0, 3.0, 4.0, float("nan"), 9.0]):
        with path_graph(tmp_path, weight=weight) as graph, pytest.raises(UsageError, match="negative weights or NaN"):
            CHECKERS["sssp"](graph, table, source=1)
    with path_graph(tmp_path, w=[2, 3, 4, 1, 9]) as graph:
        with pytest.raises(UsageError, match="no edge column 'weight'; it has w"):
            CHECKERS["sssp"](graph, table, source=1)
        assert CHECKERS["sssp"](graph, table, source=1, weight="w") == []
        assert "no column 'parent'" in refused("sssp", graph, table, {"source": 1, "weight": "w", "parents": True})


def test_a_neighborhood_too_large(tmp_path: Path) -> None:
    with path_graph(tmp_path) as graph:
        table = pa.table({"vertex": [1, 2, 3, 5], "level": [0, 1, 2, 1]})
        assert CHECKERS["neighborhood"](graph, table, source=1, hops=2) == []
        assert "is not within 1 arcs" in refused("neighborhood", graph, table, {"source": 1})
        assert "has no row" in refused("neighborhood", graph, table, {"source": 1, "hops": 3})


# ---- parts


def test_components_split_and_joined(tmp_path: Path) -> None:
    with make_graph(tmp_path, [1, 2, 5, 6], [2, 1, 6, 7], vertices=range(1, 9)) as graph:
        weak = pa.table({"vertex": range(1, 9), "component": [1, 1, 3, 4, 5, 5, 5, 8]})
        assert CHECKERS["wcc"](graph, weak) == []
        split = refused("wcc", graph, spoiled(weak, "component", {7: 7}))
        assert "has an edge to another component" in split
        assert "6 components in the result and 5 in the graph" in split
        joined = refused("wcc", graph, spoiled(weak, "component", {3: 1}))
        assert "4 components in the result and 5" in joined
        renamed = refused("wcc", graph, spoiled(weak, "component", {5: 6, 6: 6, 7: 6}))
        assert "5 has a smaller id than its component" in renamed
        strong = pa.table({"vertex": range(1, 9), "component": [1, 1, 3, 4, 5, 6, 7, 8]})
        assert CHECKERS["scc"](graph, strong) == []
        assert "5 components in the result and 7" in refused("scc", graph, weak)
        assert "8 components in the result" in refused("scc", graph, spoiled(strong, "component", {2: 2}))


def test_cores_too_low_and_too_high(graph: Graph) -> None:
    table = right("kcore", graph)
    zeros = table.set_column(1, "core", pa.array([0] * graph.vertices))
    assert "than peeling gives" in refused("kcore", graph, zeros)  # every rule of support holds
    high = table.set_column(1, "core", pa.array([value + 1 for value in table["core"].to_pylist()]))
    assert "fewer arcs into its core" in refused("kcore", graph, high)
    assert "negative core" in refused("kcore", graph, spoiled(table, "core", {3: -1}))


def test_labels_of_fewer_iterations(graph: Graph) -> None:
    few = answer("cdlp", graph, oracle.of(graph), {"max_iter": 1})
    assert CHECKERS["cdlp"](graph, few, max_iter=1) == []
    assert "than 10 iterations give" in refused("cdlp", graph, few)


# ---- centrality


def test_centrality_of_other_samples(graph: Graph) -> None:
    for name in ("betweenness", "closeness"):
        table = answer(name, graph, oracle.of(graph), {"samples": 9, "seed": 3})
        assert CHECKERS[name](graph, table, samples=9, seed=3) == []
        for options in ({"samples": 9, "seed": 4}, {"samples": 8, "seed": 3}, {}):
            assert f"has another {name}" in refused(name, graph, table, options)
        with pytest.raises(UsageError, match="samples must be"):
            CHECKERS[name](graph, table, samples=0)
    exact = right("betweenness", graph)
    assert refused("betweenness", graph, exact, {"normalized": False})
    assert refused("betweenness", graph, exact, {"sources": [1, 2]})
    assert refused("closeness", graph, right("closeness", graph), {"harmonic": True})


def test_too_much_work(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    table = right("closeness", graph)
    monkeypatch.setattr(centrality, "_WORK", 8 * graph.arcs)
    with pytest.raises(UsageError, match="compute and check it with samples or sources"):
        CHECKERS["betweenness"](graph, right_shape(graph, "betweenness"))
    with pytest.raises(UsageError, match="with fewer samples"):
        CHECKERS["closeness"](graph, table, samples=9)
    # A sample of the vertices is looked at: nine in ten of all values are wrong, so that it sees one.
    assert CHECKERS["closeness"](graph, table) == []
    values = [value + 1 if at % 10 else value for at, value in enumerate(table["closeness"].to_pylist())]
    assert refused("closeness", graph, table.set_column(1, "closeness", pa.array(values)))
    assert "negative" in refused("closeness", graph, spoiled(table, "closeness", {3: -1.0}))


def right_shape(graph: Graph, column: str) -> pa.Table:
    return pa.table({"vertex": range(graph.vertices), column: [0.0] * graph.vertices})


def test_radii_that_are_none(graph: Graph) -> None:
    table = right_shape(graph, "radius")
    assert CHECKERS["radius"](graph, table) == []
    for value in (-1.0, graph.vertices + 1.0, float("nan")):
        assert "radius below 0 or above" in refused("radius", graph, spoiled(table, "radius", {3: value}))


def test_how_many_are_wrong_is_said(graph: Graph) -> None:
    table = right("degree", graph)
    one = refused("degree", graph, spoiled(table, "degree", {3: 1000}))
    assert one == "vertex 3 has another degree"
    two = refused("degree", graph, spoiled(table, "degree", {3: 1000, 4: 1000, 5: 1000}))
    assert "and 2 more: each has another degree" in two
