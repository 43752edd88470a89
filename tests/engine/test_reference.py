"""The reference executor on graphs whose answers are known by hand: each thing that a combine program can say, and the
other forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as pk
from penstock.config import settings
from penstock.engine.atomics import atomic_add
from penstock.engine.engine import Engine, Outcome
from penstock.engine.monoid import ARGMIN, FIRST, MAX, MIN, SUM, Monoid, pair, pair_number, pair_value
from penstock.engine.program import NUMBER, Combine, Pair, Program, Row, Sweep, change_below, iterations
from penstock.errors import UsageError
from penstock.graph import Graph

# 0 -> 1 -> 2 -> 3, 0 -> 2, 2 -> 2, twice 3 -> 1; 4 and 5 have no edges. The third number is the weight.
EDGES = [(0, 1, 10), (1, 2, 20), (2, 3, 30), (0, 2, 40), (2, 2, 50), (3, 1, 60), (3, 1, 70)]


def build(path: Path, edges: Sequence[tuple[int, int, int]] = EDGES, **options: Any) -> Graph:
    source, target, weight = np.array(edges, np.int64).reshape(-1, 3).T
    table = {"source": source, "target": target, "weight": weight}
    chosen = {"order": "input", "page_size": 4096, "vertices": {"id": np.arange(6)}, **options}
    return pk.ingest(table, path, **chosen)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return build(tmp_path_factory.mktemp("reference") / "g.pen")


def run(program: Program, graph: Graph, device: str = "reference", **options: Any) -> Outcome:
    with Engine(graph.store, settings(device=device, threads=2)) as engine:
        return engine.run(program, **options)


def values(outcome: Outcome, name: str = "x") -> list[Any]:
    found: list[Any] = outcome.state[name].tolist()
    return found


def own(v, p):
    return v.number + 1


def emit(v, p):
    return v.x


def take(v, total, p):
    return total


def wide(**options: Any) -> Combine:
    """Each vertex starts as its number and one, sends what it has, and becomes the total."""
    given: dict[str, Any] = {
        "state": {"x": "int64"}, "reads": ("number",), "init": own, "message": "int64", "emit": emit, "update": take,
    }  # fmt: skip
    return Combine("hand", **{**given, **options})


@pytest.mark.parametrize(
    ("along", "totals"),
    [("out", [0, 9, 6, 3, 0]), ("in", [5, 3, 7, 4, 0]), ("both", [5, 12, 13, 7, 0])],
)
def test_messages_travel(graph: Graph, along: str, totals: list[int]) -> None:
    # 1 gets 1 from vertex 0, and twice 4 from vertex 3; the last slot stands for 4 and 5.
    assert values(run(wide(along=along), graph)) == totals


def test_without_incoming_arcs(tmp_path: Path) -> None:
    assert values(run(wide(), build(tmp_path / "g.pen", incoming=False))) == [0, 9, 6, 3, 0]
    with pytest.raises(UsageError, match="incoming"):
        run(wide(along="both"), build(tmp_path / "h.pen", incoming=False))


def test_undirected_edges_are_arcs_both_ways(tmp_path: Path) -> None:
    graph = build(tmp_path / "g.pen", [(0, 1, 1), (1, 2, 1), (2, 2, 1)], undirected=True)
    for along in ("out", "in", "both"):
        assert values(run(wide(along=along), graph)) == [2, 4, 5, 0]


def test_loops_may_be_left_out(graph: Graph) -> None:
    assert values(run(wide(loops=False), graph)) == [0, 9, 3, 3, 0]


def test_edges_see_their_columns(graph: Graph) -> None:
    def weighed(message, e, p):
        return message * e.weight + p.more

    program = wide(columns=("weight",), edge=weighed, params={"more": 1})
    assert values(run(program, graph)) == [0, 10 + 240 + 280 + 3, 40 + 40 + 150 + 3, 91, 0]
    assert values(run(program, graph, params={"more": 0})) == [0, 530, 230, 90, 0]


def test_contributions_have_a_type_of_their_own(graph: Graph) -> None:
    def halved(message, e, p):
        return message / 2

    program = wide(state={"x": "float64"}, message="uint8", edge=halved, contribution="float64")
    assert values(run(program, graph)) == [0, 4.5, 3, 1.5, 0]


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_narrow_numbers_wrap(graph: Graph, device: str) -> None:
    def big(v, p):
        return np.int64(v.number) * 100

    # 1 gets 0 and twice 300, which in a byte is 44; 2 gets 0, 100 and 200.
    assert values(run(wide(message="uint8", emit=big), graph, device)) == [0, 88, 44, 200, 0]


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_supersteps_stop(graph: Graph, device: str) -> None:
    steps: list[tuple[int, float]] = []

    def until(step: int, change: float) -> bool:
        steps.append((step, change))
        return step == 2

    def change(v, new, p):
        return abs(new - v.x)

    # The two vertices of the last slot go from 5 to 0, each.
    outcome = run(wide(change=change), graph, device, until=until)
    assert outcome.steps == 2
    assert steps[:2] == [(0, np.inf), (1, 1 + 7 + 3 + 1 + 10)]
    assert outcome.change == steps[2][1]
    assert run(wide(change=change), graph, device).steps == 1
    largest = run(wide(change=change, change_by=MAX), graph, device)
    assert largest.change == 7
    assert run(wide(change=change), graph, device, until=change_below(1e9, 10)).steps == 1


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_tally_counts_every_vertex(graph: Graph, device: str) -> None:
    def one(v, p):
        return 1

    def tally(v, p):
        return v.x

    def update(v, total, p):
        return np.int64(p.tally) * 10 + p.step

    found = run(wide(init=one, tally=tally, update=update), graph, device, until=iterations(2))
    assert values(found) == [3601] * 5  # six vertices: 6 at first, then 6 times 60


def test_wants(graph: Graph) -> None:
    def odd(v, p):
        return v.number % 2 == 1

    assert values(run(wide(wants=odd), graph)) == [1, 9, 3, 3, 5]


# ---- frontiers


def far(v, p):
    return (0 if v.seed > 0 else 99), v.seed > 0


def near(v, total, p):
    return min(v.x, total + 1), total + 1 < v.x


def hops(**options: Any) -> Combine:
    given: dict[str, Any] = {
        "state": {"x": "int64"}, "reads": ("seed",), "init": far, "message": "int64", "emit": emit, "combine": MIN,
        "update": near, "frontier": True,
    }  # fmt: skip
    return Combine("hops", **{**given, **options})


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize(
    ("seeds", "levels", "steps"),
    [([0], [0, 1, 1, 2, 99], 3), ([1, 3], [99, 0, 1, 0, 99], 2), ([5], [99, 99, 99, 99, 0, 99], 1), ([], [99] * 5, 0)],
)
def test_frontier(graph: Graph, device: str, seeds: list[int], levels: list[int], steps: int) -> None:
    outcome = run(hops(), graph, device, seeds=seeds)
    assert values(outcome) == levels
    assert outcome.steps == steps
    assert not np.asarray(outcome.front).any()


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_all_but_the_seeds_are_active(graph: Graph, device: str) -> None:
    def others(v, p):
        return v.number, v.seed == 0

    def once(v, total, p):
        return total, False

    program = hops(reads=("seed", "number"), init=others, combine=SUM, update=once)
    assert values(run(program, graph, device, seeds=[2])) == [0, 6, 1, 3, 4]


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_a_run_goes_on_from_vectors(graph: Graph, device: str) -> None:
    first = run(hops(), graph, device, seeds=[0], until=iterations(1))
    assert values(first) == [0, 1, 1, 99, 99]
    assert np.asarray(first.front).tolist() == [0b110]
    x = first.state["x"].copy()
    again = run(hops(), graph, device, vectors={"x": x}, active=first.front)
    assert x.tolist() == values(again) == [0, 1, 1, 2, 99]


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_first_takes_the_lowest_neighbour(graph: Graph, device: str) -> None:
    def unset(v, p):
        return -1

    def who(v, number, p):
        return np.int64(number)

    found = run(wide(init=unset, message=NUMBER, emit=None, combine=FIRST, update=who), graph, device)
    assert values(found)[1:4] == [0, 0, 2]


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_argmin(graph: Graph, device: str) -> None:
    def mine(v, p):
        return pair(5 - v.x % 2, v.number)

    def heavier(message, e, p):
        return pair(pair_value(message) + np.uint32(e.weight), pair_number(message))

    def update(v, word, p):
        return np.int64(pair_value(word)) * 100 + np.int64(pair_number(word))

    program = wide(message="uint64", emit=mine, edge=heavier, columns=("weight",), combine=ARGMIN, update=update)
    assert values(run(program, graph, device))[1:4] == [1400, 2501, 3402]


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_a_monoid_of_ones_own(graph: Graph, device: str) -> None:
    def times(a, b):
        return a * b

    product = Monoid("product", times, 1)
    assert values(run(wide(combine=product), graph, device)) == [1, 16, 6, 3, 1]


# ---- lanes and vectors


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_lanes(graph: Graph, device: str) -> None:
    def lane(v, p):
        return np.int64(v.number) + 1 if v.lane == 0 else np.int64(v.lane)

    def tally(v, p):
        return v.x

    def update(v, total, p):
        return total + 1000 * np.int64(p.tally)

    found = run(wide(reads=("number", "lane"), init=lane, lanes=3), graph, device)
    assert found.state["x"].shape == (5, 3)
    assert found.state["x"].T.tolist() == [[0, 9, 6, 3, 0], [0, 3, 3, 1, 0], [0, 6, 6, 2, 0]]
    program = wide(reads=("number", "lane"), init=lane, lanes=2, tally=tally, update=update)
    assert values(run(program, graph, device))[0] == [26000, 26000]  # 1 + 2 + 3 + 4 + 5 + 5, and six ones


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_reads(tmp_path: Path, device: str) -> None:
    def degrees(v, p):
        return 100 * v.size + 10 * np.int64(v.out_degree) + np.int64(v.in_degree)

    vertices = {"id": np.arange(6), "size": np.arange(6)}
    graph = build(tmp_path / "g.pen", vertices=vertices)
    program = wide(reads=("size", "out_degree", "in_degree"), init=degrees)
    assert values(run(program, graph, device, until=lambda *_: True))[:4] == [20, 113, 223, 321]
    given = np.array([7, 7, 7, 7, 7])
    found = run(wide(reads=("size",), init=lambda v, p: v.size), graph, "reference", vectors={"size": given})
    assert values(found) == [0, 21, 21, 7, 0]


# ---- the other forms


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize(("along", "sums"), [("out", [0, 9, 6, 3, 0]), ("both", [5, 12, 13, 7, 0])])
def test_row(graph: Graph, device: str, along: Any, sums: list[int]) -> None:
    def row(v, messages, p):
        return messages.sum() + 100 * messages.size

    program = Row("row", {"x": "int64"}, own, ("number",), along=along, message="int64", emit=emit, row=row)
    counts = {"out": [0, 3, 3, 1, 0], "both": [2, 4, 5, 3, 0]}[along]
    assert values(run(program, graph, device)) == [s + 100 * c for s, c in zip(sums, counts, strict=True)]


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_sweep(graph: Graph, device: str) -> None:
    def nothing(v, p):
        return 0

    def arc(u, v, e, state, p):
        atomic_add(state.x, v, e.weight * p.factor)

    def vertex(u, state, p):
        state.x[u] += 1

    program = Sweep("sweep", {"x": "int64"}, nothing, params={"factor": 2}, columns=("weight",), arc=arc, vertex=vertex)
    assert values(run(program, graph, device))[:4] == [1, 281, 221, 61]


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("undirected", [False, True])
def test_pair(tmp_path: Path, device: str, undirected: bool) -> None:
    def nothing(v, p):
        return 0

    def corner(arcs, p):
        return arcs

    def update(v, total, p):
        return np.int64(total) * 10 + np.int64(v.neighbours)

    # Two triangles, 0 1 2 and 0 1 3, with a parallel arc and a loop that do not count.
    edges = [(0, 1, 1), (0, 1, 1), (1, 2, 1), (2, 0, 1), (1, 3, 1), (1, 1, 1), (3, 0, 1)]
    graph = build(tmp_path / "g.pen", edges, undirected=undirected)
    program = Pair("pair", {"x": "int64"}, nothing, ("neighbours",), corner=corner, update=update)
    outcome = run(program, graph, device)
    assert outcome.totals["triangles"] == 2
    arcs = 2 if undirected else 1  # between any two corners
    assert values(outcome)[:4] == [arcs * 20 + 3, arcs * 20 + 3, arcs * 10 + 2, arcs * 10 + 2]


def test_large_graphs_are_refused(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.engine.reference.arcs.MOST", 5)
    with pytest.raises(UsageError, match="small graphs, at most 5 arcs"):
        run(wide(), graph)


def test_figures_of_supersteps(graph: Graph) -> None:
    stats: Mapping[str, Any] = pk.run("bfs", graph, source=0, device="reference").stats
    assert [figures["frontier"] for figures in stats["supersteps"]] == [1, 2, 1]
