"""The oracle itself: against NetworkX where it has the same definition, else against values worked out by hand."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

import cases
import oracle
from oracle import G

SHAPES = {shape.name: shape for shape in cases.shapes()}
RANDOM = [(seed, undirected) for seed in range(6) for undirected in (False, True)]


def simple(seed: int, undirected: bool) -> tuple[G, Any]:
    """A random graph without loops and duplicates, some vertices isolated; and the same one for NetworkX."""
    rng = random.Random(seed)
    edges: dict[tuple[int, int], int] = {}
    for _ in range(20 + 12 * seed):
        u, v = rng.sample(range(24), 2)
        if (v, u) not in edges or not undirected:
            edges[u, v] = rng.randrange(5)
    rows = [(*ends, weight) for ends, weight in edges.items()]
    network = nx.Graph() if undirected else nx.DiGraph()
    network.add_nodes_from(range(26))
    network.add_weighted_edges_from(rows)
    return G(range(26), rows, undirected), network


# ---- against NetworkX


@pytest.mark.parametrize(("seed", "undirected"), RANDOM)
def test_ranks(seed: int, undirected: bool) -> None:
    g, network = simple(seed, undirected)
    exact: dict[str, Any] = {"tol": 1e-14, "max_iter": 2000}
    theirs = {"tol": 1e-15, "max_iter": 2000, "weight": None}
    assert oracle.pagerank(g, **exact) == pytest.approx(nx.pagerank(network, **theirs), abs=1e-9)
    home = {3: 1, 7: 1}
    assert oracle.ppr(g, [3, 7], **exact) == pytest.approx(
        nx.pagerank(network, personalization=home, **theirs), abs=1e-9
    )
    assert sum(oracle.pagerank(g).values()) == pytest.approx(1)
    assert sum(oracle.pagerank(g, dangling="drop").values()) < 1


@pytest.mark.parametrize("seed", [4, 5])
def test_hits(seed: int) -> None:
    g, network = simple(seed, False)
    for _, _, data in network.edges(data=True):
        data.clear()  # NetworkX would weigh the arcs
    hubs, authorities = nx.hits(network)
    found = oracle.hits(g, tol=1e-13, max_iter=5000)
    assert {v: hub for v, (hub, _) in found.items()} == pytest.approx(hubs, abs=1e-8)
    assert {v: authority for v, (_, authority) in found.items()} == pytest.approx(authorities, abs=1e-8)


@pytest.mark.parametrize(("seed", "undirected"), RANDOM)
def test_paths(seed: int, undirected: bool) -> None:
    g, network = simple(seed, undirected)
    level = {v: level for v, (level, _) in oracle.bfs(g, [0]).items() if level is not None}
    assert level == nx.single_source_shortest_path_length(network, 0)
    shallow = {v: level for v, (level, _) in oracle.bfs(g, [0], max_depth=2).items() if level is not None}
    assert shallow == nx.single_source_shortest_path_length(network, 0, cutoff=2)
    assert oracle.neighborhood(g, [0], 2) == shallow
    distance = {v: d for v, d in oracle.sssp(g, [0, 5]).items() if d is not None}
    assert distance == nx.multi_source_dijkstra_path_length(network, {0, 5})


@pytest.mark.parametrize(("seed", "undirected"), RANDOM)
def test_parents_form_a_tree(seed: int, undirected: bool) -> None:
    g, network = simple(seed, undirected)
    for found in (oracle.bfs(g, [0, 5]), oracle.sssp(g, [0, 5], parents=True)):
        for v, (_, parent) in found.items():
            assert (parent is None) == (found[v][0] is None)
            steps = 0
            while parent is not None and v != parent:
                assert network.has_edge(parent, v)
                v, parent, steps = parent, found[parent][1], steps + 1  # noqa: PLW2901
                assert steps < len(g)
            assert v in (0, 5) or parent is None


@pytest.mark.parametrize(("seed", "undirected"), RANDOM)
def test_centrality(seed: int, undirected: bool) -> None:
    g, network = simple(seed, undirected)
    for normalized in (True, False):
        theirs = nx.betweenness_centrality(network, normalized=normalized)
        assert oracle.betweenness(g, normalized=normalized) == pytest.approx(theirs)
    assert oracle.closeness(g) == pytest.approx(nx.closeness_centrality(network))
    assert oracle.closeness(g, harmonic=True) == pytest.approx(nx.harmonic_centrality(network))
    # As many samples as vertices are all of them.
    assert oracle.betweenness(g, samples=26, seed=3) == pytest.approx(oracle.betweenness(g))
    assert oracle.closeness(g, samples=26, seed=3) == pytest.approx(oracle.closeness(g))


@pytest.mark.parametrize(("seed", "undirected"), RANDOM)
def test_components(seed: int, undirected: bool) -> None:
    g, network = simple(seed, undirected)
    directed = network.to_directed()
    for found, theirs in (
        (oracle.wcc(g), nx.weakly_connected_components(directed)),
        (oracle.scc(g), nx.strongly_connected_components(directed)),
    ):
        assert found == {v: min(part) for part in theirs for v in part}


@pytest.mark.parametrize("seed", range(6))
def test_dense_parts(seed: int) -> None:
    g, network = simple(seed, True)
    assert oracle.kcore(g) == nx.core_number(network)
    assert oracle.triangles(g) == nx.triangles(network)
    assert oracle.lcc(g) == pytest.approx(nx.clustering(network))
    directed, other = simple(seed, False)
    assert oracle.kcore(directed) == nx.core_number(other)  # in and out together, as ours
    assert oracle.triangles(directed) == nx.triangles(other.to_undirected())


@pytest.mark.parametrize(("seed", "undirected"), RANDOM)
def test_edges_of_parts(seed: int, undirected: bool) -> None:
    g, network = simple(seed, undirected)
    part = set(range(0, 26, 3))
    assert ends(oracle.induced(g, list(part))) == pairs(network.subgraph(part).edges, undirected)
    assert ends(oracle.egonet(g, [0], 2)) == pairs(nx.ego_graph(network, 0, 2).edges, undirected)
    crossing = [(u, v) for u, v in network.edges if (u in part) != (v in part)]
    assert ends(oracle.cross_edges(g, list(part))) == pairs(crossing, undirected)


def ends(rows: Counter[oracle.Edge]) -> Counter[Any]:
    return Counter({(u, v): count for (u, v, _), count in rows.items()})


def pairs(edges: Any, undirected: bool) -> Counter[Any]:
    return Counter((min(e), max(e)) if undirected else e for e in edges)


# ---- by the definition


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize("name", ["duplicates", "loops", "several SCCs", "string ids", "two cliques"])
def test_betweenness_pair_by_pair(name: str, undirected: bool) -> None:
    shape = SHAPES[name]
    g = G(shape.vertices, shape.edges, undirected, duplicates="keep")
    distance = {u: oracle.levels(g.out, [u]) for u in g.vertices}
    paths = {u: {v: number_of_paths(g, distance[u], u, v) for v in distance[u]} for u in g.vertices}
    total = dict.fromkeys(g.vertices, Fraction(0))
    for s in g.vertices:
        for t in distance[s].keys() - {s}:
            for v in distance[s].keys() - {s, t}:
                if t in distance[v] and distance[s][v] + distance[v][t] == distance[s][t]:
                    total[v] += Fraction(paths[s][v] * paths[v][t], paths[s][t])
    plain = {v: float(share) for v, share in total.items()}
    assert oracle.betweenness(g, sources=g.vertices) == pytest.approx(plain)
    halved = {v: share / 2 if undirected else share for v, share in plain.items()}
    assert oracle.betweenness(g, normalized=False) == pytest.approx(halved)


def number_of_paths(g: G, level: dict[Any, int], source: Any, target: Any) -> int:
    if source == target:
        return 1
    return sum(number_of_paths(g, level, source, u) for u in g.into[target] if level.get(u) == level[target] - 1)


@pytest.mark.parametrize("name", ["duplicates", "random", "several SCCs", "two cliques", "loops"])
@pytest.mark.parametrize("undirected", [False, True])
def test_a_core_is_the_largest_part_of_its_degree(name: str, undirected: bool) -> None:
    g = SHAPES[name].graph(undirected)
    core = oracle.kcore(g)
    for k in range(1, max(core.values()) + 2):
        part = set(g.vertices)
        while thin := {v for v in part if sum(w in part and w != v for w in g.around[v]) < k}:
            part -= thin
        assert part == {v for v in g.vertices if core[v] >= k}


# ---- by hand


def edges(text: str) -> list[oracle.Edge]:
    return [(pair[0], pair[1]) for pair in text.split()]


def graph(text: str, undirected: bool = False, **more: Any) -> G:
    return G("", edges(text), undirected, columns={}, **more)


def test_arcs() -> None:
    g = graph("ab ab ba aa cc")
    assert g.out == {"a": ["b", "b", "a"], "b": ["a"], "c": ["c"]}
    assert oracle.degree(g) == {"a": (3, 2, 5), "b": (1, 2, 3), "c": (1, 1, 2)}
    assert oracle.distribution(g) == {5: 1, 3: 1, 2: 1}
    merged = graph("ab ab ba aa cc", undirected=True)
    assert oracle.degree(merged) == {"a": (2, 2, 2), "b": (1, 1, 1), "c": (1, 1, 1)}
    assert merged.links == Counter({("a", "b"): 1, ("b", "a"): 1, ("a", "a"): 1, ("c", "c"): 1})


def test_pagerank_by_hand() -> None:
    g = graph("ab ab ac")  # b gets two thirds of a's rank, c one; b and c are sinks
    third, d = 1 / 3, 0.6
    spread = oracle.pagerank(g, damping=d, max_iter=1, stop="fixed")
    base = (1 - d) / 3 + d * (2 * third) / 3
    assert spread == pytest.approx({"a": base, "b": base + d * third * 2 / 3, "c": base + d * third / 3})
    drop = oracle.pagerank(g, damping=d, max_iter=1, stop="fixed", dangling="drop")
    assert drop == pytest.approx({v: rank - d * (2 * third) / 3 for v, rank in spread.items()})
    home = oracle.ppr(g, ["a"], damping=d, max_iter=2)
    assert home == pytest.approx({"a": (1 - d) + d * d, "b": (1 - d) * d * 2 / 3, "c": (1 - d) * d / 3})


def test_stop_rules() -> None:
    """From a to b, with nothing spread: a changes by 1/4, b by 0, and in the next step only b, by 1/8."""
    g, d = graph("ab"), 0.5
    steps = [oracle.pagerank(g, damping=d, max_iter=k, stop="fixed", dangling="drop") for k in range(5)]
    assert steps[1] == {"a": 0.25, "b": 0.5}
    assert steps[2] == steps[3] == {"a": 0.25, "b": 0.375}

    def ends_after(stop: str, tol: float) -> int:
        return steps.index(oracle.pagerank(g, damping=d, stop=stop, tol=tol, dangling="drop"))

    assert [ends_after(stop, 0.25) for stop in ("l1", "max", "vertex")] == [2, 2, 1]
    assert [ends_after(stop, 0.126) for stop in ("l1", "max", "vertex")] == [2, 2, 2]
    assert [ends_after(stop, 0.3) for stop in ("l1", "max", "vertex")] == [1, 1, 1]
    wide = G("", edges("ab cd"), columns={})  # two vertices of each kind: the sum is twice the largest change
    halves = {"a": 0.125, "b": 0.25, "c": 0.125, "d": 0.25}
    assert oracle.pagerank(wide, damping=d, stop="max", tol=0.13, dangling="drop") == halves
    assert oracle.pagerank(wide, damping=d, stop="l1", tol=0.13, dangling="drop") != halves


def test_hits_by_hand() -> None:
    answer = {"a": (0.6, 0.0), "b": (0.0, 0.75), "c": (0.4, 0.0), "d": (0.0, 0.25)}
    cases.compare("hits", oracle.hits(graph("ab ab cb cd"), max_iter=1), answer)
    assert oracle.hits(G("ab", [])) == {"a": (0.5, 0.5), "b": (0.5, 0.5)}


def test_the_parent_has_the_smallest_number() -> None:
    numbers = {"s": 4, "a": 3, "b": 2, "c": 1, "t": 0}
    g = graph("sa sb sc at bt ct ct", numbers=numbers)
    assert oracle.bfs(g, ["s"]) == {"a": (1, "s"), "b": (1, "s"), "c": (1, "s"), "s": (0, "s"), "t": (2, "c")}
    assert oracle.bfs(g, ["s", "t"], max_depth=0)["t"] == (0, "t")


def test_parents_leave_no_circle_of_zeros() -> None:
    """a and b, 0 from each other, are both 1 from the source, and the arc from it leads to b, of the larger number."""
    rows = [("s", "b", 1), ("a", "b", 0), ("b", "a", 0), ("a", "t", 2), ("s", "t", 3), ("u", "s", 0)]
    g = G("", rows, numbers={"a": 0, "b": 1, "s": 2, "t": 3, "u": 4})
    found = oracle.sssp(g, ["s"], parents=True)
    assert found == {"a": (1, "b"), "b": (1, "s"), "s": (0, "s"), "t": (3, "s"), "u": (None, None)}
    real = G("", [(u, v, float(w)) for u, v, w in rows], columns={"weight": float})
    assert [type(d) for d in oracle.sssp(real, ["s"]).values()] == [float] * 4 + [type(None)]


def test_labels_by_hand() -> None:
    g = graph("ba ca cb cb dd de", undirected=False)
    # a sees b, c; b sees a, c, c; c sees a, b, b; d sees itself twice and e; e sees d
    assert oracle.cdlp(g, max_iter=1) == {"a": "b", "b": "c", "c": "b", "d": "d", "e": "d"}
    # then: a sees c, b; b sees b, b, b; c sees b, c, c
    assert oracle.cdlp(g, max_iter=2) == {"a": "b", "b": "b", "c": "c", "d": "d", "e": "d"}
    # both ways counts twice in a directed graph (a sees c twice, b once), once in an undirected one
    assert oracle.cdlp(graph("ab ac ca"), max_iter=1)["a"] == "c"
    assert oracle.cdlp(graph("ab ac ca", undirected=True), max_iter=1)["a"] == "b"
    # an undirected loop counts once: b sees itself and c, and b is smaller
    assert oracle.cdlp(graph("bb bc", undirected=True), max_iter=1) == {"b": "b", "c": "b"}
    assert oracle.cdlp(G([10, 9], [(10, 9)]), max_iter=1) == {9: 10, 10: 9}


def test_clustering_by_hand() -> None:
    # a's neighbours b, c, d have the arcs bc, cb, dc among them: 3 of 6. The loop and the duplicate count nothing.
    g = graph("ab ca ad bc cb bc dc bb aa")
    assert oracle.lcc(g) == pytest.approx({"a": 3 / 6, "b": 1 / 2, "c": 2 / 6, "d": 1 / 2})
    assert oracle.triangles(g) == {"a": 2, "b": 1, "c": 2, "d": 1}
    assert oracle.lcc(graph("ab aa")) == {"a": 0.0, "b": 0.0}


def test_cores_by_hand() -> None:
    assert oracle.kcore(graph("ab ab ab bc cc")) == {"a": 3, "b": 3, "c": 1}
    assert oracle.kcore(graph("ab ba bc cc", undirected=True)) == {"a": 1, "b": 1, "c": 1}
    assert oracle.kcore(G("ab", [("a", "a")], columns={})) == {"a": 0, "b": 0}


def test_edges_by_hand() -> None:
    g = G([7], [(2, 1, 5), (1, 2, 6), (2, 3, 4), (3, 3, 1), (4, 2, 0), (4, 2, 0)])
    assert oracle.neighborhood(g, [2]) == {1: 1, 2: 0, 3: 1}
    assert oracle.egonet(g, [2]) == Counter([(2, 1, 5), (1, 2, 6), (2, 3, 4), (3, 3, 1)])
    assert oracle.cross_edges(g, [1, 3, 7]) == Counter([(2, 1, 5), (1, 2, 6), (2, 3, 4)])
    assert oracle.cross_edges(g, [2], [4, 3]) == Counter({(2, 3, 4): 1, (4, 2, 0): 2})
    both = G([], [(2, 1, 5), (1, 2, 6)], undirected=True)
    assert oracle.induced(both, [1, 2]) == Counter([(1, 2, 5)])


def test_samples() -> None:
    """Two of the three vertices of a path; the numbers say which."""
    g = graph("ab bc", numbers={"a": 2, "b": 0, "c": 1})
    for seed in range(6):
        chosen = oracle.sampled(g, 2, seed)
        assert len(set(chosen)) == 2
        through = 3 / 2 / 2 if "a" in chosen else 0.0
        assert oracle.betweenness(g, samples=2, seed=seed) == pytest.approx({"a": 0, "b": through, "c": 0})
        to_c = sum(0.5 if v == "a" else 1 for v in chosen if v != "c") * 3 / 2
        assert oracle.closeness(g, samples=2, seed=seed, harmonic=True)["c"] == pytest.approx(to_c)


# ---- the cases


def test_shapes_cover_what_breaks() -> None:
    assert len(SHAPES) == len(cases.shapes())
    assert max(len(near) for s in SHAPES.values() for near in s.graph(True).out.values()) > 2000
    assert all(type(weight) is s.weight for s in SHAPES.values() for _, _, weight in s.edges)
    assert [s.edges for s in cases.shapes()] == [s.edges for s in cases.shapes()]


@pytest.mark.parametrize("name", SHAPES)
def test_a_stored_graph_is_read_back(tmp_path: Path, name: str) -> None:
    shape = SHAPES[name]
    for undirected in shape.ways:
        given = shape.graph(undirected)
        with shape.build(tmp_path / f"{undirected}.pen", undirected) as stored:
            read = oracle.of(stored)
            assert read.vertices == given.vertices
            assert read.kept == given.kept
            assert read.links == given.links
            assert read.columns == given.columns
            assert sorted(read.numbers.values()) == list(range(len(read)))
            assert [stored.store.ids.of(read.numbers[v]) for v in read.vertices] == read.vertices


# With thousands of vertices it takes long, and test_everywhere.py compares them all with these answers.
LARGE = ("star", "star inwards", "hub of parallel arcs")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in LARGE else ()) for name in SHAPES]
)
def test_every_case_has_an_answer(name: str) -> None:
    """Of the right form: every vertex in order, and equal to itself."""
    for undirected in SHAPES[name].ways:
        g = SHAPES[name].graph(undirected)
        for algorithm, options in cases.CASES.items():
            for chosen in options(g):
                answer = cases.expected(algorithm, g, chosen)
                cases.compare(algorithm, answer, answer)
                if algorithm not in (*cases.EDGE_RESULTS, "neighborhood"):
                    assert list(answer) == list(g.vertices), (algorithm, chosen)


@pytest.mark.parametrize("name", SHAPES)
def test_no_case_stops_by_a_hair(name: str) -> None:
    """Sums in another order must not mean another number of steps."""
    defaults = {"pagerank": 1e-6, "ppr": 1e-6, "hits": 1e-8}
    for undirected in SHAPES[name].ways:
        g = SHAPES[name].graph(undirected)
        for algorithm, tol in defaults.items():
            for chosen in cases.CASES[algorithm](g):
                near = [{**chosen, "tol": chosen.get("tol", tol) * factor} for factor in (1 - 1e-6, 1 + 1e-6)]
                less, more = (cases.expected(algorithm, g, options) for options in near)
                assert less == more, (algorithm, chosen)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ({1: 2.0}, {1: 2}),
        ({1: 2}, {1: 2.0}),
        ({1: 2.001}, {1: 2.0}),
        ({1: None}, {1: 2}),
        ({1: 0}, {1: None}),
        ({1: True}, {1: 1}),
        ({1: (1, 2)}, {1: (1, 3)}),
        ({1: (1, 2)}, {1: (1, 2, 3)}),
        ({2: 0, 1: 0}, {1: 0, 2: 0}),
        ({}, {1: 0}),
        ({1: float("nan")}, {1: 1.0}),
    ],
)
def test_a_difference_is_found(wrong: dict[int, Any], right: dict[int, Any]) -> None:
    cases.compare("bfs", right, right)
    with pytest.raises(AssertionError):
        cases.compare("bfs", wrong, right)
    with pytest.raises(AssertionError):
        cases.compare("egonet", Counter([(1, 2)]), Counter([(1, 2), (1, 2)]))
