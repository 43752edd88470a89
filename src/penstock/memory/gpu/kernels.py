"""Kernels: compiled once for all processes, launched without a look at what was seen before."""

from __future__ import annotations

import contextlib
import functools
import gc
import struct
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from penstock.errors import ProgramError
from penstock.memory.device import Keyed, width_of
from penstock.memory.gpu.arrays import Part
from penstock.memory.gpu.door import SIMULATED, cuda
from penstock.memory.gpu.streams import Stream


@functools.cache
def _caching() -> Any:
    """numba-cuda's on-disk cache with a key of our own."""
    from numba.cuda.core.caching import IndexDataCacheFile
    from numba.cuda.dispatcher import CUDACache

    class KeyedCache(Keyed, CUDACache):
        index = IndexDataCacheFile

    return KeyedCache


def template_kernel(function: Any, key: str) -> Any:
    """A kernel from a function that closes over a program's functions, cached under `key`."""
    made = cuda.jit(function)
    if not SIMULATED:
        made._cache = _caching()(function, key)
    return made


def compiled_as(function: Any, replacements: Mapping[int, Any], *, wide: Any = None) -> None:
    """Let kernels replace a function of an array, by the bytes of its numbers, by another of the same parameters; by
    `wide`, if it is given, for arrays of two dimensions. The simulator calls the function itself."""
    if SIMULATED:
        return
    from numba.cuda.extending import overload

    def typing(*args: Any) -> Any:
        kind = getattr(args[0], "dtype", None)
        if wide is not None and getattr(args[0], "ndim", 1) == 2:
            return wide
        found = replacements.get(width_of(kind) // 8)
        if found is None:
            # An error of Numba's own would have it try what was made for CPUs.
            sizes = " or ".join(map(str, replacements))
            raise ProgramError(
                f"on a GPU {function.__name__} takes an array of numbers of {sizes} bytes, not {args[0]}: "
                f"use a wider type for that field, or device='cpu'"
            )
        return found

    overload(function, strict=False)(typing)


class Launcher:
    """Launches a kernel: `launcher(stream, blocks, threads, *args)`.

    numba-cuda takes 40 to 80 us for a launch, most of it to find out what it was given. Here arguments that look like
    those of an earlier launch are written where the driver reads them, in a few.
    """

    def __init__(self, made: Any) -> None:
        self.made, self._lock = made, threading.Lock()
        self._known: dict[tuple[Any, ...], tuple[Any, np.ndarray, int, np.ndarray]] = {}

    def __call__(self, stream: Stream, blocks: int, threads: int, *args: Any) -> None:
        if SIMULATED:
            self.made[blocks, threads](*args)
            return
        values: list[int] = []
        key: list[Any] = [stream.device]  # a kernel is loaded on each device, under a handle of its own
        for arg in args:
            _flatten(arg, values, key)
        found = self._known.get(tuple(key))
        if found is None:
            args = tuple(arg.view() if type(arg) is Part else arg for arg in args)
            compiled = self._compiled()
            self.made[blocks, threads, stream.numba](*args)
            self._known[tuple(key)] = self._learn(args, len(values))
            if self._compiled() != compiled:
                # The compiler leaves cycles that know who called it, and with them arrays that are given back later.
                gc.collect()
            return
        handle, slots, pointers, _ = found
        with self._lock:  # runs in other threads launch it, too
            slots[:] = values
            (error,) = _driver().cuLaunchKernel(
                handle, blocks, 1, 1, threads, 1, 1, 0, stream.raw.ptr if stream.raw is not None else 0, pointers, 0
            )
        if error != 0:
            raise RuntimeError(f"the GPU refused a kernel: {error}")

    def _compiled(self) -> int:
        """For how many types it was compiled, and not found among those that are kept."""
        return sum(self.made.stats.cache_misses.values())

    def _learn(self, args: tuple[Any, ...], count: int) -> tuple[Any, np.ndarray, int, np.ndarray]:
        kernel = self.made.overloads[tuple(self.made.typeof_pyval(arg) for arg in args)]
        handle = _driver().CUfunction(int(kernel._codelibrary.get_cufunc().handle))
        slots = np.zeros(count, np.uint64)
        pointers = slots.ctypes.data + np.arange(count, dtype=np.uint64) * np.uint64(8)
        return handle, slots, int(pointers.ctypes.data), pointers


def _driver() -> Any:
    from cuda.bindings import driver

    return driver


_REAL = struct.Struct("<d"), struct.Struct("<f")
_WORD = struct.Struct("<Q"), struct.Struct("<I")


def _flatten(arg: Any, values: list[int], key: list[Any]) -> None:
    """The numbers that stand for an argument, each in a word of its own; and what it looks like."""
    if type(arg) is tuple:
        key.append(len(arg))
        for one in arg:
            _flatten(one, values, key)
        return
    packed = getattr(arg, "packed", None)
    if packed is not None:
        values.extend(packed)
        key.append(arg.key)
        return
    kind = type(arg)
    key.append(kind)
    if kind is float or kind is np.float64:
        values.append(_WORD[0].unpack(_REAL[0].pack(arg))[0])
    elif kind is np.float32:
        values.append(_WORD[1].unpack(_REAL[1].pack(arg))[0])
    elif kind is np.float16:
        values.append(int(arg.view(np.uint16)))
    else:
        values.append(int(arg) & 0xFFFFFFFFFFFFFFFF)


def errors() -> tuple[type[Exception], ...]:
    """What is raised when a kernel does not compile."""
    from numba.core.errors import NumbaError

    found: list[type[Exception]] = [NumbaError]
    with contextlib.suppress(ImportError):
        from numba.cuda.core.errors import NumbaError as CudaNumbaError

        found.append(CudaNumbaError)
    return tuple(found)


__all__ = ["Launcher", "compiled_as", "errors", "template_kernel"]
