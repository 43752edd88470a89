"""What Penstock uses of CuPy, under its names."""

from __future__ import annotations

import sys
from types import SimpleNamespace

from emulator import memory, streams
from emulator.arrays import argsort, ascontiguousarray, cumsum, ndarray
from emulator.devices import DEVICES, TOTAL, CUDARuntimeError, Device, current
from emulator.scheduler import SCHEDULER

__version__ = "emulated"


def get_default_memory_pool() -> memory.MemoryPool:
    return memory.POOL


class _Runtime:
    CUDARuntimeError = CUDARuntimeError
    errorMemoryAllocation = 2
    memcpyHostToDevice, memcpyDeviceToHost = 1, 2
    hostRegister, hostUnregister = staticmethod(memory.host_register), staticmethod(memory.host_unregister)
    getDevice = staticmethod(current)

    def getDeviceCount(self) -> int:
        return DEVICES

    def getDeviceProperties(self, device: int) -> dict[str, bytes]:
        return {"name": b"emulated"}

    def deviceGetPCIBusId(self, device: int) -> str:
        return f"0000:{device:02d}:00.0"

    def deviceGetAttribute(self, attribute: int, device: int) -> int:
        multiprocessors, reads_registered_memory = 16, 91
        return {multiprocessors: 4, reads_registered_memory: 1}[attribute]

    def memGetInfo(self) -> tuple[int, int]:
        return TOTAL - memory.USED[current()], TOTAL

    def driverGetVersion(self) -> int:
        return 13000

    runtimeGetVersion = driverGetVersion

    def deviceSynchronize(self) -> None:
        SCHEDULER.finish_all(current())

    def memcpyAsync(self, target: int, source: int, nbytes: int, kind: int, stream: int) -> None:
        streams.copy(target, source, nbytes, stream, to_host=kind == self.memcpyDeviceToHost)


runtime = _Runtime()

cuda = SimpleNamespace(
    Device=Device,
    Event=streams.Event,
    Memory=memory.Memory,
    MemoryPointer=memory.MemoryPointer,
    MemoryPool=memory.MemoryPool,
    Stream=streams.Stream,
    alloc_pinned_memory=memory.alloc_pinned_memory,
    get_elapsed_time=streams.get_elapsed_time,
    memory=SimpleNamespace(OutOfMemoryError=memory.OutOfMemoryError),
    runtime=runtime,
    thrust=SimpleNamespace(argsort=argsort),
    using_allocator=memory.using_allocator,
)


def install() -> None:
    """Let `import cupy` find this."""
    sys.modules["cupy"] = sys.modules[__name__]


__all__ = ["ascontiguousarray", "cuda", "cumsum", "get_default_memory_pool", "install", "ndarray", "runtime"]
