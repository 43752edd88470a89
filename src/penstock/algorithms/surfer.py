"""PageRank in its general form: weighted arcs, and where the surfer begins, restarts and goes on from dead ends.

Returns   a rank per slot, in the shared vector `rank`.
Needs     what PageRank needs; the column of weights, if there is one.
Defined   r'(v) = d * (sum_{u->v} r(u) w(u,v)/s(u) + s0 * sum_{u: s(u)=0} r(u)) + (1-d) * t(v), where s(u) sums the
          weights of u's arcs, t is the restart and s0 = sink(v) the share of v in what dead ends pass on.
Passes    one over the arcs per iteration, and one to sum the weights.
Ref       Haveliwala 2002; networkx.pagerank
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from penstock.algorithms.job import Job
from penstock.engine.engine import Outcome
from penstock.engine.monoid import SUM
from penstock.engine.program import Combine, change_below, iterations
from penstock.engine.vectors import Slots

FIELDS = {"rank": "float64", "strength": "float64", "restart": "float64", "sink": "float64"}


def nothing(v, p):
    return 0.0


def zeros(v, p):
    return 0.0, 0.0, 0.0, 0.0


def one(v, p):
    return 1.0


def times(message, e, p):
    return message * float(e[0])


def take(v, total, p):
    return total


STRENGTH = Combine(
    name="strength", state={"strength": "float64"}, along="in", init=nothing, message="float64", emit=one,
    combine=SUM, update=take,
)  # fmt: skip


def share(v, p):
    return v.rank / v.strength if v.strength != 0 else 0.0


def stranded(v, p):
    return v.rank if v.strength == 0 else 0.0


def move(v, total, p):
    rank = p.damping * (total + p.tally * v.sink) + (1.0 - p.damping) * v.restart
    return rank, v.strength, v.restart, v.sink


def change(v, new, p):
    return abs(new[0] - v.rank)


SURF = Combine(
    name="surfer", state=FIELDS, params={"damping": 0.85}, init=zeros, message="float64", emit=share, combine=SUM,
    update=move, tally=stranded, change=change,
)  # fmt: skip


def along(program: Combine, weight: str | None) -> Combine:
    """The program over arcs of this weight."""
    return program if weight is None else replace(program, columns=(weight,), edge=times)


def surfer(
    job: Job,
    slots: Slots,
    fill: Callable[[str, np.ndarray], None],
    *,
    weight: str | None = None,
    damping: float = 0.85,
    tol: float = 1e-6,
    max_iter: int = 100,
) -> Outcome:
    """The ranks. `fill(name, vector)` sets `rank`, `restart` and `sink`, each of sum 1."""
    engine = job.engine
    vectors = {name: engine.vectors.make(slots.count, kind, name) for name, kind in FIELDS.items()}
    for name in ("rank", "restart", "sink"):
        fill(name, vectors[name])
    engine.near.offer(*vectors.values())
    strength = {"strength": vectors["strength"]}
    engine.run(along(STRENGTH, weight), vectors=strength, slots=slots, until=iterations(1))
    outcome = engine.run(
        along(SURF, weight),
        params={"damping": damping},
        vectors=vectors,
        slots=slots,
        until=change_below(tol, max_iter),
    )
    engine.home(outcome.state["rank"])
    return outcome
