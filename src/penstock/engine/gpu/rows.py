"""Where the rows of a window lie on the device: cut out of one buffer, the same for every window."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from penstock.engine.gpu.voting import only_voted
from penstock.engine.plan import arcs_of
from penstock.engine.program import Row
from penstock.errors import DoesNotFit
from penstock.memory import gpu
from penstock.memory.card import Array
from penstock.memory.tasks import Tasks
from penstock.store.reader import Store

SHORT = 32
"""A row of more messages is voted on by many threads, if it is only voted on."""
WARP_TABLE, BLOCK_TABLE = 2048, 16384
"""Bytes of values in the table of a warp and of a block. Tables are filled to the half, on average."""
_PIECE = 1 << 18
"""Degrees that are read at a time."""
_LISTED, _ITEM = 8, 16
"""What a row that is voted on takes, and each part of a long one, besides the winner."""
_ALIGN = 64
"""Each array in the buffer begins at a multiple of this."""
_ARRAYS = 8


def tables(item: int) -> tuple[int, int]:
    """Places in the table of a warp and of a block, for values of so many bytes."""
    return max(4, WARP_TABLE // item), max(4, BLOCK_TABLE // item)


def parts_of(degrees: np.ndarray, item: int) -> np.ndarray:
    """How many parts the values of a row are voted on in, a block each; none, where a warp is enough."""
    warp, block = tables(item)
    return np.where(degrees > warp // 2, -(-degrees // (block // 2)), 0)


def segment_places(work: Tasks) -> np.ndarray:
    """How many arcs of its vertex come before each segment."""
    lengths = work.segments[:, 2].astype(np.int64) - work.segments[:, 1]
    before = np.cumsum(lengths) - lengths
    found = before - before[work.part_start[work.segments[:, 3]]]
    return found.astype(np.uint32) if len(found) else np.zeros(1, np.uint32)


@dataclass(frozen=True)
class Window:
    """The rows of the slots `lo` to `hi`: arrays on the device, as kernels take them."""

    lo: int
    hi: int
    starts: Any
    places: tuple[Any, ...]
    """Where each row goes on with the messages of each side."""
    rows: Any
    wide: Any
    """The same, of two dimensions: so kernels tell what was voted on. The simulator knows no types; there `mode` finds
    the winner, which its copy in the first place made no less frequent."""
    listed: Any
    """Rows that are voted on: `short` ones by a warp each, then long ones in `parts`."""
    part_start: Any
    short: int
    items: Any
    values: Any
    counts: Any
    votes: int
    parts: int


class Rows:
    """The windows of a run, as wide as `room` allows."""

    def __init__(self, store: Store, sides: Sequence[str], slots: int, kind: np.dtype, *, voted: bool) -> None:
        self.store, self.sides, self.slots, self.kind, self.voted = store, tuple(sides), slots, kind, voted
        self.windows: list[tuple[int, int]] = []
        self.alone = np.uint64(SHORT if voted else np.iinfo(np.uint64).max)
        """Rows of more messages are not left to one thread."""
        self._kept: Window | None = None
        self.whole = self.longest = 0
        for _, degrees in self._pieces():
            costs = self._costs(degrees)
            self.whole += int(costs.sum())
            self.longest = max(self.longest, int(costs.max(initial=0)))
        self.whole += self._fixed
        self.longest += self._fixed

    @property
    def _fixed(self) -> int:
        return 8 + _LISTED + _ARRAYS * _ALIGN

    def _degrees(self, lo: int, hi: int) -> list[np.ndarray]:
        """Of each side; slots beyond the active vertices have no arcs."""
        active = self.store.active
        inner = [self.store.degree_column(name).read(min(lo, active), min(hi, active)) for name in self.sides]
        return [np.pad(each.astype(np.int64), (0, hi - lo - len(each))) for each in inner]

    def _pieces(self) -> Iterator[tuple[int, np.ndarray]]:
        for start in range(0, self.slots, _PIECE):
            yield start, np.sum(self._degrees(start, min(start + _PIECE, self.slots)), axis=0)

    def _costs(self, degrees: np.ndarray) -> np.ndarray:
        """Bytes for rows of so many messages."""
        item = self.kind.itemsize
        costs = degrees * item + 8 * len(self.sides)
        if self.voted:
            costs += np.where(degrees > SHORT, _LISTED, 0) + parts_of(degrees, item) * (_ITEM + item)
        return costs

    def cut(self, room: int, at_least: int) -> None:
        """Cut the slots into windows whose rows take at most `room` bytes; into so many at least."""
        if room < self.longest:
            raise DoesNotFit("the longest row", needed=self.longest, limit=room, setting="gpu_memory_limit")
        room, widest = room - self._fixed, -(-self.slots // max(1, min(at_least, self.slots)))
        cuts, spent = [0], 0
        for start, degrees in self._pieces():
            costs = np.concatenate([[0], np.cumsum(self._costs(degrees))])
            at, end = 0, len(degrees)
            while True:
                fit = int(np.searchsorted(costs, costs[at] + room - spent, "right")) - 1
                cut = min(fit, cuts[-1] + widest - start)
                if cut >= end:
                    spent += int(costs[-1] - costs[at])
                    break
                cuts.append(start + cut)
                at, spent = cut, 0
        self.windows = list(pairwise([*cuts, self.slots] if self.slots > cuts[-1] else cuts))

    def prepare(self, buffer: Array, lo: int, hi: int) -> Window:
        """Lay out the rows of a window; the only one is laid out once."""
        if self._kept is not None:
            return self._kept
        made = self._laid_out(buffer, lo, hi)
        if len(self.windows) == 1:
            self._kept = made
        return made

    def _laid_out(self, buffer: Array, lo: int, hi: int) -> Window:
        count, cursor, kind = hi - lo, 0, self.kind

        def room(shape: Any, dtype: Any) -> Any:
            nonlocal cursor
            size = max(1, int(np.prod(shape)))
            begin = cursor
            cursor = begin + size * np.dtype(dtype).itemsize
            found = buffer.array[begin:cursor].view(dtype)
            cursor = -(-cursor // _ALIGN) * _ALIGN
            return found

        def sent(array: np.ndarray) -> Any:
            found = room(array.shape, array.dtype)
            flat = array.ravel()
            gpu.fill(found[: len(flat)], flat)
            return found.reshape(array.shape) if array.ndim > 1 and array.size else found[: len(flat)]

        degrees = self._degrees(lo, hi)
        lengths = np.sum(degrees, axis=0)
        starts = np.zeros(count + 1, np.uint64)
        starts[1:] = np.cumsum(lengths)
        begins = sent(starts)
        places = [gpu.view(begins)]
        if len(degrees) == 2:
            places.append(gpu.view(sent(starts[:-1] + degrees[0].astype(np.uint64))))
        rows = room(int(starts[-1]), kind)
        listed, items, part_start, short = self._votes(lengths)
        values, counts = room(len(items), kind), room(len(items), np.uint32)
        wide = rows if gpu.SIMULATED else rows.reshape(len(rows), 1)
        return Window(
            lo, hi, places[0], tuple(places), gpu.view(rows), gpu.view(wide),
            gpu.view(sent(listed)) if len(listed) else places[0], gpu.view(sent(part_start)), short,
            gpu.view(sent(items)) if len(items) else places[0], gpu.view(values), gpu.view(counts),
            len(listed), len(items),
        )  # fmt: skip

    def _votes(self, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """(rows that are voted on, the parts of long ones, where those of each begin, how many are not long)."""
        listed = np.flatnonzero(lengths > SHORT) if self.voted else np.zeros(0, np.int64)
        parts = parts_of(lengths[listed], self.kind.itemsize)
        order = np.argsort(parts > 0, kind="stable")
        listed, parts = listed[order], parts[order]
        ends = np.cumsum(parts)
        part_start = np.concatenate([[0], ends]).astype(np.uint32)
        of = np.repeat(np.arange(len(listed)), parts)
        number = np.arange(len(of)) - (ends - parts)[of]
        items = np.stack([of, number, parts[of]], axis=1).astype(np.uint32)
        return listed.astype(np.uint32), items, part_start, int((parts == 0).sum())


def rows_of(program: Row, store: Store, slots: int) -> Rows:
    """What the rows of a program take."""
    kind = np.dtype(program.message)
    voted = kind.kind in "iu" and kind.itemsize >= 4 and only_voted(program)
    return Rows(store, arcs_of(store, program), slots, kind, voted=voted)


__all__ = ["Rows", "Window", "rows_of", "segment_places", "tables"]
