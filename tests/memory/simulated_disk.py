"""Pages from disk on a simulated GPU: read past the interpreter or not, checked where they land, refused by name."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from penstock.config import settings
from penstock.errors import DamagedStore, DoesNotFit
from penstock.memory import extents, fetch, gpu, sums
from penstock.memory.card import Card
from penstock.memory.fetch import Fetch
from penstock.memory.frames import DevicePages
from penstock.memory.ledger import Ledger
from penstock.store.checksum import checksum
from penstock.store.reader import Direction

from .simulated_frames import PAGE, Count, built, closed, made, mixed, opened, small_blocks, visited

__all__ = ["made", "small_blocks"]


def from_disk(direction: Direction, columns: Sequence[str] = ()) -> tuple[DevicePages, Ledger, Ledger]:
    found = opened(direction, columns, frames=6, host_room=120_000 if columns else 60_000, policy="lru")
    assert found[0].source == "disk"
    return found


def test_a_damaged_page_of_a_column_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums, "BY_KERNEL", True)
    direction = mixed(tmp_path)
    last = len(direction) - 1
    with direction.column_path("b", 0).open("r+b") as file:
        file.seek(int(direction.column_records["b"]["offset"][last]) + 3)
        file.write(b"\xff")
    pages, device, host = from_disk(direction, ["a", "b"])
    pages.load()
    assert pages._stored_to <= last
    with pytest.raises(DamagedStore, match=rf"b\.0: column page {last} is damaged"):
        pages.visit(None, Count(pages))
    visited(pages, np.arange(last - 1))
    closed(pages, device, host)


def test_a_file_that_ends_early_is_named(tmp_path: Path) -> None:
    direction = mixed(tmp_path)
    pages, device, host = from_disk(direction)
    pages.load()
    last = len(direction) - 1
    assert pages._stored_to < last
    os.truncate(direction.path("pages", 0), last * PAGE + 100)
    with pytest.raises(DamagedStore, match="truncated"):
        pages.visit(None, Count(pages))
    visited(pages, np.arange(last))
    closed(pages, device, host)


@pytest.mark.parametrize("stripes", [1, 3])
def test_where_nothing_is_read_past_the_cache_pages_come_all_the_same(
    tmp_path: Path, stripes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extents.StripedFile, "_open_direct", lambda self, path: None)
    roots = [tmp_path / f"disk{k}" for k in range(stripes - 1)]
    for root in roots:
        root.mkdir()
    direction = mixed(tmp_path, **({"stripes": roots} if roots else {}))
    pages, device, host = from_disk(direction, ["a", "b"])
    visited(pages)
    assert pages.stats["bytes_read"] > 0
    closed(pages, device, host)


def test_whoever_reads_is_done_when_a_visit_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often the user asks to stop: the next visit has the frames."""
    direction, bring = mixed(), Fetch._bring
    pages, device, host = from_disk(direction)
    pages.load()
    reading: list[int] = []
    asked: list[int] = []

    def slowly(self: Fetch, thread: int, parcel: Any) -> int:
        reading.append(thread)
        time.sleep(0.02)
        try:
            return bring(self, thread, parcel)
        finally:
            reading.remove(thread)

    class Ended(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            if len(asked) < 3:
                while not asked and not reading:
                    time.sleep(0.001)
                asked.append(1)
                raise KeyboardInterrupt
            return super().wait(timeout)

    for _ in range(5):
        asked.clear()
        with monkeypatch.context() as patch:
            patch.setattr(Fetch, "_bring", slowly)
            patch.setattr(fetch, "threading", SimpleNamespace(Event=Ended))
            with pytest.raises(KeyboardInterrupt):
                pages.visit(None, Count(pages))
        assert len(asked) == 3
        assert not reading
        visited(pages)
    closed(pages, device, host)


def test_no_frame_outlives_a_side_that_is_closed() -> None:
    for place in ("device", "disk"):
        direction = mixed()
        pages, device, host = from_disk(direction) if place == "disk" else opened(direction)
        visited(pages)
        assert pages.source == place
        frames = weakref.ref(pages._pool.arrays[0])
        closed(pages, device, host)
        assert frames() is None


def card_of(direction: Direction, columns: Sequence[str], frames: int, host: int) -> Card:
    limit = DevicePages.needed(direction, columns)
    limit -= (len(direction) - frames) * DevicePages.frame_bytes(direction, columns)
    return Card(direction.store, settings(threads=2, gpu_memory_limit=limit, device="gpu"), Ledger(host))


def test_two_directions_from_disk_share_the_host(tmp_path: Path) -> None:
    ends = np.random.default_rng(9).integers(0, 900, (2, 12_000))
    store = built(tmp_path, *ends).store
    device = sum(DevicePages.least(store.direction(name), ()) for name in ("out", "in"))

    def opened_both(host: int) -> tuple[Card, dict[str, DevicePages]]:
        card = Card(store, settings(threads=2, gpu_memory_limit=device, device="gpu"), Ledger(host))
        try:
            return card, card.pages(("out", "in"), (), "lru")
        except DoesNotFit:
            card.close()
            assert card.host.used == card.ledger.used == 0
            raise

    for host in (60_000, 90_000):
        card, sides = opened_both(host)
        assert [side.source for side in sides.values()] == ["disk", "disk"]
        for side in sides.values():
            visited(side)
        card.close()
        assert card.host.used == card.ledger.used == 0
    limits = [15_000]
    for _ in range(5):  # who does what it is told gets there, and soon
        try:
            card, _ = opened_both(limits[-1])
            break
        except DoesNotFit as refused:
            limits.append(refused.needed)
    card.close()
    assert len(limits) > 1
    assert sorted(set(limits)) == limits
    assert limits[-1] <= 60_000


def test_sides_that_share_frames_know_where_the_other_put_pages() -> None:
    direction = mixed()
    card = card_of(direction, ["a"], frames=6, host=1 << 30)
    with_column = card.pages(("out",), ("a",), "resident")["out"]
    visited(with_column)
    without = card.pages(("out",), (), "resident")["out"]
    assert without is not with_column
    without.names = ()
    visited(without, np.arange(with_column.kept + 1, len(direction)))
    visited(with_column)
    card.close()


def test_no_copy_goes_over_two_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A device may put one array right behind the other."""
    arena, used = np.zeros(1 << 20, np.uint8), 0

    def close_by(shape: Any, dtype: Any) -> np.ndarray:
        nonlocal used
        begin, used = used, used + int(np.prod(shape)) * np.dtype(dtype).itemsize
        return arena[begin:used].view(dtype).reshape(shape)

    monkeypatch.setattr(gpu, "empty", close_by)
    pages, device, host = opened(built(tmp_path, [7], [7]), ["a", "c"])
    streams = [gpu.Stream()]
    with Fetch(pages._pool, host, settings(threads=1), streams) as fetch:
        parcel = fetch.parcel(np.arange(1), np.arange(1))
    spans = [(gpu.address(array), gpu.address(array) + array.nbytes) for array in pages._pool.arrays]
    assert spans[0][1] == spans[1][0]
    assert len(parcel.copies) == 3
    for copy, (begin, end) in zip(parcel.copies, spans, strict=True):
        assert begin <= copy["to"] < copy["to"] + copy["nbytes"] <= end
    closed(pages, device, host)


@pytest.mark.parametrize("nbytes", [4096, 4097, 12_280])
def test_checksums_are_those_of_the_store(nbytes: int) -> None:
    length, seeds = -(-nbytes // 4096) * 4096, np.array([0, 1, 1 << 31])
    data = np.random.default_rng(nbytes).integers(0, 256, (len(seeds), length), dtype=np.uint8)
    clean = np.where(np.arange(length) < nbytes, data, 0).astype(np.uint8)
    written = [checksum(row, int(seed)) for row, seed in zip(clean, seeds, strict=True)]
    table = np.array([(w, s, nbytes, length) for w, s in zip(written, seeds, strict=True)], np.uint64)
    frames, whole = np.array([2, 0, 1], np.uint32), np.uint32(0xFFFFFFFF)

    def damaged(words: np.ndarray) -> int:
        found = np.full(1, whole)
        sums._launcher()(
            gpu.Stream(), 3, sums.BLOCK, 0, np.uint32(0), words, np.uint64(length // 8), table, frames,
            sums._CONSTANTS, found, 1, 2,
        )  # fmt: skip
        return int(found[0])

    laid = data[[1, 2, 0]].reshape(-1).view(np.uint64)
    assert damaged(laid.copy()) == whole
    for byte in (0, nbytes // 2, nbytes - 1):
        changed = laid.copy()
        changed.view(np.uint8)[byte] ^= 1
        assert damaged(changed) == 1 * 2 + 1  # page 1 lies in the first frame
        assert not changed.view(np.uint8)[:nbytes].any()
        assert changed[length // 8 :].tolist() == laid[length // 8 :].tolist()
