"""R-MAT: random edges that fall through quadrants, until there are enough that differ.

Returns   (source, target) of `nonzeros * 2**levels` different edges, in order
Defined   at each of the levels an edge falls into quadrant a, b, c or d; `fraction` shakes their chances there
Phases    draw what is missing, bring equal ones together, again until none is missing
Ref       Chakrabarti et al. 2004; Plimpton and Devine 2011
"""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np

from penstock.apps.grouped import mapped
from penstock.apps.jobs.edges import unpacked
from penstock.apps.jobs.options import Seed, seeded
from penstock.errors import UsageError
from penstock.mapreduce.keyvalue import KeyValue
from penstock.mapreduce.session import MapReduce

_PIECE = 1 << 18


def rmat(
    mr: MapReduce,
    levels: Annotated[int, "2 to the power of it is the number of vertices."],
    nonzeros: Annotated[float, "Edges by vertex."] = 16,
    *,
    a: Annotated[float, "Chance of the upper left quadrant."] = 0.57,
    b: Annotated[float, "Upper right."] = 0.19,
    c: Annotated[float, "Lower left."] = 0.19,
    d: Annotated[float, "Lower right."] = 0.05,
    fraction: Annotated[float, "How much the chances are shaken at each level, below 1."] = 0.0,
    seed: Seed = 1,
) -> KeyValue:
    """The edges of a random graph of `2**levels` vertices; `nonzeros` are the edges by vertex."""
    from penstock.apps.jobs.kernels import rmat_edges

    wanted = _check(levels, nonzeros, (a, b, c, d), fraction)
    chances = np.array([a, b, c, d])
    found = mr.keyvalue(key=np.uint64)
    drawn, key = 0, np.uint64(seeded(seed))
    while (missing := wanted - found.total) > 0:
        first = drawn

        def task(number: int, missing: int = missing, first: int = first) -> tuple[np.ndarray, None]:
            begin = number * _PIECE
            out = np.empty(min(_PIECE, missing - begin), np.uint64)
            rmat_edges(np.uint64(first + begin), np.uint64(levels), chances, fraction, key, out)
            return out, None

        with mr.writer(np.uint64, None) as writer:
            for number in range(mr.communicator.rank, -(-missing // _PIECE), mr.communicator.size):
                writer.add_chunk(*task(number))
            fresh = writer.done()
        drawn += missing
        both = mapped(found, lambda keys, values: (keys, None), np.uint64, None).add(fresh)
        found = both.compress("count").collate().reduce("sum")
    return mapped(found, lambda keys, values: unpacked(keys), np.uint64, np.uint64).sort_values().sort_keys()


def _check(levels: int, nonzeros: float, chances: tuple[float, ...], fraction: float) -> int:
    if not 0 <= levels <= 32:
        raise UsageError(f"levels must be from 0 to 32, not {levels}")
    if min(chances) < 0 or abs(math.fsum(chances) - 1) > 1e-9:
        raise UsageError(f"a, b, c and d are chances that sum to 1, not {' + '.join(f'{x:g}' for x in chances)}")
    if not 0 <= fraction < 1:
        raise UsageError(f"fraction must be at least 0 and less than 1, not {fraction}")
    wanted = round(nonzeros * 2**levels)
    # Edges that differ get rare when most are there: half of the places that can be hit is asked for at most.
    if not 0 <= wanted <= 4**levels // 2:
        raise UsageError(f"a graph of {2**levels} vertices has room for {4**levels // 2} edges drawn, not {wanted}")
    if wanted and sum(x > 0 for x in chances) < 4:
        raise UsageError("a, b, c and d must all be above 0: else some edges never come")
    return wanted


__all__ = ["rmat"]
