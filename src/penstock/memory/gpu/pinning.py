"""Memory of the host that a device copies from at full speed, or reads where it lies."""

from __future__ import annotations

import contextlib
import functools

import numpy as np

from penstock.memory.gpu.devices import current
from penstock.memory.gpu.door import SIMULATED, cupy


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


def pool_size(nbytes: int) -> int:
    """What `pinned` takes for so many bytes: its pool gives a block only to who asks for just its size."""
    return 1 << max(12, (nbytes - 1).bit_length())


def pinned(nbytes: int) -> np.ndarray | None:
    """Pinned bytes of any content, given back with the last view of them to a pool that keeps them for the next: to
    have the driver pin memory takes milliseconds. None where the system refuses, or there is no driver."""
    if SIMULATED:
        return None
    try:
        memory = cupy.cuda.alloc_pinned_memory(pool_size(nbytes))
    except cupy.cuda.runtime.CUDARuntimeError:
        return None
    return np.frombuffer(memory, np.uint8, nbytes)


def unpin(array: np.ndarray) -> None:
    """Also what `pin` was interrupted at: nobody knows whether the driver was done with it."""
    if not SIMULATED and array.nbytes:
        with contextlib.suppress(cupy.cuda.runtime.CUDARuntimeError):  # it was not pinned
            cupy.cuda.runtime.hostUnregister(array.ctypes.data)


__all__ = ["pin", "pinned", "pool_size", "reads_host", "unpin"]
