"""The door to the GPU: numba-cuda for kernels, CuPy for memory, streams and events. Nothing else in Penstock imports
them, and this module is imported only when a GPU is wanted: it takes a second.

With `NUMBA_ENABLE_CUDASIM=1` Numba's simulator stands in for both: arrays are NumPy's, streams do nothing, and what
runs is slow, in order, and the same code. Kernels find `cuda` as a global of their own module, as the simulator needs.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import mmap
import os
import struct
from collections.abc import Iterator, Mapping
from importlib.metadata import version as version_of
from typing import Any

import numpy as np

if not hasattr(np, "row_stack"):  # gone since NumPy 2.5; numba-cuda still names it
    vars(np)["row_stack"] = np.vstack

SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0")
DRIVER = "libcuda.so.1"
"""The library that kernels of the host call to copy; see `penstock.memory.deliver`."""

from numba import cuda  # noqa: E402

from penstock.errors import ProgramError  # noqa: E402
from penstock.memory.device import Keyed, width_of  # noqa: E402
from penstock.observe.gpus import missing  # noqa: E402

with contextlib.suppress(ImportError):  # the simulator has none
    # A batch of few pages is no mistake: nobody wants to hear of it at each kernel's first launch.
    from numba.cuda.core import config

    config.CUDA_LOW_OCCUPANCY_WARNINGS = 0

cupy: Any = None
if not SIMULATED and importlib.util.find_spec("cupy") is not None:
    cupy = importlib.import_module("cupy")


class _Inside:
    """What the simulator gives a running kernel as `cuda`: it looks only into the kernel's own module."""

    def __getattr__(self, name: str) -> Any:
        from numba.cuda.simulator.kernel import _get_kernel_context

        return getattr(_get_kernel_context(), name)


inside: Any = _Inside() if SIMULATED else cuda
"""`cuda` for functions that kernels of other modules call."""

WARP = 32


def _plain(array: Any, i: Any) -> Any:
    return array[i]


once: Any = _plain if SIMULATED else getattr(cuda, "ldcs", _plain)
"""`once(array, i)` in a kernel: an element that is read once. It does not push out of the caches what is read again;
for the arcs of PageRank that is worth three percent."""


# ---- which devices there are


def count() -> int:
    """How many GPUs can be used; a simulated one counts."""
    if SIMULATED:
        return 1
    if cupy is None or importlib.util.find_spec("numba_cuda") is None:
        return 0
    try:
        return int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError:
        return 0


def why_not() -> str | None:
    """Why no GPU can be used, in one sentence; None if one can."""
    if SIMULATED or count():
        return None
    return missing() or "no CUDA device was found: is its driver installed?"


@functools.cache
def name(device: int = 0) -> str:
    if SIMULATED:
        return "simulated"
    return str(cupy.cuda.runtime.getDeviceProperties(device)["name"].decode())


@functools.cache
def bus(device: int = 0) -> str | None:
    """Its place on the PCI bus: a name that does not depend on who counts the devices."""
    return None if SIMULATED else str(cupy.cuda.runtime.deviceGetPCIBusId(device))


def free_memory() -> tuple[int, int]:
    """(free, total) bytes of the current device."""
    if SIMULATED:
        return 1 << 30, 1 << 30
    free, total = cupy.cuda.runtime.memGetInfo()
    return int(free), int(total)


def multiprocessors() -> int:
    if SIMULATED:
        return 1
    return _multiprocessors(current())


@functools.cache
def _multiprocessors(device: int) -> int:
    return int(cupy.cuda.runtime.deviceGetAttribute(16, device))


def device_of(array: Any) -> int:
    """The device that an array lies on."""
    return 0 if SIMULATED else int(array.device.id)


def current() -> int:
    """The device this thread uses."""
    return 0 if SIMULATED else int(cupy.cuda.runtime.getDevice())


def use(device: int) -> None:
    """Let this thread use this device from now on."""
    if not SIMULATED:
        cupy.cuda.Device(device).use()
        cuda.select_device(device)


def versions() -> str:
    """Of CUDA, as the driver and the libraries have it, and of the packages."""
    if SIMULATED:
        return "simulated by Numba"
    known = (cupy.cuda.runtime.driverGetVersion(), cupy.cuda.runtime.runtimeGetVersion())
    driver, runtime = (f"{version // 1000}.{version % 1000 // 10}" for version in known)
    return f"CUDA {runtime} (driver up to {driver}), cupy {cupy.__version__}, numba-cuda {version_of('numba-cuda')}"


@contextlib.contextmanager
def using(device: int) -> Iterator[None]:
    """Let everything inside happen on this device."""
    if SIMULATED:
        yield
        return
    before = current()
    with cupy.cuda.Device(device):
        cuda.select_device(device)
        try:
            yield
        finally:
            if before != device:
                cuda.select_device(before)


# ---- memory. Plain allocations, no pool: what is given back is free at once, and a budget can be checked.


def empty(shape: Any, dtype: Any) -> Any:
    """An array on the device, of whatever was there before."""
    kind = np.dtype(dtype)
    size = int(np.prod(shape)) * kind.itemsize
    if SIMULATED:
        # Large ones begin on page boundaries, as a device's do.
        return np.ndarray(shape, kind, mmap.mmap(-1, size)) if size >= mmap.PAGESIZE else np.empty(shape, kind)
    memory = cupy.cuda.Memory(max(size, 1))
    return cupy.ndarray(shape, kind, cupy.cuda.MemoryPointer(memory, 0))


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


def reads_host() -> bool:
    """Whether kernels can read pinned host memory, at the address that it has on the host."""
    return SIMULATED or _reads_host(current())


@functools.cache
def _reads_host(device: int) -> bool:
    return bool(cupy.cuda.runtime.deviceGetAttribute(91, device))  # CanUseHostPointerForRegisteredMem


def pin(array: np.ndarray) -> bool:
    """Let the device copy from this memory, which starts and ends on page boundaries, at full speed. False where the
    system refuses: copies from it are right as well, but slow."""
    if SIMULATED or not array.nbytes:
        return False
    try:
        cupy.cuda.runtime.hostRegister(array.ctypes.data, array.nbytes, 1 | 2)  # for all devices, and their kernels
    except cupy.cuda.runtime.CUDARuntimeError:
        return False
    return True


def pinned(nbytes: int) -> np.ndarray | None:
    """Pinned bytes of any content, given back with the last view of them to a pool that keeps them for the next: to
    have the driver pin memory takes milliseconds. None where the system refuses, or there is no driver."""
    if SIMULATED:
        return None
    # The pool gives a block only to who asks for just its size.
    size = 1 << max(12, (nbytes - 1).bit_length())
    try:
        memory = cupy.cuda.alloc_pinned_memory(size)
    except cupy.cuda.runtime.CUDARuntimeError:
        return None
    return np.frombuffer(memory, np.uint8, nbytes)


def unpin(array: np.ndarray) -> None:
    if not SIMULATED and array.nbytes:
        cupy.cuda.runtime.hostUnregister(array.ctypes.data)


# ---- sums and orders. CuPy takes as much memory again while it works, which the caller sets aside.


def running_sum(array: Any) -> None:
    """Let each number be the sum of those up to it."""
    if SIMULATED:
        np.cumsum(array, out=array)
        return
    array[...] = cupy.cumsum(array, dtype=array.dtype)
    _return_scratch()


def scan(array: Any, out: Any, stream: Stream) -> None:
    """Begin to sum numbers up into another array of theirs, on a stream; it holds up no other."""
    if stream.raw is None:
        np.cumsum(array, out=out)
        return
    with stream.raw:
        cupy.cumsum(array, dtype=array.dtype, out=out)


def sort(array: Any) -> None:
    """Sort numbers where they lie."""
    array.sort()
    if not SIMULATED:
        _return_scratch()


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


# ---- functions of users that make arrays of CuPy's


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


def is_there(array: Any) -> bool:
    """Whether an array lies on the device; in the simulator all do."""
    return isinstance(array, np.ndarray if SIMULATED else cupy.ndarray)


def contiguous(array: Any) -> Any:
    """It without gaps, where it lies, if it is an array."""
    if not is_there(array):
        return array
    return np.ascontiguousarray(array) if SIMULATED else cupy.ascontiguousarray(array)


def _return_scratch() -> None:
    cupy.cuda.runtime.deviceSynchronize()
    cupy.get_default_memory_pool().free_all_blocks()


# ---- streams and events


class Stream:
    """Copies and kernels in order, beside those of other streams. `Stream(null=True)`: what is put there waits for all
    that was put into other streams before, and they for it; CuPy's own operations are there, too."""

    def __init__(self, *, null: bool = False) -> None:
        self.raw = None
        self.numba: Any = 0
        self.device = current()
        if not SIMULATED:
            self.raw = cupy.cuda.Stream.null if null else cupy.cuda.Stream()
            self.numba = cuda.external_stream(self.raw.ptr) if self.raw.ptr else cuda.default_stream()

    @property
    def handle(self) -> int:
        """What the driver knows it by."""
        return 0 if self.raw is None else int(self.raw.ptr)

    def copy(self, target: Any, source: np.ndarray) -> None:
        """Begin to copy pinned host memory into an array on the device."""
        if self.raw is None:
            target[...] = source
        elif source.nbytes:
            cupy.cuda.runtime.memcpyAsync(
                target.data.ptr, source.ctypes.data, source.nbytes, cupy.cuda.runtime.memcpyHostToDevice, self.raw.ptr
            )

    def fetch(self, target: np.ndarray, source: Any) -> None:
        """Begin to copy an array on the device into pinned host memory."""
        if self.raw is None:
            target[...] = source
        elif source.nbytes:
            cupy.cuda.runtime.memcpyAsync(
                target.ctypes.data, source.data.ptr, source.nbytes, cupy.cuda.runtime.memcpyDeviceToHost, self.raw.ptr
            )

    def move(self, target: Any, source: Any) -> None:
        """Begin to copy an array on a device into another of its size, there or on another device."""
        if self.raw is None:
            target[...] = source
        elif source.nbytes:
            target.data.copy_from_device_async(source.data, source.nbytes, self.raw)

    def record(self) -> Event:
        return Event(self)

    def wait(self, event: Event) -> None:
        """What comes later on this stream waits for the event."""
        if self.raw is not None and event.raw is not None:
            self.raw.wait_event(event.raw)

    def synchronize(self) -> None:
        if self.raw is not None:
            self.raw.synchronize()


class Event:
    """A point in a stream."""

    def __init__(self, stream: Stream, *, timed: bool = False) -> None:
        self.raw = None
        if stream.raw is not None:
            self.raw = cupy.cuda.Event(block=not timed, disable_timing=not timed)
            self.raw.record(stream.raw)

    @property
    def handle(self) -> int:
        return 0 if self.raw is None else int(self.raw.ptr)

    def synchronize(self) -> None:
        if self.raw is not None:
            self.raw.synchronize()

    def done(self) -> bool:
        return self.raw is None or bool(self.raw.done)

    def seconds_since(self, earlier: Event) -> float:
        """Between two timed events."""
        if self.raw is None or earlier.raw is None:
            return 0.0
        return float(cupy.cuda.get_elapsed_time(earlier.raw, self.raw)) / 1000


def synchronize() -> None:
    """Wait for everything on the device; errors of kernels come up here."""
    if not SIMULATED:
        cupy.cuda.runtime.deviceSynchronize()


# ---- kernels


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


# ---- functions that kernels have something else for: see `penstock.engine.gpu.atomics`


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
        self.made = made
        self._known: dict[tuple[Any, ...], tuple[Any, np.ndarray, int]] = {}

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
            self.made[blocks, threads, stream.numba](*args)
            self._known[tuple(key)] = self._learn(args, len(values))
            return
        handle, slots, pointers = found
        slots[:] = values
        (error,) = _driver().cuLaunchKernel(
            handle, blocks, 1, 1, threads, 1, 1, 0, stream.raw.ptr if stream.raw is not None else 0, pointers, 0
        )
        if error != 0:
            raise RuntimeError(f"the GPU refused a kernel: {error}")

    def _learn(self, args: tuple[Any, ...], count: int) -> tuple[Any, np.ndarray, int]:
        kernel = self.made.overloads[tuple(self.made.typeof_pyval(arg) for arg in args)]
        handle = _driver().CUfunction(int(kernel._codelibrary.get_cufunc().handle))
        slots = np.zeros(count, np.uint64)
        pointers = slots.ctypes.data + np.arange(count, dtype=np.uint64) * np.uint64(8)
        self._kept = [*getattr(self, "_kept", ()), pointers]
        return handle, slots, int(pointers.ctypes.data)


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


__all__ = [
    "DRIVER",
    "SIMULATED",
    "STAGED",
    "WARP",
    "Event",
    "Launcher",
    "Stream",
    "address",
    "bus",
    "compiled_as",
    "contiguous",
    "count",
    "cuda",
    "cupy",
    "current",
    "device_of",
    "download",
    "empty",
    "errors",
    "fill",
    "free_memory",
    "inside",
    "is_there",
    "limited_pool",
    "multiprocessors",
    "name",
    "pin",
    "pinned",
    "pooled",
    "reads_host",
    "running_sum",
    "scan",
    "sort",
    "sort_order",
    "sort_scratch",
    "stretch",
    "synchronize",
    "template_kernel",
    "unpin",
    "upload",
    "use",
    "using",
    "versions",
    "view",
    "why_not",
    "zeros",
]
