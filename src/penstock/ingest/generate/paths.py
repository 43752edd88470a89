"""The kernel of the Kronecker generator: edges as paths through the levels of quadrants."""

from __future__ import annotations

import numpy as np

from penstock.ingest.generate.random import draw, scramble
from penstock.memory.device import kernel

_ZERO, _ONE, _TWO, _THREE, _FOUR, _EIGHT = (np.uint64(i) for i in (0, 1, 2, 3, 4, 8))
_LOW4, _LOW8, _LOW32 = np.uint64(15), np.uint64(255), np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_REST = np.uint64(256)


@kernel()
def _path(word: np.uint64, tables: np.ndarray, start: np.uint64) -> np.uint64:
    """32 random bits to one path: 8 choose the bin, 24 between the bin and its alias."""
    bin_ = word & _LOW8
    entry = np.uint64(tables[start + bin_])
    return bin_ if word >> _EIGHT < entry >> _EIGHT else entry & _LOW8


@kernel()
def draw_paths(
    source: np.ndarray,
    target: np.ndarray,
    first: np.uint64,
    key: np.uint64,
    scale: np.uint64,
    tables: np.ndarray,
    labels: np.ndarray,
    scrambled: bool,
) -> None:
    full = scale // _FOUR
    rest = scale % _FOUR
    pairs = full // _TWO
    single = full % _TWO
    draws = (full + (_ONE if rest else _ZERO) + _ONE) // _TWO
    mask = (_ONE << scale) - _ONE
    shift = (scale + _ONE) // _TWO
    for i in range(source.size):
        counter = (first + np.uint64(i)) * draws
        u = v = _ZERO
        for _ in range(pairs):
            bits = draw(key, counter)
            counter += _ONE
            high = _path(bits >> _HALF, tables, _ZERO)
            low = _path(bits & _LOW32, tables, _ZERO)
            u = u << _EIGHT | (high >> _FOUR) << _FOUR | low >> _FOUR
            v = v << _EIGHT | (high & _LOW4) << _FOUR | low & _LOW4
        if single or rest:
            bits = draw(key, counter)
            if single:
                path = _path(bits >> _HALF, tables, _ZERO)
                u = u << _FOUR | path >> _FOUR
                v = v << _FOUR | path & _LOW4
            if rest:
                path = _path(bits & _LOW32, tables, _REST)
                u = u << rest | path >> _FOUR
                v = v << rest | path & _LOW4
        if scrambled:
            u = scramble(u, labels, mask, shift)
            v = scramble(v, labels, mask, shift)
        source[i] = u
        target[i] = v


__all__ = ["draw_paths"]
