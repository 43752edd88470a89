"""The GPU of a session: its budget, pinned memory to reach it through, and figures of what it did."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from penstock.config import Settings
from penstock.mapreduce.room import Room
from penstock.memory import gpu
from penstock.memory.ledger import Ledger, Reservation
from penstock.memory.pinned import WORTH, pinning
from penstock.memory.staging import HALF, Ring
from penstock.sorting.streamed import sort_on_gpu


class Accelerator:
    """`figures`: chunks, and bytes over the bus each way."""

    def __init__(self, settings: Settings, room: Room) -> None:
        self.room = room
        self.number = int(settings.device.partition(":")[2] or 0)
        self.use()
        self.ledger = Ledger(gpu.usable_memory(settings.gpu_memory_limit), "gpu_memory_limit")
        self.figures: dict[str, Any] = {"device": gpu.name(self.number), "bytes_in": 0, "bytes_out": 0, "chunks": 0}
        self._rings: tuple[Ring, Ring] | None = None
        self._held: Reservation | None = None
        self._lanes: list[np.ndarray] = []
        self._lanes_held: Reservation | None = None

    def use(self) -> None:
        """Let this thread use it: another session, or its user, may have chosen another one since."""
        gpu.use(self.number)

    def rings(self) -> tuple[Ring, Ring]:
        """Pinned pieces for copies each way, made once."""
        if self._rings is None:
            piece = min(HALF, self.room.ledger.limit // 64)
            rings = Ring(piece), Ring(piece)
            self._held = self.room.reserve(sum(ring.nbytes for ring in rings), "pinned memory to reach the GPU through")
            self._rings = rings
        return self._rings

    @contextlib.contextmanager
    def reaching(self, *arrays: np.ndarray) -> Iterator[tuple[Ring, Ring] | None]:
        """How arrays of the host are copied inside: from where they lie, pinned meanwhile, where they are large and the
        system lets them be; else through rings."""
        with contextlib.ExitStack() as held:
            worth = sum(array.nbytes for array in arrays) >= WORTH
            pinned = worth and all(held.enter_context(pinning(array)) for array in arrays)
            yield None if pinned else self.rings()

    def lane_memory(self, sizes: list[int]) -> list[np.ndarray]:
        """Pinned memory of these sizes, which stays for the next operation: to pin it takes longer than to use it."""
        if len(self._lanes) != len(sizes) or any(len(a) < size for a, size in zip(self._lanes, sizes, strict=True)):
            self._drop_lanes()
            whole = [gpu.pool_size(size) for size in sizes]
            self._lanes_held = self.room.reserve(sum(whole), "pinned memory to reach the GPU through")
            for size in whole:
                found = gpu.pinned(size)
                self._lanes.append(np.empty(size, np.uint8) if found is None else found)
        return self._lanes

    def _drop_lanes(self) -> None:
        self._lanes = []
        if self._lanes_held is not None:
            self._lanes_held.release()
            self._lanes_held = None

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
        with self.reaching(keys, values, scratch, scratch_values) as rings:
            done = sort_on_gpu(keys, [values], scratch, [scratch_values], self.ledger, pin=False, rings=rings)
        self.count(done.copied // 2, done.copied // 2, done.chunks)
        return scratch, scratch_values, keys, values

    def close(self) -> None:
        self._drop_lanes()
        self._rings = None
        if self._held is not None:
            self._held.release()
            self._held = None


__all__ = ["Accelerator"]
