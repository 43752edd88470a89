"""What the graph and the result look like: degrees, the matrix, values, the vertices on top."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from penstock.observe.report import words
from penstock.observe.report.markup import Html, Section, chart, table, tag
from penstock.observe.report.run import Counted, Dense, Run

POINTS = 900
"""Of a scatter of degrees: the small ones, of which there are many vertices, and a choice of the large ones."""


def graph(run: Run) -> Section | None:
    """Degrees on logarithmic axes, and where in the matrix the arcs are."""
    if run.unseen:
        return Section("graph", "Graph", "", tag("p", run.unseen, class_="note"))
    charts = []
    if any(len(each.values[each.values > 0]) for each in run.degrees):
        charts.append(_degrees(run))
    if run.density is not None and run.density.arcs:
        charts.append(_matrix(run, run.density))
    if not charts:
        told = "The graph has no arcs." if run.degrees else ""
        return Section("graph", "Graph", told, Html("")) if told else None
    return Section("graph", "Graph", _graph_told(run), tag("div", *charts, class_="grid"))


def _graph_told(run: Run) -> str:
    found = run.figures.get("graph") or {}
    if not found.get("vertices"):
        return ""
    mean = found["arcs"] / found["vertices"]
    alone = found["vertices"] - found.get("active", found["vertices"])
    told = f"{mean:.3g} arcs to a vertex on average"
    most = max((int(each.values[-1]) for each in run.degrees if len(each.values)), default=0)
    told += f", at most {most:,}" if most else ""
    return f"{told}; {words.number(alone, 'vertex has', 'vertices have')} none." if alone else f"{told}."


def _degrees(run: Run) -> Html:
    series, rows = [], []
    for each in run.degrees:
        name = each.name.replace("_", "-").replace("out-degree", "out").replace("in-degree", "in")
        positive = each.values > 0
        x, y = each.values[positive], each.counts[positive]
        if len(x) > POINTS:
            keep = np.unique(
                np.concatenate([np.arange(POINTS // 3), np.geomspace(POINTS // 3, len(x) - 1, POINTS * 2 // 3)]).astype(
                    int
                )
            )
            x, y = x[keep], y[keep]
        label = f"{name}-degree" if len(run.degrees) > 1 else "vertices"
        series.append({"name": label, "type": "points", "x": x.tolist(), "y": y.tolist()})
        bins = each.binned(6)
        if bins.edges is not None:
            spans = zip(bins.edges[:-1], bins.edges[1:], bins.counts, strict=True)
            rows += [
                (label, f"{low:,.0f} to {high - 1:,.0f}" if high - 1 > low else f"{low:,.0f}", f"{count:,}")
                for low, high, count in spans
                if count
            ]
    run.drawings["degrees"] = {
        "kind": "xy",
        "x": {"label": "degree", "unit": "count", "log": True},
        "y": {"label": "vertices", "unit": "count", "log": True},
        "series": series,
        "square": True,
    }
    told = "How many vertices have each degree, on logarithmic axes."
    return chart("degrees", "Degrees", told, table(("", "degree", "vertices"), rows, caption="Degrees", left=1))


def _matrix(run: Run, density: Dense) -> Html:
    counts = np.asarray(density.counts, np.float64)
    most = float(counts.max())
    shades = np.ceil(255 * np.log1p(counts) / np.log1p(most)).astype(np.uint8) if most else counts.astype(np.uint8)
    run.drawings["matrix"] = {
        "kind": "heat",
        "size": len(counts),
        "vertices": density.vertices,
        "most": most,
        "shades": base64.b64encode(shades.tobytes()).decode(),
    }
    seen = "" if density.sampled == 1 else f" Estimated from {words.share(density.sampled, 1)} of the pages."
    each = words.count(density.vertices / max(1, len(counts)))
    told = f"Arcs from row to column, vertices by descending degree, about {each} to a dot.{seen}"
    quarters = _quarters(counts)
    return chart(
        "matrix",
        "Adjacency",
        told,
        table(("from", "to", "arcs"), quarters, caption="Arcs by quarters of the vertices", left=2),
        kind="heat",
    )


def _quarters(counts: np.ndarray) -> list[tuple[str, str, str]]:
    cuts = np.linspace(0, len(counts), 5).astype(int)
    names = ("1st quarter", "2nd quarter", "3rd quarter", "4th quarter")
    total = counts.sum()
    return [
        (names[i], names[j], words.share(counts[cuts[i] : cuts[i + 1], cuts[j] : cuts[j + 1]].sum(), total))
        for i in range(4)
        for j in range(4)
    ]


# ---- result


def result(run: Run) -> Section | None:
    """The rows on top, and how the values are distributed."""
    parts = []
    if run.top is not None and run.top[1]:
        names, rows = run.top
        body = [[place, *(words.value(cell) for cell in row)] for place, row in enumerate(rows, 1)]
        listed = table(("", *names), body, caption="Rows of the result", left=1)
        title = "On top" if run.ordered else "The first rows"
        told = f"The {len(rows)} largest by {names[1]}." if run.ordered and len(names) > 1 else f"{len(rows)} of them."
        parts.append(tag("figure", tag("figcaption", tag("strong", title), tag("span", told)), listed))
    if run.values is not None and len(run.values.counts):
        parts.append(_values(run, run.values))
    return Section("result", "Result", _result_told(run), tag("div", *parts, class_="grid")) if parts else None


def _values(run: Run, values: Counted) -> Html:
    sizes = values.of == "sizes"
    drawn: Any = values.binned(8) if sizes and len(values.values) > 1 else values
    span = [float(value) for value in drawn.values]
    series: dict[str, Any] = {"name": "groups" if sizes else "vertices", "y": [int(count) for count in drawn.counts]}
    if drawn.edges is None:
        series |= {"type": "bars", "x": span}
        whole = values.values.dtype.kind in "iu"
        x = {"label": values.name, "unit": "whole" if whole else "number", "log": sizes and len(span) > 1}
        rows = [
            (words.value(value), f"{count:,}")
            for value, count in zip(values.values.tolist(), values.counts.tolist(), strict=True)
        ]
    else:
        edges = [float(edge) for edge in drawn.edges]
        series |= {"type": "bins", "x": span, "edges": edges}
        x = {"label": values.name, "unit": "number", "log": bool(drawn.log)}
        ranges = zip(edges[:-1], edges[1:], drawn.counts.tolist(), strict=True)
        rows = [(f"{low:.4g} to {high:.4g}", f"{count:,}") for low, high, count in ranges if count]
    if sizes:
        x["label"] = f"vertices with the same {values.name}"
    counts = [count for count in series["y"] if count]
    wide = max(counts) / min(counts) > 50
    run.drawings["values"] = {
        "kind": "xy",
        "x": x,
        "y": {"label": series["name"], "unit": "count", "log": wide, "zero": not wide},
        "series": [series],
    }
    title = f"Sizes of groups by {values.name}" if sizes else f"Distribution of {values.name}"
    head = ("size" if sizes else values.name, series["name"])
    return chart("values", title, _values_told(values), table(head, rows[:200], caption=title))


def _values_told(values: Counted) -> str:
    if values.of == "sizes":
        groups = int(values.counts.sum())
        largest = words.number(int(values.values[-1]), "vertex", "vertices")
        return f"{words.number(groups, 'group')}; the largest has {largest}."
    parts = []
    if values.zeros:
        parts.append(f"{words.number(values.zeros, 'vertex has', 'vertices have')} 0 and no place on this axis")
    if values.nulls:
        parts.append(f"{words.number(values.nulls, 'vertex has', 'vertices have')} no value")
    if values.odd:
        parts.append(f"{words.number(values.odd, 'value is', 'values are')} no finite number")
    return (
        "; ".join(parts).capitalize() + "."
        if parts
        else f"Of {words.number(int(values.counts.sum()), 'vertex', 'vertices')}."
    )


def _result_told(run: Run) -> str:
    figures = run.figures
    told = [
        f"{words.count(figures[name])} {name}"
        for name in ("components", "triangles", "communities", "clusters", "hubs", "outliers")
        if isinstance(figures.get(name), int)
    ]
    return ", ".join(told).capitalize() + "." if told else ""


__all__ = ["graph", "result"]
