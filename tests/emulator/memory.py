"""Memory of a device, and of the host for its copies.

That of a device begins and ends at pages that nobody may touch, as far as its size allows, and is of nonsense until it
is written.
"""

from __future__ import annotations

import bisect
import contextlib
import ctypes
import mmap
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from emulator.devices import DEVICES, TOTAL, CUDARuntimeError, Device, current
from emulator.scheduler import SCHEDULER

NONSENSE = 0xCB
PAGE = mmap.PAGESIZE

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_size_t]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_PRIVATE_ANONYMOUS = 0x22

USED = [0] * DEVICES
"""Bytes, by device."""
_taken: list[tuple[int, int, int]] = []
"""(first address, the one after the last, device) of all that is taken, in order."""


class OutOfMemoryError(MemoryError):
    pass


class Memory:
    def __init__(self, size: int) -> None:
        device = current()
        with SCHEDULER.lock:
            if USED[device] + size > TOTAL:
                SCHEDULER.finish_all(device)  # gives back what nobody has any more
                if USED[device] + size > TOTAL:
                    raise CUDARuntimeError(2, "out of memory")
            whole = -(-size // PAGE) * PAGE
            place = _libc.mmap(None, whole + 2 * PAGE, mmap.PROT_READ | mmap.PROT_WRITE, _PRIVATE_ANONYMOUS, -1, 0)
            assert place not in (None, ctypes.c_void_p(-1).value)
            USED[device] += size
            bisect.insort(_taken, (place, place + whole + 2 * PAGE, device))
        for edge in (place, place + PAGE + whole):
            _libc.mprotect(edge, PAGE, 0)
        # What begins on a page there does so on a GPU; small ones end at the edge instead, as far as numbers of 16
        # bytes may lie there.
        self.ptr = place + PAGE + (0 if size >= PAGE else (whole - size) & -16)
        ctypes.memset(place + PAGE, NONSENSE, whole)
        self.size, self.device = size, Device(device)
        weakref.finalize(self, _give_back, place, whole + 2 * PAGE, size, device).atexit = False


def _give_back(place: int, whole: int, size: int, device: int) -> None:
    def unmap() -> None:
        _libc.munmap(place, whole)
        _taken.remove((place, place + whole, device))
        USED[device] -= size

    SCHEDULER.free(device, unmap)


def device_at(address: int) -> int | None:
    """Whose memory this is an address of."""
    with SCHEDULER.lock:
        at = bisect.bisect(_taken, (address, 1 << 64, 0)) - 1
        return _taken[at][2] if at >= 0 and address < _taken[at][1] else None


class MemoryPointer:
    def __init__(self, mem: Any, offset: int) -> None:
        self.mem, self.ptr = mem, mem.ptr + offset
        self.device = mem.device

    def __add__(self, offset: int) -> MemoryPointer:
        return MemoryPointer(self.mem, self.ptr - self.mem.ptr + offset)

    def copy_from_device_async(self, source: MemoryPointer, nbytes: int, stream: Any) -> None:
        target, begin = self.ptr, source.ptr
        SCHEDULER.put(stream.queue, lambda: move(target, begin, nbytes))


def move(target: int, source: int, nbytes: int) -> None:
    ctypes.memmove(target, source, nbytes)


class MemoryPool:
    """Gives back what nobody has any more at once."""

    def __init__(self) -> None:
        self._limit: int | None = None
        self._given: weakref.WeakSet[Memory] = weakref.WeakSet()

    def set_limit(self, size: int) -> None:
        self._limit = size

    def malloc(self, nbytes: int) -> MemoryPointer:
        if self._limit is not None and self.total_bytes() + nbytes > self._limit:
            raise OutOfMemoryError(f"a pool of {self._limit} bytes was asked for {nbytes}")
        memory = Memory(max(1, nbytes))
        self._given.add(memory)
        return MemoryPointer(memory, 0)

    def total_bytes(self) -> int:
        return sum(each.size for each in self._given)

    def free_all_blocks(self) -> None:
        pass


POOL = MemoryPool()


class _Chosen(threading.local):
    allocate: Callable[[int], MemoryPointer] = staticmethod(POOL.malloc)


_CHOSEN = _Chosen()


def allocate(nbytes: int) -> MemoryPointer:
    """As whoever makes arrays in this thread wants it."""
    return _CHOSEN.allocate(max(1, nbytes))


@contextlib.contextmanager
def using_allocator(chosen: Callable[[int], MemoryPointer]) -> Iterator[None]:
    before, _CHOSEN.allocate = _CHOSEN.allocate, chosen
    try:
        yield
    finally:
        _CHOSEN.allocate = before


# ---- of the host

_PINNED: dict[int, int] = {}
"""Bytes of pinned memory, by where they begin."""
_SPARE: dict[int, list[Any]] = {}


def is_pinned(place: int) -> bool:
    return any(begin <= place < begin + size for begin, size in list(_PINNED.items()))


def alloc_pinned_memory(size: int) -> Any:
    """Of a pool: another one gets it at once, whoever still copies from it."""
    spare = _SPARE.setdefault(size, [])
    block = spare.pop() if spare else mmap.mmap(-1, size)
    found = (ctypes.c_ubyte * size).from_buffer(block)
    _PINNED[ctypes.addressof(found)] = size
    ctypes.memset(found, NONSENSE, size)
    weakref.finalize(found, spare.append, block).atexit = False
    return found


def host_register(place: int, nbytes: int, flags: int) -> None:
    if place % PAGE or is_pinned(place):
        raise CUDARuntimeError(712, "already registered, or not on a page")
    _PINNED[place] = nbytes


def host_unregister(place: int) -> None:
    if place not in _PINNED:
        raise CUDARuntimeError(713, "not registered")
    SCHEDULER.finish_all()
    del _PINNED[place]


__all__ = [
    "NONSENSE", "POOL", "USED", "Memory", "MemoryPointer", "MemoryPool", "OutOfMemoryError", "alloc_pinned_memory",
    "allocate", "device_at", "host_register", "host_unregister", "is_pinned", "move", "using_allocator",
]  # fmt: skip
