"""Splitting a chunk of keys into buckets, stably, by all threads: one step of the sample sort."""

from __future__ import annotations

import numpy as np

from penstock.memory.device import parallel_kernel, prange


@parallel_kernel()
def _route(keys, splitters, bucket, counts, threads):
    """The bucket of each key is the number of splitters at or below it."""
    n = np.uint64(keys.size)
    t_count = np.uint64(threads)
    size = np.uint64(splitters.size)
    for t in prange(threads):
        mine = counts[t]
        for i in range(n * np.uint64(t) // t_count, n * np.uint64(t + 1) // t_count):
            key = keys[i]
            low, length = np.uint64(0), size
            while length > np.uint64(0):
                half = length >> np.uint64(1)
                if splitters[low + half] <= key:
                    low += half + np.uint64(1)
                    length -= half + np.uint64(1)
                else:
                    length = half
            bucket[i] = np.uint16(low)
            mine[low] += np.uint64(1)


@parallel_kernel()
def _route_hashed(keys, shift, bucket, counts, threads):
    """The bucket of each key is the top of its product with 2^64 / golden ratio (Fibonacci hashing)."""
    n = np.uint64(keys.size)
    t_count = np.uint64(threads)
    for t in prange(threads):
        mine = counts[t]
        for i in range(n * np.uint64(t) // t_count, n * np.uint64(t + 1) // t_count):
            b = (keys[i] * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(shift)
            bucket[i] = np.uint16(b)
            mine[b] += np.uint64(1)


@parallel_kernel()
def _place(keys, values, bucket, starts, out, out_values, threads):
    n = np.uint64(keys.size)
    t_count = np.uint64(threads)
    for t in prange(threads):
        mine = starts[t]
        for i in range(n * np.uint64(t) // t_count, n * np.uint64(t + 1) // t_count):
            b = bucket[i]
            at = mine[b]
            mine[b] = at + np.uint64(1)
            out[at] = keys[i]
            if values is not None:
                out_values[at] = values[i]


@parallel_kernel()
def _positions(bucket, starts, position, threads):
    n = np.uint64(bucket.size)
    t_count = np.uint64(threads)
    for t in prange(threads):
        mine = starts[t]
        for i in range(n * np.uint64(t) // t_count, n * np.uint64(t + 1) // t_count):
            b = bucket[i]
            position[i] = np.uint32(mine[b])
            mine[b] += np.uint64(1)


@parallel_kernel()
def _scatter(values, position, out):
    for i in prange(values.size):
        out[position[np.uint64(i)]] = values[np.uint64(i)]


@parallel_kernel()
def gather(values, position, out):
    """`out[i] = values[position[i]]`."""
    for i in prange(position.size):
        out[np.uint64(i)] = values[position[np.uint64(i)]]


def partition(
    keys: np.ndarray,
    payload: list[np.ndarray],
    splitters: np.ndarray | int,
    out: np.ndarray,
    out_payload: list[np.ndarray],
    position: np.ndarray,
    threads: int,
) -> np.ndarray:
    """Write keys and payload grouped by bucket, in input order inside each; returns the bucket boundaries.

    Buckets are cut by splitters, or 2**b of them by a hash of the key if `splitters` is the number b.
    """
    buckets = 1 << splitters if isinstance(splitters, int) else len(splitters) + 1
    bucket = np.empty(len(keys), np.uint16)
    counts = np.zeros((threads, buckets + 8), np.uint64)
    if isinstance(splitters, int):
        _route_hashed(keys, 64 - splitters, bucket, counts, threads)
    else:
        _route(keys, splitters, bucket, counts, threads)
    flat = counts[:, :buckets].T.reshape(-1)
    ends = np.cumsum(flat)
    starts = np.zeros_like(counts)
    starts[:, :buckets] = (ends - flat).reshape(buckets, threads).T
    bounds = np.append(starts[0, :buckets], np.uint64(len(keys))).astype(np.int64)
    if len(payload) == 1 and payload[0].itemsize == 8:
        _place(keys, payload[0], bucket, starts, out, out_payload[0], threads)
    elif payload:
        _positions(bucket, starts, position, threads)
        _scatter(keys, position[: len(keys)], out)
        for values, target in zip(payload, out_payload, strict=True):
            _scatter(values, position[: len(keys)], target)
    else:
        _place(keys, None, bucket, starts, out, None, threads)
    return bounds


def choose_splitters(sample: np.ndarray, buckets: int) -> np.ndarray:
    """About `buckets - 1` splitters that cut the sample evenly; a key that fills a bucket gets one of its own."""
    sample = np.sort(sample)
    if not len(sample) or buckets < 2:
        return np.zeros(0, np.uint64)
    quantiles = sample[np.arange(1, buckets) * len(sample) // buckets]
    copies = np.searchsorted(sample, quantiles, "right") - np.searchsorted(sample, quantiles, "left")
    heavy = quantiles[(copies * buckets >= len(sample)) & (quantiles < np.iinfo(np.uint64).max)]
    return np.unique(np.concatenate([quantiles, heavy + np.uint64(1)]))
