"""What arcs keep, on a GPU: the fields of the first pages' arcs stay there, in the order of the arcs. Where there is no
room for all, those of the other pages pass through a window, some pages at a time, and go back to the host."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from penstock.engine.program import Combine
from penstock.engine.vectors import fetch, let_go
from penstock.memory import gpu
from penstock.memory.card import Array
from penstock.memory.frames import DevicePages
from penstock.store.reader import Direction

WINDOW = 64 << 20
"""Bytes of a window that are enough: the device waits for the host once for each."""
RING = 128 << 20
"""Bytes of pages that are there before fields stay: from then on a field is worth more, which goes both ways."""


class Kept(NamedTuple):
    """Of one direction: how many pages have their arcs' fields on the device to stay, how many arcs that are, and how
    many of the other arcs have theirs there at a time."""

    side: str
    pages: int
    arcs: int
    window: int


# ---- before the run


def arc_bytes(program: Combine) -> int:
    """What one arc keeps."""
    return sum(kind.itemsize for kind in program.edge_fields().values())


def least_bytes(program: Combine, directions: Collection[Direction]) -> int:
    """What the fields take on a device at least: those of the widest page, and where each page's begin."""
    if not program.edge_state:
        return 0
    return held_bytes(program, directions, [Kept(side.name, 0, 0, _widest(side)) for side in directions])


def held_bytes(program: Combine, directions: Collection[Direction], kept: Collection[Kept]) -> int:
    """What they take there, shared out like this."""
    starts = sum(8 * max(1, len(side)) for side in directions) if kept else 0
    return sum(each.arcs + each.window for each in kept) * arc_bytes(program) + starts


def share_out(
    program: Combine, directions: Collection[Direction], room: int, *, pages: tuple[int, int]
) -> tuple[Kept, ...]:
    """Which fields stay, if there are so many bytes for them and for pages, of which these are the least and the most
    that are of use. There are enough for the least of both."""
    if not program.edge_state:
        return ()
    least, size = least_bytes(program, directions), arc_bytes(program)
    ring = max(pages[0], min(pages[1], RING, room // 4, room - least))
    whole = tuple(Kept(side.name, len(side), side.arcs, 0) for side in directions)
    if held_bytes(program, directions, whole) <= room - ring:
        return whole
    spare = (room - ring - least) // size
    more = min(WINDOW // size, spare // 4) // len(directions)
    windows = [min(side.arcs, _widest(side) + more) for side in directions]
    spare -= sum(window - _widest(side) for side, window in zip(directions, windows, strict=True))
    found = []
    for side, window in zip(directions, windows, strict=True):
        ends = np.append(np.uint64(0), side.records["first_arc"] + side.records["arcs"])
        staying = int(np.searchsorted(ends, np.uint64(spare), side="right")) - 1
        arcs = int(ends[staying])
        found.append(Kept(side.name, staying, arcs, min(window, side.arcs - arcs)))
        spare -= arcs
    return tuple(found)


def _widest(side: Direction) -> int:
    return int(side.records["arcs"].max(initial=0))


# ---- on the device


class OnHost(NamedTuple):
    """What arcs keep, on the host, by direction."""

    arrays: dict[str, tuple[np.ndarray, ...]]
    window: int = 0
    """Bytes of them that are in memory at a time, if they lie in files."""
    saved: bool = False
    """Whether they are what an earlier run left: else all are 0."""


class ArcFields:
    """The fields of one direction's arcs: on the host all of them, on the device what was planned.

    Kernels take `args`: where the fields of each page begin, how much less that is in this window, and the arrays.
    """

    def __init__(self, take: Callable[..., Array], direction: Direction, on_host: OnHost, kept: Kept) -> None:
        """`take(shape, dtype, what)` gives memory of the device."""
        self.direction, self.host, self.kept = direction, on_host.arrays[direction.name], kept
        # Of files no more is in memory at a time than was planned for a thread that is at a page.
        self._piece = max(1, _widest(direction) if on_host.window else direction.arcs)
        self._begins = direction.records["first_arc"].astype(np.int64)
        self._ends = self._begins + direction.records["arcs"].astype(np.int64)
        self._first_of = take(max(1, len(direction)), np.uint64, "state of the arcs")
        gpu.fill(self._first_of.array[: len(direction)], self._begins.astype(np.uint64))
        length = max(1, kept.arcs + kept.window)
        self._arrays = tuple(take(length, array.dtype, "state of the arcs") for array in self.host)
        self._groups = list(self._cut())
        if on_host.saved:
            self._bring(0, kept.arcs, 0)
        else:
            for array in self._arrays:
                array.array.fill(0)

    def _cut(self) -> Iterator[tuple[int, int]]:
        """Pages beyond those that stay, as many together as the window holds."""
        page, count = self.kept.pages, len(self.direction)
        while page < count:
            end = int(np.searchsorted(self._ends, self._begins[page] + self.kept.window, side="right"))
            yield page, end
            page = end

    @property
    def whole(self) -> bool:
        """Whether all of them are on the device."""
        return not self._groups

    def save(self) -> None:
        """Bring those that stay to the host, where the others are."""
        self._take_back(0, self.kept.arcs, 0)

    def visit(self, side: DevicePages, pages: np.ndarray | None, cost: np.ndarray | None, launch: Any) -> None:
        """Visit these pages (all: None) as `side.visit` does, each while the fields of its arcs are there. `launch`
        takes the kernels' argument first."""
        if self.whole:
            side.visit(pages, partial(launch, self._args(0)), in_place=cost)
            return
        wanted = np.arange(len(self.direction)) if pages is None else pages
        for first, end in [(0, self.kept.pages), *self._groups]:
            i, j = np.searchsorted(wanted, (first, end)).tolist()
            if i == j:
                continue
            some, dear = wanted[i:j], None if cost is None else cost[i:j]
            if end <= self.kept.pages:
                side.visit(some, partial(launch, self._args(0)), in_place=dear)
                continue
            begin, stop = int(self._begins[some[0]]), int(self._ends[some[-1]])
            side.stats["bytes_copied"] += self._bring(begin, stop, self.kept.arcs)
            side.visit(some, partial(launch, self._args(begin - self.kept.arcs)), in_place=dear)
            side.stream.synchronize()
            self._take_back(begin, stop, self.kept.arcs)

    def _args(self, less: int) -> tuple[Any, ...]:
        return self._first_of.arg, np.uint64(less), *(array.arg for array in self._arrays)

    # ---- copies

    def _pieces(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        return ((a, min(a + self._piece, end)) for a in range(begin, end, self._piece))

    def _bring(self, begin: int, end: int, place: int) -> int:
        """Copy the fields of these arcs to the device, from `place` on; bytes copied."""
        for array, host in zip(self._arrays, self.host, strict=True):
            for a, b in self._pieces(begin, end):
                gpu.fill(array.array[place + a - begin : place + b - begin], host[a:b])
                let_go(host, a, b)
        return (end - begin) * sum(host.itemsize for host in self.host)

    def _take_back(self, begin: int, end: int, place: int) -> None:
        for array, host in zip(self._arrays, self.host, strict=True):
            for a, b in self._pieces(begin, end):
                fetch(host, a, b)
                gpu.download(array.array[place + a - begin : place + b - begin], host[a:b])
                let_go(host, a, b)


__all__ = ["ArcFields", "Kept", "OnHost", "arc_bytes", "held_bytes", "least_bytes", "share_out"]
