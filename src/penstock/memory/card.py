"""What lies on a GPU: a budget, arrays that give back what they took, and the pages of directions."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.config import Settings
from penstock.memory import gpu
from penstock.memory.cache import Policy
from penstock.memory.frames import DevicePages
from penstock.memory.ledger import Ledger, Reservation
from penstock.store.reader import Store

SHARE = 9, 10
"""How much of the memory that is free at the start is used, if no limit was given."""


class Array:
    """Memory on the device: `array` for copies, `arg` for kernels."""

    __slots__ = ("_held", "arg", "array")

    def __init__(self, array: Any, held: Reservation) -> None:
        self.array, self.arg, self._held = array, gpu.view(array), held

    def release(self) -> None:
        """Give it back."""
        self.array = self.arg = None
        self._held.release()


class Card:
    """One GPU, for one store. Pages stay until others need their room."""

    def __init__(self, store: Store, settings: Settings, host: Ledger) -> None:
        self.store, self.settings, self.host = store, settings, host
        self.number = int(settings.device.partition(":")[2] or 0)
        gpu.use(self.number)
        limit = settings.gpu_memory_limit
        if limit is None:
            limit = gpu.free_memory()[0] * SHARE[0] // SHARE[1]
        self.ledger = Ledger(limit)
        self.stream = gpu.Stream(null=True)
        self._pages: dict[tuple[str, tuple[str, ...]], DevicePages] = {}
        self._columns: dict[str, Array] = {}
        self._policy: Policy = "resident"
        self._copied = self._read = self._hits = 0

    # ---- arrays

    def empty(self, shape: Any, dtype: Any, what: str) -> Array:
        """Memory as it was left."""
        kind = np.dtype(dtype)
        held = self.ledger.reserve(int(np.prod(shape)) * kind.itemsize, what)
        try:
            return Array(gpu.empty(shape, kind), held)
        except BaseException:
            held.release()
            raise

    def full(self, shape: Any, value: Any, dtype: Any, what: str) -> Array:
        """Memory filled with a value."""
        found = self.empty(shape, dtype, what)
        found.array.fill(value)
        return found

    def upload(self, array: np.ndarray, what: str) -> Array:
        """A copy of a host array."""
        found = self.empty(array.shape, array.dtype, what)
        gpu.fill(found.array, array)
        return found

    def column(self, name: str) -> Any:
        """A column of the active vertices. It stays for the next run if there is room to spare."""
        if name in self._columns:
            return self._columns[name].array
        host = self.store.vertex_column(name).read(0, self.store.active)
        if host.nbytes > self.ledger.free // 8:
            return gpu.upload(host)  # for the moment of a copy
        self._columns[name] = self.upload(host, f"column {name}")
        return self._columns[name].array

    # ---- arcs

    def pages(self, names: Sequence[str], columns: Sequence[str], policy: Policy) -> dict[str, DevicePages]:
        """The pages of directions, with room for what the budget has left. Those that are there, whole, are kept."""
        found = {name: self._there(self.store.direction(name).name, tuple(columns), policy) for name in names}
        if all(side is not None for side in found.values()):
            return {name: side for name, side in found.items() if side is not None}
        self.close_pages()
        self._policy = policy
        keys = sorted({self.store.direction(name).name for name in names})
        for place, name in enumerate(keys):
            room = self.ledger.free // (len(keys) - place)
            side = DevicePages(
                self.store.direction(name), columns, self.ledger, self.host, self.settings,
                policy=policy, room=room, streams=self.settings.gpu_streams, stream=self.stream,
            )  # fmt: skip
            self._pages[name, tuple(columns)] = side
            side.load()
        return {name: self._pages[self.store.direction(name).name, tuple(columns)] for name in names}

    def _there(self, name: str, columns: tuple[str, ...], policy: Policy) -> DevicePages | None:
        for (held, names), side in self._pages.items():
            if held != name or not set(columns) <= set(names) or (policy != self._policy and not side.resident):
                continue
            return side if names == columns else _with_columns(side, names, columns)
        return None

    def read_counts(self) -> tuple[int, int, int]:
        """(bytes copied to the device, bytes read from disk, pages found in frames) so far."""
        stats = [side.stats for side in self._pages.values()]
        return (
            self._copied + sum(s["bytes_copied"] for s in stats),
            self._read + sum(s["bytes_read"] for s in stats),
            self._hits + sum(s["hits"] for s in stats),
        )

    def close_pages(self) -> None:
        """Give the pages' memory back."""
        self._copied, self._read, self._hits = self.read_counts()
        gpu.synchronize()
        for column in self._columns.values():
            column.release()
        self._columns.clear()
        for side in self._pages.values():
            side.close()
        self._pages.clear()

    def close(self) -> None:
        """Give everything back."""
        self.close_pages()


def _with_columns(side: DevicePages, names: tuple[str, ...], columns: tuple[str, ...]) -> DevicePages:
    """The same pages with some of their columns."""
    other = copy.copy(side)
    places = [names.index(name) for name in columns]
    other.columns = tuple(side.columns[k] for k in places)
    strides = np.array([side.layout.strides[k] for k in places] or [0], np.uint64)
    other.strides = gpu.view(gpu.upload(strides))
    return other


__all__ = ["Array", "Card"]
