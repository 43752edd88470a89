"""Shortest paths: the least total weight of a way from a source to each vertex.

Returns   distance, an int64 for integer weights and a float64 otherwise; with parents, parent, a vertex. Null where no
          source reaches. A source is its own parent.
Needs     an edge column of weights that are not negative. Arcs are followed forwards. For parents of real distances,
          the incoming arcs of a directed graph.
Defined   parent(v) is a u with d(u) + w(u, v) = d(v): of those the fewest such arcs from a source, of these the one of
          the smallest internal number.
Passes    delta-stepping; from disk, each superstep reads the pages of the vertices that changed in the least bucket.
Ref       Meyer and Sanders 2003; Beamer et al. 2015; Zhang et al. 2020
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any, NamedTuple

import numpy as np

from penstock.algorithms.job import Job, floats, how_many
from penstock.algorithms.tight import (
    FAR,
    FAR32,
    FAR64,
    bounded64,
    check_parents,
    emit,
    farthest,
    find_parents,
    longer_real,
    nearest,
    parent_programs,
)  # fmt: skip
from penstock.engine.engine import Outcome
from penstock.engine.explain import Stage
from penstock.engine.monoid import MIN
from penstock.engine.plan import number_dtype
from penstock.engine.program import Bucketed, Combine
from penstock.errors import InputError, UsageError, meant
from penstock.result import Result
from penstock.store.reader import Store


def init32(v, p):
    return (np.uint32(0), True) if v.seed > 0 else (FAR32, False)


def init64(v, p):
    return (np.int64(0), True) if v.seed > 0 else (FAR64, False)


def init_real(v, p):
    return (0.0, True) if v.seed > 0 else (np.inf, False)


def longer32(distance, e, p):
    return distance + np.uint32(e[0])


def longer64(distance, e, p):
    return distance + np.int64(e[0])


def bounded32(distance, e, p):
    """No further than FAR32, where some distance may not fit."""
    return np.uint32(min(np.int64(distance) + np.int64(e[0]), np.int64(FAR32)))


def update(v, total, p):
    return (total, True) if total < v.distance else (v.distance, False)


def program(kind: str, weight: str, *, bounded: bool = False) -> Combine:
    """Distances of this dtype. Bounded: candidates beyond the dtype's largest number are cut to it."""
    edges = {"uint32": (longer32, bounded32), "int64": (longer64, bounded64)}
    return Combine(
        name="sssp",
        state={"distance": kind},
        reads=("seed",),
        params={"delta": 1.0},
        columns=(weight,),
        init={"uint32": init32, "int64": init64}.get(kind, init_real),
        message=kind,
        emit=emit,
        edge=edges[kind][bounded] if kind in edges else longer_real,
        combine=MIN,
        update=update,
        frontier=True,
        bucketed=Bucketed("distance"),
    )


class Weights(NamedTuple):
    """What the column's index says of it."""

    real: bool
    largest: Any
    typical: float
    """The mean over the pages of their largest weight."""


def weights(store: Store, column: str) -> Weights:
    """Look at a column's index; refuse what cannot be a length. It leaves NaN out: where one is reached, the run shows
    it, wherever pages begin and end."""
    direction = store.direction("out")
    if column not in direction.columns:
        have, near = ", ".join(direction.columns), meant(column, direction.columns)
        raise UsageError(
            f"{store.path} has no edge column {column!r}{near or ':'} choose one with weight=: {have}"
            if have
            else f"{store.path} has no edge columns to weigh edges by: build it with one, or run bfs to count arcs"
        )
    kind = direction.column_dtype(column)
    if kind.kind not in "uif" or direction.columns[column].endswith("]"):
        raise UsageError(f"edge column {column!r} holds {direction.columns[column]}, which is no length")
    records = direction.column_records[column]
    if not len(records):
        return Weights(kind.kind == "f", 0, 1.0)
    wide = {"f": "<f8", "u": "<u8", "i": "<i8"}[kind.kind]
    low, high = (np.ascontiguousarray(records[name]).view(wide) for name in ("minimum", "maximum"))
    if kind.kind == "f":  # pages of nothing but NaN
        low, high = low[~np.isnan(low)], high[~np.isnan(high)]
    if not len(low):
        return Weights(True, 0, 1.0)
    if (least := low.min()) < 0:
        raise InputError(
            f"edge column {column!r} of {store.path} holds {least}: shortest paths take no negative weights"
        )
    return Weights(kind.kind == "f", high.max(), float(np.mean(np.minimum(high, 1e300))))


def kinds(store: Store, known: Weights, dtype: str) -> Iterator[tuple[str, bool]]:
    """The types that the distances may need, the narrowest first, and whether it is certain that they fit."""
    if known.real:
        yield dtype, True
        return
    largest = int(known.largest)
    for kind in ("uint32", "int64"):
        most = int(FAR[kind])
        # A way that is shorter than another passes no vertex twice.
        certain = largest * max(1, store.active) < most
        if largest >= most or (kind == "uint32" and not certain and largest > most >> 8):
            continue
        yield kind, certain
        if certain:
            return


def width(job: Job, typical: float) -> float:
    """A bucket wide enough to have work for all, and so narrow that little of it is done again."""
    arcs, active = job.store.direction("out").arcs, max(1, job.store.active)
    return max(typical / max(1.0, arcs / active), 1e-300)


def distances(job: Job, seeds: list[int], column: str, delta: float | None, dtype: str) -> tuple[str, Outcome]:
    """The distances, in the narrowest type that holds them; which that is."""
    known = weights(job.store, column)
    params = {"delta": width(job, known.typical) if delta is None else delta}
    for kind, certain in kinds(job.store, known, dtype):
        outcome = job.engine.run(program(kind, column, bounded=not certain), seeds=seeds, params=params, stays=True)
        if known.real:
            if nearest(job, outcome.state["distance"]) < 0:
                raise InputError(f"edge column {column!r} of {job.store.path} holds NaN, which is no length")
            return kind, outcome
        if certain or farthest(job, outcome.state["distance"]) < int(FAR[kind]) - int(known.largest):
            return kind, outcome
        del outcome
    raise InputError(f"distances by edge column {column!r} of {job.store.path} exceed 63 bits: store it as double")


def sssp(
    job: Job,
    *,
    source: Annotated[Any, "Where to start: an id, or several."],
    weight: Annotated[str, "The edge column that says how long each edge is."] = "weight",
    delta: Annotated[float | None, "The width of a bucket; changes the time it takes, not the result."] = None,
    parents: Annotated[bool, "Also find the vertex before each on a shortest path."] = False,
    dtype: Annotated[str, "For real weights: float64, or float32 for half the memory."] = "float64",
) -> Result:
    """Shortest distances from the sources along weighted edges."""
    if delta is not None and not 0 < delta < np.inf:
        raise UsageError(f"delta must be more than 0, not {delta}")
    job.require(stages(job.store, source=source, weight=weight, parents=parents, dtype=dtype))
    kind, outcome = distances(job, job.seeds(source), weight, delta, dtype)
    columns, nulls = {}, {"distance": FAR[kind]}
    if parents:
        columns["parent"], nulls["parent"] = find_parents(job, outcome, kind, weight)
    columns = {"distance": outcome.state["distance"], **columns}
    real = kind.startswith("float")
    return job.result(
        outcome, columns, nulls=nulls, references=("parent",) if parents else (),
        types={"distance": "float64" if real else "int64"}, iterations=outcome.steps,
    )  # fmt: skip


def stages(
    store: Store,
    *,
    source: Any = None,
    weight: str = "weight",
    parents: bool = False,
    dtype: str = "float64",
    **options: Any,
) -> list[Stage]:
    """What a run would do; where distances may not fit the narrowest type, also with the next one."""
    dtype = floats(dtype)
    if parents:
        check_parents(store, weight)
    found: list[Stage] = []
    for kind, certain in kinds(store, weights(store, weight), dtype):
        again = "again, if distances need more bits; " if found else ""
        search = program(kind, weight, bounded=not certain)
        found.append(Stage(search, note=f"{again}delta-stepping: in all they go over the arcs a few times"))
        after = parent_programs(kind, weight, number_dtype(store)) if parents else []
        found += [Stage(each, None if each.frontier else 1, "by arcs of shortest paths") for each in after]
    return [replace(stage, seeds=how_many(source)) for stage in found]
