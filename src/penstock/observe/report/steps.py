"""Superstep by superstep: seconds, frontier, what still changed, where the pages came from."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from penstock.observe.report import words
from penstock.observe.report.markup import Html, Section, chart, join, table, tag
from penstock.observe.report.run import Run

MOST = 600
"""Points of a curve; of more supersteps some are taken together."""
LISTED = 200
"""Rows of the table."""


def steps(run: Run) -> Section | None:
    """Curves over the supersteps. One alone has no curve: it is told in words."""
    if not run.steps:
        return None
    if len(run.steps) == 1:
        return Section("steps", "Supersteps", _single(run.steps[0]), Html(""))
    rows = _thinned(run.steps)
    charts = [
        chart(name, title, told, kind="plot")
        for name, title, told, drawing in _curves(rows)
        if run.drawings.setdefault(name, drawing)
    ]
    return Section("steps", "Supersteps", _told(run), join([tag("div", *charts, class_="grid"), _listed(run.steps)]))


def _curves(rows: Sequence[dict[str, Any]]) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    x = {"label": "superstep", "unit": "whole"}
    names = [row.get("program", "") for row in rows]
    several = len(set(names)) > 1

    def drawing(y: dict[str, Any], series: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        return {"kind": "xy", "x": x, "y": y, "series": series, "labels": names if several else None, **more}

    ways = list(dict.fromkeys(row.get("direction", "") for row in rows))
    if 1 < len(ways) <= 4:
        series = [
            {
                "name": way or "other",
                "type": "bars",
                **_xy([row for row in rows if row.get("direction", "") == way], "seconds"),
            }
            for way in ways
        ]
    else:
        series = [{"name": "seconds", "type": "bars", **_xy(rows, "seconds")}]
    spent = [row.get("seconds", 0.0) for row in rows]
    told = f"From {words.seconds(min(spent))} to {words.seconds(max(spent))}."
    yield "seconds", "Time of each superstep", told, drawing({"unit": "seconds", "zero": True}, series)
    frontier = [row for row in rows if row.get("frontier") is not None]
    if len(frontier) > 1:
        most = max(frontier, key=lambda row: row["frontier"])
        told = f"At most {words.number(most['frontier'], 'vertex', 'vertices')}, in superstep {most['superstep']:,}."
        line = {"name": "active vertices", "type": "line", "dots": True, "fill": True, **_xy(frontier, "frontier")}
        yield "frontier", "Frontier", told, drawing({"unit": "count", "log": True}, [line])
    changed = [row for row in rows if isinstance(row.get("change"), int | float) and math.isfinite(row["change"])]
    if len(changed) > 1:
        last = changed[-1]["change"]
        told = f"{float(last):.2g} after the last superstep." if last else "Nothing changed in the last superstep."
        line = {"name": "change", "type": "line", "dots": True, **_xy(changed, "change")}
        yield "residual", "What still changed", told, drawing({"unit": "number", "log": True}, [line])
    paged = [row for row in rows if row.get("pages")]
    if len(paged) > 1 and any(row.get("bytes_read") or row.get("hits") for row in paged):
        cached = _xy(paged, "hits")
        read = [row["pages"] - row.get("hits", 0) for row in paged]
        series = [
            {"name": "from the cache", "type": "bars", "stack": True, **cached},
            {"name": "from disk", "type": "bars", "stack": True, "x": cached["x"], "y": read},
        ]
        told = f"{sum(read):,} pages were read, {sum(cached['y']):,} were there already."
        yield "pages", "Pages", told, drawing({"unit": "count", "zero": True}, series)
    reading = [row for row in rows if row.get("bytes_read") and row.get("seconds")]
    if len(reading) > 1:
        rates = {
            "x": [row["superstep"] for row in reading],
            "y": [row["bytes_read"] / row["seconds"] for row in reading],
        }
        told = f"At most {words.rate(max(rates['y']))}."
        yield (
            "reading",
            "Reading",
            told,
            drawing(
                {"unit": "rate", "zero": True},
                [{"name": "from disk", "type": "line", "dots": True, "fill": True, **rates}],
            ),
        )


def _xy(rows: Sequence[dict[str, Any]], name: str) -> dict[str, list[Any]]:
    return {"x": [row["superstep"] for row in rows], "y": [row.get(name) or 0 for row in rows]}


def _thinned(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """At most so many rows: sums of what adds up, the largest frontier, the last change."""
    if len(rows) <= MOST:
        return rows
    each = -(-len(rows) // MOST)
    found = []
    for at in range(0, len(rows), each):
        group = rows[at : at + each]
        merged = {**group[-1], "superstep": group[0]["superstep"]}
        for name in ("seconds", "pages", "hits", "bytes_read"):
            if any(name in row for row in group):
                merged[name] = sum(row.get(name) or 0 for row in group)
        if any("frontier" in row for row in group):
            merged["frontier"] = max(row.get("frontier") or 0 for row in group)
        found.append(merged)
    return found


def _listed(rows: Sequence[dict[str, Any]]) -> Html:
    names = [name for name in dict.fromkeys(name for row in rows for name in row) if name != "superstep"]
    shown = list(rows) if len(rows) <= LISTED else [*rows[: LISTED // 2], *rows[-LISTED // 2 :]]
    body = [[row["superstep"], *(_cell(name, row.get(name)) for name in names)] for row in shown]
    note = (
        tag("p", f"The first and the last {LISTED // 2} of {len(rows):,}.", class_="note")
        if len(shown) < len(rows)
        else ""
    )
    head = ("superstep", *(name.replace("_", " ") for name in names))
    return tag("details", tag("summary", "All supersteps"), note, table(head, body), class_="figures")


def _cell(name: str, found: Any) -> str:
    if found is None:
        return "-"
    if name == "seconds":
        return words.seconds(float(found))
    if name.startswith("bytes"):
        return words.size(found)
    return f"{found:,}" if isinstance(found, int) and not isinstance(found, bool) else words.value(found)


def _single(step: dict[str, Any]) -> str:
    figures = [
        f"{name.replace('_', ' ')} {_cell(name, found)}"
        for name, found in step.items()
        if name not in ("superstep", "program", "seconds")
    ]
    told = f"One pass of {words.seconds(float(step.get('seconds', 0.0)))}"
    return f"{told}: {', '.join(figures)}." if figures else f"{told}."


def _told(run: Run) -> str:
    seconds = [float(step.get("seconds", 0.0)) for step in run.steps]
    slowest = run.steps[seconds.index(max(seconds))]["superstep"]
    told = f"{words.number(len(seconds), 'superstep')} in {words.seconds(sum(seconds))}"
    told += f"; the slowest was number {slowest:,}, with {words.seconds(max(seconds))}"
    left = run.figures.get("supersteps_left_out")
    return f"{told}. {left:,} in between were not kept." if left else f"{told}."


__all__ = ["steps"]
