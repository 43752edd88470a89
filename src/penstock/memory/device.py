"""The one door to Numba: its flags, its atomics. Nothing else in Penstock imports `numba`."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba import njit, prange, set_num_threads, types
from numba.core import cgutils
from numba.extending import intrinsic

# tbb survives concurrent use and has cheap regions; workqueue aborts when two threads meet in it. Its wheel puts the
# library into the environment's lib folder, where the loader does not look.
numba.config.THREADING_LAYER_PRIORITY = ["tbb", "omp", "workqueue"]
with contextlib.suppress(OSError):
    ctypes.CDLL(str(Path(sys.prefix, "lib", "libtbb.so.12")), mode=ctypes.RTLD_GLOBAL)


def kernel(**flags: Any) -> Callable[[Any], Any]:
    """A serial kernel: called from worker threads, so it holds no GIL; cached on disk; divides like NumPy."""
    return njit(nogil=True, cache=True, error_model="numpy", **flags)


def parallel_kernel(**flags: Any) -> Callable[[Any], Any]:
    """A kernel with `prange`, called from one thread at a time. Pass thread counts in: asking defeats the cache."""
    return njit(nogil=True, cache=True, parallel=True, error_model="numpy", **flags)


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    struct = context.make_array(array_type)(context, builder, array)
    return cgutils.get_item_pointer(context, builder, array_type, struct, [index], wraparound=False)


@intrinsic
def atomic_add(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """`old = array[index]; array[index] += value`, relaxed."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], args[0], args[1])
        op = "fadd" if isinstance(signature.args[0].dtype, types.Float) else "add"
        return builder.atomic_rmw(op, pointer, args[2], "monotonic")

    return array.dtype(array, types.intp, array.dtype), codegen


def use_threads(threads: int) -> None:
    """Run parallel kernels on this many threads, or on as many as Numba was started with."""
    set_num_threads(max(1, min(threads, numba.config.NUMBA_NUM_THREADS)))


@njit(parallel=True, cache=True)
def _first_region(n):
    total = 0
    for i in prange(n):
        total += i
    return total


def threading_layer() -> str:
    """The layer that runs parallel kernels: `tbb`, `omp` or `workqueue`. Known once one has run."""
    _first_region(4)
    return str(numba.threading_layer())


__all__ = ["atomic_add", "kernel", "parallel_kernel", "prange", "threading_layer", "use_threads"]
