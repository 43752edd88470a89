"""Radix sort in core: least significant digit first, stable, all threads, only the digits in which keys differ."""

from __future__ import annotations

import numpy as np

from penstock.memory.device import parallel_kernel, prange

DIGIT = 10
"""Most bits a pass. 16 M keys, 2 threads: 8 bits 760, 10 bits 690, 11 bits 350 million keys/s a pass."""


@parallel_kernel()
def _survey(keys, threads):
    """The bits in which any two keys differ, and how many neighbours are out of order."""
    n = np.uint64(keys.size)
    t_count = np.uint64(threads)
    bits = np.zeros(threads * 8, np.uint64)
    falls = np.zeros(threads * 8, np.uint64)
    for t in prange(threads):
        seen, fell = np.uint64(0), np.uint64(0)
        first = keys[0]
        start = n * np.uint64(t) // t_count
        previous = keys[start - np.uint64(1)] if start > np.uint64(0) else first
        for i in range(start, n * np.uint64(t + 1) // t_count):
            key = keys[i]
            seen |= key ^ first
            fell += np.uint64(previous > key)
            previous = key
        bits[t * 8], falls[t * 8] = seen, fell
    varying = np.uint64(0)
    for t in range(threads):
        varying |= bits[t * 8]
    return varying, falls.sum()


@parallel_kernel()
def _starts(keys, shift, mask, threads):
    """Where each thread's first key of each digit goes: digits in order, and inside a digit threads in order."""
    n, t_count = np.uint64(keys.size), np.uint64(threads)
    buckets = mask + np.uint64(1)
    starts = np.zeros((threads, np.int64(buckets) + 16), np.uint64)
    for t in prange(threads):
        mine = starts[t]
        for i in range(n * np.uint64(t) // t_count, n * np.uint64(t + 1) // t_count):
            mine[(keys[i] >> shift) & mask] += np.uint64(1)
    total = np.uint64(0)
    for b in range(buckets):
        for t in range(threads):
            count = starts[t, b]
            starts[t, b] = total
            total += count
    return starts


@parallel_kernel()
def _place(keys, out, shift, mask, starts):
    n, t_count = np.uint64(keys.size), np.uint64(starts.shape[0])
    for t in prange(starts.shape[0]):
        mine = starts[t]
        for i in range(n * np.uint64(t) // t_count, n * np.uint64(t + 1) // t_count):
            key = keys[i]
            b = (key >> shift) & mask
            at = mine[b]
            mine[b] = at + np.uint64(1)
            out[at] = key


@parallel_kernel()
def _place_pairs(keys, values, out, out_values, shift, mask, starts):
    n, t_count = np.uint64(keys.size), np.uint64(starts.shape[0])
    for t in prange(starts.shape[0]):
        mine = starts[t]
        for i in range(n * np.uint64(t) // t_count, n * np.uint64(t + 1) // t_count):
            key = keys[i]
            b = (key >> shift) & mask
            at = mine[b]
            mine[b] = at + np.uint64(1)
            out[at] = key
            out_values[at] = values[i]


def _digits(varying: int) -> list[tuple[int, int]]:
    """(shift, bits) of the passes that cover every varying bit, lowest first, of about equal width."""
    digits: list[tuple[int, int]] = []
    while varying:
        low = (varying & -varying).bit_length() - 1
        # A stretch ends where a gap wider than a digit begins.
        width, rest = 0, varying >> low
        while rest >> width and (rest >> width) & ((1 << DIGIT) - 1):
            width += 1
        passes = -(-width // DIGIT)
        for k in range(passes):
            begin, end = width * k // passes, width * (k + 1) // passes
            digits.append((low + begin, end - begin))
        varying = rest >> width << (width + low)
    return digits


def sort_keys(keys: np.ndarray, scratch: np.ndarray, threads: int) -> tuple[np.ndarray, np.ndarray]:
    """Sort uint64 keys; returns (sorted, the other buffer). Both buffers are overwritten."""
    if len(keys) < 2:
        return keys, scratch
    varying, falls = _survey(keys, threads)
    if falls:
        for shift, bits in _digits(int(varying)):
            digit = np.uint64(shift), np.uint64((1 << bits) - 1)
            _place(keys, scratch, *digit, _starts(keys, *digit, threads))
            keys, scratch = scratch, keys
    return keys, scratch


def sort_pairs(
    keys: np.ndarray, values: np.ndarray, scratch: np.ndarray, scratch_values: np.ndarray, threads: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Sort uint64 keys, stably, and carry a value with each; returns (keys, values, the other two buffers)."""
    if len(keys) >= 2:
        varying, falls = _survey(keys, threads)
        if falls:
            for shift, bits in _digits(int(varying)):
                digit = np.uint64(shift), np.uint64((1 << bits) - 1)
                _place_pairs(keys, values, scratch, scratch_values, *digit, _starts(keys, *digit, threads))
                keys, scratch, values, scratch_values = scratch, keys, scratch_values, values
    return keys, values, scratch, scratch_values
