"""Sweeps: every arc once, with columns and atomics, wherever they run; and arcs left out where that is allowed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as pk
from engine.hub import hub
from penstock.engine.atomics import atomic_add, atomic_max, atomic_min, compare_and_swap, load
from penstock.engine.program import Sweep
from penstock.errors import DoesNotFit, ProgramError, UsageError
from places import at, everywhere


def init(v, p):
    return np.int64(0), np.int64(1 << 40), np.int64(-1), np.uint32(0)


def arc(u, v, e, state, p):
    atomic_add(state.total, v, np.int64(e.weight) * p.factor)
    atomic_min(state.least, v, np.int64(u))
    atomic_max(state.most, u, np.int64(v))
    while True:
        old = load(state.swaps, v)
        if compare_and_swap(state.swaps, v, old, old + np.uint32(1)):
            break


def vertex(u, state, p):
    state.total[u] += 1


SUMS = Sweep(
    name="sums",
    state={"total": "int64", "least": "int64", "most": "int64", "swaps": "uint32"},
    params={"factor": 3},
    columns=("weight",),
    init=init,
    arc=arc,
    vertex=vertex,
)


def arcs_of(graph: pk.Graph) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """By internal number."""
    parts = list(graph.edge_arrays(None, ["weight"], both_ways=True))
    return (
        np.concatenate([part[0] for part in parts]).astype(int),
        np.concatenate([part[1] for part in parts]).astype(int),
        np.concatenate([part[2]["weight"] for part in parts]).astype(int),
    )


def by_number(graph: pk.Graph, result: Any, name: str) -> np.ndarray:
    """A column by internal number, of the vertices with arcs."""
    values = np.empty(graph.vertices, int)
    values[graph.store.ids.order.read()] = result.table.column(name).to_numpy()
    return values[: graph.store.active]


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize("encoding", [None, "physical33"])
def test_every_arc_once(tmp_path: Path, undirected: bool, encoding: str | None) -> None:
    graph = hub(tmp_path / "g.pen", undirected, encoding=encoding)
    source, target, weight = arcs_of(graph)
    n = graph.store.active
    total = np.bincount(target, weight, n).astype(int) * 5 + 1
    least, most = np.full(n, 1 << 40), np.full(n, -1)
    np.minimum.at(least, target, source)
    np.maximum.at(most, source, target)
    names = ("memory", "disk", "smallest", "reference")
    for place, result in everywhere(lambda **chosen: pk.run(SUMS, graph, factor=5, **chosen), *names).items():
        for name, answer in (("total", total), ("least", least), ("most", most)):
            assert (by_number(graph, result, name) == answer).all(), (place, name)
        assert (by_number(graph, result, "swaps") == np.bincount(target, minlength=n)).all(), place


def test_against_the_arcs_and_both_ways(tmp_path: Path) -> None:
    graph = hub(tmp_path / "g.pen", False)
    source, target, _ = arcs_of(graph)
    n = graph.store.active
    into, out = np.bincount(target, minlength=n), np.bincount(source, minlength=n)
    for along, answer in (("in", out), ("both", into + out)):
        program = Sweep(**{**vars(SUMS), "along": along})
        for place in ("memory", "disk", "reference"):
            result = at(place, lambda program=program, **chosen: pk.run(program, graph, **chosen))
            assert (by_number(graph, result, "swaps") == answer).all(), (along, place)


# ---- sampling


def count(v, p):
    return np.int64(0), np.int64(0)


def visit(u, v, e, state, p):
    atomic_add(state.visits, u, 1)


def after(u, state, p):
    atomic_add(state.rounds, u, 1)


def choose(state, p):
    assert state.visits.max() <= 2
    return {"settled_below": len(state.visits) // 2}


def settled(u, state, p):
    return np.int64(u) < p.settled_below


VISITS = Sweep(
    name="visits",
    state={"visits": "int64", "rounds": "int64"},
    params={"settled_below": 0},
    init=count,
    arc=visit,
    vertex=after,
    sampled=2,
    between=choose,
    settled=settled,
)


def test_settled_vertices_are_left_out_in_memory(tmp_path: Path) -> None:
    graph = hub(tmp_path / "g.pen", True)
    degree = np.bincount(arcs_of(graph)[0], minlength=graph.store.active)
    half = np.arange(len(degree)) < len(degree) // 2
    result = at("memory", lambda **chosen: pk.run(VISITS, graph, **chosen))
    assert (by_number(graph, result, "visits") == np.where(half, np.minimum(degree, 2), degree)).all()
    assert (by_number(graph, result, "rounds") == 2).all()
    for place in ("disk", "reference"):
        result = at(place, lambda **chosen: pk.run(VISITS, graph, **chosen))
        assert (by_number(graph, result, "visits") == degree).all()
        assert (by_number(graph, result, "rounds") == 1).all()


def test_a_directed_graph_needs_both_directions_to_leave_out(tmp_path: Path) -> None:
    graph = hub(tmp_path / "g.pen", False)
    source, target, _ = arcs_of(graph)
    n = graph.store.active
    out, into = np.bincount(source, minlength=n), np.bincount(target, minlength=n)
    result = at("memory", lambda **chosen: pk.run(VISITS, graph, **chosen))
    assert (by_number(graph, result, "visits") == out).all()
    half = np.arange(n) < n // 2
    both = np.where(half, np.minimum(out, 2) + np.minimum(into, 2), out + into)
    result = pk.run(Sweep(**{**vars(VISITS), "between": lambda state, p: {"settled_below": n // 2}}), graph.load())
    assert (by_number(graph, result, "visits") == both).all()


def test_an_edge_once(tmp_path: Path) -> None:
    graph = hub(tmp_path / "g.pen", True)
    source, target, _ = arcs_of(graph)
    n = graph.store.active
    for sampled in (0, 2):
        program = Sweep(**{**vars(VISITS), "once": True, "settled": None, "sampled": sampled})
        for place in ("memory", "disk"):
            visits = by_number(graph, at(place, lambda program=program, **s: pk.run(program, graph, **s)), "visits")
            assert (visits >= np.bincount(source[source >= target], minlength=n)).all()
            if place == "disk" or not sampled:
                assert visits.sum() == (source >= target).sum()


# ---- refusals


def wrong(u, v, e, state, p):
    state.total[u] = e.colour


def test_refusals(tmp_path: Path) -> None:
    graph = hub(tmp_path / "g.pen", False)
    with pytest.raises(UsageError, match="arc function"):
        Sweep(name="none", state={"x": "int64"}, init=init)
    with pytest.raises(UsageError, match="sample"):
        Sweep(**{**vars(SUMS), "sampled": -1})
    with pytest.raises(ProgramError, match=r"test_sweep\.py:\d+: arc of program sums"):
        pk.run(Sweep(**{**vars(SUMS), "arc": wrong}), graph)
    with pytest.raises(DoesNotFit, match="state of sums"):
        pk.run(SUMS, graph, memory_limit="1MB")


def test_atomics_in_plain_python() -> None:
    values = np.array([3, 5])
    assert (atomic_add(values, 0, 4), atomic_min(values, 1, 2), atomic_max(values, 1, 9)) == (3, 5, 2)
    assert not compare_and_swap(values, 0, 1, 0)
    assert compare_and_swap(values, 0, 7, 1)
    assert (load(values, 0), load(values, 1)) == (1, 9)
