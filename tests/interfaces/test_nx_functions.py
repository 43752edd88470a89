"""NetworkX's functions give the same with this backend as without it: results, their types and order, exceptions."""

from __future__ import annotations

import inspect
import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import networkx as nx
import pytest

import penstock.interfaces.nx.algorithms  # noqa: F401  registers the functions
from penstock.interfaces.nx.function import FUNCTIONS, PARAMETERS

pytestmark = pytest.mark.filterwarnings("ignore:Note. conversions to backend graphs")


def _weighted(graph: nx.Graph, weights: list[float]) -> nx.Graph:
    drawn = random.Random(1)
    for *_, data in graph.edges(data=True):
        if drawn.random() < 0.8:  # the others weigh 1
            data["weight"] = drawn.choice(weights)
    return graph


def _named(graph: nx.Graph) -> nx.Graph:
    names = ["a", ("b", 2), frozenset({3}), None.__class__, 4.5, "é", -7, 2**70]
    return nx.relabel_nodes(graph, dict(enumerate(names)))


def _apart(graph: nx.Graph) -> nx.Graph:
    graph.add_nodes_from(["alone", "also alone"])
    return graph


GRAPHS: dict[str, Callable[[], nx.Graph]] = {
    "karate": lambda: _weighted(nx.karate_club_graph(), [1, 2, 5]),
    "directed": lambda: _weighted(nx.gnp_random_graph(30, 0.08, seed=3, directed=True), [0.5, 2.25, 3.0]),
    "strong": lambda: nx.DiGraph([(5, 1), (1, 9), (9, 5), (9, 1), (1, 7), (7, 5)]),
    "loops": lambda: nx.Graph([(0, 0), (0, 1), (1, 2), (2, 0), (2, 2), (2, 3)]),
    "directed loops": lambda: nx.DiGraph([(0, 0), (0, 1), (1, 0), (1, 2), (3, 1)]),
    "multigraph": lambda: _weighted(nx.MultiGraph([(0, 1), (0, 1), (1, 2), (2, 0), (1, 1), (3, 4), (2, 3)]), [2, 3]),
    "directed multigraph": lambda: _weighted(nx.MultiDiGraph([(0, 1), (0, 1), (1, 2), (2, 1), (2, 0)]), [2, 0.5]),
    "named": lambda: _apart(_named(nx.gnp_random_graph(8, 0.4, seed=2))),
    "far apart": lambda: _apart(nx.disjoint_union(nx.cycle_graph(6), nx.star_graph(4))),
    "sparse ids": lambda: nx.relabel_nodes(nx.path_graph(5), {k: 10**12 - k * 10**11 for k in range(5)}),
    "empty": nx.Graph,
    "empty directed": nx.DiGraph,
    "one": lambda: nx.empty_graph(1),
    "one directed": lambda: nx.empty_graph(1, create_using=nx.DiGraph),
    "no edges": lambda: nx.empty_graph(3),
}


def _first(graph: nx.Graph) -> Any:
    return next(iter(graph), "nobody")


def _last(graph: nx.Graph) -> Any:
    return next(reversed(list(graph)), "nobody")


NO_ARGUMENTS: dict[str, Any] = {}
CASES: list[tuple[str, Callable[[nx.Graph], dict[str, Any]]]] = [
    ("pagerank", lambda g: NO_ARGUMENTS),
    ("pagerank", lambda g: {"alpha": 0.6, "tol": 1e-10, "max_iter": 500, "weight": None}),
    ("pagerank", lambda g: {"personalization": {_first(g): 2, _last(g): 1}, "nstart": {_last(g): 3}}),
    ("pagerank", lambda g: {"dangling": {_first(g): 1}, "weight": "weight"}),
    ("pagerank", lambda g: {"personalization": {"nobody at all": 1}}),
    ("pagerank", lambda g: {"max_iter": 1, "tol": 1e-300}),
    ("pagerank", lambda g: {"max_iter": 0}),
    *[(name, lambda g: NO_ARGUMENTS) for name in (
        "connected_components", "number_connected_components", "is_connected", "weakly_connected_components",
        "number_weakly_connected_components", "is_weakly_connected", "number_strongly_connected_components",
        "is_strongly_connected", "core_number", "triangles", "clustering", "average_clustering", "transitivity",
        "degree_centrality", "in_degree_centrality", "out_degree_centrality", "closeness_centrality",
        "harmonic_centrality", "betweenness_centrality", "eccentricity", "diameter", "radius", "periphery",
        "average_shortest_path_length", "wiener_index", "all_pairs_shortest_path_length",
        "all_pairs_dijkstra_path_length", "all_pairs_bellman_ford_path_length", "shortest_path_length",
    )],
    ("node_connected_component", lambda g: {"n": _first(g)}),
    ("triangles", lambda g: {"nodes": _last(g)}),
    ("triangles", lambda g: {"nodes": [_first(g), "stranger"]}),
    ("clustering", lambda g: {"nodes": [_last(g), _first(g)]}),
    ("average_clustering", lambda g: {"count_zeros": False}),
    ("closeness_centrality", lambda g: {"wf_improved": False}),
    ("closeness_centrality", lambda g: {"u": _first(g)}),
    ("betweenness_centrality", lambda g: {"k": min(3, len(g)), "seed": 7}),
    ("betweenness_centrality", lambda g: {"k": 1, "seed": 7, "normalized": False}),
    ("betweenness_centrality", lambda g: {"k": 0}),
    ("betweenness_centrality", lambda g: {"endpoints": True}),
    ("betweenness_centrality", lambda g: {"endpoints": True, "normalized": False}),
    ("eccentricity", lambda g: {"v": _first(g)}),
    ("single_source_shortest_path_length", lambda g: {"source": _first(g)}),
    ("single_source_shortest_path_length", lambda g: {"source": _first(g), "cutoff": 1.5}),
    ("single_source_shortest_path_length", lambda g: {"source": ["unhashable"]}),
    ("single_target_shortest_path_length", lambda g: {"target": _last(g), "cutoff": 2}),
    ("single_target_shortest_path_length", lambda g: {"target": _last(g)}),
    ("shortest_path_length", lambda g: {"source": _first(g), "target": _last(g)}),
    ("shortest_path_length", lambda g: {"target": _last(g)}),
    ("shortest_path_length", lambda g: {"source": _first(g), "weight": "weight", "method": "bellman-ford"}),
    ("shortest_path_length", lambda g: {"source": _first(g), "method": "guess"}),
    ("has_path", lambda g: {"source": _first(g), "target": _last(g)}),
    ("has_path", lambda g: {"source": _first(g), "target": "stranger"}),
    ("descendants", lambda g: {"source": _first(g)}),
    ("ancestors", lambda g: {"source": _first(g)}),
    ("descendants", lambda g: {"source": "stranger"}),
    ("descendants_at_distance", lambda g: {"source": _first(g), "distance": 2}),
    ("single_source_dijkstra_path_length", lambda g: {"source": _first(g)}),
    ("single_source_dijkstra_path_length", lambda g: {"source": _first(g), "cutoff": 3}),
    ("multi_source_dijkstra_path_length", lambda g: {"sources": [_first(g), _last(g)]}),
    ("multi_source_dijkstra_path_length", lambda g: {"sources": []}),
    ("dijkstra_path_length", lambda g: {"source": _first(g), "target": _last(g)}),
    ("single_source_bellman_ford_path_length", lambda g: {"source": _last(g), "weight": "no such attribute"}),
    ("bellman_ford_path_length", lambda g: {"source": _first(g), "target": _last(g)}),
    ("bellman_ford_path_length", lambda g: {"source": "stranger", "target": _last(g)}),
]  # fmt: skip


def outcome(name: str, graph: nx.Graph, arguments: dict[str, Any], backend: str) -> Any:
    """The result, iterators run to their end; or what was raised."""
    try:
        found = getattr(nx, name)(graph, backend=backend, **arguments)
        return list(found) if isinstance(found, Iterator) else found
    except Exception as error:
        return type(error), str(error)


def assert_same(ours: Any, theirs: Any) -> None:
    """Equal, up to the last digits of real numbers; and of Python's own types, as far as NetworkX's are."""
    if isinstance(theirs, dict):
        assert set(ours) == set(theirs)
        for key, value in theirs.items():
            assert_same(ours[key], value)
    elif isinstance(theirs, list | tuple):
        assert len(ours) == len(theirs)
        for mine, other in zip(ours, theirs, strict=True):
            assert_same(mine, other)
    elif isinstance(theirs, float):
        assert type(ours) in (int, float)
        assert math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-12) or (math.isnan(ours) and math.isnan(theirs))
    else:
        assert ours == theirs
        assert type(ours) is type(theirs) or {type(ours), type(theirs)} <= {int, float}


@pytest.mark.parametrize("kind", GRAPHS)
def test_the_same_as_networkx(kind: str) -> None:
    graph = GRAPHS[kind]()
    for name, arguments in CASES:
        given = arguments(graph)
        if FUNCTIONS[name].refusal((graph,), given) is not None:
            continue
        theirs = outcome(name, graph, given, "networkx")
        try:
            assert_same(outcome(name, graph, given, "penstock"), theirs)
        except (AssertionError, TypeError) as error:
            raise AssertionError(f"{name} {given}") from error


def test_refusals_are_few() -> None:
    """What is compared above is not refused."""
    refused = {
        (name, kind)
        for kind in GRAPHS
        for name, arguments in CASES
        if FUNCTIONS[name].refusal((GRAPHS[kind](),), arguments(GRAPHS[kind]())) is not None
    }
    assert {name for name, _ in refused} <= {"clustering", "average_clustering", "transitivity"}
    assert all(GRAPHS[kind]().is_directed() for _, kind in refused)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signatures_are_those_of_networkx(name: str) -> None:
    theirs = inspect.signature(getattr(nx, name).orig_func)
    ours = FUNCTIONS[name].signature
    assert [(p.name, p.kind, p.default) for p in ours.parameters.values()] == [
        (p.name, p.kind, p.default) for p in theirs.parameters.values()
    ]
    called = inspect.signature(FUNCTIONS[name].call)
    assert list(called.parameters) == [*theirs.parameters, *PARAMETERS]


def test_every_function_is_compared() -> None:
    assert set(FUNCTIONS) - {name for name, _ in CASES} == {"strongly_connected_components"}


@pytest.mark.parametrize("kind", ["directed", "directed loops", "empty directed", "directed multigraph"])
def test_strong_components_up_to_their_order(kind: str) -> None:
    graph = GRAPHS[kind]()
    found = list(nx.strongly_connected_components(graph, backend="penstock"))
    assert set(map(frozenset, found)) == set(map(frozenset, nx.strongly_connected_components(graph)))
    order = list(graph)
    firsts = [min(map(order.index, component)) for component in found]
    assert firsts == sorted(firsts)


def test_dictionaries_are_in_the_order_of_the_nodes() -> None:
    graph = nx.Graph([("z", "a"), ("a", "m"), ("m", "b")])
    for name in ("pagerank", "core_number", "triangles", "degree_centrality", "closeness_centrality"):
        assert list(getattr(nx, name)(graph, backend="penstock")) == list(graph)
    levels = nx.single_source_shortest_path_length(graph, "z", backend="penstock")
    assert list(levels.items()) == [("z", 0), ("a", 1), ("m", 2), ("b", 3)]
