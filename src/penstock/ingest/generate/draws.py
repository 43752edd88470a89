"""The kernels of uniform draws: end points and weights."""

from __future__ import annotations

import numpy as np

from penstock.ingest.generate.random import below, draw
from penstock.memory.device import kernel

_ZERO = np.uint64(0)
_TWO = np.uint64(2)
_ONE = np.uint64(1)
_TOP24 = np.uint64(40)
_UNIT24 = 2.0**-24


@kernel()
def uniform_ends(source: np.ndarray, target: np.ndarray, key: np.uint64, first: np.uint64, vertices: np.uint64) -> None:
    for i in range(source.size):
        counter = (first + np.uint64(i)) * _TWO
        source[i] = below(draw(key, counter), vertices)
        target[i] = below(draw(key, counter + _ONE), vertices)


@kernel()
def whole_weights(out: np.ndarray, key: np.uint64, first: np.uint64, low: np.uint64, span: np.uint64) -> None:
    """Unsigned arithmetic wraps, so a negative `low` in two's complement comes out right."""
    for i in range(out.size):
        bits = draw(key, first + np.uint64(i))
        out[i] = low + (bits if span == _ZERO else below(bits, span))


@kernel()
def float_weights(out: np.ndarray, key: np.uint64, first: np.uint64, low: np.float64, high: np.float64) -> None:
    """24 bits are all a float32 in [0, 1) can hold."""
    scale = (high - low) * _UNIT24
    for i in range(out.size):
        value = np.float32(low + np.float64(draw(key, first + np.uint64(i)) >> _TOP24) * scale)
        # Rounding to float32 may reach the excluded end when the range is far from zero.
        out[i] = value if value < high else np.float32(low)


__all__ = ["float_weights", "uniform_ends", "whole_weights"]
