"""Random edge weights: the weight of edge `i` depends on the seed and on `i` alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import UsageError

STREAM = 7
_HELP = "write 1:255 for whole numbers (both ends included) or 0.0:1.0 for float32 (the upper end excluded)"


@dataclass(frozen=True)
class Weights:
    """Uniform in [low, high] for whole numbers, in [low, high) for floats."""

    low: int | float
    high: int | float
    dtype: np.dtype

    @classmethod
    def parse(cls, text: Any) -> Weights:
        """From `"1:255"`, `"0.0:1.0"`, `(1, 255)` or `(0.0, 1.0)`."""
        if isinstance(text, Weights):
            return text
        try:
            low, high = (_number(part) for part in (text.split(":") if isinstance(text, str) else text))
        except (TypeError, ValueError):
            raise UsageError(f"weights {text!r} is not a range: {_HELP}") from None
        if not (math.isfinite(low) and math.isfinite(high)):
            raise UsageError(f"weights {text!r} is not a range: both ends must be finite")
        if isinstance(low, int) and isinstance(high, int):
            if low > high:
                raise UsageError(f"weights {text!r} is an empty range: {_HELP}")
            return cls(low, high, _smallest(low, high))
        with np.errstate(over="ignore"):
            small, large = np.float32(low), np.float32(high)
        if not (small < large and np.isfinite(small) and np.isfinite(large)):
            raise UsageError(f"weights {text!r} is an empty range of float32: {_HELP}")
        return cls(float(small), float(large), np.dtype(np.float32))

    @property
    def kind(self) -> pa.DataType:
        return pa.from_numpy_dtype(self.dtype)

    def values(self, seed: int, first: int, count: int) -> np.ndarray:
        """The weights of edges `first` .. `first + count - 1`."""
        from penstock.ingest.generate.draws import float_weights, whole_weights
        from penstock.ingest.generate.random import stream_key

        out = np.empty(count, self.dtype)
        key, start = stream_key(seed, STREAM), np.uint64(first)
        if isinstance(self.low, int):
            # Wraps to 0 for the whole 64-bit range, which the kernel takes as "all bits".
            span = np.uint64((int(self.high) - self.low + 1) & (2**64 - 1))
            unsigned = out.view(f"u{out.itemsize}")
            whole_weights(unsigned, key, start, np.uint64(self.low & (2**64 - 1)), span)
        else:
            float_weights(out, key, start, np.float64(self.low), np.float64(self.high))
        return out


def _number(part: Any) -> int | float:
    if isinstance(part, str):
        text = part.strip()
        return int(text) if text.lstrip("+-").isdigit() else float(text)
    if isinstance(part, bool) or not isinstance(part, Real):
        raise TypeError
    return int(part) if isinstance(part, Integral) else float(part)


def _smallest(low: int, high: int) -> np.dtype:
    for name in ("uint8", "uint16", "uint32", "uint64") if low >= 0 else ("int8", "int16", "int32", "int64"):
        if np.iinfo(name).min <= low and high <= np.iinfo(name).max:
            return np.dtype(name)
    raise UsageError(f"weights {low}:{high} do not fit in 64 bits")


__all__ = ["Weights"]
