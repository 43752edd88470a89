"""Arrays on the device. Plain allocations, no pool: what is given back is free at once, and a budget can be checked."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np

from penstock.config import format_size
from penstock.errors import DeviceFull
from penstock.memory.gpu.devices import free_memory
from penstock.memory.gpu.door import SIMULATED, cuda, cupy


def empty(shape: Any, dtype: Any) -> Any:
    """An array on the device, of whatever was there before."""
    kind = np.dtype(dtype)
    size = int(np.prod(shape)) * kind.itemsize
    if SIMULATED:
        # Large ones begin on page boundaries, as a device's do.
        return np.ndarray(shape, kind, mmap.mmap(-1, size)) if size >= mmap.PAGESIZE else np.empty(shape, kind)
    try:
        memory = cupy.cuda.Memory(max(size, 1))
    except cupy.cuda.runtime.CUDARuntimeError as error:
        if error.status != cupy.cuda.runtime.errorMemoryAllocation:
            raise
        raise full(size) from error
    return cupy.ndarray(shape, kind, cupy.cuda.MemoryPointer(memory, 0))


def full(size: int) -> DeviceFull:
    """What to tell the user where the device has no memory left: others use it, too."""
    asked, free = format_size(size), format_size(free_memory()[0])
    return DeviceFull(f"the GPU has no {asked} left, only {free}, for others use it, too: lower gpu_memory_limit")


def zeros(shape: Any, dtype: Any) -> Any:
    found = empty(shape, dtype)
    found.fill(0)
    return found


def upload(array: np.ndarray) -> Any:
    """A copy on the device, complete when this returns."""
    found = empty(array.shape, array.dtype)
    fill(found, array)
    return found


def fill(target: Any, source: np.ndarray) -> None:
    """Copy a host array into one on the device."""
    if source.nbytes >= STAGED and target.nbytes == source.nbytes and _alike(target, source):
        from penstock.memory import staging

        staging.upload(target, source)
    elif SIMULATED:
        target[...] = source
    elif source.size:
        target.set(np.ascontiguousarray(source))


def download(array: Any, out: np.ndarray | None = None) -> np.ndarray:
    """A copy on the host, into `out` if it is given."""
    if array.nbytes >= STAGED and out is None:
        out = np.empty(array.shape, array.dtype)
    if array.nbytes >= STAGED and out is not None and out.nbytes == array.nbytes and _alike(array, out):
        from penstock.memory import staging

        staging.download(array, out)
        return out
    if SIMULATED:
        found = np.asarray(array)
    elif out is not None and out.flags.c_contiguous and out.dtype == array.dtype:
        if out.size:
            array.get(out=out)
        return out
    else:
        found = array.get()
    if out is None:
        return np.array(found)
    out[...] = found
    return out


STAGED = 4 << 20
"""Bytes from which copies from and to memory that is not pinned go through some that is."""


def _alike(array: Any, host: np.ndarray) -> bool:
    """Whether one can be copied into the other byte by byte."""
    return bool(array.flags.c_contiguous and host.flags.c_contiguous and array.dtype == host.dtype)


def view(array: Any) -> Any:
    """What kernels take: made once, it saves each launch a look at the array."""
    if SIMULATED:
        return _simulated(array)
    found = cuda.as_cuda_array(array, sync=False)
    # As numba-cuda hands arrays to kernels: no reference count, no owner, how many of what size, where, in which shape.
    found.packed = (0, 0, array.size, array.itemsize, array.data.ptr, *array.shape, *array.strides)
    found.key = f"{array.dtype.str}{array.ndim}"
    return found


class Part:
    """Some numbers of an array of one dimension, as a kernel that has been launched before takes them."""

    __slots__ = ("_array", "_begin", "_end", "key", "packed")

    def __init__(self, array: Any, begin: int, end: int) -> None:
        self._array, self._begin, self._end = array, begin, end
        count, size = end - begin, array.itemsize
        self.packed = (0, 0, count, size, array.data.ptr + begin * size, count, size)
        self.key = f"{array.dtype.str}1"

    def view(self) -> Any:
        """As every kernel takes them."""
        return view(self._array[self._begin : self._end])


def part(array: Any, begin: int, end: int) -> Any:
    """What kernels take for some numbers of an array, where it is needed for one launch: a `view` of them takes as long
    as the launch."""
    return _simulated(array[begin:end]) if SIMULATED else Part(array, begin, end)


def _simulated(array: np.ndarray) -> Any:
    """An array of the simulator's own: those of NumPy it copies before a kernel, holes and all, and back after it, over
    what others have written there meanwhile."""
    from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray

    return FakeCUDAArray(array)


def address(array: Any) -> int:
    """Where an array begins, on the device or on the host."""
    return int(array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr)


class _Stretch:
    """Numbers from an address on, whatever lies there, as both worlds ask for them."""

    def __init__(self, start: int, count: int, dtype: np.dtype, owner: Any) -> None:
        self.owner = owner
        known = {"version": 3, "shape": (count,), "typestr": dtype.str, "data": (start, False)}
        setattr(self, "__array_interface__" if SIMULATED else "__cuda_array_interface__", known)


def stretch(array: Any, start: int, count: int) -> Any:
    """What kernels take to reach beyond an array: `count` numbers of its type from an address on. Much of that may be
    nobody's memory; they must know where to read."""
    if SIMULATED:
        return _simulated(np.asarray(_Stretch(start, count, array.dtype, array)))
    found = cuda.as_cuda_array(_Stretch(start, count, array.dtype, array), sync=False)
    found.packed = (0, 0, count, array.itemsize, start, count, array.itemsize)
    found.key = f"{array.dtype.str}1"
    return found


def is_there(array: Any) -> bool:
    """Whether an array lies on the device; in the simulator all do."""
    return isinstance(array, np.ndarray if SIMULATED else cupy.ndarray)


def contiguous(array: Any) -> Any:
    """It without gaps, where it lies, if it is an array."""
    if not is_there(array):
        return array
    return np.ascontiguousarray(array) if SIMULATED else cupy.ascontiguousarray(array)


__all__ = [
    "STAGED", "Part", "address", "contiguous", "download", "empty", "fill", "is_there", "part", "stretch", "upload",
    "view", "zeros",
]  # fmt: skip
