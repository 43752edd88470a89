"""The GPU of a session: its budget, pinned memory to reach it through, and figures of what it did."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.config import Settings
from penstock.mapreduce.room import Room
from penstock.memory import gpu
from penstock.memory.ledger import Ledger, Reservation
from penstock.memory.staging import HALF, Ring
from penstock.sorting.streamed import sort_on_gpu

SHARE = 9, 10
"""How much of the memory that is free at first is used, if no limit was given."""


class Accelerator:
    """`figures`: chunks, and bytes over the bus each way."""

    def __init__(self, settings: Settings, room: Room) -> None:
        self.room = room
        self.number = int(settings.device.partition(":")[2] or 0)
        gpu.use(self.number)
        limit = settings.gpu_memory_limit
        if limit is None:
            limit = gpu.free_memory()[0] * SHARE[0] // SHARE[1]
        self.ledger = Ledger(limit, "gpu_memory_limit")
        self.figures: dict[str, Any] = {"device": gpu.name(self.number), "bytes_in": 0, "bytes_out": 0, "chunks": 0}
        self._rings: tuple[Ring, Ring] | None = None
        self._held: Reservation | None = None

    def rings(self) -> tuple[Ring, Ring]:
        """Pinned pieces for copies each way, made once."""
        if self._rings is None:
            piece = max(1 << 12, min(HALF, self.room.ledger.limit // 64))
            self._held = self.room.reserve(6 * piece, "pinned memory to reach the GPU through")
            self._rings = Ring(piece), Ring(piece)
        return self._rings

    def count(self, bytes_in: int, bytes_out: int, chunks: int = 1) -> None:
        """Add to the figures."""
        self.figures["bytes_in"] += bytes_in
        self.figures["bytes_out"] += bytes_out
        self.figures["chunks"] += chunks

    def sort_pairs(
        self, keys: np.ndarray, values: np.ndarray, scratch: np.ndarray, scratch_values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """As `penstock.sorting.radix.sort_pairs`: in core where the device holds them, else by samples."""
        if len(keys) < 2:
            return keys, values, scratch, scratch_values
        done = sort_on_gpu(keys, [values], scratch, [scratch_values], self.ledger, rings=self.rings())
        self.count(done.copied // 2, done.copied // 2, done.chunks)
        return scratch, scratch_values, keys, values

    def close(self) -> None:
        self._rings = None
        if self._held is not None:
            self._held.release()
            self._held = None


__all__ = ["Accelerator"]
