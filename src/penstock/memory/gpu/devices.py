"""Which devices there are, and which of them a thread uses."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
from collections.abc import Iterator
from importlib.metadata import version as version_of
from typing import Any

from penstock.memory.gpu.door import SIMULATED, cuda, cupy
from penstock.observe.gpus import missing

_SHARE = 9, 10
"""How much of the memory that is free at the start of a run it uses: CUDA loads kernels there, too."""


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


def unusable(device: int = 0) -> str | None:
    """Why this one cannot be used although there may be some, in one sentence; None if it can. It is tried: another
    process may have it to itself."""
    if reason := why_not():
        return reason
    if device >= count():
        return f"there are only {count()} GPUs, numbered from 0"
    if SIMULATED:
        return None
    try:
        with cupy.cuda.Device(device):
            cupy.cuda.runtime.memGetInfo()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"GPU {device} cannot be used: {error}"
    return None


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


def usable_memory(limit: int | None = None) -> int:
    """Bytes of the current device that a run may take, under a limit."""
    found = free_memory()[0] * _SHARE[0] // _SHARE[1]
    return found if limit is None else min(limit, found)


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


def synchronize() -> None:
    """Wait for everything on the device; errors of kernels come up here."""
    if not SIMULATED:
        cupy.cuda.runtime.deviceSynchronize()


__all__ = [
    "bus", "count", "current", "device_of", "free_memory", "multiprocessors", "name", "synchronize", "unusable",
    "usable_memory", "use", "using", "versions", "why_not",
]  # fmt: skip
