"""Shortest paths: the least total weight of a way from a source to each vertex.

Returns   distance, an int64 for integer weights and a float64 otherwise; with parents, parent, a vertex. Null where no
          source reaches. A source is its own parent.
Needs     an edge column of weights that are not negative. Arcs are followed forwards. For parents of real distances,
          the incoming arcs of a directed graph, or dtype="float32".
Defined   parent(v) is a u with d(u) + w(u, v) = d(v): of those the fewest such arcs from a source, of these the one of
          the smallest internal number.
Passes    delta-stepping; from disk, each superstep reads the pages of the vertices that changed in the least bucket.
Ref       Meyer and Sanders 2003; Beamer et al. 2015; Zhang et al. 2020
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from penstock.algorithms.job import Job, floats
from penstock.engine.engine import Outcome
from penstock.engine.monoid import ARGMIN, MIN, Monoid, pair, pair_number, pair_value
from penstock.engine.plan import number_dtype
from penstock.engine.program import Bucketed, Combine
from penstock.errors import InputError, UsageError
from penstock.result import Result
from penstock.store.columns import from_extreme

FAR32, FAR64 = np.uint32(0xFFFFFFFF), np.int64(0x7FFFFFFFFFFFFFFF)
"""The distance of a vertex that was not reached, in integers."""
FAR = {"uint32": FAR32, "int64": FAR64, "float32": np.float32(np.inf), "float64": np.float64(np.inf)}
UNSEEN = np.uint32(0xFFFFFFFF)


# ---- distances


def init32(v, p):
    return (np.uint32(0), True) if v.seed > 0 else (FAR32, False)


def init64(v, p):
    return (np.int64(0), True) if v.seed > 0 else (FAR64, False)


def init_real(v, p):
    return (0.0, True) if v.seed > 0 else (np.inf, False)


def emit(v, p):
    return v.distance


def longer32(distance, e, p):
    return distance + np.uint32(e[0])


def longer64(distance, e, p):
    return distance + np.int64(e[0])


def bounded32(distance, e, p):
    """No further than FAR32, where some distance may not fit."""
    return np.uint32(min(np.int64(distance) + np.int64(e[0]), np.int64(FAR32)))


def bounded64(distance, e, p):
    return distance + np.int64(e[0]) if np.int64(e[0]) <= FAR64 - distance else FAR64


def longer_real(distance, e, p):
    # NaN is the least of all, so that it shows in the result.
    return distance + e[0] if e[0] == e[0] else -np.inf  # noqa: PLR0124


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


def weights(job: Job, column: str) -> Weights:
    """Look at a column's index; refuse what cannot be a length."""
    store = job.store
    direction = store.direction("out")
    if column not in direction.columns:
        have = ", ".join(direction.columns)
        raise UsageError(
            f"{store.path} has no edge column {column!r}: choose a weight among {have}"
            if have
            else f"{store.path} has no edge columns to weigh edges by: build it with one, or run bfs to count arcs"
        )
    kind = direction.column_dtype(column)
    if kind.kind not in "uif" or direction.columns[column].endswith("]"):
        raise UsageError(f"edge column {column!r} holds {direction.columns[column]}, which is no length")
    records = direction.column_records[column]
    if not len(records):
        return Weights(kind.kind == "f", 0, 1.0)
    low = [from_extreme(int(bits), kind) for bits in records["minimum"]]
    high = [from_extreme(int(bits), kind) for bits in records["maximum"]]
    if np.isnan(low).any():
        raise InputError(f"edge column {column!r} of {store.path} holds NaN, which is no length")
    if (least := min(low)) < 0:
        raise InputError(f"edge column {column!r} of {store.path} holds {least}: shortest paths take no negative weights")
    return Weights(kind.kind == "f", max(high), float(np.mean(np.minimum(high, 1e300))))


def width(job: Job, typical: float) -> float:
    """A bucket wide enough to have work for all, and so narrow that little of it is done again."""
    arcs, active = job.store.direction("out").arcs, max(1, job.store.active)
    return max(typical / max(1.0, arcs / active), 1e-300)


def distances(job: Job, seeds: list[int], column: str, delta: float | None, dtype: str) -> tuple[str, Outcome]:
    """The distances, in the narrowest type that holds them; which that is."""
    known = weights(job, column)
    params = {"delta": width(job, known.typical) if delta is None else delta}
    if known.real:
        outcome = job.engine.run(program(dtype, column), seeds=seeds, params=params)
        if (outcome.state["distance"] == -np.inf).any():
            raise InputError(f"edge column {column!r} of {job.store.path} holds NaN, which is no length")
        return dtype, outcome
    largest = int(known.largest)
    for kind in ("uint32", "int64"):
        most = int(FAR[kind])
        # A way that is shorter than another passes no vertex twice.
        certain = largest * max(1, job.store.active) < most
        if largest >= most or (kind == "uint32" and not certain and largest > most >> 8):
            continue
        outcome = job.engine.run(program(kind, column, bounded=not certain), seeds=seeds, params=params)
        reached = outcome.state["distance"]
        if certain or int(reached[reached < most].max(initial=0)) < most - largest:
            return kind, outcome
        del outcome, reached
    raise InputError(f"distances by edge column {column!r} of {job.store.path} exceed 63 bits: store it as double")


# ---- parents, a tight arc further in each superstep


def init_parent(v, p):
    if v.seed > 0:
        return v.distance, np.uint32(0), v.number, True
    return v.distance, UNSEEN, v.number, False


def unseen(v, p):
    return v.hops == UNSEEN


def emit_pair(v, p):
    return pair(v.distance, v.number)


def longer_pair(sent, e, p):
    return pair(pair_value(sent) + np.uint32(e[0]), pair_number(sent))


def bounded_pair(sent, e, p):
    return pair(min(np.int64(pair_value(sent)) + np.int64(e[0]), np.int64(FAR32)), pair_number(sent))


def update_pair(v, least, p):
    if pair_value(least) == v.distance and v.distance != FAR32:
        return v.distance, np.uint32(p.step + 1), pair_number(least), True
    return v.distance, UNSEEN, v.parent, False


def update_hops(v, least, p):
    if least == v.distance and least != p.far:
        return v.distance, np.uint32(p.step + 1), v.parent, True
    return v.distance, UNSEEN, v.parent, False


def parents_narrow(weight: str, *, bounded: bool) -> Combine:
    """Hops and parents where a distance and a number fit into one word."""
    return Combine(
        name="sssp parents",
        state={"distance": "uint32", "hops": "uint32", "parent": "uint32"},
        reads=("seed", "number"),
        columns=(weight,),
        init=init_parent,
        message="uint64",
        emit=emit_pair,
        edge=bounded_pair if bounded else longer_pair,
        combine=ARGMIN,
        wants=unseen,
        update=update_pair,
        frontier=True,
    )


def hops_wide(kind: str, weight: str, number: np.dtype) -> Combine:
    """Hops only, by the least distance that arrives."""
    return Combine(
        name="sssp hops",
        state={"distance": kind, "hops": "uint32", "parent": number},
        reads=("seed", "number"),
        params={"far": FAR[kind].item()},
        columns=(weight,),
        init=init_parent,
        message=kind,
        emit=emit,
        edge=bounded64 if kind == "int64" else longer_real,
        combine=MIN,
        wants=unseen,
        update=update_hops,
        frontier=True,
    )


def _nearer(a, b):
    if a.real != b.real:
        return a if a.real < b.real else b
    return a if a.imag < b.imag else b


NEARER = Monoid("nearer", _nearer, complex(np.inf, np.inf))
"""The least by the first number, then by the second: two words, which no thread can swap at once, so it is pulled."""


def emit_wide(v, p):
    if v.hops == UNSEEN:
        return complex(np.inf, np.inf)
    return complex(v.distance, np.float64(v.hops) * p.vertices + v.number)


def longer_wide(sent, e, p):
    return complex(sent.real + e[0], sent.imag)


def longer_wide32(sent, e, p):
    return complex(np.float64(np.float32(sent.real + e[0])), sent.imag)


def update_wide(v, least, p):
    if v.hops == UNSEEN or v.hops == 0 or least.real != v.distance:
        return v.distance, v.hops, v.parent
    return v.distance, v.hops, np.int64(least.imag) % np.int64(p.vertices)


def parents_wide(kind: str, weight: str, number: np.dtype) -> Combine:
    """The parent of each vertex once its hops are known, in one pass."""
    return Combine(
        name="sssp parents",
        state={"distance": kind, "hops": "uint32", "parent": number},
        reads=("number",),
        columns=(weight,),
        init=init_parent,
        message="complex128",
        emit=emit_wide,
        edge=longer_wide32 if kind == "float32" else longer_wide,
        combine=NEARER,
        update=update_wide,
    )


def find_parents(job: Job, found: Outcome, kind: str, column: str) -> tuple[np.ndarray, Any]:
    """The parents, and what stands for none."""
    engine, number, vectors = job.engine, number_dtype(job.store), found.state
    none = np.iinfo(number).max
    if kind == "uint32" and number == np.uint32:
        outcome = engine.run(parents_narrow(column, bounded=True), vectors=vectors, slots=found.slots)
    else:
        outcome = engine.run(hops_wide(kind, column, number), vectors=vectors, slots=found.slots)
        reached = vectors["distance"][vectors["distance"] != FAR[kind]]
        if (outcome.steps + 1) * job.store.vertices >= 1 << 53 or (kind == "int64" and reached.max(initial=0) >= 1 << 53):
            raise UsageError(f"{job.name} has no parents for distances beyond 2**53: store {column} as double")
        outcome = engine.run(parents_wide(kind, column, number), vectors=outcome.state, slots=found.slots)
    parent, hops = outcome.state["parent"], outcome.state["hops"]
    parent[hops == UNSEEN] = none
    return parent, none


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
    kind, outcome = distances(job, job.seeds(source), weight, delta, floats(dtype))
    columns, nulls = {"distance": outcome.state["distance"]}, {"distance": FAR[kind]}
    if parents:
        columns["parent"], nulls["parent"] = find_parents(job, outcome, kind, weight)
    real = kind.startswith("float")
    return job.result(
        outcome, columns, nulls=nulls, references=("parent",) if parents else (),
        types={"distance": "float64" if real else "int64"}, supersteps=outcome.steps,
    )  # fmt: skip
