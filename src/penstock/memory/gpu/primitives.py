"""Sums and orders of whole arrays, and memory for functions of users that make arrays: CuPy's. It takes as much memory
again while it works, which the caller sets aside."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from penstock.memory.gpu.arrays import full
from penstock.memory.gpu.door import SIMULATED, cupy
from penstock.memory.gpu.streams import Stream


def running_sum(array: Any) -> None:
    """Let each number be the sum of those up to it."""
    if SIMULATED:
        np.cumsum(array, out=array)
        return
    with _scratch(array.nbytes):
        array[...] = cupy.cumsum(array, dtype=array.dtype)


def scan(array: Any, out: Any, stream: Stream) -> None:
    """Begin to sum numbers up into another array of theirs, on a stream; it holds up no other."""
    if stream.raw is None:
        np.cumsum(array, out=out)
        return
    with stream.raw:
        cupy.cumsum(array, dtype=array.dtype, out=out)


def sort(array: Any) -> None:
    """Sort numbers where they lie."""
    if SIMULATED:
        array.sort()
        return
    with _scratch(array.nbytes):
        array.sort()


def sort_scratch(count: int) -> int:
    """Bytes of scratch that `sort_order` wants for so many keys: keys and positions once more, and some to count."""
    return 0 if SIMULATED else 16 * count + count // 2 + (4 << 20)


def sort_order(keys: Any, order: Any, scratch: Any, stream: Stream) -> None:
    """Begin to sort uint64 numbers where they lie, stably, by radix; `order`, int64, is where each was before. All that
    is needed besides is taken from `scratch`, bytes that are free again when the stream has come by."""
    if not len(keys):
        return
    if stream.raw is None:
        order[...] = np.argsort(keys, kind="stable")
        keys[...] = keys[order]
        return
    used = 0

    def allocate(nbytes: int) -> Any:
        nonlocal used
        begin, used = used, used + (nbytes + 511 & -512)
        if used > scratch.nbytes:
            # More than was known of: right, but late, as it is given back at once and all streams wait for that.
            return cupy.cuda.MemoryPointer(cupy.cuda.Memory(nbytes), 0)
        return scratch.data + begin

    # CuPy's own `argsort` sorts a copy; what it calls sorts the keys themselves, and leaves them sorted.
    with cupy.cuda.using_allocator(allocate), stream.raw:
        cupy.cuda.thrust.argsort(keys.dtype, order.data.ptr, keys.data.ptr, 0, keys.shape)


@contextlib.contextmanager
def _scratch(nbytes: int) -> Iterator[None]:
    """What CuPy takes inside, which is given back; about so many bytes."""
    try:
        yield
        cupy.cuda.runtime.deviceSynchronize()
    except cupy.cuda.memory.OutOfMemoryError:
        raise full(nbytes) from None
    finally:
        cupy.get_default_memory_pool().free_all_blocks()


class _NoPool:
    def free_all_blocks(self) -> None:
        """The simulator's arrays are NumPy's."""


def limited_pool(nbytes: int) -> Any:
    """A pool of memory of the device that gives no more than so many bytes."""
    if SIMULATED:
        return _NoPool()
    pool = cupy.cuda.MemoryPool()
    pool.set_limit(size=nbytes)
    return pool


@contextlib.contextmanager
def pooled(pool: Any, stream: Stream) -> Iterator[None]:
    """What CuPy does inside is put into the stream, and takes its memory from the pool."""
    if stream.raw is None:
        yield
        return
    with cupy.cuda.using_allocator(pool.malloc), stream.raw:
        yield


__all__ = ["limited_pool", "pooled", "running_sum", "scan", "sort", "sort_order", "sort_scratch"]
