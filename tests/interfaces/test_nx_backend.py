"""The backend as NetworkX sees it: conversion, cache, what can and should run, metadata; stored graphs."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import networkx as nx
import numpy as np
import pytest

import _penstock
import penstock as pk
from penstock.interfaces.nx import metadata, shelf
from penstock.interfaces.nx.backend import backend
from penstock.interfaces.nx.function import FUNCTIONS
from penstock.interfaces.nx.graph import NxGraph
from penstock.interfaces.nx.suite import FAILURES, MOST, SAMPLED, Suite

pytestmark = pytest.mark.filterwarnings("ignore:Note. conversions to backend graphs")


# ---- metadata


def test_metadata_is_what_the_decorators_say() -> None:
    written = Path(_penstock.__file__).with_name("functions.py").read_text()
    assert written == metadata.render(), "run: python -m penstock.interfaces.nx.metadata"
    assert set(_penstock.get_info()["functions"]) == set(FUNCTIONS)


def test_importing_networkx_does_not_import_penstock() -> None:
    code = (
        "import sys, networkx as nx\n"
        "assert 'penstock' in nx.pagerank.backends and 'memory_limit' in nx.pagerank.__doc__\n"
        "assert not {'penstock', 'numba', 'pyarrow'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_names_are_those_of_dispatch() -> None:
    assert {nx.utils.backends._registered_algorithms[name].name for name in FUNCTIONS} == set(FUNCTIONS)
    assert set(FUNCTIONS) <= set(dir(backend))
    with pytest.raises(AttributeError, match="no function 'bfs_edges'"):
        _ = backend.bfs_edges


# ---- conversion


def test_only_what_is_asked_for_is_converted() -> None:
    graph = nx.Graph([("a", "b", {"length": 2.5, "colour": "red"}), ("b", "c", {"colour": object()})])
    plain = backend.convert_from_nx(graph)
    assert isinstance(plain, NxGraph)
    assert plain.graph.columns == {}
    measured = backend.convert_from_nx(graph, edge_attrs={"length": 1})
    assert measured.graph.columns == {"weight": "double"}
    back = backend.convert_to_nx(measured)
    assert sorted(back.edges(data="length")) == [("a", "b", 2.5), ("b", "c", 1.0)]
    assert list(back) == ["a", "b", "c"]
    with pytest.raises(NotImplementedError, match="no number"):
        backend.convert_from_nx(graph, edge_attrs={"colour": 1})
    with pytest.raises(NotImplementedError, match="only the edge attributes"):
        backend.convert_from_nx(graph, preserve_edge_attrs=True)


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_there_and_back(kind: Any) -> None:
    graph = kind([(1, 2), (2, 1), (1, 2), (2, 3), (3, 3), (4, 1)])
    graph.add_node("alone")
    back = backend.convert_to_nx(backend.convert_from_nx(graph))
    assert type(back) is kind
    assert list(back) == list(graph)
    ends = (lambda u, v: (u, v)) if graph.is_directed() else (lambda u, v: (min(u, v), max(u, v)))
    assert sorted(ends(*edge[:2]) for edge in back.edges) == sorted(ends(*edge[:2]) for edge in graph.edges)


def test_views_convert_like_graphs() -> None:
    graph = nx.gnp_random_graph(20, 0.2, seed=1, directed=True)
    for view in (graph.subgraph(range(12)), graph.reverse(copy=False), nx.subgraph_view(graph)):
        assert nx.pagerank(view, backend="penstock") == pytest.approx(nx.pagerank(view), rel=1e-9)


def test_hidden_parallel_edges_and_graphs_that_make_up_their_neighbours() -> None:
    graph = nx.MultiGraph([(0, 1), (0, 1), (1, 2), (2, 3)])
    view = nx.subgraph_view(graph, filter_edge=lambda u, v, key: {u, v} != {0, 1})
    assert list(nx.connected_components(view, backend="penstock")) == [{0}, {1, 2, 3}]

    class Other(nx.Graph):
        def neighbors(self, n: Any) -> Any:
            return iter(())

    with pytest.raises(NotImplementedError):
        nx.core_number(Other([(0, 1)]), backend="penstock")


def test_a_conversion_is_cached_until_the_graph_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, count = nx.cycle_graph(5), []
    convert = backend.convert_from_nx
    monkeypatch.setattr(type(backend), "convert_from_nx", lambda self, *a, **k: count.append(1) or convert(*a, **k))
    for _ in range(2):
        assert nx.number_connected_components(graph, backend="penstock") == 1
    assert len(count) == 1
    graph.add_node("new")
    assert nx.number_connected_components(graph, backend="penstock") == 2
    assert len(count) == 2


def test_graphs_of_one_shape_do_not_share_their_nodes() -> None:
    one, other = nx.path_graph(4), nx.relabel_nodes(nx.path_graph(4), dict(enumerate("abcd")))
    assert set(nx.core_number(one, backend="penstock")) == {0, 1, 2, 3}
    assert set(nx.core_number(other, backend="penstock")) == set("abcd")
    other["a"]["b"]["weight"] = 3
    lengths = nx.single_source_dijkstra_path_length(other, "a", backend="penstock")
    assert lengths == {"a": 0, "b": 3, "c": 4, "d": 5}


@pytest.mark.skipif(not shelf.SHARED.is_dir(), reason="no shared memory here")
def test_stores_lie_in_shared_memory_and_do_not_outlive_their_process() -> None:
    code = (
        "import os, networkx as nx\n"
        "from penstock.interfaces.nx.backend import backend\n"
        "made = backend.convert_from_nx(nx.path_graph(9))\n"
        "print(made.graph.path.parents[1], flush=True)\n"
        "{}"
    )

    def left(ending: str) -> Path:
        done = subprocess.run([sys.executable, "-c", code.format(ending)], capture_output=True, text=True, check=False)
        return Path(done.stdout.strip())

    assert left("").parent == shelf.SHARED
    assert not left("").exists()
    killed = left("os.kill(os.getpid(), 9)")
    assert killed.exists()
    shelf.sweep(shelf.SHARED)
    assert not killed.exists()


# ---- what can and should run


@pytest.mark.parametrize(
    ("name", "arguments", "reason"),
    [
        ("betweenness_centrality", {"weight": "weight"}, "weighted edges are not supported"),
        ("closeness_centrality", {"distance": "weight"}, "weighted distances"),
        ("pagerank", {"weight": lambda u, v, d: 1}, "given by a function"),
        ("clustering", {}, "directed graphs"),
        ("eccentricity", {"sp": {}}, "known already"),
        ("diameter", {"e": {}}, "known already"),
        ("harmonic_centrality", {"nbunch": [1]}, "of some nodes only"),
        ("average_shortest_path_length", {"method": "floyd-warshall"}, "method 'floyd-warshall'"),
        ("shortest_path_length", {"target": 1, "weight": "weight"}, "to a target of a directed graph"),
        ("bfs_edges", {}, "Penstock has no bfs_edges"),
    ],
)
def test_what_cannot_run_says_why(name: str, arguments: dict[str, Any], reason: str) -> None:
    found = backend.can_run(name, (nx.DiGraph([(1, 2)]),), arguments)
    assert isinstance(found, str)
    assert reason in found


def test_can_run_is_given_all_arguments_by_position() -> None:
    graph = nx.path_graph(3)
    assert backend.can_run("pagerank", (graph, 0.85, None, 100, 1e-6, None, "weight", None), {"device": "cpu"}) is True
    assert backend.can_run("closeness_centrality", (graph, None, "weight", True), {}) != True  # noqa: E712


def test_negative_weights_are_left_to_networkx(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = nx.DiGraph()
    graph.add_weighted_edges_from([(0, 1, -1), (1, 2, 4)])
    with pytest.raises(NotImplementedError):
        nx.single_source_bellman_ford_path_length(graph, 0, backend="penstock")
    monkeypatch.setattr(nx.config.backend_priority, "algos", ["penstock"])
    monkeypatch.setattr(nx.config.backends.penstock, "min_edges", 0)
    assert nx.single_source_bellman_ford_path_length(graph, 0) == {0: 0, 1: -1, 2: 3}


def test_should_run_weighs_conversion(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = nx.cycle_graph(30)
    assert "fewer than 20000 edges" in str(backend.should_run("pagerank", (graph,), {}))
    monkeypatch.setattr(nx.config.backends.penstock, "min_edges", 30)
    assert backend.should_run("pagerank", (graph,), {}) is True
    assert "than converting" in str(backend.should_run("is_connected", (graph,), {}))
    nx.pagerank(graph, backend="penstock")
    assert backend.should_run("is_connected", (graph,), {}) is True


def test_automatic_dispatch(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(nx.config.backend_priority, "algos", ["penstock"])
    monkeypatch.setattr(nx.config.backends.penstock, "min_edges", 10)
    with caplog.at_level(logging.DEBUG, "networkx.utils.backends"):
        nx.core_number(nx.cycle_graph(12))
        nx.core_number(nx.cycle_graph(5))
    text = caplog.text
    assert "Using backend 'penstock' for call to 'core_number'" in text
    assert "fewer than 10 edges" in text


def test_extra_parameters() -> None:
    graph = nx.cycle_graph(6)
    slow = nx.pagerank(graph, backend="penstock", device="reference", memory_limit="100MB")
    assert slow == pytest.approx(dict.fromkeys(range(6), 1 / 6))
    with pytest.raises(pk.errors.UsageError, match="device"):
        nx.pagerank(graph, backend="penstock", device="abacus")
    with pytest.raises(pk.errors.DoesNotFit):
        nx.pagerank(nx.cycle_graph(5000), backend="penstock", memory_limit="10kB")


# ---- stored graphs


@pytest.fixture(scope="module")
def network() -> nx.Graph:
    drawn = nx.gnp_random_graph(40, 0.1, seed=4, directed=True)
    made = nx.relabel_nodes(drawn, {k: 1000 - 7 * k for k in drawn})
    nx.set_edge_attributes(made, {edge: 1 + k % 5 for k, edge in enumerate(made.edges)}, "weight")
    return made


@pytest.fixture
def opened(network: nx.Graph, tmp_path: Path) -> pk.Graph:
    made = pk.ingest(network, tmp_path / "n.pen", page_size="4KiB", progress=False)
    made.close()
    return pk.open(tmp_path / "n.pen")


def test_a_stored_graph_goes_where_a_networkx_graph_does(network: nx.Graph, opened: pk.Graph) -> None:
    assert list(opened) == sorted(network)
    ranks = nx.pagerank(opened, memory_limit="200MB")
    assert list(ranks) == sorted(network)
    assert ranks == pytest.approx(nx.pagerank(network), rel=1e-9)
    source = next(iter(opened))
    for name, arguments in {
        "single_source_shortest_path_length": (source,),
        "single_source_dijkstra_path_length": (source,),
        "core_number": (),
        "degree_centrality": (),
        "descendants": (source,),
        "number_strongly_connected_components": (),
    }.items():
        assert getattr(nx, name)(opened, *arguments) == getattr(nx, name)(network, *arguments)
    assert set(map(frozenset, nx.weakly_connected_components(opened))) == set(
        map(frozenset, nx.weakly_connected_components(network))
    )
    with pytest.raises(nx.NodeNotFound):
        nx.single_source_shortest_path_length(opened, str(source))
    with pytest.raises(nx.NetworkXNotImplemented):
        nx.connected_components(opened)


def test_what_penstock_has_not_runs_on_a_copy(opened: pk.Graph, network: nx.Graph, monkeypatch: Any) -> None:
    with pytest.raises(NotImplementedError):
        nx.overall_reciprocity(opened)
    monkeypatch.setattr(nx.config, "fallback_to_nx", True)
    assert nx.overall_reciprocity(opened) == nx.overall_reciprocity(network)


def test_strings_and_parallel_edges() -> None:
    ends = np.array(["x", "y", "y", "z"]), np.array(["y", "z", "z", "x"])
    with pk.from_edges(*ends, progress=False) as graph:
        assert graph.is_multigraph()
        assert nx.single_source_shortest_path_length(graph, "x") == {"x": 0, "y": 1, "z": 2}
        assert list(nx.strongly_connected_components(graph)) == [{"x", "y", "z"}]
        with pytest.raises(nx.NetworkXNotImplemented):
            nx.core_number(graph)
    with pk.from_edges(*ends, progress=False, duplicates="drop") as graph:
        assert not graph.is_multigraph()
        assert nx.betweenness_centrality(graph) == {"x": 0.5, "y": 0.5, "z": 0.5}


def test_parallel_arcs_of_a_large_vertex_are_found(tmp_path: Path) -> None:
    spokes = np.arange(1, 3000)
    for twice in ([], [2999], [1500]):
        target = np.concatenate([spokes, np.array(twice, np.int64)])
        made = {"source": np.zeros(len(target), np.int64), "target": target}
        graph = pk.ingest(made, tmp_path / "hub.pen", page_size="4KiB", overwrite=True, progress=False)
        assert graph.is_multigraph() == bool(twice)


# ---- NetworkX's tests


def test_expected_failures_are_marked() -> None:
    class Item(SimpleNamespace):
        def add_marker(self, marker: Any) -> None:
            self.marks.append(marker)

    failing, sampled = next(iter(FAILURES)), next(iter(SAMPLED))
    names = [failing, *(f"{sampled}[{k}]" for k in range(30)), "algorithms/tests/test_core.py::test_other"]
    suite = Suite()
    ran: list[bool] = []

    def runtest() -> None:
        ran[:] = [suite.exhausted() for _ in range(MOST + 2)]

    items = [Item(nodeid=f"lib/networkx/{name}", marks=[], runtest=runtest) for name in names]
    assert not any(suite.exhausted() for _ in range(MOST + 2)), "only the suite has a limit"
    suite.start(items)
    for item in items[-2:]:
        item.runtest()
        assert ran == [False] * MOST + [True, True]
    assert [mark.name for mark in items[0].marks] == ["xfail"]
    assert [k for k, item in enumerate(items[1:-1]) if not item.marks] == [0, 25]
    assert not items[-1].marks
    tests = Path(nx.__file__).parent
    for name in [*FAILURES, *SAMPLED]:
        path, *_, test = name.split("::")
        assert f"def {test}(" in (tests / path).read_text(), f"NetworkX has no test {name} any more"
