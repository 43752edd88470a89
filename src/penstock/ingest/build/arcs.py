"""Kernels on edges: keys to sort by, duplicates merged, degrees counted, arcs made."""

from __future__ import annotations

import numpy as np

from penstock.memory.device import atomic_add, kernel, parallel_kernel, prange

FIRST, SUM, MIN, MAX = 0, 1, 2, 3
RULES = {"first": FIRST, "sum": SUM, "min": MIN, "max": MAX}


@parallel_kernel()
def mark_loops(source, target, seen):
    """A vertex exists even if its only edges are loops that are dropped."""
    for i in prange(source.size):
        k = np.uint64(i)
        if source[k] == target[k]:
            seen[source[k]] = 1


@kernel()
def _count_serial(source, target, out_degree, in_degree, symmetric):
    one = out_degree.dtype.type(1)
    for i in range(np.uint64(source.size)):
        u, v = source[i], target[i]
        out_degree[u] += one
        if not symmetric:
            in_degree[v] += one
        elif u != v:
            out_degree[v] += one


@parallel_kernel()
def _count_parallel(source, target, out_degree, in_degree, symmetric):
    one = out_degree.dtype.type(1)
    for i in prange(source.size):
        k = np.uint64(i)
        u, v = source[k], target[k]
        atomic_add(out_degree, u, one)
        if not symmetric:
            atomic_add(in_degree, v, one)
        elif u != v:
            atomic_add(out_degree, v, one)


def count_degrees(
    source: np.ndarray,
    target: np.ndarray,
    out_degree: np.ndarray,
    in_degree: np.ndarray,
    symmetric: bool,
    threads: int,
) -> None:
    """Add these edges to the degrees; in a symmetric graph `out_degree` takes both ends, a loop once.

    Atomic additions cost so much that one thread without them (3.5 ns an edge) beats two with them (4.7).
    """
    count = _count_serial if threads < 4 else _count_parallel
    count(source, target, out_degree, in_degree, symmetric)


@parallel_kernel()
def edge_keys(source, target, bits, symmetric, drop_loops, keys, kept, threads):
    """Keys that sort edges: `u << bits | v`, smaller end first in a symmetric graph. Returns how many are kept."""
    n, shift, t_count = np.uint64(source.size), np.uint64(bits), np.uint64(threads)
    starts = np.zeros(threads + 1, np.uint64)
    for t in prange(threads):
        loops = np.uint64(0)
        if drop_loops:
            for i in range(n * np.uint64(t) // t_count, n * np.uint64(t + 1) // t_count):
                loops += np.uint64(source[i] == target[i])
        starts[t + 1] = n * np.uint64(t + 1) // t_count - n * np.uint64(t) // t_count - loops
    for t in range(threads):
        starts[t + 1] += starts[t]
    for t in prange(threads):
        at = starts[t]
        for i in range(n * np.uint64(t) // t_count, n * np.uint64(t + 1) // t_count):
            u, v = np.uint64(source[i]), np.uint64(target[i])
            if u == v and drop_loops:
                continue
            if symmetric and v < u:
                u, v = v, u
            keys[at] = u << shift | v
            if kept.size > 0:
                kept[at] = np.uint32(i)
            at += np.uint64(1)
    return starts[threads]


@kernel()
def merge_column(keys, values, rule, low, high):
    """Combine the values of equal keys, in place; the k-th group's value moves to place k.

    Says whether a sum left `low` to `high`, the range of the type.
    """
    over = False
    if keys.size == 0:
        return over
    at = np.uint64(0)
    for i in range(np.uint64(1), np.uint64(keys.size)):
        if keys[i] != keys[i - np.uint64(1)]:
            at += np.uint64(1)
            values[at] = values[i]
        elif rule == SUM:
            # Asked before adding: the compiler takes it that signed sums do not overflow.
            over |= values[at] > high - values[i] if values[i] > 0 else values[at] < low - values[i]
            values[at] += values[i]
        elif rule == MIN:
            values[at] = min(values[at], values[i])
        elif rule == MAX:
            values[at] = max(values[at], values[i])
    return over


@kernel()
def unique_keys(keys):
    """Keep one of each run of equal keys, in place; returns how many are left."""
    if keys.size == 0:
        return 0
    at = np.uint64(0)
    for i in range(np.uint64(1), np.uint64(keys.size)):
        at += np.uint64(keys[i] != keys[at])
        keys[at] = keys[i]
    return np.int64(at) + 1


@parallel_kernel()
def split_keys(keys, bits, source, target):
    """The two ends that a key was made of."""
    shift = np.uint64(bits)
    mask = (np.uint64(1) << shift) - np.uint64(1)
    for i in prange(keys.size):
        k = np.uint64(i)
        source[k] = np.uint32(keys[k] >> shift)
        target[k] = np.uint32(keys[k] & mask)


@parallel_kernel()
def targets(keys, bits, out):
    """The lower end of each key: the neighbours, once arcs are sorted. Returns how many equal the one before."""
    mask = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    repeats = 0
    for i in prange(keys.size):
        k = np.uint64(i)
        out[k] = np.uint32(keys[k] & mask)
        if i > 0:
            repeats += int(keys[k] == keys[k - np.uint64(1)])
    return repeats


@parallel_kernel()
def arc_keys(source, target, number, bits, backward, symmetric, keys, edge, threads):
    """Keys of the arcs that edges make, renumbered: one, or one each way when symmetric, a loop one."""
    n, shift, t_count = np.uint64(source.size), np.uint64(bits), np.uint64(threads)
    starts = np.zeros(threads + 1, np.uint64)
    for t in prange(threads):
        count = np.uint64(0)
        for i in range(n * np.uint64(t) // t_count, n * np.uint64(t + 1) // t_count):
            count += np.uint64(1) + np.uint64(symmetric and source[i] != target[i])
        starts[t + 1] = count
    for t in range(threads):
        starts[t + 1] += starts[t]
    for t in prange(threads):
        at = starts[t]
        for i in range(n * np.uint64(t) // t_count, n * np.uint64(t + 1) // t_count):
            u, v = np.uint64(number[source[i]]), np.uint64(number[target[i]])
            if backward:
                u, v = v, u
            keys[at] = u << shift | v
            if edge.size > 0:
                edge[at] = np.uint32(i)
            at += np.uint64(1)
            if symmetric and u != v:
                keys[at] = v << shift | u
                if edge.size > 0:
                    edge[at] = np.uint32(i)
                at += np.uint64(1)
    return starts[threads]


@kernel()
def arc_splitters(degrees, capacity, bits):
    """Keys at vertex boundaries that cut arcs into buckets of at most `capacity`, unless one vertex has more."""
    cuts = np.zeros(65536, np.uint64)
    count = 0
    held = np.uint64(0)
    for v in range(np.uint64(degrees.size)):
        degree = np.uint64(degrees[v])
        if held > np.uint64(0) and held + degree > np.uint64(capacity) and count < cuts.size:
            cuts[count] = v << np.uint64(bits)
            count += 1
            held = np.uint64(0)
        held += degree
    return cuts[:count].copy()
