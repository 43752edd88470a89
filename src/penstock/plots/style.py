"""How all pictures look, and the one door to matplotlib."""

from __future__ import annotations

import math
import os
from pathlib import Path
from textwrap import wrap
from typing import Any

from penstock.errors import UsageError
from penstock.store.whole import whole_file

ENDINGS = (".png", ".svg", ".pdf")
WIDTH, HEIGHT, DPI = 7.2, 4.8, 144
LETTERS = 12.5
"""Of the subtitle, in an inch."""
INK, SOFT, GRID = "#1d2733", "#66717f", "#e6eaee"
COLOURS = ("#1f6fb4", "#d9662b", "#3b8f57")
"""Told apart by those who do not see all colours, and in print."""
SHADES = ("#f3f7fb", "#c6dcef", "#7fb2dc", "#2f7fc1", "#12497f", "#08203d")
"""From few to many."""


def figure(title: str, subtitle: str = "", *, width: float = WIDTH, height: float = HEIGHT) -> tuple[Any, Any]:
    """(figure, axes), with the words above the axes and nothing around them that says nothing."""
    try:
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ModuleNotFoundError:
        raise UsageError("plots need matplotlib: pip install matplotlib") from None
    # A Figure of its own: pyplot would keep it, and choose a window for it.
    layout = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1)
    made = Figure(figsize=(width, height), dpi=DPI, facecolor="white", layout=layout)
    axes = made.add_subplot()
    lines = [line for part in subtitle.split("\n") for line in wrap(part, round(width * LETTERS))]
    axes.set_title(title, loc="left", fontsize=14, fontweight="bold", color=INK, pad=10 + 14 * len(lines))
    # No part of the layout: a long line would push the axes together.
    axes.annotate(
        "\n".join(lines), (0, 1), (0, 8), xycoords="axes fraction", textcoords="offset points", fontsize=9.5, color=SOFT
    ).set_in_layout(False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color("#b6bec7")
    axes.tick_params(colors=SOFT, labelsize=9.5, which="both")
    axes.set_axisbelow(True)
    axes.grid(True, which="major", color=GRID, linewidth=0.8)
    return made, axes


def label(axes: Any, x: str, y: str) -> None:
    axes.set_xlabel(x, fontsize=10.5, color=INK)
    axes.set_ylabel(y, fontsize=10.5, color=INK)


def logarithmic(axis: Any) -> None:
    """A logarithmic axis with ticks that people read: 1, 10, 100, 1 k, 1 M; and 10 to the power of below."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    (axis.axes.set_xscale if axis.axis_name == "x" else axis.axes.set_yscale)("log")
    axis.set_major_locator(LogLocator(base=10, numticks=9))
    axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axis.set_minor_formatter(NullFormatter())


def counted(axis: Any) -> None:
    """A linear axis of numbers as `1 k`, `2.5 M`."""
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))


def short(value: float) -> str:
    """`1500000` -> `1.5 M`; small ones as a power of ten."""
    if value == 0:
        return "0"
    size = abs(value)
    if size < 2e-3:
        power = math.floor(math.log10(size) + 1e-9)
        lead = value / 10.0**power
        return f"$10^{{{power}}}$" if abs(lead - 1) < 1e-6 else f"${lead:.2g}\\cdot10^{{{power}}}$"
    for scale, unit in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")):
        if size >= scale:
            return f"{value / scale:.3g}{unit}"
    return f"{value:.3g}"


def shades() -> Any:
    """The colours of counts; what is masked is not drawn."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("penstock", SHADES)


def save(drawn: Any, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Write a figure as .png, .svg or .pdf, by the ending; complete or not at all."""
    target = check_ending(path)
    kind = target.suffix.lower().lstrip(".")
    # Neither the time nor random names: the same picture is the same file.
    dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    from matplotlib import rc_context

    with whole_file(target, overwrite=overwrite) as partial, rc_context({"svg.hashsalt": "penstock"}):
        drawn.savefig(partial, format=kind, metadata=dated)
    return target


def check_ending(path: str | os.PathLike[str]) -> Path:
    target = Path(path)
    if target.suffix.lower() not in ENDINGS:
        raise UsageError(f"{target} does not end in one of {', '.join(ENDINGS)}")
    return target


__all__ = [
    "COLOURS", "ENDINGS", "INK", "SOFT", "check_ending", "counted", "figure", "label", "logarithmic", "save",
    "shades", "short",
]  # fmt: skip
