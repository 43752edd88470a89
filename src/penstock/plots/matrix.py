"""The adjacency matrix from afar: how many arcs lie in each of its cells."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.plots.style import INK, SOFT, figure, label, shades, short
from penstock.profile import Density


def matrix(told: Density, title: str, subtitle: str, order: str) -> Any:
    """A picture whose rows are where arcs start and whose columns are where they lead."""
    from matplotlib.colors import LogNorm
    from matplotlib.ticker import FuncFormatter

    made, axes = figure(title, subtitle, width=6.6, height=6.4)
    label(axes, f"to: vertices {order}", f"from: vertices {order}")
    axes.grid(False)
    counts = np.ma.masked_equal(told.counts, 0)
    most = float(counts.max()) if told.arcs else 1.0
    least = float(counts.min()) if told.arcs else 0.5
    extent = (0, max(told.vertices, 1), max(told.vertices, 1), 0)
    drawn = axes.imshow(
        counts, cmap=shades(), norm=LogNorm(min(least, most / 2), most), extent=extent, interpolation="nearest"
    )
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    bar = made.colorbar(drawn, ax=axes, shrink=0.78, pad=0.02)
    bar.set_label("arcs in a cell", fontsize=10, color=INK)
    bar.ax.tick_params(colors=SOFT, labelsize=9, which="both")
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    bar.ax.yaxis.set_minor_formatter(FuncFormatter(lambda value, _: ""))
    bar.outline.set_visible(False)
    return made


__all__ = ["matrix"]
