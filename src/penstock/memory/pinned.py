"""Host memory that a GPU copies from at full speed."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from penstock.memory import gpu
from penstock.memory.buffers import PAGE, align, allocate
from penstock.memory.ledger import Ledger, Reservation

POOLED = 4 << 20
"""Up to so many bytes come from a pool: to pin memory takes milliseconds, as long as a small run."""
WORTH = 32 << 20
"""Bytes to be copied that it is worth to pin their memory for."""


class Pinned:
    """Arrays in one pinned allocation, of any content. Copies from them must be over before `close`. One that nobody
    has closed is closed when nobody has it any more: memory must not be unmapped while it is pinned."""

    def __init__(self, ledger: Ledger, shapes: Sequence[tuple[int, Any]], what: str) -> None:
        self.nbytes = self.needed(shapes)
        reservation = ledger.reserve(self.nbytes, what)
        try:
            memory = gpu.pinned(self.nbytes) if self.nbytes <= POOLED else None
            self.mapped = memory is not None
            """Whether kernels may read it where it lies, on devices that can."""
            own = memory is None
            if memory is None:
                memory = allocate(self.nbytes)
            # Before it is pinned: an interrupt must not unmap what the driver still has.
            self._end = weakref.finalize(self, _let_go, memory if own else None, ledger, reservation)
            self._end.atexit = False
        except BaseException:
            reservation.release()
            raise
        try:
            if own:
                self.mapped = gpu.pin(memory) or gpu.SIMULATED
        except BaseException:
            self._end()
            raise
        self.arrays, at = [], 0
        for count, dtype in shapes:
            nbytes = count * np.dtype(dtype).itemsize
            self.arrays.append(memory[at : at + nbytes].view(dtype))
            at += align(nbytes)

    @staticmethod
    def needed(shapes: Sequence[tuple[int, Any]]) -> int:
        """Bytes for arrays of these (count, dtype): each begins on a page boundary."""
        return max(PAGE, sum(align(count * np.dtype(dtype).itemsize) for count, dtype in shapes))

    def close(self) -> None:
        self.arrays = []
        self._end()


def _let_go(memory: np.ndarray | None, ledger: Ledger, reservation: Reservation) -> None:
    try:
        if memory is not None:
            gpu.unpin(memory)
    finally:
        ledger.release_later(reservation)


@contextmanager
def pinning(memory: np.ndarray) -> Iterator[bool]:
    """Memory of somebody else's, pinned while it is used here; whether it could be."""
    pinned = True  # as long as nobody says that it is not: it may be interrupted just after
    try:
        pinned = gpu.pin(memory)
        yield pinned
    finally:
        if pinned:
            gpu.unpin(memory)


__all__ = ["POOLED", "WORTH", "Pinned", "pinning"]
