"""Community detection by label propagation: everyone takes the label that is commonest around, all at once.

Returns   label, a vertex.
Needs     the arcs; of a directed graph those of both directions.
Defined   starts with the own id; of equally common labels the smallest id wins. In- and out-neighbours count, each as
          often as there are arcs; an undirected edge counts once. Without neighbours the label stays.
Passes    one over the arcs (of each direction) per iteration, until nothing changes or max_iter.
Ref       Raghavan et al. 2007; LDBC Graphalytics 2.3.5
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from penstock.algorithms.job import Job
from penstock.engine.explain import Stage
from penstock.engine.mode import mode
from penstock.engine.plan import number_dtype
from penstock.engine.program import Row, change_below
from penstock.engine.ranks import from_ranks, ranks
from penstock.errors import UsageError
from penstock.result import Result
from penstock.store.reader import Store


def init(v, p):
    return v.number


def emit(v, p):
    return v.label


def commonest(v, labels, p):
    return mode(labels) if len(labels) > 0 else v.label


def changed(v, new, p):
    return 1.0 if new != v.label else 0.0


def program(number: np.dtype) -> Row:
    """Labels are the ranks of ids, which compare like them."""
    return Row(
        name="cdlp",
        state={"label": number},
        reads=("number",),
        along="both",
        init=init,
        message=number,
        emit=emit,
        row=commonest,
        change=changed,
    )


def cdlp(
    job: Job,
    *,
    max_iter: Annotated[int, "Stop after so many iterations."] = 10,
) -> Result:
    """Communities by label propagation."""
    if max_iter < 1:
        raise UsageError(f"max_iter must be at least 1, not {max_iter}")
    chosen = program(number_dtype(job.store))
    plan = job.engine.plan(chosen)
    with job.stats.phase("ranks"):
        label = ranks(job.engine, number_dtype(job.store), plan.ranges)
    outcome = job.engine.run(chosen, vectors={"label": label}, until=change_below(1, max_iter))
    with job.stats.phase("label"):
        label = from_ranks(job.engine, outcome.state["label"], plan.ranges)
    label[outcome.slots.body] = outcome.slots.body
    return job.result(
        outcome, {"label": label}, references=("label",), iterations=outcome.steps, converged=outcome.change < 1
    )


def stages(store: Store, *, max_iter: int = 10) -> list[Stage]:
    """What a run would do."""
    return [Stage(program(number_dtype(store)), max_iter, "at most, stops when no label changes")]
