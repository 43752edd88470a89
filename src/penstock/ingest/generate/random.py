"""Random numbers by position: draw number `i` of a stream is a hash of `(seed, stream, i)`.

No state travels between threads or chunks, so a graph depends on its seed alone. The hash is SplitMix64 (Steele, Lea
and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014), which passes BigCrush and whose `i`-th
output needs no predecessor. Philox4x32-10 would serve as well, at the price of ten rounds instead of one.
"""

from __future__ import annotations

import numpy as np

from penstock.memory.device import kernel

GOLDEN = 0x9E3779B97F4A7C15
MASK = (1 << 64) - 1

_GOLDEN = np.uint64(GOLDEN)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31, _S32 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_ONE = np.uint64(1)


@kernel()
def draw(key: np.uint64, counter: np.uint64) -> np.uint64:
    """64 random bits at one position of the stream `key`."""
    z = key + (counter + _ONE) * _GOLDEN
    z = (z ^ (z >> _S30)) * _MIX1
    z = (z ^ (z >> _S27)) * _MIX2
    return z ^ (z >> _S31)


@kernel()
def below(bits: np.uint64, bound: np.uint64) -> np.uint64:
    """The high half of `bits * bound`: uniform in [0, bound) to within bound / 2**64."""
    low, high = bits & _LOW, bits >> _S32
    bound_low, bound_high = bound & _LOW, bound >> _S32
    middle = high * bound_low + ((low * bound_low) >> _S32)
    other = low * bound_high + (middle & _LOW)
    return high * bound_high + (middle >> _S32) + (other >> _S32)


@kernel()
def scramble(value: np.uint64, keys: np.ndarray, mask: np.uint64, shift: np.uint64) -> np.uint64:
    """A keyed bijection of [0, mask]: additions, odd multiplications and xor-shifts, each of them invertible."""
    for i in range(3):
        value = ((value + keys[2 * i]) * keys[2 * i + 1]) & mask
        value ^= value >> shift
    return value


def stream_key(seed: int, stream: int) -> np.uint64:
    """Where the stream starts. Two rounds, so that neighbouring seeds and streams have nothing in common."""
    return np.uint64(_mix(_mix(seed & MASK) ^ _mix((stream + 1) * GOLDEN & MASK)))


def scramble_keys(seed: int, stream: int) -> np.ndarray:
    """Three pairs of an addend and an odd factor for `scramble`."""
    key = int(stream_key(seed, stream))
    keys = np.array([_mix((key + (i + 1) * GOLDEN) & MASK) for i in range(6)], dtype=np.uint64)
    keys[1::2] |= _ONE
    return keys


def _mix(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


__all__ = ["below", "draw", "scramble", "scramble_keys", "stream_key"]
