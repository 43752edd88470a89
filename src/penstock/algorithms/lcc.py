"""Local clustering coefficient: what share of the arcs that could be among a vertex's neighbours are there.

Returns   lcc, a float from 0 to 1 per vertex; 0 for less than two neighbours.
Needs     any graph. N(v) are the vertices that v has arcs from or to, without v; parallel arcs count once.
Defined   lcc(v) = sum_{u in N(v)} |N(v) & Nout(u)| / (|N(v)| (|N(v)| - 1)): each triangle adds the arcs, one or two,
          between the other two corners; two where edges have no direction.
Passes    as triangles.
Ref       Watts and Strogatz 1998; LDBC Graphalytics 2.3.6
"""

from __future__ import annotations

from penstock.algorithms.job import Job
from penstock.engine.explain import Stage
from penstock.engine.program import Pair
from penstock.result import Result
from penstock.store.reader import Store


def init(v, p):
    return 0.0


def between(arcs, p):
    return arcs


def share(v, total, p):
    return total / (v.neighbours * (v.neighbours - 1.0)) if v.neighbours > 1 else 0.0


def share_of_edges(v, total, p):
    return 2.0 * total / (v.neighbours * (v.neighbours - 1.0)) if v.neighbours > 1 else 0.0


def program(directed: bool) -> Pair:
    """Without directions it is enough to count triangles, which is faster."""
    return Pair(
        name="lcc",
        state={"lcc": "float64"},
        reads=("neighbours",),
        init=init,
        corner=between if directed else None,
        update=share if directed else share_of_edges,
    )


def lcc(job: Job) -> Result:
    """What share of the possible arcs among a vertex's neighbours are there."""
    outcome = job.engine.run(program(job.store.directed))
    return job.result(outcome, outcome.state, **outcome.totals)


def stages(store: Store) -> list[Stage]:
    """What a run would do."""
    return [Stage(program(store.directed), 1)]
