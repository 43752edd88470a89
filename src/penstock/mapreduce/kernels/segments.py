"""Loops that reduce the values of each key, which lie side by side."""

from __future__ import annotations

import numpy as np

from penstock.mapreduce.kernels.table import COUNT, FIRST, LAST, MAX, MIN, OR, SUM, apply
from penstock.memory.device import kernel

OPS = {
    "count": COUNT, "sum": SUM, "min": MIN, "max": MAX, "first": FIRST, "last": LAST, "any": MAX, "all": MIN, "or": OR,
}  # fmt: skip
"""How each is done with words: of truths the largest is `any`, the smallest `all`."""

_1 = np.uint64(1)


@kernel()
def reduce_words(values, offsets, op, out, out_bits):
    """One word for each segment; `out_bits` is the memory of `out` as words."""
    for i in range(np.uint64(out.size)):
        at, end = np.uint64(offsets[i]), np.uint64(offsets[i + _1])
        if at == end:
            out[i] = 0
            continue
        if op == SUM:
            total = values[at]
            at += _1
            while at < end:
                total += values[at]
                at += _1
            out[i] = total
            continue
        out[i] = values[at]
        at += _1
        while at < end:
            apply(out, out_bits, i, values[at], op)
            at += _1


@kernel()
def extreme_rows(rows, data, offsets, largest, picked):
    """The row of bytes that is smallest, or largest, in each segment; the first of equal ones."""
    for i in range(np.uint64(picked.size)):
        best = np.uint64(offsets[i])
        for k in range(np.uint64(offsets[i]) + _1, np.uint64(offsets[i + _1])):
            other = np.uint64(k)
            a, a_end = np.uint64(rows[best]), np.uint64(rows[best + _1])
            b, b_end = np.uint64(rows[other]), np.uint64(rows[other + _1])
            while a < a_end and b < b_end and data[a] == data[b]:
                a += _1
                b += _1
            if a < a_end and b < b_end:
                less = data[b] < data[a]
                more = data[b] > data[a]
            else:
                less = b == b_end and a < a_end
                more = a == a_end and b < b_end
            if more if largest else less:
                best = other
        picked[i] = np.int64(best)


@kernel()
def count_groups(numbers, offsets):
    """How often each number stands in `numbers`, summed up; `offsets` has a zero for each number and one more."""
    for i in range(np.uint64(numbers.size)):
        offsets[np.uint64(numbers[i]) + _1] += 1
    for k in range(np.uint64(offsets.size) - _1):
        offsets[k + _1] += offsets[k]


@kernel()
def place_groups(numbers, starts, rows):
    """The rows by their number, in order inside each; `starts` is used up."""
    for i in range(np.uint64(numbers.size)):
        group = np.uint64(numbers[i])
        rows[np.uint64(starts[group])] = i
        starts[group] += 1


@kernel()
def number_codes(codes, hashes, slots, numbers, firsts):
    """The number of each row's key, in the order in which keys are first seen, and that row; how many keys."""
    mask = np.uint64(slots.size - 1)
    count = np.uint64(0)
    for i in range(np.uint64(codes.size)):
        place = hashes[i] & mask
        while True:
            slot = np.uint64(slots[place])
            if slot == np.uint64(0):
                slots[place] = np.uint32(count + _1)
                firsts[count] = i
                numbers[i] = np.uint32(count)
                count += _1
                break
            if codes[np.uint64(firsts[slot - _1])] == codes[i]:
                numbers[i] = np.uint32(slot - _1)
                break
            place = (place + _1) & mask
    return np.int64(count)


@kernel()
def number_bytes(offsets, data, hashes, slots, numbers, firsts):
    """The same for rows of bytes."""
    mask = np.uint64(slots.size - 1)
    count = np.uint64(0)
    for i in range(np.uint64(hashes.size)):
        hashed = hashes[i]
        at = np.uint64(offsets[i])
        length = np.uint64(offsets[i + _1]) - at
        place = hashed & mask
        while True:
            slot = np.uint64(slots[place])
            if slot == np.uint64(0):
                slots[place] = np.uint32(count + _1)
                firsts[count] = i
                numbers[i] = np.uint32(count)
                count += _1
                break
            other = np.uint64(firsts[slot - _1])
            if hashes[other] == hashed:
                there = np.uint64(offsets[other])
                same = np.uint64(offsets[other + _1]) - there == length
                if same:
                    for k in range(length):
                        if data[there + k] != data[at + k]:
                            same = False
                            break
                if same:
                    numbers[i] = np.uint32(slot - _1)
                    break
            place = (place + _1) & mask
    return np.int64(count)
