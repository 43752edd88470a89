"""Pages on a simulated GPU: every arc of every page is visited exactly once, wherever the pages come from."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock as pk
from penstock.config import settings
from penstock.errors import DamagedStore, DoesNotFit
from penstock.memory import gpu, tasks
from penstock.memory.frames import DevicePages
from penstock.memory.ledger import Ledger
from penstock.observe.events import recording
from penstock.store.reader import Direction

from . import arc_kernels

PAGE = 4096
OVER_TASKS, OVER_SEGMENTS = gpu.cuda.jit(arc_kernels.tasks), gpu.cuda.jit(arc_kernels.segments)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "BLOCK", 8)
    monkeypatch.setattr(tasks, "HEAVY", 100)
    monkeypatch.setattr(tasks, "SEGMENT", 256)


def built(path: Path, source: Any, target: Any, **options: Any) -> Direction:
    """Arcs with columns of several types; page size and encoding may be given."""
    source, target = np.asarray(source, np.int64), np.asarray(target, np.int64)
    rng = np.random.default_rng(5)
    table = {"source": source, "target": target}
    for name, dtype in (("a", np.float64), ("b", np.int16), ("c", np.float32), ("d", np.uint8)):
        table[name] = rng.integers(1, 100, len(source)).astype(dtype)
    options = {"page_size": PAGE, "allow_empty": True} | options
    return pk.ingest(pa.table(table), path / "g.pen", **options).store.direction("out")


@pytest.fixture(scope="module", autouse=True)
def made(tmp_path_factory: pytest.TempPathFactory) -> None:
    STORES.clear()
    FOLDER.append(tmp_path_factory.mktemp("stores"))


FOLDER: list[Path] = []
STORES: dict[Any, Direction] = {}


def mixed(path: Path | None = None, **options: Any) -> Direction:
    """One vertex of several pages, two that are heavy in small pages, and vertices of one arc or none. The same store
    for all tests that do not ask for one of their own."""
    key = tuple(options.items())
    if path is None and key in STORES:
        return STORES[key]
    source = np.concatenate([np.zeros(1100), np.full(300, 1), np.full(120, 2), np.arange(3, 3300)])
    target = np.random.default_rng(3).integers(0, 3400, len(source))
    found = built(path or FOLDER[-1] / str(len(STORES)), source, target, **options)
    if path is None:
        STORES[key] = found
    return found


class Count:
    """Runs the kernels and keeps what they found."""

    def __init__(self, pages: DevicePages) -> None:
        self.pages, self.direction = pages, pages.direction
        vertices = max(1, self.direction.store.active)
        self.visits = np.zeros(max(1, self.direction.arcs), np.int64)
        self.neighbours, self.vertices = np.zeros(vertices, np.int64), np.zeros(vertices, np.int64)
        self.values = np.zeros(vertices, np.float64)
        self.first_arc = self.direction.records["first_arc"].astype(np.uint64)
        self.launches: list[tuple[int, int]] = []

    def __call__(self, stream: gpu.Stream, order: Any, count: int, segment_order: Any, segments: int) -> None:
        p = self.pages
        self.launches.append((count, segments))
        column, stride = (p.columns[-1], int(p.strides[len(p.columns) - 1])) if p.columns else (np.ones(1 << 20), 0)
        if count:
            OVER_TASKS[count, p.work.block, stream.numba](
                order, p.tasks, p.words, p.page_words, column, stride, p.first_of, p.vertices_of, p.frame_of,
                self.first_arc, p.limit, self.visits, self.neighbours, self.values, self.vertices,
            )  # fmt: skip
        if segments:
            OVER_SEGMENTS[segments, p.work.block, stream.numba](
                segment_order, p.segments, p.words, p.page_words, column, stride, p.heavy, p.frame_of,
                self.first_arc, self.visits, self.neighbours, self.values,
            )  # fmt: skip

    def check(self, wanted: Sequence[int] | np.ndarray) -> None:
        """Every arc of these pages once, no other, and what the pages really hold."""
        direction, records = self.direction, self.direction.records
        visits, neighbours = np.zeros_like(self.visits), np.zeros_like(self.neighbours)
        values, vertices = np.zeros_like(self.values), np.zeros_like(self.vertices)
        for page in np.asarray(wanted).tolist():
            block, first = direction.block(page), int(records["first_arc"][page])
            visits[first : first + len(block.neighbours)] += 1
            owner = block.first_vertex + np.repeat(np.arange(len(block.offsets) - 1), np.diff(block.offsets))
            np.add.at(neighbours, owner, block.neighbours.astype(np.int64) + 1)
            if records["kind"][page] == 0:
                vertices[block.first_vertex : block.first_vertex + len(block.offsets) - 1] += 1
            if self.pages.names:
                np.add.at(values, owner, direction.read_column(self.pages.names[-1], page).astype(np.float64))
        assert self.visits.tolist() == visits.tolist()
        assert self.neighbours.tolist() == neighbours.tolist()
        assert self.vertices.tolist() == vertices.tolist()
        if self.pages.names:
            assert self.values.tolist() == values.tolist()


def opened(
    direction: Direction, columns: Sequence[str] = (), *, frames: int | None = None, host: int = 1 << 30, **options: Any
) -> tuple[DevicePages, Ledger, Ledger]:
    """Pages in device memory for so many frames, or for all of them."""
    room = DevicePages.needed(direction, columns)
    if frames is not None:
        room -= (len(direction) - frames) * DevicePages.frame_bytes(direction, columns)
    device, host_ledger = Ledger(room), Ledger(host)
    pages = DevicePages(direction, columns, device, host_ledger, settings(threads=2), room=room, **options)
    return pages, device, host_ledger


def visited(pages: DevicePages, wanted: np.ndarray | None = None) -> Count:
    count = Count(pages)
    pages.visit(wanted, count)
    count.check(np.arange(len(pages.direction)) if wanted is None else wanted)
    return count


def closed(pages: DevicePages, device: Ledger, host: Ledger) -> None:
    if pages._whole is not None:
        assert pages._host.peak <= pages._host.limit
        assert host.used == pages._host.used or not pages._loaded
    pages.close()
    assert device.used == host.used == 0
    assert device.peak <= device.limit
    assert host.peak <= host.limit


def test_all_pages_on_the_device_take_one_launch() -> None:
    direction = mixed()
    pages, device, host = opened(direction, ["a"])
    assert not pages.resident
    assert len(visited(pages).launches) == 1
    assert pages.resident
    copied = pages.stats["bytes_copied"]
    assert pages.stats["bytes_read"] >= len(direction) * PAGE
    assert len(visited(pages, np.array([0, 3, 5])).launches) == 1
    assert pages.stats["bytes_copied"] == copied
    closed(pages, device, host)


@pytest.mark.parametrize("encoding", ["logical6", "physical22", "physical33"])
@pytest.mark.parametrize(("frames", "room"), [(None, None), (2, None), (2, 80_000)])
def test_other_encodings_are_plain_on_the_device(encoding: str, frames: int | None, room: int | None) -> None:
    pages, device, host = opened(mixed(encoding=encoding), ["b"], frames=frames, host_room=room)
    assert pages.source == ("device" if frames is None else "host" if room is None else "disk")
    visited(pages)
    closed(pages, device, host)


@pytest.mark.parametrize("columns", [(), ("c",), ("a", "c", "b", "d")])
def test_columns_lie_beside_their_pages(columns: tuple[str, ...]) -> None:
    direction = mixed()
    for frames in (None, 5):
        pages, device, host = opened(direction, columns, frames=frames)
        visited(pages)
        closed(pages, device, host)


# Any two of the three in all ways; all three of them take twice the time.
PAIRS = [(1, "host", "resident"), (2, "host", "lru"), (7, "host", "resident")]
PAIRS += [(1, "disk", "lru"), (2, "disk", "resident"), (7, "disk", "lru")]


@pytest.mark.parametrize(
    ("frames", "place", "policy"),
    [
        pytest.param(*chosen, marks=() if chosen in PAIRS else pytest.mark.slow)
        for chosen in product((1, 2, 7), ("host", "disk"), ("resident", "lru"))
    ],
)
def test_streamed_pages_are_all_visited(policy: str, place: str, frames: int) -> None:
    direction = mixed()
    limit = None if place == "host" else 120_000
    pages, device, host = opened(direction, ["a", "b"], frames=frames, policy=policy, host_room=limit)
    assert pages.source == place
    rng = np.random.default_rng(frames)
    for k in range(2):
        visited(pages)
        wanted = np.sort(rng.choice(len(direction), len(direction) // 2, replace=False))
        visited(pages, wanted)
        visited(pages, wanted[k : k + 1])
    assert not pages.resident
    closed(pages, device, host)


def test_a_ring_of_two_pages_is_two_streams() -> None:
    direction = mixed()
    pages, device, host = opened(direction, frames=2)
    assert (pages.kept, len(pages._lanes)) == (0, 2)
    with recording() as events:
        found = visited(pages)
    assert len(found.launches) == len(direction)
    assert {"stream 0", "stream 1", "stream of copies"} <= set(events.lanes)
    assert {each.name for each in events.slices if each.lane == "stream of copies"} == {"copy"}
    assert pages.stats["bytes_copied"] == len(direction) * PAGE
    closed(pages, device, host)


def test_kept_pages_are_copied_once_and_launched_together() -> None:
    direction = mixed()
    pages, device, host = opened(direction, frames=6)
    kept = pages.kept
    assert kept == 2
    visited(pages)
    before = pages.stats["bytes_copied"]
    found = visited(pages)
    assert pages.stats["bytes_copied"] - before == (len(direction) - kept) * PAGE
    assert len(found.launches) == 1 + len(direction) - kept
    assert found.launches[0][0] == pages.work.task_start[kept]
    closed(pages, device, host)


@pytest.mark.parametrize("place", ["host", "disk"])
def test_the_least_recently_used_page_goes(place: str) -> None:
    direction = mixed()
    limit = None if place == "host" else 60_000
    pages, device, host = opened(direction, frames=6, policy="lru", streams=2, host_room=limit)
    assert (pages.source, pages.kept) == (place, 4)
    for page in (0, 1, 2, 3, 0, 4):
        visited(pages, np.array([page]))
    assert np.flatnonzero(pages._shelf.there).tolist() == [0, 2, 3, 4]
    hits = pages.stats["hits"]
    visited(pages, np.array([0, 1, 2, 3, 4]))  # those that are here are not thrown out for the one that is not
    assert pages.stats["hits"] - hits == 4
    visited(pages)
    closed(pages, device, host)


def test_batches_hold_several_pages() -> None:
    direction = mixed()
    pages, device, host = opened(direction, frames=len(direction) - 1, streams=1, batch=3 * PAGE)
    assert pages._per == 3
    assert len(visited(pages).launches) < len(direction)
    visited(pages, np.arange(1, len(direction)))
    closed(pages, device, host)


@pytest.mark.parametrize("frames", [None, 1])
def test_a_graph_of_one_vertex(tmp_path: Path, frames: int | None) -> None:
    pages, device, host = opened(built(tmp_path, [7], [7]), ["a"], frames=frames)
    visited(pages)
    visited(pages, np.zeros(0, np.int64))
    closed(pages, device, host)


def test_a_graph_without_edges(tmp_path: Path) -> None:
    pages, device, host = opened(built(tmp_path, [], []), ["a"])
    count = Count(pages)
    pages.visit(None, count)
    pages.visit(np.zeros(0, np.int64), count)
    assert count.launches == []
    assert pages.resident
    closed(pages, device, host)


def test_too_little_memory_is_said_with_the_least_that_is_enough() -> None:
    direction = mixed()
    device, host = Ledger(1 << 30), Ledger(1 << 30)
    with pytest.raises(DoesNotFit, match="gpu_memory_limit") as error:
        DevicePages(direction, (), device, host, settings(threads=2), room=5_000)
    assert device.used == host.used == 0
    pages = DevicePages(direction, (), device, host, settings(threads=2), room=error.value.needed)
    visited(pages)
    closed(pages, device, host)


def test_a_page_that_does_not_exist() -> None:
    pages, device, host = opened(mixed())
    with pytest.raises(ValueError, match="pages 3 to 999"):
        pages.visit(np.array([3, 999]), Count(pages))
    closed(pages, device, host)


@pytest.mark.parametrize("frames", [None, 3])
@pytest.mark.parametrize("place", ["host", "disk"])
def test_a_damaged_page_is_refused_and_nothing_stays_reserved(tmp_path: Path, frames: int | None, place: str) -> None:
    direction = mixed(tmp_path)
    with direction.path("pages", 0).open("r+b") as file:
        file.seek(6 * PAGE + 5)
        file.write(b"x")
    limit = None if place == "host" else 60_000
    pages, device, host = opened(direction, frames=frames, host_room=limit, policy="lru")
    with pytest.raises(DamagedStore, match="page 6"):
        pages.visit(None, Count(pages))
    if pages.source == "disk":
        visited(pages, np.arange(6))
    closed(pages, device, host)


@pytest.mark.parametrize("place", ["host", "disk"])
def test_a_launch_that_fails_leaves_no_page_where_it_is_not(place: str) -> None:
    direction = mixed()
    limit = None if place == "host" else 60_000
    pages, device, host = opened(direction, frames=8, host_room=limit, policy="lru")

    def fails(*_: Any) -> None:
        raise RuntimeError("no")

    for wanted in (np.arange(4), None):
        with pytest.raises(RuntimeError, match="no"):
            pages.visit(wanted, fails)
        visited(pages)
    closed(pages, device, host)


def in_place(pages: DevicePages, wanted: Sequence[int], cost: int | Sequence[int]) -> tuple[int, int, int]:
    """(pages read in place, hits, pages copied) of a visit."""
    before, count = dict(pages.stats), Count(pages)
    chosen = np.array(wanted)
    pages.visit(chosen, count, in_place=np.broadcast_to(np.array(cost, np.uint32), chosen.shape))
    count.check(chosen)
    copied = (pages.stats["bytes_copied"] - before["bytes_copied"]) // PAGE
    return pages.stats["in_place"] - before["in_place"], pages.stats["hits"] - before["hits"], copied


def test_pages_of_few_arcs_are_read_where_they_lie() -> None:
    direction = mixed()
    last = len(direction) - 1
    pages, device, host = opened(direction, frames=6, policy="lru", streams=2)
    pages.load()
    assert pages.reaches
    everywhere = [0, 1, 5, last]  # page 0 has nothing but a heavy vertex, page 1 some in segments
    with recording() as events:
        assert in_place(pages, everywhere, 100) == (4, 0, 0)
    assert "in place" in {each.name for each in events.slices if each.lane == "stream 2"}
    assert in_place(pages, everywhere, [100, PAGE, 100, PAGE]) == (2, 0, 2)
    assert in_place(pages, everywhere, 100) == (2, 2, 0)
    visited(pages, np.array(everywhere))
    visited(pages)
    assert in_place(pages, list(range(last + 1)), 100)[1] == pages.kept
    closed(pages, device, host)


def test_a_page_that_is_read_in_place_again_and_again_is_copied_at_last() -> None:
    pages, device, host = opened(mixed(), frames=6, policy="lru", streams=2)
    found = [in_place(pages, [3], PAGE // 3 + 1) for _ in range(4)]
    assert found == [(1, 0, 0), (1, 0, 0), (0, 0, 1), (0, 1, 0)]
    closed(pages, device, host)
    pages, device, host = opened(mixed(), frames=2, policy="lru", streams=2)
    assert pages.kept == 0  # no copy would stay
    assert [in_place(pages, [3], PAGE // 3 + 1) for _ in range(4)] == [(1, 0, 0)] * 4
    closed(pages, device, host)


def test_pages_on_disk_are_not_read_in_place_nor_those_with_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    direction = mixed()
    everything = list(range(len(direction)))
    pages, device, host = opened(direction, frames=3, policy="lru", host_room=60_000)
    pages.load()
    stored = pages._stored_to - pages._stored_from
    assert (pages.source, 0 < stored < len(direction)) == ("disk", True)
    assert in_place(pages, everything, 9) == (stored, 0, len(direction) - stored)
    closed(pages, device, host)
    pages, device, host = opened(direction, ["a"], frames=3, policy="lru")
    assert in_place(pages, [2, 3], 9)[0] == 0
    closed(pages, device, host)
    monkeypatch.setattr(gpu, "reads_host", lambda: False)
    pages, device, host = opened(direction, frames=3, policy="lru")
    assert in_place(pages, [2, 3], 9) == (0, 0, 2)
    closed(pages, device, host)


def test_memory_that_lies_askew_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = gpu.empty
    monkeypatch.setattr(gpu, "empty", lambda shape, dtype: empty(np.prod(shape) + 5, dtype)[5:].reshape(shape))
    pages, device, host = opened(mixed(), frames=3, policy="lru")
    assert in_place(pages, [2, 3], 9) == (0, 0, 2)
    assert not pages.reaches
    closed(pages, device, host)
