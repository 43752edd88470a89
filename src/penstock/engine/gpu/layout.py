"""How a combine program is laid out over several devices: made before anything is allocated there."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from penstock.engine.gpu.functions import totals_dtype
from penstock.engine.gpu.plan import DevicePlan, beside_bytes, slot_bytes
from penstock.engine.plan import number_dtype, sides_of
from penstock.engine.program import Combine
from penstock.errors import DoesNotFit
from penstock.memory.frames import DevicePages
from penstock.memory.share import Share, pages_between
from penstock.store.reader import Direction, Store

BITS = 32
"""Slots in a word of the frontier: ranges begin at whole words."""


class Layout:
    """Who updates which slots, and goes over which pages."""

    def __init__(
        self, program: Combine, store: Store, slots: int, devices: int, strategy: str, *, seeds: int = 0
    ) -> None:
        self.program, self.store, self.slots, self.seeds, self.devices = program, store, slots, seeds, devices
        self.split = strategy == "S"
        self.wide = max(1, -(-slots // (devices * BITS))) * BITS
        cuts = [min(k * self.wide, slots) for k in range(devices + 1)]
        self.ranges = list(pairwise(cuts))
        sides = sides_of(store, program.along)
        both = dict.fromkeys((*sides.pull, *sides.push)) if program.frontier else ()
        self.names = tuple(both or sides.pull or sides.push)
        self._pulls = bool(sides.pull) and not program.frontier
        self._directions: dict[tuple[int, str], Direction] = {}

    def direction(self, device: int, name: str) -> Direction:
        """The pages that a device goes over: only to pull, those of its vertices will do."""
        whole = self.store.direction(name)
        key = device, whole.name
        if key not in self._directions:
            part: slice | None = slice(device, None, self.devices)
            if self.split:
                part = pages_between(whole, *self.ranges[device]) if self._pulls else None
            self._directions[key] = whole if part is None else Share(whole, part)
        return self._directions[key]

    def plan(self, limit: int) -> DevicePlan:
        """What the device takes that takes most; refuses what cannot fit."""
        program, slots, lanes = self.program, self.slots, self.program.lanes
        window, _ = slot_bytes(program, self.store)
        wide, frontier = min(self.wide, slots), program.frontier
        message = 0 if program.numbered else np.dtype(program.message).itemsize * lanes
        arriving = totals_dtype(program, number_dtype(self.store)).itemsize * lanes + frontier
        vectors = (window - message) * wide + message * slots if self.split else window * slots + arriving * wide
        vectors += (2 * slots + 4 * wide if frontier else 0) + slots // 4 + 8 * self.devices + 64
        whole, least, beside = 0, 0, 0
        for device in range(self.devices):
            sides = list({id(side): side for side in (self.direction(device, name) for name in self.names)}.values())
            whole = max(whole, sum(DevicePages.needed(side, program.columns) for side in sides))
            least = max(least, sum(DevicePages.least(side, program.columns) for side in sides))
            beside = max(beside, beside_bytes(program, self.store, sides, self.seeds))
        held = vectors + beside
        if held + least > limit:
            what = f"the state of {program.name} on each of {self.devices} GPUs"
            raise DoesNotFit(what, needed=held + least, limit=limit, setting="gpu_memory_limit")
        return DevicePlan(1, 1, held, whole, least, limit, held + least)


__all__ = ["BITS", "Layout"]
