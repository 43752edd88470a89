"""Memory by tier against its budget: at the fullest moment, and over time if that was recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from penstock.observe.report import words
from penstock.observe.report.markup import Html, Section, bar, chart, join, table, tag
from penstock.observe.report.run import Run

SHOWN = 6
"""Things that are told apart."""
POINTS = 400
"""Moments of a curve."""
TIERS = {"host": "Host memory", "device": "GPU memory"}


def memory(run: Run) -> Section | None:
    """Meters for each tier, what the host's was for, and curves."""
    meters = [
        tag(
            "div",
            tag("span", name),
            bar([("c0", used / limit)], label=f"{name}: {words.size(used)} of {words.size(limit)}"),
            tag("b", f"{words.size(used)} of {words.size(limit)}"),
        )
        for name, used, limit in _tiers(run)
    ]
    if not meters:
        return None
    body: list[Any] = [tag("div", *meters, class_="bars")]
    charts = [made for tier in TIERS if (made := _curve(run, tier)) is not None]
    body.append(tag("div", *charts, class_="grid") if charts else "")
    body.append(_at_peak(run))
    return Section("memory", "Memory", _told(run), join(body))


def _tiers(run: Run) -> Iterator[tuple[str, int, int]]:
    figures = run.figures
    if figures.get("ledger_peak") and figures.get("memory_limit"):
        yield "Host", figures["ledger_peak"], figures["memory_limit"]
    if run.gpu is not None and run.gpu.get("memory_limit"):
        yield "GPU", run.gpu.get("ledger_peak", 0), run.gpu["memory_limit"]


def _told(run: Run) -> str:
    figures = run.figures
    parts = []
    if figures.get("ledger_peak") and figures.get("memory_limit"):
        used, limit = figures["ledger_peak"], figures["memory_limit"]
        share = words.share(used, limit)
        parts.append(f"At its fullest, {words.size(used)} of the {words.size(limit)} allowed were taken ({share}).")
    if figures.get("peak_memory"):
        parts.append(
            f"The whole process, Python and its libraries included, held at most {words.size(figures['peak_memory'])}."
        )
    if figures.get("spilled"):
        parts.append(f"{words.size(figures['spilled'])} were written to spill files.")
    return " ".join(parts)


def _at_peak(run: Run) -> Html:
    held = dict(run.figures.get("ledger_at_peak") or {})
    total = sum(held.values())
    if not total:
        return Html("")
    ordered = sorted(held.items(), key=lambda item: -item[1])
    rows = [(what, words.size(used), words.share(used, total)) for what, used in ordered]
    return tag(
        "details",
        tag("summary", "What it was taken for"),
        table(("at the fullest moment", "bytes", "share"), rows),
        class_="figures",
        open="",
    )


def _curve(run: Run, tier: str) -> Html | None:
    """Stacked by what it was taken for."""
    points = [
        each
        for each in (run.events.levels if run.events is not None else ())
        if each.name.startswith(f"{tier} memory/")
    ]
    if len(points) < 2:
        return None
    names, times, levels = stacked(
        [(each.name.partition("/")[2], each.time - run.origin, each.value) for each in points]
    )
    last = max([each.end - run.origin for each in run.slices[-1:]] + [times[-1]])
    times.append(last)
    for level in levels:
        level.append(level[-1])
    most = max(map(sum, zip(*levels, strict=True)))
    limit = run.figures.get("memory_limit") if tier == "host" else (run.gpu or {}).get("memory_limit")
    near = limit is not None and limit <= 4 * most
    name = f"memory-{tier}"
    run.drawings[name] = {
        "kind": "xy",
        "x": {"label": "time", "unit": "seconds"},
        "y": {"unit": "bytes", "zero": True},
        "series": [
            {"name": what, "type": "area", "stack": True, "step": True, "x": times, "y": level}
            for what, level in zip(names, levels, strict=True)
        ],
        "marks": [{"y": limit, "label": f"limit {words.size(limit)}"}] if near and limit is not None else [],
    }
    beyond = "" if near or limit is None else f" The limit of {words.size(limit)} is far above."
    return chart(name, f"{TIERS[tier]} over time", f"At most {words.size(most)}.{beyond}", wide=True)


def stacked(points: Sequence[tuple[str, float, float]]) -> tuple[list[str], list[float], list[list[float]]]:
    """Names, moments and the level of each name at each moment; the smaller ones together. Of many moments close to
    one another the fullest is kept."""
    peaks: dict[str, float] = {}
    for what, _, value in points:
        peaks[what] = max(value, peaks.get(what, 0.0))
    chosen = sorted(peaks, key=lambda what: -peaks[what])
    names, rest = chosen[:SHOWN], set(chosen[SHOWN:])
    now = dict.fromkeys(peaks, 0.0)
    begin, end = points[0][1], points[-1][1]
    width = (end - begin) / POINTS
    moments: list[tuple[float, list[float]]] = []
    for what, time, value in points:
        now[what] = value
        level = [now[name] for name in names] + ([sum(now[name] for name in rest)] if rest else [])
        crowded = len(points) > POINTS and moments and time - moments[-1][0] < width
        if not crowded:
            moments.append((time, level))
        elif sum(level) > sum(moments[-1][1]):
            moments[-1] = moments[-1][0], level
    levels = [[level[place] for _, level in moments] for place in range(len(moments[0][1]))]
    return names + (["others"] if rest else []), [time for time, _ in moments], levels


__all__ = ["memory", "stacked"]
