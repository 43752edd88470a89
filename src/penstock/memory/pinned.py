"""Host memory that a GPU copies from at full speed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from penstock.memory import gpu
from penstock.memory.buffers import PAGE, align, allocate
from penstock.memory.ledger import Ledger

POOLED = 4 << 20
"""Up to so many bytes come from a pool: to pin memory takes milliseconds, as long as a small run."""
WORTH = 32 << 20
"""Bytes to be copied that it is worth to pin their memory for."""


class Pinned:
    """Arrays in one pinned allocation, of any content. Copies from them must be over before `close`."""

    def __init__(self, ledger: Ledger, shapes: Sequence[tuple[int, Any]], what: str) -> None:
        self.nbytes = self.needed(shapes)
        self._reservation = ledger.reserve(self.nbytes, what)
        try:
            self._memory: np.ndarray | None = gpu.pinned(self.nbytes) if self.nbytes <= POOLED else None
            self._pinned = False
            self.mapped = self._memory is not None
            """Whether kernels may read it where it lies, on devices that can."""
            if self._memory is None:
                self._memory = allocate(self.nbytes)
                self._pinned = gpu.pin(self._memory)
                self.mapped = self._pinned or gpu.SIMULATED
        except BaseException:
            self._reservation.release()
            raise
        self.arrays, at = [], 0
        for count, dtype in shapes:
            nbytes = count * np.dtype(dtype).itemsize
            self.arrays.append(self._memory[at : at + nbytes].view(dtype))
            at += align(nbytes)

    @staticmethod
    def needed(shapes: Sequence[tuple[int, Any]]) -> int:
        """Bytes for arrays of these (count, dtype): each begins on a page boundary."""
        return max(PAGE, sum(align(count * np.dtype(dtype).itemsize) for count, dtype in shapes))

    def close(self) -> None:
        if self._memory is None:
            return
        if self._pinned:
            gpu.unpin(self._memory)
        self._memory, self.arrays = None, []
        self._reservation.release()


@contextmanager
def pinning(memory: np.ndarray) -> Iterator[None]:
    """Memory of somebody else's, pinned while it is used here."""
    pinned = gpu.pin(memory)
    try:
        yield
    finally:
        if pinned:
            gpu.unpin(memory)


__all__ = ["POOLED", "WORTH", "Pinned", "pinning"]
