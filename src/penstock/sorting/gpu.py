"""Radix sort on a GPU, in core: uint64 keys that lie there, and payload columns of any width that follow them.

The sort moves keys and their positions (CUB's, through CuPy), payload is fetched once at the end. All memory it takes
is counted: the order and the scratch are made once, for one sort at a time; streams that share them take turns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.memory import gpu
from penstock.memory.ledger import Ledger
from penstock.sorting.gpu_kernels import BLOCK, blocks, gather, gather_wide, launcher

_ALIGNED = 512


class Held:
    """Bytes on the device, in the ledger until `close`; `take` cuts arrays off."""

    def __init__(self, device: Ledger, nbytes: int, what: str) -> None:
        self._reservation = device.reserve(nbytes, what)
        try:
            self.memory: Any = gpu.empty(nbytes, np.uint8)
        except BaseException:
            self._reservation.release()
            raise
        self._at = 0

    @property
    def left(self) -> int:
        return int(self.memory.nbytes) - self._at

    def take(self, count: int, dtype: Any) -> Any:
        """An array of the next bytes."""
        nbytes = count * np.dtype(dtype).itemsize
        found = self.memory[self._at : self._at + nbytes].view(dtype)
        self._at += -(-nbytes // _ALIGNED) * _ALIGNED
        return found

    def reset(self) -> None:
        """All bytes may be taken again."""
        self._at = 0

    def close(self) -> None:
        self.memory = None
        self._reservation.release()


def unit(width: int) -> tuple[np.dtype, int]:
    """A payload of so many bytes as words: the widest that divide it, and how many."""
    size = next(size for size in (8, 4, 2, 1) if width % size == 0)
    return np.dtype(f"u{size}"), width // size


def as_words(column: np.ndarray) -> np.ndarray:
    """A column as the words it is moved by."""
    return column.reshape(-1).view(unit(column.dtype.itemsize)[0])


class Workspace:
    """What sorting up to `capacity` pairs needs besides the pairs themselves."""

    def __init__(self, device: Ledger, capacity: int) -> None:
        self.capacity = capacity
        self._held = Held(device, self.nbytes(capacity), "sorting on the GPU")
        self.order = self._held.take(capacity, np.int64)
        self.scratch = self._held.take(gpu.sort_scratch(capacity), np.uint8)
        self._arg = gpu.view(self.order.view(np.uint64))
        self._free: gpu.Event | None = None

    @staticmethod
    def nbytes(capacity: int) -> int:
        return 8 * capacity + gpu.sort_scratch(capacity) + 2 * _ALIGNED

    def sort(self, stream: gpu.Stream, keys: Any) -> None:
        """Begin to sort keys on a stream, after the sort and the gathers before them on any other."""
        if self._free is not None:
            stream.wait(self._free)
        gpu.sort_order(keys, self.order[: len(keys)], self.scratch, stream)

    def gather(self, stream: gpu.Stream, source: Any, target: Any, count: int, words: int) -> None:
        """Payload in the order of the last sort; both arrays as kernels take them."""
        if words == 1:
            launcher(gather)(stream, blocks(count), BLOCK, source, self._arg, target, np.uint64(count))
        else:
            args = source, self._arg, target, np.uint64(count), np.uint64(words)
            launcher(gather_wide)(stream, blocks(count * words), BLOCK, *args)

    def done(self, stream: gpu.Stream) -> None:
        """The next sort may begin when the stream has come this far."""
        self._free = stream.record()

    def close(self) -> None:
        self._held.close()


class Slot:
    """Buffers for the pairs of one chunk, and the stream they are worked on by."""

    def __init__(self, device: Ledger, number: int, capacity: int, widths: list[int]) -> None:
        self.number, self.stream = number, gpu.Stream()
        self._held = Held(device, self.nbytes(capacity, widths), "pairs on the GPU")
        self.keys = self._held.take(capacity, np.uint64)
        self.words = [unit(width)[1] for width in widths]
        kinds = [unit(width)[0] for width in widths]
        self.sources = [self._held.take(capacity * k, kind) for k, kind in zip(self.words, kinds, strict=True)]
        self.targets = [self._held.take(capacity * k, kind) for k, kind in zip(self.words, kinds, strict=True)]
        self.key_arg = gpu.view(self.keys)
        views = map(gpu.view, self.sources), map(gpu.view, self.targets)
        self.args = list(zip(*views, self.words, strict=True))

    @staticmethod
    def nbytes(capacity: int, widths: list[int]) -> int:
        return (8 + 2 * sum(widths)) * capacity + (1 + 2 * len(widths)) * _ALIGNED

    def close(self) -> None:
        self._held.close()


def capacity(room: int, widths: list[int], slots: int) -> int:
    """How many pairs of each slot so many bytes of a device hold; 0 where they hold nearly none."""
    fixed = Workspace.nbytes(0) + slots * Slot.nbytes(0, widths)
    million = 1 << 20
    each = Workspace.nbytes(million) + slots * Slot.nbytes(million, widths) - fixed
    found = int((room - fixed) * million // each)
    return found if found >= 64 else 0


__all__ = ["Held", "Slot", "Workspace", "as_words", "capacity", "unit"]
