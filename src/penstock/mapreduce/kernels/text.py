"""Loops that cut text."""

from __future__ import annotations

import numpy as np

from penstock.memory.device import kernel

_1 = np.uint64(1)


@kernel()
def count_words(data, cuts):
    """How many runs of bytes that are no cuts there are, and their bytes."""
    words, size = np.uint64(0), np.uint64(0)
    outside = np.uint8(1)
    for i in range(np.uint64(data.size)):
        cut = cuts[data[i]]
        words += np.uint64(outside & (cut ^ np.uint8(1)))
        size += np.uint64(cut ^ np.uint8(1))
        outside = cut
    return np.int64(words), np.int64(size)


@kernel()
def split_words(data, cuts, made, offsets, out):
    """The words one after the other, each byte as `made` says, and where each begins."""
    word, to = np.uint64(0), np.uint64(0)
    outside = np.uint8(1)
    last = np.uint64(offsets.size - 1)
    size = np.uint64(out.size)
    for i in range(np.uint64(data.size)):
        byte = data[i]
        cut = cuts[byte]
        # Written at every byte, moved on at some: no branch that text would make unpredictable.
        if outside & (cut ^ np.uint8(1)):
            offsets[word] = np.int64(to)
            word += _1
        if to < size:
            out[to] = made[byte]
        to += np.uint64(cut ^ np.uint8(1))
        outside = cut
    offsets[last] = np.int64(to)


@kernel()
def count_byte(data, byte):
    found = np.uint64(0)
    for i in range(np.uint64(data.size)):
        found += np.uint64(data[i] == byte)
    return np.int64(found)


@kernel()
def split_lines(data, byte, offsets, out):
    """What lies between two such bytes, without them; a last line may have none at its end."""
    row, to = np.uint64(0), np.uint64(0)
    offsets[0] = 0
    for i in range(np.uint64(data.size)):
        if data[i] == byte:
            row += _1
            offsets[row] = np.int64(to)
        else:
            out[to] = data[i]
            to += _1
    offsets[np.uint64(offsets.size - 1)] = np.int64(to)


@kernel()
def survey_pairs(data, tab, end):
    """Lines, bytes of what stands before their first tab, and bytes after it."""
    lines, before, after = np.uint64(0), np.uint64(0), np.uint64(0)
    inside = False
    for i in range(np.uint64(data.size)):
        byte = data[i]
        if byte == end:
            lines += _1
            inside = False
        elif inside:
            after += _1
        elif byte == tab:
            inside = True
        else:
            before += _1
    return np.int64(lines), np.int64(before), np.int64(after)


@kernel()
def split_pairs(data, tab, end, key_offsets, keys, value_offsets, values):
    """Lines, all of which have their end, as keys and values."""
    row, at_key, at_value = np.uint64(0), np.uint64(0), np.uint64(0)
    inside = False
    for i in range(np.uint64(data.size)):
        byte = data[i]
        if byte == end:
            row += _1
            key_offsets[row] = np.int64(at_key)
            value_offsets[row] = np.int64(at_value)
            inside = False
        elif inside:
            values[at_value] = byte
            at_value += _1
        elif byte == tab:
            inside = True
        else:
            keys[at_key] = byte
            at_key += _1
