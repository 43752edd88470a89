"""Figures as people read them: `1.2 GB/s`, `3.4 s`, `39.8 million arcs/s`."""

from __future__ import annotations

import math
from typing import Any

from penstock.config import format_size as size

_PREFIXES = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"))


def seconds(value: float) -> str:
    """`0.4 ms`, `12 ms`, `3.4 s`, `2 min 5 s`, `1 h 2 min`."""
    if value < 0.9995:
        return f"{value * 1e3:.3g} ms" if value >= 1e-3 else f"{value * 1e6:.0f} µs"
    if value < 59.95:
        return f"{value:.1f} s" if value >= 9.995 else f"{value:.2f} s"
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def count(value: float) -> str:
    """`262,144`, `1.2 billion`."""
    for scale, name in _PREFIXES:
        if value >= 10 * scale or (scale > 1e6 and value >= scale):
            return f"{value / scale:.3g} {name}"
    return f"{value:,.0f}"


def short(value: float) -> str:
    """`39.8 M`: where there is little room."""
    for scale, name in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= scale:
            return f"{value / scale:.3g} {name}"
    return f"{value:.3g}"


def rate(value: float) -> str:
    """Of bytes."""
    return f"{size(value)}/s"


def share(part: float, whole: float) -> str:
    """`43 %`; small ones with a digit more."""
    percent = 100 * part / whole if whole else 0.0
    return f"{percent:.1f} %" if 0 < percent < 9.95 else f"{percent:.0f} %"


def number(one: int, singular: str, plural: str | None = None) -> str:
    """`1 vertex`, `2,000 vertices`."""
    return f"{count(one)} {singular if one == 1 else plural or singular + 's'}"


def value(found: Any) -> str:
    """A cell of a table."""
    if found is None:
        return "-"
    if isinstance(found, float):
        return f"{found:.6g}" if math.isfinite(found) else str(found)
    return str(found)


__all__ = ["count", "number", "rate", "seconds", "share", "short", "size", "value"]
