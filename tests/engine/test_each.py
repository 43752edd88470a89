"""Programs that see each vertex by itself: the same on every executor. On a simulated GPU it is
tests/gpu/simulated_programs.py that asks the same, on a real one tests/gpu/test_gpu_near.py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as pk
from penstock.algorithms.shared import Shared
from penstock.config import settings
from penstock.engine.cpu import each as on_cpu
from penstock.engine.cpu import parts
from penstock.engine.engine import Engine
from penstock.engine.monoid import MAX, MIN, OR, SUM
from penstock.engine.program import Combine, Each, iterations
from penstock.errors import UsageError

ACTIVE = 200


def graph(folder: Path) -> pk.Graph:
    """A ring, and vertices without arcs."""
    ring = np.arange(ACTIVE)
    return pk.ingest(
        {"source": ring, "target": (ring + 1) % ACTIVE}, folder / "ring.pen", page_size=4096,
        vertices={"id": np.arange(ACTIVE + 3)},
    )  # fmt: skip


def zero(v, p):
    return 0.0, np.uint32(0)


def emit(v, p):
    return v.x


def take(v, total, p):
    return total + 1.0, np.uint32(v.y + np.uint32(1))


STEP = Combine(
    name="step", state={"x": "float64", "y": "uint32"}, init=zero, message="float64", emit=emit, combine=SUM,
    update=take,
)  # fmt: skip
"""A program for vectors to be used by: x becomes that of the vertex before, plus 1."""
FIELDS = {"x": "float64", "y": "uint32"}


def even(v, p):
    return v.number % np.uint64(2) == np.uint64(0)


def y(v, p):
    return v.y


def x(v, p):
    return v.x


def larger(v, p):
    return v.x + p.by, np.uint32(v.y * np.uint32(2))


def degree(v, p):
    return v.out_degree + v.number


def below(v, p):
    return v.x < p.by


@contextmanager
def vectors(device: str, where: pk.Graph, **options: Any) -> Iterator[Shared]:
    """x counts up by 0.5, y down; a program has been run on both, so that on a GPU they lie there."""
    with Engine(where.store, settings(device=device, threads=2, **options)) as engine:
        shared = Shared(engine, [STEP], {"z": "int64"})
        shared["x"][:] = np.arange(ACTIVE + 1) / 2 - 1
        shared["y"][:] = ACTIVE - np.arange(ACTIVE + 1) - 1
        source = np.argsort(where.store.ids.values.read(0, ACTIVE))
        order = where.store.ids.values.read(0, ACTIVE).astype(np.int64)
        shared["x"][:ACTIVE] = shared["x"][:ACTIVE][source[(order + 1) % ACTIVE]].copy()
        engine.run(STEP, vectors=shared.of(STEP), slots=shared.slots, until=iterations(1))
        yield shared


def seen(shared: Shared, name: str) -> list[Any]:
    return shared[name][:ACTIVE].tolist()


def numbers(words: np.ndarray) -> list[int]:
    return np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist()


def check_chosen(device: str, folder: Path) -> None:
    with vectors(device, graph(folder)) as shared:
        wide = {"x": "float64", "y": "uint32"}
        found = shared.each(Each(name="even", state=wide, reads=("number",), chosen=even), members=True)
        assert (found.count, numbers(found.members)) == (ACTIVE // 2, list(range(0, ACTIVE, 2)))
        assert shared.each(Each(name="even", state=wide, reads=("number",), chosen=even)).members is None
        few = Each(name="few", state={"x": "float64"}, params={"by": 0.0}, chosen=below)
        values = np.array(seen(shared, "x"))
        for bound in (-10.0, 3.25, 1e9):
            assert numbers(shared.members(few, by=bound)) == np.flatnonzero(values < bound).tolist()
        assert numbers(shared.equal("y", int(shared["y"][7]))) == [7]
        assert shared.equal("y", 5).dtype == np.uint64


def check_measured(device: str, folder: Path) -> None:
    with vectors(device, graph(folder)) as shared:
        values, whole = np.array(seen(shared, "x")), np.array(seen(shared, "y"))
        for fold, by in ((SUM, np.sum), (MIN, np.min), (MAX, np.max)):
            real = Each(name="x", state={"x": "float64"}, measure=x, measured="float64", fold=fold)
            assert shared.each(real).total == by(values)
            some = Each(name="y", state={"y": "uint32"}, reads=("number",), chosen=even, measure=y, fold=fold)
            assert shared.each(some).total == by(whole[::2])
        none = Each(name="none", state={"x": "float64"}, params={"by": -99.0}, chosen=below, measure=x, fold=MIN)
        found = shared.each(none)
        assert (found.count, found.total) == (0, np.iinfo(np.int64).max)
        column = Each(name="degree", state={"y": "uint32"}, reads=("out_degree", "number"), measure=degree)
        assert shared.each(column).total == ACTIVE + ACTIVE * (ACTIVE - 1) // 2


def check_updated(device: str, folder: Path) -> None:
    with vectors(device, graph(folder)) as shared:
        before, whole = np.array(seen(shared, "x")), np.array(seen(shared, "y"))
        last = shared.value("x", ACTIVE)
        some = Each(
            name="larger", state=FIELDS, reads=("number",), params={"by": 1.0}, chosen=even, update=larger, measure=x,
            measured="float64",
        )  # fmt: skip
        assert shared.each(some, by=2.5).total == before[::2].sum()  # before it changes
        before[::2] += 2.5
        whole[::2] *= 2
        assert (seen(shared, "x"), seen(shared, "y")) == (before.tolist(), whole.tolist())
        assert shared.value("x", ACTIVE) == last  # stands for vertices without arcs


def check_between_programs(device: str, folder: Path) -> None:
    """What was changed by one of both is what the other sees."""
    with vectors(device, graph(folder)) as shared:
        expected = np.array(seen(shared, "x"))
        order = shared.engine.store.ids.values.read(0, ACTIVE).astype(np.int64)
        place = np.argsort(order)
        more = Each(name="more", state=FIELDS, params={"by": 1.0}, update=larger)
        run = shared.engine.run
        for turn in range(3):
            shared.each(more, by=0.25)
            shared.put("x", 3, 100.0 + turn)
            run(STEP, vectors=shared.of(STEP), slots=shared.slots, until=iterations(1))
            expected += 0.25
            expected[3] = 100.0 + turn
            expected = expected[place[(order - 1) % ACTIVE]] + 1.0
            assert shared.value("x", 5) == expected[5]
            assert seen(shared, "x") == expected.tolist()
        shared.fill("y", 9)
        run(STEP, vectors=shared.of(STEP), slots=shared.slots, until=iterations(1))
        shared.fill("y", 7)
        assert set(shared["y"].tolist()) == {7}
        shared["y"][2] = 1
        run(STEP, vectors=shared.of(STEP), slots=shared.slots, until=iterations(1))
        assert shared["y"][:4].tolist() == [8, 8, 2, 8]


CHECKS = [check_chosen, check_measured, check_updated, check_between_programs]


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("check", CHECKS)
def test_each_vertex(check: Any, device: str, tmp_path: Path) -> None:
    check(device, tmp_path)


def test_vectors_in_files_are_gone_over_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_cpu, "PIECE", 128)
    monkeypatch.setattr(parts, "_CHUNK", 64)
    monkeypatch.setattr(on_cpu, "in_file", lambda vector: True)
    for name, check in (("measured", check_measured), ("updated", check_updated), ("chosen", check_chosen)):
        (tmp_path / name).mkdir()
        check("cpu", tmp_path / name)


def test_no_vertex_has_arcs(tmp_path: Path) -> None:
    where = pk.ingest(
        {"source": np.zeros(0, int), "target": np.zeros(0, int)},
        tmp_path / "g.pen",
        vertices={"id": np.arange(3)},
        allow_empty=True,
    )
    for device in ("cpu", "reference"):
        with Engine(where.store, settings(device=device)) as engine:
            found = engine.each(
                Each(name="y", state={"y": "uint32"}, measure=y), {"y": np.ones(1, np.uint32)}, members=True
            )
            assert (found.count, found.total) == (0, 0)
            assert found.members is not None
            assert not found.members.any()


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    field = {"y": "uint32"}
    with pytest.raises(UsageError, match="does nothing"):
        Each(name="e", state=field)
    with pytest.raises(UsageError, match="int64 or float64"):
        Each(name="e", state=field, measure=y, measured="uint8")
    with pytest.raises(UsageError, match="SUM, MIN or MAX, not or"):
        Each(name="e", state=field, measure=y, fold=OR)
    with pytest.raises(UsageError, match="no arcs, no seeds"):
        Each(name="e", state=field, reads=("seed",), measure=y)
    with pytest.raises(UsageError, match="sees no arcs"):
        pk.run(Each(name="e", state=field, measure=y), graph(tmp_path))
