"""Loops that put rows of bytes in order where their first bytes are the same, and that tell equal rows apart."""

from __future__ import annotations

import numpy as np

from penstock.memory.device import inlined, kernel, parallel_kernel, prange

_ONE = np.uint64(1)
_BYTE = np.uint64(8)


@parallel_kernel()
def prefixes_at(offsets, data, positions, skip, out):
    """Like `prefixes`, of the rows at `positions`."""
    for k in prange(positions.size):
        i = np.uint64(k)
        row = np.uint64(positions[i])
        at, end = np.uint64(offsets[row]) + skip, np.uint64(offsets[row + _ONE])
        word = np.uint64(0)
        for b in range(_BYTE):
            word <<= _BYTE
            if at + b < end:
                word |= np.uint64(data[at + b])
        out[i] = word


@inlined
def _after(offsets, data, one, other, skip):
    """Whether one row comes after another: by the bytes from `skip` on, then by length.

    Rows that agree up to `skip` may still end before it: what the longer one has there is zeros.
    """
    at, end = np.uint64(offsets[one]), np.uint64(offsets[one + _ONE])
    to, stop = np.uint64(offsets[other]), np.uint64(offsets[other + _ONE])
    if end - at < skip or stop - to < skip:
        return end - at > stop - to
    at += skip
    to += skip
    while at < end and to < stop:
        if data[at] != data[to]:
            return data[at] > data[to]
        at += _ONE
        to += _ONE
    return at < end


@kernel()
def settle(offsets, data, positions, scratch, starts, ends, skip, descending):
    """Sort stretches of `positions` by their rows, which agree up to byte `skip`, by merging what is out of order."""
    for g in range(np.uint64(starts.size)):
        begin, end = np.uint64(starts[g]), np.uint64(ends[g])
        width = _ONE
        while width < end - begin:
            low = begin
            while low + width < end:
                middle = low + width
                high = min(middle + width, end)
                i, j, k = low, middle, low
                last, first = np.uint64(positions[middle - _ONE]), np.uint64(positions[middle])
                if descending:
                    wrong = _after(offsets, data, first, last, skip)
                else:
                    wrong = _after(offsets, data, last, first, skip)
                if wrong:
                    while i < middle and j < high:
                        one, other = np.uint64(positions[i]), np.uint64(positions[j])
                        if descending:
                            later = _after(offsets, data, other, one, skip)
                        else:
                            later = _after(offsets, data, one, other, skip)
                        if later:
                            scratch[k] = positions[j]
                            j += _ONE
                        else:
                            scratch[k] = positions[i]
                            i += _ONE
                        k += _ONE
                    while i < middle:
                        scratch[k] = positions[i]
                        i += _ONE
                        k += _ONE
                    for m in range(low, k):
                        positions[m] = scratch[m]
                low = high
            width <<= _ONE


@kernel()
def rows_repeat(offsets, data, positions, out):
    """Whether each row at `positions` is the same as the one before it; the first is not."""
    for i in range(np.uint64(positions.size)):
        same = i > np.uint64(0)
        if same:
            row, last = np.uint64(positions[i]), np.uint64(positions[i - _ONE])
            at, end = np.uint64(offsets[row]), np.uint64(offsets[row + _ONE])
            to, stop = np.uint64(offsets[last]), np.uint64(offsets[last + _ONE])
            same = end - at == stop - to
            while same and at < end:
                same = data[at] == data[to]
                at += _ONE
                to += _ONE
        out[i] = same
