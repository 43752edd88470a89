"""The most frequent number of a row, for programs that vote."""

from __future__ import annotations

import numpy as np

FEW = 16
"""So many are sorted by insertion."""
_MANY = 1 << 15
"""More are parted before they are counted: a table of all of them would neither be near nor in the budget."""
_DEPTH = 64
"""Parts left to look at, at most: the longer one waits, so that each is less than half of the one before it."""


def _sort_few(values, lo, hi):
    for i in range(lo + 1, hi):
        value = values[i]
        at = i
        while at > lo and values[at - 1] > value:
            values[at] = values[at - 1]
            at -= 1
        values[at] = value


def most_of_few(values, lo, hi, best, most):
    """(value, how often) of the better of `best` and the commonest of a short part."""
    _sort_few(values, lo, hi)
    return most_of_sorted(values, lo, hi, best, most)


def most_of_sorted(values, lo, hi, best, most):
    """The same of a part in ascending order."""
    begin = lo
    for i in range(lo, hi):
        if i + 1 == hi or values[i + 1] != values[i]:
            count = i + 1 - begin
            if count > most or (count == most and values[i] < best):
                best, most = values[i], count
            begin = i + 1
    return best, most


def _most_counted(values, lo, hi, best, most):
    """The same of a longer part: each value is counted in a table that it is hashed into."""
    size = 64
    while size < 2 * (hi - lo):
        size *= 2
    mask = np.uint64(size - 1)
    keys, counts = np.empty(size, values.dtype), np.zeros(size, np.uint32)
    for i in range(lo, hi):
        value = values[i]
        word = np.uint64(value)
        word = ((word ^ (word >> np.uint64(32))) & np.uint64(0xFFFFFFFF)) * np.uint64(0x9E3779B1)
        at = (word >> np.uint64(15)) & mask
        while counts[at] > 0 and keys[at] != value:
            at = (at + np.uint64(1)) & mask
        keys[at] = value
        counts[at] += np.uint32(1)
        count = np.int64(counts[at])
        if count > most or (count == most and value < best):
            best, most = value, count
    return best, most


def majority(values):
    """The one that more than half agree on, if there is such a one, and how often it is there (Boyer and Moore)."""
    favourite, lead = values[0], 0
    for i in range(len(values)):
        if lead == 0:
            favourite = values[i]
        lead += 1 if values[i] == favourite else -1
    count = 0
    for i in range(len(values)):
        count += 1 if values[i] == favourite else 0
    return favourite, count


def _pivot(values, lo, hi):
    """The middle one of three, not at places that an order of the values could foresee."""
    step = (hi - lo) // 3
    shift = (hi * 40503 + lo) % step
    a, b, c = values[lo + shift], values[lo + step + shift], values[lo + 2 * step + shift]
    return max(min(a, b), min(max(a, b), c))


def _part(values, lo, hi, pivot):
    """Those less than the pivot first, those greater last; where the equal ones begin and end."""
    less, at, more = lo, lo, hi
    while at < more:
        value = values[at]
        if value < pivot:
            values[at] = values[less]
            values[less] = value
            less += 1
            at += 1
        elif value > pivot:
            more -= 1
            values[at] = values[more]
            values[more] = value
        else:
            at += 1
    return less, more


def mode(values):
    """The most frequent of some whole numbers, of which there is at least one; of equally frequent ones the smallest.
    The array is reordered: many are parted like by quicksort, but parts of fewer than the best count left alone."""
    n = len(values)
    if n <= FEW:
        return most_of_few(values, 0, n, values[0], 0)[0]
    best, most = majority(values)
    if 2 * most > n:
        return best
    if n <= _MANY:
        return _most_counted(values, 0, n, best, most)[0]
    waiting = np.empty((_DEPTH, 2), np.int64)
    left, lo, hi = 0, 0, n
    while True:
        if hi - lo < most or hi - lo <= _MANY:
            if hi - lo >= most:
                best, most = _most_counted(values, lo, hi, best, most)
            if left == 0:
                return best
            left -= 1
            lo, hi = waiting[left, 0], waiting[left, 1]
            continue
        less, more = _part(values, lo, hi, _pivot(values, lo, hi))
        count = more - less
        if count > most or (count == most and values[less] < best):
            best, most = values[less], count
        if less - lo < hi - more:
            waiting[left, 0], waiting[left, 1] = more, hi
            hi = less
        else:
            waiting[left, 0], waiting[left, 1] = lo, less
            lo = more
        left += 1


__all__ = ["FEW", "majority", "mode", "most_of_few", "most_of_sorted"]
