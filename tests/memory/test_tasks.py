"""Tasks and segments: together every arc of every page once, in pieces of the right size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as pk
from penstock.memory import tasks
from penstock.memory.tasks import Tasks
from penstock.store.index import LARGE
from penstock.store.reader import Direction


def built(path: Path, source: Any, target: Any, **options: Any) -> Direction:
    edges = {"source": np.asarray(source, np.int64), "target": np.asarray(target, np.int64)}
    options = {"page_size": 4096, "allow_empty": True} | options
    return pk.ingest(edges, path / "g.pen", **options).store.direction("out")


def random(path: Path, seed: int = 0, **options: Any) -> Direction:
    """Degrees from none to several pages, in any order of the vertices."""
    rng = np.random.default_rng(seed)
    degrees = np.concatenate([rng.integers(0, 12, 3000), rng.integers(100, 900, 20), [1023, 1024, 1500, 5000]])
    source = np.repeat(rng.permutation(len(degrees)), degrees)
    return built(path, source, rng.integers(0, len(degrees), len(source)), **options)


def check(direction: Direction, found: Tasks, limit: int, segment: int) -> None:
    records = direction.records
    visits = np.zeros(direction.arcs, np.int64)
    owner = np.full(direction.arcs, -1, np.int64)
    seen = np.zeros(direction.store.active, np.int64)
    blocks = [direction.block(page) for page in range(len(direction))]
    for page, begin, count, width in found.tasks.tolist():
        assert records["kind"][page] != LARGE
        assert count > 0
        assert width in (1, 2, 4, 8, 16, 32)
        assert begin + count <= records["vertices"][page]
        block, base = blocks[page], int(records["first_arc"][page])
        seen[block.first_vertex + begin : block.first_vertex + begin + count] += 1
        for i in range(begin, begin + count):
            a, b = int(block.offsets[i]), int(block.offsets[i + 1])
            if b - a <= limit:
                visits[base + a : base + b] += 1
    for page, a, b, heavy in found.segments.tolist():
        assert 0 < b - a <= segment
        base = int(records["first_arc"][page])
        visits[base + a : base + b] += 1
        owner[base + a : base + b] = found.vertex[heavy]
    assert (visits == 1).all()
    small = np.concatenate([np.zeros(0, int), *(_vertices(records[p]) for p in np.flatnonzero(records["kind"] == 0))])
    assert np.flatnonzero(seen).tolist() == small.tolist()
    assert seen.max(initial=1) == 1
    degrees = direction.store.degree_column("out").read().astype(np.int64)[: direction.store.active]
    real = np.repeat(np.arange(len(degrees)), degrees)
    assert (owner[owner >= 0] == real[owner >= 0]).all()
    for name, start in (("tasks", found.task_start), ("segments", found.segment_start)):
        pages = getattr(found, name)[:, 0]
        assert start.tolist() == np.searchsorted(pages, np.arange(len(direction) + 1)).tolist()
    assert found.part_start.tolist() == np.searchsorted(found.segments[:, 3], np.arange(len(found.vertex) + 1)).tolist()
    assert (np.diff(found.vertex.astype(np.int64)) > 0).all()


def _vertices(record: np.void) -> np.ndarray:
    return np.arange(record["first_vertex"], record["first_vertex"] + record["vertices"]).astype(int)


@pytest.mark.parametrize("limit", [0, 7, 300, 1024, 1 << 20])
@pytest.mark.parametrize("order", ["degree", "input"])
def test_every_arc_is_in_one_task_or_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, order: str
) -> None:
    monkeypatch.setattr(tasks, "BLOCK", 32)
    monkeypatch.setattr(tasks, "HEAVY", limit)
    monkeypatch.setattr(tasks, "SEGMENT", 100)
    direction = random(tmp_path, limit, order=order)
    check(direction, tasks.cut(direction), limit, 100)


def test_degrees_are_read_a_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "HEAVY", 50)
    direction = random(tmp_path, order="input")
    whole = tasks.cut(direction)
    assert len(whole.vertex) > 20
    for most in (1, 700, 2500):
        monkeypatch.setattr(tasks, "_VERTICES", most)
        found = tasks.cut(direction)
        assert found.segments.tolist() == whole.segments.tolist()
        assert found.vertex.tolist() == whole.vertex.tolist()


@pytest.mark.parametrize("options", [{"undirected": True}, {"encoding": "logical6"}, {"page_size": 65536}])
def test_other_stores(tmp_path: Path, options: dict[str, Any]) -> None:
    direction = random(tmp_path, **options)
    check(direction, tasks.cut(direction), tasks.HEAVY, tasks.SEGMENT)


def test_no_edges_and_one_edge(tmp_path: Path) -> None:
    none = tasks.cut(built(tmp_path / "none", [], []))
    assert (none.tasks.shape, none.segments.shape) == ((0, 4), (0, 4))
    assert none.part_start.tolist() == none.task_start.tolist() == [0]
    one = tasks.cut(built(tmp_path / "one", [5], [5]))
    assert one.tasks.tolist() == [[0, 0, 1, 1]]


@pytest.mark.parametrize(("degree", "width", "count"), [(1, 1, 512), (8, 1, 64), (17, 2, 32), (64, 4, 8), (200, 16, 4)])
def test_wide_where_degrees_are_high(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, degree: int, width: int, count: int
) -> None:
    monkeypatch.setattr(tasks, "BLOCK", 32)
    vertices = 2048
    source = np.repeat(np.arange(vertices), degree)
    target = (source + 1 + np.tile(np.arange(degree), vertices)) % vertices
    found = tasks.cut(built(tmp_path, source, target, page_size=1 << 20))
    assert set(found.tasks[:, 3].tolist()) == {width}
    assert found.tasks[0, 2] == count
    assert found.tasks[0, 2] % (32 // width) == 0
