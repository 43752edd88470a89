"""Checkers of rankings: they are fixed points, so one more step of the definition must leave them where they are.

A step of PageRank brings any two rankings closer by the factor `damping` in L1. So what a run leaves for the next
step that stopped at a change below `tol` is less than `damping * tol`, on whatever tier and in whatever order it was
summed. Where a run stopped by another rule, or after so many iterations, those are made again from the start.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import UsageError
from penstock.graph import Graph
from penstock.verify.common import Answer, arcs, checker, source_numbers, wrong

_ROUNDING = {False: 1e-10, True: 1e-3}
"""How far all ranks together may be off because of rounding: computed in float64, and in float32."""
STOPS = ("l1", "max", "vertex", "fixed")


@checker
def check_pagerank(
    graph: Graph,
    table: pa.Table,
    *,
    damping: float = 0.85,
    tol: float = 1e-6,
    max_iter: int = 100,
    dangling: str = "spread",
    stop: str = "l1",
    dtype: str | None = None,
) -> Iterator[str]:
    """PageRank: sum 1, no rank below (1-d)/n, and another step changes no more than the options allow."""
    if dangling not in ("spread", "drop") or stop not in STOPS:
        raise UsageError(f"dangling is spread or drop and stop is one of {', '.join(STOPS)}, not {dangling}, {stop}")
    n = graph.vertices
    everywhere = np.full(n, 1 / n) if n else np.zeros(0)
    lost = everywhere if dangling == "spread" else np.zeros(n)
    yield from _check_ranks(graph, table, everywhere, lost, damping, tol, max_iter, stop, dtype)


@checker
def check_ppr(
    graph: Graph,
    table: pa.Table,
    *,
    source: Any = None,
    damping: float = 0.85,
    tol: float = 1e-6,
    max_iter: int = 100,
    stop: str = "l1",
    dtype: str | None = None,
) -> Iterator[str]:
    """Personalised PageRank: like PageRank, with all jumps to the sources."""
    sources = source_numbers(graph, source)
    home = np.zeros(graph.vertices)
    home[sources] = 1 / len(sources)
    yield from _check_ranks(graph, table, home, home, damping, tol, max_iter, stop, dtype)


def _check_ranks(
    graph: Graph,
    table: pa.Table,
    home: np.ndarray,
    lost: np.ndarray,
    damping: float,
    tol: float,
    max_iter: int,
    stop: str,
    dtype: str | None,
) -> Iterator[str]:
    """`home` is where the surfer starts and jumps to, `lost` where one goes who finds no arc."""
    if not 0 <= damping < 1:
        raise UsageError(f"damping must be at least 0 and less than 1, not {damping}")
    answer = Answer(graph, table)
    rank = answer.numbers("rank")
    if not len(rank):
        return
    # Text forgets what the ranks were computed in; then it must be said.
    slack = _ROUNDING[dtype == "float32" or answer.is_single("rank")]
    if not np.isfinite(rank).all():
        yield from wrong(graph, ~np.isfinite(rank), "has a rank that is no finite number")
        return
    least = (1 - damping) * home * (1 - slack)
    yield from wrong(graph, rank < least, "has a rank below what jumps alone give it")
    total = float(rank.sum())
    whole = bool(lost.any())
    if abs(total - 1) > slack if whole else total > 1 + slack:
        yield f"the ranks sum to {total:.12g}, not to {'1' if whole else '1 or less'}"
    out = np.zeros(len(rank), np.int64)
    for tail, _, _ in arcs(graph):
        out += np.bincount(tail, minlength=len(rank))
    change = np.abs(_step(graph, rank, out, home, lost, damping) - rank)
    if _settled(change, (damping if stop == "l1" else 1) * tol, stop, slack):
        return
    expected, settled, iterations = home, False, 0
    while not settled and iterations < max_iter:
        new = _step(graph, expected, out, home, lost, damping)
        last = np.abs(new - expected)
        expected, settled, iterations = new, _settled(last, tol, stop), iterations + 1
    off = np.abs(rank - expected)
    if not settled:
        yield from wrong(graph, off > max(slack, 1e-9) * expected, f"has another rank than {max_iter} iterations give")
    elif off.sum() > last.sum() + slack:  # rounding may have stopped it an iteration earlier or later
        residual = float(change.sum())
        yield f"one more step changes the ranks by {residual:.3g} (L1), and {iterations} from the start end elsewhere"


def _settled(change: np.ndarray, tol: float, stop: str, slack: float = 0.0) -> bool:
    if stop == "l1":
        return bool(change.sum() <= tol + slack)
    return stop != "fixed" and bool(change.max() <= tol)


def _step(
    graph: Graph, rank: np.ndarray, out: np.ndarray, home: np.ndarray, lost: np.ndarray, damping: float
) -> np.ndarray:
    share = np.divide(rank, out, out=np.zeros(len(rank)), where=out > 0)
    total = np.zeros(len(rank))
    for tail, head, _ in arcs(graph):
        total += np.bincount(head, share[tail], len(rank))
    return (1 - damping) * home + damping * (total + rank[out == 0].sum() * lost)


@checker
def check_hits(graph: Graph, table: pa.Table, *, tol: float = 1e-8, max_iter: int = 100) -> Iterator[str]:
    """Hubs and authorities: both sum to 1, hubs follow from authorities, and another round changes them little. If
    it changes more, the result must be where all rounds from the start end."""
    answer = Answer(graph, table)
    hub, authority = answer.numbers("hub"), answer.numbers("authority")
    n = graph.vertices
    if not n:
        return
    for column, values in (("hub", hub), ("authority", authority)):
        bad = ~(np.isfinite(values) & (values >= 0))
        if bad.any():
            yield from wrong(graph, bad, f"has a value of column {column!r} that is negative or no finite number")
            return
        if abs(values.sum() - 1) > _ROUNDING[False]:
            yield f"column {column!r} sums to {values.sum():.12g}, not to 1"
            return
    if not graph.arcs:
        even = np.full(n, 1 / n)
        yield from wrong(graph, ~np.isclose(hub, even) | ~np.isclose(authority, even), "should have 1/n in both")
        return
    off = float(np.abs(_gathered(graph, authority, forwards=False) - hub).sum())
    if off > _ROUNDING[False]:
        yield f"the hubs are not the sums of their authorities: together they are {off:.3g} off (L1)"
    residual = float(np.abs(_round(graph, hub) - hub).sum())
    if residual <= tol + _ROUNDING[False]:
        return
    expected, change, rounds = np.full(n, 1 / n), np.inf, 0
    while change >= tol and rounds < max_iter:
        new = _round(graph, expected)
        change, expected, rounds = float(np.abs(new - expected).sum()), new, rounds + 1
    # Rounding may have stopped it a round earlier or later.
    if np.abs(expected - hub).sum() > 2 * tol + 1e-6:
        yield f"one more round changes the hubs by {residual:.3g} (L1), and {rounds} rounds from 1/n end elsewhere"


def _round(graph: Graph, hub: np.ndarray) -> np.ndarray:
    return _gathered(graph, _gathered(graph, hub, forwards=True), forwards=False)


def _gathered(graph: Graph, values: np.ndarray, *, forwards: bool) -> np.ndarray:
    """The sum of values over the arcs, along them or against them, divided by its own sum."""
    total = np.zeros(len(values))
    for tail, head, _ in arcs(graph):
        here, there = (tail, head) if forwards else (head, tail)
        total += np.bincount(there, values[here], len(values))
    whole = total.sum()
    return total / whole if whole > 0 else total
