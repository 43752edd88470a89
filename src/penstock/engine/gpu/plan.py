"""What a run of a combine program takes on a device: made before anything is allocated there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.engine.gpu.functions import totals_dtype
from penstock.engine.plan import number_dtype, read_dtype, sides_of
from penstock.engine.program import Combine
from penstock.errors import DoesNotFit
from penstock.memory.frames import DevicePages
from penstock.store.reader import Store

SLACK = 1 << 18
"""Scalars, counts, seeds: what is too small to count one by one."""


@dataclass(frozen=True)
class DevicePlan:
    """Where the state lies, and what is left for pages."""

    ranges: int
    """How many ranges the state is split into; each pass streams the arcs so many times."""
    state_bytes: int
    """Vectors on the device at a time."""
    pages_bytes: int
    """All pages with their columns, if they could be there."""
    least_bytes: int
    """What streaming them takes."""
    limit: int
    smallest: int
    """The least device budget that would do."""

    @property
    def resident(self) -> bool:
        """Whether all pages have room beside the state."""
        return self.limit - self.state_bytes >= self.pages_bytes

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__} | {"resident": self.resident}


def slot_bytes(program: Combine, store: Store) -> tuple[int, int]:
    """(bytes per slot of a window, bytes per slot that are always there)."""
    number = number_dtype(store)
    window = sum(kind.itemsize for kind in program.fields().values()) * program.lanes
    window += sum(read_dtype(store, name).itemsize for name in program.stored_reads())
    window += totals_dtype(program, number).itemsize * program.lanes
    window += 0 if program.numbered else np.dtype(program.message).itemsize * program.lanes
    return window, 6 if program.frontier else 0


def make_device_plan(program: Combine, store: Store, slots: int, limit: int, ranges: int | None = None) -> DevicePlan:
    """Split the state as often as the limit asks for, or `ranges` times at least; refuse what cannot fit."""
    sides = sides_of(store, program.along)
    names = dict.fromkeys((*sides.pull, *sides.push)) if program.frontier else dict.fromkeys(sides.pull or sides.push)
    directions = {store.direction(name).name: store.direction(name) for name in names}
    whole = sum(DevicePages.needed(side, program.columns) for side in directions.values())
    least = sum(DevicePages.least(side, program.columns) for side in directions.values())
    window, always = slot_bytes(program, store)
    fixed = always * slots + slots // 4 + SLACK + least
    most = max(1, slots - 1)
    smallest = fixed + window * min(slots, 1 << 10)
    count = max(1, min(ranges or 1, most))
    while fixed + window * (slots if count == 1 else -(-slots // count) + 1) > limit:
        if count >= most or -(-slots // count) <= 1 << 10:
            raise DoesNotFit(f"the state of {program.name} on the GPU", needed=smallest, limit=limit)
        count = min(most, count * 2)
    held = always * slots + slots // 4 + SLACK + window * (slots if count == 1 else -(-slots // count) + 1)
    return DevicePlan(count, held, whole, least, limit, smallest)
