"""GIM-V: matrix-vector multiplication with the user's own combine2, combineAll and assign, again and again.

Returns   value, a number per vertex (lanes: one row of them).
Defined   v'(i) = assign(v(i), combineAll over j of combine2(m(i, j), v(j))); an arc j -> i is the element m(i, j).
Stops     when all elements are converged, or after max_iter iterations.
Methods   fused: a combine program on the engine, one pass over the arcs per iteration. mapreduce: two MapReduce stages
          per iteration, as published. The results are the same.
Ref       Kang et al. 2009 (PEGASUS), GIM-V
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from penstock.algorithms.job import Job
from penstock.config import settings
from penstock.engine.compile import usable
from penstock.engine.monoid import MAX, MIN, OR, SUM, Monoid
from penstock.engine.program import Combine, change_below, iterations
from penstock.errors import UsageError
from penstock.graph import Graph
from penstock.result import Result

MONOIDS = {"sum": SUM, "min": MIN, "max": MAX, "or": OR}
METHODS = ("fused", "mapreduce")
MOST = 1 << 31
_DEGREES = {"out": "out_degree", "in": "in_degree"}
_MAPREDUCE = ("chunk_size", "force_out_of_core", "remember")


def gimv(
    graph: Graph | str | os.PathLike[str],
    combine2: Callable[..., Any],
    combine_all: Monoid | str,
    assign: Callable[..., Any],
    vector: Callable[..., Any],
    *,
    method: str = "fused",
    matrix: str = "ones",
    converged: Callable[..., Any] | None = None,
    tally: Callable[..., Any] | None = None,
    monotone: bool = False,
    dtype: Any = "float64",
    contribution: Any = None,
    lanes: int = 1,
    along: str = "out",
    params: Mapping[str, Any] | None = None,
    source: Any = None,
    max_iter: int | None = None,
    **options: Any,
) -> Result:
    """Multiply until nothing changes.

    combine2(m, v, p)     of a matrix element and a vector element
    combine_all           "sum", "min", "max", "or" or a Monoid: of the results of a row
    assign(v, total, p)   the new element; v.value is the old one, v.seed 1 + its place among the sources, or 0
    vector(v, p)          the first element, of v.number, v.seed and v.lane
    converged(v, new, p)  whether an element is settled; by default, whether it stays the same
    tally(v, p)           a number per element, summed over all: p.tally in assign
    matrix                ones, normalised (each column sums to 1), or the name of an edge column
    monotone              what did not change need not be sent again: for minima, maxima and sets
    p                     has params, p.vertices, p.step, p.tally

    >>> gimv(g, lambda m, v, p: m * v, "sum", assign, first, matrix="normalised", max_iter=10)   # doctest: +SKIP
    """
    graph = as_graph(graph)
    program = as_program(
        combine2, combine_all, assign, vector, matrix=matrix, converged=converged, tally=tally, monotone=monotone,
        dtype=dtype, contribution=contribution, lanes=lanes, along=along, params=params,
    )  # fmt: skip
    job = make_job(graph, method, "gimv", {"matrix": matrix}, options)
    most = MOST if max_iter is None else max_iter
    try:
        seeds = job.seeds(source) if source is not None else []
        until = iterations(most) if monotone else change_below(1, most)
        outcome = job.engine.run(program, seeds=seeds, until=until)
        settled = outcome.change < 1 if not monotone else outcome.steps < most
        return job.result(outcome, outcome.state, iterations=outcome.steps, converged=bool(settled), method=method)
    finally:
        job.close()


def as_graph(graph: Any) -> Graph:
    """A graph, or the one of a store's path."""
    return graph if isinstance(graph, Graph) else Graph.open(graph)


def make_job(graph: Graph, method: str, name: str, notes: Mapping[str, Any], options: Mapping[str, Any]) -> Job:
    """A job whose engine is the one of this method. `options` are settings, and those of MapReduce."""
    if method not in METHODS:
        raise UsageError(f"method must be fused or mapreduce, not {method!r}")
    chosen = settings(**{key: value for key, value in options.items() if key not in _MAPREDUCE})
    given = {key: options[key] for key in _MAPREDUCE if key in options}
    if given and method == "fused":
        raise UsageError(f"{next(iter(given))} is an option of method='mapreduce'")
    if method == "mapreduce" and chosen.checkpoint is not None:
        raise UsageError("method='mapreduce' saves no checkpoints: use method='fused', or leave checkpoint out")
    job = Job(graph, chosen, name, {"method": method, **notes})
    if method == "mapreduce":
        from penstock.algorithms.gimv.stages import TwoStage

        job.engine.close()
        job.engine = TwoStage(graph.store, chosen, job.stats, card=graph.card)
        for key, value in given.items():
            setattr(job.engine, key, value)
    return job


def as_program(
    combine2: Callable[..., Any],
    combine_all: Monoid | str,
    assign: Callable[..., Any],
    vector: Callable[..., Any],
    *,
    matrix: str = "ones",
    converged: Callable[..., Any] | None = None,
    tally: Callable[..., Any] | None = None,
    monotone: bool = False,
    dtype: Any = "float64",
    contribution: Any = None,
    lanes: int = 1,
    along: str = "out",
    params: Mapping[str, Any] | None = None,
) -> Combine:
    """The combine program that does the same. Where the matrix element depends on its column alone, combine2 runs once
    for a column, not for each of its elements."""
    if isinstance(combine_all, str) and combine_all not in MONOIDS:
        raise UsageError(f"combine_all must be a Monoid or one of {', '.join(MONOIDS)}, not {combine_all!r}")
    if matrix == "normalised" and along not in _DEGREES:
        raise UsageError("a normalised matrix needs along='out' or along='in'")
    combine2, assign, vector = usable(combine2), usable(assign), usable(vector)
    settled = usable(converged or _same)
    columns = () if matrix in ("ones", "normalised") else (matrix,)
    emit, edge = _senders(combine2, matrix, along)
    reads: tuple[str, ...] = ("number", "seed", "lane")
    if matrix == "normalised" or tally is not None:
        reads += (_DEGREES.get(along, "out_degree"),)
    update, init = assign, vector
    if monotone:

        def update(v, total, p):
            new = assign(v, total, p)
            return new, new != v.value

        def init(v, p):
            return vector(v, p), True

    def unsettled(v, new, p):
        return 0.0 if settled(v, new, p) else 1.0

    return Combine(
        name="gimv",
        state={"value": dtype},
        reads=reads,
        params=dict(params or {}),
        columns=columns,
        along=along,  # type: ignore[arg-type]
        init=init,
        message=dtype,
        contribution=contribution,
        emit=emit,
        edge=edge,
        combine=MONOIDS[combine_all] if isinstance(combine_all, str) else combine_all,
        update=update,
        tally=tally,
        change=None if monotone else unsettled,
        frontier=monotone,
        lanes=lanes,
    )


def _same(v, new, p):
    return new == v.value


def _senders(combine2: Callable[..., Any], matrix: str, along: str) -> tuple[Any, Any]:
    """What a column sends, and what an element makes of it."""
    if matrix == "ones":

        def one(v, p):
            return combine2(1, v.value, p)

        return one, None
    if matrix == "normalised":
        # Compiled functions see fields by name.
        def along_out(v, p):
            return combine2(1.0 / v.out_degree, v.value, p) if v.out_degree > 0 else v.value

        def along_in(v, p):
            return combine2(1.0 / v.in_degree, v.value, p) if v.in_degree > 0 else v.value

        return (along_out if along == "out" else along_in), None

    def value(v, p):
        return v.value

    names: dict[str, Any] = {"combine2": combine2, "__name__": __name__}
    if not matrix.isidentifier():
        raise UsageError(f"matrix must be ones, normalised or the name of an edge column, not {matrix!r}")
    exec(f"def element(message, e, p):\n    return combine2(e.{matrix}, message, p)\n", names)
    return value, names["element"]


__all__ = ["METHODS", "as_graph", "as_program", "gimv", "make_job"]
