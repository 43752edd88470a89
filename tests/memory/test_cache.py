from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from penstock.errors import DoesNotFit
from penstock.memory.cache import PageCache, Policy
from penstock.memory.ledger import Ledger
from penstock.memory.stream import Extents, PageStream, StripedFile

PAGE = 4096
COUNT = 100
INDEX = 4 * COUNT
LEDGER = 64 << 20


@pytest.fixture
def file(tmp_path: Path) -> Iterator[StripedFile]:
    path = tmp_path / "pages.0"
    path.write_bytes(b"".join(np.full(PAGE, j, np.uint8).tobytes() for j in range(COUNT)))
    with StripedFile([path]) as opened:
        yield opened


def parts(file: StripedFile) -> list[Extents]:
    return [Extents.pages(file, COUNT, PAGE)]


def scan(stream: PageStream, items: list[int] | range) -> None:
    seen: Counter[int] = Counter()

    def work(worker: int, item: int, got: tuple[np.ndarray, ...]) -> None:
        assert (got[0] == item).all()
        seen[item] += 1

    stream.run(items, work)
    assert seen == Counter(items)


def test_page_by_page_a_cyclic_scan_misses_under_lru_and_hits_when_resident(file: StripedFile) -> None:
    hits = {}
    for policy in ("lru", "resident"):
        ledger = Ledger(LEDGER)
        # A quarter of the pages fits; under `resident` items read alone take a frame of their own, whatever its size.
        with PageCache(0, ledger, policy) as cache:
            probe = PageStream(parts(file), ledger, workers=1, cache=cache)
            frame = probe.frame_bytes
            probe.close()
        with PageCache(25 * frame + INDEX, ledger, policy) as cache:
            with PageStream(parts(file), ledger, workers=1, cache=cache) as stream:
                for _ in range(3):
                    for item in range(COUNT):
                        scan(stream, [item])
            hits[policy] = cache.hits
            assert cache.hits + cache.misses == 3 * COUNT
            assert cache.bytes == 25 * PAGE
        assert ledger.used == 0
    assert hits == {"lru": 0, "resident": 2 * 25}


@pytest.mark.parametrize("policy", ["lru", "resident"])
@pytest.mark.parametrize("workers", [1, 3])
def test_whole_passes_read_only_what_is_not_there(file: StripedFile, policy: Policy, workers: int) -> None:
    ledger = Ledger(LEDGER)
    with (
        PageCache(40 * PAGE + INDEX, ledger, policy) as cache,
        PageStream(parts(file), ledger, workers=workers, cache=cache) as stream,
    ):
        for _ in range(4):
            before, held = stream.stats.bytes_read, cache.bytes
            scan(stream, range(COUNT))
            assert stream.stats.bytes_read - before == COUNT * PAGE - held
        assert cache.hits == stream.stats.hits
        assert stream.stats.bytes_read == cache.misses * PAGE
        if policy == "lru":
            assert cache.hits == 3 * 40


def test_lru_keeps_what_was_used_last(file: StripedFile) -> None:
    ledger = Ledger(LEDGER)
    with (
        PageCache(3 * PAGE + INDEX, ledger) as cache,
        PageStream(parts(file), ledger, workers=1, cache=cache) as stream,
    ):
        for item in (1, 2, 3, 1, 4):  # 2 is the oldest when 4 comes
            scan(stream, [item])
        assert (cache.hits, cache.misses) == (1, 4)
        scan(stream, [1, 3, 4])
        assert (cache.hits, cache.misses) == (4, 4)
        scan(stream, [2])
        assert (cache.hits, cache.misses) == (4, 5)


def test_everything_cached_needs_no_disk(file: StripedFile) -> None:
    ledger = Ledger(LEDGER)
    with (
        PageCache(8 << 20, ledger, "resident") as cache,
        PageStream(parts(file), ledger, workers=2, cache=cache) as stream,
    ):
        scan(stream, range(COUNT))
        read = stream.stats.bytes_read
        assert read == COUNT * PAGE
        scan(stream, range(COUNT))
        scan(stream, [5, 99, 5])
        assert stream.stats.bytes_read == read
        beat = cache.heartbeat()
        assert (beat["items"], beat["used"], beat["hits"]) == (COUNT, COUNT * PAGE, COUNT + 3)
        cache.clear()
        assert (cache.bytes, cache.heartbeat()["items"]) == (0, 0)
        scan(stream, range(COUNT))
        assert stream.stats.bytes_read == 2 * read


def test_item_given_twice_in_one_run(file: StripedFile) -> None:
    ledger = Ledger(LEDGER)
    with PageCache(1 << 20, ledger) as cache, PageStream(parts(file), ledger, workers=2, cache=cache) as stream:
        scan(stream, [7, 8, 7, 7])
        scan(stream, [7, 8])
        assert cache.hits == 2
        assert cache.bytes == 2 * PAGE


def test_checksums_are_compared_once(file: StripedFile) -> None:
    checked: list[int] = []
    ledger = Ledger(LEDGER)
    with PageCache(8 << 20, ledger, "resident") as cache:
        with PageStream(parts(file), ledger, workers=1, cache=cache) as stream:
            scan(stream, [1, 2])
        with PageStream(
            parts(file), ledger, workers=1, cache=cache, verify=lambda item, got: checked.append(item)
        ) as stream:
            scan(stream, [1, 2])  # read before anyone verified
            scan(stream, [1, 2])
            scan(stream, [3])
            scan(stream, [3])
    assert sorted(checked) == [1, 2, 3]


def test_pages_outlive_their_stream_but_not_a_change_of_files(file: StripedFile, tmp_path: Path) -> None:
    ledger = Ledger(LEDGER)
    with PageCache(8 << 20, ledger) as cache:
        with PageStream(parts(file), ledger, workers=2, cache=cache) as stream:
            scan(stream, range(COUNT))
            with pytest.raises(RuntimeError, match="another open stream"):
                PageStream(parts(file), ledger, workers=2, cache=cache)
        held = ledger.used
        with PageStream(parts(file), ledger, workers=2, cache=cache) as stream:
            assert ledger.used == held
            scan(stream, range(COUNT))
            assert stream.stats.bytes_read == 0
        other = tmp_path / "copy"
        other.write_bytes(file.paths[0].read_bytes())
        with StripedFile([other]) as copy, PageStream(parts(copy), ledger, workers=2, cache=cache) as stream:
            scan(stream, range(COUNT))
            assert stream.stats.bytes_read == COUNT * PAGE
    assert ledger.used == 0


def test_an_error_leaves_a_usable_cache(file: StripedFile) -> None:
    ledger = Ledger(LEDGER)
    with (
        PageCache(10 * PAGE + INDEX, ledger) as cache,
        PageStream(parts(file), ledger, workers=2, cache=cache) as stream,
    ):

        def fail(worker: int, item: int, got: tuple[np.ndarray, ...]) -> None:
            if item % 20 == 19:
                raise ZeroDivisionError

        for _ in range(5):
            with pytest.raises(ZeroDivisionError):
                stream.run(range(COUNT), fail)
            assert len(stream._ring) == stream.ring
        for _ in range(3):
            scan(stream, range(COUNT))
        assert cache.bytes == 10 * PAGE


def test_pages_held_by_a_failed_run_can_be_evicted_again(file: StripedFile) -> None:
    ledger = Ledger(LEDGER)
    with (
        PageCache(3 * PAGE + INDEX, ledger) as cache,
        PageStream(parts(file), ledger, workers=1, cache=cache) as stream,
    ):
        scan(stream, [1, 2, 3])

        def fail(worker: int, item: int, got: tuple[np.ndarray, ...]) -> None:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            stream.run([1, 2, 3], fail)
        scan(stream, [4, 5, 6])
        hits = cache.hits
        scan(stream, [4, 5, 6])
        assert cache.hits == hits + 3


def test_cached_pages_are_worked_on_while_the_readers_are_behind(
    file: StripedFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(LEDGER)
    with PageCache(1 << 20, ledger) as cache, PageStream(parts(file), ledger, workers=1, cache=cache) as stream:
        scan(stream, range(10))
        gate, real = threading.Event(), StripedFile.read_into

        def slow(*args: object) -> int:
            assert gate.wait(timeout=30)
            return real(*args)  # type: ignore[arg-type]

        monkeypatch.setattr(StripedFile, "read_into", slow)
        order: list[int] = []

        def work(worker: int, item: int, got: tuple[np.ndarray, ...]) -> None:
            order.append(item)
            if len(order) == 10:  # the disk answers only when all cached pages are done
                gate.set()

        stream.run(range(20), work)
        assert sorted(order[:10]) == list(range(10))
        assert sorted(order) == list(range(20))


def test_capacity_is_reserved_and_must_fit(file: StripedFile) -> None:
    ledger = Ledger(10 << 20)
    with PageCache(4 << 20, ledger) as cache:
        with PageStream(parts(file), ledger, workers=1, cache=cache) as stream:
            assert ledger.used <= (4 << 20) + stream.ring * stream.frame_bytes + PAGE
            assert ledger.used > (4 << 20) - PAGE
        assert ledger.used > 0, "pages and ring stay for the next stream"
    assert ledger.used == 0
    with PageCache(20 << 20, ledger) as cache, pytest.raises(DoesNotFit, match="page cache"):
        PageStream(parts(file), ledger, workers=1, cache=cache)
    assert ledger.used == 0
    with pytest.raises(ValueError, match="policies are"):
        PageCache(1, ledger, "fifo")  # type: ignore[arg-type]
