"""Radix sort in core, stable, by all threads: the top bits cut keys into buckets that fit in a core's cache.

Memory is crossed twice, once to cut and once to sort the buckets, however wide the keys are. Inside a bucket, digits
go least significant first, and only as many of the upper bits as tell most keys apart: what is left out of order is
put right by insertion.
"""

from __future__ import annotations

import numpy as np

from penstock.memory.device import atomic_add, kernel, parallel_kernel, prange

CUT = 11
"""Most bits that cut; more would leave the caches that hold where each bucket is written."""
FITS = 1 << 15
"""Pairs that a core's cache holds twice."""
DIGIT = 11
"""Most bits of a digit inside a bucket."""
_FEW = 24
_SPARE = 6
"""Bits beyond log2(keys) that are sorted by digits: of random keys one in 2**6 is left to insertion."""


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
    """Where each thread's first key of each bucket goes: buckets in order, and inside a bucket threads in order."""
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
def _cut(keys, values, out, out_values, shift, mask, starts):
    n, t_count = np.uint64(keys.size), np.uint64(starts.shape[0])
    for t in prange(starts.shape[0]):
        mine = starts[t]
        for i in range(n * np.uint64(t) // t_count, n * np.uint64(t + 1) // t_count):
            key = keys[i]
            b = (key >> shift) & mask
            at = mine[b]
            mine[b] = at + np.uint64(1)
            out[at] = key
            if values is not None:
                out_values[at] = values[i]


@kernel()
def _pass(keys, values, out, out_values, begin, end, shift, mask, starts):
    """One digit of one bucket; False if it is the same in all keys, and then nothing was done."""
    for b in range(mask + np.uint64(1)):
        starts[b] = np.uint64(0)
    for i in range(begin, end):
        starts[(keys[i] >> shift) & mask] += np.uint64(1)
    if starts[(keys[begin] >> shift) & mask] == end - begin:
        return False
    total = begin
    for b in range(mask + np.uint64(1)):
        count = starts[b]
        starts[b] = total
        total += count
    for i in range(begin, end):
        key = keys[i]
        b = (key >> shift) & mask
        at = starts[b]
        starts[b] = at + np.uint64(1)
        out[at] = key
        if values is not None:
            out_values[at] = values[i]
    return True


@kernel()
def _insert(keys, values, begin, end, most):
    """Insertion sort of what is nearly sorted; False after `most` steps, with the order of equal keys unharmed."""
    one = np.uint64(1)
    for i in range(begin + one, end):
        key = keys[i]
        if keys[i - one] <= key:
            continue
        at = np.uint64(i)
        if values is not None:
            value = values[i]
        while at > begin and keys[at - one] > key:
            keys[at] = keys[at - one]
            if values is not None:
                values[at] = values[at - one]
            at -= one
        keys[at] = key
        if values is not None:
            values[at] = value
        steps = i - at
        if steps > most:
            return False
        most -= steps
    return True


@kernel()
def _digits(keys, values, other, other_values, begin, end, low, width, starts):
    """Sort a bucket by `width` bits from `low`; the result is where it was."""
    passes = (width + np.uint64(DIGIT - 1)) // np.uint64(DIGIT)
    there = False
    for k in range(passes):
        first = width * np.uint64(k) // passes
        last = width * np.uint64(k + 1) // passes
        mask = (np.uint64(1) << (last - first)) - np.uint64(1)
        if there:
            moved = _pass(other, other_values, keys, values, begin, end, low + first, mask, starts)
        else:
            moved = _pass(keys, values, other, other_values, begin, end, low + first, mask, starts)
        there = there != moved
    if there:
        for i in range(begin, end):
            keys[i] = other[i]
            if values is not None:
                values[i] = other_values[i]


@kernel()
def _bucket(keys, values, other, other_values, begin, end, starts):
    """Sort keys[begin:end] in the cache, with the same stretch of `other` as scratch."""
    if end - begin < np.uint64(2):
        return
    first = previous = keys[begin]
    varying, falls = np.uint64(0), np.uint64(0)
    for i in range(begin, end):
        key = keys[i]
        varying |= key ^ first
        falls += np.uint64(previous > key)
        previous = key
    if falls == np.uint64(0):
        return
    if end - begin <= np.uint64(_FEW):
        _insert(keys, values, begin, end, np.uint64(1) << np.uint64(62))
        return
    top, low = np.uint64(64), np.uint64(0)
    while not (varying >> (top - np.uint64(1))) & np.uint64(1):
        top -= np.uint64(1)
    while not (varying >> low) & np.uint64(1):
        low += np.uint64(1)
    enough = np.uint64(_SPARE)
    while (end - begin) >> (enough - np.uint64(_SPARE)):
        enough += np.uint64(1)
    if top - low > enough:
        _digits(keys, values, other, other_values, begin, end, top - enough, enough, starts)
        if _insert(keys, values, begin, end, end - begin):
            return
    _digits(keys, values, other, other_values, begin, end, low, top - low, starts)


@kernel()
def _take(keys, values, other, other_values, bounds, most, next_bucket):
    starts = np.empty(1 << DIGIT, np.uint64)
    while True:
        b = atomic_add(next_bucket, 0, 1)
        if b + 1 >= bounds.size:
            return
        begin, end = bounds[b], bounds[b + 1]
        if end - begin <= most:
            _bucket(keys, values, other, other_values, begin, end, starts)


@parallel_kernel()
def _sort_buckets(keys, values, other, other_values, bounds, most, threads):
    """Threads take bucket after bucket; those that hold more than `most` keys are left as they are."""
    next_bucket = np.zeros(1, np.int64)
    for _ in prange(threads):
        _take(keys, values, other, other_values, bounds, most, next_bucket)


Columns = tuple[np.ndarray, np.ndarray | None]


def _sort(data: Columns, scratch: Columns, threads: int) -> bool:
    """Sort; True if the result is in `scratch`."""
    keys, values = data
    n = len(keys)
    if n < 2:
        return False
    whole = np.array([0, n], np.uint64)
    if n <= FITS:
        _sort_buckets(*data, *scratch, whole, np.uint64(n), 1)
        return False
    varying, falls = _survey(keys, threads)
    if not falls:
        return False
    width = int(varying).bit_length()
    bits = min(CUT, width, max(1, (n // (FITS // 2)).bit_length()))
    shift, mask = np.uint64(width - bits), np.uint64((1 << bits) - 1)
    starts = _starts(keys, shift, mask, threads)
    bounds = np.append(starts[0, : 1 << bits], np.uint64(n))
    _cut(*data, *scratch, shift, mask, starts)
    most = 4 * FITS
    _sort_buckets(*scratch, *data, bounds, np.uint64(most), threads)
    for b in np.flatnonzero(np.diff(bounds) > np.uint64(most)).tolist():
        part = slice(int(bounds[b]), int(bounds[b + 1]))
        here = scratch[0][part], None if scratch[1] is None else scratch[1][part]
        there = keys[part], None if values is None else values[part]
        if _sort(here, there, threads):
            here[0][:] = there[0]
            if here[1] is not None:
                here[1][:] = there[1]
    return True


def sort_keys(keys: np.ndarray, scratch: np.ndarray, threads: int) -> tuple[np.ndarray, np.ndarray]:
    """Sort uint64 keys; returns (sorted, the other buffer). Both buffers are overwritten."""
    return (scratch, keys) if _sort((keys, None), (scratch, None), threads) else (keys, scratch)


def sort_pairs(
    keys: np.ndarray, values: np.ndarray, scratch: np.ndarray, scratch_values: np.ndarray, threads: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Sort uint64 keys, stably, and carry a value with each; returns (keys, values, the other two buffers)."""
    if _sort((keys, values), (scratch, scratch_values), threads):
        return scratch, scratch_values, keys, values
    return keys, values, scratch, scratch_values
