"""How long a GPU's streams were busy, and with what, by the slices of a recording."""

from __future__ import annotations

from penstock.observe.events import Events, Slice


def lanes(events: Events, begin: float = 0.0, end: float = float("inf")) -> list[Slice]:
    """What streams did in this time."""
    return [each for each in events.slices if each.lane.startswith("stream") and begin <= each.begin < end]


def busy(slices: list[Slice]) -> dict[str, float]:
    """Seconds in which any stream was busy, in which several were, and of each kind of work."""
    edges = sorted([(each.begin, 1) for each in slices] + [(each.end, -1) for each in slices])
    any_, several, level, last = 0.0, 0.0, 0, 0.0
    for at, step in edges:
        any_ += (at - last) * (level > 0)
        several += (at - last) * (level > 1)
        level, last = level + step, at
    by_name: dict[str, float] = {}
    for each in slices:
        by_name[each.name] = by_name.get(each.name, 0.0) + each.end - each.begin
    return {"busy_seconds": any_, "several_seconds": several, "share": several / any_ if any_ else 0.0} | {
        f"{name} seconds": seconds for name, seconds in by_name.items()
    }
