"""Personalised PageRank, or random walk with restart: a surfer who always starts again at the sources.

Returns   rank, a float per vertex; they sum to 1.
Needs     what PageRank needs.
Defined   r'(v) = t(v) * ((1-d) + d * sum_{u: out(u)=0} r(u)) + d * sum_{u->v} r(u)/out(u),  r0 = t,
          t(v) = 1/k for the k sources, 0 for all others.
Stops     when the changes sum to less than tol, or after max_iter iterations.
Passes    one over the arcs per iteration.
Ref       Haveliwala 2002; Tong et al. 2006; PEGASUS
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from penstock.algorithms import pagerank
from penstock.algorithms.job import Job, floats, how_many
from penstock.engine.explain import Stage
from penstock.engine.program import Combine, change_below
from penstock.result import Result
from penstock.store.reader import Store


def init(v, p):
    return p.share if v.seed > 0 else 0.0


def update(v, total, p):
    restart = p.share * ((1.0 - p.damping) + p.damping * p.tally) if v.seed > 0 else 0.0
    return restart + p.damping * total


def program(dtype: str) -> Combine:
    """PageRank whose surfer restarts at the seeds."""
    return replace(
        pagerank.program(dtype),
        name="ppr",
        reads=("out_degree", "seed"),
        params={"damping": 0.85, "share": 1.0, "tol": 1e-6},
        init=init,
        update=update,
    )


def ppr(
    job: Job,
    *,
    source: Annotated[Any, "Where the surfer starts again: an id, or several."],
    damping: Annotated[float, "How likely the surfer follows an edge."] = 0.85,
    tol: Annotated[float, "Stop when all ranks together change by less."] = 1e-6,
    max_iter: Annotated[int, "Stop after so many iterations."] = 100,
    dtype: Annotated[str, "float64, or float32 for half the memory."] = "float64",
) -> Result:
    """How often a random surfer who starts again at the sources is at each vertex."""
    pagerank.check(damping, tol, max_iter)
    seeds = job.seeds(source)
    outcome = job.engine.run(
        program(floats(dtype)),
        params={"damping": damping, "share": 1 / len(seeds)},
        seeds=seeds,
        until=change_below(tol, max_iter),
    )
    return job.result(
        outcome, outcome.state, iterations=outcome.steps, residual=outcome.change, converged=outcome.change < tol
    )


def stages(store: Store, *, source: Any = None, dtype: str = "float64", **options: Any) -> list[Stage]:
    """What a run would do: as PageRank, with who is a source beside."""
    found = pagerank.stages(store, **options)
    return [replace(stage, program=program(floats(dtype)), seeds=how_many(source)) for stage in found]
