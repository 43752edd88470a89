"""The place of the driver: what numba-cuda and Penstock would ask of it, and what kernels of the host call."""

from __future__ import annotations

import ctypes
from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
from llvmlite import binding as llvm

from emulator import cupy, streams
from emulator.devices import current
from emulator.host import CAPABILITY
from emulator.kept import translated
from emulator.memory import device_at
from emulator.scheduler import SCHEDULER
from emulator.threads import Kernel

_HANDLES: dict[int, Kernel] = {}


class View:
    """An array as kernels take it."""

    def __init__(self, array: Any, sync: bool = True) -> None:
        from numba import from_dtype, types

        known = getattr(array, "__cuda_array_interface__", None)
        if known is None:
            shape, dtype, contiguous = array.shape, array.dtype, array.flags.c_contiguous
        else:
            shape, dtype, contiguous = known["shape"], np.dtype(known["typestr"]), True
        self.owner = array
        self._numba_type_ = types.Array(from_dtype(dtype), len(shape), "C" if contiguous else "A", aligned=True)


class Dispatcher:
    """What numba-cuda makes of a kernel."""

    def __init__(self, function: Any) -> None:
        self.py_func, self.overloads, self._cache = function, {}, None
        self.__name__ = function.__name__
        self.stats = SimpleNamespace(cache_misses=Counter())

    @staticmethod
    def typeof_pyval(value: Any) -> Any:
        import numba

        if isinstance(value, tuple):
            return numba.types.BaseTuple.from_types([Dispatcher.typeof_pyval(each) for each in value])
        return numba.typeof(value)

    def __getitem__(self, how: tuple[Any, ...]) -> Any:
        blocks, threads, stream = (*how, 0)[:3]

        def launch(*args: Any) -> None:
            from penstock.memory.gpu.kernels import _flatten

            kinds = tuple(self.typeof_pyval(arg) for arg in args)
            if kinds not in self.overloads:
                module, count, new = translated(self.py_func, kinds, getattr(self._cache, "_key", None))
                self.stats.cache_misses[kinds] += new
                made = Kernel(module, self.py_func.__name__, count)
                _HANDLES[id(made)] = made
                library = SimpleNamespace(get_cufunc=lambda: SimpleNamespace(handle=id(made)))
                self.overloads[kinds] = SimpleNamespace(_codelibrary=library, made=made)
            values: list[int] = []
            for arg in args:
                _flatten(arg, values, [])
            put(self.overloads[kinds].made, blocks, threads, np.array(values, np.uint64), getattr(stream, "handle", 0))

        return launch


def put(kernel: Kernel, blocks: int, threads: int, slots: np.ndarray, handle: int) -> None:
    """Into a stream."""
    queue, pointers = SCHEDULER.find(handle), slots.ctypes.data + np.arange(len(slots), dtype=np.uint64) * np.uint64(8)
    assert queue.device == current(), f"{kernel.name} in a stream of another device"
    for each in slots.tolist():
        assert device_at(each) in (None, queue.device), f"{kernel.name} gets memory of another device"

    def run() -> None:
        kernel.run(int(blocks), int(threads), pointers.ctypes.data, SCHEDULER.rng)
        slots.fill(0)

    SCHEDULER.put(queue, run)


class Driver:
    """What Penstock calls of the driver itself."""

    CUfunction = int

    @staticmethod
    def cuLaunchKernel(
        handle: int, blocks: int, _y: int, _z: int, threads: int, _ty: int, _tz: int, shared: int, stream: int,
        pointers: int, extra: int,
    ) -> tuple[int]:  # fmt: skip
        kernel = _HANDLES[handle]
        places = (ctypes.c_uint64 * kernel.arguments).from_address(pointers)
        slots = np.array([ctypes.c_uint64.from_address(each).value for each in places], np.uint64)
        put(kernel, blocks, threads, slots, stream)
        return (0,)


def _copy(target: int, source: int, nbytes: int, stream: int) -> int:
    streams.copy(target, source, nbytes, stream or 0, to_host=False)
    return 0


def _record(event: int, stream: int) -> int:
    streams.EVENTS[event].operation = SCHEDULER.position(SCHEDULER.find(stream or 0))
    return 0


def _synchronize(event: int) -> int:
    streams.EVENTS[event].synchronize()
    return 0


_word = ctypes.c_size_t
_CALLED = {
    "cuMemcpyHtoDAsync_v2": ctypes.CFUNCTYPE(ctypes.c_int, _word, _word, _word, _word)(_copy),
    "cuEventRecord": ctypes.CFUNCTYPE(ctypes.c_int, _word, _word)(_record),
    "cuEventSynchronize": ctypes.CFUNCTYPE(ctypes.c_int, _word)(_synchronize),
}
"""What kernels of the host call, by name."""


def install() -> None:
    """Before anything of Penstock's is imported."""
    cupy.install()
    for name, called in _CALLED.items():
        llvm.add_symbol(name, ctypes.cast(called, ctypes.c_void_p).value)

    import numba.cuda as numba_cuda
    from numba.cuda.cudadrv import devices

    hopper = SimpleNamespace(compute_capability=CAPABILITY, id=0, name="emulated")
    context = SimpleNamespace(device=hopper)
    devices.get_context = lambda devnum=None: context
    devices._runtime.get_or_create_context = lambda devnum=None: context
    numba_cuda.jit = _jit
    numba_cuda.as_cuda_array = View
    numba_cuda.external_stream = lambda handle: SimpleNamespace(handle=handle)
    numba_cuda.default_stream = lambda: SimpleNamespace(handle=0)
    numba_cuda.select_device = lambda device: None

    from penstock.memory import deliver, gpu
    from penstock.memory.gpu import kernels
    from penstock.observe import gpus

    kernels._driver = lambda: Driver
    deliver.DRIVER = None
    gpus.missing = lambda: None
    assert not gpu.SIMULATED


def _jit(function: Any = None, **_: Any) -> Any:
    return Dispatcher if function is None else Dispatcher(function)


__all__ = ["install"]
