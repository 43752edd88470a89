"""What PEGASUS computes by GIM-V, on either method: the algorithms of Penstock, whose functions are combine2 (emit and
edge), combineAll (combine) and assign (update), and connected components by HCC."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from penstock.algorithms import pagerank as ranking
from penstock.algorithms import ppr, radius
from penstock.algorithms.gimv.operation import MOST, as_graph, as_program, make_job
from penstock.algorithms.job import Job
from penstock.engine.plan import number_dtype
from penstock.engine.program import iterations
from penstock.engine.representatives import Representatives
from penstock.errors import UsageError
from penstock.graph import Graph
from penstock.result import Result

Source = Graph | str | os.PathLike[str]
"""A graph, or the path of its store."""
SCALES = ("none", "max", "sum")


def pagerank(
    graph: Source,
    *,
    method: str = "fused",
    damping: float = 0.85,
    tol: float | None = None,
    max_iter: int = 1024,
    dangling: str = "drop",
    stop: str = "vertex",
    dtype: str = "float64",
    scale: str = "none",
    **settings: Any,
) -> Result:
    """PageRank as PEGASUS has it: dangling mass is dropped, and it stops when no element moves by more than 1/(10 n).
    Plimpton and Devine's is dangling="spread", stop="max", scale="max", which divides by the largest rank."""
    graph = as_graph(graph)
    if scale not in SCALES:
        raise UsageError(f"scale must be one of {', '.join(SCALES)}, not {scale!r}")
    bound = 1 / (10 * max(1, graph.vertices)) if tol is None else tol
    options = {
        "damping": damping, "tol": bound, "max_iter": max_iter, "dangling": dangling, "stop": stop, "dtype": dtype,
    }  # fmt: skip
    job = make_job(graph, method, "pagerank", {**options, "scale": scale}, settings)
    try:
        if scale == "none":
            return ranking.pagerank(job, **options)  # type: ignore[arg-type]
        return _scaled(job, scale, options)
    finally:
        job.close()


def _scaled(job: Job, scale: str, options: dict[str, Any]) -> Result:
    """The ranks divided by the largest, or by their sum."""
    give = job.result

    def divided(outcome: Any, columns: Any, **notes: Any) -> Result:
        rank, slots = columns["rank"], outcome.slots
        filled = rank if slots.rest else rank[: slots.body]
        total = float(filled.max(initial=0.0))
        if scale == "sum":
            total = float(rank[: slots.body].sum()) + slots.rest * float(rank[slots.body])
        if total:
            rank /= rank.dtype.type(total)
        return give(outcome, columns, scale=scale, **notes)

    job.result = divided  # type: ignore[method-assign]
    return ranking.pagerank(job, **options)


def rwr(
    graph: Source,
    source: Any,
    *,
    method: str = "fused",
    damping: float = 0.85,
    tol: float = 1e-6,
    max_iter: int = 1024,
    dtype: str = "float64",
    **settings: Any,
) -> Result:
    """Random walk with restart at the sources."""
    graph = as_graph(graph)
    job = make_job(graph, method, "rwr", {"damping": damping, "tol": tol, "max_iter": max_iter}, settings)
    try:
        return ppr.ppr(job, source=source, damping=damping, tol=tol, max_iter=max_iter, dtype=dtype)
    finally:
        job.close()


def diameter(
    graph: Source, *, method: str = "fused", lanes: int = 32, max_iter: int = 256, seed: int = 1, **settings: Any
) -> Result:
    """Radius of each vertex and effective diameter of the graph by HADI: 32 Flajolet-Martin bit strings."""
    graph = as_graph(graph)
    job = make_job(graph, method, "radius", {"lanes": lanes, "max_iter": max_iter, "seed": seed}, settings)
    try:
        return radius.radius(job, lanes=lanes, max_iter=max_iter, seed=seed)
    finally:
        job.close()


def _send(m, v, p):
    return v


def _least(v, total, p):
    return min(v.value, total)


def _own(v, p):
    return v.number


def components(graph: Source, *, method: str = "fused", max_iter: int | None = None, **settings: Any) -> Result:
    """Connected components by HCC: every vertex takes the smallest number around it, until none changes. A component
    is called by its smallest id."""
    graph = as_graph(graph)
    job = make_job(graph, method, "components", {"max_iter": max_iter}, settings)
    try:
        names = Representatives(job.engine)
        program = as_program(_send, "min", _least, _own, monotone=True, dtype=number_dtype(graph.store), along="both")
        most = MOST if max_iter is None else max_iter
        outcome = job.engine.run(program, until=iterations(most))
        component = outcome.state["value"].astype(number_dtype(graph.store), copy=False)
        converged = outcome.steps < most
        components = None
        if converged:  # what has not settled stands for no set
            components = names.give(component, lowest=True) + outcome.slots.rest
        component[outcome.slots.body] = outcome.slots.body
        return job.result(
            outcome, {"component": np.asarray(component)}, references=("component",),
            iterations=outcome.steps, converged=converged, components=components,
        )  # fmt: skip
    finally:
        job.close()


__all__ = ["components", "diameter", "pagerank", "rwr"]
