"""Measure the rates of a GPU: copies to it, copies inside it, gathering from its memory, starting a kernel."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

import numpy as np

from penstock.engine.rates import GPU_SIZES, GpuRates
from penstock.memory import gpu
from penstock.memory.buffers import allocate
from penstock.memory.gpu import cuda
from penstock.memory.pinned import pinning

_BYTES = 256 << 20
"""Copied at a time."""
_ARCS = 1 << 26
_BLOCK, _BLOCKS = 256, 32
"""Threads of a block, and blocks for each multiprocessor: more of them than run at once, as in a run."""
_ROUNDS, _LAUNCHES = 5, 200


@cuda.jit(cache=True)
def _gather(neighbours, mask, vector, sums):
    """Each thread adds up what it fetches; the arcs of neighbouring threads lie side by side."""
    thread = cuda.grid(1)
    total = np.float32(0)
    for a in range(thread, neighbours.size, cuda.gridsize(1)):
        total += vector[neighbours[a] & mask]
    sums[thread] = total


@cuda.jit(cache=True)
def _nothing(sums):
    pass


def measure(device: int = 0) -> GpuRates:
    """Rates of this device; takes some seconds. What is on it at the time makes them worse."""
    with gpu.using(device):
        stream = gpu.Stream()
        room, total = gpu.free_memory()
        size = min(_BYTES, room // 8)
        copy, memory = _copies(stream, size)
        arcs = min(_ARCS, room // 16)
        # The largest vector leaves room for the arcs, and for what others have.
        sizes = tuple(each for each in GPU_SIZES if each <= room // 2) or GPU_SIZES[:1]
        return GpuRates(
            name=gpu.name(device),
            total=total,
            copy=copy,
            memory=memory,
            launch=_launching(stream),
            sizes=sizes,
            gather=_gathering(stream, arcs, sizes),
            date=datetime.now().astimezone().isoformat(timespec="seconds"),
        )


def _copies(stream: gpu.Stream, size: int) -> tuple[float, float]:
    """Bytes per second into the device, and within it."""
    host = allocate(size)
    host[:] = 1  # pages that were never touched have no memory to pin
    there, other = gpu.empty(size, np.uint8), gpu.empty(size, np.uint8)
    with pinning(host):
        try:
            into = size / _timed(stream, lambda: stream.copy(there, host))
        finally:
            stream.synchronize()
    # Each byte is read and written.
    return into, 2 * size / _timed(stream, lambda: stream.move(other, there))


def _gathering(stream: gpu.Stream, arcs: int, sizes: tuple[int, ...]) -> tuple[float, ...]:
    """Seconds per arc for vectors of these sizes, which are powers of 2."""
    drawn = np.random.default_rng(1).integers(0, 1 << 32, arcs, dtype=np.uint32)
    neighbours = gpu.view(gpu.upload(drawn))
    vector = gpu.zeros(max(sizes) // 4, np.float32)
    blocks = _BLOCKS * gpu.multiprocessors()
    sums = gpu.view(gpu.empty(blocks * _BLOCK, np.float32))
    start = _gather[blocks, _BLOCK, stream.numba]

    def seconds(size: int) -> float:
        part = gpu.view(vector[: size // 4])
        mask = np.uint32(size // 4 - 1)
        return _timed(stream, lambda: start(neighbours, mask, part, sums)) / arcs

    return tuple(seconds(size) for size in sizes)


def _launching(stream: gpu.Stream) -> float:
    """Seconds of the host to start a kernel whose arguments are ready."""
    sums = gpu.view(gpu.empty(1, np.float32))
    start = _nothing[1, 1, stream.numba]

    def once() -> None:
        for _ in range(_LAUNCHES):
            start(sums)

    return _timed(stream, once) / _LAUNCHES


def _timed(stream: gpu.Stream, once: Callable[[], Any]) -> float:
    """Seconds of one call, on the host's clock: the least of some, after a first that warms up."""
    once()
    stream.synchronize()
    found = []
    for _ in range(_ROUNDS):
        began = time.perf_counter()
        once()
        stream.synchronize()
        found.append(time.perf_counter() - began)
    return min(found)


__all__ = ["measure"]
