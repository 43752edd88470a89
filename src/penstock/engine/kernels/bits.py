"""Sets of vertices as bitmaps of 64-bit words, and what kernels ask of them."""

from __future__ import annotations

import numpy as np

from penstock.memory.device import atomic_add, atomic_or, count_bits, inlined, kernel, lowest_bit

ONE = np.uint64(1)
SIX = np.uint64(6)
LOW = np.uint64(63)
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@inlined
def has(words, i):
    """Whether bit i is set."""
    return (words[i >> SIX] >> (i & LOW)) & ONE


@inlined
def set_bit(words, i):
    """Set bit i, which other threads may do in the same word; whether it was clear."""
    mask = ONE << (i & LOW)
    if words[i >> SIX] & mask:
        return False
    return (atomic_or(words, i >> SIX, mask) & mask) == 0


@inlined
def masked(words, w, lo, hi):
    """Word w without the bits outside [lo, hi)."""
    word = words[w]
    base = w << SIX
    if base < lo:
        word &= ALL << (lo - base)
    if base + LOW >= hi:
        left = hi - base
        if left < np.uint64(64):
            word &= (ONE << left) - ONE
    return word


@kernel()
def count(words):
    """How many bits are set."""
    total = np.uint64(0)
    for w in range(np.uint64(words.size)):
        total += count_bits(words[w])
    return total


@kernel()
def weigh(counter, cuts, words, offsets):
    """(vertices, arcs) of a set, by the offsets of their adjacency; words from `cuts[k]` to `cuts[k + 1]`."""
    vertices, arcs = np.uint64(0), np.uint64(0)
    while True:
        k = atomic_add(counter, 0, ONE)
        if k + ONE >= np.uint64(cuts.size):
            return vertices, arcs
        for w in range(cuts[k], cuts[k + ONE]):
            word = words[w]
            vertices += count_bits(word)
            while word:
                i = (w << SIX) + lowest_bit(word)
                word &= word - ONE
                if i + ONE < np.uint64(offsets.size):  # a seed without arcs has no offsets
                    arcs += np.uint64(offsets[i + ONE] - offsets[i])


@kernel()
def pages_of(words, records, found):
    """The pages that hold a vertex of the set, in order; how many."""
    n = 0
    for page in range(np.uint64(records.size)):
        lo = records[page]["first_vertex"]
        hi = lo + np.uint64(records[page]["vertices"])
        for w in range(lo >> SIX, ((hi - ONE) >> SIX) + ONE):
            if masked(words, w, lo, hi):
                found[n] = page
                n += 1
                break
    return n


@kernel()
def members(words, out):
    """The numbers in the set, ascending; how many."""
    n = 0
    for w in range(np.uint64(words.size)):
        word = words[w]
        while word:
            out[n] = (np.uint64(w) << SIX) + lowest_bit(word)
            word &= word - ONE
            n += 1
    return n


def words_for(vertices: int) -> int:
    """The length of a bitmap for so many vertices."""
    return (vertices + 63) // 64
