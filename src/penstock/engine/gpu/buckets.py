"""Supersteps of a bucketed program on a GPU: the least values first."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.engine.gpu.combine import CombineRun
from penstock.engine.gpu.held import blocks
from penstock.engine.program import Bucketed, Combine
from penstock.memory import gpu
from penstock.memory.tasks import BLOCK

WIDER = 8
"""How much wider a bucket is than for a few threads: there is more to do at once, for more who do it."""


class BucketRun(CombineRun):
    """Supersteps of the vertices with the least values only: those below a limit that moves on when none is left."""

    @staticmethod
    def takes(program: Combine) -> bool:
        """Whether a program has an order, of numbers that a GPU finds the least of in one step."""
        if program.bucketed is None or program.lanes > 1:
            return False
        return program.fields()[program.bucketed.field].itemsize >= 4

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        bucketed = self.program.bucketed
        assert bucketed is not None
        self.field = self.program.fields()[bucketed.field]
        self.delta = WIDER * float(self.params[bucketed.delta])
        self.most = self.field.type(np.inf if self.field.kind == "f" else np.iinfo(self.field).max)
        kind = self.field if self.field.kind != "f" else np.dtype(f"int{8 * self.field.itemsize}")
        self.least = self._array(1, kind, "least")
        self.limit = self.field.type(0)
        # What was packed at the start waits, as what becomes active later does.
        self.unpack_front()
        self.next_front()

    def next_front(self) -> None:
        """Select those below the limit; if none is, move it on."""
        least = self._select()
        if not self.active and least != self.most:
            self.limit = Bucketed.end(least, self.delta, self.field)
            self._select()

    def waiting(self) -> np.ndarray:
        """Those of this bucket and of later ones."""
        later = np.packbits(gpu.download(self.after.array), bitorder="little")
        found = super().waiting()
        found.view(np.uint8)[: len(later)] |= later
        return found

    def _select(self) -> Any:
        kind = self.least.array.dtype
        top = self.most.view(kind) if self.field.kind == "f" else self.most
        self.counts.array.fill(0)
        self.least.array.fill(top[()])
        self.kernels.make("select")(
            self.stream, blocks(-(-self.slots.count // 32)), BLOCK, np.uint32(self.slots.count),
            self.window(0, self.slots.count).state, self.limit, self.after.arg, self.degrees.arg, self.front.arg,
            self.counts.arg, self.least.arg,
        )  # fmt: skip
        self.read_front()
        found = gpu.download(self.least.array)[0]
        return found.view(self.field) if self.field.kind == "f" else found


__all__ = ["BucketRun"]
