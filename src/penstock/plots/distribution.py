"""Distributions: how many vertices have each degree, rank or radius, and how many components each size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.plots.style import COLOURS, INK, counted, figure, label, logarithmic
from penstock.profile import Distribution

FEW = 64
"""Different whole numbers that are drawn as bars."""
MANY = 40
"""Points that need not be large to be seen."""
MARKERS = ("o", "D", "s")


def points(told: Sequence[Distribution], title: str, subtitle: str, x: str, y: str, names: Sequence[str] = ()) -> Any:
    """Counts of whole numbers of many sizes: each a point on two logarithmic axes."""
    made, axes = figure(title, subtitle + _left_out(told))
    label(axes, x, y)
    for at, each in enumerate(told):
        there = each.values > 0
        many = np.count_nonzero(there) > MANY
        axes.plot(
            each.values[there], each.counts[there], MARKERS[at], markersize=3.6 if many else 7, color=COLOURS[at],
            alpha=0.5 if many else 0.85, markeredgewidth=0, rasterized=many, label=names[at] if names else None,
        )  # fmt: skip
    for axis in (axes.xaxis, axes.yaxis):
        logarithmic(axis)
    # Somewhat below 1, so that the many values that occur once do not lie on the axis.
    axes.set_ylim(bottom=0.6)
    if len(told) > 1:
        shown = axes.legend(frameon=False, fontsize=10, labelcolor=INK, markerscale=2.2)
        for handle in shown.legend_handles:
            handle.set_alpha(1)
    return made


def histogram(each: Distribution, title: str, subtitle: str, x: str, y: str = "vertices") -> Any:
    """Counts of values: bars of a few whole numbers, or steps over bins."""
    made, axes = figure(title, subtitle + _left_out([each]))
    label(axes, x, y)
    if each.edges is not None:
        axes.stairs(each.counts, each.edges, fill=True, color=COLOURS[0], alpha=0.25)
        axes.stairs(each.counts, each.edges, color=COLOURS[0], linewidth=1.4)
        if each.log:
            logarithmic(axes.xaxis)
    elif len(each.values) <= FEW:
        axes.bar(each.values, each.counts, width=0.8 * _step(each.values), color=COLOURS[0], alpha=0.85)
        if np.issubdtype(each.values.dtype, np.integer):
            axes.xaxis.get_major_locator().set_params(integer=True)
    else:
        axes.plot(each.values, each.counts, "o-", markersize=3, linewidth=1, color=COLOURS[0])
    counts = each.counts[each.counts > 0]
    if len(counts) and counts.max() > 100 * counts.min():
        logarithmic(axes.yaxis)
        axes.set_ylim(bottom=0.6)
    else:
        counted(axes.yaxis)
        axes.set_ylim(bottom=0)
    if not each.log and each.edges is not None:
        counted(axes.xaxis)
    return made


def _step(values: np.ndarray) -> float:
    return float(np.diff(np.sort(values)).min()) if len(values) > 1 else 1.0


def _left_out(told: Sequence[Distribution]) -> str:
    """What the axes have no place for."""
    first = told[0]
    zero = max((int(each.counts[each.values == 0].sum()) for each in told), default=0) if first.of == "degrees" else 0
    parts = [(zero, "vertices of degree 0"), (first.zeros, "values of 0")]
    parts += [(first.nulls, "without a value"), (first.odd, "infinite or no number")]
    shown = [f"{count:,} {what}" for count, what in parts if count]
    return f"\nnot shown: {', '.join(shown)}" if shown else ""


__all__ = ["histogram", "points"]
