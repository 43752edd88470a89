"""Parents on shortest paths, once the distances are known: over tight arcs, d(u) + w = d(v).

Arcs of weight 0 may form circles, so it is the fewest tight arcs from a source that make a parent: each superstep goes
one of them further. Of vertices that are as good, the one of the smallest number is the parent. Where a distance and a
number fit into one word, the least word tells both; else the hops come first, and one pass more finds the parents.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.algorithms.job import Job
from penstock.engine.engine import Outcome
from penstock.engine.monoid import ARGMIN, MAX, MIN, Monoid, pair, pair_number, pair_value
from penstock.engine.plan import number_dtype, sides_of
from penstock.engine.program import Combine, Each
from penstock.engine.vectors import Slots
from penstock.errors import UsageError
from penstock.store.reader import Store

FAR32, FAR64 = np.uint32(0xFFFFFFFF), np.int64(0x7FFFFFFFFFFFFFFF)
"""The distance of a vertex that was not reached, in integers."""
FAR: dict[str, Any] = {"uint32": FAR32, "int64": FAR64, "float32": np.float32(np.inf), "float64": np.float64(np.inf)}
UNSEEN = np.uint32(0xFFFFFFFF)
"""The hops of such a vertex."""
PIECE = 1 << 20
"""Vertices moved together, as vectors may be larger than memory."""


def emit(v, p):
    return v.distance


def bounded64(distance, e, p):
    return distance + np.int64(e[0]) if np.int64(e[0]) <= FAR64 - distance else FAR64


def longer_real(distance, e, p):
    # NaN is the least of all, so that it shows in the result.
    return distance + e[0] if e[0] == e[0] else -np.inf


def was_reached(v, p):
    return v.distance != p.far


def nearest(job: Job, distance: np.ndarray) -> float:
    """The least distance, where distances are real; that of none is the greatest there is."""
    least = Each(name="nearest", state={"distance": distance.dtype}, measure=emit, measured="float64", fold=MIN)
    return float(job.engine.each(least, {"distance": distance}).total)


def farthest(job: Job, distance: np.ndarray) -> int:
    """The greatest distance that was found, where distances are integers; 0 if none was."""
    far = FAR[str(distance.dtype)]
    most = Each(
        name="farthest", state={"distance": distance.dtype}, params={"far": far}, chosen=was_reached, measure=emit,
        fold=MAX,
    )  # fmt: skip
    found = job.engine.each(most, {"distance": distance})
    return int(found.total) if found.count else 0


def init_parent32(v, p):
    if v.seed > 0:
        return v.distance, np.uint32(0), np.uint32(v.number), True
    return v.distance, UNSEEN, np.uint32(0xFFFFFFFF), False


def init_parent64(v, p):
    if v.seed > 0:
        return v.distance, np.uint32(0), np.uint64(v.number), True
    return v.distance, UNSEEN, np.uint64(0xFFFFFFFFFFFFFFFF), False


def unseen(v, p):
    return v.hops == UNSEEN


def emit_pair(v, p):
    return pair(v.distance, v.number)


def longer_pair(sent, e, p):
    return pair(min(np.int64(pair_value(sent)) + np.int64(e[0]), np.int64(FAR32)), pair_number(sent))


def update_pair(v, least, p):
    if pair_value(least) == v.distance and v.distance != FAR32:
        return v.distance, np.uint32(p.step + 1), pair_number(least), True
    return v.distance, UNSEEN, v.parent, False


def update_hops(v, least, p):
    if least == v.distance and least != p.far:
        return v.distance, np.uint32(p.step + 1), v.parent, True
    return v.distance, UNSEEN, v.parent, False


def parents_narrow(weight: str) -> Combine:
    """Hops and parents where a distance and a number fit into one word."""
    return Combine(
        name="sssp parents",
        state={"distance": "uint32", "hops": "uint32", "parent": "uint32"},
        reads=("seed", "number"),
        columns=(weight,),
        init=init_parent32,
        message="uint64",
        emit=emit_pair,
        edge=longer_pair,
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
        init=init_parent32 if number == np.uint32 else init_parent64,
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
    if not 0 < v.hops < UNSEEN or least.real != v.distance:
        return v.distance, v.hops, v.parent
    return v.distance, v.hops, np.int64(least.imag) % np.int64(p.vertices)


def parents_wide(kind: str, weight: str, number: np.dtype) -> Combine:
    """The parent of each vertex once its hops are known, in one pass."""
    return Combine(
        name="sssp parents",
        state={"distance": kind, "hops": "uint32", "parent": number},
        reads=("number",),
        columns=(weight,),
        init=init_parent32 if number == np.uint32 else init_parent64,
        message="complex128",
        emit=emit_wide,
        edge=longer_wide32 if kind == "float32" else longer_wide,
        combine=NEARER,
        update=update_wide,
    )


def parent_programs(kind: str, column: str, number: np.dtype) -> list[Combine]:
    """What finds the parents, one after the other."""
    if kind == "uint32" and number == np.uint32:
        return [parents_narrow(column)]
    return [hops_wide(kind, column, number), parents_wide(kind, column, number)]


def make_room(job: Job, program: Combine, vectors: dict[str, np.ndarray], slots: Slots) -> None:
    """Vectors that are in memory go to files where the program that comes next must split its state."""
    given = sum(array.nbytes for array in vectors.values())
    if job.engine.plan(program, slots.count, given=given).ranges == 1:
        return
    for name, array in vectors.items():
        if isinstance(array.base, np.memmap):
            continue
        job.engine.home(array)
        moved = job.engine.vectors.make(len(array), array.dtype, name, spilled=True)
        for at in range(0, len(array), PIECE):
            moved[at : at + PIECE] = array[at : at + PIECE]
            job.engine.vectors.drop()
        vectors[name] = moved


def find_parents(job: Job, found: Outcome, kind: str, column: str) -> tuple[np.ndarray, Any]:
    """The parents, and what stands for none."""
    engine, number, vectors = job.engine, number_dtype(job.store), found.state
    first, *more = parent_programs(kind, column, number)
    make_room(job, first, vectors, found.slots)
    outcome = engine.run(first, vectors=vectors, slots=found.slots, stays=True)
    for program in more:
        longest = farthest(job, vectors["distance"]) if kind == "int64" else 0
        if max((outcome.steps + 1) * job.store.vertices, longest) >= 1 << 53:
            raise UsageError(f"{job.name} has no parents for distances beyond 2**53: store {column} as double")
        vectors.clear()
        make_room(job, program, outcome.state, found.slots)
        vectors |= outcome.state
        outcome = engine.run(program, vectors=vectors, slots=found.slots, stays=True)
    vectors |= outcome.state
    return outcome.state["parent"], np.iinfo(number).max


def check_parents(store: Store, column: str) -> None:
    """Refuse at once what `find_parents` could not do."""
    real = store.direction("out").columns.get(column) in ("float", "double")
    if real and not sides_of(store, "out").pull:
        raise UsageError(
            f"{store.path} stores no incoming arcs, which parents on ways of real length need: build it with them"
        )
