"""Programs of every kind on random graphs: wherever they run, they do what the reference executor does."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as pk
from penstock.config import settings as settings_of
from penstock.engine.engine import Engine
from penstock.engine.monoid import ANY, ARGMIN, FIRST, MAX, MIN, OR, pair, pair_number, pair_value
from penstock.engine.program import NUMBER, Combine, iterations
from penstock.graph import Graph
from places import PLACES, at

# ---- programs


def init(v, p):
    x = np.int64(v.number) * 7 % 31 + np.int64(v.seed) * 3
    return x, np.int64(0)


def init_some(v, p):
    x = np.int64(v.number) * 7 % 31 + np.int64(v.seed) * 3
    return x, np.int64(0), v.seed > 0 or np.int64(v.number) % 4 == 1


def init_lane(v, p):
    return np.int64(v.number) * 7 % 31 + np.int64(v.lane) * 5, np.int64(0)


def init_some_lanes(v, p):
    x = np.int64(v.number) * 7 % 31 + np.int64(v.lane) * 5
    return x, np.int64(0), (np.int64(v.number) + np.int64(v.lane)) % 4 == 1


def emit(v, p):
    return v.x + p.step


def emit_small(v, p):
    return v.x % 3 == 0


def emit_step(v, p):
    return p.step + 1


def emit_pair(v, p):
    return pair(v.x, v.number)


def weighed(message, e, p):
    return message * e.weight + e.hops


def weighed_pair(message, e, p):
    return pair(pair_value(message) + np.uint32(e.hops), pair_number(message))


def update(v, total, p):
    return (v.x * 3 + np.int64(total) % 1009) % 251, v.steps + 1


def update_some(v, total, p):
    x = (v.x * 3 + np.int64(total) % 1009) % 251
    return x, v.steps + p.step + 1, x % 3 != 0


def update_lower(v, total, p):
    x = min(v.x, np.int64(total))
    return x, v.steps + 1, x < v.x


def wants(v, p):
    return v.x % 4 != 2


def tally(v, p):
    return v.x


def with_tally(v, total, p):
    return (v.x + np.int64(total) + np.int64(p.tally)) % 251, v.steps + 1


def change(v, new, p):
    return abs(new[0] - v.x)


def init_real(v, p):
    return 1.0 / (1.0 + v.number)


def emit_real(v, p):
    return v.x / (1.0 + v.out_degree)


def edge_real(message, e, p):
    return message * (1.0 + e.weight)


def update_real(v, total, p):
    return 0.5 * v.x + 0.25 * total + 0.001 * v.in_degree + p.more + 0.0001 * p.tally


def tally_real(v, p):
    return v.x


def change_real(v, new, p):
    return abs(new - v.x)


WHOLE: dict[str, Any] = {"state": {"x": "int64", "steps": "int64"}, "reads": ("number", "seed"), "init": init}
SOME: dict[str, Any] = {**WHOLE, "init": init_some, "update": update_some, "frontier": True}
LANES: dict[str, Any] = {**WHOLE, "reads": ("number", "lane"), "init": init_lane, "lanes": 3}
SOME_LANES: dict[str, Any] = {**LANES, "init": init_some_lanes, "update": update_some, "frontier": True}
REAL: dict[str, Any] = {
    "state": {"x": "float64"},
    "reads": ("number", "out_degree", "in_degree"),
    "params": {"more": 0.125},
    "init": init_real,
    "emit": emit_real,
    "update": update_real,
}

PROGRAMS = {
    "sum": Combine("sum", **WHOLE, message="int64", emit=emit, update=with_tally, tally=tally, change=change),
    "sum, narrow": Combine("narrow", **WHOLE, along="in", message="uint8", emit=emit, update=update),
    "sum, wanted, weighed": Combine(
        "wanted", **WHOLE, along="both", columns=("weight", "hops"), message="int16", contribution="int64",
        emit=emit, edge=weighed, update=update, wants=wants, change=change, change_by=MAX,
    ),
    "sum, frontier": Combine("some", **SOME, message="int64", emit=emit, change=change),
    "sum, frontier, narrow, against": Combine("narrow", **SOME, along="in", message="uint8", emit=emit),
    "sum, frontier, wanted, both": Combine(
        "wanted", **SOME, along="both", columns=("hops",), message="int64", emit=emit, wants=wants
    ),
    "min": Combine("min", **WHOLE, message="int32", emit=emit, combine=MIN, update=update, along="in"),
    "min, frontier": Combine(
        "lower", **{**SOME, "update": update_lower}, columns=("weight", "hops"), message="int64", emit=emit,
        edge=weighed, combine=MIN,
    ),
    "max, frontier, wanted": Combine("max", **SOME, message="int32", emit=emit, combine=MAX, wants=wants, along="both"),
    "or, frontier": Combine("or", **SOME, message="uint16", emit=emit, combine=OR),
    "or of bools": Combine("bools", **WHOLE, message="bool", emit=emit_small, combine=OR, update=update),
    "or of bools, frontier": Combine("bools", **SOME, message="bool", emit=emit_small, combine=OR, along="in"),
    "any, frontier": Combine("any", **SOME, message="int64", emit=emit_step, combine=ANY, wants=wants),
    "first": Combine("first", **WHOLE, message=NUMBER, combine=FIRST, update=update),
    "first, frontier": Combine("first", **SOME, message=NUMBER, combine=FIRST, wants=wants),
    "first, frontier, both": Combine("first", **SOME, message=NUMBER, combine=FIRST, along="both"),
    "argmin, frontier": Combine(
        "argmin", **SOME, columns=("hops",), message="uint64", emit=emit_pair, edge=weighed_pair, combine=ARGMIN
    ),
    "lanes": Combine("lanes", **LANES, message="int64", emit=emit, update=with_tally, tally=tally, change=change),
    "lanes, weighed, both": Combine(
        "lanes", **LANES, along="both", columns=("weight", "hops"), message="int32", contribution="int64", emit=emit,
        edge=weighed, combine=MAX, update=update, wants=wants, change=change, change_by=MAX,
    ),
    "lanes, frontier": Combine("lanes", **SOME_LANES, message="int64", emit=emit, wants=wants, change=change),
    "lanes, frontier, or": Combine("lanes", **SOME_LANES, message="uint8", emit=emit, combine=OR, along="in"),
    "lanes, numbers": Combine("lanes", **LANES, message=NUMBER, combine=MIN, update=update),
    "real": Combine(
        "real", **REAL, columns=("weight",), message="float64", edge=edge_real, tally=tally_real, change=change_real
    ),
    "real, narrow": Combine("real", **{**REAL, "state": {"x": "float32"}}, along="both", message="float32"),
}  # fmt: skip
SLOW = (
    "sum, narrow", "sum, frontier, wanted, both", "min", "or, frontier", "or of bools", "first",
    "first, frontier, both", "lanes, frontier, or",
)  # fmt: skip
"""A program takes seconds to compile for all places: of each of these, the others have the parts."""


# ---- graphs


@dataclass(frozen=True)
class Edges:
    """What a store is built from, and from which vertices a program starts."""

    ends: list[tuple[int, int]]
    hub: int
    """So many parallel arcs more of vertex 0, half of them each way: several pages of one vertex."""
    kind: str
    seeds: list[int]

    def build(self, path: Path) -> Graph:
        around = [(0, k % 20) if k % 2 else (k % 20, 0) for k in range(self.hub)]
        ends = np.array([*self.ends, *around], np.int64).reshape(-1, 2)
        place = np.arange(len(ends))
        return pk.ingest(
            {"source": ends[:, 0], "target": ends[:, 1], "weight": place % 5 - 1, "hops": (place % 3).astype(np.uint8)},
            path,
            vertices={"id": np.arange(24)},
            undirected=self.kind == "undirected",
            merge={"weight": "sum", "hops": "max"} if self.kind == "undirected" else None,
            incoming=self.kind != "outgoing",
            page_size=4096,
            allow_empty=True,
            memory_limit="64MB",
        )


def edges(kinds: tuple[str, ...]) -> st.SearchStrategy[Edges]:
    vertex = st.integers(0, 21)
    return st.builds(
        Edges,
        st.lists(st.tuples(vertex, vertex), max_size=70),
        st.sampled_from([0, 0, 2500]),
        st.sampled_from(kinds),
        st.lists(st.integers(0, 23), max_size=3, unique=True),
    )


_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("executors")


@contextmanager
def built(edges: Edges, folder: Path) -> Iterator[Graph]:
    from penstock.store.draft import remove_store

    path = folder / f"{next(_NUMBERS)}.pen"
    with edges.build(path) as graph:
        yield graph
    remove_store(path)


# ---- the property


def outcome(graph: Graph, program: Combine, seeds: list[int], **chosen: Any) -> dict[str, Any]:
    """What a run leaves, as plain values."""
    numbers = [graph.store.ids.number(seed) for seed in seeds]
    with Engine(graph.store, settings_of(**chosen)) as engine:
        found = engine.run(program, seeds=numbers, until=iterations(3))
        return {
            **{name: values.tolist() for name, values in found.state.items()},
            "steps": found.steps,
            "change": found.change,
            "front": np.asarray(found.front).tolist() if program.frontier else None,
        }


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in PROGRAMS]
)
@settings(max_examples=5)
@given(data=st.data())
def test_all_executors_agree(folder: Path, name: str, data: st.DataObject) -> None:
    program = PROGRAMS[name]
    kinds = ("directed", "undirected", "outgoing") if program.along == "out" else ("directed", "undirected")
    chosen = data.draw(edges(kinds))
    with built(chosen, folder) as graph:
        expected = outcome(graph, program, chosen.seeds, device="reference")
        for place in PLACES:
            found = at(place, lambda **options: outcome(graph, program, chosen.seeds, **options))
            for part, value in expected.items():
                assert found[part] == nearly(name, part, value), f"{part} of {name} in {place}"


def nearly(name: str, part: str, value: Any) -> Any:
    """Whole numbers are equal, real ones near: sums may be taken in any order."""
    if not name.startswith("real"):
        return value
    return pytest.approx(value, rel=1e-4 if "narrow" in name else 1e-12) if part in ("x", "change") else value
