"""Two values of the same vertices against each other: where most of them are, and the middle one of each column."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from penstock.plots.style import COLOURS, INK, SOFT, figure, label, logarithmic, shades, short

BINS = 90
FEW = 64
"""The largest whole number of an axis that shows each by itself; other axes are logarithmic."""
Pieces: TypeAlias = Callable[[], Iterator[tuple[np.ndarray, np.ndarray]]]
"""Values and which of them are known, some vertices at a time."""


@dataclass
class Axis:
    """One of the two values: first seen, then cut into cells."""

    low: float = np.inf
    high: float = -np.inf
    whole: bool = True
    log: bool = True
    edges: np.ndarray = field(default_factory=lambda: np.array([1.0, 10.0]))

    def see(self, values: np.ndarray) -> None:
        if len(values):
            self.low, self.high = min(self.low, float(values.min())), max(self.high, float(values.max()))
            self.whole &= bool((values == np.rint(values)).all())

    def settle(self) -> None:
        """All were seen: how is it drawn?"""
        self.log = not (self.whole and self.low >= 0 and self.high <= FEW)

    def drawn(self, values: np.ndarray) -> np.ndarray:
        return np.log10(values) if self.log else values

    def cut(self, low: float, high: float) -> None:
        """Cells from one drawn place to another."""
        if self.log:
            room = max(0.02 * (high - low), 1e-3)
            self.edges = np.linspace(low - room, high + room, BINS + 1)
        else:
            self.edges = np.arange(low - 0.5, high + 1)

    @property
    def shown(self) -> np.ndarray:
        return 10.0**self.edges if self.log else self.edges

    @property
    def middles(self) -> np.ndarray:
        middles = (self.edges[:-1] + self.edges[1:]) / 2
        return 10.0**middles if self.log else middles


@dataclass(frozen=True)
class Joint:
    """How many vertices have both values in a cell."""

    counts: np.ndarray
    x: Axis
    y: Axis
    correlation: float
    """Of the places where they are drawn; NaN where one of them is always the same."""
    vertices: int
    left_out: int
    """Vertices for which one value is missing, or 0 on a logarithmic axis."""

    @property
    def medians(self) -> tuple[np.ndarray, np.ndarray]:
        """For each column with enough vertices, the middle of the cell in which half of them are reached."""
        sums = self.counts.cumsum(axis=1)
        enough = np.flatnonzero(sums[:, -1] >= 5)
        half = np.array([np.searchsorted(sums[at], sums[at, -1] / 2) for at in enough], np.int64)
        return self.x.middles[enough], self.y.middles[half]


def joint(x: Pieces, y: Pieces) -> Joint:
    """Count, in three passes and with no more than a piece in memory."""
    axes = (Axis(), Axis())
    for values in _known(x, y):
        for axis, each in zip(axes, values, strict=True):
            axis.see(each)
    for axis in axes:
        axis.settle()
    low, high = np.full(2, np.inf), np.full(2, -np.inf)
    sums, kept, total = np.zeros(5), 0, 0
    for left, right, count in _drawn(x, y, axes):
        total += count
        kept += len(left)
        if len(left):
            low = np.minimum(low, [left.min(), right.min()])
            high = np.maximum(high, [left.max(), right.max()])
            sums += [left.sum(), right.sum(), (left * left).sum(), (right * right).sum(), (left * right).sum()]
    if not kept:
        return Joint(np.zeros((1, 1)), *axes, float("nan"), total, total)
    for axis, first, last in zip(axes, low, high, strict=True):
        axis.cut(float(first), float(last))
    counts = np.zeros([len(axis.edges) - 1 for axis in axes])
    for left, right, _ in _drawn(x, y, axes):
        counts += np.histogram2d(left, right, [axis.edges for axis in axes])[0]
    return Joint(counts, *axes, _correlation(sums / kept), total, total - kept)


def _known(x: Pieces, y: Pieces) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for (ours, known), (theirs, too) in zip(x(), y(), strict=True):
        left, right = ours.astype(np.float64), theirs.astype(np.float64)
        good = known & too & np.isfinite(left) & np.isfinite(right)
        yield left[good], right[good]


def _drawn(x: Pieces, y: Pieces, axes: tuple[Axis, Axis]) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
    sizes = (len(values) for values, _ in x())
    for (left, right), size in zip(_known(x, y), sizes, strict=True):
        good = np.ones(len(left), bool)
        for axis, values in zip(axes, (left, right), strict=True):
            if axis.log:
                good &= values > 0
        yield axes[0].drawn(left[good]), axes[1].drawn(right[good]), size


def _correlation(means: np.ndarray) -> float:
    a, b, aa, bb, ab = means
    spread = (aa - a * a) * (bb - b * b)
    return float((ab - a * b) / np.sqrt(spread)) if spread > 1e-18 else float("nan")


def draw(told: Joint, title: str, subtitle: str, x: str, y: str) -> Any:
    """Cells by how many vertices they hold, and the medians."""
    from matplotlib.colors import LogNorm
    from matplotlib.ticker import FuncFormatter

    said = ["line: median"]
    if not np.isnan(told.correlation):
        said.append(f"correlation as drawn {told.correlation:.2f}")
    if told.left_out:
        said.append(f"not shown: {told.left_out:,} vertices (0 or missing)")
    made, axes = figure(title, f"{subtitle}\n{'; '.join(said)}", height=5.2)
    label(axes, x, y)
    counts = np.ma.masked_equal(told.counts.T, 0)
    most = max(2.0, float(told.counts.max(initial=0)))
    drawn = axes.pcolormesh(told.x.shown, told.y.shown, counts, cmap=shades(), norm=LogNorm(1, most), rasterized=True)
    axes.plot(*told.medians, "-", color=COLOURS[1], linewidth=1.8)
    for axis, each in ((axes.xaxis, told.x), (axes.yaxis, told.y)):
        if each.log:
            logarithmic(axis)
        else:
            axis.get_major_locator().set_params(integer=True)
    bar = made.colorbar(drawn, ax=axes, pad=0.02)
    bar.set_label("vertices", fontsize=10, color=INK)
    bar.ax.tick_params(colors=SOFT, labelsize=9, which="both")
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    bar.outline.set_visible(False)
    return made


__all__ = ["Axis", "Joint", "draw", "joint"]
