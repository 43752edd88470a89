"""Template of the common form for the GPU; see `penstock.engine.kernels.common` for the functions, and `pair` here for
lists that are held and lists that pass."""

from __future__ import annotations

import numpy as np

from penstock.engine.gpu.kernels.lists import ONE, owner
from penstock.engine.gpu.kernels.pair import lower_bound
from penstock.memory.gpu import WARP, cuda


def edges(c):
    """The edges u, v of the u whose lists pass as `mine`, and of the v from `lo` to before `hi`, whose lists are in
    `theirs` and no longer. A thread each finds out whether an edge matters; those that do are queued, and have a warp
    each, which looks the shorter list up in the longer, until enough were found or cannot be any more; then a thread
    each tells those that have enough."""
    least, edge, whole, unpack, block = c.least, c.edge, c.whole, c.unpack, c.block
    warps = c.block // WARP

    def edges(first, last, entries, starts, ends, mine, my_base, theirs, base, lo, hi, state, params, scalars):
        near = cuda.shared.array(block, np.uint32)
        far = cuda.shared.array(block, np.uint32)
        wanted = cuda.shared.array(block, np.uint32)
        spare = cuda.shared.array(block, np.uint32)
        common = cuda.shared.array(block, np.uint32)
        missing = cuda.shared.array(block, np.uint32)
        queued = cuda.shared.array(1, np.uint32)
        tid = np.uint32(cuda.threadIdx.x)
        lane, warp = np.uint32(tid & np.uint32(WARP - 1)), np.uint32(tid // np.uint32(WARP))
        s, p = whole(state), unpack(params, scalars)
        common[tid], missing[tid] = np.uint32(0), np.uint32(0)
        if tid == np.uint32(0):
            queued[0] = np.uint32(0)
        cuda.syncthreads()
        a = np.uint64(cuda.blockIdx.x) * np.uint64(block) + np.uint64(tid)
        if a < entries:
            v = mine[a]
            if lo <= v < hi:
                u = owner(starts, first, last, a + my_base)
                longer, shorter = ends[u] - starts[u], ends[v] - starts[v]
                if shorter < longer or (shorter == longer and u < v):
                    needed = np.uint64(least(u, v, s, p))
                    if needed <= shorter:
                        k = cuda.atomic.add(queued, 0, np.uint32(1))
                        near[k], far[k], wanted[k] = u, v, np.uint32(needed)
                        spare[k] = np.uint32(shorter - needed)
        cuda.syncthreads()
        many = queued[0]
        k = warp
        while k < many:
            u, v = near[k], far[k]
            at, end = starts[u] - my_base, ends[u] - my_base
            b, stop = starts[v] - base + np.uint64(lane), ends[v] - base
            while b < stop and common[k] < wanted[k] and missing[k] <= spare[k]:
                w = theirs[b]
                at = lower_bound(mine, at, end, w)
                if at < end and mine[at] == w:
                    cuda.atomic.add(common, k, np.uint32(1))
                    at += ONE
                else:
                    cuda.atomic.add(missing, k, np.uint32(1))
                b += np.uint64(WARP)
            k = np.uint32(k + np.uint32(warps))
        cuda.syncthreads()
        if tid < many and common[tid] >= wanted[tid]:
            edge(near[tid], far[tid], s, p)

    return edges
