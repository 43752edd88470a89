"""Arrays on a device: what Penstock uses of CuPy's. They are not NumPy's, and do not become such by accident."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from emulator.devices import current
from emulator.memory import MemoryPointer, allocate
from emulator.scheduler import SCHEDULER
from emulator.streams import do


def at(place: int, shape: Any, dtype: np.dtype, strides: Any = None) -> np.ndarray:
    """Memory as NumPy sees it, without a look at who owns it."""
    count = int(np.prod(shape))
    if not count:
        return np.empty(shape, dtype)
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    reach = count * dtype.itemsize
    if strides is not None:
        reach = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + dtype.itemsize
    return np.ndarray(shape, dtype, (ctypes.c_ubyte * reach).from_address(place), strides=strides)


class ndarray:
    """An array on the device. What is to be done with it knows only where it lies: it may be given back before that is
    done, for which CUDA waits then."""

    __array_priority__ = 100

    def __init__(self, shape: Any, dtype: Any = float, memptr: MemoryPointer | None = None, strides: Any = None):
        self.dtype = np.dtype(dtype)
        size = int(np.prod(shape)) * self.dtype.itemsize
        self.data = memptr or allocate(size)
        self.device = self.data.device
        self._there = at(self.data.ptr, shape, self.dtype, strides)
        self.shape, self.strides, self.ndim = self._there.shape, self._there.strides, self._there.ndim
        self.size, self.itemsize, self.nbytes = self._there.size, self.dtype.itemsize, self._there.nbytes
        self.flags = self._there.flags

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("an array on the device is no array of the host's: use get()")

    def __len__(self) -> int:
        return self.shape[0]

    def _part(self, part: np.ndarray) -> ndarray:
        moved = part.ctypes.data - self._there.ctypes.data if part.size else 0
        return ndarray(part.shape, part.dtype, self.data + moved, part.strides)

    def __getitem__(self, key: Any) -> ndarray:
        if isinstance(key, ndarray | np.ndarray | list):
            return self._chosen(key)
        found = self._there[key]
        if not isinstance(found, np.ndarray):  # a number, where it lies
            places = np.arange(self.size).reshape(self.shape)
            at = self.data + int(places[key]) * self.itemsize
            return ndarray((), self.dtype, at)
        return self._part(found)

    def _chosen(self, key: Any) -> ndarray:
        """A copy of some of it; CuPy takes places from the host, too."""
        given = key._there if isinstance(key, ndarray) else np.asarray(key)
        if given.dtype == bool:  # how many there are must be known first
            SCHEDULER.finish_all(current())
            given = np.flatnonzero(given)
        found = ndarray(given.shape, self.dtype)
        there, here = found._there, self._there
        do(lambda: np.copyto(there, here[given]))
        return found

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(value, np.ndarray) and value.ndim:
            raise TypeError("an array of the host's is no array on the device")
        there, given = self._there, value._there if isinstance(value, ndarray) else value
        do(lambda: there.__setitem__(key, given))

    def _with(self, other: Any, operation: Any) -> ndarray:
        """Element by element."""
        here, given = self._there, other._there if isinstance(other, ndarray) else other
        found = ndarray(self.shape, operation(here[:0], given if np.ndim(given) == 0 else given[:0]).dtype)
        there = found._there
        do(lambda: np.copyto(there, operation(here, given)))
        return found

    def __gt__(self, other: Any) -> ndarray:
        return self._with(other, np.greater)

    def __mul__(self, other: Any) -> ndarray:
        return self._with(other, np.multiply)

    def astype(self, dtype: Any) -> ndarray:
        return self._with(np.dtype(dtype).type(0), lambda here, _: here.astype(dtype))

    def view(self, dtype: Any) -> ndarray:
        return self._part(self._there.view(dtype))

    def reshape(self, *shape: Any) -> ndarray:
        found = self._there.reshape(*shape)
        assert not found.size or np.shares_memory(found, self._there)
        return self._part(found)

    def ravel(self) -> ndarray:
        return self.reshape(-1)

    def fill(self, value: Any) -> None:
        there = self._there
        do(lambda: there.fill(value))

    def sort(self) -> None:
        there = self._there
        do(there.sort)

    def set(self, array: np.ndarray) -> None:
        assert array.shape == self.shape
        assert array.dtype == self.dtype
        assert array.flags.c_contiguous
        SCHEDULER.finish_all(current())
        there, read = self._there, array.copy()  # the device may have it later
        do(lambda: np.copyto(there, read))

    def get(self, out: np.ndarray | None = None) -> np.ndarray:
        found = np.empty(self.shape, self.dtype) if out is None else out
        assert found.dtype == self.dtype
        do(lambda: np.copyto(found, self._there), wait=True)
        return found

    def __int__(self) -> int:
        return int(self.get())

    __index__ = __int__

    def __float__(self) -> float:
        return float(self.get())

    def __bool__(self) -> bool:
        return bool(self.get())


def cumsum(array: ndarray, dtype: Any = None, out: ndarray | None = None) -> ndarray:
    found = ndarray(array.shape, dtype or array.dtype) if out is None else out
    there, here = found._there, array._there
    do(lambda: np.cumsum(here, out=there, dtype=there.dtype))
    return found


def ascontiguousarray(array: ndarray) -> ndarray:
    if array.flags.c_contiguous:
        return array
    found = ndarray(array.shape, array.dtype)
    there, here = found._there, array._there
    do(lambda: np.copyto(there, here))
    return found


def argsort(kind: Any, order: int, keys: int, stream: int, shape: tuple[int, ...]) -> None:
    scratch = [allocate(8 * shape[0]) for _ in range(2)]

    def run() -> None:
        found, places = at(keys, shape, np.dtype(kind)), at(order, shape, np.dtype(np.int64))
        places[...] = np.argsort(found, kind="stable")
        found[...] = found[places]
        scratch.clear()

    do(run)


__all__ = ["argsort", "ascontiguousarray", "cumsum", "ndarray"]
