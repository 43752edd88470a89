from __future__ import annotations

import collections
import contextlib
import errno
import gc
import itertools
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from penstock.errors import DamagedStore, DoesNotFit
from penstock.memory import extents as extents_module
from penstock.memory.buffers import allocate
from penstock.memory.cache import PageCache
from penstock.memory.extents import batches, frame_bytes
from penstock.memory.ledger import Ledger
from penstock.memory.stream import Extents, PageStream, StripedFile
from penstock.observe.events import Events, recording

PAGE = 4096


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    gc.collect()
    assert [t.name for t in threading.enumerate() if t.name.startswith("penstock")] == []


def write_pages(folder: Path, count: int, page_size: int, stripes: int) -> list[Path]:
    """Page j starts with its number and is filled with its low byte."""
    paths = [folder / f"pages.{s}" for s in range(stripes)]
    for s, path in enumerate(paths):
        with open(path, "wb") as file:
            for j in range(s, count, stripes):
                page = np.full(page_size, j & 255, np.uint8)
                page[:8].view(np.uint64)[0] = j
                file.write(page.tobytes())
    return paths


def check_page(item: int, page: np.ndarray, page_size: int) -> None:
    assert page.dtype == np.uint8
    assert page.size == page_size
    assert page.ctypes.data % PAGE == 0
    assert int(page[:8].view(np.uint64)[0]) == item
    assert (page[8:] == item & 255).all()


def write_column(folder: Path, count: int, stripes: int) -> tuple[list[Path], np.ndarray, np.ndarray]:
    """Values of uneven length, some empty, each 4 KiB aligned; the files end with their last byte."""
    nbytes = np.array([(j * 977) % 9001 if j % 5 else 0 for j in range(count)], np.int64)
    offset = np.zeros(count, np.int64)
    paths = [folder / f"weight.{s}" for s in range(stripes)]
    for s, path in enumerate(paths):
        at = 0
        with open(path, "wb") as file:
            for j in range(s, count, stripes):
                offset[j] = at
                file.seek(at)
                file.write(bytes([(j * 3) & 255]) * int(nbytes[j]))
                at += -(-int(nbytes[j]) // PAGE) * PAGE
    return paths, offset, nbytes


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize(
    ("count", "page_size", "stripes", "workers", "readers", "ring"),
    [
        (1, PAGE, 1, 1, 1, 1),
        (103, PAGE, 1, 2, 2, 32),
        (103, 3 * PAGE, 3, 3, 1, 4),
        (1000, PAGE, 4, 2, 3, 5),
        (5000, PAGE, 2, 2, 2, 32),
        (7, 1 << 20, 2, 1, 2, 3),
    ],
)
def test_every_item_once(
    tmp_path: Path, direct: bool, count: int, page_size: int, stripes: int, workers: int, readers: int, ring: int
) -> None:
    paths = write_pages(tmp_path, count, page_size, stripes)
    seen: list[list[int]] = [[] for _ in range(workers)]

    def work(worker: int, item: int, parts: tuple[np.ndarray, ...]) -> None:
        check_page(item, parts[0], page_size)
        seen[worker].append(item)

    ledger = Ledger(64 << 20)
    with (
        StripedFile(paths, direct=direct) as file,
        PageStream(
            [Extents.pages(file, count, page_size)], ledger, workers=workers, readers=readers, ring=ring
        ) as stream,
    ):
        assert ledger.used == stream.ring * stream.frame_bytes == stream.heartbeat()["used"]
        for _ in range(2):
            stream.run(range(count), work)
            assert sorted(itertools.chain(*seen)) == list(range(count))
            for found in seen:
                found.clear()
        assert (stream.stats.items, stream.stats.bytes_read) == (2 * count, 2 * count * page_size)
        some = np.random.default_rng(1).permutation(count)[: count // 2]
        stream.run(some, work)
        assert sorted(itertools.chain(*seen)) == sorted(some.tolist())
        stream.run([], work)
    assert ledger.used == 0
    with pytest.raises(ValueError, match="closed"):
        stream.run([0], work)


@pytest.mark.parametrize("limit", [1, 10_000, 1 << 20])
@pytest.mark.parametrize(("stripes", "column_stripes"), [(1, 1), (3, 2)])
def test_columns_of_uneven_length_travel_with_their_page(
    tmp_path: Path, stripes: int, column_stripes: int, limit: int
) -> None:
    count = 211
    paths = write_pages(tmp_path, count, PAGE, stripes)
    column, offset, nbytes = write_column(tmp_path, count, column_stripes)
    with StripedFile(paths) as a, StripedFile(column) as b:
        parts = [Extents.pages(a, count, PAGE), Extents(b, offset, nbytes)]
        items = np.random.default_rng(2).permutation(count)[:150]
        frame = np.zeros(max(limit, frame_bytes(parts)), np.uint8)
        planned = list(batches(parts, items, limit))
        assert [item for batch in planned for item in batch.items] == items.tolist()
        for batch in planned:
            assert batch.fill(frame) >= len(batch.items) * PAGE
            for item, spans in zip(batch.items, batch.spans, strict=True):
                assert int(frame[spans[0][0] : spans[0][1]][:8].view(np.uint64)[0]) == item
                assert bytes(frame[spans[1][0] : spans[1][1]]) == bytes([(item * 3) & 255]) * int(nbytes[item])
        seen: collections.Counter[int] = collections.Counter()

        def work(worker: int, item: int, got: tuple[np.ndarray, ...]) -> None:
            check_page(item, got[0], PAGE)
            assert bytes(got[1]) == bytes([(item * 3) & 255]) * int(nbytes[item])
            seen[item] += 1

        with PageStream(parts, Ledger(64 << 20), workers=1) as stream:
            stream.run(np.arange(count), work)
        assert seen == collections.Counter(range(count))


def test_neighbours_on_disk_are_one_request(tmp_path: Path) -> None:
    with StripedFile(write_pages(tmp_path, 64, PAGE, 2)) as file:
        parts = [Extents.pages(file, 64, PAGE)]
        planned = list(batches(parts, np.arange(64), 16 * PAGE))
        assert [len(batch.items) for batch in planned] == [16] * 4
        assert [len(batch.reads) for batch in planned] == [2] * 4
        assert len(next(batches(parts, np.arange(0, 64, 4), 16 * PAGE)).reads) == 16


def test_small_budget_shrinks_the_ring_and_too_small_says_so(tmp_path: Path) -> None:
    with StripedFile(write_pages(tmp_path, 8, 1 << 20, 1)) as file:
        parts = [Extents.pages(file, 8, 1 << 20)]
        with PageStream(parts, Ledger(40 << 20), workers=2) as stream:
            assert stream.ring == 10
        with PageStream(parts, Ledger(5 << 20), workers=2) as stream:
            assert stream.ring == 4
        assert PageStream.smallest(parts, 2) == 4 << 20
        ledger = Ledger(3 << 20)
        with pytest.raises(DoesNotFit, match="page stream"):
            PageStream(parts, ledger, workers=2)
        assert ledger.used == 0


def test_parts_must_agree(tmp_path: Path) -> None:
    with StripedFile(write_pages(tmp_path, 8, PAGE, 1)) as file, pytest.raises(ValueError, match="same items"):
        PageStream([Extents.pages(file, 8, PAGE), Extents.pages(file, 7, PAGE)], Ledger(1 << 20), workers=1)


@pytest.mark.parametrize("ring", [1, 32])
def test_error_of_a_worker_stops_all_and_the_stream_lives_on(tmp_path: Path, ring: int) -> None:
    count = 400
    with (
        StripedFile(write_pages(tmp_path, count, PAGE, 1)) as file,
        PageStream([Extents.pages(file, count, PAGE)], Ledger(1 << 20), workers=2, ring=ring) as stream,
    ):

        def fail(worker: int, item: int, parts: tuple[np.ndarray, ...]) -> None:
            if item == 37:
                raise ZeroDivisionError("at 37")

        for _ in range(3):
            with pytest.raises(ZeroDivisionError, match="at 37"):
                stream.run(range(count), fail)
        seen: list[int] = []
        stream.run(range(count), lambda worker, item, parts: seen.append(item))
        assert sorted(seen) == list(range(count))


def test_verify_comes_before_work(tmp_path: Path) -> None:
    worked: list[int] = []

    def verify(item: int, parts: tuple[np.ndarray, ...]) -> None:
        check_page(item, parts[0], PAGE)
        if item == 5:
            raise DamagedStore("page 5: checksum differs")

    with (
        StripedFile(write_pages(tmp_path, 9, PAGE, 1)) as file,
        PageStream([Extents.pages(file, 9, PAGE)], Ledger(1 << 20), workers=1, verify=verify) as stream,
    ):
        stream.run([1, 2], lambda worker, item, parts: worked.append(item))
        with pytest.raises(DamagedStore, match="page 5"):
            stream.run([5], lambda worker, item, parts: worked.append(item))
    assert worked == [1, 2]


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("cut", [PAGE * 20, PAGE * 20 + 100])
def test_truncated_file_is_named_with_its_end(tmp_path: Path, direct: bool, cut: int) -> None:
    paths = write_pages(tmp_path, 100, PAGE, 2)
    os.truncate(paths[1], cut)
    with (
        StripedFile(paths, direct=direct) as file,
        PageStream([Extents.pages(file, 100, PAGE)], Ledger(4 << 20), workers=2) as stream,
        pytest.raises(DamagedStore) as caught,
    ):
        stream.run(range(100), lambda worker, item, parts: None)
    assert f"{paths[1]}: is truncated: it ends at byte {cut}" in str(caught.value)


def test_read_error_names_file_and_offset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = write_pages(tmp_path, 4, PAGE, 1)

    def broken(*_: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    with StripedFile(paths) as file:
        monkeypatch.setattr(os, "preadv", broken)
        with pytest.raises(DamagedStore, match=r"pages\.0: cannot be read at byte 8192: Input/output error"):
            file.read_into(0, 2 * PAGE, np.empty(PAGE, np.uint8))


def test_missing_stripe_closes_the_others(tmp_path: Path) -> None:
    paths = write_pages(tmp_path, 4, PAGE, 1)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(FileNotFoundError):
        StripedFile([*paths, tmp_path / "missing"])
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.skipif(not hasattr(os, "O_DIRECT"), reason="no O_DIRECT here")
@pytest.mark.parametrize("refuse", ["open", "read"])
def test_refused_direct_io_falls_back_to_buffered_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refuse: str
) -> None:
    paths = write_pages(tmp_path, 50, PAGE, 2)
    real_open, real_read = os.open, os.preadv
    direct: set[int] = set()
    dropped: list[int] = []

    def fake_open(path: str, flags: int, *rest: int, **keywords: int) -> int:
        if flags & os.O_DIRECT:
            if refuse == "open":
                raise OSError(errno.EINVAL, "Invalid argument")
            descriptor = real_open(path, flags & ~os.O_DIRECT, *rest, **keywords)
            direct.add(descriptor)
            return descriptor
        return real_open(path, flags, *rest, **keywords)

    def fake_read(descriptor: int, views: list[memoryview], at: int) -> int:
        if descriptor in direct:
            raise OSError(errno.EINVAL, "Invalid argument")
        return real_read(descriptor, views, at)

    monkeypatch.setattr(os, "open", fake_open)
    monkeypatch.setattr(os, "preadv", fake_read)
    monkeypatch.setattr(
        extents_module.os, "posix_fadvise", lambda fd, at, n, advice: dropped.append(n) if advice == 4 else None
    )
    seen: list[int] = []

    def work(worker: int, item: int, parts: tuple[np.ndarray, ...]) -> None:
        check_page(item, parts[0], PAGE)
        seen.append(item)

    with StripedFile(paths) as file:
        assert file.direct == (refuse == "read")
        with PageStream([Extents.pages(file, 50, PAGE)], Ledger(4 << 20), workers=2) as stream:
            stream.run(range(50), work)
        assert not file.direct
    assert sorted(seen) == list(range(50))
    assert sum(dropped) == 50 * PAGE


def test_unaligned_reads_work_too(tmp_path: Path) -> None:
    path = tmp_path / "f"
    data = np.random.default_rng(3).bytes(20_000)
    path.write_bytes(data)
    with StripedFile([path]) as file:
        out = np.empty(777, np.uint8)
        assert file.read_into(0, 1234, out) == 777
        assert out.tobytes() == data[1234 : 1234 + 777]


def test_interrupt_ends_the_run_and_joins(tmp_path: Path) -> None:
    with (
        StripedFile(write_pages(tmp_path, 300, PAGE, 1)) as file,
        PageStream([Extents.pages(file, 300, PAGE)], Ledger(1 << 20), workers=2) as stream,
    ):
        calls: list[int] = []
        first = threading.Lock()

        def work(worker: int, item: int, parts: tuple[np.ndarray, ...]) -> None:
            calls.append(item)
            if len(calls) >= 5 and first.acquire(blocking=False):  # two threads may make it six at once
                os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.02)

        with pytest.raises(KeyboardInterrupt):
            stream.run(range(300), work)
        done = len(calls)
        assert done < 300
        time.sleep(0.05)
        assert len(calls) == done, "no worker runs on after the interrupt was raised"
        calls.clear()
        stream.run(range(300), lambda worker, item, parts: calls.append(item))
        assert sorted(calls) == list(range(300))


def test_a_run_inside_a_run_is_refused(tmp_path: Path) -> None:
    with (
        StripedFile(write_pages(tmp_path, 3, PAGE, 1)) as file,
        PageStream([Extents.pages(file, 3, PAGE)], Ledger(1 << 20), workers=1) as stream,
        pytest.raises(RuntimeError, match="already"),
    ):
        stream.run([0], lambda worker, item, parts: stream.run([1], lambda *_: None))


def test_a_dropped_stream_ends_its_threads(tmp_path: Path) -> None:
    with StripedFile(write_pages(tmp_path, 3, PAGE, 1)) as file:
        stream = PageStream([Extents.pages(file, 3, PAGE)], Ledger(1 << 20), workers=2)
        stream.run([0, 1, 2], lambda *_: None)
        threads = list(stream._crew._threads)
        del stream
        gc.collect()
        for thread in threads:
            thread.join(timeout=10)
            assert not thread.is_alive()


def test_one_request_fills_several_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 256
    requests: list[int] = []
    real = os.preadv

    def counted(descriptor: int, views: list[memoryview], at: int) -> int:
        requests.append(len(views))
        return real(descriptor, views, at)

    seen: list[int] = []

    def work(worker: int, item: int, parts: tuple[np.ndarray, ...]) -> None:
        check_page(item, parts[0], PAGE)
        seen.append(item)

    ledger = Ledger(16 << 20)
    with (
        StripedFile(write_pages(tmp_path, count, PAGE, 1)) as file,
        PageCache(0, ledger, "lru") as cache,  # one page a frame
        PageStream([Extents.pages(file, count, PAGE)], ledger, workers=2, cache=cache) as stream,
    ):
        if not file.direct:
            pytest.skip("no direct reads here")
        monkeypatch.setattr(os, "preadv", counted)
        stream.run(range(count), work)
        assert sorted(seen) == list(range(count))
        assert sum(requests) == count
        assert max(requests) == 4
        seen.clear()
        requests.clear()
        stream.run(range(0, count, 2), work)
        assert sorted(seen) == list(range(0, count, 2))
        assert max(requests) == 1, "pages that are not neighbours are read one by one"


@pytest.mark.parametrize("direct", [True, False])
def test_request_across_buffers_that_is_cut_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, direct: bool
) -> None:
    paths = write_pages(tmp_path, 4, PAGE, 1)
    memory = [allocate(PAGE) for _ in range(4)]
    real = os.preadv
    with StripedFile(paths, direct=direct) as file:
        monkeypatch.setattr(os, "preadv", lambda fd, views, at: real(fd, views[:1], at))
        assert file.read_across(0, 0, memory, [PAGE] * 4) == 4 * PAGE
        for item, page in enumerate(memory):
            check_page(item, page, PAGE)
        monkeypatch.undo()
        os.truncate(paths[0], 3 * PAGE + 50)
        assert file.read_across(0, 0, memory, [PAGE] * 3 + [50]) == 3 * PAGE + 50
        with pytest.raises(DamagedStore, match=f"is truncated: it ends at byte {3 * PAGE + 50}"):
            file.read_across(0, 0, memory, [PAGE] * 4)


@pytest.mark.parametrize("capacity", [None, 100 * PAGE])
def test_a_recorded_run_has_a_lane_for_each_thread(tmp_path: Path, capacity: int | None) -> None:
    count = 300
    ledger = Ledger(16 << 20)
    with (
        contextlib.ExitStack() as held,
        StripedFile(write_pages(tmp_path, count, PAGE, 2)) as file,
    ):
        cache = None if capacity is None else held.enter_context(PageCache(capacity, ledger, "lru"))
        stream = held.enter_context(
            PageStream([Extents.pages(file, count, PAGE)], ledger, workers=2, readers=2, cache=cache)
        )
        for turn in range(3):
            kept = cache.heartbeat()["items"] if cache is not None else 0
            assert (kept > 0) == (turn > 0 and cache is not None)
            with recording() as events:
                stream.run(range(count), lambda worker, item, parts: time.sleep(1e-5))
            stream.run(range(count), lambda *_: None)  # not recorded
            slices = events.slices
            assert set(events.lanes) <= {"reader 0", "reader 1", "worker 0", "worker 1"}
            assert all(events.began <= each.begin <= each.end for each in slices)
            reads = [each for each in slices if each.lane.startswith("reader")]
            pages = [each for each in slices if each.name == "page"]
            waits = [each for each in slices if each.name == "wait"]
            assert {each.name for each in reads} <= {"read"}
            assert all(each.lane.startswith("worker") for each in pages + waits)
            assert len(reads) + len(pages) + len(waits) == len(slices)
            assert sorted(each.args["item"] for each in pages) == list(range(count))
            sources = collections.Counter(each.args["source"] for each in pages)
            assert (sources["hit"], sources["read"]) == (kept, count - kept)
            assert sum(each.args["bytes"] for each in reads) == (count - kept) * PAGE
            for lane in events.lanes:  # one thing after another
                for a, b in itertools.pairwise(each for each in slices if each.lane == lane):
                    assert a.end <= b.begin


def test_a_failed_run_is_recorded_up_to_its_end(tmp_path: Path) -> None:
    with (
        StripedFile(write_pages(tmp_path, 100, PAGE, 1)) as file,
        PageStream([Extents.pages(file, 100, PAGE)], Ledger(1 << 20), workers=1) as stream,
    ):

        def fail(worker: int, item: int, parts: tuple[np.ndarray, ...]) -> None:
            if item == 37:
                raise ZeroDivisionError
            seen.append(item)

        seen: list[int] = []
        with recording() as events, pytest.raises(ZeroDivisionError):
            stream.run(range(100), fail)
        assert [each.args["item"] for each in events.slices if each.name == "page"] == seen
        kept = len(events.slices)
        stream.run(range(100), lambda *_: None)
        assert len(events.slices) == kept


def test_what_is_not_recorded_calls_the_work_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("something was collected")

    monkeypatch.setattr(Events, "__init__", refuse)
    monkeypatch.setattr(Events, "record", refuse)
    callers: set[str] = set()

    def work(worker: int, item: int, parts: tuple[np.ndarray, ...]) -> None:
        callers.add(sys._getframe(1).f_code.co_name)

    with (
        StripedFile(write_pages(tmp_path, 20, PAGE, 1)) as file,
        PageStream([Extents.pages(file, 20, PAGE)], Ledger(1 << 20), workers=2) as stream,
    ):
        stream.run(range(20), work)
    assert callers == {"consume"}
