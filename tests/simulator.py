"""Numba's CUDA simulator, made faster. Import this before any kernel is launched.

The simulator gives each thread of a block a thread of the system, and asks all of them again and again whether they
wait. Here they are coroutines: each runs until it comes to a barrier, and when all have come there they go on, each
time in another order, which is the same in every run. Arrays are NumPy's own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
from greenlet import getcurrent, greenlet
from numba.cuda.errors import normalize_kernel_dimensions
from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray
from numba.cuda.simulator.kernel import FakeCUDAKernel, _push_kernel_context
from numba.cuda.simulator.kernelapi import Dim3, FakeCUDAModule, FakeCUDAShared, swapped_cuda_module
from numba.np.numpy_support import as_dtype


class _Thread(greenlet):
    """A thread of a block; control goes back to who runs the block when it waits and when it ends."""

    def __init__(self, run: Any, block: Dim3, place: Dim3) -> None:
        super().__init__(run)
        self.blockIdx, self.threadIdx = block, place


def _launch(self: Any, *args: Any) -> None:
    grid, threads = normalize_kernel_dimensions(self.grid_dim, self.block_dim)
    arrays = [arg._ary if isinstance(arg, FakeCUDAArray) else arg for arg in args]
    order, module = Random(0), FakeCUDAModule(grid, threads, self.dynshared_size)
    with _push_kernel_context(module), swapped_cuda_module(self.fn, module):
        for block in _points(grid):
            module._shared = FakeCUDAShared(self.dynshared_size)
            running = [_Thread(self.fn, block, place) for place in _points(threads)]
            given = arrays
            while running:
                order.shuffle(running)
                for thread in running:
                    thread.switch(*given)
                running = [thread for thread in running if not thread.dead]
                given = []


def _points(shape: tuple[int, ...]) -> Iterator[Dim3]:
    return (Dim3(*place) for place in np.ndindex(*shape))


def _shared(self: Any, shape: Any, dtype: Any) -> np.ndarray:
    """One array for all threads of a block that come by the same line."""
    caller = sys._getframe(1)
    key = caller.f_code, caller.f_lineno
    if key not in self._allocations:
        self._allocations[key] = np.empty(shape, dtype if isinstance(dtype, type) else as_dtype(dtype))
    return self._allocations[key]


def _barrier(self: Any) -> None:
    thread = getcurrent()
    assert thread.parent is not None
    thread.parent.switch()


FakeCUDAKernel.__call__ = _launch
FakeCUDAModule.threadIdx = property(lambda self: getcurrent().threadIdx)
FakeCUDAModule.blockIdx = property(lambda self: getcurrent().blockIdx)
FakeCUDAModule.syncthreads = _barrier
FakeCUDAShared.array = _shared
