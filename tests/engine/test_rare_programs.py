"""What a user's program may do and none of ours does: the same on every executor. On a simulated GPU it is
tests/gpu/simulated_programs.py that asks the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as pk
from penstock.config import settings
from penstock.engine.engine import Engine
from penstock.engine.monoid import MAX, MIN, SUM, Monoid
from penstock.engine.program import Bucketed, Combine, Row
from penstock.errors import UsageError

DEVICES = ("cpu", "reference")


def graph(folder: Path, **options: Any) -> pk.Graph:
    ends = np.random.default_rng(1).integers(0, 12, (2, 40))
    arcs = {"source": ends[0], "target": ends[1]}
    return pk.ingest(arcs, folder / "g.pen", page_size=4096, duplicates="keep", **options)


def state(device: str, where: pk.Graph, program: Any, name: str = "x", **options: Any) -> list[Any]:
    with Engine(where.store, settings(device=device, threads=2)) as engine:
        return engine.run(program, **options).state[name].tolist()


def number(v, p):
    return np.uint32(v.number + 1)


def emit(v, p):
    return v.x


def take(v, total, p):
    return total


def differ(a, b):
    return a ^ b


def named(name: str) -> Combine:
    return Combine(
        name="own", state={"x": "uint32"}, reads=("number",), init=number, message="uint32", emit=emit,
        combine=Monoid(name, differ, 0), update=take, along="out",
    )  # fmt: skip


def check_a_name_makes_no_monoid(device: str, folder: Path) -> None:
    """Contributions that are pushed meet in one place, where what has a name of ours could be taken for it."""
    where = graph(folder, incoming=False)
    right = state("reference", where, named("exclusive or"))
    for name in ("sum", "min", "max", "or", "any", "first", "argmin"):
        assert state(device, where, named(name)) == right, name


def one(v, p):
    return 1.0


def shared(v, p):
    return v.x / max(v.out_degree, 1)


def moved(v, new, p):
    return abs(v.x - new) if v.seed > 0 else 0.0


def check_only_the_change_knows_seeds(device: str, folder: Path) -> None:
    program = Combine(
        name="watched", state={"x": "float64"}, reads=("seed", "out_degree"), init=one, message="float64", emit=shared,
        update=take, change=moved,
    )  # fmt: skip
    where = graph(folder)
    found = [pk.run(program, where, source=[0], max_iter=4, device=each) for each in (device, "reference")]
    values = [each.table.column("x").to_numpy() for each in found]
    np.testing.assert_allclose(values[0], values[1], rtol=1e-12)
    assert found[0].stats["residual"] == pytest.approx(found[1].stats["residual"], rel=1e-9)


def by_degree(v, p):
    return v.x / v.out_degree


def tallied(v, total, p):
    return p.tally


def check_a_tally_of_no_vertices(device: str, folder: Path) -> None:
    """A tally that is no number for a vertex without arcs, where there are none such."""
    program = Combine(
        name="tally", state={"x": "float64"}, reads=("out_degree",), init=one, message="float64", emit=emit,
        tally=by_degree, update=tallied,
    )  # fmt: skip
    ring = pk.ingest({"source": [0, 1, 2], "target": [1, 2, 0]}, folder / "ring.pen")
    with Engine(ring.store, settings(device=device)) as engine:
        assert engine.run(program, until=lambda step, change: step == 1).state["x"][:3].tolist() == [3.0] * 3


def place(v, p):
    return np.int64(v.seed)


def stay(v, total, p):
    return v.x


def check_a_seed_given_twice(device: str, folder: Path) -> None:
    """It is one seed, at its first place."""
    program = Combine(
        name="places", state={"x": "int64"}, reads=("seed",), init=place, message="int64", emit=emit, update=stay
    )
    where = graph(folder, vertices={"id": np.arange(15)})
    alone = where.vertices - 1
    with Engine(where.store, settings(device=device)) as engine:
        found = engine.run(program, seeds=[3, alone, 3, 1, alone], until=lambda step, change: step == 1)
    assert [int(found.state["x"][found.slots.of(seed)]) for seed in (3, alone, 1)] == [1, 2, 3]
    assert found.state["x"].sum() == 6


def hops(kind: str) -> Combine:
    far = np.dtype(kind).type(99)
    near = np.dtype(kind).type(0)

    def init(v, p):
        return (near, True) if v.seed > 0 else (far, False)

    def further(message, e, p):
        return message + 1

    def nearer(v, total, p):
        return min(v.x, total), total < v.x

    return Combine(
        name="hops", state={"x": kind}, reads=("seed",), params={"delta": 2.0}, init=init, message=kind, emit=emit,
        edge=further, combine=MIN, update=nearer, frontier=True, bucketed=Bucketed("x"),
    )  # fmt: skip


def check_buckets_of_narrow_numbers(device: str, folder: Path) -> None:
    where = graph(folder)
    for kind in ("uint16", "float32"):
        assert state(device, where, hops(kind), seeds=[2]) == state("reference", where, hops(kind), seeds=[2]), kind


CHECKS = [
    check_a_name_makes_no_monoid,
    check_only_the_change_knows_seeds,
    check_a_tally_of_no_vertices,
    check_a_seed_given_twice,
    check_buckets_of_narrow_numbers,
]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("device", DEVICES)
def test_rare_programs(check: Any, device: str, tmp_path: Path) -> None:
    check(device, tmp_path)


def row(v, messages, p):
    return v.x


def test_changes_add_up_in_two_ways() -> None:
    known: dict[str, Any] = {"name": "c", "state": {"x": "float64"}, "init": one, "message": "float64", "emit": emit}
    for monoid in (SUM, MAX):
        Combine(**known, update=take, change_by=monoid)
        Row(**known, row=row, change_by=monoid)
    with pytest.raises(UsageError, match="by SUM or MAX, not by min"):
        Combine(**known, update=take, change_by=MIN)
    with pytest.raises(UsageError, match="by SUM or MAX, not by sum"):
        Row(**known, row=row, change_by=Monoid("sum", differ, 0))
