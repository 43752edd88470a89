"""One direction's pages on the GPU: all of them, or some in a cache and the rest streamed through a ring of frames."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from types import TracebackType
from typing import Self

import numpy as np

from penstock.config import Settings
from penstock.errors import DoesNotFit, UsageError
from penstock.memory import gpu
from penstock.memory.buffers import PAGE
from penstock.memory.cache import Policy
from penstock.memory.fetch import Fetch, Parcel
from penstock.memory.ledger import Ledger
from penstock.memory.orders import Orders, upload
from penstock.memory.pages import PageFeed
from penstock.memory.pinned import Pinned
from penstock.memory.pool import Layout, Pool
from penstock.memory.share import part_of, whole_of
from penstock.memory.shelf import NOWHERE, Shelf
from penstock.memory.span import Span, span
from penstock.memory.sums import Sums
from penstock.memory.tasks import BLOCK, HEAVY, SEGMENT, Tasks, cut
from penstock.memory.visits import PLANNED, Lane, Launch, Visits
from penstock.store.reader import Direction

RING: dict[Policy, int] = {"resident": 2, "lru": 4}
"""Which part of the frames batches may take: a pass that keeps few pages gains more by large batches, a search by pages
that stay."""
_FROM_DISK = 8 << 20
"""Bytes of a batch from disk: enough for what the host does once a batch."""
_FETCHING = 6
"""Threads that read from disk, if there are as many cores."""
_READER = 256 << 10
"""Bytes to read that are worth a thread."""
_MUCH = 64 << 20
"""Bytes from which pages are checked on the device: less is checked on the host before a kernel is loaded."""
_ALIGN = 256
"""What the driver rounds an allocation up to."""


class DevicePages(Visits):
    """Pages for kernels that go over tasks and segments; see `penstock.memory.tasks` for those.

    Page p lies in frame `frame_of[p]`: its neighbours from `words[frame * page_words]` on, its `vertices_of[p] + 1` arc
    offsets at the end of the frame, and the values of its arc a in column k at `columns[k][frame * strides[k] + a]`.

    To the caller all happens on one `stream`: what was started there comes before a visit, what follows comes after it.
    Up to `room` bytes of device memory are used, and up to `host_room` of the host's. Pages that a `lender` on another
    device, which must live longer, has in the host's memory are streamed from there.

    Without columns, and where kernels can read the host's memory, pages there have frame numbers, too: `words` begins
    at the lower one of both addresses. See `penstock.memory.span`.
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
        self.stats: dict[str, int] = {"bytes_copied": 0, "bytes_read": 0, "hits": 0, "in_place": 0, "pages": 0}
        self._gpu, self._lock, self._loaded = gpu.current(), threading.Lock(), False
        self._all = None
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
            self._fetch: Fetch | None = None
            self._sums: Sums | None = None
            self._stored: Pinned | None = None
            self._span: Span | None = None
            self._held = held.pop_all()

    def _share_out(self, fit: int, streams: int, batch: int, policy: Policy) -> None:
        """How many frames keep their pages, how many are in the ring, and where streamed pages come from."""
        count = len(self.direction)
        self.policy, self.source, self.kept, self._per = policy, "device", count, 1
        self._lanes: list[Lane] = []
        self._fetching = min(_FETCHING, self.settings.threads)
        if fit < count:
            self._per = max(1, min(batch // self.layout.nbytes, fit // (RING[policy] * streams)))
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
                # A lane for each thread that reads, and one for pages from the host.
                lanes = max(1, min(self._fetching + 1, fit // 3))
                self._per = max(1, min(_FROM_DISK // self.layout.nbytes, fit // (2 * lanes)))
                self.kept = fit - lanes * self._per
            self._lanes = [Lane(k, self.kept + k * self._per, ahead=True) for k in range(lanes)]
        else:
            self.policy = "resident"
        self._here, self._bus = Lane(len(self._lanes)), Lane("of copies")
        self._readers = (self._lanes[1:] or self._lanes) if self.source == "disk" else []
        self._shelf = Shelf(count, self.kept, self.policy)

    def _borrows(self) -> bool:
        """Whether the lender has all that will be streamed."""
        lender, staying = self._lender, self.kept if self.policy == "resident" else 0
        if lender is None or lender._stored is None:
            return False
        return lender._stored_from <= staying and lender._stored_to == len(self.direction)

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

    # ---- from disk

    def load(self) -> None:
        """Read the pages that stay on the device, and those that will be streamed from the host's memory."""
        if self._loaded:
            return
        self._stored = None
        count, layout = len(self.direction), self.layout
        staying = self._shelf.staying
        self._stored_from = self._stored_to = staying
        with ExitStack() as held:
            much = self.source == "disk" or staying * layout.nbytes >= _MUCH
            if self.settings.verify_checksums and self._pool.plain and much:
                self._sums = Sums(self._pool, self.frame_of)
            if self.source == "host" and self._lender is not None and self._borrows():
                self._stored, self._stored_from = self._lender._stored, self._lender._stored_from
                self._stored_to = count
            elif stored := self._storable(staying):
                self._stored = Pinned(self._host, layout.arrays(stored), "pinned pages")
                held.callback(self._stored.close)
                self._stored_to = staying + stored
                self._store(np.arange(staying, self._stored_to))
            if staying:
                self._fill(staying)
            if not self.names:  # values of columns are found by frame numbers, too
                self._span = span(self._pool.arrays[0], self._stored, self.page_words)
            if self._span is not None:
                self.words, self._spent = self._span.words, np.zeros(count, np.uint32)
            self._frame[:staying] = np.arange(staying) + (self._span.device if self._span is not None else 0)
            self._shelf.fill()
            gpu.fill(self._frame_of[:count], self._frame)
            if self.source == "disk":
                fetch = Fetch(self._pool, self._host, self.settings, [lane.stream for lane in self._readers])
                self._fetch = held.enter_context(fetch)
                planned = PLANNED * (count - self._stored_to)
                self._plans_reads = planned <= self._host.free
                if self._plans_reads:
                    held.enter_context(self._host.reserve(planned, "plans of reads"))
            self._held.push(held.pop_all())
        if self._whole is not None:
            self._whole.resize(self._host.used)
        # Plain copies may return before the device has all of it.
        gpu.synchronize()
        self._loaded = True

    def _storable(self, staying: int) -> int:
        """How many pages beyond those the host keeps: all that are streamed, or what it has room for beside reading."""
        count = len(self.direction)
        if self.source != "disk":
            return count - staying if self.source == "host" else 0
        each = sum(size * dtype.itemsize for size, dtype in self.layout.arrays(1))
        reading = self._pool.reading_bytes(self.settings.threads)
        fetching = Fetch.wanted(self._pool, self._fetching)
        # A quarter of what is free is enough to read with, where that is little.
        spare = self._host.free - max(reading, min(fetching, self._host.free // 4)) - (1 + len(self.names)) * PAGE
        spare -= PLANNED * (count - staying)
        return min(max(0, spare // each), count - staying)

    def _fill(self, staying: int) -> None:
        """Bring pages to the frames where they stay."""
        streams = [gpu.Stream() for _ in range(self._readers_for(staying, self._fetching))]
        self._frame[:staying] = np.arange(staying)
        gpu.fill(self._frame_of[:staying], self._frame[:staying])

        def take(thread: int, number: int, parcel: Parcel, copied: int) -> None:
            with self._lock:
                self.stats["bytes_copied"] += copied
                if self._sums is not None:
                    self._sums.check(streams[thread], int(parcel.pages[0]), len(parcel.pages), 0)

        touched = self._sums is None and self.settings.verify_checksums
        with Fetch(self._pool, self._host, self.settings, streams, touched=touched) as fetch:
            per = max(1, _FROM_DISK // self.layout.nbytes)

            def parcel(number: int) -> Parcel:
                some = np.arange(number * per, min((number + 1) * per, staying))
                return fetch.parcel(some, some)

            fetch.run(-(-staying // per), parcel, take)
            self.stats["bytes_read"] += fetch.bytes_read
        self._refuse_damaged()

    def _store(self, pages: np.ndarray) -> None:
        """Read pages into the host's memory."""
        assert self._stored is not None
        stored, first_page = self._stored.arrays, int(pages[0])
        settings = replace(self.settings, threads=self._readers_for(len(pages), self.settings.threads))
        first, _, step = part_of(self.direction)
        with PageFeed(whole_of(self.direction), self._host, settings, columns=self.names, cache=0) as feed:

            def take(worker: int, number: int, parts: tuple[np.ndarray, ...]) -> None:
                page = (number - first) // step
                self._pool.keep(stored, page - first_page, page, parts)

            feed.run_raw(first + pages * step, take)
            self.stats["bytes_read"] += feed.stats["bytes_read"]

    def _readers_for(self, pages: int, most: int) -> int:
        """Threads that so many pages are worth."""
        return max(1, min(most, pages, -(-pages * self.layout.nbytes // _READER)))

    def close(self) -> None:
        """Wait for what is started, and give all memory back. Views of it must be gone by then, too."""
        try:
            gpu.synchronize()
        finally:
            for name in _ON_DEVICE & vars(self).keys():
                delattr(self, name)
            self._all, self._lanes = None, []
            self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


_ON_DEVICE = {"words", "columns", "strides", "first_of", "vertices_of", "frame_of", "tasks", "segments", "heavy"}
_ON_DEVICE |= {"part_start", "_pool", "_orders", "_frame_of", "_fetch", "_parcels", "_span", "_sums"}


def _refuse_huge(direction: Direction) -> None:
    store = direction.store
    if store.vertices >= 1 << 32:
        raise UsageError(f"{store.path} has {store.vertices} vertices, a GPU takes less than 2**32: use device='cpu'")


def _beside(work: Tasks, pages: int, columns: int) -> int:
    """Device bytes beside the frames."""
    tasks, segments = max(1, len(work.tasks)), max(1, len(work.segments))
    sizes = [16 * tasks, 16 * segments, *[4 * tasks] * 2, *[4 * segments] * 2, *[4 * max(1, pages)] * 3]
    sizes += Sums.needed(pages, columns)
    sizes += [8 * max(1, columns), 4 * max(1, len(work.vertex)), 4 * (len(work.vertex) + 1)]
    return sum(-(-size // _ALIGN) * _ALIGN for size in sizes) + _ALIGN * (1 + columns)


__all__ = ["BLOCK", "HEAVY", "SEGMENT", "DevicePages", "Launch"]
