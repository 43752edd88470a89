"""Two values of the same vertices against each other: where most of them are, and the middle one of each column."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from penstock.plots.style import COLOURS, INK, SOFT, figure, label, logarithmic, shades, short

BINS = 90
Pieces: TypeAlias = Callable[[], Iterator[tuple[np.ndarray, np.ndarray]]]
"""Values and which of them are known, some vertices at a time."""


@dataclass(frozen=True)
class Joint:
    """How many vertices have both values in a cell."""

    counts: np.ndarray
    x: np.ndarray
    """The edges of the cells, equally wide on a logarithmic axis."""
    y: np.ndarray
    correlation: float
    """Of the logarithms; NaN where one of them is always the same."""
    vertices: int
    left_out: int
    """Vertices for which one value is missing, 0 or negative."""

    @property
    def medians(self) -> tuple[np.ndarray, np.ndarray]:
        """For each column with enough vertices, the middle of the cell in which half of them are reached."""
        sums = self.counts.cumsum(axis=1)
        enough = np.flatnonzero(sums[:, -1] >= 5)
        half = np.array([np.searchsorted(sums[at], sums[at, -1] / 2) for at in enough], np.int64)
        return np.sqrt(self.x[:-1] * self.x[1:])[enough], np.sqrt(self.y[:-1] * self.y[1:])[half]


def joint(x: Pieces, y: Pieces) -> Joint:
    """Count, in two passes and with no more than a piece in memory."""
    low, high = np.full(2, np.inf), np.full(2, -np.inf)
    sums, kept, total = np.zeros(5), 0, 0
    for left, right, count in _logarithms(x, y):
        total += count
        kept += len(left)
        if len(left):
            low = np.minimum(low, [left.min(), right.min()])
            high = np.maximum(high, [left.max(), right.max()])
            sums += [left.sum(), right.sum(), (left * left).sum(), (right * right).sum(), (left * right).sum()]
    if not kept:
        empty = np.array([1.0, 10.0])
        return Joint(np.zeros((1, 1)), empty, empty, float("nan"), total, total)
    edges = [_edges(low[axis], high[axis]) for axis in (0, 1)]
    counts = np.zeros((len(edges[0]) - 1, len(edges[1]) - 1))
    for left, right, _ in _logarithms(x, y):
        counts += np.histogram2d(left, right, edges)[0]
    return Joint(counts, 10.0 ** edges[0], 10.0 ** edges[1], _correlation(sums / kept), total, total - kept)


def _logarithms(x: Pieces, y: Pieces) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
    for (ours, known), (theirs, too) in zip(x(), y(), strict=True):
        left, right = ours.astype(np.float64), theirs.astype(np.float64)
        good = known & too & (left > 0) & (right > 0) & np.isfinite(left) & np.isfinite(right)
        yield np.log10(left[good]), np.log10(right[good]), len(left)


def _edges(low: float, high: float) -> np.ndarray:
    room = max(0.02 * (high - low), 1e-3)
    return np.linspace(low - room, high + room, BINS + 1)


def _correlation(means: np.ndarray) -> float:
    a, b, aa, bb, ab = means
    spread = (aa - a * a) * (bb - b * b)
    return float((ab - a * b) / np.sqrt(spread)) if spread > 1e-18 else float("nan")


def draw(told: Joint, title: str, subtitle: str, x: str, y: str) -> Any:
    """Cells by how many vertices they hold, and the medians."""
    from matplotlib.colors import LogNorm
    from matplotlib.ticker import FuncFormatter

    said = [] if np.isnan(told.correlation) else [f"correlation of the logarithms {told.correlation:.2f}"]
    if told.left_out:
        said.append(f"not shown: {told.left_out:,} vertices without one of them")
    made, axes = figure(title, f"{subtitle}\n{'; '.join(said)}", height=5.2)
    label(axes, x, y)
    counts = np.ma.masked_equal(told.counts.T, 0)
    most = max(2.0, float(told.counts.max(initial=0)))
    drawn = axes.pcolormesh(told.x, told.y, counts, cmap=shades(), norm=LogNorm(1, most), rasterized=True)
    axes.plot(*told.medians, "-", color=COLOURS[1], linewidth=1.8, label=f"median of {y}")
    for axis in (axes.xaxis, axes.yaxis):
        logarithmic(axis)
    axes.legend(frameon=False, fontsize=9.5, labelcolor=INK, loc="upper left")
    bar = made.colorbar(drawn, ax=axes, pad=0.02)
    bar.set_label("vertices", fontsize=10, color=INK)
    bar.ax.tick_params(colors=SOFT, labelsize=9, which="both")
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    bar.outline.set_visible(False)
    return made


__all__ = ["Joint", "draw", "joint"]
