"""PageRank: how often a random surfer is at each vertex.

Returns   rank, a float per vertex; they sum to 1 when dangling mass is spread.
Needs     the incoming arcs of a directed graph, or slower the outgoing ones; of an undirected one, its arcs.
Defined   r'(v) = (1-d)/n + d * sum_{u->v} r(u)/out(u) + d/n * sum_{u: out(u)=0} r(u),  r0 = 1/n
          dangling="drop" leaves the last sum out, as PEGASUS does.
Stops     l1: the changes sum to less than tol; max: the largest is less than tol; vertex: none exceeds tol (PEGASUS,
          tol = 1/(10n)); fixed: after max_iter iterations (LDBC, TOTEM, GStream).
Passes    one over the arcs per iteration, each page read at most once.
Ref       Page et al. 1999; LDBC Graphalytics 2.3.2
"""

from __future__ import annotations

import math
from typing import Annotated

from penstock.algorithms.job import Job, floats
from penstock.engine.engine import Until
from penstock.engine.explain import Stage
from penstock.engine.monoid import MAX, SUM
from penstock.engine.program import Combine, change_below, iterations
from penstock.errors import UsageError
from penstock.result import Result
from penstock.store.reader import Store


def init(v, p):
    return 1.0 / p.vertices


def emit(v, p):
    return v.rank / v.out_degree if v.out_degree > 0 else 0.0


def dangling_mass(v, p):
    return v.rank if v.out_degree == 0 else 0.0


def update(v, total, p):
    return (1.0 - p.damping) / p.vertices + p.damping * (total + p.tally / p.vertices)


def change(v, new, p):
    return abs(new - v.rank)


def unsettled(v, new, p):
    return 1.0 if abs(new - v.rank) > p.tol else 0.0


def program(dtype: str, dangling: str = "spread", stop: str = "l1") -> Combine:
    """PageRank in one of its conventions."""
    return Combine(
        name="pagerank",
        state={"rank": dtype},
        reads=("out_degree",),
        params={"damping": 0.85, "tol": 1e-6},
        init=init,
        message=dtype,
        emit=emit,
        combine=SUM,
        update=update,
        tally=dangling_mass if dangling == "spread" else None,
        change=unsettled if stop == "vertex" else change,
        change_by=MAX if stop == "max" else SUM,
    )


def pagerank(
    job: Job,
    *,
    damping: Annotated[float, "How likely the surfer follows an edge."] = 0.85,
    tol: Annotated[float, "Stop when the ranks change by less; see stop."] = 1e-6,
    max_iter: Annotated[int, "Stop after so many iterations."] = 100,
    dtype: Annotated[str, "float64, or float32 for half the memory."] = "float64",
    dangling: Annotated[str, "What vertices without outgoing arcs do with their rank: spread or drop it."] = "spread",
    stop: Annotated[str, "What tol bounds: l1 (all changes together), max, vertex; or fixed iterations."] = "l1",
) -> Result:
    """How often a random surfer is at each vertex."""
    check(damping, tol, max_iter)
    if dangling not in ("spread", "drop"):
        raise UsageError(f"dangling must be spread or drop, not {dangling!r}")
    rules: dict[str, Until] = {
        "l1": change_below(tol, max_iter),
        "max": change_below(tol, max_iter),
        "vertex": change_below(1, max_iter),
        "fixed": iterations(max_iter),
    }
    if stop not in rules:
        raise UsageError(f"stop must be one of {', '.join(rules)}, not {stop!r}")
    outcome = job.engine.run(
        program(floats(dtype), dangling, stop), params={"damping": damping, "tol": tol}, until=rules[stop]
    )
    converged = stop != "fixed" and outcome.change < (1 if stop == "vertex" else tol)
    return job.result(outcome, outcome.state, iterations=outcome.steps, residual=outcome.change, converged=converged)


def stages(
    store: Store, *, dtype: str = "float64", max_iter: int = 100, stop: str = "l1", tol: float = 1e-6,
    damping: float = 0.85, dangling: str = "spread",
) -> list[Stage]:  # fmt: skip
    """What a run would do. The changes shrink by the damping with each iteration, at least."""
    if stop == "fixed":
        return [Stage(program(floats(dtype), dangling, stop), max_iter)]
    known = 0 < tol < 1 and damping > 0 and stop == "l1"
    likely = min(max_iter, math.ceil(math.log(tol / 2) / math.log(damping))) if known else max_iter
    return [Stage(program(floats(dtype), dangling, stop), likely, "at most, stops at the tolerance")]


def check(damping: float, tol: float, max_iter: int) -> None:
    """Refuse what makes no sense."""
    if not 0 <= damping < 1:
        raise UsageError(f"damping must be at least 0 and less than 1, not {damping}")
    if not tol >= 0:
        raise UsageError(f"tol must not be negative, not {tol}")
    if max_iter < 1:
        raise UsageError(f"max_iter must be at least 1, not {max_iter}")
