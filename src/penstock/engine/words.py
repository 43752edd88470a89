"""Words of bits for the functions of programs: plain arithmetic that kernels compile and Python runs as it is."""

from __future__ import annotations

import numpy as np

_PAIRS = np.uint64(0x5555555555555555)
_FOURS = np.uint64(0x3333333333333333)
_BYTES = np.uint64(0x0F0F0F0F0F0F0F0F)
_LOW = np.uint64(0xFFFFFFFF)


def count_ones(word):
    """How many bits of a uint64 are set. Sums of neighbouring bits, as adding never overflows."""
    word = word - ((word >> np.uint64(1)) & _PAIRS)
    word = (word & _FOURS) + ((word >> np.uint64(2)) & _FOURS)
    word = (word + (word >> np.uint64(4))) & _BYTES
    word = word + (word >> np.uint64(8))
    word = word + (word >> np.uint64(16))
    word = word + (word >> np.uint64(32))
    return word & np.uint64(0x7F)


def lowest_zero(word):
    """The number of the lowest bit that is clear in a word of 32 bits; 32 if none is."""
    wide = np.uint64(word)
    return count_ones(wide & ~(wide + np.uint64(1)))


def mix(word):
    """32 bits, in a uint64, well mixed: the finaliser of MurmurHash3."""
    word = (word ^ (word >> np.uint64(16))) * np.uint64(0x85EBCA6B) & _LOW
    word = (word ^ (word >> np.uint64(13))) * np.uint64(0xC2B2AE35) & _LOW
    return word ^ (word >> np.uint64(16))


def drawn(seed, lane, number):
    """32 bits drawn for a lane of a vertex: the same ones on every machine."""
    word = mix(np.uint64(seed) & _LOW)
    word = mix(word ^ (np.uint64(number) & _LOW))
    word = mix(word ^ (np.uint64(number) >> np.uint64(32)))
    return mix(word ^ np.uint64(lane))


__all__ = ["count_ones", "drawn", "lowest_zero", "mix"]
