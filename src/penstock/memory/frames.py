"""One direction's pages on the GPU: all of them, or some in a cache and the rest streamed through a ring of frames."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from time import perf_counter
from types import TracebackType
from typing import Any, Self

import numpy as np

from penstock.config import Settings
from penstock.errors import DoesNotFit, UsageError
from penstock.memory import gpu
from penstock.memory.cache import Policy
from penstock.memory.ledger import Ledger
from penstock.memory.orders import Order, Orders, upload
from penstock.memory.pages import PageFeed
from penstock.memory.pinned import Pinned, pinning
from penstock.memory.pool import Layout, Pool, runs
from penstock.memory.share import part_of, whole_of
from penstock.memory.shelf import NOWHERE, Shelf
from penstock.memory.tasks import BLOCK, HEAVY, SEGMENT, Tasks, cut
from penstock.observe.events import current
from penstock.store.reader import Direction

Launch = Callable[[gpu.Stream, Any, int, Any, int], None]
"""`launch(stream, order, tasks, segment order, segments)`: start kernels over the first `tasks` task numbers in `order`
and the first `segments` segment numbers in `segment order`. It is never called twice at the same time."""

_ALIGN = 256
"""What the driver rounds an allocation up to."""


class _Lane:
    """A stream with frames of its own, filled and used in the stream's order: nothing overwrites what is in use."""

    def __init__(self, number: int, base: int) -> None:
        self.name, self.base, self.stream = f"stream {number}", base, gpu.Stream()
        self.pages: list[int] = []
        self.fresh = 0
        self.began = 0.0
        self.copied = 0
        self.sent: gpu.Event | None = None


class DevicePages:
    """Pages for kernels that go over tasks and segments; see `penstock.memory.tasks` for those.

    Page p lies in frame `frame_of[p]`: its neighbours from `words[frame * page_words]` on, its `vertices_of[p] + 1` arc
    offsets at the end of the frame, and the values of its arc a in column k at `columns[k][frame * strides[k] + a]`.

    To the caller all happens on one `stream`: what was started there comes before a visit, what follows comes after it.
    Up to `room` bytes of device memory are used, and up to `host_room` of the host's. Pages that a `lender` on another
    device, which must live longer, has in the host's memory are streamed from there.
    """

    def __init__(
        self,
        direction: Direction,
        columns: Sequence[str],
        device: Ledger,
        host: Ledger,
        settings: Settings,
        *,
        policy: Policy = "resident",
        room: int,
        host_room: int | None = None,
        streams: int = 4,
        batch: int = 32 << 20,
        stream: gpu.Stream | None = None,
        lender: DevicePages | None = None,
    ) -> None:
        if policy not in ("lru", "resident"):
            raise ValueError(f"there is no cache policy {policy!r}; the policies are lru and resident")
        _refuse_huge(direction)
        self.direction, self.names, self.settings, self._host = direction, tuple(columns), settings, host
        self.stream = stream or gpu.Stream(null=True)
        self._pool, self.work, self._lender = Pool(direction, columns), cut(direction), lender
        self.layout = self._pool.layout
        self.page_words, self.limit = self.layout.page_words, self.work.limit
        self.stats: dict[str, int] = {"bytes_copied": 0, "bytes_read": 0, "hits": 0, "pages": 0}
        self._gpu, self._lock, self._loaded = gpu.current(), threading.Lock(), False
        self._batches: list[tuple[int, int, Order]] | None = None
        self._placed = False
        count = len(direction)
        with ExitStack() as held:
            room = min(room, device.free)
            beside = _beside(self.work, count, len(self.names))
            fit = (room - beside) // self.layout.nbytes
            if fit < min(count, 1):
                what = f"the {direction.name} pages of {direction.store.path} on the GPU"
                raise DoesNotFit(what, needed=beside + self.layout.nbytes, limit=room, setting="gpu_memory_limit")
            self._whole = None
            if host_room is not None:
                # A ledger of our own: readers take a share of what is free in theirs.
                self._whole = held.enter_context(host.reserve(min(host_room, host.free), "graph pages"))
                self._host = Ledger(self._whole.nbytes)
            self._share_out(fit, streams, batch, policy)
            frames = self.kept + len(self._lanes) * self._per
            self.nbytes = beside + frames * self.layout.nbytes
            held.enter_context(device.reserve(self.nbytes, "graph pages"))
            held.enter_context(self._host.reserve(self.work.nbytes + 24 * count, "tasks"))
            shapes = [(count, np.uint32), (len(self.work.tasks), np.uint32), (len(self.work.segments), np.uint32)]
            stage = Pinned(self._host, shapes, "tasks")
            held.callback(stage.close)
            self._frame, *stages = stage.arrays
            self._frame[:] = NOWHERE
            self._allocate(frames, stages)
            self._feed: PageFeed | None = None
            self._stored: Pinned | None = None
            self._held = held.pop_all()

    def _share_out(self, fit: int, streams: int, batch: int, policy: Policy) -> None:
        """How many frames keep their pages, how many are in the ring, and where streamed pages come from."""
        count = len(self.direction)
        self.policy, self.source, self.kept, self._per = policy, "device", count, 1
        self._lanes: list[_Lane] = []
        if fit < count:
            self._per = max(1, min(batch // self.layout.nbytes, fit // (4 * streams)))
            lanes = min(streams, fit // self._per)
            self.kept = fit - lanes * self._per
            stored = count - self.kept if policy == "resident" else count
            needed = Pinned.needed(self.layout.arrays(stored))
            workers = self.settings.threads
            reading = self._pool.reading_bytes(workers) + self._stage_bytes()
            self.source = "host" if needed + reading <= self._host.free else "disk"
            if self._borrows():
                self.source = "host"
            if self.source == "disk":
                lanes = min(lanes, workers)
                self.kept = fit - lanes * self._per
            self._lanes = [_Lane(k, self.kept + k * self._per) for k in range(lanes)]
        else:
            self.policy = "resident"
        self._shelf = Shelf(count, self.kept, self.policy)

    def _borrows(self) -> bool:
        """Whether the lender has all that will be streamed."""
        lender, staying = self._lender, self.kept if self.policy == "resident" else 0
        return lender is not None and lender._stored is not None and lender._stored_from <= staying

    def _stage_bytes(self) -> int:
        return (
            self.work.nbytes + 32 * len(self.direction) + 4 * (len(self.work.tasks) + len(self.work.segments)) + 16384
        )

    def _allocate(self, frames: int, stages: list[np.ndarray]) -> None:
        records, work = self.direction.records, self.work
        self._pool.allocate(frames)
        self._orders = Orders(work, self.kept, stages)
        self._frame_of = gpu.empty(max(len(records), 1), np.uint32)
        self.frame_of = gpu.view(self._frame_of)
        words, *columns = [gpu.view(each) for each in self._pool.arrays]
        self.words, self.columns = words, tuple(columns)
        self.strides = gpu.view(upload(np.array(self.layout.strides, np.uint64)))
        self.first_of = gpu.view(upload(records["first_vertex"].astype(np.uint32)))
        self.vertices_of = gpu.view(upload(records["vertices"].astype(np.uint32)))
        self.tasks, self.segments = gpu.view(upload(work.tasks)), gpu.view(upload(work.segments))
        self.heavy, self.part_start = gpu.view(upload(work.vertex)), gpu.view(upload(work.part_start))
        self._sent: gpu.Event | None = None

    @staticmethod
    def needed(direction: Direction, columns: Sequence[str]) -> int:
        """Device bytes that hold all pages."""
        layout = Layout.of(direction, columns)
        return _beside(cut(direction), len(direction), len(columns)) + len(direction) * layout.nbytes

    @staticmethod
    def least(direction: Direction, columns: Sequence[str]) -> int:
        """Device bytes that pages can be streamed with, if slowly."""
        layout = Layout.of(direction, columns)
        return _beside(cut(direction), len(direction), len(columns)) + min(len(direction), 2) * layout.nbytes

    @staticmethod
    def frame_bytes(direction: Direction, columns: Sequence[str]) -> int:
        """Device bytes for one page more."""
        return Layout.of(direction, columns).nbytes

    @property
    def resident(self) -> bool:
        """Whether all pages are on the device and stay there."""
        return self._loaded and self.kept == len(self.direction)

    # ---- visits

    def visit(self, pages: np.ndarray | None, launch: Launch) -> None:
        """Start kernels over these pages (all: None), each once: first over those that are on the device, then over
        batches of the others as they arrive. When this returns all is started, not finished."""
        if not self._loaded:
            self.load()
        began, (before, hits) = perf_counter(), (self.stats["pages"], self.stats["hits"])
        self._visit(pages, launch)
        if (events := current()) is not None:
            found = {"pages": self.stats["pages"] - before, "hits": self.stats["hits"] - hits}
            events.record("gpu", f"{self.direction.name} pages", began, perf_counter(), **found)

    def _visit(self, pages: np.ndarray | None, launch: Launch) -> None:
        count = len(self.direction)
        if pages is None and self.kept == count:
            self._count(count, count)
            if count:
                launch(self.stream, *self._orders.every)
            return
        if pages is None and self.policy == "resident" and self.source == "host":
            self._visit_all(launch)
            return
        wanted = np.arange(count) if pages is None else _ascending(pages, count)
        self._settle()
        hits, missing = self._shelf.split(wanted)
        self._count(len(wanted), len(hits))
        before = self.stream.record()
        if len(hits):
            order = self._orders.send(self.stream, hits)
            self._sent = self.stream.record()
            launch(self.stream, *order)
        if not len(missing):
            return
        self._placed = False
        frames = self._shelf.admit(missing)
        with self._beside_the_stream(before):
            if self.source == "host":
                self._from_host(missing, frames, launch)
            else:
                self._from_disk(missing, frames, launch)

    @contextmanager
    def _beside_the_stream(self, before: gpu.Event) -> Iterator[None]:
        """Let the lanes begin after an event, and the caller's stream go on after them."""
        for lane in self._lanes:
            lane.stream.wait(before)
        try:
            yield
        finally:
            for lane in self._lanes:
                lane.pages.clear()
                lane.fresh = lane.copied = 0
                self.stream.wait(lane.stream.record())
            self._shelf.settle()

    def _count(self, pages: int, hits: int) -> None:
        self.stats["pages"] += pages
        self.stats["hits"] += hits

    def _visit_all(self, launch: Launch) -> None:
        """All pages, from frames and orders that are the same each time."""
        count, per = len(self.direction), self._per
        if self._batches is None:
            cuts = [*range(self.kept, count, per), count]
            self._batches = [(a, b, self._orders.between(a, b)) for a, b in pairwise(cuts)]
            self._first = self._orders.between(0, self.kept)
        placed = self._placed
        if not placed:
            self._settle()
        self._count(count, self.kept)
        before = self.stream.record()
        if self.kept:
            launch(self.stream, *self._first)
        with self._beside_the_stream(before):
            for k, (a, b, order) in enumerate(self._batches):
                lane = self._lanes[k % len(self._lanes)]
                lane.began = perf_counter()
                self._copy_run(lane, a, lane.base, b - a)
                if not placed:
                    self._place(lane, np.arange(a, b), lane.base + np.arange(b - a))
                launch(lane.stream, *order)
                self._note(lane, b - a)
        self._placed = True

    def _from_host(self, missing: np.ndarray, frames: np.ndarray, launch: Launch) -> None:
        for k, a in enumerate(range(0, len(missing), self._per)):
            lane, pages = self._lanes[k % len(self._lanes)], missing[a : a + self._per]
            lane.began = perf_counter()
            kept = frames[a : a + self._per].astype(np.int64)
            places = np.where(kept == NOWHERE, lane.base + np.arange(len(pages)), kept)
            for i, j in runs(pages, places):
                self._copy_run(lane, int(pages[i]), int(places[i]), j - i)
            self._start(lane, pages, places, launch)

    def _copy_run(self, lane: _Lane, page: int, frame: int, count: int) -> None:
        assert self._stored is not None
        place = page - self._stored_from
        lane.copied += self._pool.copy_run(lane.stream, frame, self._stored.arrays, place, count)

    def _from_disk(self, missing: np.ndarray, frames: np.ndarray, launch: Launch) -> None:
        assert self._feed is not None
        kept = dict(zip(missing.tolist(), frames.tolist(), strict=True)) if self.kept else {}
        places: list[list[int]] = [[] for _ in self._lanes]
        events, (first, _, step) = current(), part_of(self.direction)

        def flush(worker: int) -> None:
            lane = self._lanes[worker]
            if lane.pages:
                order = np.argsort(lane.pages)
                self._start(lane, np.array(lane.pages)[order], np.array(places[worker])[order], launch, events)
                places[worker].clear()

        def take(worker: int, number: int, parts: tuple[np.ndarray, ...]) -> None:
            lane, page = self._lanes[worker], (number - first) // step
            with gpu.using(self._gpu):
                if not lane.pages:
                    lane.began = perf_counter()
                frame = kept.get(page, int(NOWHERE))
                values = self._pool.values(page, parts, self._unpacked[worker])
                if frame == NOWHERE:
                    frame = lane.base + lane.fresh
                    lane.fresh += 1
                with self._lock:
                    lane.copied += self._pool.copy(lane.stream, frame, values)
                lane.pages.append(page)
                places[worker].append(frame)
                # The bytes are the feed's again when this returns.
                lane.stream.record().synchronize()
                if len(lane.pages) == self._per:
                    with self._lock:
                        flush(worker)

        before = self._feed.stats["bytes_read"]
        self._feed.run_raw(first + missing * step, take)
        self.stats["bytes_read"] += self._feed.stats["bytes_read"] - before
        for worker in range(len(self._lanes)):
            flush(worker)

    def _start(self, lane: _Lane, pages: np.ndarray, places: np.ndarray, launch: Launch, events: Any = None) -> None:
        """Pages are on their way to these frames: say so to the kernels, and start them."""
        self._place(lane, pages, places)
        order = self._orders.send(lane.stream, pages)
        lane.sent = lane.stream.record()
        launch(lane.stream, *order)
        self._note(lane, len(pages), events)
        self._shelf.arrived(pages, places)
        lane.pages.clear()
        lane.fresh = 0

    def _place(self, lane: _Lane, pages: np.ndarray, places: np.ndarray) -> None:
        self._frame[pages] = places
        for i, j in runs(pages):
            a, b = int(pages[i]), int(pages[i]) + j - i
            lane.stream.copy(self._frame_of[a:b], self._frame[a:b])
        lane.sent = lane.stream.record()

    def _settle(self) -> None:
        """Wait until what the last visit sent has left the stage."""
        for event in (self._sent, *(lane.sent for lane in self._lanes)):
            if event is not None:
                event.synchronize()
        self._orders.clear()

    def _note(self, lane: _Lane, pages: int, events: Any = None) -> None:
        self.stats["bytes_copied"] += lane.copied
        events = events or current()
        if events is not None:
            events.record(lane.name, "batch", lane.began, perf_counter(), pages=pages, bytes=lane.copied)
        lane.copied = 0

    # ---- from disk

    def load(self) -> None:
        """Read the pages that stay on the device, and those that will be streamed from the host's memory."""
        if self._loaded:
            return
        count, layout = len(self.direction), self.layout
        staying = self._shelf.staying
        self._stored_from = staying
        with ExitStack() as held:
            reading = staying
            if self.source == "host" and self._lender is not None and self._borrows():
                self._stored, self._stored_from = self._lender._stored, self._lender._stored_from
            elif self.source == "host":
                self._stored, reading = Pinned(self._host, layout.arrays(count - staying), "pinned pages"), count
                held.callback(self._stored.close)
            if reading:
                self._read(np.arange(reading), staying)
            self._frame[:staying] = np.arange(staying)
            self._shelf.fill()
            gpu.fill(self._frame_of[:count], self._frame)
            if self.source == "disk":
                workers = len(self._lanes)
                settings = dataclasses.replace(self.settings, threads=workers)
                self._unpacked = self._pool.buffers(workers, self._host, held)
                self._feed = held.enter_context(
                    PageFeed(whole_of(self.direction), self._host, settings, columns=self.names, policy=self.policy)
                )
                held.enter_context(pinning(self._feed.memory))
            self._held.push(held.pop_all())
        if self._whole is not None:
            self._whole.resize(self._host.used)
        # Plain copies may return before the device has all of it, and our streams do not wait for them.
        gpu.synchronize()
        self._loaded = True

    def _read(self, pages: np.ndarray, staying: int) -> None:
        """Pages up to `staying` go to their frames, the others to the host's memory."""
        workers = self.settings.threads
        streams = [gpu.Stream() for _ in range(workers)]
        stored = self._stored.arrays if self._stored is not None else []
        with ExitStack() as held:
            buffers = self._pool.buffers(workers, self._host, held)
            whole = whole_of(self.direction)
            feed = held.enter_context(PageFeed(whole, self._host, self.settings, columns=self.names, cache=0))
            held.enter_context(pinning(feed.memory))
            first, _, step = part_of(self.direction)

            def take(worker: int, number: int, parts: tuple[np.ndarray, ...]) -> None:
                page = (number - first) // step
                if page >= staying:
                    self._pool.keep(stored, page - staying, page, parts)
                    return
                values = self._pool.values(page, parts, buffers[worker])
                with gpu.using(self._gpu):
                    with self._lock:
                        self.stats["bytes_copied"] += self._pool.copy(streams[worker], page, values)
                    streams[worker].record().synchronize()

            feed.run_raw(first + pages * step, take)
            self.stats["bytes_read"] += feed.stats["bytes_read"]

    def close(self) -> None:
        """Wait for what is started, and give all memory back. Views of it must be gone by then, too."""
        try:
            gpu.synchronize()
        finally:
            for name in _ON_DEVICE & vars(self).keys():
                delattr(self, name)
            self._batches, self._lanes = None, []
            self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


_ON_DEVICE = {"words", "columns", "strides", "first_of", "vertices_of", "frame_of", "tasks", "segments", "heavy"}
_ON_DEVICE |= {"part_start", "_pool", "_orders", "_frame_of", "_first"}


def _refuse_huge(direction: Direction) -> None:
    store = direction.store
    if store.vertices > 1 << 32:
        raise UsageError(f"{store.path} has {store.vertices} vertices, a GPU takes at most 2**32: use device='cpu'")


def _beside(work: Tasks, pages: int, columns: int) -> int:
    """Device bytes beside the frames."""
    tasks, segments = max(1, len(work.tasks)), max(1, len(work.segments))
    sizes = [16 * tasks, 16 * segments, *[4 * tasks] * 2, *[4 * segments] * 2, *[4 * max(1, pages)] * 3]
    sizes += [8 * max(1, columns), 4 * max(1, len(work.vertex)), 4 * (len(work.vertex) + 1)]
    return sum(-(-size // _ALIGN) * _ALIGN for size in sizes) + _ALIGN * (1 + columns)


def _ascending(pages: np.ndarray, count: int) -> np.ndarray:
    found = np.asarray(pages).astype(np.int64)
    if len(found) > 1 and not (found[1:] > found[:-1]).all():
        found = np.unique(found)
    if len(found) and not 0 <= found[0] <= found[-1] < count:
        raise ValueError(f"pages {found[0]} to {found[-1]} are wanted, but there are {count}")
    return found


__all__ = ["BLOCK", "HEAVY", "SEGMENT", "DevicePages", "Launch"]
