"""How pages are visited: those on the device first, then those that are read where they lie in the host's memory, those
copied from there, and those from disk."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from typing import Any

import numpy as np

from penstock.memory import gpu
from penstock.memory.cache import Policy
from penstock.memory.fetch import Fetch, Parcel, Take
from penstock.memory.orders import Order, Orders
from penstock.memory.pinned import Pinned
from penstock.memory.pool import Pool, runs
from penstock.memory.shelf import NOWHERE, Shelf
from penstock.memory.span import Span
from penstock.memory.sums import Sums
from penstock.memory.timeline import Timeline
from penstock.store.reader import Direction

Launch = Callable[[gpu.Stream, Any, int, Any, int], None]
"""`launch(stream, order, tasks, segment order, segments)`: start kernels over the first `tasks` task numbers in `order`
and the first `segments` segment numbers in `segment order`. It is never called twice at the same time."""


PLANNED = 1200
"""Bytes that it takes to keep how a page is read."""


class Lane:
    """A stream with frames of its own, filled and used in the stream's order: nothing overwrites what is in use."""

    def __init__(self, number: int, base: int, *, ahead: bool = True) -> None:
        """`ahead`: the next batch waits for its kernels. Nobody waits for those over pages that are on the device."""
        self.name, self.base, self.stream = f"stream {number}", base, gpu.Stream(ahead=ahead)
        self.sent: gpu.Event | None = None


class Visits:
    """Visits to the pages of `penstock.memory.frames.DevicePages`, which says what lies where."""

    direction: Direction
    stream: gpu.Stream
    page_words: int
    policy: Policy
    kept: int
    stats: dict[str, int]
    _gpu: int
    _lock: threading.Lock
    _loaded: bool
    _pool: Pool
    _shelf: Shelf
    _orders: Orders
    _lanes: list[Lane]
    _here: Lane
    """For pages on the device while others come: beside the lanes, as the caller's stream may be one that all others
    wait for."""
    _readers: list[Lane]
    """Of the lanes, those that pages from disk come by; the others are for pages from the host. One alone is both."""
    _per: int
    """Pages of a batch."""
    _frame: np.ndarray
    """Where each page lies, as kernels count frames; the host's copy of `_frame_of`."""
    _frame_of: Any
    _sent: gpu.Event | None
    _copied: gpu.Event | None = None
    """When the last batch from the host's memory is here."""
    _stored: Pinned | None
    _stored_from: int
    _stored_to: int
    _span: Span | None
    _spent: np.ndarray
    """What was read of each page in place since it was last copied."""
    _fetch: Fetch | None
    _plans_reads: bool
    """Whether how pages are read is found out once."""
    _sums: Sums | None
    _batches: list[tuple[int, int, Order]] | None

    def load(self) -> None:
        raise NotImplementedError

    @property
    def reaches(self) -> bool:
        """Whether pages in the host's memory can be read there."""
        return self._span is not None

    def visit(self, pages: np.ndarray | None, launch: Launch, in_place: np.ndarray | None = None) -> None:
        """Start kernels over these pages (all: None), each once: first over those that are on the device, then over
        batches of the others as they arrive. When this returns all is started, not finished.

        `in_place`: what it would cost to read what is wanted of each page where it lies in the host's memory, in bytes
        of a copy. Pages for which that is less than a copy are read there, as long as it pays.
        """
        if not self._loaded:
            self.load()
        self._timeline = Timeline()
        if not self._timeline.records:
            self._visit(pages, launch, in_place)
            return
        before = dict(self.stats)
        with self._timeline.span(self.stream, "gpu", f"{self.direction.name} pages") as told:
            self._visit(pages, launch, in_place)
            told |= {name: self.stats[name] - before[name] for name in ("pages", "hits", "in_place")}
        gpu.synchronize()
        self._timeline.settle()

    def _visit(self, pages: np.ndarray | None, launch: Launch, cost: np.ndarray | None) -> None:
        count = len(self.direction)
        if pages is None and self.kept == count:
            self._count(count, count)
            if count:
                launch(self.stream, *self._orders.every)
            return
        if pages is None and self.policy == "resident":
            self._visit_all(launch)
            return
        wanted = np.arange(count) if pages is None else _ascending(pages, count)
        self._settle()
        hits, missing = self._shelf.split(wanted)
        lying = np.zeros(len(missing), bool)
        if pages is not None and cost is not None:
            lying = self._lying(missing, pages, cost)
        in_place, missing = missing[lying], missing[~lying]
        self._count(len(wanted), len(hits), len(in_place))
        self._reach(in_place)
        if not len(missing) and not len(in_place):
            if len(hits):
                order = self._orders.send(self.stream, hits)
                self._sent = self.stream.record()
                launch(self.stream, *order)
            return
        self._shelf.placed = False
        frames = self._shelf.admit(missing)
        stored = self._is_stored(missing)
        with self._beside_the_stream():
            if len(hits):
                self._launch_some(self._here, hits, launch)
            if len(in_place):
                self._in_place(in_place, launch)
            if stored.all():
                self._from_host(missing, frames, launch)
            else:
                self._from_disk(missing[~stored], frames[~stored], launch, (missing[stored], frames[stored]))

    @contextmanager
    def _beside_the_stream(self) -> Iterator[None]:
        """Let the lanes begin after what the caller's stream has, and that go on after them."""
        before, lanes = self.stream.record(), (*self._lanes, self._here)
        for lane in lanes:
            lane.stream.wait(before)
        try:
            yield
        finally:
            for lane in lanes:
                self.stream.wait(lane.stream.record())
            self._shelf.settle()

    def _count(self, pages: int, hits: int, in_place: int = 0) -> None:
        self.stats["pages"] += pages
        self.stats["hits"] += hits
        self.stats["in_place"] += in_place

    def _is_stored(self, pages: np.ndarray) -> np.ndarray:
        """Which of these the host has in its memory."""
        return (pages >= self._stored_from) & (pages < self._stored_to)

    # ---- in place

    def _lying(self, missing: np.ndarray, pages: np.ndarray, cost: np.ndarray) -> np.ndarray:
        """Which of the missing pages to read where they lie: those that cost less than a copy. But one that was read so
        often that a copy would have paid is copied, for it may stay and be found; that costs twice what is best at
        the worst."""
        if self._span is None:
            return np.zeros(len(missing), bool)
        size = 4 * self.page_words
        every = np.full(len(self.direction), size, np.uint64)
        every[pages] = cost
        stays = self.policy == "lru" and self.kept > 0
        spent = every[missing] + (self._spent[missing] if stays else np.uint64(0))
        found = self._is_stored(missing) & (spent < size)
        self._spent[missing] = np.where(found, spent, 0)
        return found

    def _reach(self, pages: np.ndarray) -> None:
        """Tell kernels that these pages lie in the host's memory.

        One copy for all, of what lies between them, too: of pages found on the device it says what is there already,
        and of others nobody reads it before they come. The lanes, which write to other places, begin after it.
        """
        if not len(pages):
            return
        assert self._span is not None
        self._frame[pages] = self._span.host + (pages - self._stored_from)
        between = slice(int(pages[0]), int(pages[-1]) + 1)
        self.stream.copy(self._frame_of[between], self._frame[between])
        self._sent = self.stream.record()

    def _in_place(self, pages: np.ndarray, launch: Launch) -> None:
        """One launch for all; on the lane that copies come to last, as both go over the same bus."""
        self._launch_some(self._from_host_lanes[-1], pages, launch, "in place")

    def _launch_some(self, lane: Lane, pages: np.ndarray, launch: Launch, name: str = "kernel") -> None:
        order = self._orders.send(lane.stream, pages)
        lane.sent = lane.stream.record()
        with self._timeline.span(lane.stream, lane.name, name, pages=len(pages)):
            launch(lane.stream, *order)

    # ---- all

    def _visit_all(self, launch: Launch) -> None:
        """All pages, from frames and orders that are the same each time."""
        count, kept = len(self.direction), self.kept
        if self._batches is None:
            self._first = self._orders.between(0, kept)
            self._parcels: dict[int, Parcel] = {}
            self._batches = self._all_batches()  # last: what is interrupted before is done again
        from_disk = -(-(count - self._stored_to) // self._per) if self._fetch is not None else 0
        from_host = len(self._batches) - from_disk
        placed = self._shelf.placed
        if not placed:
            self._settle()
        self._count(count, kept)

        def start(lane: Lane, number: int, places: np.ndarray) -> None:
            assert self._batches is not None
            a, b, order = self._batches[number]
            if not placed:
                self._place(lane, np.arange(a, b), places)
            with self._timeline.span(lane.stream, lane.name, "kernel", pages=b - a):
                if number >= from_host:
                    self._check(lane, a, b - a)
                launch(lane.stream, *order)

        def send_stored() -> None:
            assert self._batches is not None
            lanes = self._from_host_lanes
            for number, (a, b, _) in enumerate(self._batches[:from_host]):
                lane = lanes[number % len(lanes)]
                with self._lock:
                    self._copy_runs(lane, [(a, lane.base, b - a)])
                    start(lane, number, lane.base + np.arange(b - a))

        def take(thread: int, number: int, parcel: Parcel, copied: int) -> None:
            with self._lock:
                self.stats["bytes_copied"] += copied
                start(self._readers[thread], from_host + number, parcel.frames)

        with self._beside_the_stream():
            if kept:
                with self._timeline.span(self._here.stream, self._here.name, "kernel", pages=kept):
                    launch(self._here.stream, *self._first)
            self._fetched(from_disk, self._parcel, take, send_stored)
        self._shelf.placed = True

    def _all_batches(self) -> list[tuple[int, int, Order]]:
        """Pages beyond those that stay: the host's, then the disk's. The host's from the last one on, so that pages of
        small vertices come before those of large ones, where vertices are in the order of their degrees."""
        count, stored = len(self.direction), self._stored_to
        from_host, from_disk = [*range(self.kept, stored, self._per), stored], [*range(stored, count, self._per), count]
        cuts = [*reversed([*pairwise(from_host)]), *pairwise(from_disk)]
        return [(a, b, self._orders.between(a, b)) for a, b in cuts]

    def _parcel(self, number: int) -> Parcel:
        """How a batch from disk comes at a visit of all pages. The first one finds out, and it is kept, if there is
        room."""
        found = self._parcels.get(number)
        if found is None:
            assert self._fetch is not None
            first, count = self._stored_to, len(self.direction)
            pages = np.arange(first + number * self._per, min(first + (number + 1) * self._per, count))
            lane = self._readers[number % self._fetch.threads]
            found = self._fetch.parcel(pages, lane.base + np.arange(len(pages)))
            if self._plans_reads:
                self._parcels[number] = found
        return found

    # ---- from the host, and from disk

    @property
    def _from_host_lanes(self) -> list[Lane]:
        return [lane for lane in self._lanes if lane not in self._readers] or self._lanes

    def _fetched(self, count: int, parcel: Callable[[int], Parcel], take: Take, meanwhile: Callable[[], None]) -> None:
        """Have batches brought from disk, if there are any, and see that they are whole."""
        if self._fetch is None or not count:
            meanwhile()
            return
        before, alone = self._fetch.bytes_read, len(self._lanes) == 1
        if alone:
            meanwhile()
        try:
            self._fetch.run(count, parcel, take, meanwhile=None if alone else meanwhile)
            self._refuse_damaged()
        except BaseException:
            self._shelf.forget()
            if self._sums is not None:  # what it has found is no matter of the next visit
                with suppress(Exception):
                    self._sums.damaged()
            raise
        finally:
            self.stats["bytes_read"] += self._fetch.bytes_read - before

    def _refuse_damaged(self) -> None:
        """Wait for the pages that were checked."""
        damaged = self._sums.damaged() if self._sums is not None else None
        if damaged is not None:
            raise self.direction.damage(*damaged)

    def _check(self, lane: Lane, first: int, count: int) -> None:
        """Let pages on their way be checked before they are used."""
        if self._sums is not None:
            self._sums.check(lane.stream, first, count, self._span.device if self._span is not None else 0)

    def _from_host(self, missing: np.ndarray, frames: np.ndarray, launch: Launch) -> None:
        lanes = self._from_host_lanes
        for k, a in enumerate(range(0, len(missing), self._per)):
            lane, pages = lanes[k % len(lanes)], missing[a : a + self._per]
            places = _placed(frames[a : a + self._per], lane)
            with self._lock:
                self._copy_runs(lane, [(int(pages[i]), int(places[i]), j - i) for i, j in runs(pages, places)])
                self._start(lane, pages, places, launch)

    def _copy_runs(self, lane: Lane, found: list[tuple[int, int, int]]) -> None:
        """Runs of pages of the host, each (first page, first frame, how many).

        One batch after the other: all go over one bus. Two that share it may end together, their kernels run together
        while nothing is copied, and the next two begin together again.
        """
        assert self._stored is not None
        if self._copied is not None:
            lane.stream.wait(self._copied)
        copied = 0
        with self._timeline.span(lane.stream, lane.name, "copy") as told:
            for page, frame, count in found:
                place = page - self._stored_from
                copied += self._pool.copy_run(lane.stream, frame, self._stored.arrays, place, count)
            told["bytes"] = copied
        self._copied = lane.stream.record()
        self.stats["bytes_copied"] += copied

    def _from_disk(
        self, missing: np.ndarray, frames: np.ndarray, launch: Launch, stored: tuple[np.ndarray, np.ndarray]
    ) -> None:
        """Pages from disk; meanwhile those that the host has stored, and their frames."""
        assert self._fetch is not None
        fetch, per = self._fetch, self._per

        def parcel(number: int) -> Parcel:
            some = slice(number * per, (number + 1) * per)
            places = _placed(frames[some], self._readers[number % fetch.threads])
            return fetch.parcel(missing[some], places)

        def take(thread: int, number: int, parcel: Parcel, copied: int) -> None:
            with self._lock:
                self.stats["bytes_copied"] += copied
                self._start(self._readers[thread], parcel.pages, parcel.frames, launch, check=True)

        self._fetched(-(-len(missing) // per), parcel, take, lambda: self._from_host(*stored, launch))

    def _start(self, lane: Lane, pages: np.ndarray, places: np.ndarray, launch: Launch, *, check: bool = False) -> None:
        """Pages are on their way to these frames: say so to the kernels, and start them."""
        self._place(lane, pages, places)
        for i, j in runs(pages) if check else ():
            self._check(lane, int(pages[i]), j - i)
        self._launch_some(lane, pages, launch)
        self._shelf.arrived(pages, places)

    def _place(self, lane: Lane, pages: np.ndarray, places: np.ndarray) -> None:
        self._frame[pages] = places + (self._span.device if self._span is not None else 0)
        for i, j in runs(pages):
            a, b = int(pages[i]), int(pages[i]) + j - i
            lane.stream.copy(self._frame_of[a:b], self._frame[a:b])
        lane.sent = lane.stream.record()

    def _settle(self) -> None:
        """Wait until what the last visit sent has left the stage."""
        for event in (self._sent, self._here.sent, *(lane.sent for lane in self._lanes)):
            if event is not None:
                event.synchronize()
        self._orders.clear()


def _placed(frames: np.ndarray, lane: Lane) -> np.ndarray:
    """Frames for a batch: those that its pages stay in, or the lane's own."""
    return np.where(frames == NOWHERE, lane.base + np.arange(len(frames)), frames.astype(np.int64))


def _ascending(pages: np.ndarray, count: int) -> np.ndarray:
    found = np.asarray(pages).astype(np.int64)
    if len(found) > 1 and not (found[1:] > found[:-1]).all():
        found = np.unique(found)
    if len(found) and not 0 <= found[0] <= found[-1] < count:
        raise ValueError(f"pages {found[0]} to {found[-1]} are wanted, but there are {count}")
    return found


__all__ = ["PLANNED", "Lane", "Launch", "Visits"]
