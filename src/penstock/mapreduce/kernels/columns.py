"""Loops over columns: rows of bytes moved, codes that keep the order, hashes."""

from __future__ import annotations

import numpy as np

from penstock.memory.device import inlined, kernel

_ONE = np.uint64(1)
_BYTE = np.uint64(8)
_SIGN = np.uint64(1 << 63)
_INFINITY = np.uint64(0x7FF0000000000000)
_LAST = np.uint64(0xFFFFFFFFFFFFFFFF)
_SEED = np.uint64(0x9E3779B97F4A7C15)
_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S32 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)


@inlined
def mixed(word):
    """The finalizer of SplitMix64: every bit of the word moves half of the bits of the result."""
    word = (word ^ (word >> _S30)) * _M1
    word = (word ^ (word >> _S27)) * _M2
    return word ^ (word >> _S31)


@kernel()
def row_lengths(offsets, positions, out):
    """`out[i + 1]`: bytes of the row at `positions[i]`, summed up from `out[0] = 0`."""
    total = np.int64(0)
    out[0] = 0
    for i in range(np.uint64(positions.size)):
        row = np.uint64(positions[i])
        total += offsets[row + _ONE] - offsets[row]
        out[i + _ONE] = total


@kernel()
def copy_rows(offsets, data, positions, out_offsets, out):
    """The rows at `positions`, one after the other."""
    for i in range(np.uint64(positions.size)):
        row = np.uint64(positions[i])
        at, end, to = np.uint64(offsets[row]), np.uint64(offsets[row + _ONE]), np.uint64(out_offsets[i])
        while at < end:
            out[to] = data[at]
            at += _ONE
            to += _ONE


@kernel()
def prefixes(offsets, data, skip, out):
    """Eight bytes of each row from byte `skip` on, the first the most significant; zeros where the row has ended."""
    for i in range(np.uint64(out.size)):
        at, end = np.uint64(offsets[i]) + skip, np.uint64(offsets[i + _ONE])
        word = np.uint64(0)
        for k in range(_BYTE):
            word <<= _BYTE
            if at + k < end:
                word |= np.uint64(data[at + k])
        out[i] = word


@kernel()
def hash_rows(offsets, data, out):
    """A hash of the bytes of each row, and of how many they are."""
    for i in range(np.uint64(out.size)):
        at, end = np.uint64(offsets[i]), np.uint64(offsets[i + _ONE])
        found = _SEED * (end - at + _ONE)
        while at + _BYTE <= end:
            word = np.uint64(0)
            for k in range(_BYTE):
                word |= np.uint64(data[at + k]) << (k * _BYTE)
            found = (found ^ word) * _M1
            found ^= found >> _S32
            at += _BYTE
        word, shift = np.uint64(0), np.uint64(0)
        while at < end:
            word |= np.uint64(data[at]) << shift
            shift += _BYTE
            at += _ONE
        out[i] = mixed(found ^ (word * _M2))


@kernel()
def mix(words):
    """Each word by its hash, in place."""
    for i in range(np.uint64(words.size)):
        words[i] = mixed(words[i] + _SEED)


@kernel()
def join_hashes(found, more):
    """The hashes of two columns made one, in the first."""
    for i in range(np.uint64(found.size)):
        found[i] = mixed(found[i] * _M1 + more[i])


@kernel()
def float_codes(bits, out):
    """Words that order as the numbers do whose bits these are: -0 is 0, and what is no number comes last."""
    for i in range(np.uint64(bits.size)):
        word = bits[i]
        if word & ~_SIGN > _INFINITY:
            out[i] = _LAST
        elif word == _SIGN:
            out[i] = _SIGN
        elif word & _SIGN:
            out[i] = ~word
        else:
            out[i] = word | _SIGN
