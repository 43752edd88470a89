"""Betweenness centrality: what share of the shortest paths between others leads through a vertex.

Returns   betweenness, a float per vertex.
Needs     arcs in both directions to turn around; outgoing ones are enough. Arcs are followed forwards, unweighted.
Defined   b(v) = sum_{s != v != t} paths(s, t through v) / paths(s, t); parallel arcs are different paths. By source s:
          share(u) = sum over arcs u->v one level down of paths(u) / paths(v) * (1 + share(v)), b(u) = sum_s share(u).
          Each undirected pair counts once. Normalised by the number of such pairs, (n-1)(n-2), undirected half of it.
          samples=k: k random sources, scaled by n / k. sources: the plain sum over these, neither scaled nor halved.
Passes    two over the arcs per source: down level by level (the pages of the frontier, or of those not yet reached),
          and up again (the pages of one level at a time).
Ref       Brandes 2001; Brandes and Pich 2007
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import numpy as np

from penstock.algorithms.job import Job, how_many
from penstock.algorithms.shared import Shared, stages_of
from penstock.engine.explain import Stage
from penstock.engine.monoid import SUM
from penstock.engine.program import Combine, iterations
from penstock.errors import UsageError
from penstock.result import Result
from penstock.store.reader import Store

FAR = np.uint32(0xFFFFFFFF)
"""The level of a vertex that was not reached."""
STATE = {"level": "uint32", "paths": "float64", "share": "float64", "total": "float64"}


def start(v, p):
    return FAR, 0.0, 0.0, 0.0, False


def paths_so_far(v, p):
    return v.paths


def unreached(v, p):
    return v.level == FAR


def reach(v, paths, p):
    return np.uint32(p.step + 1), paths, 0.0, v.total, True


DOWN = Combine(
    name="shortest paths",
    state=STATE,
    init=start,
    message="float64",
    emit=paths_so_far,
    combine=SUM,
    wants=unreached,
    update=reach,
    frontier=True,
)
"""A level per superstep, and how many shortest paths lead to each vertex."""


def share_of_a_path(v, p):
    return (1.0 + v.share) / v.paths


def one_level_up(v, p):
    return v.level == p.level - 1


def depend(v, shares, p):
    share = v.paths * shares
    return v.level, v.paths, share, v.total + share, True


UP = Combine(
    name="dependencies",
    state=STATE,
    params={"level": 0},
    init=start,
    along="in",
    message="float64",
    emit=share_of_a_path,
    combine=SUM,
    wants=one_level_up,
    update=depend,
    frontier=True,
)
"""One superstep: what the vertices of a level hand to those before them."""


def betweenness(
    job: Job,
    *,
    samples: Annotated[int | None, "Search from so many random vertices only, and scale the sums up."] = None,
    sources: Annotated[Any, "Search from these ids only; their plain sums."] = None,
    normalized: Annotated[bool, "Divide by the number of pairs of other vertices."] = True,
    seed: Annotated[int, "Of the random choice."] = 0,
) -> Result:
    """What share of the shortest paths between others leads through a vertex."""
    n, scale = job.store.vertices, 1.0
    if samples is not None and sources is not None:
        raise UsageError("betweenness takes samples or sources, not both")
    chosen: Iterable[int] = range(n)
    if sources is not None:
        chosen = job.seeds(sources)
    else:
        if samples is not None:
            chosen, scale = job.sample(samples, seed).tolist(), n / samples
        scale *= 1.0 if job.store.directed else 0.5
        if normalized and n > 2:
            scale /= (n - 1) * (n - 2) / (1 if job.store.directed else 2)
    shared = Shared(job.engine, [DOWN, UP])
    searches = 0
    for source in chosen:
        if source < shared.slots.active:  # from others no path leads anywhere
            dependencies(job, shared, source)
            searches += 1
    shared.scale("total", scale)
    return job.result(shared.slots, {"betweenness": shared["total"]}, searches=searches)


def dependencies(job: Job, shared: Shared, source: int) -> None:
    """Add the share of each vertex in the shortest paths from one source."""
    engine, vectors = job.engine, shared.of(DOWN)
    shared.fill("level", FAR)
    shared.put("level", source, 0)
    shared.put("paths", source, 1.0)
    found = engine.run(DOWN, vectors=vectors, active=shared.of_numbers([source]), slots=shared.slots)
    # The last superstep reached nobody, and the source itself takes no share.
    for depth in range(found.steps - 1, 1, -1):
        front = shared.equal("level", depth)
        engine.run(UP, params={"level": depth}, vectors=vectors, active=front, slots=shared.slots, until=iterations(1))


def stages(store: Store, *, samples: int | None = None, sources: Any = None, **options: Any) -> list[Stage]:
    """What a run would do: down and up again for each source."""
    searches = store.active if samples is None else samples
    if sources is not None:
        searches = how_many(sources)
    note = "one for each source, in all about once over the arcs"
    return stages_of([Stage(program, note=note, times=max(1, searches)) for program in (DOWN, UP)])
