"""How pages are visited: those on the device first, then those that are read where they lie in the host's memory, those
copied from there, and those from disk."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from penstock.memory import gpu
from penstock.memory.cache import Policy
from penstock.memory.fetch import Fetch, Parcel
from penstock.memory.orders import Listed, Order, Orders
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

    def __init__(self, name: str | int, base: int = 0, *, ahead: bool = False) -> None:
        """`ahead`: its kernels are let in before others, as the next batch waits for them."""
        self.name, self.base, self.stream = f"stream {name}", base, gpu.Stream(ahead=ahead)


class Load(NamedTuple):
    """Pages that come together: the lane they come by, the frames they go to, and the work over them."""

    lane: Lane
    pages: np.ndarray
    frames: np.ndarray
    order: Order


class Visits:
    """Visits to the pages of `penstock.memory.frames.DevicePages`, which says what lies where."""

    direction: Direction
    stream: gpu.Stream
    page_words: int
    policy: Policy
    kept: int
    stats: dict[str, int]
    of: str = ""
    """What lanes of a timeline say of the device, where there are several."""
    _gpu: int
    _lock: threading.Lock
    _loaded: bool
    _pool: Pool
    _shelf: Shelf
    _orders: Orders
    _lanes: list[Lane]
    _here: Lane
    """For pages that need not come: beside the lanes, as the caller's stream may be one that all others wait for."""
    _bus: Lane
    """For copies from the host's memory, one after the other, whichever lane they are for. If two lanes copy at a time
    they share the bus, may end together, run their kernels together while nothing is copied, and begin together again.
    And a copy that waits for one on another stream begins later than one that is next on its own."""
    _readers: list[Lane]
    """Of the lanes, those that pages from disk come by; the others are for pages from the host. One alone is both."""
    _per: int
    """Pages of a batch."""
    _frame: np.ndarray
    """Where each page lies, as kernels count frames; the host's copy of `_frame_of`."""
    _frame_of: Any
    _sent: gpu.Event | None
    """When the device has been told what the last visit had to tell it."""
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
    _all: tuple[Order, list[Load], list[Load]] | None
    """Of a visit of all pages: the work over those that stay, the batches from the host, and those from disk."""

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
        self._timeline = Timeline(self.of)
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
        if not len(missing) and not len(in_place):
            if len(hits):
                sent = self._orders.send(self.stream, hits)
                self._sent = self.stream.record()
                launch(self.stream, *sent.between(0, len(hits)))
            return
        self._shelf.placed = False
        frames, stored = self._shelf.admit(missing), self._is_stored(missing)
        near, far = missing[stored], missing[~stored]
        first, second, third = np.cumsum([len(hits), len(in_place), len(near)]).tolist()
        sent = self._orders.send(self.stream, np.concatenate([hits, in_place, near, far]))
        from_host = self._loads(near, frames[stored], self._from_host_lanes, sent, second)
        from_disk = self._loads(far, frames[~stored], self._from_disk_lanes, sent, third)
        if self._span is not None:
            self._frame[in_place] = self._span.host + (in_place - self._stored_from)
        self._tell(from_host + from_disk, int(wanted[0]), int(wanted[-1]) + 1)
        with self._beside_the_stream():
            if len(hits):
                self._launch(self._here, sent.between(0, first), len(hits), launch)
            if len(in_place):
                self._launch(self._here, sent.between(first, second), len(in_place), launch, "in place")
            self._bring(from_host, from_disk, partial(self._parcel, from_disk), launch)

    def _visit_all(self, launch: Launch) -> None:
        """All pages, to frames and in an order that are the same each time."""
        count, kept = len(self.direction), self.kept
        if self._all is None:
            self._parcels: dict[int, Parcel] = {}
            self._all = self._every_load()  # last: what is interrupted before is done again
        staying, from_host, from_disk = self._all
        if not self._shelf.placed:
            self._settle()
            self._tell(from_host + from_disk, kept, count)
        self._count(count, kept)
        with self._beside_the_stream():
            if kept:
                self._launch(self._here, staying, kept, launch)
            self._bring(from_host, from_disk, self._parcel_of_all, launch)
        self._shelf.placed = True

    def _every_load(self) -> tuple[Order, list[Load], list[Load]]:
        """The host's pages come from the last one on, so that those of small vertices come before those of large ones,
        where vertices are in the order of their degrees."""
        kept, stored, per = self.kept, self._stored_to, self._per
        from_host = [*reversed([*pairwise([*range(kept, stored, per), stored])])]
        from_disk = [*pairwise([*range(stored, len(self.direction), per), len(self.direction)])]

        def loads(cuts: list[tuple[int, int]], lanes: list[Lane]) -> list[Load]:
            found = []
            for number, (a, b) in enumerate(cuts):
                lane = lanes[number % len(lanes)]
                found.append(Load(lane, np.arange(a, b), lane.base + np.arange(b - a), self._orders.between(a, b)))
            return found

        staying = self._orders.between(0, kept)
        return staying, loads(from_host, self._from_host_lanes), loads(from_disk, self._from_disk_lanes)

    @contextmanager
    def _beside_the_stream(self) -> Iterator[None]:
        """Let the lanes begin after what the caller's stream has, and that go on after them."""
        before, lanes = self.stream.record(), (*self._lanes, self._here, self._bus)
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

    # ---- what comes, and where

    def _loads(self, pages: np.ndarray, frames: np.ndarray, lanes: list[Lane], sent: Listed, at: int) -> list[Load]:
        """Batches of pages, which were sent from place `at` on, to the frames they stay in, or to their lanes'."""
        found = []
        for number, a in enumerate(range(0, len(pages), self._per)):
            lane, b = lanes[number % len(lanes)], min(a + self._per, len(pages))
            some = frames[a:b].astype(np.int64)
            places = np.where(frames[a:b] == NOWHERE, lane.base + np.arange(b - a), some)
            found.append(Load(lane, pages[a:b], places, sent.between(at + a, at + b)))
        return found

    def _tell(self, loads: list[Load], first: int, end: int) -> None:
        """Tell kernels where pages will be, and those between `first` and `end` are.

        One copy for all, of what lies between them, too: of pages found on the device it says what is there already,
        and of others nobody reads it before they come. What copies and computes begins after it.
        """
        device = self._span.device if self._span is not None else 0
        for load in loads:
            self._frame[load.pages] = load.frames + device
        self.stream.copy(self._frame_of[first:end], self._frame[first:end])
        self._sent = self.stream.record()

    # ---- from the host, and from disk

    @property
    def _from_host_lanes(self) -> list[Lane]:
        return [lane for lane in self._lanes if lane not in self._readers] or self._lanes

    @property
    def _from_disk_lanes(self) -> list[Lane]:
        """One for each thread that reads."""
        return self._readers[: self._fetch.threads] if self._fetch is not None else []

    def _bring(
        self, from_host: list[Load], from_disk: list[Load], parcel: Callable[[int], Parcel], launch: Launch
    ) -> None:
        """Have pages copied, and those from disk brought, seen to be whole, and start kernels over each batch when it
        is there. `parcel(k)`: how batch k comes from disk."""
        if not from_disk:
            self._copy_all(from_host, launch)
            return
        assert self._fetch is not None

        def take(thread: int, number: int, parcel: Parcel, copied: int) -> None:
            with self._lock:
                self.stats["bytes_copied"] += copied
                self._start(from_disk[number], launch, check=True)

        before, alone = self._fetch.bytes_read, len(self._lanes) == 1
        if alone:
            self._copy_all(from_host, launch)
        meanwhile = None if alone else partial(self._copy_all, from_host, launch)
        try:
            self._fetch.run(len(from_disk), parcel, take, meanwhile=meanwhile)
            self._refuse_damaged()
        except BaseException:
            self._shelf.forget()
            if self._sums is not None:  # what it has found is no matter of the next visit
                with suppress(Exception):
                    self._sums.damaged()
            raise
        finally:
            self.stats["bytes_read"] += self._fetch.bytes_read - before

    def _parcel(self, loads: list[Load], number: int) -> Parcel:
        assert self._fetch is not None
        return self._fetch.parcel(loads[number].pages, loads[number].frames)

    def _parcel_of_all(self, number: int) -> Parcel:
        """How a batch from disk comes at a visit of all pages. The first one finds out, and it is kept, if there is
        room."""
        found = self._parcels.get(number)
        if found is None:
            assert self._all is not None
            found = self._parcel(self._all[2], number)
            if self._plans_reads:
                self._parcels[number] = found
        return found

    def _refuse_damaged(self) -> None:
        """Wait for the pages that were checked."""
        damaged = self._sums.damaged() if self._sums is not None else None
        if damaged is not None:
            raise self.direction.damage(*damaged)

    def _copy_all(self, loads: list[Load], launch: Launch) -> None:
        """Batches from the host, in this order."""
        for load in loads:
            with self._lock:
                self._copy(load)
                self._start(load, launch)

    def _copy(self, load: Load) -> None:
        assert self._stored is not None
        bus, lane, copied = self._bus.stream, load.lane.stream, 0
        bus.wait(lane.record())  # until then its frames are in use
        with self._timeline.span(bus, self._bus.name, "copy") as told:
            for a, b in runs(load.pages, load.frames):
                place = int(load.pages[a]) - self._stored_from
                copied += self._pool.copy_run(bus, int(load.frames[a]), self._stored.arrays, place, b - a)
            told["bytes"] = copied
        lane.wait(bus.record())
        self.stats["bytes_copied"] += copied

    def _start(self, load: Load, launch: Launch, *, check: bool = False) -> None:
        """Pages are on their way by their lane: have them checked there, and start kernels."""
        if check and self._sums is not None:
            base = self._span.device if self._span is not None else 0
            for a, b in runs(load.pages):
                self._sums.check(load.lane.stream, int(load.pages[a]), b - a, base)
        self._launch(load.lane, load.order, len(load.pages), launch)
        self._shelf.arrived(load.pages, load.frames)

    def _launch(self, lane: Lane, order: Order, pages: int, launch: Launch, name: str = "kernel") -> None:
        with self._timeline.span(lane.stream, lane.name, name, pages=pages):
            launch(lane.stream, *order)

    def _settle(self) -> None:
        """Wait until what the last visit sent has left the stage."""
        if self._sent is not None:
            self._sent.synchronize()


def _ascending(pages: np.ndarray, count: int) -> np.ndarray:
    found = np.asarray(pages).astype(np.int64)
    if len(found) > 1 and not (found[1:] > found[:-1]).all():
        found = np.unique(found)
    if len(found) and not 0 <= found[0] <= found[-1] < count:
        raise ValueError(f"pages {found[0]} to {found[-1]} are wanted, but there are {count}")
    return found


__all__ = ["PLANNED", "Lane", "Launch", "Visits"]
