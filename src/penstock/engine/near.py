"""Vectors that stay on the GPU between the programs of an algorithm, near the processor that changes them.

Their owner offers them, and says when the host shall have them again. Until then what lies on the host is what it was
before.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from penstock.memory.card import Array, Card


class Near:
    """The vectors of an engine that lie on its GPU; none, as long as there is no card."""

    def __init__(self) -> None:
        self.card: Card | None = None
        self.keeping = False
        """Whether what the run makes itself may stay, too."""
        self._offered: dict[int, weakref.ref[np.ndarray]] = {}
        self._there: dict[int, tuple[Array, bool]] = {}
        """By the vector on the host: its copy on the device, and whether that is newer."""

    def on(self) -> AbstractContextManager[None]:
        """What is done inside is done on its GPU."""
        from penstock.memory import gpu

        assert self.card is not None
        return gpu.using(self.card.number)

    def offer(self, *vectors: np.ndarray) -> None:
        """Vectors of the host that nobody reads or writes without `home`."""
        for vector in vectors:
            key = id(vector)
            self._offered[key] = weakref.ref(vector, lambda _, key=key: self._forget(key))  # type: ignore[misc]

    def _forget(self, key: int) -> None:
        self._offered.pop(key, None)
        self._there.pop(key, None)

    def stays(self, vector: np.ndarray) -> bool:
        """Whether a run may leave it on the device."""
        return self.card is not None and id(vector) in self._offered

    def has(self, vector: np.ndarray) -> bool:
        """Whether it lies there."""
        return id(vector) in self._there

    def take(self, vector: np.ndarray) -> Array | None:
        """What lies on the device of a vector, for a run that will change it and put it back; one that fails does not,
        and the vector is lost."""
        found = self._there.pop(id(vector), None)
        return None if found is None else found[0]

    def put(self, vector: np.ndarray, array: Array) -> None:
        """Leave a vector there that was changed."""
        self._there[id(vector)] = array, True

    def at(self, vector: np.ndarray, *, changing: bool) -> Array:
        """What lies there of a vector, which is copied there if nothing does."""
        assert self.card is not None
        if id(vector) not in self._there:
            with self.on():
                self._there[id(vector)] = self.card.upload(vector, "state"), False
        array, newer = self._there[id(vector)]
        self._there[id(vector)] = array, newer or changing
        return array

    def home(self, *vectors: np.ndarray, changing: bool = False) -> None:
        """Let the host have these vectors as they are; if it changes them, what lies on the device is of no use."""
        from penstock.memory import gpu

        for vector in vectors:
            if id(vector) not in self._there:
                continue
            array, newer = self._there[id(vector)]
            if newer:
                with self.on():
                    gpu.download(array.array, vector)
                self._there[id(vector)] = array, False
            if changing:
                del self._there[id(vector)]
                array.release()

    def leave(self, besides: Iterable[np.ndarray] = ()) -> None:
        """Send all home but these, whose room is needed."""
        keep = {id(vector) for vector in besides}
        for key in [key for key in self._there if key not in keep]:
            vector = self._offered[key]()
            if vector is not None:
                self.home(vector, changing=True)

    def nbytes(self, vectors: Iterable[np.ndarray] | None = None) -> int:
        """What they take on the device, or these of them."""
        keys = list(self._there) if vectors is None else [id(vector) for vector in vectors]
        return sum(self._there[key][0].array.nbytes for key in keys if key in self._there)

    def room(self, nbytes: int, besides: Iterable[np.ndarray]) -> bool:
        """Whether there is room for so much more, beside these; others are sent home for it."""
        assert self.card is not None
        if self.card.free < nbytes:
            self.leave(besides)
        return self.card.free >= nbytes

    def fill(self, vector: np.ndarray, value: Any, first: int = 0, last: int | None = None) -> bool:
        """Give a vector one value where it lies, or some of it; False if it is not there."""
        if id(vector) not in self._there:
            return False
        with self.on():
            self.at(vector, changing=True).array[first:last].fill(value)
        return True

    def value(self, vector: np.ndarray, slot: int) -> Any:
        """One value of a vector, wherever it lies."""
        if id(vector) not in self._there:
            return vector[slot]
        from penstock.memory import gpu

        with self.on():
            return gpu.download(self._there[id(vector)][0].array[slot : slot + 1])[0]

    def close(self) -> None:
        """Give the device's memory back; what nobody asked for is lost."""
        for array, _ in self._there.values():
            array.release()
        self._there.clear()
        self._offered.clear()


__all__ = ["Near"]
