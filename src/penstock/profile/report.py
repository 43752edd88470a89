"""The report of a result: its figures, its recording, what it and its graph look like, written as one page."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.errors import PenstockError, StoreError
from penstock.observe.report.page import page
from penstock.observe.report.run import Recorded, Run
from penstock.profile.density import density
from penstock.profile.distribution import degree_distribution, value_distribution
from penstock.store.reader import Store
from penstock.store.whole import whole_file

TOP = 15
"""Rows that are shown."""
BINS = 256
"""Dots of the matrix, each way."""


def write_report(
    path: str | os.PathLike[str],
    figures: Mapping[str, Any],
    *,
    result: Any = None,
    store: Store | None = None,
    events: Recorded | None = None,
    overwrite: bool = False,
) -> Path:
    """Write the page; complete or not at all. What is not given is left out."""
    target = Path(path)
    store, unseen = _store(figures, store)
    with whole_file(target, overwrite=overwrite) as partial:
        run = Run(figures, events, unseen=unseen, **_graph(store), **_result(result))
        partial.write_text(page(run), encoding="utf-8")
    return target


def _store(figures: Mapping[str, Any], store: Store | None) -> tuple[Store | None, str]:
    """The store that was run on: the one that is open, or if it was closed since, the one at its path."""
    if store is not None:
        return store, ""
    path = figures.get("store") or (figures.get("graph") or {}).get("path")
    if not path:
        return None, ""
    try:
        found = Store(Path(path))
    except PenstockError as error:
        return None, f"The graph cannot be shown: {error}."
    if found.vertices != (figures.get("graph") or {}).get("vertices", found.vertices):
        return None, f"The graph cannot be shown: {path} is another one by now."
    return found, ""


def _graph(store: Store | None) -> dict[str, Any]:
    if store is None:
        return {}
    # A directed graph has two distributions; which arcs are stored is of no matter to them.
    degrees = [degree_distribution(store, name) for name in (("out", "in") if store.directed else ("out",))]
    side = "out" if store.has_direction("out") else "in"
    return {"degrees": degrees, "density": density(store, BINS, side)}


def _result(result: Any) -> dict[str, Any]:
    if result is None:
        return {}
    names, rows, ordered = leading(result, TOP)
    values = value_distribution(result) if hasattr(result, "pieces_of") else None
    return {"top": (names, rows), "ordered": ordered, "values": values}


def leading(result: Any, count: int) -> tuple[list[str], list[tuple[Any, ...]], bool]:
    """The names of the columns, at most so many rows, and whether these are the largest of something: where nothing is
    large or small, they are the first ones."""
    names: list[str] = result.schema.names
    ordered = [name for name in names[1:] if name not in result.references] if hasattr(result, "references") else []
    if ordered:
        best = result.top(count, ordered[0])
        return names, list(zip(*(column.to_pylist() for column in best.columns), strict=True)), True
    rows: list[tuple[Any, ...]] = []
    for batch in result.batches():
        rows += zip(*(column.to_pylist() for column in batch.slice(0, count - len(rows)).columns), strict=True)
        if len(rows) >= count:
            break
    return names, rows, False


def open_store(graph: Any) -> Store | None:
    """The store of a graph that was not closed since."""
    try:
        return None if graph is None else graph.store
    except StoreError:
        return None


__all__ = ["leading", "open_store", "write_report"]
