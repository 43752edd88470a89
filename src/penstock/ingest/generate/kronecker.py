"""The Kronecker (R-MAT) generator of Graph500: each edge falls through `scale` levels of quadrants a, b, c, d.

Four levels are drawn at once from a table of all 256 four-level paths by Walker's alias method, after
Huebschle-Schneider and Sanders, "Linear work generation of R-MAT graphs" (2020): one 64-bit draw decides eight levels,
and each path has its probability to 2**-32.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np

from penstock.errors import UsageError
from penstock.ingest.generate.generated import GeneratedSource
from penstock.options import whole

EDGE_STREAM, LABEL_STREAM = 0, 1
LARGEST_SCALE = 48
PATH_LEVELS = 4
_BINS = 1 << (2 * PATH_LEVELS)
_BIN_WEIGHT = 1 << 24


class KroneckerSource(GeneratedSource):
    """`edge_factor * 2**scale` edges over 2**scale vertices; `scramble` hides which ids have high degrees."""

    repeats = True

    def __init__(
        self,
        *,
        scale: int,
        edge_factor: float = 16,
        a: float = 0.57,
        b: float = 0.19,
        c: float = 0.19,
        d: float | None = None,
        scramble: bool = True,
        seed: int = 1,
        weights: Any = None,
    ) -> None:
        self.scale = whole("scale", scale, 0)
        if self.scale > LARGEST_SCALE:
            raise UsageError(f"scale must be at most {LARGEST_SCALE} (2**{LARGEST_SCALE} vertices), not {scale}")
        if isinstance(edge_factor, bool) or not isinstance(edge_factor, Real) or not math.isfinite(edge_factor):
            raise UsageError(f"edge_factor must be a number, not {edge_factor!r}")
        if edge_factor < 0:
            raise UsageError(f"edge_factor must not be negative, but it is {edge_factor}")
        self.quadrants = _quadrants(a, b, c, d)
        self.scramble: bool = bool(scramble)
        count = 1 << self.scale
        super().__init__(
            f"Kronecker graph of scale {self.scale}", count, round(edge_factor * count), seed=seed, weights=weights
        )
        # The second table serves the levels left over when scale is no multiple of four.
        self._tables: np.ndarray = np.concatenate(
            [alias_table(self.quadrants, PATH_LEVELS), alias_table(self.quadrants, self.scale % PATH_LEVELS)]
        )

    def fill(self, first: int, source: np.ndarray, target: np.ndarray) -> None:
        from penstock.ingest.generate.paths import draw_paths
        from penstock.ingest.generate.random import scramble_keys, stream_key

        key, labels = stream_key(self.seed, EDGE_STREAM), scramble_keys(self.seed, LABEL_STREAM)
        draw_paths(source, target, np.uint64(first), key, np.uint64(self.scale), self._tables, labels, self.scramble)


def _quadrants(*given: float | None) -> tuple[float, ...]:
    """a, b, c and d, which is what is left unless it is given."""
    values: list[float] = []
    for name, number in zip("abcd", given, strict=True):
        value = 1.0 - math.fsum(values) if number is None else number
        if isinstance(value, bool) or not isinstance(value, Real) or not -1e-12 <= value <= 1 + 1e-12:
            raise UsageError(f"{name} must be a probability between 0 and 1, not {value!r}")
        values.append(value)
    total = math.fsum(values)
    if abs(total - 1) > 1e-9:
        shown = " + ".join(f"{value:g}" for value in values)
        raise UsageError(f"a + b + c + d must be 1, but {shown} = {total:g}")
    return tuple(max(0.0, value) / total for value in values)


def path_probabilities(quadrants: tuple[float, ...], levels: int) -> np.ndarray:
    """The probability of each path through `levels` quadrants; path = source bits, then target bits."""
    square = np.array(quadrants).reshape(2, 2)
    power = np.ones((1, 1))
    for _ in range(levels):
        power = np.kron(power, square)
    return power


def alias_table(quadrants: tuple[float, ...], levels: int) -> np.ndarray:
    """256 words `threshold << 8 | alias`: draw a bin and 24 bits; below the threshold take the bin, else the alias.

    A path is `source bits << 4 | target bits`. Probabilities are rounded to 2**-32, by largest remainder, so that they
    sum to one exactly.
    """
    probabilities = np.zeros((16, 16))
    side = 1 << levels
    probabilities[:side, :side] = path_probabilities(quadrants, levels)
    exact = probabilities.ravel() * (_BINS * _BIN_WEIGHT)
    weights = np.floor(exact).astype(np.int64)
    missing = _BINS * _BIN_WEIGHT - int(weights.sum())
    weights[np.argsort(weights - exact, kind="stable")[:missing]] += 1

    table = np.empty(_BINS, np.uint32)
    poor = [path for path in range(_BINS) if weights[path] < _BIN_WEIGHT]
    rich = [path for path in range(_BINS) if weights[path] >= _BIN_WEIGHT]
    while poor:
        path, donor = poor.pop(), rich[-1]
        table[path] = int(weights[path]) << 8 | donor
        weights[donor] -= _BIN_WEIGHT - weights[path]
        if weights[donor] < _BIN_WEIGHT:
            poor.append(rich.pop())
    for path in rich:
        table[path] = (_BIN_WEIGHT - 1) << 8 | path
    return table


__all__ = ["KroneckerSource", "alias_table", "path_probabilities"]
