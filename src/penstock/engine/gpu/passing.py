"""Lists of neighbours that have no room on a GPU. The host makes them, in its memory or in a file; ranges of them are
held on the device in turn, while all lists that may have a neighbour in common with them pass over two lanes: one is
filled while kernels go over the other. Whole lists may also be all there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from penstock.engine.cpu.oriented import Oriented
from penstock.engine.gpu.lists import Part, Pass, item_count, lengths_of, list_items
from penstock.engine.gpu.plan import SLACK
from penstock.engine.pairing import SPILLING
from penstock.engine.plan import Plan, number_dtype
from penstock.errors import DoesNotFit
from penstock.memory import gpu
from penstock.memory.card import Array, Card
from penstock.memory.ledger import Reservation
from penstock.memory.staging import HALF, Ring
from penstock.memory.timeline import Timeline

if TYPE_CHECKING:
    from penstock.engine.engine import Engine

ENTRY = 4
"""Bytes of an entry."""
MOST = 16 << 20
"""Bytes of lists in a lane, unless one list is longer: their copy takes many times what a launch does."""
LANES = 2
_NO_ITEMS = np.zeros((0, 2), np.uint32)
_RING = 3
"""Pieces of pinned memory."""


def least_bytes(longest: int) -> int:
    """What it takes to hold and to pass one list of so many entries at a time."""
    return ENTRY * longest + LANES * _lane_bytes(longest)


def share_out(room: int, entries: int, longest: int, ranges: int | None = None) -> tuple[int, int]:
    """(entries that are held, entries of a lane) in so many bytes of the device; held in so many ranges at least. Fewer
    than the longest list has, where it has no room."""
    passing = max(longest, min(MOST, room // 16) // ENTRY)
    held = (room - LANES * _lane_bytes(passing)) // ENTRY
    if held < longest:
        passing = longest
        held = (room - LANES * _lane_bytes(passing)) // ENTRY
    if ranges:
        held = min(held, max(1, longest, -(-entries // ranges)))
    return min(held, max(1, entries)), min(passing, max(1, entries))


def shared_bytes(held: int, passing: int) -> int:
    """What those take."""
    return ENTRY * held + LANES * _lane_bytes(passing)


def _lane_bytes(entries: int) -> int:
    return ENTRY * entries + 8 * item_count(entries)


class _Lane(NamedTuple):
    stream: gpu.Stream
    lists: Array
    items: Array


class Passing:
    """Lists as `Lists` has them, a part at a time. Whole ones, of everyone, are gone over again and again."""

    def __init__(
        self,
        engine: Engine,
        device: Card,
        plan: Plan,
        *,
        ways: bool,
        ranges: int | None,
        what: str,
        everyone: bool = False,
    ) -> None:
        self.engine, self.device, self.ways, self._everyone = engine, device, ways, everyone
        self._plan, self._ranges, self._what = plan, ranges, what
        self._there: tuple[int, int] | None = None
        self._arrays: list[Array] = []
        self._oriented: Oriented | None = None
        self._stage: Reservation | None = None
        self._ring: Ring | None = None
        self._buffer: np.ndarray | None = None

    def prepare(self) -> None:
        """They take what everything else leaves."""

    def make(self, state: int) -> None:
        """Have the host make them, and take what room the device has left."""
        self.orient(state)
        self.place()

    def orient(self, state: int) -> None:
        """Have the host make them."""
        held = self._oriented = Oriented(
            self.engine, self._plan, self._what, ways=self.ways, everyone=self._everyone
        )  # fmt: skip
        self.count, self.offsets, self.source = held.count, held.offsets, "disk" if held.whole is None else "host"
        self.figures = {"windows": held.windows, "spilled_lists": held.spilled}

    def place(self) -> None:
        """Take what room the device has left."""
        held = self._oriented
        assert held is not None
        starts = self._kept(self.device.upload(held.offsets, "lists"))
        self.bounds = starts.arg, gpu.view(starts.array[1:])
        rank = held.rank if len(held.rank) else np.zeros(1, np.uint32)
        self.rank = self._kept(self.device.upload(rank.astype(np.uint32, copy=False), "ranks"))
        ledger = self.device.ledger
        self._fits, self._passing = share_out(ledger.free - SLACK, held.entries, held.longest, self._ranges)
        if self._fits < max(1, held.longest):
            needed = ledger.used + SLACK + least_bytes(held.longest)
            raise DoesNotFit(self._what, needed=needed, limit=ledger.limit, setting=ledger.setting)
        self._held = self._kept(self.device.empty(self._fits, np.uint32, "lists held"))
        self._lanes = [self._lane() for _ in range(LANES)]
        self._take_stage()

    def _lane(self) -> _Lane:
        lists = self._kept(self.device.empty(self._passing, np.uint32, "lists that pass"))
        items = self._kept(self.device.empty((item_count(self._passing), 2), np.uint32, "lists that pass"))
        return _Lane(gpu.Stream(), lists, items)

    def _take_stage(self) -> None:
        """What copies go through on the host; lists in a file also through a buffer."""
        ledger, spilled = self.engine.ledger, self.source == "disk"
        spare = max(0, ledger.free - (SPILLING if spilled else 0))
        self._ring = Ring(min(HALF, spare // (2 * _RING)), _RING)
        self._stage = ledger.reserve(self._ring.nbytes, "copies of lists")
        size = max(4096, min(HALF, spare // 4) & -4096) if spilled else ENTRY
        self._buffer = ledger.empty(size // ENTRY, np.uint32, "lists from a file")

    def _kept(self, array: Array) -> Array:
        self._arrays.append(array)
        return array

    def held(self) -> Iterator[Part]:
        """Each list once, a range at a time on the device. When all were there, nothing of them is left on the host."""
        assert self._oriented is not None
        for lo, hi in self._oriented.ranges(self._fits):
            # The stream of the card waits for the lanes, which go over the range before, and they wait for it.
            if self._there != (lo, hi):
                self._there = None
                self._send(self.device.stream, self._held.array, lo, hi)
                self._there = lo, hi
            yield Part(lo, hi, self.offsets[lo], self._held.arg)
        if not self._everyone:
            self._leave_host()

    def passing(self, theirs: Part) -> Iterator[Pass]:
        """The lists that may have a neighbour in common with those of a range: no lower ones; of whole lists those that
        may share an edge with it."""
        assert self._oriented is not None
        if self.all_there:
            yield Pass(self.device.stream, theirs, self._lanes[0].items.arg, 0)
            return
        timeline = Timeline()
        for number, (lo, hi) in enumerate(self._oriented.ranges(self._passing, self._first(theirs))):
            if lo >= self._last(theirs):
                break
            lane = number % LANES
            stream, lists, items = self._lanes[lane]
            found = list_items(lengths_of(self.offsets, lo, hi), lo) if not self._everyone else _NO_ITEMS
            with timeline.span(stream, lane, "copy", lists=hi - lo):
                self._send(stream, lists.array, lo, hi)
                self._copy(stream, items.array, found)
            with timeline.span(stream, lane, "kernel", lists=hi - lo):
                yield Pass(stream, Part(lo, hi, self.offsets[lo], lists.arg), items.arg, len(found))
        if timeline.records:
            gpu.synchronize()
            timeline.settle()

    def _first(self, theirs: Part) -> int:
        return 0 if self._everyone else theirs.first

    def _last(self, theirs: Part) -> int:
        """Of whole lists that fall, the longer one of an edge comes first."""
        assert self._oriented is not None
        return theirs.last if self._everyone and self._oriented.falling else self.count

    @property
    def all_there(self) -> bool:
        """Whether they need not pass: all of them have room."""
        assert self._oriented is not None
        return self._everyone and self._fits >= self._oriented.entries

    def lengths(self, slots: int) -> np.ndarray:
        """How long they are, by slot."""
        found = self.engine.vectors.make(slots, number_dtype(self.engine.store), "neighbours")
        np.subtract(self.offsets[1:], self.offsets[:-1], out=found[: self.count], casting="unsafe")
        return found

    def entries_of(self, part: Part) -> int:
        """How many entries the lists of a part have."""
        return int(self.offsets[part.last]) - int(self.offsets[part.first])

    def _send(self, stream: gpu.Stream, target: Any, lo: int, hi: int) -> None:
        """Begin to copy the lists `lo` to `hi`, after what the stream has."""
        assert self._oriented is not None
        assert self._buffer is not None
        begin, end = int(self.offsets[lo]), int(self.offsets[hi])
        step = max(1, end - begin if self.source == "host" else len(self._buffer))
        for a in range(begin, end, step):
            b = min(a + step, end)
            self._copy(stream, target[a - begin : b - begin], self._oriented.between(a, b, self._buffer))

    def _copy(self, stream: gpu.Stream, target: Any, source: np.ndarray) -> None:
        assert self._ring is not None
        self._ring.send(stream, target, source)
        self.device.count_copied(source.nbytes)

    def _leave_host(self) -> None:
        gpu.synchronize()
        if self._oriented is not None:
            self._oriented.close()
            self._oriented, self.offsets = None, np.zeros(0, np.uint64)
        if self._stage is not None:
            self._stage.release()
            self._stage = self._ring = self._buffer = None

    def close(self) -> None:
        self._leave_host()
        for array in self._arrays:
            array.release()


__all__ = ["ENTRY", "Passing", "least_bytes", "share_out", "shared_bytes"]
