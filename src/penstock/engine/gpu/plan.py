"""What a run takes on a device: made before anything is allocated there."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.engine.gpu.arcs import Kept, arc_bytes, held_bytes, least_bytes, share_out
from penstock.engine.gpu.functions import held_dtype, totals_dtype
from penstock.engine.gpu.kernels.combine import CHANGES, SPREAD
from penstock.engine.gpu.rows import Rows
from penstock.engine.plan import Sides, arcs_of, number_dtype, read_dtype, sides_of
from penstock.engine.program import Combine, Row, Sweep
from penstock.errors import DoesNotFit
from penstock.memory.frames import DevicePages
from penstock.memory.tasks import cut
from penstock.store.reader import Direction, Store

SLACK = 1 << 10
"""What is too small to count one by one."""
LEAST_WINDOW = 1 << 10
"""Slots that are worth a window."""


@dataclass(frozen=True)
class DevicePlan:
    """Where the state lies, and what is left for pages."""

    ranges: int
    """How many ranges the far state is split into; each pass streams the arcs so many times."""
    windows: int
    """How many windows the near state is split into; each is there while its own pages pass."""
    state_bytes: int
    """Vectors on the device at a time, and what arcs keep there."""
    pages_bytes: int
    """All pages with their columns, if they could be there; or all lists, where it is they that pass."""
    least_bytes: int
    """What streaming them takes."""
    limit: int
    smallest: int
    """The least device budget that would do."""
    arcs_bytes: int = 0
    """What all arcs keep."""
    arcs_kept_bytes: int = 0
    """The part of it that stays on the device."""
    arcs_window_bytes: int = 0
    """What the rest passes through, with its pages."""
    kept: tuple[Kept, ...] = ()
    rows_bytes: int = 0
    """Rows that are put together at a time; part of the state."""
    lists_bytes: int = 0
    """Lists that are held, or pass, at a time; part of the state."""
    reads_bytes: int = 0
    """What is read at the start of a sweep, and gone when its pages come."""

    @property
    def vector_bytes(self) -> int:
        """What is on the device at a time without what arcs keep, and without rows and lists."""
        beside = self.arcs_kept_bytes + self.arcs_window_bytes + self.rows_bytes + self.lists_bytes
        return self.state_bytes - beside

    @property
    def arcs_passing(self) -> int:
        """Bytes that arcs keep and that go to the device and back in a pass."""
        return (self.arcs_bytes - self.arcs_kept_bytes) * self.ranges

    @property
    def resident(self) -> bool:
        """Whether all pages have room beside the state."""
        return self.limit - self.state_bytes >= self.pages_bytes

    def as_dict(self) -> dict[str, Any]:
        names = [name for name in self.__dataclass_fields__ if name != "kept"]
        return {name: getattr(self, name) for name in names} | {"resident": self.resident}


def device_sides(program: Combine, store: Store) -> Sides:
    """The directions that a run goes over. What arcs keep is in the order of one: then nothing turns around."""
    sides = sides_of(store, program.along)
    return Sides(sides.pull, ()) if program.edge_state and sides.pull else sides


def arcs_asked(program: Combine, sides: Sides) -> tuple[str, ...]:
    """The directions whose pages a run asks for: a search may turn around."""
    return tuple(dict.fromkeys((*sides.pull, *sides.push))) if program.frontier else sides.pull or sides.push


def slot_bytes(program: Combine, store: Store) -> tuple[int, int]:
    """(bytes per slot of a window, bytes per slot that are always there)."""
    number = number_dtype(store)
    window = sum(kind.itemsize for kind in program.fields().values()) * program.lanes
    window += sum(read_dtype(store, name).itemsize for name in program.stored_reads())
    window += totals_dtype(program, number).itemsize * program.lanes
    window += 0 if program.numbered else np.dtype(program.message).itemsize * program.lanes
    return window, 6 if program.frontier else 0


def beside_bytes(program: Combine, store: Store, directions: Collection[Direction], seeds: int) -> int:
    """Scalars, seeds, totals of the pieces of heavy vertices, what pages cost to pull and to push: however the state is
    split."""
    part = held_dtype(program.contribution_dtype(number_dtype(store))).itemsize * program.lanes + 1
    parts = sum(max(1, len(cut(side).segments)) for side in directions) * part
    costs = 2 * 4 * sum(len(side) for side in directions) if program.frontier else 0
    return 8 * (CHANGES + SPREAD) + 8 * seeds + parts + costs + SLACK


def make_device_plan(
    program: Combine, store: Store, slots: int, limit: int, ranges: int | None = None, *, seeds: int = 0
) -> DevicePlan:
    """Split the state as often as the limit asks for, or `ranges` times at least; refuse what cannot fit."""
    sides = device_sides(program, store)
    directions = {store.direction(name).name: store.direction(name) for name in arcs_asked(program, sides)}
    whole = sum(DevicePages.needed(side, program.columns) for side in directions.values())
    least = sum(DevicePages.least(side, program.columns) for side in directions.values())
    window, always = slot_bytes(program, store)
    around = always * slots + slots // 4 + beside_bytes(program, store, directions.values(), seeds)
    fixed = around + least + least_bytes(program, directions.values())
    most = max(1, slots - 1)
    # Who pulls and updates in one go keeps no totals, if all of the state is there.
    fused = not program.frontier and program.lanes == 1 and len(sides.pull) == 1
    whole_state = slots * (window - (totals_dtype(program, number_dtype(store)).itemsize if fused else 0))

    far = np.dtype(program.message).itemsize * program.lanes if not program.frontier and not program.numbered else 0
    pulls = not program.frontier and bool(sides.pull)

    def vectors(far_ranges: int, windows: int) -> int:
        if windows == 1:
            return whole_state
        length = -(-slots // windows) + 1
        return window * length if far_ranges > 1 else far * slots + (window - far) * length

    def found(far_ranges: int, windows: int) -> DevicePlan:
        held, size = around + vectors(far_ranges, windows), arc_bytes(program)
        kept = share_out(program, directions.values(), limit - held, pages=(least, whole))
        held += held_bytes(program, directions.values(), kept)
        return DevicePlan(
            far_ranges, windows, held, whole, least, limit, smallest,
            sum(store.direction(each.side).arcs for each in kept) * size, sum(each.arcs for each in kept) * size,
            sum(each.window for each in kept) * size, kept,
        )  # fmt: skip

    smallest = fixed + min(whole_state, window * (LEAST_WINDOW + 1))
    count = max(1, min(ranges or 1, most))
    while fixed + vectors(count, count) > limit:
        if count >= most or -(-slots // count) <= LEAST_WINDOW:
            what = f"the state of {program.name} on the GPU"
            raise DoesNotFit(what, needed=smallest, limit=limit, setting="gpu_memory_limit")
        count = min(most, count * 2)
    if count == 1 or ranges or not pulls:
        return found(count, count)
    # Messages are far, the rest is near: if they fit beside a window of the rest, the arcs pass only once.
    windows = next((n for n in _doubled(2, min(most, slots // LEAST_WINDOW)) if fixed + vectors(1, n) <= limit), None)
    return found(count, count) if windows is None else found(1, windows)


def _doubled(first: int, most: int) -> Iterator[int]:
    while first <= most:
        yield first
        first *= 2


def make_sweep_plan(program: Sweep, store: Store, slots: int, limit: int, *, seeds: int = 0) -> DevicePlan:
    """All of a sweep's state is there, for arcs lead anywhere; refuse what cannot fit."""
    directions = {store.direction(name).name: store.direction(name) for name in arcs_of(store, program)}
    whole = sum(DevicePages.needed(side, program.columns) for side in directions.values())
    least = sum(DevicePages.least(side, program.columns) for side in directions.values())
    state = sum(kind.itemsize for kind in program.fields().values()) * slots + SLACK
    reads = sum(read_dtype(store, name).itemsize for name in program.stored_reads()) * slots + 8 * seeds
    smallest = state + max(least, reads)
    if smallest > limit:
        what = f"the state of {program.name} on the GPU"
        raise DoesNotFit(what, needed=smallest, limit=limit, setting="gpu_memory_limit")
    return DevicePlan(1, 1, state, whole, least, limit, smallest, reads_bytes=reads)


def make_row_plan(program: Row, store: Store, rows: Rows, limit: int, *, seeds: int = 0) -> DevicePlan:
    """All of the state is there; rows get what all pages leave, or half of what is left; refuse what cannot fit."""
    sides = [store.direction(name) for name in arcs_of(store, program)]
    slot = sum(kind.itemsize for kind in program.fields().values()) + np.dtype(program.message).itemsize
    slot += sum(read_dtype(store, name).itemsize for name in program.stored_reads())
    state = slot * rows.slots + 8 * (CHANGES + SPREAD) + 8 * seeds + SLACK
    state += sum(4 * max(1, len(cut(side).segments)) for side in sides)
    least = sum(DevicePages.least(side, program.columns) for side in sides)
    whole = sum(DevicePages.needed(side, program.columns) for side in sides)
    needed = state + least + rows.longest
    if needed > limit:
        what = f"the state of {program.name} with its longest row on the GPU"
        raise DoesNotFit(what, needed=needed, limit=limit, setting="gpu_memory_limit")
    left = limit - state
    room = left - whole
    if room < min(rows.whole, max(rows.longest, left // 8)):
        room = max(rows.longest, (left - least) // 2)
    room = min(room, rows.whole)
    return DevicePlan(1, 1, state + room, whole, least, limit, needed, rows_bytes=room)


__all__ = ["DevicePlan", "arcs_asked", "device_sides", "make_device_plan", "make_row_plan", "make_sweep_plan"]
