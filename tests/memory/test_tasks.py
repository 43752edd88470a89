"""Tasks and segments: together every arc of every page once, in pieces of the right size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.memory import tasks
from penstock.memory.tasks import Tasks
from penstock.memory.warps import walk
from penstock.store.index import LARGE, cut_pages
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


def of_means(direction: Any, found: Tasks) -> tuple[list[list[int]], list[int]]:
    """Tasks of all pages by the mean of each, and the numbers of uneven pages."""
    expected, uneven = [], []
    degrees = direction.store.degree_column(direction.name).read()
    for page, record in enumerate(direction.records):
        if record["kind"] == LARGE:
            continue
        own = degrees[_vertices(record)].astype(float)
        light = own[own <= found.limit]
        mean = light.mean() if len(light) else 0.0
        if light.max(initial=0) > max(16, 4 * mean):
            uneven.append(page)
        width = next((w for w in (2, 4, 8, 16) if mean <= 16 * w), 32) if mean > 16 else 1
        groups = found.block // width
        count = int(-(-16 * found.block // max(mean, 1)))
        count = -(-count // groups) * groups
        begins = range(0, len(own), count)
        expected += [[page, begin, min(count, len(own) - begin), width] for begin in begins]
    return expected, uneven


def steps(direction: Any, found: Tasks, cut: list[list[int]]) -> int:
    """Steps of warps over these tasks."""
    degrees = direction.store.degree_column(direction.name).read()
    light = np.where(degrees > found.limit, 0, degrees).astype(np.uint32)
    first, total = direction.records["first_vertex"].astype(int), 0
    for page, begin, count, width in cut:
        own = light[first[page] + begin : first[page] + begin + count]
        total += int(walk(own, np.uint64(width), np.uint64(32), np.uint64(found.block // 32))[0])
    return total


class Bare:
    """The degrees of a direction and its index; `reads` counts how often somebody asks for degrees."""

    name = "out"

    def __init__(self, degrees: np.ndarray, page_size: int) -> None:
        self.records, self.store, self.degrees, self.reads = cut_pages(degrees, 4, page_size), self, degrees, 0

    def degree_column(self, name: str) -> Bare:
        return self

    def read(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        self.reads += 1
        return self.degrees[start:stop]


DEGREES = st.lists(
    st.one_of(st.integers(0, 9), st.integers(0, 1100), st.tuples(st.integers(0, 300), st.integers(1, 90))), max_size=60
)
"""Of vertices one by one, or of many that have the same."""


@given(DEGREES, st.sampled_from([4096, 1 << 15]), st.sampled_from([0, 30, 1024, 1 << 20]))
def test_each_vertex_is_in_one_task_and_even_pages_are_cut_by_their_means(
    runs: list[int | tuple[int, int]], page_size: int, limit: int
) -> None:
    degrees = np.array([d for run in runs for d in ([run] if isinstance(run, int) else [run[0]] * run[1])], np.uint32)
    direction: Any = Bare(degrees, page_size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks, "BLOCK", 32)
        patch.setattr(tasks, "HEAVY", limit)
        found = tasks.cut(direction)
    expected, uneven = of_means(direction, found)
    cut, light = found.tasks.tolist(), np.where(degrees > limit, 0, degrees).astype(int)
    for page, record in enumerate(direction.records):
        own = [task for task in cut if task[0] == page]
        assert own == cut[found.task_start[page] : found.task_start[page + 1]]
        if page not in uneven:
            assert own == [task for task in expected if task[0] == page]
            continue
        assert [task[1] for task in own] == [0, *np.cumsum([task[2] for task in own])[:-1].tolist()]
        assert sum(task[2] for task in own) == record["vertices"]
        begins = [int(record["first_vertex"]) + task[1] for task in own]
        arcs = [light[begin : begin + task[2]].sum() + task[2] for begin, task in zip(begins, own, strict=True)]
        assert found.work[found.task_start[page] : found.task_start[page + 1]].tolist() == arcs


def test_pages_that_mix_degrees_take_few_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "BLOCK", 256)
    graph = pk.generate("kron", tmp_path / "g.pen", scale=13, undirected=True, order="input")
    direction = graph.store.direction("out")
    found = tasks.cut(direction)
    check(direction, found, tasks.HEAVY, tasks.SEGMENT)
    expected, uneven = of_means(direction, found)
    assert len(uneven) == len(direction)
    degrees = direction.store.degree_column("out").read()
    bound = 2 * int((-(-degrees[degrees <= tasks.HEAVY].astype(int) // 32)).sum())
    assert steps(direction, found, found.tasks.tolist()) < bound
    assert steps(direction, found, expected) > 2 * bound


@pytest.mark.parametrize("page_size", ["4KiB", "64KiB"])
def test_even_pages_have_the_tasks_of_their_means(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page_size: str
) -> None:
    monkeypatch.setattr(tasks, "BLOCK", 256)
    graph = pk.generate("kron", tmp_path / "g.pen", scale=15, undirected=True, page_size=page_size)
    direction = graph.store.direction("out")
    found = tasks.cut(direction)
    expected, uneven = of_means(direction, found)
    assert len(direction) > 50
    assert not uneven
    assert found.tasks.tolist() == expected


def test_of_even_pages_no_degrees_are_read() -> None:
    even: Any = Bare(np.repeat(np.arange(1000, 0, -1), 40).astype(np.uint32), 1 << 16)
    uneven: Any = Bare(np.tile([1, 2, 3, 500], 9999).astype(np.uint32), 1 << 16)
    for direction in (even, uneven):
        tasks.cut(direction)
    assert even.reads == 0
    assert uneven.reads > 0


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
    monkeypatch.setattr(tasks, "HEAVY", 300)
    direction = random(tmp_path, order="input")
    whole = tasks.cut(direction)
    assert len(whole.vertex) > 10
    assert len(of_means(direction, whole)[1]) > 2
    for most in (1, 700, 2500):
        monkeypatch.setattr(tasks, "_VERTICES", most)
        found = tasks.cut(direction)
        assert found.segments.tolist() == whole.segments.tolist()
        assert found.vertex.tolist() == whole.vertex.tolist()
        assert found.tasks.tolist() == whole.tasks.tolist()
        assert found.work.tolist() == whole.work.tolist()


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
