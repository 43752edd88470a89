"""The bounds: copies from pinned memory, and bare kernels that sum random values over flat adjacency."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from penstock.memory import gpu
from penstock.memory.gpu import cuda

BLOCK = 256 if not gpu.SIMULATED else 8


def gather_thread(offsets, neighbours, message, out):
    """A thread per vertex."""
    v = cuda.grid(1)
    if v < out.size:
        total = np.float32(0)
        for a in range(offsets[v], offsets[v + 1]):
            total += message[neighbours[a]]
        out[v] = total


def gather_eight(offsets, neighbours, message, out):
    """Eight threads per vertex."""
    place = cuda.grid(1)
    v, lane = place >> 3, place & 7
    total = np.float32(0)
    if v < out.size:
        a, end = offsets[v] + np.uint64(lane), offsets[v + 1]
        while a < end:
            total += message[neighbours[a]]
            a += np.uint64(8)
    for step in (4, 2, 1):
        total += cuda.shfl_down_sync(0xFFFFFFFF, total, step)
    if v < out.size and lane == 0:
        out[v] = total


def gather_warp(offsets, neighbours, message, out):
    """A warp per vertex."""
    place = cuda.grid(1)
    v, lane = place >> 5, place & 31
    total = np.float32(0)
    if v < out.size:
        a, end = offsets[v] + np.uint64(lane), offsets[v + 1]
        while a < end:
            total += message[neighbours[a]]
            a += np.uint64(32)
    for step in (16, 8, 4, 2, 1):
        total += cuda.shfl_down_sync(0xFFFFFFFF, total, step)
    if v < out.size and lane == 0:
        out[v] = total


GATHERS = {1: gather_thread, 8: gather_eight, 32: gather_warp}
"""By threads per vertex. The simulator has no warps."""


def seconds_of(work: Callable[[], Any], repeats: int = 5) -> float:
    """The least time of a few, after one to warm up."""
    found = []
    for k in range(repeats + 1):
        gpu.synchronize()
        began = time.perf_counter()
        work()
        gpu.synchronize()
        if k:
            found.append(time.perf_counter() - began)
    return min(found)


def gathers(offsets: np.ndarray, neighbours: np.ndarray) -> dict[str, Any]:
    """Seconds of each of the bare kernels over all arcs, and the rate of the best."""
    n = len(offsets) - 1
    held = [gpu.upload(offsets), gpu.upload(neighbours), gpu.upload(np.ones(n, np.float32)), gpu.zeros(n, np.float32)]
    args = [gpu.view(each) for each in held]
    found: dict[str, float] = {}
    for threads, function in GATHERS.items():
        if gpu.SIMULATED and threads > 1:
            continue
        made = cuda.jit(function)
        blocks = -(-n * threads // BLOCK)
        found[str(threads)] = seconds_of(lambda made=made, blocks=blocks: made[blocks, BLOCK](*args))  # type: ignore[misc]
        degrees = np.diff(offsets)
        # Sums of ones are exact up to 2**24.
        assert np.array_equal(gpu.download(held[-1]), degrees.astype(np.float32)), function.__name__
    best = min(found.values())
    return {"seconds_by_threads_per_vertex": found, "seconds": best, "arcs_per_second": len(neighbours) / best}


def pinned_rate(nbytes: int, rounds: int = 4) -> float:
    """Bytes per second from pinned memory to the device: copies of this size, eight in a row, the best of some."""
    from penstock.memory.buffers import allocate

    source, target, stream = allocate(nbytes), gpu.empty(nbytes, np.uint8), gpu.Stream()
    source[:] = 1
    pinned = gpu.pin(source)
    if not pinned and not gpu.SIMULATED:
        raise RuntimeError("the system refuses to pin memory")
    rates = []
    try:
        for _ in range(rounds):
            gpu.synchronize()
            began = time.perf_counter()
            for _ in range(8):
                stream.copy(target, source)
            stream.synchronize()
            rates.append(8 * nbytes / (time.perf_counter() - began))
    finally:
        if pinned:
            gpu.unpin(source)
    return max(rates)


def cusparse(offsets: np.ndarray, neighbours: np.ndarray) -> dict[str, Any] | None:
    """cuSPARSE's product of the adjacency, in float32, with a vector. None in the simulator."""
    if gpu.SIMULATED:
        return None
    import cupy
    from cupyx.cusparse import spmv  # `matrix @ vector` may be CUB's
    from cupyx.scipy import sparse

    n, arcs = len(offsets) - 1, len(neighbours)
    index = np.int32 if arcs < 1 << 31 else np.int64
    matrix = sparse.csr_matrix(
        (cupy.ones(arcs, cupy.float32), cupy.asarray(neighbours.astype(index)), cupy.asarray(offsets.astype(index))),
        shape=(n, n),
    )
    vector = cupy.ones(n, cupy.float32)
    seconds = seconds_of(lambda: spmv(matrix, vector))
    same = cupy.allclose(spmv(matrix, vector), cupy.asarray(np.diff(offsets).astype(np.float32)))
    return {"seconds": seconds, "arcs_per_second": arcs / seconds, "right": bool(same)}
